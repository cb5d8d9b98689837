"""Questions and answers that arrived together go through the loops as one block, with the results of one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from venn.monitors.alarms import Alarm
from venn.monitors.class_drift import ClassDrift
from venn.monitors.drift import Drift
from venn.monitors.rankings import plain
from venn.online.chain import NUMBER, AnswerRow, QuestionRow, encode_many
from venn.online.in_blocks import AT_A_TIME, InBlocks
from venn.online.journal import Journal, checked_id
from venn.online.restart import RunSnapshot, spacing
from venn.online.ripening import moment
from venn.online.run import OFTEN, Run, Waiting
from venn.predictors.blocks import Many, block_of, dumps
from venn.show.view import figures_of

EXAMPLES, QUESTIONS, ANSWERS = "examples", "questions", "answers"
Rings = tuple[tuple[str, Alarm], ...]


class SaidTogether:
    """Predictions for questions that were asked together; their plain form is made once for all."""

    def __init__(self, outlooks: Any) -> None:
        self._outlooks = outlooks

    def one(self, i: int) -> Any:
        """Return what `ask` returns of question i."""
        return self._outlooks.one(i)

    @cached_property
    def each(self) -> list[dict[str, Any]]:
        """The predictions for each question by name."""
        columns = [block.each() if isinstance(block, Many) else list(block) for block in self._outlooks.values()]
        return [dict(zip(self._outlooks, row, strict=True)) for row in zip(*columns, strict=True)]

    @cached_property
    def _plain(self) -> dict[str, list[dict[str, Any]]]:
        return {name: block.plain() for name, block in self._outlooks.items()}

    def plain(self, i: int) -> dict[str, dict[str, Any]]:
        """Return the same as plain data."""
        return {name: each[i] for name, each in self._plain.items()}

    @cached_property
    def _json(self) -> list[str]:
        named = [[f"{dumps(name)}: {one}" for one in block.json()] for name, block in self._outlooks.items()]
        return [f"{{{', '.join(each)}}}" for each in zip(*named, strict=True)]

    def json(self, i: int) -> str:
        """Return the JSON of the same."""
        return self._json[i]


class Happened(NamedTuple):
    """What came of an event: a question, an answer, or both."""

    id: int | str | None
    asked: int = 0  #: number of the question among all events; 0: none was asked
    answered: int = 0  #: number of the answer among all events; 0: none came, or it was refused
    rung: Rings = ()  #: the alarms, each with the name of what rang
    failure: Exception | None = None  #: why it was refused, or what failed after the answer was learned
    alone: Any = None  #: what `ask` has returned, where it was asked alone
    many: SaidTogether | None = None  #: predictions for all questions asked with it; None if it was alone
    place: int = 0  #: place of its question among these

    @property
    def said(self) -> Any:
        """What `ask` returns; None where nothing was asked."""
        return self.alone if self.many is None else self.many.one(self.place)


class EventStep(NamedTuple):
    """A question, an answer, or both."""

    id: int | str
    x: Any
    y: Any
    code: int
    times: tuple[float, float]  # of the question, and of the answer
    events: int  # number of its events


class Stretch:
    """The first of some events that go together: all questions, all answers, or questions each with its answer.

    It runs alongside a block of examples: each watcher sees each question and each answer in turn, with the run and the
    other monitors as they are at that moment.

    Parameters
    ----------
    run : Run
    journal : Journal or None
    snapshot : RunSnapshot
    events : sequence
        Each has an `x`, or a `y`, or both; and an `id`, and perhaps `at`.
    patience : int or None
    """

    def __init__(
        self, run: Run, journal: Journal | None, snapshot: RunSnapshot, events: Sequence[Any], patience: int | None
    ) -> None:
        self._run, self._journal, self._snapshot = run, journal, snapshot
        self._patience = patience
        self.kind = ""
        self.steps: list[EventStep] = []
        self._gather(events)
        self._many: Any = None
        self._asked: list[int] = []  # events of the questions
        self._answered: list[int] = []  # events of the answers
        self._rung: dict[tuple[int, str], Rings] = {}  # by step: at its question, or at its answer
        self._points: list[
            tuple[int, float, dict[str, Any]]
        ] = []  # steps with a point of the curves, and the monitors' figures there
        self._counts = {name: one.count for name, one in run.panel.monitors.items()}

    @property
    def events(self) -> int:
        """Number of events that go together, at least one: the first."""
        return max(1, sum(step.events for step in self.steps))

    # ------------------------------------------------------------------ what goes together

    @staticmethod
    def suits(run: Run) -> bool:
        """Whether a run can take blocks: it has no watcher, account or patience that must be asked at each event."""
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
        """Find the steps, up to the first that does not fit in or may be refused."""
        at, seen, run = 0, set[int | str](), self._run
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
            except (TypeError, ValueError, OverflowError):  # errors are raised in turn
                break
            if step is None:
                break
            self.kind = kind
            self.steps.append(step)
            seen.add(step.id)
            at += count
        known: set[int | str] = set()
        if self._journal is not None and self.kind in (EXAMPLES, QUESTIONS):
            known = self._journal.known([step.id for step in self.steps])
        rows = np.array([step.x for step in self.steps], NUMBER)
        fine = plain(rows, run.panel.takes_gaps) if len(rows) else np.empty(0, bool)  # type: ignore[attr-defined]
        stop = (i for i, step in enumerate(self.steps) if not fine[i] or step.id in known)
        del self.steps[next(stop, len(self.steps)) :]
        self._rows = rows[: len(self.steps)]
        watched = (*run.drifts.values(), *run.examples.values())
        self._takes = bool(self.steps) and all(one.takes(self._rows) for one in watched)
        if self.steps and not self._takes:
            self._check(watched)

    def _check(self, watched: Sequence[Any]) -> None:
        """Cut the steps before the first that a watcher may refuse."""
        for i, row in enumerate(self._rows):
            try:
                self._run.check(row)
            except (TypeError, ValueError):
                del self.steps[i:]
                self._rows = self._rows[:i]
                return

    def _step(self, kind: str, event: Any, answer: Any, count: int, seen: set[int | str]) -> EventStep | None:
        """Return a step; None or an error if it may be refused or does not go in a block."""
        run, id = self._run, getattr(event, "id", None)
        place = len(self.steps)
        if kind == ANSWERS:
            id = checked_id(id)
            if id in seen or id not in run.waiting:
                return None
            x = run.waiting[id].x
            if not isinstance(x, np.ndarray):
                return None
        else:
            id = run.asked + place + 1 if id is None else checked_id(id)
            if id in seen or id in run.waiting or not _numbers(event.x):
                return None
            if self._patience is not None:
                oldest = next(iter(run.waiting.values())).number if run.waiting else run.asked + 1
                if run.asked + place + 1 - oldest >= self._patience:
                    return None
            x = event.x if isinstance(event.x, np.ndarray) else np.array(event.x, NUMBER)
        if not len(x) or (place and len(x) != len(self.steps[0].x)):
            return None
        code = -1 if kind == QUESTIONS else run.panel.space.encode(answer.y)
        asked = _time(event)
        times = asked, asked if answer is event else _time(answer)
        return EventStep(id, x, None if kind == QUESTIONS else answer.y, code, times, count)

    # ------------------------------------------------------------------ what happens

    def happen(self) -> list[Happened] | None:
        """Process the events, up to one at which the model begins anew; None if they must be taken one by one."""
        run, panel = self._run, self._run.panel
        assert isinstance(panel, InBlocks)
        before = [run.waiting[step.id] for step in self.steps] if self.kind == ANSWERS else []
        self._questions = [one.event for one in before]  # of the answers
        rows = panel.rows_of(self._rows)
        self._codes = np.array([step.code for step in self.steps], np.int64)
        self._seen = dict.fromkeys((*run.drifts, *run.examples), 0)  # rows that each has seen
        if self.kind == QUESTIONS:
            blocks = panel.say_block(rows)
            if blocks is None:
                return None
            self._many = SaidTogether(panel.outlooks(blocks))
            self._through(0, len(rows))
        else:
            found = panel.learn_block(rows, self._codes, self)
            if found is None:
                return None
            count, blocks = found
            self._many = SaidTogether(panel.outlooks(blocks)) if self.kind == EXAMPLES else None
            told = blocks
            if before:
                told = {name: block_of([one.predictions[name] for one in before[:count]]) for name in panel}
            self._tell(told, self._codes[:count])
        run.ahead = {}
        if self._journal is not None:
            self._write(blocks)
        return self._taken()

    def looked(self, count: int) -> list[int]:
        """Return after how many of the next examples the curves have a point."""
        if self._journal is None:
            return []
        first = self._run.answered
        return [step - first for step in range(first + 1, first + count + 1) if step % spacing(step) == 0]

    def asked(self, i: int) -> None:
        """Ask the question of an example."""
        if self.kind == EXAMPLES:
            self._ask(i)

    def calm(self, done: int, count: int, shown: dict[str, list[Any]]) -> None:
        """Process questions and answers at which no monitor rings."""
        for place, number in enumerate(self.looked(count)):
            i = done + number - 1
            self._points.append((i, self.steps[i].times[1], {name: each[place] for name, each in shown.items()}))
        self._through(done, done + count)

    def answered(self, i: int) -> None:
        """Let the answer come to the question of an example, after which monitors may have rung."""
        rung = {}
        for name, one in self._run.panel.monitors.items():
            rung[name] = one.alarms[len(one.alarms) - (one.count - self._counts[name]) :]
            self._counts[name] = one.count
        self._answer(i, rung)
        self._look(i)

    # ------------------------------------------------------------------ what watches

    def _through(self, i: int, end: int) -> None:
        """Process steps at which no monitor of predictions rings; watchers of objects and examples may."""
        run, each = self._run, 2 if self.kind == EXAMPLES else 1
        while i < end:
            stop, last = self._watch(i, end), i + OFTEN - run.events % OFTEN
            if eventful := run.eventful:  # the run looks at all changes now and then, after an event
                stop = min(stop, last if each == 1 else (i + last - 1) // 2)
            self._pass(i, stop)
            i = stop
            if eventful and each == 1 and i == last:
                self._beyond(i - 1, 0 if self.kind == QUESTIONS else end, self.kind == ANSWERS)
                run.place()
            elif i < end:
                if self.kind != ANSWERS:
                    self._ask(i, end if self.kind == EXAMPLES else 0)
                if self.kind != QUESTIONS:
                    self._answer(i, {}, end)
                i += 1

    def _watch(self, i: int, end: int) -> int:
        """Show watchers the rows from i on, up to the first that needs a closer look; return that row."""
        stop, run = end, self._run
        for name, one in (*run.drifts.items(), *run.examples.items()):
            if one.sees == ("examples" if self.kind == QUESTIONS else "objects" if self.kind == ANSWERS else ""):
                continue
            if self._seen[name] <= i:
                codes = () if one.sees == "objects" else (self._codes[i:end],)
                self._seen[name] = i + (one.go(self._rows[i:end], *codes) if self._takes else 0)
            stop = min(stop, self._seen[name] - one.pending)
        return stop

    def _see(self, i: int, name: str, one: Any, *seen: Any) -> tuple[Alarm, ...]:
        """Return a watcher's alarms at row i, which it may have seen already."""
        if self._seen[name] <= i:
            self._seen[name] = i + 1
            alarms: tuple[Alarm, ...] = one.update(*seen)
            return alarms
        return one.tell() if one.pending and self._seen[name] == i + 1 else ()

    def _beyond(self, i: int, told: int, answered: bool) -> None:
        """Tell the run how many steps each watcher has seen beyond the question, or the answer, of row i."""
        run = self._run
        run.ahead = dict.fromkeys(run.panel.monitors, max(told - i - answered, 0))
        for name, one in (*run.drifts.items(), *run.examples.items()):
            run.ahead[name] = max(self._seen[name] - i - (answered or one.sees == "objects"), 0)

    # ------------------------------------------------------------------ one by one, and many

    def _ask(self, i: int, told: int = 0) -> None:
        """Ask the question of row i, when monitors of predictions have seen so many rows."""
        run, step = self._run, self.steps[i]
        self._beyond(i, told, False)
        said = self._many.one(i) if self.kind == QUESTIONS else {}
        asked = self._question(i, said)
        self._asked.append(asked.event)
        rung = run.ask(step.id, asked, step.times[0], see=partial(self._see, i))
        if run.failure is not None:
            raise run.failure
        if rung:
            self._rung[i, QUESTIONS] = _rings(rung)
        if self._journal is not None and run.drifts:
            self._snapshot.ring(run.answered + 1, step.times[0], rung)

    def _question(self, i: int, said: Any) -> Waiting:
        run, step = self._run, self.steps[i]
        return Waiting(run.events + 1, run.asked + 1, run.answered, self._rows[i].copy(), said, step.times[0])

    def _answer(self, i: int, rung: dict[str, Any], told: int = 0) -> None:
        run, step = self._run, self.steps[i]
        self._beyond(i, told, True)
        found = run.count_answer(step.id, step.y, step.times[1], rung, partial(self._see, i))
        self._answered.append(run.events)
        if found:
            self._rung[i, ANSWERS] = _rings(found)
        if self._journal is not None:
            self._snapshot.ring(run.answered, step.times[1], found)

    def _pass(self, start: int, stop: int) -> None:
        """Process steps at which nothing rings and no figures are due."""
        run, steps, each = self._run, self.steps[start:stop], 2 if self.kind == EXAMPLES else 1
        if not steps:
            return
        events = run.events + 1
        if self.kind != ANSWERS:
            self._asked += range(events, events + each * len(steps), each)
            said = self._many.each[start:stop] if self.kind == QUESTIONS else [{}]
            first = 0 if self.kind == QUESTIONS else len(steps) - 1  # others keep no figures
            waiting = [
                Waiting(events + each * k, run.asked + 1 + k, run.answered + k * (each - 1),
                        self._rows[start + k].copy(), said[k - first], steps[k].times[0])
                for k in range(first, len(steps))
            ]  # fmt: skip
            run.pass_questions([(step.id, step.times[0]) for step in steps], waiting, self.kind == QUESTIONS)
        if self.kind != QUESTIONS:
            self._answered += range(events + each - 1, events + each * len(steps), each)
            run.pass_answers([(step.id, step.times[1]) for step in steps], self.kind == ANSWERS)

    def _look(self, i: int) -> None:
        """Keep what the monitors show, if the curves have a point here."""
        run = self._run
        if self._journal is not None and run.answered % spacing(run.answered) == 0:
            seen = run.figures()
            self._points.append((i, self.steps[i].times[1], seen))

    def _tell(self, blocks: Any, codes: Any) -> None:
        """Update the curves of the predictions as they were made, and draw their points."""
        run, first = self._run, self._run.answered - len(codes)
        looked, told = [i + 1 for i, _, _ in self._points], {}
        for name, one in run.told.items():  # they have no evidence, and never ring
            told[name] = one.go_on(one.scored(blocks[name], codes), looked)
        for place, (i, at, seen) in enumerate(self._points):
            figures = {name: figures_of(each[place], seen.get(name)) for name, each in told.items()}
            self._snapshot.draw(first + i + 1, at, figures)

    # ------------------------------------------------------------------ what is left

    def _write(self, blocks: Any) -> None:
        """Write the questions and answers into the journal."""
        assert self._journal is not None
        answered = self._run.answered - len(self._answered)
        late = self.kind == EXAMPLES
        questions = [
            QuestionRow(event, step.id, answered + late * i, x.tobytes(), said, step.times[0])
            for i, (event, step, x, said) in enumerate(
                zip(self._asked, self.steps, self._rows, encode_many(blocks) if self._asked else (), strict=False)
            )
        ]
        answers = [
            AnswerRow(event, answered + i, question, step.code, step.times[1])
            for i, (event, question, step) in enumerate(
                zip(self._answered, self._asked or self._questions, self.steps, strict=False), 1
            )
        ]
        self._journal.happen(questions, answers)

    def _taken(self) -> list[Happened]:
        """Return what came of each event."""
        found = []
        for i, step in enumerate(self.steps[: max(len(self._asked), len(self._answered))]):
            asked = self._asked[i] if self._asked else 0
            answered = self._answered[i] if self._answered else 0
            question, answer = self._rung.get((i, QUESTIONS), ()), self._rung.get((i, ANSWERS), ())
            if not asked:
                found.append(Happened(step.id, answered=answered, rung=answer))
            elif step.events == 1:
                found.append(Happened(step.id, asked, answered, (*question, *answer), None, None, self._many, i))
            else:
                found.append(Happened(step.id, asked, 0, question, None, None, self._many, i))
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
    return isinstance(x, list | tuple) and not set(map(type, x)) - {int, float}


def _time(event: Any) -> float:
    at = getattr(event, "at", None)
    return time.time() if at is None else moment("at", at)


def _rings(rung: Sequence[Any]) -> Rings:
    return tuple((one.predictor, one.alarm) for one in rung)
