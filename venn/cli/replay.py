"""``venn replay``: predict, then learn, every example of a data set; compare the predictors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import streams
from venn.cli.config import typed
from venn.cli.errors import one_line_errors, writing
from venn.cli.interrupt import Interrupt
from venn.cli.output import finite
from venn.cli.predictors import DEFAULTS, STUDY
from venn.cli.setting import Learning, into_folder, is_named, learning, make_folder, of_data, read_by, seed
from venn.cli.words import conclude, plain_words, verdict_on, verdicts_of
from venn.machines.tuning import Tuning
from venn.monitors.together import trainings_of
from venn.monitors.verdict import Verdict
from venn.online.panel import Panel
from venn.online.record import Record
from venn.online.replaying import length
from venn.online.replaying import replay as run

CURVES = "curves.png"


@click.command()
@of_data("DATA")
@learning
@click.option(
    "--shuffle",
    type=seed,
    metavar="SEED",
    help="Seed of another order; none keeps the order of the data.  [default: 0 for a named data set, none for a file]",
)
@read_by(DEFAULTS)
@into_folder("Folder for the figures and the record.  [default: runs/DATA]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; everything else goes to stderr.")
def replay(
    data: str,
    shuffle: int | None,
    out: Path | None,
    as_json: bool,
    tuned_on: int | None,
    no_progress: bool,
    **_: Any,
) -> None:
    """Predict, then learn, every example of DATA; compare the predictors, which share their machines.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, or - for one on standard input; a file
    needs --label.
    By default the recommended forecaster: forecast (probabilities to decide by), intervals (a lower and an upper
    probability for each class, guaranteed) and sets (of labels, their errors guaranteed). `venn replay car` also
    repeats the experiment of Lambrou, Papadopoulos and Gammerman (2012), beside it. A file is replayed in its own
    order. Ctrl-C or SIGTERM ends the replay after the current step: the results until then are printed and written.
    """
    chosen = Learning(typed(), tuned_on, no_progress)

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with one_line_errors():
        if click.get_current_context().get_parameter_source("shuffle") is ParameterSource.DEFAULT:
            shuffle = 0 if is_named(data) else None
        stream = chosen.open(data, shuffle)
        notes = [_order(data, len(stream), shuffle)]  # said once nothing is refused any more
        names = chosen.predictors(data, stream, notes.append)
        panel, tuning = chosen.panel(data, stream, names, notes.append)
        if (
            chosen.config.predictor.names is None and stream.classes and len(names) > 1
        ):  # between the note on the forecaster and that on their machine
            notes.insert(2, f"beside it, for comparison, what {STUDY} published on these data")
        for note in notes:
            say(note)
        if tuning is not None:
            stream = stream.drop(tuning.n)
        if out is not None:
            make_folder(out)
        hand_over = _hand_over(panel, length(stream, chosen.steps) or 0)
        if hand_over:
            say(hand_over)
        with Interrupt() as interrupt:
            until = Until(stream, interrupt)
            record = run(until, panel, progress=chosen.progress, steps=chosen.steps)
            record.shuffle = shuffle
            # The stem of "...csv" is "..": the folder above.
            folder = Path("runs", stream.name if stream.name.strip(".") else "data") if out is None else out
            with writing("--out", folder):
                record.save(folder / "record.npz")
        written = [folder / "record.npz", *chosen.drawn(record, folder)]

    verdicts = verdicts_of(record)
    if as_json:
        summary = _summary(record, stream.name, tuning, verdicts)
        click.echo(json.dumps(summary | {"verdict": verdict_on(panel, verdicts).plain()}, allow_nan=False))
    else:
        click.echo(record.table())
    for line in plain_words(record):
        say(line)
    say(f"{record.seconds:.1f} s; wrote {folder}/: {_listed(written)}")
    first = next((path for path in written if path.name == CURVES), None)
    if first is not None:
        say(f"look first at {first}: is the accuracy inside its band, and how wide is that?")
    conclude(verdict_on(panel, verdicts), say)
    if until.ended:
        click.echo(f"interrupted at step {len(record)} of {length(stream, chosen.steps)}", err=True)
        click.get_current_context().exit(interrupt.status)


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
        f"{', '.join(names)}: trained after step {' and '.join(map(str, each))}, and from there on calibrated on other "
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
    """

    def __init__(self, stream: streams.Stream, interrupt: Interrupt) -> None:
        self.name, self.ended = stream.name, False
        self._stream, self._interrupt = stream, interrupt

    def __len__(self) -> int:
        return len(self._stream)

    def __iter__(self) -> Iterator[Any]:
        for n, example in enumerate(self._stream):
            if n > 0 and self._interrupt.pressed:
                self.ended = True
                return
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
