"""The thread that owns a served run: it takes all that waits as one block, in one transaction, and then answers."""

from __future__ import annotations

import asyncio
import json
import secrets
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from math import isfinite
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple

from venn.machines.machine import NotConverged
from venn.machines.tables import is_gap
from venn.monitors.watching import Watches
from venn.online.chain import copy_object, decode, encode_object
from venn.online.loop import Online
from venn.online.stretch import Happened
from venn.prediction import plain

ASK, ANSWER, LOOK, PATH = "ask", "answer", "look", "path"
VERDICTS = "venn served verdicts"  # in a journal, beside the positions of sources: states of the verdict by first event
BATCH, LINGER = 512, 0.2  # events in a transaction at most, and seconds that it takes, about
MOST = 10_000  # events that wait, at most
RESTING = 1.0  # seconds without events after which the page shows the last ones, too
GATHERING = 0.004  # seconds to wait for as many events as waited before the latest block, if these were several
APART = 8  # requests of which questions and answers go in blocks of their own
OFTEN = 0.25  # seconds from one look at the verdict to the next, while nothing rings
CALM = 0.5  # weight of the older speed when a new one is measured


class ModelEvent(NamedTuple):
    """A question, an answer, or a look at both."""

    what: str  #: `ASK`, `ANSWER`, `LOOK`, or `PATH`: a look at what is said of the next values
    id: int | str | None
    x: Any = None
    y: Any = None


class EventReply(NamedTuple):
    """The reply to an event: an HTTP status and plain data."""

    status: int
    content: dict[str, Any]


class Busy(Exception):
    """Raised where a request cannot be taken now.

    Parameters
    ----------
    status : int
        429 where too much waits, 503 where the run is not there yet, or no longer.
    text : str
    seconds : int
        After which to try again.
    """

    def __init__(self, status: int, text: str, seconds: int) -> None:
        super().__init__(text)
        self.status, self.seconds = status, seconds


class Job:
    """A request that waits: its events, the replies so far, and who takes them, by default a new future.

    Parameters
    ----------
    events : sequence of ModelEvent
    future : optional
        Has `done`, `set_result` and `set_exception`, which are called in the running event loop.
    """

    def __init__(self, events: Sequence[ModelEvent], future: Any = None) -> None:
        self.events, self.replies = events, list[EventReply]()
        self.loop = asyncio.get_running_loop()
        self.future = self.loop.create_future() if future is None else future


class RunOwner:
    """Owns a run in a thread of its own; coroutines of any event loop hand it their events.

    What waits is taken as one block, answers before questions, in one transaction of the journal. A reply is sent when
    its transaction is written, so that a kill takes back nothing that anybody has been told. The same event again gets
    the same reply: of a question with the same object, and of an answer with the same label.

    Parameters
    ----------
    make : callable
        Returns the `Online`, with its journal and without `labels` by lot; called in the thread.
    batch : int
        Events in a transaction, at most.
    linger : float
        Seconds that a transaction may take, about.
    most : int
        Events that may wait; of a single request more are taken where nothing else waits.
    after : callable, optional
        Called with the run when it is there, and after each block.
    warn : callable, optional
        Takes a line about an answer that was learned with an error.

    Attributes
    ----------
    failure : BaseException or None
        What has ended the run.
    """

    def __init__(
        self, make: Callable[[], Online], *, batch: int = BATCH, linger: float = LINGER, most: int = MOST,
        after: Callable[[Online], object] | None = None, warn: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        self._make, self._batch, self._linger, self._most = make, batch, linger, most
        self._after, self._warn = after, warn
        self._news = Condition()
        self._waiting: deque[Job] = deque()
        self._count = 0  # events that wait
        self._started = self._ending = False
        self._thread = Thread(target=self._work, name="venn owner", daemon=True)
        self._online: Online | None = None
        self._states: list[tuple[int, str]] = []  # states of the verdict, each with its first event
        self._look_at = 0.0  # when to look at the verdict again
        self._speed = 1000.0  # events a second
        self._latest = 0  # events that waited when the latest block was taken
        self.failure: BaseException | None = None

    # ------------------------------------------------------------------ from outside

    def start(self) -> None:
        """Begin to read the journal, unless that has begun."""
        if self._started:
            return
        with self._news:
            if not self._started:
                self._started = True
                self._thread.start()

    def wait(self) -> None:
        """Wait until the journal is read, or until that has failed."""
        self.start()
        with self._news:
            self._news.wait_for(lambda: self._online is not None or self.failure is not None)

    def close(self) -> None:
        """Take no more, finish what waits, and write the last checkpoint."""
        with self._news:
            self._ending = True
            self._news.notify_all()
            started = self._started
        if started:
            self._thread.join()

    @property
    def trouble(self) -> str:
        """Why no question can be taken now; empty if all is well."""
        if self.failure is not None:
            return f"the run has ended: {type(self.failure).__name__}: {self.failure}"
        if self._ending:
            return "the run is ending"
        return "the journal is being read: ask again in a second" if self._online is None else ""

    async def happen(self, events: Sequence[ModelEvent]) -> list[EventReply]:
        """Let events happen in this order, and return their replies when the journal holds what they changed.

        Raises
        ------
        Busy
            None of them has happened: too much waits. Or the run has broken: some of them may have happened, and to
            repeat them does no harm.
        """
        job = Job(events)
        self.put(job)
        replies: list[EventReply] = await job.future
        return replies

    def put(self, job: Job) -> None:
        """Let a request wait for its replies, or raise `Busy`: none of its events has happened then."""
        self.start()
        with self._news:
            trouble = self.trouble
            if trouble:
                raise Busy(503, trouble, 5 if self.failure or self._ending else 1)
            if self._count and self._count + len(job.events) > self._most:
                seconds = 1 + int(self._count / self._speed)
                raise Busy(429, f"{self._count} questions and answers wait already", seconds)
            self._count += len(job.events)
            self._waiting.append(job)
            if len(self._waiting) == 1 or self._count >= self._latest:  # what the thread waits for
                self._news.notify_all()

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        try:
            with self._make() as online:
                self._begin(online)
                if self._after is not None:
                    self._after(online)
                with self._news:
                    self._online = online
                    self._news.notify_all()
                while self._await(online):
                    self._block(online)
        except BaseException as error:
            self.failure = error
        finally:
            with self._news:
                self._online, self._ending = None, True
                left, self._count = list(self._waiting), 0
                self._waiting.clear()
                self._news.notify_all()
            for job in left:
                self._settle(job, Busy(503, self.trouble, 5))

    def _begin(self, online: Online) -> None:
        """Read the states of the verdict from the journal."""
        if online.journal is None or online.labels is not None:
            raise ValueError("a served run must have a journal, and no labels by lot")
        self._states = [(int(at), str(state)) for at, state in online.position(VERDICTS) or ()]

    def _abandon(self, online: Online) -> None:
        online.abandon()

    def _rest(self, online: Online) -> None:
        online.refresh()

    def _await(self, online: Online) -> bool:
        """Wait for events; return False when there will be none.

        Clients that were answered together ask again nearly together, so it waits a little for them.
        """
        with self._news:
            came = self._news.wait_for(lambda: self._waiting or self._ending, RESTING)
        if not came:
            self._rest(online)
            with self._news:
                self._news.wait_for(lambda: self._waiting or self._ending)
        with self._news:
            self._news.wait_for(lambda: self._count >= self._latest or self._ending, GATHERING)
            return bool(self._waiting)

    def _block(self, online: Online) -> None:
        """Process all waiting events in one transaction, and reply."""
        with self._news:
            taken, waited = list(islice(self._waiting, self._batch)), self._count
        jobs = _alike(taken)
        events = [(job, event) for job in jobs for event in job.events[len(job.replies) :]][: self._batch]
        begin, first = monotonic(), self._events(online) + 1
        replies: list[tuple[EventReply, int | None]] = []
        with online.transaction():
            try:
                while len(replies) < len(events):
                    if replies and monotonic() - begin > self._linger:
                        break
                    replies += self._happen(online, [event for _, event in events[len(replies) :]])
                if self._events(online) >= first:
                    self._judge(online, first, any(reply.content.get("alarms") for reply, _ in replies))
            except BaseException:
                self._abandon(online)
                raise
        done = []
        for (job, _), (reply, at) in zip(events, replies, strict=False):  # zip: only the events that were processed
            if at is not None:
                reply.content["verdict"] = self._state_at(at)
            job.replies.append(reply)
            if len(job.replies) == len(job.events):
                done.append(job)
        with self._news:
            self._count -= len(replies)
            for _ in taken:
                self._waiting.popleft()
            self._waiting.extendleft(job for job in reversed(taken) if len(job.replies) < len(job.events))
        for loop in {job.loop for job in done}:
            _soon(loop, partial(_resolve, [job for job in done if job.loop is loop], None))
        self._latest = waited
        self._speed = CALM * self._speed + (1 - CALM) * len(replies) / max(monotonic() - begin, 1e-6)
        if self._after is not None:
            self._after(online)

    @staticmethod
    def _settle(job: Job, error: Exception) -> None:
        _soon(job.loop, partial(_resolve, [job], error))

    @staticmethod
    def _events(online: Online) -> int:
        assert online.journal is not None
        return online.journal.events

    # ------------------------------------------------------------------ verdicts

    def _judge(self, online: Online, first: int, rung: bool) -> None:
        """Write a new state of the verdict into the journal, so that a repeated request gets the same reply.

        The verdict is computed after an alarm, and else now and then, since it takes as long as some events.
        """
        if not (rung or monotonic() >= self._look_at):
            return
        self._look_at = monotonic() + OFTEN
        state = online.verdict().state
        if not self._states or self._states[-1][1] != state:
            self._states.append((first, state))
            online.reach(VERDICTS, self._states)

    def _state_at(self, event: int) -> str | None:
        """Return the state of the verdict after the transaction of an event; None if the run was not served then."""
        states = self._states
        if states and event >= states[-1][0]:  # most
            return states[-1][1]
        place = bisect_right(states, event, key=lambda one: one[0])
        return states[place - 1][1] if place else None

    # ------------------------------------------------------------------ events

    def _happen(self, online: Online, events: Sequence[ModelEvent]) -> list[tuple[EventReply, int | None]]:
        """Process the first event and those that go with it; return the replies, each with the event of its verdict."""
        first = events[0]
        if first.what in (LOOK, PATH):
            return [(self._look if first.what == LOOK else self._path)(online, first)]
        if first.id is None:
            id = online.asked + 1
            named = f"q-{secrets.token_hex(8)}" if self._asked(online, id) is not None else id
            # A value without an id answers the open question, if there is one.
            waits = online.pending[:1] if first.what == ANSWER else ()
            events = [first._replace(id=waits[0] if waits else named)]
        together = list(takewhile(lambda one: one.what in (ASK, ANSWER) and one.id is not None, events))
        taken = zip(together, online.take(together), strict=False)
        return [(self._ask if event.what == ASK else self._answer)(online, event, came) for event, came in taken]

    def _ask(self, online: Online, event: ModelEvent, taken: Happened) -> tuple[EventReply, int | None]:
        if taken.failure is not None:
            return self._asked_before(online, event, taken.failure)
        assert taken.id is not None
        if taken.many is not None:
            said = {"id": taken.id, "event": taken.asked, "predictions": taken.many.plain(taken.place)}
            return EventReply(200, said), taken.asked
        predictions = {next(iter(online.panel)): taken.alone} if online.alone else taken.alone
        return EventReply(200, _outlook(taken.id, taken.asked, predictions)), taken.asked

    def _asked_before(self, online: Online, event: ModelEvent, error: Exception) -> tuple[EventReply, int | None]:
        """Return the earlier reply to a known question, or a refusal."""
        at = None if event.id is None else self._asked(online, event.id)
        if at is None:
            return refusal(error), None
        assert online.journal is not None
        question = online.journal.question(at)
        try:
            same = encode_object(copy_object(event.x)) == question.x
        except (TypeError, ValueError):
            return refusal(error), None
        if not same:
            text = f"x must be the object that was asked about before, got another for id {event.id!r}"
            return EventReply(409, {"error": text}), None
        predictions = decode(question.predictions, tuple(online.panel), online.panel.space)
        return EventReply(200, _outlook(question.id, at, predictions)), at

    def _answer(self, online: Online, event: ModelEvent, taken: Happened) -> tuple[EventReply, int | None]:
        assert event.id is not None
        if taken.failure is not None:
            if not taken.answered:
                return self._answered_before(online, event, taken.failure)
            if self._warn is not None:
                self._warn(f"learned an answer with an error: {event.id!r}: {taken.failure}")
        at = taken.answered or self._events(online)  # where labels ripen, it may not count yet
        rung = [{"predictor": name, **vars(alarm)} for name, alarm in taken.rung]
        return EventReply(200, _learned(event.id, at, sorted(rung, key=lambda one: str(one["predictor"])))), at

    def _answered_before(self, online: Online, event: ModelEvent, error: Exception) -> tuple[EventReply, int | None]:
        """Return the earlier reply to a known answer, or a refusal."""
        known = None if event.id is None else self._asked(online, event.id)
        if known is None:  # of a series the value itself is refused: it needs no question
            return (refusal(error) if online.panel.in_turn else EventReply(404, {"error": str(error)})), None
        found = self._came(online, known)
        if found is None:
            given_up = self._given_up(online, known)
            if event.id is not None and given_up is not None and is_gap(event.y) and online.panel.in_turn:
                return EventReply(200, _learned(event.id, given_up, [])), given_up
            status = 410 if given_up is not None else 0
            return (EventReply(status, {"error": str(error)}) if status else refusal(error)), None
        step, at, truth = found
        space = online.panel.space
        try:
            same = space.encode(event.y) == truth
        except (TypeError, ValueError) as wrong:
            return refusal(wrong), None
        if not same:
            came = space.decode(truth)
            text = f"y must be the label that came before, {came!r}, got {event.y!r} for id {event.id!r}"
            return EventReply(409, {"error": text}), None
        assert event.id is not None
        return EventReply(200, _learned(event.id, at, self._rung(online, step))), at

    def _path(self, online: Online, event: ModelEvent) -> tuple[EventReply, int | None]:
        """Return the forecast of the next values of a series."""
        found: Any = next((one for one in online.panel.values() if hasattr(one, "path")), None)
        if found is None:
            return EventReply(404, {"error": "the model must be that of a series, which has a path"}), None
        return EventReply(200, {"n": found.n, "path": found.path().plain()}), None

    def _look(self, online: Online, event: ModelEvent) -> tuple[EventReply, int | None]:
        """Return the reply to a question, and its outcome."""
        assert event.id is not None
        assert online.journal is not None
        at = self._asked(online, event.id)
        if at is None:
            text = f"id must be that of a question that was asked, got {event.id!r}"
            return EventReply(404, {"error": text}), None
        question = online.journal.question(at)
        predictions = decode(question.predictions, tuple(online.panel), online.panel.space)
        content = {**_outlook(question.id, at, predictions), "verdict": self._state_at(at), "time": question.time}
        came = self._came(online, at)
        if came is not None:
            step, answer, truth = came
            learned = _learned(question.id, answer, self._rung(online, step)) | {"verdict": self._state_at(answer)}
            del learned["id"]
            content |= {"status": "answered", "y": online.panel.space.decode(truth), "answer": learned}
        else:
            content["status"] = "waits" if self._given_up(online, at) is None else "given up"
        return EventReply(200, content), None

    # ------------------------------------------------------------------ what the journal holds

    @staticmethod
    def _row(online: Online, statement: str, *values: Any) -> Any:
        assert online.journal is not None
        return online.journal.connection.execute(statement, values).fetchone()

    def _asked(self, online: Online, id: int | str) -> int | None:
        """Return the event of a question; None if it was never asked."""
        row = self._row(online, "SELECT event FROM questions WHERE id = ?", id)
        return None if row is None else int(row[0])

    def _came(self, online: Online, question: int) -> Any:
        """Return step, event and code of the label that came; None if none did."""
        return self._row(online, "SELECT step, event, truth FROM answers WHERE question = ?", question)

    def _given_up(self, online: Online, question: int) -> int | None:
        """Return the event at which a question was given up; None if it was not."""
        row = self._row(online, "SELECT event FROM expired WHERE question = ?", question)
        return None if row is None else int(row[0])

    def _rung(self, online: Online, step: int) -> list[dict[str, Any]]:
        """Return the alarms that an answer has rung. Alarms about objects ring at the question."""
        assert online.journal is not None
        statement = "SELECT predictor, alarm FROM alarms WHERE step = ? ORDER BY predictor, number"
        watches: Mapping[str, Watches] = online.monitors
        return [
            {"predictor": name, **json.loads(alarm)}
            for name, alarm in online.journal.connection.execute(statement, (step,))
            if name not in watches or watches[name].sees != "objects"
        ]


def _alike(jobs: Sequence[Job]) -> list[Job]:
    """Return the waiting requests that go in one block: the answers or the others, whichever has waited longest.

    Clients that got replies together come back together, with requests of one kind: so blocks grow. Fewer than
    `APART` requests go together, answers first. The answer to a question that waits in the same list stays behind it,
    and the events of one request keep their order.
    """
    first, others, ids = list[Job](), list[Job](), set[int | str | None]()
    for job in jobs:
        alone = len(job.events) == 1 and job.events[0].what == ANSWER and job.events[0].id not in ids
        (first if alone else others).append(job)
        ids.update(() if alone else (event.id for event in job.events))
    if not first or not others or len(jobs) < APART:
        return first + others
    return first if first[0] is jobs[0] else others


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop has ended: nobody waits there any more
        return


def _resolve(jobs: Sequence[Job], error: Exception | None) -> None:
    for job in jobs:
        if job.future.done():  # whoever waited has gone
            continue
        if error is None:
            job.future.set_result(job.replies)
        else:
            job.future.set_exception(error)


def _outlook(id: int | str, event: int, predictions: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: plain(prediction) for name, prediction in predictions.items()}
    return {"id": id, "event": event, "predictions": said}


def _learned(id: int | str, event: int, alarms: list[dict[str, Any]]) -> dict[str, Any]:
    for one in alarms:
        one["log_evidence"] = one["log_evidence"] if isfinite(one["log_evidence"]) else None
    return {"id": id, "event": event, "alarms": alarms}


def refusal(error: Exception) -> EventReply:
    """Return the reply to an error of the library; a problem that a machine cannot solve is not the client's fault."""
    return EventReply(500 if isinstance(error, NotConverged) else 422, {"error": str(error)})
