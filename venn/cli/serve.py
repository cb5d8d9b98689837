"""``venn serve``: a model that learns, over HTTP."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from functools import partial
from time import sleep
from typing import Any

import click

from streams.form import Decoder
from venn.cli.access import address, guard
from venn.cli.commands import INTERRUPTED, NAP, Ending
from venn.cli.config import configured
from venn.cli.errors import listening, one_line_errors
from venn.cli.fleets import checked_folder, fleet_of, fleet_plan, shown
from venn.cli.journals import holds_journal
from venn.cli.options import HTTP, Config
from venn.cli.places import example_of, open_requests
from venn.cli.run import Plan, check_columns, compared, is_blank, made, notifying, online_of
from venn.cli.service import STAGES, Voice
from venn.cli.words import conclude
from venn.online.loop import Online
from venn.scale.fleet import Fleet
from venn.scale.fleet_store import read_log
from venn.show.notify import KNOWN, Notifier

PORT = 8000
CONNECTIONS = 512  # at once: each is a file


@configured("serve")
@click.option("--config", "toml", metavar="FILE", help="TOML file with the same settings; options take precedence.")
@click.option("--check", is_flag=True, help="Only say what would run.")
def serve(config: Config, check: bool) -> None:
    """Serve a model that learns: ask about an object, and say its label when it comes.

    POST /ask {"id": "a7", "x": [1, 2.5]} returns the predictions as `venn run` writes them, POST /answer {"id": "a7",
    "y": "no"} the alarms that ring. Both may be repeated. What is answered is in the journal; after a kill the same
    command goes on. The page of the run is at /, all addresses are at /docs. To try it out: venn serve --like car
    --journal serve.db. With --key shop requests are of many streams, {"shop": "Oslo", "id": "a7", ...}: each shop has a
    model of its own, in the folder --journal, and the page says which of them have changed. With --series y is the next
    value of a series, and GET /path returns the forecast of those to come.

    SIGTERM and Ctrl-C end it after the requests at work, with a last checkpoint. Beyond the loopback address a token is
    needed, or --no-token.
    """
    with one_line_errors(), Voice(config.run.quiet, False, False) as voice, voice.hearing():
        if check:
            _say(made(config, open_requests), config)
            return
        status = _served(config, voice)
    click.get_current_context().exit(status)


def _say(plan: Plan, config: Config) -> None:
    """Say what would run."""
    for note in plan.notes:
        click.echo(note)
    click.echo(f"classes: {', '.join(map(repr, plan.place.classes))}" if plan.place.classes else "labels: numbers")
    path = plan.journal.path
    if config.source.key is not None:
        fleet_plan(config, click.echo)
        return
    if not path.exists() or is_blank(path):
        click.echo(f"journal: {path}, a new one")
        return
    counts = compared(plan, config)
    click.echo(f"journal: {path}, goes on after {counts.asked:,} questions and {counts.answered:,} answers")


def _served(config: Config, voice: Voice) -> int:
    """Serve until an end is requested, or the run breaks; return the exit code."""
    from venn.serving.app import ServedModel
    from venn.serving.keyed import FleetOwner, ServedFleet
    from venn.serving.owner import RunOwner
    from venn.show.apart import WebProcess

    plan, access, key = made(config, open_requests), config.access, config.source.key
    if key is not None:
        checked_folder(config)
    elif holds_journal(str(plan.journal.path)) and not is_blank(plan.journal.path):
        compared(plan, config)
    if access.root_path is not None and not (access.root_path.startswith("/") and access.root_path.strip("/")):
        raise click.UsageError(f"{config.where('access', 'root_path')} must be a path, /NAME, got {access.root_path!r}")
    host, at = access.host, PORT if access.port is None else access.port
    with ExitStack() as stack:
        ending, web = stack.enter_context(Ending()), stack.enter_context(WebProcess())
        notifier = stack.enter_context(notifying(config, voice))
        options: dict[str, Any] = {
            "batch": config.run.batch, "linger": config.run.linger, "most": config.run.waiting,
            "warn": lambda text: voice.complain("an answer", text),
        }  # fmt: skip
        owner: RunOwner
        if key is None:
            owner = RunOwner(lambda: _begun(config, plan, notifier), after=News(voice), **options)
        else:
            begun = partial(_begun_fleet, config, plan, notifier, voice)
            owner = FleetOwner(begun, key, after=lambda _: _news(owner, voice), **options)
        plan.place.handlers.unknown = lambda column, value: voice.complain(
            "met an unknown category", f"{value!r} in column {column}, which the model does not know"
        )
        example = None if config.source.like is None else example_of(config.source.like)
        readers, folder = Decoder(plan.place.source), str(plan.journal.path)
        model = (
            ServedFleet(owner, readers, lambda: shown(folder), lambda one: read_log(folder, one), example=example)
            if isinstance(owner, FleetOwner)
            else ServedModel(owner, plan.journal.path, readers, example=example)
        )
        stack.callback(model.close)
        stack.enter_context(listening(host, at))
        tls = None if access.certfile is None else (access.certfile, access.keyfile)
        root = (access.root_path or "").rstrip("/")
        found = stack.enter_context(
            web.serving(model.routes, host, at, say=voice.say, root=root, most=CONNECTIONS, tls=tls, **guard(config))
        )
        for note in plan.notes:
            voice.say(note)
        where = address(host, found) if tls is None else address(host, found).replace("http", "https", 1)
        voice.say(f"serves {plan.journal.path} at {where}/docs (Ctrl-C ends it)")
        owner.start()
        while not (ending.pressed or owner.failure or web.failure):
            sleep(NAP)
        if web.failure:
            raise RuntimeError(web.failure)
    if owner.failure is not None:
        raise owner.failure
    return INTERRUPTED if ending.pressed and not ending.terminated else 0


def _begun(config: Config, plan: Plan, notifier: Notifier) -> Online:
    """Return the run, which goes on if the journal holds one that is read alike."""
    online = online_of(config, plan, notifier)
    try:
        check_columns(plan, online, HTTP)
    except BaseException:
        online.close()
        raise
    return online


def _begun_fleet(config: Config, plan: Plan, notifier: Notifier, voice: Voice) -> Fleet:
    """Return the fleet, which goes on if its folder holds one."""
    fleet = fleet_of(config, plan, notifier)
    if len(fleet):
        voice.say(f"goes on with {len(fleet):,} keys")
    return fleet


def _news(owner: Any, voice: Voice) -> None:
    """Say which keys are named."""
    while owner.named:
        voice.say(f"named: {owner.named.popleft()}")


class News:
    """Says of a served run what `venn run` says of its own: where it goes on, what begins and ends, the verdict."""

    def __init__(self, voice: Voice) -> None:
        self._voice, self._began, self._state = voice, False, ""

    def __call__(self, online: Online) -> None:
        """Look at a run after a block."""
        if not self._began:
            self._began = True
            gc.collect()  # what is there now stays, and is passed over no longer
            gc.freeze()
            if online.asked:
                self._voice.say(f"goes on after {online.asked:,} questions and {online.answered:,} answers")
        said: list[Any] = []
        while online.stages:
            stage, episode = online.stages.popleft()
            said.append(episode)
            self._voice.say(f"episode {episode.number} {STAGES[stage]}: {episode.known if stage == KNOWN else episode}")
        if said:
            conclude(online.verdict(), self._voice.say)
