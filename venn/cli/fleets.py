"""Commands on a fleet: ``venn run --key``, and the page, the report and the metrics of a fleet's folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Any, TextIO

import click

from streams.messages import Reader
from venn.cli.access import address, guard
from venn.cli.commands import INTERRUPTED, Ending, Interrupt
from venn.cli.errors import listening, writing
from venn.cli.options import Config
from venn.cli.output import finite
from venn.online import checkpoint
from venn.prediction import plain
from venn.scale.fleet import Fleet
from venn.scale.fleet_store import KeyRow, folders_of, read_log, read_rows
from venn.scale.key_changes import FleetVerdict, columns_of, verdict_of
from venn.scale.partitions import KeyedEvent, follow
from venn.show.notify import Notifier
from venn.show.page.fleet import FleetPage, ShownFleet, ShownKey

#: Settings that a fleet does not have, or handles in its own way.
REFUSED = (
    ("journal", "patience"), ("journal", "patience_seconds"), ("journal", "ripe"), ("journal", "labels_by_lot"),
    ("predictor", "new_scorer"), ("predictor", "answer_error"), ("monitor", "floor"),
    ("monitor", "drift"), ("monitor", "level"), ("monitor", "run_length"), ("source", "new"),
)  # fmt: skip


def is_fleet(folder: str) -> bool:
    """Whether this is the folder of a fleet, or of the fleets of partitions."""
    return bool(folders_of(folder))


# ------------------------------------------------------------------------------------------------------------------ run


def refuse_for_fleet(config: Config) -> None:
    """Refuse settings that a fleet would ignore."""
    for place in REFUSED:
        if place in config.origin:
            raise click.UsageError(
                f"{config.where(*place)} does not go with {config.where('source', 'key')}: leave it out, or run one "
                "stream by itself, without a key"
            )


def checked_folder(config: Config) -> Path:
    """Return where the fleet is, or will be."""
    folder = Path(config.journal.path or "")
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{config.where('journal', 'path')} must be a folder, got the file {folder}")
    return folder


def fleet_of(config: Config, plan: Any, notifier: Notifier) -> Fleet:
    """Return the fleet, which goes on if its folder holds one."""
    models, start = checkpoint.models(plan.panel), checkpoint.pack(plan.panel)

    def make(key: str) -> Any:
        return checkpoint.unpack(start, models, copied=False)

    folder, keep = checked_folder(config), config.journal
    return Fleet(make, folder, on_alarm=notifier if notifier else None, durable=keep.durable, every=keep.every)


def fleet_plan(config: Config, say: Callable[[str], object]) -> None:
    """Return the plan of a fleet without running it."""
    folder = checked_folder(config)
    say(f"a model of its own for each {config.source.key}")
    keys = len(read_rows(folder)) if is_fleet(str(folder)) else 0
    say(f"journal: the folder {folder}, {f'goes on with {keys:,} keys' if keys else 'a new one'}")


def serve_fleet(config: Config, voice: Any, plan: Any, notifier: Notifier) -> int:
    """Run a fleet until the source ends or an end is requested; return the exit code."""
    folder = checked_folder(config)
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        source: Reader = stack.enter_context(plan.place.source)
        fleet = stack.enter_context(fleet_of(config, plan, notifier))
        if config.run.metrics_port is not None:
            at = stack.enter_context(_metrics(str(folder), config.access.host, config.run.metrics_port, config))
            voice.say(f"metrics: {at}")
        out = stack.enter_context(_opened(config))

        def bad(error: Exception) -> None:
            if not config.run.skip_bad:
                raise error
            voice.complain("skipped a message", str(error))

        def lost(error: Exception) -> None:
            if not config.run.skip_lost:
                raise error
            voice.complain("lost messages", str(error))

        handlers = plan.place.handlers
        handlers.bad, handlers.lost = bad, lost
        for note in plan.notes:
            voice.say(note)
        if len(fleet):
            voice.say(f"goes on with {len(fleet):,} keys")
        began, asked, answered = monotonic(), 0, 0

        def said() -> str:
            return f"{len(fleet):,} keys, {asked:,} asked, {answered:,} answered"

        def refused(message: Any, error: Exception) -> None:
            voice.complain("refused a message", f"{source.name} at {message.position}: {error}")

        for event in follow(fleet, source, refused=refused):
            if event is not None:
                asked, answered = asked + (event.prediction is not None), answered + event.answered
                _write(out, event)
                for one in event.named:
                    voice.say(f"named: {one}")
            voice.progress(said)
            if ending.pressed:
                break
        voice.say(f"{said()} in {monotonic() - began:.1f} s")
        voice.say(f"verdict: {fleet.verdict()}")
    return INTERRUPTED if ending.pressed and not ending.terminated else 0


@contextmanager
def _opened(config: Config) -> Iterator[TextIO]:
    """Open the file or stream for predictions."""
    if config.run.out == "-":
        yield sys.stdout
        return
    with writing(config.where("run", "out"), config.run.out), open(config.run.out, "a", encoding="utf-8") as file:
        yield file


def _write(out: TextIO, event: KeyedEvent) -> None:
    """Write a prediction as JSON on one line, when it is kept; after a kill the last line may be missing."""
    if event.prediction is None:
        return
    said = {name: plain(one) for name, one in event.prediction.items()}
    id = str(event.id).removeprefix(f"{event.key}/")
    line = json.dumps(finite({"id": id, "key": event.key, "predictions": said}), allow_nan=False)
    out.write(f"{line}\n")
    out.flush()


# ----------------------------------------------------------------------------------------------------------------- look


def shown(folder: str) -> ShownFleet:
    """Return what the folder holds now, for the views."""
    rows = read_rows(folder)
    verdict, columns = verdict_of(rows), columns_of(rows)
    found = {one.key: one for one in verdict.changed}
    keys = tuple(
        ShownKey(row.key, row.asked, row.answered, row.asked - row.answered - row.expired, accuracy, log10,
                 found[row.key].since if row.key in found else 0, row.kind, row.named, row.time)
        for row, accuracy, log10 in zip(rows, columns["accuracy"].tolist(), columns["log10_e"].tolist(), strict=True)
    )  # fmt: skip
    return ShownFleet(Path(folder).name or folder, str(verdict), verdict.promise, verdict.names, keys, time())


def _events(folder: str, key: str) -> list[tuple[str, str, float]]:
    """Return the latest events of a key: what, the id, and when."""
    return read_log(folder, key)


def as_json(folder: str) -> str:
    """Return the verdict and all keys as JSON."""
    rows = read_rows(folder)
    verdict: FleetVerdict = verdict_of(rows)
    keys: list[KeyRow] = rows
    found = {
        "keys": len(keys), "promise": verdict.promise, "changed": [one._asdict() for one in verdict.changed],
        "all": [one._asdict() for one in keys],
    }  # fmt: skip
    return json.dumps(finite(found), allow_nan=False)


def monitor_fleet(folder: str, config: Config, who: dict[str, Any], port: int) -> None:
    """Show a fleet: serve its page, or print its verdict."""
    if config.view.json:
        click.echo(as_json(folder))
        return
    if not config.view.serve:
        found = shown(folder)
        click.echo(f"{folder}: {len(found.keys):,} keys, {found.answered:,} answers")
        click.echo(f"verdict: {found.verdict}")
        return
    from venn.show.server import serving

    page = FleetPage(lambda: shown(folder), lambda key: _events(folder, key))
    host = config.access.host
    with (
        Interrupt() as interrupt,
        listening(host, port),
        serving(page.routes(), host, port, say=lambda line: click.echo(line, err=True), **who) as found_at,
    ):
        asks = "?token=..." if who["token"] is not None else ""
        click.echo(f"the page of {folder}: {address(host, found_at)}/{asks} (Ctrl-C ends it)")
        interrupt.wait()


def report_fleet(folder: str, out: Path, title: str | None) -> None:
    """Write a fleet as one HTML file."""
    from venn.show.page.fleet import render_fleet

    found = shown(folder)
    content = render_fleet(found if title is None else found._replace(title=title))
    with writing("--out", out):
        if str(out) == "-":
            click.echo(content, nl=False)
        else:
            out.write_text(content, "utf-8")
            click.echo(f"wrote {out}")
    click.echo(f"verdict: {found.verdict}", err=str(out) == "-")


@contextmanager
def _metrics(folder: str, host: str, port: int, config: Config) -> Iterator[str]:
    from venn.show.metrics import fleet_metrics
    from venn.show.server import serving

    try:
        with serving(fleet_metrics(lambda: shown(folder)), host, port, **guard(config)) as at:
            yield f"{address(host, at)}/metrics"
    except OSError as error:
        raise click.ClickException(f"metrics cannot be served at {host}:{port}: {error.strerror or error}") from error


def serve_fleet_metrics(folder: str, config: Config, port: int) -> None:
    """Serve the counts of a fleet to Prometheus until Ctrl-C, or print them once."""
    from venn.show.metrics import fleet_exposition

    if config.view.once:
        click.echo(fleet_exposition(lambda: shown(folder)), nl=False)
        return
    with Interrupt() as interrupt, _metrics(folder, config.access.host, port, config) as at:
        click.echo(f"the metrics of {folder}: {at} (Ctrl-C ends it)")
        interrupt.wait()
