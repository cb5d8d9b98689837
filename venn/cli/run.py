"""``venn run``: the loop over a stream that does not end, in one command."""

from __future__ import annotations

import gc
import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click

from streams.messages import Reader
from venn.cli import numbers
from venn.cli.access import guard
from venn.cli.commands import INTERRUPTED, Ending, close_stdout
from venn.cli.config import configured
from venn.cli.errors import one_line, one_line_errors, spared
from venn.cli.fleets import fleet_plan, refuse_for_fleet, serve_fleet
from venn.cli.journals import holds_journal
from venn.cli.option_types import UNITS
from venn.cli.options import Config
from venn.cli.output import COLUMNS, only_predictions
from venn.cli.panels import (
    Choices,
    check_kernel,
    choose_nothing,
    panel_of,
    refuse_choices,
    usual_choices,
    watched_columns,
)
from venn.cli.places import SourcePlace, open_place
from venn.cli.predictors import INDUCTIVE, PREDICTORS, WINDOWED, default_predictors, with_adaptive, with_conformal
from venn.cli.scorer import NEW, given_model
from venn.cli.series import live_panel, refuse_for_series
from venn.cli.service import Service, Voice, known_sources, owns_terminal
from venn.cli.words import Watching, conclude, monitors_on
from venn.monitors.drift import ABOUT
from venn.monitors.floor import FloorWatch
from venn.online.chain import FEATURES
from venn.online.journal import Journal, JournalError
from venn.online.loop import Online
from venn.online.lot import Lot
from venn.online.panel import Panel
from venn.online.selective import Selective
from venn.online.watch import Watch
from venn.saved import described
from venn.show.door import Door
from venn.show.notify import AlarmCommand as AlarmCommand
from venn.show.notify import Notifier, Receiver, Webhook
from venn.show.view import SeenCounts


@configured("run")
@click.option("--config", "toml", metavar="FILE", help="TOML file with the same settings; options take precedence.")
@click.option("--check", is_flag=True, help="Only say what would run.")
def run(config: Config, check: bool) -> None:
    """Predict for a source's questions, learn its answers, and keep both in a journal; after a kill it continues.

    --source is redis://HOST:PORT/DB?stream=NAME, kafka://SERVERS/TOPIC, jsonl:FILE or csv:FILE, which may grow, - for
    JSON lines on stdin, MODULE:NAME for a source of your own, or, to try it out, a named data set or a CSV file as in
    `venn replay`, with --delay and --missing for its answers. A message is a question {"id": 7, "x": [1, 2.5]}, its
    answer {"id": 7, "y": "no"}, or both in one; with --numbers y is a number. With --key shop messages are of many
    streams, {"shop": "Oslo", "id": 7, ...}: each shop has a model of its own, in the folder --journal.
    With --series y is a value, null where it is missing, and each line has the path of the next values.

    Predictions go out as JSON lines, alarms to stderr. SIGTERM and Ctrl-C end the run after the current transaction.
    By default the predictor is the forecaster, of which a prediction holds three: forecast (probabilities to decide
    by), intervals and sets, which are guaranteed; of numbers a distribution, and a forecast. It has nothing to choose,
    and scales columns by itself. With --window the predictors are by default abers, leave_one_out and conformal, which
    can forget; of numbers distribution and intervals.
    """
    with one_line_errors():
        quiet, out = config.run.quiet, config.run.out
        try:
            if check:
                plan(config, click.echo)
                return
            with Voice(quiet, config.run.progress, owns_terminal(out)) as voice, voice.hearing():
                status = serve(config, voice)
        except MemoryError:
            raise click.ClickException("too little memory: hold fewer examples, with --window") from None
        except sqlite3.Error as error:
            raise click.ClickException(f"{config.journal.path}: {error}") from error
        except BrokenPipeError:
            close_stdout()
            raise click.ClickException("nobody reads stdout any more: the same command goes on") from None
    click.get_current_context().exit(status)


class Plan(NamedTuple):
    """What a configuration produces."""

    place: SourcePlace
    panel: Panel
    monitors: Watching
    journal: Journal
    notes: list[str]  #: remarks worth showing

    @property
    def watching(self) -> dict[str, Any]:
        """All that watches: the monitors, and what watches predictors from within."""
        return {**self.monitors, **self.panel.inner}


def made(config: Config, opened: Callable[..., SourcePlace] | None = None) -> Plan:
    """Make everything that a configuration names, but open nothing; `opened` finds the source."""
    if config.journal.path is None:
        raise click.UsageError(f"{config.where('journal', 'path')} must say where the journal is")
    if config.series.value is not None:
        refuse_for_series(config)
    if config.source.key is not None:
        refuse_for_fleet(config)
    model = given_model(config)
    place = (opened or open_place)(config, model)
    if config.run.out != "-":
        url = config.source.url or ""
        spared(config.where("run", "out"), config.run.out, config.journal.path, url, url.partition(":")[2] or url)
        only_predictions(config.where("run", "out"), config.run.out)
    delay, patience = config.source.delay, config.journal.patience
    if delay is not None and patience is not None and patience <= delay:
        raise click.UsageError(
            f"{config.where('journal', 'patience')} must be more than {config.where('source', 'delay')}, {delay}, "
            f"got {patience}: each question would be given up before its answer comes"
        )
    keep, notes = config.journal, list[str]()
    journal = Journal(keep.path or "", durable=keep.durable, every=keep.every)
    if config.run.metrics_port is not None:
        Door(config.access.host, config.run.metrics_port, **guard(config))  # an error before anything runs
    if config.series.value is not None:
        return Plan(place, live_panel(config, notes.append), {}, journal, notes)
    _check_ripe(config)
    _check_answers(config, not place.classes)
    window, watch = config.machine.window, config.monitor
    windowed = WINDOWED if place.classes else numbers.WINDOWED
    names = config.predictor.names or (default_predictors(None) if window is None else windowed)
    numbers.check_names(names, not place.classes)
    if watch.conformal:
        names = with_conformal(names)
    if config.predictor.adaptive:
        names = with_adaptive(names) if place.classes else numbers.with_adaptive(names)
    _check_window(config, names)

    choices: Choices = {}
    if choose_nothing(names):
        refuse_choices(config, names, place.classes)
    else:
        check_kernel(config)
        machine, width = config.machine, place.width
        choices = usual_choices(place.data, machine, width)
    if model is None:
        panel = panel_of(config, names, choices, place.classes, place.features, notes.append, place.live)
    else:
        panel = model.panel(notes.append)
        notes += model.said()  # of a file that has been read
        model.tell = lambda column, value: place.handlers.unknown(column, value)
    columns = watched_columns(config, place.live or model is not None, place.features)
    monitors = monitors_on(panel, watch.drift, columns, watch.floor, level=watch.level, run_length=watch.run_length)
    for one in monitors.values() if keep.labels_by_lot is not None else ():
        if isinstance(one, FloorWatch):
            one.ask_by_lot(keep.labels_by_lot or 1)  # as in the run, with which it is compared
    return Plan(place, panel, monitors, journal, notes)


def _check_ripe(config: Config) -> None:
    """Refuse what gives questions up before they are ripe."""
    for table, key in (("journal", "patience"), ("journal", "patience_seconds"), ("journal", "labels_by_lot")):
        if config.journal.ripe is not None and getattr(getattr(config, table), key) is not None:
            raise click.UsageError(
                f"{config.where('journal', 'ripe')} does not go with {config.where(table, key)}, which gives questions "
                "up earlier"
            )


def _check_answers(config: Config, of_numbers: bool) -> None:
    """Refuse answers with numbers that say not how narrow they must be, and a width for classes."""
    if config.predictor.answer_error is None or of_numbers == (config.predictor.answer_width is not None):
        return
    if of_numbers:
        where = config.where("predictor", "answer_error")
        raise click.UsageError(
            f"{where} of numbers needs a width: an answer is an interval that is narrower than "
            "--set predictor.answer_width=NUMBER"
        )
    width = config.where("predictor", "answer_width")
    raise click.UsageError(f"{width} goes with labels that are numbers, and these are classes: leave it out")


def _check_window(config: Config, names: Sequence[str]) -> None:
    """Refuse predictors that need no window, and what needs one where there is none."""
    window, watch = config.machine.window, config.monitor
    unforgetting = [name for name in names if PREDICTORS.get(name, ("",))[0] == "hinge"]
    if window is not None and unforgetting:
        raise click.UsageError(
            f"{config.where('machine', 'window')} does not go with {unforgetting[0]}, whose machine cannot forget: "
            f"name {','.join(WINDOWED)}"
        )
    inductive = [name for name in names if name in (*INDUCTIVE, *numbers.INDUCTIVE)]
    if window is not None and inductive:
        raise click.UsageError(
            f"{config.where('machine', 'window')} does not go with {inductive[0]}, which holds few examples anyway"
        )
    if watch.keep is not None and window is not None and watch.keep > window:
        raise click.UsageError(
            f"{config.where('monitor', 'keep')} must be at most the window, {window} examples, got {watch.keep}"
        )


def plan(config: Config, say: Callable[[str], None]) -> None:
    """Say what would run."""
    plan = made(config, open_place)
    for note in plan.notes:
        say(note)
    with plan.place.source as source:
        say(f"source: {source.name}")
    say(f"classes: {', '.join(map(repr, plan.place.classes))}" if plan.place.classes else "labels: numbers")
    say(f"predictions: {'stdout' if config.run.out == '-' else config.run.out}")
    path = plan.journal.path
    if config.source.key is not None:
        fleet_plan(config, say)
        return
    if not path.exists() or is_blank(path):
        say(f"journal: {path}, a new one")
        return
    counts = compared(plan, config)
    say(f"journal: {path}, goes on after {counts.asked:,} questions and {counts.answered:,} answers")


def is_blank(path: Path) -> bool:
    """Whether a file is a database without tables, left by a process that died before its run began."""
    if not holds_journal(str(path)):
        return False
    # Not read-only: half-done work of the dead process is rolled back first.
    with closing(sqlite3.connect(f"file:{quote(os.path.realpath(path))}?mode=rw", uri=True, timeout=10)) as db:
        blank: bool = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return blank


def compared(plan: Plan, config: Config) -> SeenCounts:
    """Return the counts of the journal's run, or say how it differs from this one, more briefly than `Online` would."""
    path = plan.journal.path
    with Watch(path) as watch:
        if watch.space != plan.panel.space:
            raise click.ClickException(f"{path} holds a run of {watch.space.told}, not {plan.panel.space.told}")
        for what, there, here in (
            ("predictor", watch.predictors, {name: described(one) for name, one in plan.panel.items()}),
            ("monitor of", watch.monitors, {name: described(one) for name, one in plan.watching.items()}),
        ):
            if list(there) != list(here) if what == "predictor" else there.keys() != here.keys():
                verb = "of the predictors" if what == "predictor" else "that watches"
                drift = ABOUT in {*there} ^ {*here}
                option = "" if not drift else f": see {'--drift' if ABOUT in there else '--no-drift'}"
                raise click.ClickException(
                    f"{path} holds a run {verb} {', '.join(there)}, not {', '.join(here)}{option}"
                )
            for name in here:
                if there[name] != here[name] and not (what == "predictor" and config.predictor.new_scorer):
                    if what == "predictor" and config.predictor.scorer is not None:
                        raise click.ClickException(f"{path} holds a run of {_other_model(plan, watch, config)}")
                    was, now = differing(there[name], here[name])
                    hint = ": the monitors share --level" if "level=" in was and "level=" in now else ""
                    scales = [re.findall(r"scale=[^,)]*", one) for one in (was, now)]
                    hint = ": see --scale" if scales[0] != scales[1] else hint
                    verb = "is" if was == there[name] else "has"
                    raise click.ClickException(f"{path} holds a run whose {what} {name} {verb} {was}, not {now}{hint}")
        return watch.counts()


def _other_model(plan: Plan, watch: Watch, config: Config) -> str:
    """Say that a journal was begun with another model than the one that is given, and what can be done."""
    alike = watch.monitors == {name: described(one) for name, one in plan.monitors.items()}
    anew = f"{config.where('predictor', 'new_scorer')} begins calibration anew with it, in the same journal"
    return f"another model than {config.predictor.scorer}: {anew if alike else 'begin a new journal'}"


def differing(one: str, other: str) -> tuple[str, str]:
    """Return of two descriptions of objects the parameters that differ; all of them where the objects differ otherwise.

    Examples
    --------
    >>> differing("Monitor(['a'], level=0.1, window=5)", "Monitor(['a'], level=0.2, window=5)")
    ('level=0.1', 'level=0.2')
    """
    parts = [re.split(r", (?=\w+=)", text.removesuffix(")")) for text in (one, other)]
    pairs = [(a, b) for a, b in zip(*parts, strict=False) if a != b]
    named = all("=" in a and a.partition("=")[0] == b.partition("=")[0] for a, b in pairs)
    if len(parts[0]) != len(parts[1]) or not pairs or not named or "(" in "".join(a + b for a, b in pairs):
        return one, other
    was, now = zip(*pairs, strict=True)
    return ", ".join(was), ", ".join(now)


def serve(config: Config, voice: Voice) -> int:
    """Run until the source ends or an end is requested; return the exit code."""
    plan = made(config, open_place)
    if config.source.key is not None:
        with notifying(config, voice) as notifier:
            return serve_fleet(config, voice, plan, notifier)
    if holds_journal(str(plan.journal.path)) and not is_blank(plan.journal.path):
        compared(plan, config)
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        source: Reader = stack.enter_context(plan.place.source)
        notifier = stack.enter_context(notifying(config, voice))
        online = stack.enter_context(online_of(config, plan, notifier))
        _check_source(config, plan, source)
        check_columns(plan, online, source.name)
        if config.run.metrics_port is not None:
            _serve_metrics(plan.journal.path, config, voice, stack)
        service = Service(config, online, plan.journal, source, voice)
        handlers = plan.place.handlers
        handlers.bad, handlers.lost, handlers.unknown = service.bad, service.lost, service.unknown
        for note in plan.notes:
            voice.say(note)
        # A collection of all garbage passes over everything, modules too, and stops the loop for a tenth of a second
        # and more: what is there now stays, and is passed over no longer.
        if gc.get_freeze_count() < len(gc.get_objects()):  # else a program around this one has seen to it
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
        if online.asked:
            voice.say(f"goes on after {online.asked:,} questions and {online.answered:,} answers")
        service.run(ending)
        notifier.close()
        voice.say(service.farewell())
        if notifier.said():
            voice.say(notifier.said())
        conclude(online.verdict(), voice.say)
    return INTERRUPTED if ending.pressed and not ending.terminated else 0


def online_of(config: Config, plan: Plan, notifier: Notifier) -> Online:
    """Return the run, which goes on if the journal holds one; another given model is refused unless it is allowed."""
    new_scorer, keep, predictor = config.predictor.new_scorer, config.journal, config.predictor
    model: Any = plan.panel
    try:
        if predictor.answer_error is not None:
            model = Selective(
                plan.panel, predictor.answer_error, predictor.answer_allowance,
                unknown=predictor.answer_unknown, width=predictor.answer_width,
            )  # fmt: skip
        return Online(
            model, plan.monitors, plan.journal, patience=keep.patience, new_scorer=new_scorer, on_alarm=notifier,
            labels=None if keep.labels_by_lot is None else Lot(keep.labels_by_lot),
            ripe=_ripe(keep.ripe), silent=_silent(keep.silent, plan.panel.classes),
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise click.ClickException(one_line(error)) from error
    except JournalError as error:
        raise click.ClickException(one_line(error).replace(NEW, config.where("predictor", "new_scorer"))) from error


def _ripe(found: str | int | None) -> int | timedelta | None:
    """Return when labels are ripe."""
    if isinstance(found, str):
        return timedelta(seconds=int(found[:-1]) * UNITS[found[-1]])
    return found


def _silent(text: str | None, classes: Sequence[Any]) -> Any:
    """Return the class of this text, or the number; what is neither is refused later."""
    if text is None:
        return None
    if not classes:
        try:
            return float(text)
        except ValueError:
            return text
    return next((label for label in classes if str(label) == text), text)


def notifying(config: Config, voice: Voice) -> Notifier:
    """Return what tells others of alarms."""
    watch = config.monitor
    receivers: list[Receiver] = [] if watch.on_alarm is None else [AlarmCommand(watch.on_alarm)]
    receivers += [] if watch.alarm_webhook is None else [Webhook(watch.alarm_webhook)]
    return Notifier(receivers, voice.warn, watch.alarm_every)


def _check_source(config: Config, plan: Plan, source: Reader) -> None:
    """Refuse to read another source into a run by mistake: everything might be learned twice."""
    known = known_sources(plan.journal)
    if known and source.name not in known and not config.source.new:
        way = (
            "give that name with --name"
            if plan.place.live
            else "give --steps, --shuffle, --delay and --missing as then"
        )
        raise click.ClickException(
            f"{plan.journal.path} has read {', '.join(map(repr, known))} and goes on with that, got the source "
            f"{source.name!r}: if it is the same source, {way}; to add a source, use --new-source"
            "; a file that grows is read by --source csv:FILE"
        )


def check_columns(plan: Plan, online: Online, name: str) -> None:
    """Refuse a source whose columns are read otherwise than before: what was learned would not be about them."""
    key, path, now = COLUMNS + name, plan.journal.path, plan.place.columns
    then = online.position(key)
    if then is None:
        online.reach(key, now)
        if plan.place.features is not None:
            online.reach(FEATURES + name, plan.place.features)
    elif then != now and plan.place.live:
        raise click.ClickException(
            f"{path} holds a run whose columns were read by {then or 'no declarations'}, not by {now or 'none'}"
        )
    elif then != now:
        raise click.ClickException(
            f"{path} has read other rows from {name!r}: since then the file, or how its columns are read "
            "(--fill, --nominal, ...), has changed; a file that grows is read by --source csv:FILE"
        )


def _serve_metrics(path: Path, config: Config, voice: Voice, stack: ExitStack) -> None:
    from venn.show.metrics import of_metrics
    from venn.show.server import serving

    host, port = config.access.host, config.run.metrics_port or 0
    try:
        at = stack.enter_context(serving(of_metrics(lambda: Watch(path)), host, port, **guard(config)))
    except OSError as error:
        raise click.ClickException(f"metrics cannot be served at {host}:{port}: {error.strerror or error}") from error
    voice.say(f"metrics: http://{host}:{at}/metrics")
