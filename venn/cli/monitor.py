"""``venn monitor``: watch predictors on a stream, live, and see when their claims stop being true."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from venn.cli.access import guard
from venn.cli.commands import Interrupt
from venn.cli.config import configured
from venn.cli.errors import one_line_errors, writing
from venn.cli.fleets import is_fleet, monitor_fleet
from venn.cli.journals import EPISODES, PAGE, follow, holds_journal, holds_record, serve_page
from venn.cli.options import DECLARED, Config
from venn.cli.output import finite
from venn.cli.panels import watched_columns
from venn.cli.places import is_named, seed_of
from venn.cli.predictors import with_conformal
from venn.cli.replay import Learning, make_folder, of_data
from venn.cli.words import Watching, conclude, monitors_of, monitors_on, watch_record
from venn.monitors.episodes import episodes_of
from venn.monitors.shared_level import trainings_of
from venn.monitors.verdict import BELOW, Verdict
from venn.online.forecaster import watched
from venn.online.record import Record
from venn.online.replaying import advance, length, show
from venn.show.view import overall

if TYPE_CHECKING:
    from venn.show.live import Live

BLOCK = 64  # steps of a record between two checks of the clock
SUNK = 3  # exit code
#: Options for what is there already, by table and key.
OF_JOURNALS = {("view", "json"), ("view", "once"), ("view", "serve"), *(("access", key) for key in DECLARED["access"])}
OF_RECORDS = {
    ("predictor", "names"), ("source", "steps"), ("monitor", "level"), ("monitor", "run_length"),
    ("monitor", "floor"),
    *(("view", key) for key in ("progress", "window", "out", "json")),
}  # fmt: skip


@configured("monitor")
@of_data("DATA|FILE")
def monitor(data: str, config: Config) -> None:
    """Watch predictors on DATA or FILE: accuracy inside its band, evidence against their claims, alarms.

    DATA is a named data set (see `venn datasets`). FILE is the journal of a run, a record written by `venn replay`, or
    a CSV file (- for one on standard input), which needs --label; or it is the folder of a fleet. --serve shows a
    journal, or a fleet, in the browser. In a terminal
    the view is live; elsewhere each alarm is one line, and a summary comes last. Ctrl-C or SIGTERM ends the watch: what
    was seen until then is shown, and written with --out. With --floor, or where the run of a journal has one, the exit
    code is 3 if the floor is not kept. Into a pipe or a file a journal is followed until its run has
    ended; --once does not wait for that.
    """
    chosen, watch, view = Learning(config), config.monitor, config.view
    out, as_json = None if view.out is None else Path(view.out), view.json
    settings: dict[str, Any] = {
        "level": watch.level, "run_length": watch.run_length, "window": view.window, "floor": watch.floor,
    }  # fmt: skip

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with one_line_errors():
        if is_fleet(data):
            _refuse(config, OF_JOURNALS, "does not go with a fleet, whose predictions are made elsewhere")
            at = PAGE if config.access.port is None else config.access.port
            monitor_fleet(data, config, guard(config) if view.serve else {}, at)
            return
        if view.serve or holds_journal(data):
            what = "a journal" if holds_journal(data) else "--serve, which shows a journal"
            _refuse(config, OF_JOURNALS, f"does not go with {what}, whose predictions are made elsewhere")
            if view.serve:
                _refuse(config, OF_JOURNALS - {("view", "once"), ("view", "json")}, "does not go with --serve")
                serve_page(
                    data, config.access.host, PAGE if config.access.port is None else config.access.port, guard(config)
                )
            else:
                _end(follow(data, as_json, view.once))
            return
        if view.once and not is_named(data) and not (Path(data).exists() and os.path.getsize(data)):
            follow(data, as_json, True)  # it says what is missing
        if view.once:
            raise click.UsageError("--once belongs to a journal")
        if holds_record(data):
            _refuse(config, OF_RECORDS, "does not go with a record, whose predictions are made")
            shown = _of_record(data, chosen, settings)
        else:
            shown = _of_stream(data, chosen, settings, say)
        record, monitors = shown.record, shown.monitors
        if out is not None:
            make_folder(out)
        status = _watch(shown, view=not as_json)
        if status:
            click.echo(f"interrupted at step {next(iter(monitors.values())).n} of {shown.total}", err=True)
        snapshots = {name: one.snapshot() for name, one in monitors.items()}
        if as_json:
            found = snapshots | {EPISODES: [one.plain() for one in episodes_of(monitors)]}
            click.echo(json.dumps(finite(found), allow_nan=False))
        verdict = overall(snapshots)
        try:
            if out is not None:
                with writing("--out", out):
                    record.save(out / "record.npz")
                    told = json.dumps(finite(snapshots), allow_nan=False, indent=1)
                    (out / "snapshots.json").write_text(f"{told}\n")
                written = [out / "record.npz", out / "snapshots.json", *chosen.drawn(record, out / "record.npz")]
                say(f"wrote {out}/: {', '.join(path.name for path in written)}")
        finally:  # the disk may be full
            conclude(verdict, say)
    if status:
        click.get_current_context().exit(status)
    _end(verdict)


def _end(verdict: Verdict | None) -> None:
    """Exit with code 3 if the floor is not kept."""
    if verdict is not None and verdict.state == BELOW:
        click.get_current_context().exit(SUNK)


class Shown(NamedTuple):
    """A stream or record to watch: its predictors, monitors and steps."""

    title: str
    total: int | None  #: number of steps, if it is known
    record: Record
    monitors: Watching
    steps: Iterator[int]  #: each takes the monitors a step further, or several


def _of_record(data: str, chosen: Learning, settings: Mapping[str, Any]) -> Shown:
    """Return the steps of a record, to be watched again in blocks of `every`."""
    record = Record.load(data)
    if not len(record):
        raise click.ClickException(f"{data} holds no step: there is nothing to watch")
    names = chosen.config.predictor.names or watched(record.names)
    missing = [name for name in names if name not in record]
    if missing:
        raise click.UsageError(f"{data} has the predictors {', '.join(record.names)}, not {', '.join(missing)}")
    monitors = monitors_of(record, chosen.config.predictor.names, **settings)
    total = length(record, chosen.config.source.steps)
    steps = watch_record(record, monitors, total or 0, BLOCK)
    return Shown(record.data or data, total, record, {**monitors}, steps)


def _of_stream(data: str, chosen: Learning, settings: Mapping[str, Any], say: Callable[[str], None]) -> Shown:
    """Return predictors for a stream and their monitors."""
    shuffle, steps_asked = seed_of(chosen.config), chosen.config.source.steps
    watch, stream = chosen.config.monitor, chosen.open(data, shuffle)
    names = chosen.predictors(None, stream, say)
    panel, tuning = chosen.panel(data, stream, with_conformal(names) if watch.conformal else names, say)
    if tuning is not None:
        stream = stream.drop(tuning.n)
    record = Record(panel.space, tuple(panel), data=stream.name, shuffle=shuffle, restarts=trainings_of(panel))
    columns = watched_columns(chosen.config, chosen.model is not None, tuple(stream.features))
    monitors = monitors_on(panel, watch.drift, columns, **settings)
    steps = _live(advance(stream, panel, steps=steps_asked), record, panel.watch_by(monitors))
    return Shown(stream.name, length(stream, steps_asked), record, monitors, steps)


def _refuse(config: Config, heeded: Set[tuple[str, str]], why: str) -> None:
    """Refuse options that would be ignored, such as those for learning where the predictions exist already."""
    for place in config.origin:
        if place not in heeded:
            raise click.UsageError(f"{config.where(*place)} {why}")


def _watch(shown: Shown, view: bool) -> int:
    """Run the steps, with a live view or without; return the exit code, 0 at the end."""
    monitors = shown.monitors

    def snapshots() -> dict[str, Any]:
        return {name: one.snapshot() for name, one in monitors.items()}

    live: Live | None = None
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        if view:
            from venn.show.live import Live  # slow to import: only if there is a view

            live = stack.enter_context(Live(shown.title, shown.total, tuple(monitors)))
        for _ in shown.steps:
            if live is not None and live.due():
                live.show(snapshots())
            if interrupt.pressed:
                break
        if live is not None:
            live.show(snapshots())
    return interrupt.status


def _live(steps: Iterator[Any], record: Record, monitors: Watching) -> Iterator[int]:
    """Predict, learn, and update monitors outside the panel; yield the number of each step."""
    for n, x, predictions, y in steps:
        record.update(predictions, y)
        for name, one in monitors.items():
            show(one, name, x, predictions, y)
        yield n
