"""Commands on the journal of a run: page, metrics, view, report, and checks for damage."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import click

from venn.cli.access import address, guard
from venn.cli.commands import Interrupt
from venn.cli.config import configured
from venn.cli.errors import listening, one_line_errors, spared, writing
from venn.cli.fleets import is_fleet, report_fleet, serve_fleet_metrics
from venn.cli.options import Config
from venn.cli.output import finite
from venn.cli.words import conclude, monitors_of, watch_record
from venn.monitors.episodes import Episodes, episodes_of
from venn.monitors.monitor import Monitor
from venn.monitors.verdict import Verdict
from venn.online.figures import export as write_table
from venn.online.files import held
from venn.online.record import Record
from venn.online.repair import Salvaged, Verified
from venn.online.repair import salvage as save_whole_part
from venn.online.repair import verify as check_all
from venn.online.watch import CurvePoint, Seen, SeenAnswer, Watch
from venn.scale.fleet_store import FILE, verify_fleet
from venn.show.page.feed import MOST_POINTS, Feed, FollowedRun, Watched
from venn.show.view import SeenCounts, figures_of

# ---------------------------------------------------------------------------------------------------------------- serve
# Services on the journal of a run: its page, its metrics, its view in the terminal.

MAGIC = b"SQLite format 3\0"
PAGE, METRICS = 5006, 9477  # ports
NAP = 0.1  # seconds
OFTEN = 0.5  # seconds between two updates
SEEN = ("verdict", "recent", "evidence", "alarms", "floor")  # of the snapshot of a monitor

EPISODES = "episodes"  # beside the predictors in JSON


def holds_journal(data: str) -> bool:
    """Whether DATA can only be meant as a journal."""
    path = Path(data)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def holds_record(data: str) -> bool:
    """Whether DATA can only be meant as a record; a damaged one may no longer be a zip archive."""
    return Path(data).is_file() and (Path(data).suffix == ".npz" or zipfile.is_zipfile(data))


def refuse_other(run: str) -> None:
    """Refuse a file that is not a journal and will not become one; a missing or empty one may become a journal."""
    path = Path(run)
    if path.is_dir() or (path.is_file() and path.stat().st_size and not holds_journal(run)):
        raise click.ClickException(f"{run} must be a journal, as `venn run` writes it, and is not")


def serve_page(run: str, host: str, at: int, guard: dict[str, Any]) -> None:
    """Serve the page of a run until Ctrl-C, to readers that `guard` lets in."""
    refuse_other(run)
    from venn.show.page.page import Page
    from venn.show.server import serving

    feed = Feed(lambda: Watch(run), run)

    def say(line: str) -> None:
        click.echo(line, err=True)

    with (
        Interrupt() as interrupt,
        listening(host, at),
        serving(Page(feed).routes(), host, at, say=say, **guard) as found,
    ):
        asks = "?token=..." if guard["token"] is not None else ""
        click.echo(f"the page of {run}: {address(host, found)}/{asks} (Ctrl-C ends it)")
        if not Path(run).exists():
            click.echo(f"{run} is not there yet: the page waits for it", err=True)
        interrupt.wait()
    feed.close()


def follow(run: str, as_json: bool, once: bool = False) -> Verdict | None:
    """Show a run in the terminal until Ctrl-C, elsewhere until it has ended; `once`: as it is now.

    With `as_json` print its figures once. Return the verdict.
    """
    if as_json:
        with Watch(run) as watch:
            found = _snapshots(watch) | {EPISODES: [one.plain() for one in watch.episodes()]}
            click.echo(json.dumps(finite(found), allow_nan=False))
            return watch.verdict()
    from venn.show.live import Live

    with ExitStack() as stack:
        watch = stack.enter_context(Watch(run))
        interrupt = stack.enter_context(Interrupt())
        view = stack.enter_context(Live(Path(run).name, None, (*watch.names, *watch.objects), waiting="no answer yet"))
        ends = not sys.stdout.isatty()
        if ends and not once:
            click.echo(f"following {run} until its run has ended; Ctrl-C ends it before that", err=True)
        look = 0.0
        over, found = False, dict[str, Any]()
        while not (over or interrupt.pressed):
            if monotonic() >= look:
                over = once or (ends and held(run) is False)  # before the last look
                found = _snapshots(watch)
                if found:
                    view.show(found)
                look = monotonic() + OFTEN
            sleep(0.0 if over else NAP)
        verdict, counts = watch.verdict(), watch.counts()
    if not found:
        said = f"{counts.asked:,} questions and {counts.answered:,} answers"
        click.echo(f"{run}: {said}; no figures yet: venn run writes them as it goes on")
    conclude(verdict, click.echo)
    return verdict


def _snapshots(watch: Watch) -> dict[str, Any]:
    """Return what `Monitor.snapshot` would: curves of the predictions as first made, and the monitor's evidence."""
    found = {}
    for name in (*watch.names, *watch.objects):
        snapshot = watch.snapshot(name)
        if snapshot is not None and snapshot["told"] is None:
            found[name] = snapshot["monitor"]
        elif snapshot is not None:
            monitor = snapshot["monitor"]
            seen = {} if monitor is None else {key: monitor[key] for key in SEEN if key in monitor}
            found[name] = snapshot["told"] | seen
    return found


@configured("metrics")
@click.argument("run", metavar="RUN")
def metrics(run: str, config: Config) -> None:
    """Serve the figures of RUN, a journal or the folder of a fleet, to Prometheus.

    They are read from the journal at each request, at http://ADDRESS:PORT/metrics. While there is no
    journal, `venn_up` is 0. Ctrl-C ends it. Beyond the loopback address a token is needed, or --no-token.
    """
    from venn.show.metrics import exposition, of_metrics

    host, at = config.access.host, METRICS if config.access.port is None else config.access.port

    def opened() -> Watch:
        return Watch(run)

    with one_line_errors():
        if is_fleet(run):
            serve_fleet_metrics(run, config, at)
            return
        refuse_other(run)
        if config.view.once:
            click.echo(exposition(opened), nl=False)
            return
        from venn.show.server import serving

        with (
            Interrupt() as interrupt,
            listening(host, at),
            serving(of_metrics(opened), host, at, **guard(config)) as found,
        ):
            click.echo(f"the metrics of {run}: {address(host, found)}/metrics (Ctrl-C ends it)")
            if not Path(run).exists():
                click.echo(f"{run} is not there yet: until then venn_up is 0", err=True)
            interrupt.wait()


# --------------------------------------------------------------------------------------------------------------- report
# ``venn report``: a run as one HTML file.

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
        self._episodes = episodes_of({name: one for name, one in watching.items() if name in self.monitors})

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

    def episodes(self) -> Episodes:
        """Return the changes that the monitors have seen."""
        return self._episodes

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

    def answer(self, step: int) -> SeenAnswer:
        """Return the step itself: each step was one question, and no later one had been asked."""
        return SeenAnswer(step, step, 0.0)

    def answered_at(self, step: int) -> None:
        """Return None: a record knows no times."""

    def asked_at(self, number: int) -> None:
        """Return None: a record knows no times."""

    def close(self) -> None:
        """Do nothing: no file is open."""


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default="report.html", metavar="FILE",
    help="[default: report.html]",
)  # fmt: skip
@click.option("--title", metavar="TEXT", help="[default: the name of the data or the file]")
def report(run: str, out: Path, title: str | None) -> None:
    """Write RUN as one HTML file with all its figures; it needs no network and no other file.

    RUN is a journal, whose process may still be running, the folder of a fleet, or a record (.npz) written by
    `venn replay`. A journal is first compared with its checksums, as by `venn verify`. --out - writes it to standard
    output.
    """
    with one_line_errors():
        if is_fleet(run):
            spared("--out", out, str(Path(run) / FILE))
            report_fleet(run, out, title)
            return
        if Path(run).is_dir():
            raise click.ClickException(f"{run} is a folder: give a journal, or the record.npz of a replay")
        if not Path(run).is_file():
            raise click.ClickException(f"no such file: {run}")
        spared("--out", out, run)
        if holds_journal(str(out)):
            raise click.UsageError(f"--out must not be a journal, which the report would replace, got {out}")
        if holds_journal(run):
            check_all(run)
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
        content = render(read, title, data).encode()  # UTF-8, as it says of itself, on any terminal
        with writing("--out", out):
            click.echo(content, nl=False)
        return read.verdict
    with writing("--out", out):
        write_report(read, out, title, data)
    return read.verdict


# -------------------------------------------------------------------------------------------------------------- keeping
# ``venn verify`` and ``venn salvage``: whether a journal is whole, and what of a damaged one can be saved.


def _events(found: Verified | Salvaged) -> str:
    given_up = f", {found.expired:,} given up" if found.expired else ""
    return f"{found.asked:,} questions, {found.answered:,} answers{given_up}"


@click.command()
@click.argument("run", metavar="RUN")
def verify(run: str) -> None:
    """Compare everything in RUN, a journal or a fleet's folder, with its checksums; its process may still be running.

    A damaged journal is one line on stderr, which says where, and what can be saved; exit code 1.
    """
    with one_line_errors():
        found = verify_fleet(run) if is_fleet(run) else check_all(run)
        click.echo(f"{run} is whole: {_events(found)}; {found.checkpoints} checkpoints")
        for name in found.unreadable:
            click.echo(f"{name} cannot be read: the next start learns more again, and nothing is lost")


@click.command()
@click.argument("damaged", metavar="DAMAGED")
@click.argument("rescued", metavar="RESCUED")
def salvage(damaged: str, rescued: str) -> None:
    """Write what is whole of DAMAGED, a journal, to RESCUED, a new one, with which the run goes on.

    That is its beginning, up to the first event that is not as written, to the last bit. DAMAGED is not changed; its
    run must have ended.
    """
    with one_line_errors():
        found = save_whole_part(damaged, rescued)
        click.echo(f"{rescued} holds the first {_events(found)} of {damaged}, to the last bit")
        if found.damage:
            click.echo(f"{damaged} is damaged: {found.damage}")
        if not found.positions:
            click.echo(
                "lost is what comes after, and the positions in the sources: they are read again from their beginning, "
                "and what the journal holds is refused by its id; remove older lines after these events from --out"
            )


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--out", required=True, metavar="FILE", help="A new file that ends in .csv or .parquet.")
def export(run: str, out: str) -> None:
    """Write RUN, a journal, as a table: one row for each question, with its predictions and its label.

    The process of RUN may still be running. A .parquet file needs the package pyarrow.
    """
    with one_line_errors():
        rows = write_table(run, out)
        click.echo(f"{out} holds {rows:,} questions")
