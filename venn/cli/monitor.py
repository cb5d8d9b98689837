"""``venn monitor``: watch predictors on a stream, live, and hear when what they claim stops being true."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import click

from venn.cli.setting import PREDICTORS, Learning, learning, names, one_line_errors, positive, seed
from venn.monitors.monitor import Monitor
from venn.monitors.outcomes import Outcomes
from venn.online.record import Record
from venn.online.replay import advance, length
from venn.show.live import Live

MOST_TRANSDUCTIVE = 6000  # examples; beyond it memory grows past half a gigabyte and steps past some milliseconds
FEW, MANY = ("deleted", "conformal"), ("inductive", "inductive_conformal")
BLOCK = 64  # steps of a record between two looks at the clock


def _level(context: click.Context, option: click.Parameter, value: float) -> float:
    if not 0 < value < 1:
        raise click.BadParameter(f"must lie between 0 and 1, both excluded, got {value:g}")
    return value


@click.command()
@click.argument("data", metavar="DATA|FILE")
@learning
@click.option(
    "--shuffle",
    type=seed,
    default="none",
    metavar="SEED",
    help="Seed of the order; none keeps the order of the data, in which it may change.  [default: none]",
)
@click.option(
    "--predictors",
    type=names,
    metavar="NAMES",
    help=f"Separated by commas, of {', '.join(PREDICTORS)}.  [default: {','.join(FEW)}; beyond {MOST_TRANSDUCTIVE} "
    f"examples {','.join(MANY)}]",
)
@click.option("--speed", type=positive, metavar="NUMBER", help="Examples a second.  [default: as fast as it goes]")
@click.option(
    "--level", type=float, default=0.01, callback=_level, metavar="NUMBER",
    help="Chance of a false alarm ever, for each predictor.  [default: 0.01]",
)  # fmt: skip
@click.option(
    "--run-length", type=click.FloatRange(min=1, min_open=True), default=100_000, metavar="NUMBER",
    help="Mean number of examples to a false alarm of the detector for repeated changes.  [default: 100000]",
)  # fmt: skip
@click.option(
    "--window", type=click.IntRange(min=1), default=1000, metavar="INTEGER",
    help="Latest examples whose means are shown.  [default: 1000]",
)  # fmt: skip
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="For the record, the figures and the last snapshots.  [default: nothing is written]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the last snapshots as one JSON object, and no view.")
def monitor(
    data: str,
    shuffle: int | None,
    predictors: list[str] | None,
    speed: float | None,
    level: float,
    run_length: float,
    window: int,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Watch predictors on DATA or FILE: accuracy inside its band, evidence against their claims, alarms.

    DATA is a named data set (see `venn datasets`). FILE is a record that `venn replay` wrote, or a CSV file, which
    needs --label. In a terminal the view is live; elsewhere each alarm is one line, and a summary comes last.
    """
    chosen = Learning(**options)
    settings: dict[str, Any] = {"level": level, "run_length": run_length, "window": window}

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with one_line_errors():
        if Path(data).is_file() and zipfile.is_zipfile(data):
            record = Record.load(data)
            chosen_names = predictors or list(record.names)
            missing = [name for name in chosen_names if name not in record]
            if missing:
                raise click.UsageError(f"{data} has the predictors {', '.join(record.names)}, not {', '.join(missing)}")
            monitors = {name: Monitor(record.classes, **settings) for name in chosen_names}
            title, total = record.data or data, length(range(len(record)), chosen.steps)
            steps = _recorded(record, monitors, total or 0, speed)
        else:
            stream = chosen.open(data, shuffle)
            found = predictors or list(FEW if len(stream) <= MOST_TRANSDUCTIVE else MANY)
            panel, tuning = chosen.panel(data, stream, found, say)
            if tuning is not None:
                stream = stream.drop(tuning.n)
            record = Record(stream.classes, tuple(panel), data=stream.name, shuffle=shuffle)
            monitors = {name: Monitor(stream.classes, **settings) for name in panel}
            title, total = stream.name, length(stream, chosen.steps)
            steps = _live(advance(stream, panel, steps=chosen.steps), record, monitors, speed)
        if as_json:
            for _ in steps:
                pass
        else:
            with Live(title, total, tuple(monitors)) as view:
                for _ in steps:
                    if view.due():
                        view.show({name: one.snapshot() for name, one in monitors.items()})
                view.show({name: one.snapshot() for name, one in monitors.items()})
        snapshots = {name: one.snapshot() for name, one in monitors.items()}
        if as_json:
            click.echo(json.dumps(snapshots, allow_nan=False))
        if out is not None:
            record.save(out / "record.npz")
            (out / "snapshots.json").write_text(json.dumps(snapshots, allow_nan=False, indent=1) + "\n")
            written = [out / "record.npz", out / "snapshots.json"]
            try:
                written += record.plot_all(out)
            except ImportError as error:
                click.echo(f"no figures: {error}", err=True)
            say(f"wrote {out}/: {', '.join(path.name for path in written)}")


def _live(steps: Iterator[Any], record: Record, monitors: dict[str, Monitor], speed: float | None) -> Iterator[None]:
    """Predict, learn and watch; yield after every step."""
    start = perf_counter()
    for n, predictions, y in steps:
        record.update(predictions, y)
        for name, one in monitors.items():
            one.update(predictions[name], y)
        yield
        _wait(start, n, speed)


def _recorded(record: Record, monitors: dict[str, Monitor], total: int, speed: float | None) -> Iterator[None]:
    """Watch what a record holds; yield after every few steps."""
    start = perf_counter()
    block = BLOCK if speed is None else 1
    for first in range(0, total, block):
        part = slice(first, min(first + block, total))
        for name, one in monitors.items():
            steps = Outcomes(*(column[..., part] for column in record.outcomes(name)))
            one.follow(steps, str(record.kinds[name]), record.guaranteed[name])
        yield
        _wait(start, part.stop, speed)


def _wait(start: float, n: int, speed: float | None) -> None:
    if speed is not None:
        ahead = n / speed - (perf_counter() - start)
        if ahead > 0:
            sleep(ahead)
