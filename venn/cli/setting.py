"""Options that describe a stream and what is learned from it, and the objects that they make."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

import streams
from venn.cli import numbers
from venn.cli.columns import KEYS, Columns, of_columns
from venn.cli.config import Config, option, with_options
from venn.cli.errors import did_you_mean, writing
from venn.cli.panels import (
    DEFAULT_C,
    MACHINES,
    Choice,
    Choices,
    check_kernel,
    choices_of_numbers,
    choose_nothing,
    given_kernel,
    known_choices,
    panel_of,
    refuse_choices,
    usual_gamma,
)
from venn.cli.predictors import PREDICTORS, default_predictors, with_adaptive
from venn.machines.kernels import RBF
from venn.machines.tuning import PENALTIES, Tuning, tune
from venn.online.panel import Panel
from venn.online.record import Record
from venn.show.terminal import DRAWING, Progress, shows_progress

Command = TypeVar("Command", bound=Callable[..., Any])

FEWEST_TO_TUNE, MOST_TO_TUNE, SHARE_TO_TUNE = 20, 200, 5


def seed(text: str) -> int | None:
    """Return the seed that an option's text shows; None for the order of the data."""
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"must be an integer >= 0 or none, got {text!r}")
    return int(text)


def read_by(shown: str) -> Callable[[Command], Command]:
    """Return the option that names predictors; `shown` is the default that its help shows."""
    of_numbers = f"where labels are numbers, of {', '.join(numbers.PREDICTORS)}"
    text = f"Separated by commas, of {', '.join(PREDICTORS)}; {of_numbers}.  [default: {shown}]"
    return option("predictor", "names", help=text)


learning = with_options(
    option("machine", "kernel"),
    option(
        "machine",
        "gamma",
        help="For the rbf and poly kernels.  [default: rbf: by --tune, known on car and wine_red; poly: 1 / features]",
    ),
    option("machine", "degree"),
    option("machine", "coef0"),
    option(
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
    option(
        "machine",
        "scale",
        help="Scale columns by the first 30 examples, as in venn run; --no-scale takes them as they are in the file. "
        "[default: standardised over the whole file when it is loaded]",
    ),
    option("predictor", "adaptive"),
    option("predictor", "groups", metavar="COLUMN"),
    option("source", "steps", help="Stop after so many examples."),
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


@dataclass(frozen=True)
class Learning:
    """What a command line says of a stream, and of what is learned from it."""

    config: Config
    tuned_on: int | None
    no_progress: bool

    def __post_init__(self) -> None:
        check_kernel(self.config)
        assert Columns(self.config)  # better an error now than after the first data set

    @property
    def steps(self) -> int | None:
        """The largest number of examples."""
        return self.config.source.steps

    def predictors(self, data: str | None, stream: streams.Stream, say: Callable[[str], None]) -> list[str]:
        """Return the predictors that were named, or those of default; say so where labels are numbers."""
        names, of_numbers = self.config.predictor.names, not stream.classes
        if of_numbers:
            say("labels are numbers: distributions and intervals (--classes takes them as classes)")
        if names is not None:
            numbers.check_names(names, of_numbers)
        elif of_numbers:
            names = numbers.MANY if numbers.is_long(len(stream)) else numbers.FEW
        return list(names or default_predictors(data))

    @property
    def progress(self) -> bool | None:
        """Whether to show progress; None: only in a terminal."""
        return False if self.no_progress else None

    def open(self, data: str, shuffle: int | None) -> streams.Stream:
        """Return the stream that DATA names."""
        return open_stream(data, Columns(self.config), shuffle, whole=self.config.machine.scale is None)

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
        self, data: str, stream: streams.Stream, predictors: Sequence[str], say: Callable[[str], None]
    ) -> tuple[Panel, Tuning | None]:
        """Return a panel of the predictors, and the tuning of their machines if there was one."""
        config, classes = self.config, stream.classes
        names = self.standing(stream, predictors)
        choices: Choices = {}
        tuning: Tuning | None = None
        if not classes:
            choices = choices_of_numbers(config, len(stream.features))
        elif not choose_nothing(names):
            choices, tuning = self._choose(data, stream, say)
        return panel_of(config, names, choices, classes, stream.features, say), tuning

    def standing(self, stream: streams.Stream, predictors: Sequence[str]) -> Sequence[str]:
        """Return the predictors and those beside them, or refuse options that choose nothing of any of them."""
        if not stream.classes:
            if self.tuned_on:
                raise click.UsageError("--tune chooses nothing where labels are numbers: leave it out")
            return numbers.with_adaptive(predictors) if self.config.predictor.adaptive else predictors
        names = with_adaptive(predictors) if self.config.predictor.adaptive else predictors
        if choose_nothing(names):
            refuse_choices(self.config, names, [] if self.tuned_on is None else ["--tune"])
        return names

    def _choose(self, data: str, stream: streams.Stream, say: Callable[[str], None]) -> tuple[Choices, Tuning | None]:
        """Return what is chosen for machines of classes; and the tuning, if examples went into one."""
        machine, tuned_on = self.config.machine, self.tuned_on
        C, width = machine.C, len(stream.features)
        known = known_choices(data, machine)
        if tuned_on is None and known is not None:
            return known, None
        fixed = given_kernel(machine, width)
        if fixed is not None and C is not None:
            if tuned_on:
                raise click.UsageError("--tune has nothing to choose: the kernel and C are given")
            return dict.fromkeys(MACHINES, Choice(fixed, C)), None
        if tuned_on is None:
            tuned_on = min(MOST_TO_TUNE, len(stream) // SHARE_TO_TUNE)
            if tuned_on < FEWEST_TO_TUNE:
                tuned_on = 0
            elif len(set(stream.take(tuned_on).y.tolist())) < 2:  # as of a file sorted by class
                say(f"the first {tuned_on} examples are of one class: kernel and C are not chosen on them")
                tuned_on = 0
        if tuned_on == 0:
            usual = Choice(fixed or RBF(usual_gamma(width)), C or DEFAULT_C, ", by default")
            return dict.fromkeys(MACHINES, usual), None
        if tuned_on >= len(stream):
            raise click.UsageError(f"--tune must leave one of the {len(stream)} examples, got {tuned_on}")
        prefix: Any = stream.take(tuned_on)
        if machine.scale:  # as they will come to the machines, nearly: these are scaled by other examples
            prefix = streams.Stream(
                streams.Scaling.whole(prefix.X)(prefix.X), prefix.y, stream.classes, stream.features, stream.name
            )
        with Progress(None, self.progress) as bar:
            tuning = tune(
                prefix,
                kernels=None if fixed is None else [fixed],
                penalties=PENALTIES if C is None else [C],
                progress=lambda done, total: bar.count(done, total, "choosing kernel and C"),
            )
        say(
            f"chose {tuning.kernel!r}, C={tuning.C:g} on the first {tuning.n} examples, by leave-one-out: log loss "
            f"{tuning.best.log_loss:.3f}, error {tuning.best.error:.3f}; they belong to no bag, "
            f"step 1 is example {tuning.n + 1}"
        )
        return dict.fromkeys(MACHINES, Choice(tuning.kernel, tuning.C, ", tuned")), tuning


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return for a shell the data sets whose names begin so, and that files may stand there, too."""
    found = [CompletionItem(one.name) for one in streams.datasets() if one.name.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="file")]


def _copied(ctx: click.Context, param: click.Parameter, data: str) -> str:
    """Return of - the path of a copy of standard input, which lasts as long as the command; else what is given."""
    if data != "-":
        return data
    copy = Path(ctx.with_resource(TemporaryDirectory(prefix="venn-")), "stdin.csv")
    with click.open_file("-", "rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    return str(copy)


def of_data(metavar: str) -> Callable[[Command], Command]:
    """Return the argument that names what a command reads: a data set, a file, or - for standard input."""
    return click.argument("data", metavar=metavar, callback=_copied, shell_complete=complete)


def is_named(data: str) -> bool:
    """Whether DATA is a named data set."""
    return data in (info.name for info in streams.datasets())


def open_stream(data: str, columns: Columns, shuffle: int | None, whole: bool = True) -> streams.Stream:
    """Return the stream that DATA names; `whole` standardises its columns over the whole file."""
    if is_named(data):
        for key in columns.config.given("source"):
            if key in KEYS:
                raise click.UsageError(f"{columns.where(key)} belongs to a CSV file, and {data} is a named data set")
        stream = streams.load(data, shuffle=shuffle, progress=_announce_once(data), scale=whole)
    elif Path(data).is_dir():
        raise click.ClickException(f"{data} is a folder: give a CSV file or a name that `venn datasets` lists")
    elif Path(data).exists():
        stream = columns.open(data, shuffle, whole)
    elif os.sep in data or "." in data:
        bare = data.removeprefix("csv:")
        meant = f"; csv:FILE is a source of `venn run`, here give {bare}" if Path(bare).exists() else ""
        raise click.ClickException(f"no such file: {data}{meant}")
    else:
        near = did_you_mean(data, [info.name for info in streams.datasets()])
        raise click.ClickException(
            f"no data set and no file has the name {data!r}{near}; `venn datasets` lists the data sets"
        )
    if len(stream.classes) == 1:
        raise click.ClickException(f"{data} holds one label only, {stream.classes[0]!r}: there is nothing to predict")
    return stream


def _announce_once(data: str) -> Callable[[int, int], None]:
    told = False

    def announce(received: int, expected: int) -> None:
        nonlocal told
        if not told:
            told = True
            size = f"{expected / 1e6:.1f} MB" if expected >= 1e6 else f"{expected / 1e3:.0f} kB"
            click.echo(f"downloading {data} ({size})", err=True)

    return announce
