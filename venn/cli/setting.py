"""Options that describe a stream and what is learned from it, and the objects that they make."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import streams
from venn.cli import numbers
from venn.cli.columns import KEYS, Columns, of_columns
from venn.cli.config import shared_option
from venn.cli.errors import did_you_mean, writing
from venn.cli.groups import within_groups
from venn.cli.predictors import (
    DEFAULT_C,
    KERNELS,
    MACHINES,
    OF_KERNELS,
    PREDICTORS,
    check_kernel,
    choose_nothing,
    default_predictors,
    known_choices,
    make_kernel,
    panel_of,
    refuse_choices,
    with_adaptive,
)
from venn.machines.kernels import RBF, Kernel
from venn.machines.tuning import PENALTIES, Tuning, tune
from venn.online.panel import Panel
from venn.online.record import Record
from venn.show.terminal import DRAWING, Progress, shows_progress

Command = TypeVar("Command", bound=Callable[..., Any])

FEWEST_TO_TUNE, MOST_TO_TUNE, SHARE_TO_TUNE = 20, 200, 5


def seed(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"must be an integer >= 0 or none, got {text!r}")
    return int(text)


def read_by(shown: str) -> Callable[[Command], Command]:
    """Return the option that names predictors; `shown` is the default that its help shows."""
    of_numbers = f"where labels are numbers, of {', '.join(numbers.PREDICTORS)}"
    text = f"Separated by commas, of {', '.join(PREDICTORS)}; {of_numbers}.  [default: {shown}]"
    return shared_option("predictor", "names", help=text)


LEARNING = (
    shared_option("machine", "kernel"),
    shared_option(
        "machine",
        "gamma",
        help="For the rbf and poly kernels.  [default: rbf: by --tune, known on car and wine_red; poly: 1 / features]",
    ),
    shared_option("machine", "degree"),
    shared_option("machine", "coef0"),
    shared_option(
        "machine", "C", help="Penalty of the machines.  [default: chosen by --tune; known for rbf on car, wine_red]"
    ),
    click.option(
        "--tune",
        "tuned_on",
        type=click.IntRange(min=0),
        metavar="INTEGER",
        help="Number of first examples, used only to choose gamma and C; 0 means gamma = 1 / encoded "
        "features, C = 10.  [default: a fifth of them, at most 200, none below 100]",
    ),
    click.option(
        "--scale/--no-scale",
        default=None,
        help="Scale columns by the first 30 examples, as in venn run; --no-scale takes them as they are in the file. "
        "[default: standardised over the whole file when it is loaded]",
    ),
    shared_option("predictor", "adaptive"),
    shared_option("predictor", "groups", metavar="COLUMN"),
    click.option("--steps", type=click.IntRange(min=1), metavar="INTEGER", help="Stop after so many examples."),
    of_columns,
    click.option("--no-progress", is_flag=True, help="No progress bar."),
)


def into_folder(help: str, default: Path | None = None) -> Callable[[Command], Command]:
    """Return the option that says into which folder a command writes."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option("--out", type=kind, default=default, metavar="FOLDER", help=help)


def make_folder(out: Path) -> None:
    """Make the folder of `--out` where there is none: better an error now than after an hour."""
    with writing("--out", out):
        out.mkdir(parents=True, exist_ok=True)


def chosen_predictors(
    names: Sequence[str] | None, data: str | None, stream: streams.Stream, say: Callable[[str], None]
) -> list[str]:
    """Return the predictors that were named, or those of default; say so where labels are numbers."""
    if not stream.classes:
        say("labels are numbers: distributions and intervals (--classes takes them as classes)")
    if names is not None:
        numbers.check_names(names, not stream.classes)
        return list(names)
    if not stream.classes:
        return list(numbers.MANY if numbers.is_long(len(stream)) else numbers.FEW)
    return list(default_predictors(data))


def learning(command: Command) -> Command:
    """Add the options for learning to a command; `Learning.typed` reads them."""
    for option in reversed(LEARNING):
        command = option(command)
    return command


@dataclass(frozen=True)
class Learning:
    """The values of those options."""

    kernel: str
    gamma: float | None
    degree: int | None
    coef0: float | None
    C: float | None
    tuned_on: int | None
    scale: bool | None
    adaptive: bool
    groups: str | None
    steps: int | None
    columns: Columns
    no_progress: bool

    def __post_init__(self) -> None:
        check_kernel(self.kernel, {key: getattr(self, key) for key in OF_KERNELS}, lambda key: f"--{key}")

    @classmethod
    def typed(cls, options: Mapping[str, Any]) -> Learning:
        """Return the values given on a command line."""
        rest = {key: value for key, value in options.items() if key not in (*KEYS, "numbers")}
        return cls(**rest, columns=Columns.typed(options))

    @property
    def progress(self) -> bool | None:
        """Whether to show progress; None: only in a terminal."""
        return False if self.no_progress else None

    def open(self, data: str, shuffle: int | None) -> streams.Stream:
        """Return the stream that DATA names."""
        return open_stream(data, self.columns, shuffle, whole=self.scale is None)

    def fixed(self, stream: streams.Stream) -> Kernel | None:
        """Return the kernel if it is given."""
        if self.gamma is None and self.kernel == "rbf":
            return None
        return make_kernel(self.kernel, self.gamma or 1 / len(stream.features), self.degree, self.coef0)

    def drawn(self, record: Record, folder: Path) -> list[Path]:
        """Draw the figures of a record into a folder; return them, or say what they need."""
        if shows_progress(self.progress):
            click.echo(DRAWING, err=True)
        try:
            return record.plot_all(folder)
        except ImportError as error:
            click.echo(f"no figures: {error}", err=True)
            return []

    def panel(
        self, data: str, stream: streams.Stream, predictors: list[str], say: Callable[[str], None], level: float = 0.01
    ) -> tuple[Panel, Tuning | None]:
        """Return a panel of the predictors, and the tuning of their machines if there was one."""
        if not stream.classes:
            return self._grouped(self._of_numbers(stream, predictors, say), stream, say), None
        if self.adaptive:
            predictors = list(with_adaptive(predictors))
        choices: dict[str, tuple[Kernel, float, str]] = {}
        tuning: Tuning | None = None
        if choose_nothing(predictors):
            typed = {"kernel": None if self.kernel == KERNELS[0] else self.kernel, "tune": self.tuned_on}
            typed |= {key: getattr(self, key) for key in ("gamma", "degree", "coef0", "C")}
            refuse_choices([f"--{key}" for key, value in typed.items() if value is not None], predictors)
        else:
            choices, tuning = _choose(data, stream, self, say)
        whole = self.scale is None
        made = panel_of(predictors, choices, stream.classes, say, scale=self.scale, level=level, standardised=whole)
        return self._grouped(made, stream, say), tuning

    def _grouped(self, made: Panel, stream: streams.Stream, say: Callable[[str], None]) -> Panel:
        return made if self.groups is None else within_groups(made, self.groups, stream.features, say)

    def _of_numbers(self, stream: streams.Stream, predictors: list[str], say: Callable[[str], None]) -> Panel:
        """Return a panel of predictors of numbers."""
        if self.tuned_on:
            raise click.UsageError("--tune chooses nothing where labels are numbers: leave it out")
        if self.adaptive:
            predictors = list(numbers.with_adaptive(predictors))
        return numbers.panel_of_numbers(predictors, self.fixed(stream), self.C, say, scale=bool(self.scale))


def open_stream(data: str, columns: Columns, shuffle: int | None, whole: bool = True) -> streams.Stream:
    """Return the stream that DATA names; `whole` standardises its columns over the whole file."""
    stream = _open(data, columns, shuffle, whole)
    if len(stream.classes) == 1:
        raise click.ClickException(f"{data} holds one label only, {stream.classes[0]!r}: there is nothing to predict")
    return stream


def is_named(data: str) -> bool:
    """Whether DATA is a named data set."""
    return data in (info.name for info in streams.datasets())


def _open(data: str, columns: Columns, shuffle: int | None, whole: bool) -> streams.Stream:
    named = [info.name for info in streams.datasets()]
    if data in named:
        for key in columns.given():
            raise click.UsageError(f"{columns.where(key)} belongs to a CSV file, and {data} is a named data set")
        return streams.load(data, shuffle=shuffle, progress=_announce_once(data), scale=whole)
    if not Path(data).exists():
        if os.sep in data or "." in data:
            raise click.ClickException(f"no such file: {data}")
        raise click.ClickException(
            f"no data set and no file has the name {data!r}{did_you_mean(data, named)}; "
            "`venn datasets` lists the data sets"
        )
    if Path(data).is_dir():
        raise click.ClickException(f"{data} is a folder: give a CSV file or a name that `venn datasets` lists")
    return columns.open(data, shuffle, whole)


def _announce_once(data: str) -> Callable[[int, int], None]:
    told = False

    def announce(received: int, expected: int) -> None:
        nonlocal told
        if not told:
            told = True
            size = f"{expected / 1e6:.1f} MB" if expected >= 1e6 else f"{expected / 1e3:.0f} kB"
            click.echo(f"downloading {data} ({size})", err=True)

    return announce


def _choose(
    data: str, stream: streams.Stream, options: Learning, say: Callable[[str], None]
) -> tuple[dict[str, tuple[Kernel, float, str]], Tuning | None]:
    """Return kernel, C and a note for each kind of machine; and the tuning, if examples went into one."""
    kernel, gamma, C, tuned_on = options.kernel, options.gamma, options.C, options.tuned_on
    known = known_choices(data, gamma, C)
    if kernel == "rbf" and tuned_on is None and known is not None:
        return known, None
    fixed = options.fixed(stream)
    if fixed is not None and C is not None:
        if tuned_on:
            raise click.UsageError("--tune has nothing to choose: the kernel and C are given")
        return {kind: (fixed, C, "") for kind in MACHINES}, None
    if tuned_on is None:
        tuned_on = min(MOST_TO_TUNE, len(stream) // SHARE_TO_TUNE)
        if tuned_on < FEWEST_TO_TUNE:
            tuned_on = 0
        elif len(set(stream.take(tuned_on).y.tolist())) < 2:  # as of a file sorted by class
            say(f"the first {tuned_on} examples are of one class: kernel and C are not chosen on them")
            tuned_on = 0
    if tuned_on == 0:
        solver, penalty = fixed or RBF(1 / len(stream.features)), C or DEFAULT_C
        return {kind: (solver, penalty, ", by default") for kind in MACHINES}, None
    if tuned_on >= len(stream):
        raise click.UsageError(f"--tune must leave one of the {len(stream)} examples, got {tuned_on}")
    prefix: Any = stream.take(tuned_on)
    if options.scale:  # as they will come to the machines, nearly: these are scaled by other examples
        prefix = streams.Stream(
            streams.Scaling.whole(prefix.X)(prefix.X), prefix.y, stream.classes, stream.features, stream.name
        )
    with Progress(None, options.progress) as bar:
        tuning = tune(
            prefix,
            kernels=None if fixed is None else [fixed],
            penalties=PENALTIES if C is None else [C],
            progress=lambda done, total: bar.count(done, total, "choosing kernel and C"),
        )
    say(
        f"chose {tuning.kernel!r}, C={tuning.C:g} on the first {tuning.n} examples, by leave-one-out: log loss "
        f"{tuning.best.log_loss:.3f}, error {tuning.best.error:.3f}; they belong to no bag"
    )
    return {kind: (tuning.kernel, tuning.C, ", tuned") for kind in MACHINES}, tuning
