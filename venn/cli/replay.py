"""``venn replay`` and ``venn compare``: predict, then learn, every example of data sets; compare the predictors."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

import streams
from streams.checks import Doubtful
from venn.cli import numbers
from venn.cli.beside import compile_beside
from venn.cli.columns import Columns
from venn.cli.commands import INTERRUPTED, Interrupt
from venn.cli.config import configured
from venn.cli.drawing import TwoDrawers
from venn.cli.errors import OURS, one_line, one_line_errors, writing
from venn.cli.options import Config
from venn.cli.output import finite
from venn.cli.panels import (
    DEFAULT_C,
    MACHINES,
    Choice,
    Choices,
    check_kernel,
    choose_nothing,
    given_kernel,
    known_choices,
    panel_of,
    refuse_choices,
    usual_choices,
    usual_gamma,
)
from venn.cli.places import is_named, open_stream, seed_of
from venn.cli.predictors import FORECASTER, PREDICTORS, STUDY, default_predictors, with_adaptive
from venn.cli.scorer import GivenModel, given_model
from venn.cli.series import forecast
from venn.cli.words import began_anew, conclude, plain_words, verdict_on, verdicts_of
from venn.machines.kernels import RBF
from venn.machines.tuning import PENALTIES, Tuning, tune
from venn.monitors.shared_level import trainings_of
from venn.monitors.verdict import Verdict
from venn.online.panel import Panel
from venn.online.record import Record
from venn.online.replaying import at_hand, length
from venn.online.replaying import replay as run
from venn.show.terminal import DRAWING, Progress, shows_progress
from venn.show.terminal import table as means_table

Command = TypeVar("Command", bound=Callable[..., Any])

CURVES = "curves.png"
RESULTS = Path("runs", "compare")
FEWEST_TO_TUNE, MOST_TO_TUNE, SHARE_TO_TUNE = 20, 200, 5


def make_folder(out: Path) -> None:
    """Make the folder of `--out` where there is none, and write in it: better an error now than after an hour."""
    with writing("--out", out):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass


@dataclass(frozen=True)
class Learning:
    """What a command line says of a stream, and of what is learned from it."""

    config: Config

    def __post_init__(self) -> None:
        check_kernel(self.config)
        assert Columns(self.config)  # better an error now than after the first data set

    def predictors(self, data: str | None, stream: streams.Stream, say: Callable[[str], None]) -> list[str]:
        """Return the predictors that were named, or those of default; say so where labels are numbers."""
        names, of_numbers = self.config.predictor.names, not stream.classes
        if self.model is not None:
            return [FORECASTER]
        if of_numbers:
            say("labels are numbers (--no-numbers takes them as classes)")
        if names is not None:
            numbers.check_names(names, of_numbers)
        return list(names or default_predictors(None if of_numbers else data))

    @cached_property
    def model(self) -> GivenModel | None:
        """The given model, if there is one."""
        return given_model(self.config)

    def open(self, data: str, shuffle: int | None) -> streams.Stream:
        """Return the stream that DATA names."""
        return open_stream(data, self.config, shuffle, self.model)

    def drawn(self, record: Record, file: Path, by: TwoDrawers | None = None) -> list[Path]:
        """Draw the figures of a record beside its file; return them, or say what they need."""
        if shows_progress(self.config.view.progress):
            click.echo(DRAWING, err=True)
        try:
            return (by or TwoDrawers(0)).draw(record, file)
        except (ImportError, OSError) as error:
            click.echo(f"no figures: {error}", err=True)
            return []

    def panel(
        self, data: str, stream: streams.Stream, predictors: Sequence[str], say: Callable[[str], None]
    ) -> tuple[Panel, Tuning | None]:
        """Return a panel of the predictors, and the tuning of their machines if there was one."""
        config, classes = self.config, stream.classes
        if self.model is not None:
            panel = self.model.panel(say)
            for line in self.model.said():
                say(line)
            return panel, None
        names = self.standing(stream, predictors)
        choices: Choices = {}
        tuning: Tuning | None = None
        if not classes:
            choices = usual_choices(data, config.machine, len(stream.features))
        elif not choose_nothing(names):
            choices, tuning = self._choose(data, stream, say)
        return panel_of(config, names, choices, classes, stream.features, say), tuning

    def standing(self, stream: streams.Stream, predictors: Sequence[str]) -> Sequence[str]:
        """Return the predictors and those beside them, or refuse options that choose nothing of any of them."""
        if not stream.classes and self.config.machine.tune:
            raise click.UsageError("--tune chooses nothing where labels are numbers: leave it out")
        names = predictors
        if self.config.predictor.adaptive:
            names = with_adaptive(predictors) if stream.classes else numbers.with_adaptive(predictors)
        if choose_nothing(names):
            refuse_choices(self.config, names, stream.classes, [] if self.config.machine.tune is None else ["--tune"])
        return names

    def _choose(self, data: str, stream: streams.Stream, say: Callable[[str], None]) -> tuple[Choices, Tuning | None]:
        """Return what is chosen for machines of classes; and the tuning, if examples went into one."""
        machine, tuned_on = self.config.machine, self.config.machine.tune
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
        with Progress(None, self.config.view.progress) as bar:
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


# ---------------------------------------------------------------- venn replay


@configured("replay")
@of_data("DATA")
def replay(data: str, config: Config) -> None:
    """Predict, then learn, every example of DATA; compare the predictors, which share their machines.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, or - for one on standard input; a file
    needs --label. With --scorer it may be a Parquet file.
    By default the recommended forecaster: forecast (probabilities to decide by), intervals (a lower and an upper
    probability for each class, guaranteed) and sets (of labels, their errors guaranteed); of numbers a distribution,
    whose intervals miss as often as they say. `venn replay car` also
    repeats the experiment of Lambrou, Papadopoulos and Gammerman (2012), beside it. A file is replayed in its own
    order. Ctrl-C or SIGTERM ends the replay after the current step: the results until then are printed and written.
    """
    if config.series.value is not None:
        forecast(data, config)
        return
    chosen, steps, as_json = Learning(config), config.source.steps, config.view.json
    out = None if config.view.out is None else Path(config.view.out)

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with one_line_errors():
        shuffle = seed_of(config, 0 if is_named(data) else None)
        stream = chosen.open(data, shuffle)
        notes = [_order(data, len(stream), shuffle)]  # said once nothing is refused any more
        names = chosen.predictors(data, stream, notes.append)
        if any(PREDICTORS.get(name, [""])[0] == "hinge" for name in names):
            compile_beside()
        panel, tuning = chosen.panel(data, stream, names, notes.append)
        if (
            config.predictor.names is None and stream.classes and len(names) > 1
        ):  # between the note on the forecaster and that on their machine
            notes.insert(2, f"beside it, for comparison, what {STUDY} published on these data")
        # The stem of "...csv" is "..": the folder above.
        folder = Path("runs", stream.name if stream.name.strip(".") else "data") if out is None else out
        make_folder(folder)
        for note in notes:
            say(note)
        if tuning is not None:
            stream = stream.drop(tuning.n)
        total = length(stream, steps) or 0
        hand_over, drawers = _hand_over(panel, total), TwoDrawers(total)
        if hand_over:
            say(hand_over)
        with Interrupt() as interrupt:
            until = Until(stream, interrupt, chosen.model is not None, drawers.at)
            record = run(until, panel, progress=config.view.progress, steps=steps)
            record.shuffle = shuffle
            trouble = _trouble(record, folder / "record.npz")
        written = [] if trouble else [folder / "record.npz", *chosen.drawn(record, folder / "record.npz", drawers)]

    verdicts = verdicts_of(record, config.monitor.floor)
    if as_json:
        summary = _summary(record, stream.name, tuning, verdicts)
        click.echo(json.dumps(finite(summary | {"verdict": verdict_on(panel, verdicts).plain()}), allow_nan=False))
    else:
        click.echo(record.table())
    for line in [*plain_words(record), *began_anew(panel)]:
        say(line)
    if trouble is None:
        say(f"{record.seconds:.1f} s; wrote {folder}/: {_listed(written)}")
    first = next((path for path in written if path.name == CURVES), None)
    if first is not None:
        say(f"look first at {first}: is the accuracy inside its band, and how wide is that?")
    conclude(verdict_on(panel, verdicts), say)
    if trouble is not None:
        raise trouble
    if until.ended:
        click.echo(f"interrupted at step {len(record)} of {length(stream, steps)}", err=True)
        click.get_current_context().exit(interrupt.status)


def _trouble(record: Record, file: Path) -> click.ClickException | None:
    """Write the record; return why that failed, as where the disk is full: what it says is printed all the same."""
    try:
        with writing("--out", file.parent):
            record.save(file)
    except click.ClickException as error:
        return error
    return None


def _listed(written: list[Path]) -> str:
    """Name the record, and the figures if there are any."""
    record, *figures = (path.stem for path in written)
    return f"{record}.npz" + (f", and as .png {', '.join(figures)}" if figures else "")


def _hand_over(panel: Panel, steps: int) -> str:
    """Say after which steps predictors hand over to others that have been trained; nothing if there are none."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, each in trainings_of(panel).items():
        reached = tuple(step for step in each if step < steps)
        if reached:
            found.setdefault(reached, []).append(name)
    return "; ".join(
        f"{', '.join(names)}: trained after step {', '.join(map(str, each))}, and from there on calibrated on other "
        "examples; what is proved holds from one training to the next"
        for each, names in found.items()
    )


def _order(data: str, n: int, shuffle: int | None) -> str:
    """Say in which order the examples come, and how to have another."""
    what = f"{data}: {n} examples" if is_named(data) else f"{Path(data).name}: {n} rows"
    if shuffle is not None:
        return f"{what} in a random order, that of seed {shuffle} (--shuffle none for the order of the data)"
    return f"{what} in the order of the {'data' if is_named(data) else 'file'} (--shuffle SEED for another)"


class Until:
    """A stream that ends before its next example once its end is requested, but never before its first.

    Attributes
    ----------
    ended : bool
        Whether it has ended.
    known : Stream
        The same without an end before its time.
    """

    def __init__(self, stream: streams.Stream, interrupt: Interrupt, blocks: bool, at: Callable[[int], None]) -> None:
        self.name, self.ended, self._blocks, self._at = stream.name, False, blocks, at
        self.known, self._interrupt = stream, interrupt

    def __len__(self) -> int:
        return len(self.known)

    @property
    def arrived(self) -> bool:
        """Whether examples may be read some hundred at a time; it then ends after those."""
        return self._blocks and at_hand(self.known)

    def __iter__(self) -> Iterator[Any]:
        for n, example in enumerate(self.known):
            if n > 0 and self._interrupt.pressed:
                self.ended = True
                return
            self._at(n)
            yield example


def _summary(record: Record, data: str, tuning: Tuning | None, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    return {
        "data": data,
        "n": len(record),
        "classes": list(record.classes),
        "shuffle": record.shuffle,
        "seconds": record.seconds,
        "tuned_on": tuning.n if tuning else 0,
        "predictors": {name: finite(means) for name, means in record.means().items()},
        "verdicts": {name: verdict.plain() for name, verdict in verdicts.items()},
    }


# ---------------------------------------------------------------- venn compare


@configured("compare")
@click.argument("data", nargs=-1, required=True, shell_complete=complete)
def compare(data: tuple[str, ...], config: Config) -> None:
    """Replay each DATA in several orders; print the means of each predictor over them.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, which needs --label. The record of each
    replay is written when it is done. Ctrl-C ends the work: the table is that of the replays until then.
    """
    if "-" in data:
        raise click.UsageError("DATA must be data sets or files, which each replay reads anew, got -")
    if len(set(data)) < len(data):
        raise click.UsageError(f"DATA must name each data set once, got {' '.join(data)}")
    chosen, view, shuffles = Learning(config), config.view, config.view.shuffles
    out = RESULTS if view.out is None else Path(view.out)
    silent = Learning(replace(config, view=replace(view, progress=False)))
    titles = dict(zip(data, _titles(data), strict=True))
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    ended = False
    with one_line_errors():
        for one in data:  # better an error now than in each replay
            stream = chosen.open(one, None)
            chosen.standing(stream, chosen.predictors(one, stream, _unsaid))
        make_folder(out)
        todo = [(one, seed) for one in data for seed in range(shuffles)]
        try:
            with Progress(len(todo), view.progress) as bar, warnings.catch_warnings():
                warnings.simplefilter("ignore", Doubtful)  # said once, before the replays
                for done, (one, seed) in enumerate(todo, 1):
                    file = out / f"{titles[one].replace(os.sep, '_')}-{seed}.npz"
                    try:
                        record = _record(silent, one, seed)
                    except OURS as error:
                        failed.append(f"{titles[one]}, shuffle {seed}: {one_line(error)}")
                    else:
                        with writing("--out", out):
                            record.save(file)
                        rows += _rows(record, titles[one], seed, file)
                    bar.count(done, len(todo), f"replays{f', {len(failed)} failed' if failed else ''}")
        except KeyboardInterrupt:
            ended = True
    if view.json:
        click.echo(json.dumps(finite({"rows": rows}), allow_nan=False))
    elif rows:
        click.echo(table(rows, shuffles))
    click.echo(f"records: {out}/", err=True)
    for text in failed:
        click.echo(f"failed: {text}", err=True)
    if ended:
        click.echo("interrupted: the table is that of the replays until then", err=True)
        click.get_current_context().exit(INTERRUPTED)
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(todo)} replays failed")


def _record(chosen: Learning, data: str, shuffle: int) -> Record:
    """Return the record of one replay."""
    stream = chosen.open(data, shuffle)
    panel, tuning = chosen.panel(data, stream, chosen.predictors(data, stream, _unsaid), _unsaid)
    stream = stream if tuning is None else stream.drop(tuning.n)
    record = run(stream, panel, progress=False, steps=chosen.config.source.steps)
    record.shuffle = shuffle
    return record


def _rows(record: Record, title: str, shuffle: int, file: Path) -> list[dict[str, Any]]:
    """Return a row for each predictor of a replay."""
    shared = {"examples": len(record), "seconds": record.seconds, "record": str(file)}
    return [
        {"data": title, "shuffle": shuffle, "predictor": name, **shared, "guaranteed": record.guaranteed[name]}
        | finite(means)
        for name, means in record.means().items()
    ]


def _unsaid(text: str) -> None:
    """Say nothing: many replays would all say the same."""


def _titles(data: Sequence[str]) -> Sequence[str]:
    """Return the names of the data sets in the table: file stems, or the names given if two stems are the same."""
    stems = [Path(one).stem if Path(one).suffix else one for one in data]
    return stems if len(set(stems)) == len(stems) else data


def table(rows: Iterable[Mapping[str, Any]], shuffles: int) -> str:
    """Return the means over the shuffles, a line for each data set and predictor."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(f"{row['data']} {row['predictor']}", []).append(row)
    means = {
        name: {
            field: sum(row[field] for row in group) / len(group)
            for field, value in group[0].items()
            if isinstance(value, float) and field != "seconds"
        }
        for name, group in groups.items()
    }
    unit = " Log loss in nats." if any("log_loss" in found for found in means.values()) else ""
    note = f"Means over all steps, then over the shuffles.{unit}"
    title = "in the order of shuffle 0" if shuffles == 1 else f"means over {shuffles} shuffles"
    return means_table(means, title, note)
