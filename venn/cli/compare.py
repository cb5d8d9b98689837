"""``venn compare``: several data sets, predictors and shuffles in one table; here, on all cores or on a cluster."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

import streams
from streams.texts import Doubtful
from venn import __version__
from venn.cli.config import typed
from venn.cli.errors import one_line_errors
from venn.cli.interrupt import INTERRUPTED
from venn.cli.predictors import DEFAULTS
from venn.cli.setting import Learning, complete, into_folder, is_named, learning, make_folder, read_by
from venn.online.panel import Panel
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
@into_folder(f"Folder of results; finished ones are not computed again.  [default: {RESULTS}]", RESULTS)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="INTEGER",
    help="Processes of this machine for the replays.  [default: one replay after the other]",
)
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler to send the replays to, as tcp://10.0.0.1:8786.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, a row for each replay and predictor.")
def compare(
    data: tuple[str, ...],
    shuffles: int,
    out: Path,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
    tuned_on: int | None,
    no_progress: bool,
    **_: Any,
) -> None:
    """Replay each DATA in several orders; print the means of each predictor over them.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, which needs --label. Each replay is kept
    as soon as it is done; after an interruption the same command continues. On a cluster the workers must have Dask,
    the data sets, and CSV files under the same path.
    """
    from venn.scale.task import Task
    from venn.scale.tasks import replays

    if cluster is not None and workers is not None:
        raise click.UsageError("--workers belongs to the cluster of this machine, and --cluster names another one")
    if "-" in data:
        raise click.UsageError("DATA must be data sets or files, which each replay reads anew, got -")
    if len(set(data)) < len(data):
        raise click.UsageError(f"DATA must name each data set once, got {' '.join(data)}")
    chosen = Learning(typed(), tuned_on, no_progress)
    with one_line_errors():
        if cluster is None:
            for one in data:  # better an error now than in each replay
                stream = chosen.open(one, None)
                chosen.standing(stream, chosen.predictors(one, stream, _unsaid))
        make_folder(out)
        quiet = replace(chosen, no_progress=True)
        titles = _titles(data)
        tasks = [
            Task(
                {"data": title, "shuffle": seed},
                partial(opened, one, seed, chosen=quiet, content=_content(one), version=__version__),
                steps=chosen.steps,
            )
            for one, title in zip(data, titles, strict=True)
            for seed in range(shuffles)
        ]
        try:
            rows: list[dict[str, Any]] | None = replays(
                tasks,
                out,
                cluster=cluster,
                workers=0 if cluster is None and workers is None else workers,
                progress=chosen.progress,
            )
        except ImportError as error:  # its message says how to install Dask
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            rows = None
    if rows is None:
        click.echo(f"interrupted: what is done is kept in {out}/, and the same command goes on", err=True)
        click.get_current_context().exit(INTERRUPTED)
    failed = [row for row in rows if row["error"] is not None]
    if as_json:
        click.echo(json.dumps({"rows": rows}, allow_nan=False))
    elif len(failed) < len(rows):
        click.echo(table(rows, shuffles))
    click.echo(f"results: {out}/", err=True)
    for row in failed:
        click.echo(f"failed: {row['data']}, shuffle {row['shuffle']}: {row['error']}", err=True)
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(tasks)} replays failed; the same command tries them again")


def opened(
    data: str, shuffle: int, *, chosen: Learning, content: str | None, version: str
) -> tuple[streams.Stream, Panel]:
    """Return the stream and the panel of one replay.

    `content` and `version` distinguish the results of other files and programs.
    """
    if content != _content(data):
        raise ValueError(f"{data} must be the same file everywhere, and is another one here")
    if version != __version__:
        raise ValueError(f"vennstream must have the same version everywhere, {version}, and is {__version__} here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubtful)  # said once, before the replays
        stream = chosen.open(data, shuffle)
    panel, tuning = chosen.panel(data, stream, chosen.predictors(data, stream, _unsaid), _unsaid)
    return stream if tuning is None else stream.drop(tuning.n), panel


def _unsaid(text: str) -> None:
    """Say nothing: many replays would all say the same."""


def _content(data: str) -> str | None:
    """Return a digest of a CSV file; a named data set has its own."""
    path = Path(data)
    return None if is_named(data) or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()


def _titles(data: Sequence[str]) -> Sequence[str]:
    """Return the names of the data sets in the table: file stems, or the names given if two stems are the same."""
    stems = [Path(one).stem if Path(one).suffix else one for one in data]
    return stems if len(set(stems)) == len(stems) else data


def table(rows: Iterable[Mapping[str, Any]], shuffles: int) -> str:
    """Return the means over the shuffles, a line for each data set and predictor."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["error"] is None:
            groups.setdefault(f"{row['data']} {row['predictor']}", []).append(row)
    means = {
        name: {
            field: sum(row[field] for row in group) / len(group)
            for field, value in group[0].items()
            if isinstance(value, float)
        }
        for name, group in groups.items()
    }
    unit = " Log loss in nats." if any("log_loss" in found for found in means.values()) else ""
    note = f"Means over all steps, then over the shuffles.{unit}"
    title = "in the order of shuffle 0" if shuffles == 1 else f"means over {shuffles} shuffles"
    return terminal.table(means, title, note)
