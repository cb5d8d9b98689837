"""Services on the journal of a run: its page, its metrics, its view in the terminal."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import click

from venn.cli.config import configured
from venn.cli.errors import listening, one_line_errors
from venn.cli.interrupt import Interrupt
from venn.cli.options import Config
from venn.cli.output import finite
from venn.cli.words import conclude
from venn.monitors.verdict import Verdict
from venn.online.lock import held
from venn.online.watch import Watch
from venn.show.page.feed import Feed

MAGIC = b"SQLite format 3\0"
PAGE, METRICS = 5006, 9477  # ports
NAP = 0.1  # seconds
OFTEN = 0.5  # seconds between two updates
SEEN = ("verdict", "recent", "evidence", "alarms", "floor")  # of the snapshot of a monitor

TOKEN = "VENN_TOKEN"  # of the environment


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


def guard(config: Config) -> dict[str, Any]:
    """Return who may read, as servers take it; a file of the token goes before the environment."""
    access, token = config.access, config.access.token or os.environ.get(TOKEN)
    if access.token_file is not None:
        if access.no_token:
            raise click.UsageError(f"{config.where('access', 'no_token')} does not go with --token-file")
        where = config.where("access", "token_file")
        try:
            token = Path(access.token_file).read_text("utf-8").partition("\n")[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{where} must be a file that can be read: {error}") from None
    return {
        "allowed": access.allow_host or (), "token": None if access.no_token else token, "unguarded": access.no_token,
    }  # fmt: skip


def serve_page(run: str, host: str, at: int, guard: dict[str, Any]) -> None:
    """Serve the page of a run until Ctrl-C, to those whom `guard` names."""
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
        click.echo(f"the page of {run}: {_address(host, found)}/{asks} (Ctrl-C ends it)")
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
            click.echo(json.dumps(finite(_snapshots(watch)), allow_nan=False))
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
    """Serve the figures of RUN, a journal, to Prometheus.

    They are read from the journal at each request, at http://ADDRESS:PORT/metrics. While there is no
    journal, `venn_up` is 0. Ctrl-C ends it. Beyond the loopback address a token is needed, or --no-token.
    """
    from venn.show.metrics import exposition, of_metrics
    from venn.show.server import serving

    host, at = config.access.host, METRICS if config.access.port is None else config.access.port

    def opened() -> Watch:
        return Watch(run)

    with one_line_errors():
        refuse_other(run)
        if config.view.once:
            click.echo(exposition(opened), nl=False)
            return
        with (
            Interrupt() as interrupt,
            listening(host, at),
            serving(of_metrics(opened), host, at, **guard(config)) as found,
        ):
            click.echo(f"the metrics of {run}: {_address(host, found)}/metrics (Ctrl-C ends it)")
            if not Path(run).exists():
                click.echo(f"{run} is not there yet: until then venn_up is 0", err=True)
            interrupt.wait()


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
