"""Between a run and its journal: what viewers see, whether both agree, and how a run goes on after a restart."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from venn.machines.reference_answers import AnotherModel
from venn.monitors.alarms import Alarm
from venn.monitors.kinds import kind_of
from venn.online import checkpoint
from venn.online.chain import PIECE, AnswerRow, JournalPlace, QuestionRow, decode, decode_many, decode_object, encode
from venn.online.checkpoint_writer import state_file
from venn.online.journal import Anew, Journal, JournalError
from venn.online.lot import JUDGED
from venn.online.run import REFUSALS, Run, Rung, Waiting
from venn.online.watch import EPISODES
from venn.prediction import Prediction
from venn.saved import described
from venn.show.view import figures_of

# ---------------------------------------------------------------------------------------------------------- run
# snapshot What a run shows to viewers: alarms, points of its curves, the latest figures.

FINEST, OCTAVE = 8, 512  # the curves have a point every FINEST steps, after OCTAVE of them half as many, and so on
FRESH = 0.5  # least seconds between two writes of the latest figures, where points of the curves are rarer


def spacing(step: int) -> int:
    """Return the number of steps from one point of the curves to the next: some thousand points in a million steps."""
    return FINEST if step < OCTAVE * FINEST else 1 << ((step // OCTAVE).bit_length() - 1)


class RunSnapshot:
    """Gathers what viewers see of a run, and writes it into the journal when something is due.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._alarms: list[tuple[str, int, int, float, Alarm]] = []  # not yet written
        self._points: list[tuple[int, float, dict[str, Any]]] = []
        self._shown = -FRESH  # when the latest figures were written, by the monotonic clock
        self._events = -1  # of the run, at that time

    def note(self, now: float, rung: list[Rung]) -> None:
        """Record the alarms of the latest answer, and its point of the curves if it has one."""
        run, step = self._run, self._run.answered
        self.ring(step, now, rung)
        if step % spacing(step) == 0:
            seen = run.figures()
            figures = {name: figures_of(told.figures(), seen.get(name)) for name, told in run.told.items()}
            self.draw(step, now, figures)

    def draw(self, step: int, now: float, figures: dict[str, Any]) -> None:
        """Record a point of the curves."""
        self._points.append((step, now, figures))

    def ring(self, step: int, now: float, rung: list[Rung]) -> None:
        """Record the alarms of a step."""
        self._alarms += [(name, number, step, now, alarm) for name, number, alarm in rung]

    def compare(self, journal: Journal) -> None:
        """Raise unless the alarms found here are those of the journal: rounding on another machine may move them."""
        rung = [(name, number, step) for name, number, step, _, _ in self._alarms]
        there = set(journal.alarms())
        numbers = {(name, number) for name, number, _ in there}
        other = [one for one in rung if one[:2] in numbers and one not in there]
        other += [one for one in there if one[1] > self._run.rings.get(one[0], 0)]
        if other:
            name, number, step = min(other, key=lambda one: one[2])
            raise JournalError(
                f"{journal.path} must hold the alarms that its predictions ring here, which are rounded otherwise, and "
                f"alarm {number} of {name}, at step {step}, differs"
            )

    def due(self) -> bool:
        """Whether there is something to write."""
        return bool(self._alarms or self._points) or self._late

    @property
    def _late(self) -> bool:
        """Whether the latest figures are old."""
        return self._run.events != self._events and time.monotonic() - self._shown >= FRESH

    def write(self, journal: Journal, now: float, last: bool = False) -> None:
        """Write what is due, or everything at the `last` moment of a run; what cannot be written waits."""
        told, monitors = self._run.told, self._run.monitors
        # With an alarm always: nothing may come after it for long, and the verdict must not be older than it.
        late = last or bool(self._alarms) or self._late
        with journal:
            for alarm in self._alarms:
                journal.ring(*alarm)
            for point in self._points:
                journal.draw(*point)
            for name in (*told, *(monitors.keys() - told.keys())) if late else ():
                said = self._run.seen(name) if name in told else None
                journal.show(name, self._run.answered, now, {"told": said, "monitor": self._run.watched(name)})
            if late and (episodes := self._run.episodes()):
                journal.show(EPISODES, self._run.answered, now, [one.plain() for one in episodes])
        if late:
            self._shown, self._events = time.monotonic(), self._run.events
        self._alarms.clear()
        self._points.clear()


# ------------------------------------------------------------------------------------------------------------ run guard
# Whether a run in memory is as its journal says, or what has broken it.

INTERRUPTED, UNWRITTEN, CLOSED = "was interrupted", "could not write its journal", "is closed"

# Classes, as what `contextmanager` makes costs a twentieth of a quick step.


class RunGuard:
    """Keeps memory and journal in agreement around each event, and says what has broken a run.

    An event counts wholly or not at all; otherwise the run is broken.

    Parameters
    ----------
    journal : Journal, optional

    Attributes
    ----------
    broken : str or None
        What happened to the run, so that it can go on from its journal only.
    trying : Trying
        Around what can be refused, before an event.
    """

    def __init__(self, journal: Journal | None) -> None:
        self.broken: str | None = None
        self.trying = Trying(self)
        self._journal = journal
        self._inside = False

    def __enter__(self) -> None:
        self.broken = INTERRUPTED
        self._inside = self._journal is not None and self._journal.within

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or isinstance(error, ValueError):  # refused before anything was written
            self.broken = None
        elif isinstance(error, JournalError):
            # In a transaction: earlier events in it are learned, but will not be written.
            self.broken = UNWRITTEN if self._inside else None


class Trying:
    """Marks the run as broken after any exception but a refusal: an interrupt leaves machines in an unknown state."""

    def __init__(self, guard: RunGuard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and not isinstance(error, REFUSALS):
            self._guard.broken = INTERRUPTED


# -------------------------------------------------------------------------------------------------------------- restart
# Restart a run from its journal: the last readable checkpoint, then all later events again.

log = logging.getLogger("venn")

NEAR = 1e-9  # how far apart predictions may be, where the largest of their numbers is 1


class OtherPredictions(JournalError):
    """Raised where the predictors of a run predict something else than its journal holds."""


def begin_anew(run: Run, journal: Journal, snapshot: RunSnapshot, header: dict[str, Any]) -> None:
    """Bring a new run to the end of a journal of other predictors; its own predictors begin to learn there.

    Open questions stay open, and watchers of objects and examples continue.

    Raises
    ------
    JournalError
        The journal is damaged.
    """
    alarms: dict[str, int] = {}
    for name, number, _ in journal.alarms():
        if name in run.by_predictor:
            alarms[name] = max(number, alarms.get(name, 0))
    events = journal.events
    answered = journal.connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    anew = Anew(events, answered, header, alarms)
    _go_through(run, journal, snapshot, anew)
    journal.begin_anew(anew)
    log.warning("calibration in %s begins anew after %d examples, with another fitted model", journal.path, answered)


def _go_through(run: Run, journal: Journal, snapshot: RunSnapshot, anew: Anew | None) -> float:
    """Repeat the events of the journal that the run has not seen. Events before `anew` teach no predictor.

    Return the largest difference of the journal's predictions from those made here.
    """
    ids = {waiting.event: id for id, waiting in run.waiting.items()}
    if anew is not None and run.events == 0:
        run.begin_alarms(anew.alarms)
    farthest = 0.0
    for event in journal.after(JournalPlace(run.asked, run.answered, run.expired)):
        farthest = max(farthest, happen_again(run, journal, snapshot, event, ids, anew))
    return farthest


def go_on(run: Run, journal: Journal, snapshot: RunSnapshot) -> None:
    """Bring a run that has seen nothing to the state that its journal describes.

    Raises
    ------
    JournalError
        The journal does not hold what this run would have done.
    """
    complaint: Exception | None = None
    models, anew = checkpoint.models(run.panel), journal.anew
    for file in journal.checkpoints.files():
        try:
            _take(run, journal, file, models, anew)
            break
        except AnotherModel:
            raise
        except (OSError, ValueError) as error:
            complaint = complaint or error
    else:
        if complaint is not None:
            log.warning("no checkpoint of %s can be read, and all is learned again: %s", journal.path, complaint)
    journal.checkpoints.kept(run.events)
    farthest = _go_through(run, journal, snapshot, anew)
    if run.rounded:
        snapshot.compare(journal)
        log.warning(
            "%s: %d predictions are rounded otherwise here, by %.1g at most, as another machine, library or number of "
            "threads does it: the run goes on, and what was said stands", journal.path, run.rounded, farthest
        )  # fmt: skip


def _take(run: Run, journal: Journal, file: Path, models: list[Any], anew: Anew | None) -> None:
    """Take over a checkpoint, or raise ValueError and change nothing."""
    if anew is not None and file < state_file(file.with_name(file.name.rpartition("-state-")[0]), anew.events):
        raise ValueError("it is that of another scorer")
    state = checkpoint.load(file, models)
    if not isinstance(state, dict) or state.keys() != run.state().keys():
        raise ValueError("it is no checkpoint of a run")
    place = JournalPlace(state["asked"], state["answered"], state["expired"])
    if state["run"] != journal.token or state["last"] != journal.checksum_at(place):
        if state["run"] == journal.token and place.events > journal.events:
            log.warning(
                "%s: it ends after event %d, and a checkpoint is of event %d: what came last is lost",
                journal.path, journal.events, place.events,
            )  # fmt: skip
        file.unlink(missing_ok=True)  # it belongs to another run, or to events that this journal has lost
        raise ValueError(f"it is that of another run, after {place.events} events")
    # A model that has begun anew has other parts than a fresh one, but the same parameters.
    if described(state["panel"]) != described(run.panel):
        raise ValueError(f"it holds {state['panel']!r}")
    waiting, numbers = {}, iter(state["numbers"])
    for at in range(0, len(state["waiting"]), PIECE):
        part = journal.some(state["waiting"][at : at + PIECE])
        each = decode_many([one.predictions for one in part], tuple(run.panel), run.panel.space)
        for question, predictions in zip(part, each, strict=True):
            waiting[question.id] = _read(question, predictions, next(numbers), anew)
    run.restore(state, waiting)


def _read(question: QuestionRow, predictions: dict[str, Prediction], number: int, anew: Anew | None) -> Waiting:
    # Predictions from before the predictors began anew differ from theirs now, even if no label has come since.
    before = anew is not None and question.event <= anew.events
    step = min(question.step, anew.answered - 1) if anew is not None and before else question.step
    return Waiting(question.event, number, step, decode_object(question.x), predictions, question.time)


def happen_again(
    run: Run,
    journal: Journal,
    snapshot: RunSnapshot,
    event: QuestionRow | AnswerRow,
    ids: dict[int, int | str],
    anew: Anew | None = None,
) -> float:
    """Repeat an event of the journal; `ids` are those of the waiting questions, by event.

    Return the difference of the journal's predictions from those made here.
    """
    passed = anew is not None and event.event <= anew.events
    if event.event != run.events + 1:
        raise JournalError(f"{journal.path} must hold every event, and {run.events + 1} is missing")
    if isinstance(event, QuestionRow):
        said = decode(event.predictions, tuple(run.panel), run.panel.space)
        waiting = _read(event, said, run.asked + 1, anew)
        if not run.asked:
            run.check(waiting.x)
        # This proves that nothing has changed: the same question gets the same answer, but for rounding. What was said
        # stands, so that later checksums and the curves of what was said do not depend on where the run goes on.
        found = event.predictions if passed else encode(run.panel.predict_one(waiting.x))
        off = 0.0 if found == event.predictions else _apart(run, waiting.predictions, found)
        run.rounded += off > 0
        if off > NEAR:
            raise OtherPredictions(
                f"{journal.path} must hold the predictions of this program with these parameters, and at event "
                f"{event.event} holds another one. If another version of venn wrote it, go on with that one; or keep "
                "it, for venn report and venn export read it, and begin a new journal with what venn export writes"
            )
        ids[event.event] = event.id
        judged = journal.position(f"{JUDGED}{event.event:015d}") if run.judged else None
        snapshot.ring(run.answered + 1, time.time(), run.ask(event.id, waiting, event.time, judged))
        return off
    if event.question not in ids:
        raise JournalError(f"{journal.path} must hold answers to its questions, got {event}")
    id = ids.pop(event.question)
    if event.truth is None:
        before = len(run.rung)
        run.give_up(id, event.time)
        snapshot.ring(run.answered + 1, time.time(), run.rung[before:])
        return 0.0
    waiting, y = run.waiting[id], run.panel.space.decode(event.truth)
    if passed:
        run.pass_over(id, y, event.time)
        return 0.0
    prepared = run.prepare(waiting, y)
    rung, _ = run.learn(id, y, run.as_of_now(waiting), event.time, prepared)
    snapshot.note(time.time(), rung)
    return 0.0


def _apart(run: Run, said: Mapping[str, Prediction], found: bytes) -> float:
    """Return the largest difference of predictions from encoded ones, over all predictors."""
    return apart(said, decode(found, tuple(run.panel), run.panel.space))


def apart(said: Mapping[str, Prediction], others: Mapping[str, Prediction]) -> float:
    """Return the largest difference of predictions from others of the same names."""
    kinds = {name: kind_of(one) for name, one in said.items()}
    if any(kind_of(others[name]) is not kind for name, kind in kinds.items()):
        return math.inf
    return max(kind.apart(said[name], others[name]) for name, kind in kinds.items())
