"""``venn compare``: several data sets, predictors and shuffles in one table."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from streams.texts import Doubtful
from venn.cli.config import typed
from venn.cli.errors import OURS, one_line, one_line_errors, writing
from venn.cli.interrupt import INTERRUPTED
from venn.cli.output import finite
from venn.cli.predictors import DEFAULTS
from venn.cli.setting import Learning, complete, into_folder, learning, make_folder, read_by
from venn.online.record import Record
from venn.online.replaying import replay
from venn.show import terminal

RESULTS = Path("runs", "compare")


@click.command()
@click.argument("data", nargs=-1, required=True, shell_complete=complete)
@learning
@click.option(
    "--shuffles",
    type=click.IntRange(min=1),
    default=3,
    metavar="INTEGER",
    help="Orders of each data set: seeds 0, 1, ...  [default: 3]",
)
@read_by(DEFAULTS)
@into_folder(f"Folder for the records.  [default: {RESULTS}]", RESULTS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, a row for each replay and predictor.")
def compare(
    data: tuple[str, ...], shuffles: int, out: Path, as_json: bool, tuned_on: int | None, no_progress: bool, **_: Any
) -> None:
    """Replay each DATA in several orders; print the means of each predictor over them.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, which needs --label. The record of each
    replay is written when it is done. Ctrl-C ends the work: the table is that of the replays until then.
    """
    if "-" in data:
        raise click.UsageError("DATA must be data sets or files, which each replay reads anew, got -")
    if len(set(data)) < len(data):
        raise click.UsageError(f"DATA must name each data set once, got {' '.join(data)}")
    chosen = Learning(typed(), tuned_on, no_progress)
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
            with terminal.Progress(len(todo), chosen.progress) as bar, warnings.catch_warnings():
                warnings.simplefilter("ignore", Doubtful)  # said once, before the replays
                for done, (one, seed) in enumerate(todo, 1):
                    file = out / f"{titles[one].replace(os.sep, '_')}-{seed}.npz"
                    try:
                        record = _record(replace(chosen, no_progress=True), one, seed)
                    except OURS as error:
                        failed.append(f"{titles[one]}, shuffle {seed}: {one_line(error)}")
                    else:
                        with writing("--out", out):
                            record.save(file)
                        rows += _rows(record, titles[one], seed, file)
                    bar.count(done, len(todo), f"replays{f', {len(failed)} failed' if failed else ''}")
        except KeyboardInterrupt:
            ended = True
    if as_json:
        click.echo(json.dumps({"rows": rows}, allow_nan=False))
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
    record = replay(stream if tuning is None else stream.drop(tuning.n), panel, progress=False, steps=chosen.steps)
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
    return terminal.table(means, title, note)
