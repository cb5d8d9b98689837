"""``venn report``: a run as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from venn.cli.errors import one_line_errors, spared, writing
from venn.cli.serve import holds_journal, holds_record
from venn.cli.words import conclude, monitors_of, watch_record
from venn.monitors.monitor import Monitor
from venn.monitors.verdict import Verdict
from venn.online.record import Record
from venn.online.repair import verify
from venn.online.watch import CurvePoint, Seen, Watch
from venn.show.page.feed import MOST_POINTS, FollowedRun, Watched
from venn.show.view import SeenCounts, figures_of

STDOUT = "-"
ROUND = 1000  # approximate number of points of a record's curves


class Recorded:
    """Shows a record like a run that has ended, as a journal would.

    Parameters
    ----------
    record : Record
        Has at least one step. Monitors that share one level watch it from the first step on.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self.classes, self.space, self.names = record.classes, record.space, record.names
        self.predictors: dict[str, str] = dict(record.parameters)
        self.created = 0.0
        self.objects: tuple[str, ...] = ()  # a record holds none
        monitors = monitors_of(record)
        self.monitors = {name: repr(monitor) for name, monitor in monitors.items()}
        watching = {name: monitors.get(name) or Monitor(record.space, sources=()) for name in record.names}
        self._points: list[CurvePoint] = []
        self._steps = {name: record.outcomes(name) for name in record.names}
        for step in watch_record(record, watching, len(record), max(1, len(record) // ROUND)):
            self._last = {name: monitor.snapshot() for name, monitor in watching.items()}
            figures = {name: figures_of(seen, self._watched(name)) for name, seen in self._last.items()}
            self._points.append(CurvePoint(step, 0.0, figures))

    def counts(self) -> SeenCounts:
        """Return the number of steps; each question had its answer."""
        return SeenCounts(len(self._record), len(self._record), 0, 0, 0.0, 0.0)

    def ended(self) -> None:
        """Return None: a record knows no times."""

    def series(self, points: int = MOST_POINTS, after: int = 0) -> Sequence[CurvePoint]:
        """Return the points of the curves."""
        return [point for point in self._points if point.step > after]

    def snapshot(self, name: str) -> dict[str, Any]:
        """Return the snapshot of a monitor."""
        return {"told": self._last[name], "monitor": self._watched(name)}

    def _watched(self, name: str) -> dict[str, Any] | None:
        return self._last[name] if name in self.monitors else None

    def alarms(self, name: str, last: int = 100) -> list[dict[str, Any]]:
        """Return the latest alarms about a predictor."""
        return [{**alarm, "time": 0.0} for alarm in self._last[name]["alarms"]["last"][-last:]]

    def latest(self, questions: int = 20) -> list[Seen]:
        """Return the last steps, the latest first."""
        record, truth = self._record, self._record.truth
        found = []
        for n in range(len(truth), max(len(truth) - questions, 0), -1):
            said = {
                name: record.kind(name).recalled(steps, n - 1, self.classes, record.guaranteed[name])
                for name, steps in self._steps.items()
            }
            found.append(Seen(n, n, 0.0, said, "answered", record.space.decode(truth[n - 1]), 0))
        return found

    def outcomes(self, answers: int = 20) -> list[Seen]:
        """Return the same: each step has its label."""
        return self.latest(answers)

    def answered_at(self, step: int) -> None:
        """Return None here too."""

    def asked_at(self, number: int) -> None:
        """Return None as well."""

    def close(self) -> None:
        """Nothing is open."""


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default="report.html", metavar="FILE",
    help="[default: report.html]",
)  # fmt: skip
@click.option("--title", metavar="TEXT", help="[default: the name of the data or the file]")
def report(run: str, out: Path, title: str | None) -> None:
    """Write RUN as one HTML file with all its figures; it needs no network and no other file.

    RUN is a journal, whose process may still be running, or a record (.npz) written by `venn replay`. A journal is
    first compared with its checksums, as by `venn verify`. --out - writes it to standard output.
    """
    with one_line_errors():
        if Path(run).is_dir():
            raise click.ClickException(f"{run} is a folder: give a journal, or the record.npz of a replay")
        if not Path(run).is_file():
            raise click.ClickException(f"no such file: {run}")
        spared("--out", out, run)
        if holds_journal(str(out)):
            raise click.UsageError(f"--out must not be a journal, which the report would replace, got {out}")
        if holds_journal(run):
            verify(run)
            with Watch(run) as watch:
                verdict = _write(watch, out, title or Path(run).stem, Path(run).name)
        else:
            if not holds_record(run):
                raise click.ClickException(f"{run} must be a journal of venn run or a record (.npz) of venn replay")
            record = Record.load(run)
            if not len(record):
                raise click.ClickException(f"{run} holds no step: there is nothing to report")
            verdict = _write(Recorded(record), out, title or record.title, Path(run).name)
    to_stdout = str(out) == STDOUT

    def say(text: str) -> None:
        click.echo(text, err=to_stdout)

    if not to_stdout:
        say(f"wrote {out}")
    conclude(verdict, say)


def _write(watched: Watched, out: Path, title: str, data: str) -> Verdict | None:
    from venn.show.page.page import render, write_report

    read = FollowedRun(watched)
    if str(out) == STDOUT:
        click.echo(render(read, title, data), nl=False)
        return read.verdict
    with writing("--out", out):
        write_report(read, out, title, data)
    return read.verdict
