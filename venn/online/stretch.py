"""Questions and answers that arrived together and go through the loops as one block: what comes of each, as in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venn.monitors.alarms import Alarm
from venn.monitors.class_drift import ClassDrift
from venn.monitors.drift import Drift
from venn.online.chain import AnswerRow, QuestionRow, copy_object, encode, encode_object
from venn.online.in_blocks import AT_A_TIME, InBlocks
from venn.online.journal import Journal, checked_id
from venn.online.restart import Bulletin, spacing
from venn.online.ripening import moment
from venn.online.run import Run, Waiting
from venn.show.view import figures_of

EXAMPLES, QUESTIONS, ANSWERS = "examples", "questions", "answers"
Rings = tuple[tuple[str, Alarm], ...]


class Happened(NamedTuple):
    """What came of an event: of a question, an answer, or a question with its answer."""

    id: int | str | None
    asked: int = 0  #: number of the question among all events; 0: none was asked
    answered: int = 0  #: number of the answer among all events; 0: none came, or it was refused
    said: Any = None  #: what `ask` returns
    rung: Rings = ()  #: the alarms, each with the name of what rang
    failure: Exception | None = None  #: why it was refused, or what failed after the answer was learned
    many: Any = None  #: what was said of the questions that were asked with it, by predictor; None: it was alone
    place: int = 0  #: of its question among these


class EventStep(NamedTuple):
    """A question, an answer, or both."""

    id: int | str
    x: Any
    y: Any
    code: int
    times: tuple[float, float]  # of the question, and of the answer
    events: int  # of how many events it consists


class Stretch:
    """The first of some events that go together: all questions, all answers, or questions each with its answer.

    It is what happens alongside a block of examples. Whatever watches sees each question and each answer in its turn,
    with the run and the other monitors as they are then.

    Parameters
    ----------
    run : Run
    journal : Journal or None
    bulletin : Bulletin
    events : sequence
        Each has an `x`, or a `y`, or both; and an `id`, and perhaps `at`.
    patience : int or None
    """

    def __init__(
        self, run: Run, journal: Journal | None, bulletin: Bulletin, events: Sequence[Any], patience: int | None
    ) -> None:
        self._run, self._journal, self._bulletin = run, journal, bulletin
        self._patience = patience
        self.kind = ""
        self.steps: list[EventStep] = []
        self._gather(events)
        self._waiting: list[Waiting] = []
        self._answers: list[AnswerRow] = []
        self._rung: list[tuple[Rings, Rings]] = []  # of each step: at its question, and at its answer
        self._points: list[tuple[int, float, dict[str, Any]]] = []  # steps that have one, and figures of monitors
        self._counts = {name: one.count for name, one in run.panel.monitors.items()}

    @property
    def events(self) -> int:
        """Number of events that go together, at least one: the first."""
        return max(1, sum(step.events for step in self.steps))

    # ------------------------------------------------------------------ what goes together

    @staticmethod
    def suits(run: Run) -> bool:
        """Whether a run can take blocks: nothing watches, chooses or gives up that has to be asked at each event."""
        panel = run.panel
        watchers = (*run.drifts.values(), *run.examples.values())
        return (
            isinstance(panel, InBlocks)
            and run.asked > 0  # the first object may be refused by what watches by default
            and run.labels is None
            and run.answering is None
            and run.ripening is None
            and not run.given
            and all(type(one) in (Drift, ClassDrift) for one in watchers)
            and panel.claims_alone
        )

    def _gather(self, events: Sequence[Any]) -> None:
        """Find the steps, up to one that does not go with the others, or that may be refused."""
        at, seen = 0, set[int | str]()
        while at < len(events) and len(self.steps) < AT_A_TIME:
            event, answer = events[at], events[at]
            x, y, count = getattr(event, "x", None), getattr(event, "y", None), 1
            if x is not None and y is None and at + 1 < len(events):
                following = events[at + 1]
                if _answers(following, event):
                    answer, y, count = following, following.y, 2
            kind = ANSWERS if x is None else (QUESTIONS if y is None else EXAMPLES)
            if self.kind not in ("", kind) or (kind == ANSWERS and y is None):
                break
            try:
                step = self._step(kind, event, answer, count, seen)
            except (TypeError, ValueError, OverflowError):  # it is said in its turn what is wrong with it
                break
            if step is None:
                break
            self.kind = kind
            self.steps.append(step)
            seen.add(step.id)
            at += count
        if self._journal is not None and self.kind in (EXAMPLES, QUESTIONS):
            known = self._journal.known([step.id for step in self.steps])
            if known:
                del self.steps[next(i for i, step in enumerate(self.steps) if step.id in known) :]

    def _step(self, kind: str, event: Any, answer: Any, count: int, seen: set[int | str]) -> EventStep | None:
        """Return a step; None, or an error, where it may be refused or does not go in a block."""
        run, given = self._run, getattr(event, "id", None)
        place = len(self.steps)
        if kind == ANSWERS:
            id = checked_id(given)
            if id in seen or id not in run.waiting:
                return None
            x = run.waiting[id].x
        else:
            id = run.asked + place + 1 if given is None else checked_id(given)
            oldest = next(iter(run.waiting.values())).number if run.waiting else run.asked + 1
            if id in seen or id in run.waiting:
                return None
            if self._patience is not None and run.asked + place + 1 - oldest >= self._patience:
                return None
            if not _numbers(event.x):
                return None
            x = copy_object(event.x)
        if not isinstance(x, np.ndarray) or (place and x.shape != self.steps[0].x.shape):
            return None
        if np.isinf(x).any() or (not run.panel.takes_gaps and np.isnan(x).any()):  # type: ignore[attr-defined]
            return None
        run.check(x)
        code = -1 if kind == QUESTIONS else run.panel.space.encode(answer.y)
        times = _time(event), _time(answer)
        return EventStep(id, x, None if kind == QUESTIONS else answer.y, code, times, count)

    # ------------------------------------------------------------------ what happens

    def happen(self) -> list[Happened] | None:
        """Let the events happen, up to one at which the model begins anew; None: they must be taken one by one."""
        run, panel = self._run, self._run.panel
        assert isinstance(panel, InBlocks)
        before = [run.waiting[step.id].predictions for step in self.steps] if self.kind == ANSWERS else []
        rows = panel.rows_of(np.array([step.x for step in self.steps]))
        codes = np.array([step.code for step in self.steps], np.int64)
        if self.kind == QUESTIONS:
            blocks = panel.say_block(rows)
            if blocks is None:
                return None
            said = self._one_by_one(blocks, len(rows))
            for i, each in enumerate(said):
                self._ask(i, each)
        else:
            found = panel.learn_block(rows, codes, self)
            if found is None:
                return None
            count, blocks = found
            said = self._one_by_one(blocks, count) if self.kind == EXAMPLES else []
            told = {name: [one[name] for one in before[:count]] for name in panel} if before else blocks
            self._tell(told, codes[:count])
        if self._journal is not None:
            self._write(said)
        return self._taken(said, blocks)

    def _one_by_one(self, blocks: Any, count: int) -> list[Any]:
        panel: Any = self._run.panel
        outlooks = panel.outlooks(blocks)
        return [outlooks.one(i) for i in range(count)]

    def room(self, done: int) -> int:
        """Return how many examples there are up to the next point of the curves, at which monitors are looked at."""
        if self._journal is None:
            return len(self.steps)
        step = self._run.answered + 1
        return spacing(step) - (step - 1) % spacing(step)

    def asked(self, i: int) -> None:
        """Ask the question of an example."""
        if self.kind == EXAMPLES:
            self._ask(i, {})
        else:
            self._waiting.append(self._run.waiting[self.steps[i].id])
            self._rung.append(((), ()))

    def calm(self, done: int, count: int) -> None:
        """Let questions and answers happen at which no monitor rings."""
        for i in range(done, done + count):
            self._run.ahead = done + count - i
            self.asked(i)
            self._run.ahead -= 1
            self._answer(i, {})
        self._look(done + count - 1)

    def answered(self, i: int) -> None:
        """Let the answer come to the question of an example, after which monitors may have rung."""
        rung = {}
        for name, one in self._run.panel.monitors.items():
            rung[name] = one.alarms[len(one.alarms) - (one.count - self._counts[name]) :]
            self._counts[name] = one.count
        self._answer(i, rung)
        self._look(i)

    def _ask(self, i: int, said: Any) -> None:
        run, step = self._run, self.steps[i]
        at = step.times[0]
        asked = Waiting(run.events + 1, run.asked + 1, run.answered, step.x, said, at)
        self._waiting.append(asked)
        rung = run.ask(step.id, asked, at)
        self._rung.append((_rings(rung), ()))
        if self._journal is not None and run.drifts:
            self._bulletin.ring(run.answered + 1, at, rung)

    def _answer(self, i: int, rung: dict[str, Any]) -> None:
        run, step = self._run, self.steps[i]
        at = step.times[1]
        self._answers.append(AnswerRow(run.events + 1, run.answered + 1, self._waiting[i].event, step.code, at))
        found = run.count_answer(step.id, step.y, at, rung)
        self._rung[i] = self._rung[i][0], _rings(found)
        if self._journal is not None:
            self._bulletin.ring(run.answered, at, found)

    def _look(self, i: int) -> None:
        """Keep what the monitors show, if the curves have a point here."""
        run = self._run
        if self._journal is not None and run.answered % spacing(run.answered) == 0:
            seen = run.figures()
            self._points.append((i, self.steps[i].times[1], seen))

    def _tell(self, blocks: Any, codes: Any) -> None:
        """Let the monitors of what was said take note of it, and draw the points of the curves."""
        run, done = self._run, 0
        scored = {name: told.scored(blocks[name], codes) for name, told in run.told.items()}
        first = run.answered - len(codes)
        for i, at, seen in (*self._points, (len(codes) - 1, 0.0, None)):
            for name, told in run.told.items():
                for _ in told.in_turn(scored[name].part(slice(done, i + 1))):
                    pass  # they have no evidence
            done = i + 1
            if seen is not None:
                figures = {name: figures_of(told.figures(), seen.get(name)) for name, told in run.told.items()}
                self._bulletin.draw(first + i + 1, at, figures)

    # ------------------------------------------------------------------ what is left

    def _write(self, said: list[Any]) -> None:
        """Write the questions and answers into the journal."""
        assert self._journal is not None
        questions = [
            QuestionRow(one.event, step.id, one.step, encode_object(one.x), encode(each), one.time)
            for one, step, each in zip(self._waiting, self.steps, said, strict=False)
        ]
        self._journal.happen(questions if self.kind != ANSWERS else [], self._answers)

    def _taken(self, said: list[Any], many: Any) -> list[Happened]:
        """Return what came of each event."""
        found = []
        for i, (question, answer) in enumerate(self._rung):
            step, event = self.steps[i], self._waiting[i].event
            answered = self._answers[i].event if self._answers else 0
            if self.kind == ANSWERS:
                found.append(Happened(step.id, answered=answered, rung=answer))
            elif step.events == 1:
                found.append(Happened(step.id, event, answered, said[i], (*question, *answer), None, many, i))
            else:
                found.append(Happened(step.id, event, 0, said[i], question, None, many, i))
                found.append(Happened(step.id, answered=answered, rung=answer))
        return found


def _answers(following: Any, event: Any) -> bool:
    """Whether an event is the answer to the question before it."""
    id, other = getattr(event, "id", None), getattr(following, "id", None)
    came = getattr(following, "x", None) is None and getattr(following, "y", None) is not None
    return came and id is not None and type(id) is type(other) and id == other


def _numbers(x: Any) -> bool:
    """Whether an object is a plain row of numbers, with no names that would have to be compared."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "fiu"
    return isinstance(x, list | tuple) and all(type(one) in (int, float) for one in x)


def _time(event: Any) -> float:
    at = getattr(event, "at", None)
    return time.time() if at is None else moment("at", at)


def _rings(rung: Sequence[Any]) -> Rings:
    return tuple((one.predictor, one.alarm) for one in rung)
