"""The loop of ``venn run``: messages, transactions, predictions, and its reports on stderr."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import nan
from time import monotonic
from typing import Any

import click

from streams.lines import NamesAgain
from streams.messages import BadMessage, Message, Reader
from venn.cli.columns import live_advice
from venn.cli.commands import Ending
from venn.cli.errors import warned
from venn.cli.options import Config
from venn.cli.output import COLUMNS, KEY, Output, json_line, prediction_line
from venn.cli.patience import Patience
from venn.machines.machine import NotConverged
from venn.monitors.alarms import shares
from venn.online.chain import FEATURES
from venn.online.journal import ANEW, TOLD, Journal
from venn.online.loop import Online, time_of
from venn.online.lot import JUDGED, Asked
from venn.online.ripening import REPORTED
from venn.online.selective import SelectiveAnswer
from venn.online.stretch import Happened
from venn.online.watch import ENDED
from venn.serving.owner import VERDICTS
from venn.show.notify import BEGAN, KNOWN
from venn.show.notify import ENDED as OVER
from venn.show.seldom import Seldom, hearing

OWN = COLUMNS, FEATURES, JUDGED, REPORTED  # begin names beside the positions of sources
PLAIN = 30.0  # seconds between two lines of progress
LIVELY = 0.25  # the same for a line that changes in a terminal
STAGES = {BEGAN: "begins", KNOWN: "is known", OVER: "is over"}
REFUSED = (ValueError, TypeError, NotConverged)


class Voice:
    """Output on stderr: news as lines, progress as one line that changes in a terminal.

    Parameters
    ----------
    quiet : bool
        Say nothing.
    progress : bool
        Show progress.
    lively : bool
        Whether stderr is a terminal used by nothing else.
    """

    def __init__(self, quiet: bool, progress: bool, lively: bool) -> None:
        self._quiet, self._progress, self._lively = quiet, progress and not quiet, lively
        self._seldom = Seldom()
        self._next = monotonic() + (LIVELY if lively else PLAIN)
        self._status: Any = None

    def __enter__(self) -> Voice:
        if self._lively and self._progress:
            from rich.console import Console  # takes a while: only in a terminal

            self._status = Console(stderr=True, highlight=False, soft_wrap=True).status("starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def say(self, text: str) -> None:
        """Say one line."""
        if not self._quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Say one line even where nothing else is said."""
        line = " ".join(text.split())
        if self._status is not None:
            self._status.console.print(line, markup=False)
        else:
            click.echo(line, err=True)

    def complain(self, what: str, text: str) -> None:
        """Count a problem; show it, unless it was shown recently or often."""
        heading = self._seldom.heading(what)
        if heading:
            self.say(f"{heading}: {text}")

    @property
    def counts(self) -> dict[str, int]:
        """How often each complaint occurred."""
        return dict(self._seldom.counts)

    def progress(self, text: Callable[[], str]) -> None:
        """Show progress, if it is time."""
        now = monotonic()
        if not self._progress or now < self._next:
            return
        self._next = now + (LIVELY if self._lively else PLAIN)
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(text()))
        else:
            self.say(text())

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Show warnings of sources and checkpoints as lines of our own."""
        with (
            warnings.catch_warnings(),
            hearing({"streams": logging.NOTSET}, lambda record: self.say(record.getMessage())),
        ):
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_: self.say(warned(message))
            yield


class Service:
    """Handles a source's questions and answers in transactions that hold its position; then writes predictions.

    Parameters
    ----------
    config : Config
        How the loop runs, where predictions go, how long a question waits.
    online : Online
        With the journal.
    journal : Journal
    source : Reader
    voice : Voice
    """

    def __init__(self, config: Config, online: Online, journal: Journal, source: Reader, voice: Voice) -> None:
        self._settings, self._patience = config.run, Patience(config.journal.patience_seconds)
        self._output = Output(config.run.out, config.journal.durable)
        self.online, self.source = online, source
        self._journal, self._voice = journal, voice
        self._place: Any = None  # the position up to which the source has been read
        self._reached: Any = None  # the position that has been written
        self._features: tuple[str, ...] = ()  # names that have been written
        self._alarms = sum(monitor.count for monitor in online.monitors.values())
        self._restarts = {name: len(one.restarts) for name, one in online.panel.items() if hasattr(one, "restarts")}
        # Of a series, what has a path beside the prediction of the next value.
        self._series: Any = next((one for one in online.panel.values() if hasattr(one, "path")), None)
        self._gaps: list[Message] = []  # in place of values that cannot be read
        self._latest: Message | None = None
        self._labelled: list[int] = []  # events of the transaction's questions whose label came in the same message
        self._more: dict[int, dict[str, Any]] = {}  # what is said beside predictions, by event of the transaction
        self._untimed = False  # whether the latest message had no time of its own
        self._judged = online.asked + online.answered
        self._states = {name: verdict.state for name, verdict in online.verdicts().items()}
        self._rate = 0.0
        self._before = (monotonic(), online.asked + online.answered)
        self._start = (monotonic(), online.asked, online.answered)

    def bad(self, error: Exception) -> None:
        """Handle a message that cannot be read."""
        said = live_advice(error) if isinstance(error, BadMessage) else str(error)
        if not self._settings.skip_bad:
            if isinstance(error, BadMessage):
                raise BadMessage(said, error.position) from None
            raise error
        if isinstance(error, BadMessage):
            self._place = error.position
            # Time goes on, or all later values would be in another place of the season; it begins with the first value.
            before = self._latest
            value = not isinstance(error.error, NamesAgain)  # where files were joined no time has passed
            if value and self._series is not None and (before is not None or self._series.n):
                # Covariates cannot be read: those before stand for them. Where a question waits, it is answered.
                x = before.x if before is not None and before.y is not None else None
                self._gaps.append(Message(None, x, nan, error.position))
        self._voice.complain("skipped a bad message", said)

    def unknown(self, column: str, value: Any) -> None:
        """Count a category that a given model does not know."""
        self._voice.complain("met an unknown category", f"{value!r} in column {column}, which the model does not know")

    def lost(self, error: Exception) -> None:
        """Handle the report that messages are lost."""
        if not self._settings.skip_lost:
            raise error
        self._voice.complain("messages were lost", str(error))

    def run(self, ending: Ending) -> None:
        """Run until the source ends or an end is requested."""
        cut_off = self._output.catch_up(self.online, self._journal)
        if cut_off:
            self._voice.say(f"wrote {cut_off} predictions again that may have been cut off")
        self._remember()
        self._place = self._reached = self.online.position(self.source.name)
        held: list[Message] = []
        since = 0.0
        messages = self.source.messages(self._place)
        while not ending.pressed or self.source.holding:
            try:
                message = next(messages, END)
            except (ValueError, RuntimeError, OSError):
                self._commit(held, ending)  # the messages before it count
                raise
            if message is END:
                break
            if isinstance(message, Message):
                if not held:
                    since = monotonic()
                held.append(message)
                self._latest, self._place = message, message.position
                if len(held) < self._settings.batch and monotonic() - since < self._settings.linger:
                    continue
            self._commit(held + self._gaps, ending)
            held = []
            self._gaps.clear()
        self._commit(held + self._gaps, ending)
        self._output.note(self.online)

    def _commit(self, held: list[Message], ending: Ending) -> None:
        """Process the messages, in several transactions where they take long; an end may come between two.

        What the end leaves over has not been read: its source gives it again, after the last place that was written.
        """
        place, done = self._place, 0
        while True:
            done = self._transact(held, done, place)
            self._voice.progress(self._progress_text)
            if done == len(held):
                return
            if ending.pressed and not self.source.once:
                self._place = self._reached
                return

    def _transact(self, held: list[Message], start: int, place: Any) -> int:
        """Process messages from `start` on in one transaction, all or nothing, and report; return where it ended."""
        overdue = self._patience.overdue()
        if not held and self._untimed and self.online.ripening is not None:
            self.online.ripen()
        if not (held or overdue or place != self._reached):
            self.online.refresh()
            return start
        lines: list[str] = []
        news: list[str] = []
        self._labelled.clear()
        self._more.clear()
        online, stop, until = self.online, start, monotonic() + self._settings.linger
        with online.transaction():
            try:
                for id in overdue:
                    self._expire(id)
                while stop < len(held) and (stop == start or monotonic() < until):
                    found = online.take(held[stop:])
                    refused = found[0].failure is not None and not found[0].answered
                    if self._series is not None and refused and held[stop].y is not None:
                        (gap,) = online.take([held[stop]._replace(y=nan)])
                        found = [gap._replace(failure=found[0].failure)]
                    for message, taken in zip(held[stop:], found, strict=False):
                        self._happen(message, taken, lines, news)
                    stop += len(found)
                reached = place if stop == len(held) else held[stop - 1].position
                if reached != self._reached:
                    online.reach(self.source.name, reached)
                features = getattr(self.source, "features", ())
                if features != self._features:  # those of a file of rows are known once its first line is read
                    online.reach(FEATURES + self.source.name, features)
                    self._features = features
                if lines:
                    self._output.note(online, self._labelled, self._more)
            except BaseException:
                online.abandon()
                raise
        self._reached = reached
        if lines:
            self._output.write(lines, self._journal.events)
        for text in news:
            self._voice.say(text)
        while online.stages:
            stage, episode = online.stages.popleft()
            told = episode.known if stage == KNOWN else episode
            self._voice.say(f"episode {episode.number} {STAGES[stage]}: {told}")
        if online.asked + online.answered > self._judged:
            self._judge()
        if self._reached is not None:
            self.source.acknowledge(self._reached)
        return stop

    def _happen(self, message: Message, taken: Happened, lines: list[str], news: list[str]) -> None:
        """Take note of what came of a message."""
        self._untimed = not time_of(message)
        if taken.failure is not None:
            if not isinstance(taken.failure, REFUSED):
                raise taken.failure
            what = "refused an answer" if message.x is None or taken.asked else "refused a question"
            what = "learned an answer with an error" if taken.answered else what
            self._voice.complain(what, f"{self._which(message)}: {taken.failure}")
        if taken.id is not None and taken.asked:
            self._patience.begin(taken.id)
        if taken.id is not None and taken.answered:
            self._patience.end(taken.id)
        if taken.id is not None:
            self._listen(taken, news)
        if taken.id is not None and taken.asked:
            predictions, more = _taken_apart(taken.alone)
            if self._series is not None:  # what is said of the next values, after this one where it came
                came = message.y is not None
                more["path"] = self._series.path(() if came else message.x).plain()
            self._labelled += [taken.asked] if taken.answered else []
            if more:
                self._more[taken.asked] = more
            y = message.y if taken.answered else None
            if taken.many is None:
                lines.append(prediction_line(taken.asked, taken.id, predictions, y, more))
            else:
                lines.append(json_line(taken.asked, taken.id, taken.many.json(taken.place), y, more))

    def _which(self, message: Message) -> str:
        return f"{self.source.name} at {message.position}"

    def _listen(self, taken: Happened, news: list[str]) -> None:
        """Count the alarms, and report restarts, after a question or an answer."""
        self._alarms += len(taken.rung)
        for name, known in self._restarts.items():
            one: Any = self.online.panel[name]
            if len(one.restarts) > known:
                self._restarts[name] = len(one.restarts)
                news.append(f"restart: {name}: the window starts anew after the answer to {taken.id!r}, step {one.n}")

    def _judge(self) -> None:
        """Report verdicts whose state is another than before."""
        self._judged = self.online.asked + self.online.answered
        for name, verdict in self.online.verdicts().items():
            if verdict.state != self._states[name]:
                self._states[name] = verdict.state
                self._voice.say(f"verdict: {name}: {verdict.state}: {verdict}")

    # ---------------------------------------------------------------- patience

    def _remember(self) -> None:
        """Look up when the waiting questions were asked."""
        waiting = set(self.online.pending)
        if waiting:
            asked = self._journal.connection.execute("SELECT id, time FROM questions ORDER BY event")
            self._patience.remember((id, when) for id, when in asked if id in waiting)

    def _expire(self, id: int | str) -> None:
        self._patience.end(id)
        try:
            self.online.expire(id)
        except ValueError:
            return  # given up already, because of the many later questions

    # ---------------------------------------------------------------- progress

    def _progress_text(self) -> str:
        """Return the progress, on one line."""
        online, now = self.online, monotonic()
        done = online.asked + online.answered
        then, before = self._before
        if now - then >= 1:
            self._rate = (done - before) / (now - then)
            self._before = (now, done)
        parts = [f"{online.asked:,} asked, {online.answered:,} answered, {len(online.pending):,} pending"]
        if online.expired:
            parts.append(f"{online.expired:,} given up")
        if online.ripening is not None and online.ripening.late:
            parts.append(f"{online.ripening.late:,} too late")
        if online.account is not None:
            parts.append(str(online.account))
        parts.append(f"{self._rate:,.0f} events/s")
        return ", ".join([*parts, *self._figures()])

    def _figures(self) -> list[str]:
        each = {name: told.snapshot()["curves"] for name, told in self.online.told.items()}
        found = {name: curves["accuracy"] for name, curves in each.items() if "accuracy" in curves}
        accuracies = [f"{name} {shares(one)[0]}" for name, one in found.items()]
        parts = []
        if accuracies:
            what = "accuracy" if self.online.panel.classes else "inside the interval at .05"
            parts.append(f"{what} {' '.join(accuracies)}")
        parts.append(f"alarms {self._alarms}")
        return parts + [f"{what} {count:,} times" for what, count in self._voice.counts.items()]

    def farewell(self) -> str:
        """Return what was done since the start, and the present state."""
        online = self.online
        start, asked, answered = self._start
        new = f"{online.asked - asked:,} asked and {online.answered - answered:,} answered"
        all_in_all = f"in all {online.asked:,} and {online.answered:,}, {len(online.pending):,} pending"
        given_up = f", {online.expired:,} given up" if online.expired else ""
        return f"{new} in {monotonic() - start:.1f} s; {all_in_all}{given_up}; {', '.join(self._figures())}"


END: Any = object()


def _taken_apart(said: Any) -> tuple[Any, dict[str, Any]]:
    """Return the predictions, and what is said beside them."""
    more: dict[str, Any] = {}
    if isinstance(said, Asked):
        said, more = said.prediction, {"wanted": said.wanted}
    if isinstance(said, SelectiveAnswer):
        answer = list(said.answer) if isinstance(said.answer, tuple) else said.answer
        more |= {"answer": answer} | ({"why": said.why} if said.why else {})
        said = said.prediction
    return said, more


def known_sources(journal: Journal) -> list[str]:
    """Return the names of the sources that a journal has read."""
    names = [name for (name,) in journal.connection.execute("SELECT source FROM positions")]
    return [name for name in names if name not in (KEY, ENDED, ANEW, TOLD, VERDICTS) and not name.startswith(OWN)]


def owns_terminal(out: str) -> bool:
    """Whether a changing line may be shown: only if predictions do not scroll through the same terminal."""
    return bool(sys.stderr is not None and sys.stderr.isatty() and (out != "-" or not sys.stdout.isatty()))
