"""The loop of a stream that does not stop: questions, labels that come late or never, a process that may die."""

from __future__ import annotations

import copy
import logging
import os
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple

from venn.machines.machine import inside
from venn.monitors.alarms import Alarm
from venn.monitors.monitor import Monitor
from venn.online import checkpoint
from venn.online.bulletin import Bulletin, Rung
from venn.online.codec import copy_object, decode, decode_object, encode, encode_object
from venn.online.journal import Answer, Journal, JournalError, Question, checked_id
from venn.online.panel import Panel, Predictor
from venn.online.record import Record, scalar
from venn.online.watch import read_record
from venn.prediction import Label, Prediction

PATIENT = 10  # times as many events before a mere question writes a checkpoint: it shall be quick
INTERRUPTED, UNWRITTEN, CLOSED = "was interrupted", "could not write its journal", "is closed"
# What is refused, or fails the same way when it is done again.
REFUSALS = (ValueError, TypeError, ArithmeticError, RuntimeError)
log = logging.getLogger("venn")


class Waiting(NamedTuple):
    """A question whose answer has not come."""

    event: int
    number: int  #: of the question, from 1
    step: int  #: answers that had been learned when it was asked
    x: Any
    predictions: dict[str, Prediction]


class Online:
    """A predictor at work: asked about objects, told their labels whenever these come.

    Any number of questions may wait, answers come in any order or never. What is learned is learned in the order of the
    answers. With a journal the process may be killed at any moment: made again with the same parameters and the same
    journal it goes on where it stood, to the last bit.

    What is valid when labels come late. Each single prediction is, as it was made: on exchangeable data, when *which*
    examples are labelled, and when, does not depend on their objects and labels, the labelled examples and the new one
    are exchangeable. Sums over a stream of such predictions are another matter: predictions made between two answers
    share their examples, so departures of successive steps are not independent, and the bounds for sums (the band
    around the accuracy, binomial numbers of errors) are theorems only if each answer comes before the next question.
    Conformal predictors keep their error rate in the long run even under slow and lazy teachers, if examples are
    independent and labels come on more than a logarithmic share of the steps (Nouretdinov & Vovk 2006).

    The monitors are given what keeps their theorems: the prediction that the predictor would make for the object *now*,
    as its label comes, from all labels learned before. The labelled examples, in the order of their answers, are an
    exchangeable stream with immediate answers, so a monitor's false alarms are as rare as ever. If what is labelled, or
    when, depends on objects or labels (fraud is confirmed sooner than its absence), all this is void.

    Parameters
    ----------
    predictor : Predictor or Panel
        As a fresh process makes it. When the journal holds a run of it, that one goes on: see `panel`.
    monitor : Monitor or mapping of str to Monitor, optional
        One for a predictor, or by name for some in a panel; each has seen nothing yet.
    journal : Journal, str or path, optional
        None: nothing is kept, and it is not known whether an id was used before, only whether it waits.
    patience : int >= 1, optional
        A question is given up when so many later ones have been asked. None: it waits for ever.

    One thread at a time may use it, and only the process that made it. A forked child that outlives its parent keeps
    the journal locked.

    Attributes
    ----------
    panel : Panel
        The predictors as they are now; after a restart not the objects that were given.
    monitors : dict of str to Monitor
    told : dict of str to Monitor
        For each predictor curves of the predictions as they were made, without evidence.
    asked, answered, expired : int
        Numbers of questions, answers, and questions given up.

    Raises
    ------
    JournalError
        By everything that writes: the journal cannot be written, and what was asked for has not happened.
    TypeError, ValueError
        A parameter is not what it must be.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", section on weak teachers; Nouretdinov &
    Vovk (2006), "Criterion of calibration for transductive confidence machine with limited feedback".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> online = Online(venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax())))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     for z, y in ((x, "no"), (1 + x, "yes")):
    ...         prediction = online.ask([z])
    ...         alarms = online.answer(online.asked, y)
    >>> online.ask([0.15], id="first"), online.ask([1.15], id="second")
    (Multiprobability('no': [0.800, 1.000]), Multiprobability('yes': [0.800, 1.000]))
    >>> online.answer("second", "yes")
    ()
    >>> online
    Online(TransductiveVenn: 10 asked, 9 answered, 1 pending)
    """

    def __init__(
        self,
        predictor: Predictor | Panel,
        monitor: Monitor | Mapping[str, Monitor] | None = None,
        journal: Journal | str | os.PathLike[str] | None = None,
        *,
        patience: int | None = None,
    ) -> None:
        self.alone = not isinstance(predictor, Panel)
        self.panel = Panel(**{type(predictor).__name__: predictor}) if not isinstance(predictor, Panel) else predictor
        self.monitors = self._checked(monitor)
        if patience is not None and (isinstance(patience, bool) or not isinstance(patience, int) or patience < 1):
            raise ValueError(f"patience must be an integer >= 1 or None, got {patience!r}")
        self.patience = patience
        self.told = {name: Monitor(self.classes, sources=()) for name in self.panel}
        self.asked = self.answered = self.expired = 0
        self._codes = {label: code for code, label in enumerate(self.classes)}
        self._waiting: dict[int | str, Waiting] = {}
        self._last: Any = None  # the last object asked about, if nothing was learned since
        self._memory = self._remembered()
        self._mark = 0.0  # time of the last event
        self._owner = os.getpid()
        self._broken: str | None = None
        self._bulletin = Bulletin()
        if not isinstance(journal, Journal | str | os.PathLike | None):
            raise TypeError(f"journal must be a Journal, a path or None, got {journal!r}")
        self.journal = Journal(journal) if isinstance(journal, str | os.PathLike) else journal
        if self.journal is not None:
            self._begin(self.journal)

    def _checked(self, monitor: Any) -> dict[str, Monitor]:
        if monitor is None:
            return {}
        if isinstance(monitor, Monitor):
            if len(self.panel) > 1:
                raise TypeError(f"monitor must be a mapping for a panel of {', '.join(self.panel)}, got one monitor")
            monitor = {next(iter(self.panel)): monitor}
        if not isinstance(monitor, Mapping) or not all(isinstance(one, Monitor) for one in monitor.values()):
            raise TypeError(f"monitor must be a Monitor or a mapping of names to monitors, got {monitor!r}")
        for name, one in monitor.items():
            if name not in self.panel:
                raise ValueError(f"monitor must have names of predictors, {', '.join(self.panel)}, got {name!r}")
            if one.classes != self.classes:
                raise ValueError(f"monitor must be for the classes {self.classes!r}, got one for {one.classes!r}")
        return dict(monitor)

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.panel.classes

    @property
    def pending(self) -> tuple[int | str, ...]:
        """Ids of the questions that wait for an answer, oldest first."""
        return tuple(self._waiting)

    def __repr__(self) -> str:
        return (
            f"Online({', '.join(self.panel)}: {self.asked} asked, {self.answered} answered, "
            f"{len(self._waiting)} pending{f', {self.expired} expired' if self.expired else ''})"
        )

    # ------------------------------------------------------------------- asking

    def ask(self, x: Any, id: int | str | None = None) -> Any:
        """Predict the label of an object; the question waits for its answer.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        id : int or str, optional
            By which the answer will name the question; by default its number, from 1: `asked` afterwards.

        Returns
        -------
        Forecast, Multiprobability, ClassIntervals or PredictionSet; of a panel a dict of them by name

        Raises
        ------
        TypeError, ValueError
            For a bad object or id, or an id that was used before. Nothing happened.
        """
        self._check_open()
        given = id is not None
        id = self.asked + 1 if id is None else checked_id(id)
        if id in self._waiting:
            raise ValueError(f"id must be a new one, got {id!r}, which waits for its answer")
        if given and self.journal is not None and self.journal.knows(id):
            raise ValueError(f"id must be a new one, got {id!r}, which was asked before")
        with self._trying():
            predictions = self.panel.predict_one(x)
            kept = self._copied(x)
        now = time.time()
        event = self._events + 1
        late = self._overdue()
        journal = self.journal
        with self._happening():
            if journal is not None:
                question = Question(event, id, self.answered, encode_object(kept), encode(predictions), now)
                if late:
                    with journal:
                        journal.ask(question)
                        for place, (_, given_up) in enumerate(late, 1):
                            journal.expire(self.expired + place, event + place, given_up.event, now)
                else:
                    journal.ask(question)
            self.asked += 1
            self._mark = now
            self._waiting[id] = Waiting(event, self.asked, self.answered, kept, predictions)
            for old, _ in late:
                self._give_up(old)
            self._last, self._memory = kept, self._remembered()
        self._keep(PATIENT)
        return next(iter(predictions.values())) if self.alone else predictions

    def _copied(self, x: Any) -> Any:
        """Return the object as it is now, whatever its owner does with it until the label comes."""
        try:
            return copy_object(x)
        except (TypeError, ValueError):
            if self.journal is not None:
                raise TypeError(f"x must be a sequence of numbers to be kept in a journal, got {x!r}") from None
        return copy.deepcopy(x)  # for predictors of a user's own

    @property
    def _events(self) -> int:
        return self.asked + self.answered + self.expired

    def _overdue(self) -> list[tuple[int | str, Waiting]]:
        """Return what is given up when the next question is asked."""
        late: list[tuple[int | str, Waiting]] = []
        if self.patience is not None:
            for id, waiting in self._waiting.items():
                if self.asked + 1 - waiting.number < self.patience:
                    break
                late.append((id, waiting))
        return late

    def _give_up(self, id: int | str) -> None:
        del self._waiting[id]
        self.expired += 1

    def expire(self, id: int | str) -> None:
        """Give up a question: its answer will be refused.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits. Nothing happened.
        """
        self._check_open()
        waiting = self._find(id)
        now = time.time()
        journal = self.journal
        with self._happening():
            if journal is not None:
                journal.expire(self.expired + 1, self._events + 1, waiting.event, now)
            self._mark = now
            self._give_up(id)
        self._keep()

    # ---------------------------------------------------------------- answering

    def answer(self, id: int | str, y: Label) -> tuple[Alarm, ...]:
        """Reveal the label of a question, and learn it.

        Parameters
        ----------
        id : int or str
        y : one of the classes

        Returns
        -------
        tuple of Alarm
            Those that ring now.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits: the message says whether it was never asked, is answered, or was given up. Or
            the label is none of the classes, or a machine refuses the example. Nothing happened.
        NotConverged
            A machine cannot be solved; nothing happened. Or a scaler's own fit fails, or a window cannot forget: the
            answer counts, and what could learn has learned it.
        """
        self._check_open()
        waiting = self._find(id)
        with self._trying():
            self._settle()
            self.panel.check(waiting.x, y)
            current = self._as_of_now(waiting)
        truth = self._codes[y]
        now = time.time()
        journal = self.journal
        with self._happening():
            if journal is not None:
                journal.answer(self.answered + 1, self._events + 1, waiting.event, now, truth)
            self._mark = now
            rung, failure = self._learn(id, waiting, y, current)
        if journal is not None:
            self._bulletin.note(self.answered, now, rung, self.told, self.monitors)
            self._publish(journal, now)
        self._keep()
        if failure is not None:
            raise failure
        return tuple(one.alarm for one in rung)

    def _as_of_now(self, waiting: Waiting) -> dict[str, Prediction]:
        """Return what the monitored predictors say of an object now; as they did, if nothing was learned since."""
        if waiting.step == self.answered:
            return waiting.predictions
        return {name: self.panel[name].predict_one(waiting.x) for name in self.monitors}

    def _learn(
        self, id: int | str, waiting: Waiting, y: Label, current: Mapping[str, Prediction]
    ) -> tuple[list[Rung], Exception | None]:
        """Learn an answer; return the alarms, by predictor and number, and what failed after all had learned."""
        failure: Exception | None = None
        try:
            self.panel.learn_one(waiting.x, y)
        except REFUSALS as error:
            failure = error
        del self._waiting[id]
        self.answered += 1
        self._last, self._memory = None, self._remembered()
        rung: list[Rung] = []
        for name, told in self.told.items():
            monitor = self.monitors.get(name)
            try:
                told.update(waiting.predictions[name], y)
                alarms = () if monitor is None else monitor.update(current[name], y)
            except REFUSALS as error:
                failure = failure or error
                continue
            if monitor is not None:
                first = monitor.count - len(alarms)
                rung += [Rung(name, first + place, alarm) for place, alarm in enumerate(alarms, 1)]
        return rung, failure

    def _remembered(self) -> list[Any]:
        """Return what the machines remember of the last question that was put to them."""
        return [getattr(inside(machine), "_asked", None) for machine in self.panel.machines]

    def _settle(self) -> None:
        """Let machines remember the last question of the run, as they will when all is done again.

        What they remember shows in the last bits of what they learn next; somebody may have asked them since.
        """
        if self._remembered() == self._memory:
            return
        for machine in self.panel.machines:
            forget = getattr(inside(machine), "_forget", None)
            if forget is not None:
                forget()
        if self._last is not None:
            self.panel.predict_one(self._last)
        self._memory = self._remembered()

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Let refusals pass; after anything else, an interrupt above all, nobody knows what machines hold."""
        try:
            yield
        except REFUSALS:
            raise
        except BaseException:
            self._broken = INTERRUPTED
            raise

    def _find(self, id: Any) -> Waiting:
        checked = checked_id(id)
        waiting = self._waiting.get(checked)
        if waiting is not None:
            return waiting
        if self.journal is None:
            raise ValueError(f"id must be that of a question that waits, got {id!r}: never asked, answered or given up")
        status = self.journal.status_of(checked)
        said = {"unknown": "was never asked", "answered": "is answered", "expired": "was given up"}[status]
        raise ValueError(f"id must be that of a question that waits, got {id!r}, which {said}")

    def follow(self, events: Iterable[Any]) -> Iterator[Any]:
        """Ask and answer what comes; yield each prediction when it is made.

        Parameters
        ----------
        events : iterable of questions, which have an id and an x, and answers, which have an id and a y
            Such as `streams.teach` gives.

        Raises
        ------
        TypeError
            What comes is neither, as when a table is iterated by its columns; what came before is asked and answered.
        """
        for event in events:
            if hasattr(event, "x") and hasattr(event, "id"):
                yield self.ask(event.x, event.id)
            elif hasattr(event, "y") and hasattr(event, "id"):
                self.answer(event.id, event.y)
            else:
                raise TypeError(f"events must be questions (id, x) and answers (id, y), got {event!r}")

    # ------------------------------------------------------------- transactions

    @contextmanager
    def transaction(self) -> Iterator[Online]:
        """Let all that happens inside count together, or, if the process dies, not at all.

        Faster than a transaction for each question and answer; predictions made inside should be acted upon afterwards.
        A refusal that is caught inside leaves the rest as it is. If an exception leaves the block, or the journal
        cannot be written, nothing of the transaction counts, and this object is of no further use: make it again.

        Examples
        --------
        >>> with online.transaction():  # doctest: +SKIP
        ...     for message in messages:
        ...         online.ask(message.x, message.id)
        ...     online.reach("queue", message.position)
        """
        self._check_open()
        journal = self.journal
        if journal is None or journal.within:
            yield self
            return
        try:
            journal.begin()
            yield self
            if self._broken is None:
                journal.commit()
            else:
                journal.rollback()
        except BaseException as error:
            self._broken = self._broken or (UNWRITTEN if isinstance(error, JournalError) else INTERRUPTED)
            journal.rollback()
            raise
        self._keep()

    def abandon(self) -> None:
        """Let nothing of the open transaction count: this object is of no further use, and the journal is as before."""
        self._broken = self._broken or INTERRUPTED

    @contextmanager
    def _happening(self) -> Iterator[None]:
        """Keep memory and journal agreed: a thing happens wholly or not at all, or this object is of no further use."""
        inside = self.journal is not None and self.journal.within
        self._broken = INTERRUPTED
        try:
            yield
        except ValueError:  # refused before anything was written
            self._broken = None
            raise
        except JournalError:
            # In a transaction: what came before in it is learned, and now it is not written.
            self._broken = UNWRITTEN if inside else None
            raise
        self._broken = None

    def reach(self, source: str, position: Any) -> None:
        """Write how far a source has been read; in the transaction that holds what it said."""
        self._check_open()
        if self.journal is not None:
            with self._happening():
                self.journal.reach(source, position)

    def position(self, source: str) -> Any:
        """Return how far a source had been read; None before its start, or without a journal."""
        return None if self.journal is None else self.journal.position(source)

    def _check_open(self) -> None:
        if os.getpid() != self._owner:
            raise JournalError("a run must be asked by the process that made it, got a call in a forked one")
        if self._broken is not None:
            raise JournalError(f"this run {self._broken}: make it again from its journal to go on")

    def _publish(self, journal: Journal, now: float) -> None:
        """Write what viewers look at, if there is something new."""
        if not self._bulletin.due():
            return
        try:
            with self._happening():
                self._bulletin.write(journal, self.answered, now, self.told, self.monitors)
        except JournalError:
            if self._broken is not None:
                raise
            # Otherwise what has happened has happened: the next question will say what is wrong.

    def record(self) -> Record:
        """Return what the journal holds as a `Record`: predictions as they were made, in the order of their answers.

        Raises
        ------
        JournalError
            There is no journal.
        """
        if self.journal is None:
            raise JournalError("a run without a journal has no record")
        return read_record(self.journal.connection, self.journal.path)

    # -------------------------------------------------- death and resurrection

    def _begin(self, journal: Journal) -> None:
        state = checkpoint.pack(self._state())
        header = {
            "classes": [scalar(label) for label in self.classes],
            "names": list(self.panel),
            "alone": self.alone,
            "predictors": {name: plain(predictor) for name, predictor in self.panel.items()},
            "monitors": {name: plain(monitor) for name, monitor in self.monitors.items()},
            "start": zlib.crc32(state),
            "created": time.time(),
        }
        known = journal.open(header)
        try:
            if known:
                self._go_on(journal)
            else:
                journal.keep(0, self._state())
        except (OSError, ValueError, LookupError, sqlite3.Error) as error:
            journal.close()
            raise JournalError(f"{journal.path} cannot be gone on with: {error}") from error
        except BaseException:
            journal.close()
            raise

    def _state(self) -> dict[str, Any]:
        """Return all that a restart needs beside the journal."""
        return {
            "asked": self.asked, "answered": self.answered, "expired": self.expired,
            "waiting": [waiting.event for waiting in self._waiting.values()],
            "numbers": [waiting.number for waiting in self._waiting.values()],
            "panel": self.panel, "monitors": self.monitors, "told": self.told,
            "last": None if self._last is None else encode_object(self._last),
            "run": None if self.journal is None else self.journal.token, "mark": self._mark,
        }  # fmt: skip

    def _keep(self, times: int = 1) -> None:
        """Write a checkpoint if it is time; one that cannot be written is missed, no more."""
        journal = self.journal
        if journal is None or journal.within or self._broken is not None:  # broken: nobody knows this state
            return
        if not journal.due(self._events, times):
            return
        try:
            journal.keep(self._events, self._state())
        except (OSError, ValueError, JournalError) as error:
            log.warning("no checkpoint of %s can be written: %s", journal.path, error)

    def _go_on(self, journal: Journal) -> None:
        """Go on from the last checkpoint that can be read, and learn again what came after it."""
        complaint: Exception | None = None
        for read, drop in journal.states(checkpoint.models(self.panel)):
            try:
                self._take(journal, read(), drop)
                break
            except (OSError, ValueError) as error:
                complaint = complaint or error
        else:
            if complaint is not None:
                log.warning("no checkpoint of %s can be read, and all is learned again: %s", journal.path, complaint)
        journal.kept(self._events)
        ids = {waiting.event: id for id, waiting in self._waiting.items()}
        for event in journal.after(self._events, self.answered, self.expired):
            self._happen_again(journal, event, ids)
        self._publish(journal, time.time())

    def _take(self, journal: Journal, state: Any, drop: Callable[[], None]) -> None:
        """Take over a checkpoint, or raise ValueError and change nothing."""
        if not isinstance(state, dict) or state.keys() != self._state().keys():
            raise ValueError("it is no checkpoint of a run")
        events = state["asked"] + state["answered"] + state["expired"]
        if state["run"] != journal.token or (events > 0 and journal.time_of(events) != state["mark"]):
            drop()  # of another run, or of a past of this one that power took away
            raise ValueError(f"it is that of another run, after {events} events")
        if {name: plain(one) for name, one in state["panel"].items()} != {n: plain(p) for n, p in self.panel.items()}:
            raise ValueError(f"it holds {state['panel']!r}")
        waiting = {}
        for event, number in zip(state["waiting"], state["numbers"], strict=True):
            question = journal.question(event)
            waiting[question.id] = self._read(question, number)
        self.asked, self.answered, self.expired = state["asked"], state["answered"], state["expired"]
        self.panel, self.monitors, self.told = state["panel"], state["monitors"], state["told"]
        self._waiting, self._mark = waiting, state["mark"]
        self._last = None if state["last"] is None else decode_object(bytes(state["last"]))
        self._memory = self._remembered()

    def _read(self, question: Question, number: int) -> Waiting:
        x = decode_object(question.x)
        predictions = decode(question.predictions, tuple(self.panel), self.classes)
        return Waiting(question.event, number, question.step, x, predictions)

    def _happen_again(self, journal: Journal, event: Question | Answer, ids: dict[int, int | str]) -> None:
        if event.event != self._events + 1:
            raise JournalError(f"{journal.path} must hold every event, and {self._events + 1} is missing")
        if isinstance(event, Question):
            waiting = self._read(event, self.asked + 1)
            # A proof that nothing has changed: the same question gets the same answer.
            if encode(self.panel.predict_one(waiting.x)) != event.predictions:
                raise JournalError(
                    f"{journal.path} must hold the predictions of this program with these parameters, and at event "
                    f"{event.event} holds another one: was it written by another version?"
                )
            self.asked += 1
            self._waiting[event.id], ids[event.event], self._last = waiting, event.id, waiting.x
            self._mark, self._memory = event.time, self._remembered()
            return
        if event.question not in ids or not (event.truth is None or 0 <= event.truth < len(self.classes)):
            raise JournalError(f"{journal.path} must hold answers to its questions, got {event}")
        self._mark = event.time
        id = ids.pop(event.question)
        if event.truth is None:
            self._give_up(id)
            return
        waiting, y = self._waiting[id], self.classes[event.truth]
        self.panel.check(waiting.x, y)
        rung, _ = self._learn(id, waiting, y, self._as_of_now(waiting))
        self._bulletin.note(self.answered, time.time(), rung, self.told, self.monitors)

    def close(self) -> None:
        """Write a last checkpoint and close the journal; questions go on waiting."""
        journal = self.journal
        if journal is None or self._broken == CLOSED:
            return
        try:
            if self._broken is None and not journal.within:
                self._bulletin.write(journal, self.answered, time.time(), self.told, self.monitors, last=True)
                self._keep(0)
        finally:
            self._broken = CLOSED
            journal.close()

    def __enter__(self) -> Online:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def plain(thing: Any) -> str:
    """Return the repr without addresses in memory, which no other process has."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
