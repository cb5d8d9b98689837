"""The loop for endless streams: questions, labels that come late or never, a process that may die."""

from __future__ import annotations

import copy
import logging
import os
import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import takewhile
from typing import Any

from venn.machines.reference_answers import AnotherModel
from venn.machines.tables import is_gap
from venn.monitors.alarms import Alarm
from venn.monitors.episodes import Episode, Episodes
from venn.monitors.monitor import Monitor
from venn.monitors.notebook import table
from venn.monitors.shared_level import beside
from venn.monitors.verdict import Verdict, worst
from venn.monitors.watching import Watches
from venn.online import checkpoint
from venn.online.account import Account
from venn.online.chain import FEATURES, QuestionRow, copy_object, encode, encode_object
from venn.online.in_blocks import FEW
from venn.online.journal import HOW, OF_SCORER, TOLD, Journal, JournalError, checked_id
from venn.online.lot import JUDGED, Asked, Lot, judged_by
from venn.online.panel import Panel, panel_of
from venn.online.record import Record
from venn.online.replaying import at_hand, parts_of
from venn.online.restart import (
    CLOSED,
    INTERRUPTED,
    UNWRITTEN,
    OtherPredictions,
    RunGuard,
    RunSnapshot,
    begin_anew,
    go_on,
)
from venn.online.ripening import Report, Ripening, moment
from venn.online.run import REFUSALS, Run, Rung, Waiting
from venn.online.selective import Selective, SelectiveAnswer
from venn.online.stretch import Happened, Stretch
from venn.online.watch import ENDED, read_record
from venn.parameters import flag, integer
from venn.prediction import Label
from venn.predictors.learning import Predictor, names_among
from venn.saved import described
from venn.show.notify import teller
from venn.turns import TakesTurns, asks, changes, turn_of

LATEST = 1000  # news of episodes that are kept
PATIENT = 10  # a question waits this many times longer with a checkpoint: it should be quick
log = logging.getLogger("venn")


class Online(TakesTurns):
    """A predictor in service: it answers questions about objects and learns their labels whenever these come.

    Any number of questions may wait; answers come in any order or never. Examples are learned in the order of the
    answers. With a journal the process may be killed at any moment: made again with the same parameters and the same
    journal, it continues where it was, to the last bit. On another machine, where numbers are rounded otherwise, it
    goes on as well, and says so once, if what it predicts agrees to nine digits. If the source of events then starts
    again from the beginning, `follow(events, again=True)` skips what the journal holds.

    What is valid when labels come late. Each single prediction is valid when it is made, on exchangeable data, if
    *which* examples are labelled, and when, does not depend on their objects and labels: the labelled examples and the
    new one are then exchangeable. This is not so for sums over a stream of such predictions: predictions made between
    two answers share their examples, so departures of successive steps are not independent. The bounds for sums (the
    band around the accuracy, binomial numbers of errors) are theorems only if each answer comes before the next
    question. Conformal predictors keep their error rate in the long run even under slow and lazy teachers, if examples
    are independent and labels come on more than a logarithmic share of the steps (Nouretdinov & Vovk 2006).

    The monitors receive what their theorems need: the prediction that the predictor would make for the object *now*,
    when its label comes, from all labels learned before. The labelled examples, in the order of their answers, are an
    exchangeable stream with immediate answers, so a monitor's false alarms are as rare as ever. If what is labelled, or
    when, depends on objects or labels (fraud is confirmed sooner than its absence), none of this holds.

    Parameters
    ----------
    predictor : Predictor, Panel or Selective
        With what it had learned when the journal began, and no more: each process makes it so. If the journal holds a
        run, that run continues: see `panel`.
    monitor : Monitor, another Watches, or mapping of str to these, optional
        A monitor for a single predictor, or by name for some in a panel; each has seen nothing yet. A `Forecaster`
        brings its own, whose places those of the same names take. A `Drift`, alone or under a name that no predictor
        has, watches the objects: it gets each as it is asked about, and rings before labels come. A
        `ClassDrift` watches the examples: it gets each when its label comes. A `FloorWatch` gets the loss of each
        prediction as it was given.
        `venn.monitors.together` makes them so that they share one level. So does any `Watches` of your own.
    journal : Journal, str or path, optional
        None: nothing is kept, and an id can be used again once its question no longer waits.
    patience : int >= 1, optional
        A question is given up when this many later ones have been asked. None: it waits for ever.
    watch : bool, default True
        Whether a `Forecaster`, where no `monitor` is given, has its objects, their columns and the classes watched, as
        `venn run` does. If the first object cannot be, such as a sparse one, a warning says so, and they are left out.
    on_alarm : callable, command or address, optional
        Who is told of an episode: once as it begins, once as its columns or its kind become known, and as it ends. A
        callable takes the `Episode`, a command (text or a sequence of texts) and an address (http or https) get it as
        JSON: see docs/monitoring.md. An `Online` never waits for a command or an address.
    labels : Lot, optional
        Asks for the labels of some questions only, by lot. A question whose label is not drawn is given up at once:
        its prediction is all that is kept.
    judge : callable, optional
        With `labels` and a floor: predicts the loss of each question, so that an alarm needs fewer labels. It is called
        once for each question, with the object and what `ask` returns of it, and what it says stands in the journal: a
        number in [0, 1], or a probability for each class, as a list or by label. The floor's promise does not depend on
        it: see `Lot`.
    ripe : int >= 1 or timedelta, optional
        Labels ripen: what is answered is kept, and counts when so many later questions have been asked, or so much time
        has passed. Then each question gets its label, in the order of the questions, the latest that came by then. What
        comes later is counted, and never learned. The clock is the latest time that questions or answers brought
        (`at`), or else the time of day; it never goes back. So it does not matter which labels come sooner: everything
        is as in a stream whose labels all come when they are ripe.
    silent : label, optional
        With `ripe`: the label of a question of which nothing is heard until then, as a payment that nobody disputes is
        honest. None: the question is given up.
    new_scorer : bool, default False
        Take another given scorer than that of the journal, as one that was fitted anew over night. Calibration then
        begins anew with it, and so do the monitors of predictors; the journal, the questions that wait, and what
        watches objects and examples go on. With the scorer that the journal knows all goes on, as ever: it may stay
        True. False: another scorer is refused. With `labels` by lot it cannot be True.

    Threads may share it: they take turns, in a transaction until it ends. Only the process that made it may use it. A
    forked child that outlives its parent keeps the journal locked.

    Attributes
    ----------
    panel : Panel
        The predictors as they are now. After a restart they are new objects, not those given.
    monitors : dict of str to Monitor, Drift or ClassDrift
        Those given, and those of a `Forecaster`.
    stages : deque of (str, Episode)
        What was told of the latest episodes by this object: "began", "known" or "ended", and the episode then.
    rung : tuple of (str, Alarm)
        The alarms of the latest question or answer, each with the name of what rang.
    told : dict of str to Monitor
        For each predictor, a monitor without bets: the curves of its predictions as they were made.
    asked, answered, expired : int
        Numbers of questions, answers, and questions given up.
    rounded : int
        How many questions, among those that a restart asked again, have predictions in the journal that differ from
        those of this process in the last digits: another machine or another library had made them.

    Raises
    ------
    JournalError
        By every method that writes: the journal cannot be written, and the call had no effect.
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", section on weak teachers; Nouretdinov &
    Vovk (2006), "Criterion of calibration for transductive confidence machine with limited feedback".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> online = Online(venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())))
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
        monitor: Watches | Mapping[str, Any] | None = None,
        journal: Journal | str | os.PathLike[str] | None = None,
        *,
        patience: int | None = None,
        labels: Lot | None = None,
        judge: Callable[[Any, Any], Any] | None = None,
        ripe: int | timedelta | None = None,
        silent: Label | None = None,
        new_scorer: bool = False,
        watch: bool = True,
        on_alarm: Any = None,
    ) -> None:
        if flag("new_scorer", new_scorer) and labels is not None:
            raise ValueError("new_scorer must be False where labels come by lot: begin a new journal")
        self._teller = teller("on_alarm", on_alarm, log.warning)
        if not isinstance(labels, Lot | None):
            raise TypeError(f"labels must be a Lot, or None, got {labels!r}")
        self.labels, self.judge = labels, judge
        answering = predictor.answering if isinstance(predictor, Selective) else None
        if answering is not None and answering.account.asked:
            raise ValueError(f"predictor must have answered nothing yet, got one that has: {answering.account}")
        model: Any = predictor.model if isinstance(predictor, Selective) else predictor
        self.alone = not isinstance(model, Panel)
        panel = panel_of(model)
        usual = beside(panel) if flag("watch", watch) and monitor is None and panel.monitors else {}
        self._run = Run(panel, usual or monitor, labels, answering, judge is not None)
        self._run.usual = tuple(usual)
        self.patience = None if patience is None else integer("patience", patience, 1)
        self._check_judge()
        if ripe is None and silent is not None:
            raise ValueError(f"silent must be left out where nothing ripens, got {silent!r} without ripe")
        if ripe is not None:
            self._run.ripening = Ripening(ripe, silent, panel.space)
            if patience is not None or labels is not None:
                raise ValueError("ripe must be left out where patience or labels by lot give questions up earlier")
        self._ripened: list[Rung] = []
        self._wary = 0  # events to take one by one before a block is tried again
        self._owner = os.getpid()
        self._snapshot = RunSnapshot(self._run)
        if not isinstance(journal, Journal | str | os.PathLike | None):
            raise TypeError(f"journal must be a Journal, a path or None, got {journal!r}")
        self.journal = Journal(journal) if isinstance(journal, str | os.PathLike) else journal
        self._guard = RunGuard(self.journal)
        if self.journal is not None:
            self._begin(self.journal, new_scorer)
        self.stages: deque[tuple[str, Episode]] = deque(maxlen=LATEST)
        self._tell()

    def _turns_with(self) -> Iterable[Any]:
        return (self.panel,)

    def _check_judge(self) -> None:
        """Refuse a judge where no floor would use it."""
        if self.judge is None:
            return
        if not callable(self.judge):
            raise TypeError(f"judge must be a function of an object and its prediction, got {self.judge!r}")
        if self.labels is None or self.labels.chance == 1:
            raise ValueError("judge must be given with labels by lot, such as labels=Lot(0.1)")
        if not self._run.floors:
            raise ValueError(
                "judge must be given with a floor, whose losses it predicts, such as Forecaster(floor=0.9)"
            )

    @property
    def panel(self) -> Panel:
        """The predictors as they are now. After a restart they are new objects, not those given."""
        return self._run.panel

    @property
    def monitors(self) -> dict[str, Any]:
        """Monitors by the name of their predictor; watchers of objects by their own name."""
        return self._run.monitors

    @property
    def rung(self) -> tuple[tuple[str, Alarm], ...]:
        """The alarms of the latest question or answer, each with the name of what rang."""
        return tuple((one.predictor, one.alarm) for one in (*self._ripened, *self._run.rung))

    @property
    def told(self) -> dict[str, Monitor]:
        """For each predictor, a monitor without bets: the curves of its predictions as they were made."""
        return self._run.told

    @property
    def asked(self) -> int:
        """Number of questions."""
        return self._run.asked

    @property
    def answered(self) -> int:
        """Number of answers."""
        return self._run.answered

    @property
    def expired(self) -> int:
        """Number of questions given up."""
        return self._run.expired

    @property
    def rounded(self) -> int:
        """Number of questions since the checkpoint whose predictions differ here from the journal's by rounding."""
        return self._run.rounded

    @property
    def account(self) -> Account | None:
        """Where a `Selective` answers, its account; else None."""
        return None if self._run.answering is None else self._run.answering.account

    @property
    def ripening(self) -> Ripening | None:
        """Where labels ripen, the reports that wait and how many came too late; else None."""
        return self._run.ripening

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.panel.classes

    @property
    def pending(self) -> tuple[int | str, ...]:
        """Ids of the questions that wait for an answer, oldest first."""
        return tuple(self._run.waiting)

    def __repr__(self) -> str:
        return (
            f"Online({', '.join(self.panel)}: {self.asked} asked, {self.answered} answered, "
            f"{len(self.pending)} pending{f', {self.expired} expired' if self.expired else ''}"
            f"{f', {self.ripening.late} too late' if self.ripening is not None and self.ripening.late else ''}"
            f"{f', {self.rounded} rounded otherwise' if self.rounded else ''})"
        )

    def _repr_html_(self) -> str:
        """Return the verdicts for notebooks, one line for each monitor."""
        rows = {name: {"state": one.state, "verdict": str(one)} for name, one in self.verdicts().items()}
        return table(repr(self), rows)

    # ------------------------------------------------------------------- asking

    @asks
    def ask(self, x: Any, id: int | str | None = None, *, at: Any = None) -> Any:
        """Predict the label of an object; the question waits for its answer.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        id : int or str, optional
            The answer will name the question by it. By default the question's number, from 1: `asked` afterwards.
        at : seconds since 1970, or datetime with a time zone, optional
            When it happened, by default now: the time that stands in the journal, and by which labels ripen.

        Returns
        -------
        Forecast, Multiprobability, ClassIntervals or PredictionSet; for a panel, a dict of them by name
            Of a `Selective` a `SelectiveAnswer`, which has all of that. Where labels come by lot, a pair: the
            `prediction`, and whether its label is `wanted`.

        Raises
        ------
        TypeError, ValueError
            For an id that waits: nothing happened. For a bad object, or another id that was used before: nothing but
            that its time is known, by which other labels ripen. Or `update` of your own `Watches` fails: the question
            counts, and all others have seen it.
        """
        self._check_open()
        now, named = self._time(at), None if id is None else checked_id(id)
        id = self.asked + 1 if named is None else named
        if id in self._run.waiting:  # a question that is sent again: its time, perhaps not given, ripens nothing
            raise ValueError(f"id must be a new one, got {id!r}, which waits for its answer")
        self._ripened = self._ripen(now)
        run, journal = self._run, self.journal
        if run.waiting and self.panel.in_turn:
            first = next(iter(run.waiting))
            raise ValueError(f"id must wait, got {id!r}: question {first!r} of the series has no value yet, nor a gap")
        with self._guard.trying:
            predictions = self.panel.predict_one(x)
            kept = self._copied(x)
            run.check(kept)
            wanted = self._drawn(kept, predictions)
        said: Any = next(iter(predictions.values())) if self.alone else predictions
        judged = None if self.judge is None else self._judged(id, kept, said)
        asked = Waiting(run.events + 1, run.asked + 1, run.answered, kept, predictions, now)
        late = run.overdue(self.patience) + ([] if wanted else [(id, asked)])
        with self._guard:
            if journal is not None:
                question = QuestionRow(asked.event, id, asked.step, encode_object(kept), encode(predictions), now)
                if late or judged is not None:
                    with journal:
                        journal.ask(question)
                        if judged is not None:
                            journal.reach(f"{JUDGED}{asked.event:015d}", judged)
                        for place, (_, given_up) in enumerate(late, 1):
                            journal.expire(run.expired + place, asked.event + place, given_up.event, now)
                else:
                    journal.ask(question)
            rung = run.ask(id, asked, now, judged)
            for old, _ in late:
                run.give_up(old, now)
        if run.ripening is not None:
            run.ripening.tell(now)
        if journal is not None and (run.drifts or self.labels is not None):
            self._snapshot.ring(run.answered + 1, now, rung)
            self._publish(journal, now)
        self._keep(PATIENT)
        self._tell()
        if run.failure is not None:
            raise run.failure
        if run.answering is not None and run.choice is not None:
            said = SelectiveAnswer(said, run.choice, run.answering.account)
        return said if self.labels is None else Asked(said, wanted)

    def _time(self, at: Any) -> float:
        """Return the time of an event; where labels ripen, that of a clock that never goes back."""
        now = time.time() if at is None else moment("at", at)
        return now if self._run.ripening is None else max(self._run.ripening.clock, now)

    def _judged(self, id: int | str, x: Any, said: Any) -> float | list[float]:
        """Return the judge's guess for a new question; the judge is never asked again about one in the journal."""
        if self.journal is not None and self.journal.found(id) is not None:
            raise ValueError(
                f"id must be a new one, got {id!r}, which was asked before; after a restart "
                "follow(events, again=True) passes over what the journal holds"
            )
        assert self.judge is not None
        with self._guard.trying:
            return judged_by(self.judge, x, said, self.panel.space.labels)

    def _drawn(self, x: Any, predictions: Mapping[str, Any]) -> bool:
        """Return whether the label of the next question is wanted."""
        if self.labels is None:
            return True
        self.labels.check(predictions)
        return self.labels.draw(self.asked + 1, x).wanted

    def _copied(self, x: Any) -> Any:
        """Return a copy of the object, which its owner may change before the label comes."""
        try:
            return copy_object(x)
        except (TypeError, ValueError):
            if self.journal is not None:
                raise TypeError(f"x must be numbers, or numbers and text, to be kept in a journal, got {x!r}") from None
        return copy.deepcopy(x)  # for a user's own predictors

    @asks
    def expire(self, id: int | str) -> None:
        """Give up a question: its answer will be refused.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits. Nothing happened.
        """
        self._check_open()
        ripening = self._run.ripening  # its clock may be the events' own
        now = time.time() if ripening is None else ripening.clock
        self._give_up(id, self._find(id), now)
        self._keep()
        self._tell()

    def _give_up(self, id: int | str, waiting: Waiting, now: float) -> None:
        run = self._run
        with self._guard:
            if self.journal is not None:
                self.journal.expire(run.expired + 1, run.events + 1, waiting.event, now)
            before = len(run.rung)
            run.give_up(id, now)
            if run.ripening is not None:
                run.ripening.end(id)
            if self.journal is not None:
                self._snapshot.ring(run.answered + 1, now, run.rung[before:])

    # ---------------------------------------------------------------- answering

    @changes
    def answer(self, id: int | str, y: Label, *, at: Any = None) -> tuple[Alarm, ...]:
        """Reveal the label of a question, and learn it; where labels ripen, keep it until then.

        Parameters
        ----------
        id : int or str
        y : one of the classes
            Of a series None or NaN: the value is missing, and the question is given up.
        at : seconds since 1970, or datetime with a time zone, optional
            When it came, by default now.

        Returns
        -------
        tuple of Alarm
            The alarms that ring now.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits: the message says whether it was never asked, was answered, or was given up. Or
            the label is none of the classes, or a machine refuses the example. Nothing happened.
        NotConverged
            A machine cannot be solved; nothing happened. Or a scaler's own fit fails, or a window cannot forget: the
            answer counts, and what could learn has learned it.
        """
        self._check_open()
        now = self._time(at)
        if self._run.ripening is not None:
            return self._report(self._run.ripening, checked_id(id), y, now)
        if is_gap(y) and self.panel.in_turn:
            waiting, self._run.rung = self._find(id), []
            self._give_up(id, waiting, now)
            self._keep()
            self._tell()
            return ()
        rung, failure = self._learn(id, self._find(id), y, now)
        self._keep()
        self._tell()
        if failure is not None:
            raise failure
        return tuple(one.alarm for one in rung)

    def _learn(self, id: int | str, waiting: Waiting, y: Label, now: float) -> tuple[list[Rung], Exception | None]:
        """Learn the label of a question; return the alarms, and what failed after all had learned."""
        run, journal = self._run, self.journal
        with self._guard.trying:
            prepared = run.prepare(waiting, y)
            current = run.as_of_now(waiting)
        with self._guard:
            if journal is not None:
                journal.answer(run.answered + 1, run.events + 1, waiting.event, now, run.panel.space.encode(y))
            rung, failure = run.learn(id, y, current, now, prepared)
            if run.ripening is not None:
                run.ripening.end(id)
        if journal is not None:
            self._snapshot.note(now, rung)
            self._publish(journal, now)
        return rung, failure

    @changes
    def ripen(self, at: Any = None) -> tuple[Alarm, ...]:
        """Let the questions that are ripe by now get their labels; asking and answering do so, too.

        Parameters
        ----------
        at : seconds since 1970, or datetime with a time zone, optional
            What time it is, by default now. Leave it out only where questions have no times of their own.

        Returns
        -------
        tuple of Alarm
            The alarms that ring.

        Raises
        ------
        ValueError
            Labels do not ripen here.
        """
        self._check_open()
        if self._run.ripening is None:
            raise ValueError("ripe must be given to this run, Online(..., ripe=...), for its labels to ripen")
        self._run.rung, self._ripened = [], self._ripen(self._time(at))
        self._keep()
        self._tell()
        return tuple(one.alarm for one in self._ripened)

    def _ripen(self, now: float) -> list[Rung]:
        """Let ripe questions get their labels, in the order of the questions; return the alarms."""
        run, ripening, found = self._run, self._run.ripening, list[Rung]()
        while ripening is not None and run.waiting:
            id, waiting = next(iter(run.waiting.items()))
            if not ripening.due(run.asked - waiting.number, now - waiting.time):
                break
            truth, failure = ripening.truth(id), None
            ripening.tell(now)
            if truth is not None:
                try:
                    rung, failure = self._learn(id, waiting, run.panel.space.decode(truth), now)
                    found += rung
                except JournalError:
                    raise
                except REFUSALS as error:  # nothing learned the label; later questions wait for this one
                    failure = error
            if id in run.waiting:
                run.rung = []
                self._give_up(id, waiting, now)
                found += run.rung
            if failure is not None:
                log.warning("the label of question %r, which is ripe, brings an error: %s", id, failure)
            self._keep()
        return found

    def _report(self, ripening: Ripening, id: int | str, y: Label, now: float) -> tuple[Alarm, ...]:
        """Keep a reported label until its question is ripe; a report that comes too late is counted."""
        run = self._run
        truth, found = run.panel.space.encode(y), None
        if id not in run.waiting:
            found = None if self.journal is None else self.journal.found(id)
            if found is None and not ripening.knows(id):
                self._find(id)  # it says what is wrong, and nothing has ripened by its time
        event = run.waiting[id].event if id in run.waiting else 0 if found is None else found.event
        self._ripened, run.rung = self._ripen(now), []
        waiting = run.waiting.get(id)
        with self._guard:
            ripening.come(id, event, Report(truth, now, waiting is None), self.journal)
        if self.journal is not None:
            self._publish(self.journal, now)
        self._keep()
        self._tell()
        return tuple(one.alarm for one in self._ripened)

    def _find(self, id: Any) -> Waiting:
        checked = checked_id(id)
        waiting = self._run.waiting.get(checked)
        if waiting is not None:
            return waiting
        if self.journal is None:
            raise ValueError(f"id must be that of a question that waits, got {id!r}: never asked, answered or given up")
        found = self.journal.found(checked)
        said = "was never asked" if found is None else "was given up" if found.expired else "is answered"
        raise ValueError(f"id must be that of a question that waits, got {id!r}, which {said}")

    def follow(self, events: Iterable[Any], *, again: bool = False) -> Iterator[Any]:
        """Ask and answer what comes; yield each prediction when it is made.

        Where all events are at hand (a list, or what `streams.teach` makes of a stream), what can go in blocks does,
        see `take`: some hundred events may then have happened before the first of their predictions is yielded. No
        answer depends on that.

        Parameters
        ----------
        events : iterable of questions, which have an id and an x, and answers, which have an id and a y
            Such as `streams.teach` gives. Answers whose label was not drawn by lot are passed over.
        again : bool, default False
            Whether the events come from their beginning again after the process was killed, as those of a file do:
            questions in the journal are skipped, and so are answers to questions that are answered or given up. All of
            the journal is compared with its checksums first. Without a journal nothing is skipped.

        Raises
        ------
        TypeError
            An event is neither, as when a table is iterated by its columns; earlier events have been processed.
            Or `again` is not a bool.
        ValueError
            As raised by `ask` and `answer`. With `again` also for a question or an answer that the journal holds with
            another object or label: these are not the events that it has seen.

        Examples
        --------
        >>> import streams, tempfile, venn
        >>> stream = streams.load("car", shuffle=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for steps in (20, 30):  # as if the first process had been killed
        ...         machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=stream.classes)
        ...         with venn.Online(venn.TransductiveVenn(machine), journal=f"{folder}/run.db") as online:
        ...             events = streams.teach(stream.take(steps), streams.Delayed(2))
        ...             len(list(online.follow(events, again=True)))
        20
        10
        """
        if flag("again", again) and self.journal is not None:
            self._check_open()
            self.journal.check()
        for part in parts_of(events) if at_hand(events) else ([event] for event in _iterable(events)):
            while part:
                event = part[0]
                question = _is_question(event)
                if (again and self._in_journal(event, question)) or (not question and self.undrawn(event.id)):
                    part = part[1:]
                    continue
                for taken in self.take(list(takewhile(_is_event, part))):
                    if taken.failure is not None:
                        raise taken.failure
                    if taken.asked:
                        yield taken.said
                    part = part[1:]

    # ------------------------------------------------------------- many at once

    @changes
    def take(self, events: Sequence[Any]) -> list[Happened]:
        """Process the first of some events, as many as can go in one block; return what came of each.

        Around a given scorer, questions that come each with its answer go through a block, and so do many questions,
        or many answers, that follow each other: in one transaction, to the last bit as `ask` and `answer` would do it.
        Elsewhere it is the first event alone. Whoever has more events calls it again with the rest:

            while events:
                events = events[len(online.take(events)):]

        Parameters
        ----------
        events : sequence, at least one
            Each is a question, which has an `x`, an answer, which has a `y`, or has both; and an `id`, in a question
            perhaps None; and perhaps `at`, when it happened. Answers whose label was not drawn by lot are passed over.

        Returns
        -------
        list of Happened
            What came of each event that has happened. One that is refused is alone, with its `failure`, and changes
            nothing; of a question with its answer the answer then is not tried. Of a series a value that is refused
            leaves no question behind.

        Raises
        ------
        JournalError
            The journal cannot be written: none of these events counts.

        Examples
        --------
        >>> import venn
        >>> from sklearn.linear_model import LogisticRegression
        >>> from streams.messages import Message
        >>> scorer = LogisticRegression().fit([[0.0], [0.3], [0.8], [1.0]], ["no", "no", "yes", "yes"])
        >>> online = venn.Online(venn.Forecaster(scorer=scorer))
        >>> events = [Message(i, [i % 7 / 7], "yes" if i % 7 > 3 else "no", i) for i in range(50)]
        >>> [len(online.take(events)), len(online.take(events[1:]))]
        [1, 49]
        """
        self._check_open()
        found = None if self._wary else self._in_block(events)
        if found is None:
            self._wary -= 1
            found = [self._alone(events[0])]
        return found

    def _in_block(self, events: Sequence[Any]) -> list[Happened] | None:
        """Process the first events as one block; None where they do not go in a block."""
        self._wary = 1
        if len(events) < FEW or not Stretch.suits(self._run):
            return None
        stretch = Stretch(self._run, self.journal, self._snapshot, events, self.patience)
        if len(stretch.steps) < FEW:
            return None
        with self.transaction():
            before, self._guard.broken = self._guard.broken, INTERRUPTED
            try:
                found = stretch.happen()
            except JournalError:
                self._guard.broken = UNWRITTEN
                raise
            self._guard.broken = before
            if found is None:
                self._wary = stretch.events
                return None
            self._wary, self._ripened = 0, []
            if self.journal is not None:
                self._publish(self.journal, self._run.mark)
        self._tell()
        return found

    def _alone(self, event: Any) -> Happened:
        """Process one event."""
        x, y, id = getattr(event, "x", None), getattr(event, "y", None), getattr(event, "id", None)
        taken = Happened(id)
        if x is None and y is None:
            return taken._replace(failure=TypeError(f"events must have an x, or a y, got {event!r}"))
        if x is None and self.panel.in_turn and (id is None or id not in self._run.waiting):
            if id is None and self._run.waiting:
                id = next(iter(self._run.waiting))
                taken = taken._replace(id=id)
            else:  # a value without a question: ask first
                x = ()
        if x is not None:
            try:
                if y is not None and self.panel.in_turn and not is_gap(y):
                    self.panel.space.encode(y)  # a question whose value is refused would wait, and stop all later ones
                said = self.ask(x, id, **time_of(event))
            except JournalError:
                raise
            except REFUSALS as error:
                return taken._replace(failure=error)
            id = self.asked if id is None else checked_id(id)
            latest: Any = self._run.latest
            taken = Happened(id, latest.event, rung=self.rung, alone=said)
        if y is None or self.undrawn(id):
            return taken
        answered, failure = self.answered, None
        try:
            self.answer(id, y, **time_of(event))  # type: ignore[arg-type]
        except JournalError:
            raise
        except REFUSALS as error:
            failure = error
        if failure is None or self.answered > answered:
            taken = taken._replace(rung=(*taken.rung, *self.rung))
        # Where labels ripen, what has been learned meanwhile are others: this one does not count yet.
        learned = self.answered > answered and self.ripening is None
        return taken._replace(answered=self._run.events if learned else 0, failure=failure)

    def undrawn(self, id: Any) -> bool:
        """Whether an answer belongs to a question whose label was not drawn; without a journal, to none that waits."""
        if self.labels is None or checked_id(id) in self._run.waiting:
            return False
        found = None if self.journal is None else self.journal.found(checked_id(id))
        return self.journal is None or (found is not None and found.expired)

    def event(self, id: int | str) -> int:
        """Return the number, among all events, of the latest question of an id.

        Raises
        ------
        ValueError
            There is none, or it does not wait and nothing is kept of it.
        """
        waiting = self._run.waiting.get(checked_id(id))
        if waiting is not None:
            return waiting.event
        found = None if self.journal is None else self.journal.found(checked_id(id))
        if found is None:
            raise ValueError(f"id must be that of a question, got {id!r}")
        return found.event

    @asks
    def _in_journal(self, event: Any, question: bool) -> bool:
        """Return whether the journal holds an event, or say how the two differ."""
        self._check_open()
        id = checked_id(event.id)
        found = None if self.journal is None else self.journal.found(id)
        if found is None:
            return False
        if question:
            if encode_object(self._copied(event.x)) != found.x:
                raise ValueError(f"x must be the object that was asked about before, got another for id {id!r}")
            return True
        if self.ripening is not None:
            earlier = self.ripening.earlier(id, found.event, self.journal)
            return earlier is not None and earlier.truth == self.panel.space.encode(event.y)
        if found.truth is None:
            return found.expired
        space = self.panel.space
        try:
            same = space.encode(event.y) == found.truth
        except ValueError:
            same = False
        if not same:
            known = space.decode(found.truth)
            raise ValueError(f"y must be the label that came before, {known!r}, got {event.y!r} for id {id!r}")
        return True

    # ------------------------------------------------------------- transactions

    @contextmanager
    def transaction(self) -> Iterator[Online]:
        """Let everything inside count together, or, if the process dies, not at all.

        It is faster than a transaction for each question and answer. Act on its predictions only after it ends.
        A refusal that is caught inside leaves the rest as it is. If an exception leaves the block, or the journal
        cannot be written, nothing of the transaction counts, and this object is of no further use: make it again.

        Examples
        --------
        >>> with online.transaction():  # doctest: +SKIP
        ...     for message in messages:
        ...         online.ask(message.x, message.id)
        ...     online.reach("queue", message.position)
        """
        with turn_of(self):
            self._check_open()
            journal = self.journal
            if journal is None or journal.within:
                yield self
                return
            try:
                journal.begin()
                yield self
                if self._guard.broken is None:
                    journal.commit()
                else:
                    journal.rollback()
            except BaseException as error:
                self._guard.broken = self._guard.broken or (
                    UNWRITTEN if isinstance(error, JournalError) else INTERRUPTED
                )
                journal.rollback()
                raise
            self._keep()
            self._tell()

    @asks
    def abandon(self) -> None:
        """Drop the open transaction: this object is of no further use, and the journal is as before."""
        self._guard.broken = self._guard.broken or INTERRUPTED

    @asks
    def reach(self, source: str, position: Any) -> None:
        """Write how far a source has been read, in the transaction with its events."""
        self._check_open()
        if self.journal is not None:
            with self._guard:
                self.journal.reach(source, position)

    @asks
    def position(self, source: str) -> Any:
        """Return how far a source had been read; None before its start, or without a journal."""
        return None if self.journal is None else self.journal.position(source)

    def _check_open(self) -> None:
        if os.getpid() != self._owner:
            raise JournalError("a run must be asked by the process that made it, got a call in a forked one")
        if self._guard.broken is not None:
            raise JournalError(f"this run {self._guard.broken}: make it again from its journal to go on")

    def _tell(self) -> None:
        """Notify of news in the episodes once it is written; a run that dies before that notifies after its restart."""
        run, journal = self._run, self.journal
        if not run.untold or self._guard.broken is not None or (journal is not None and journal.within):
            return
        while run.untold:
            _, stage, episode = run.untold[0]
            if self._teller is not None:
                self._teller.told("run" if journal is None else str(journal.path), stage, episode, self.verdict())
            self.stages.append((stage, episode))
            del run.untold[0]
        if journal is not None:
            with suppress(JournalError):  # notified again if this process dies now
                journal.reach(TOLD, run.events)

    @asks
    def refresh(self) -> None:
        """Let viewers see the latest events, for a loop to which nothing comes for a while.

        Events write what pages and metrics show, at most twice a second: of a burst, the last ones wait for another.
        """
        if self.journal is not None and self._guard.broken is None:
            self._publish(self.journal, self._run.mark)

    def _publish(self, journal: Journal, now: float) -> None:
        """Write what viewers look at, if there is something new."""
        if not self._snapshot.due():
            return
        try:
            with self._guard:
                self._snapshot.write(journal, now)
        except JournalError:
            if self._guard.broken is not None:
                raise
            # Otherwise the events are committed: the next question will say what is wrong.

    @asks
    def verdict(self) -> Verdict:
        """Return whether the predictor does what it claims, or in a panel the worst verdict: see `Monitor.verdict`.

        It is the monitors' verdict, which page, metrics and notifications show too. Without monitors no evidence is
        gathered, and it only sums up the predictions as they were made. Its numbers are about the predictions as they
        were made. Where labels came late the monitor has other numbers, and it gives both.
        """
        found = self.verdicts()
        if not self._run.by_predictor:
            found = {name: told.verdict() for name, told in self.told.items()} | found
        return next(iter(found.values())) if len(found) == 1 and self.alone else worst(found)

    @asks
    def verdicts(self) -> dict[str, Verdict]:
        """Return what each of the monitors says, by the name of its predictor: see `verdict`."""
        return self._run.verdicts()

    @asks
    def episodes(self) -> Episodes:
        """Return the changes so far, each from its first alarm to its end: see `venn.monitors.Episode`.

        Their questions have number, time and id. With a journal they are there again after a kill.
        """
        return self._run.episodes()

    @asks
    def record(self) -> Record:
        """Return what the journal holds as a `Record`: predictions as they were made, in the order of their answers.

        Raises
        ------
        JournalError
            There is no journal, or it is damaged: all of it is compared with its checksums first.
        """
        if self.journal is None:
            raise JournalError("a run without a journal has no record")
        return read_record(self.journal.connection, self.journal.path)

    # -------------------------------------------------- death and restart

    def _begin(self, journal: Journal, new_scorer: bool) -> None:
        state = checkpoint.pack(self._run.state())
        header = {
            **self.panel.space.header,
            "names": list(self.panel),
            "alone": self.alone,
            "labels": None if self.labels is None else described(self.labels),
            "judge": None if self.judge is None else True,
            "ripe": None if self.ripening is None else repr(self.ripening),
            "answers": None if self._run.answering is None else described(self._run.answering),
            "predictors": {name: described(predictor) for name, predictor in self.panel.items()},
            "monitors": {name: described(monitor) for name, monitor in self.monitors.items()},
            "start": zlib.crc32(state),
            "packing": checkpoint.VERSION,
            "created": time.time(),
        }
        models = checkpoint.models(self.panel)
        known = journal.open(header, new_scorer=new_scorer if models else None)
        try:
            if known:
                if journal.other or not self._went_on(journal, bool(models), new_scorer):
                    self._run.restore(checkpoint.unpack(state, models), {})
                    begin_anew(self._run, journal, self._snapshot, {key: header[key] for key in OF_SCORER})
                    journal.checkpoints.keep(self._run.events, self._state(), last=True)
                if self.ripening is not None:
                    waiting = {one.event: id for id, one in self._run.waiting.items()}
                    self.ripening.read(journal, waiting, self._run.mark)
                self._publish(journal, time.time())
                told = journal.position(TOLD)
                if (
                    told is None or told > self._run.events
                ):  # an older version wrote the journal, or it was salvaged from a longer one
                    journal.reach(TOLD, told := self._run.events)
                self._run.untold = [one for one in self._run.untold if one[0] > told]
            else:
                journal.reach(TOLD, 0)
                names = names_among(self.panel.values())
                if names is not None:
                    journal.reach(FEATURES, names)
                journal.checkpoints.keep(0, self._state())
        except (OSError, TypeError, ValueError, LookupError, sqlite3.Error) as error:
            journal.close()
            raise JournalError(f"{journal.path} cannot be gone on with: {error}") from error
        except BaseException:
            journal.close()
            raise

    def _went_on(self, journal: Journal, given: bool, new_scorer: bool) -> bool:
        """Continue from the journal; return False where it has another scorer and `new_scorer` allows that."""
        try:
            go_on(self._run, journal, self._snapshot)
        except (AnotherModel, OtherPredictions) as error:
            if not given:
                raise
            if not new_scorer:
                raise JournalError(f"{str(error).removesuffix(checkpoint.ANEW)}. {HOW}") from error
            return False
        return True

    def _state(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        journal = self.journal
        return self._run.state() if journal is None else self._run.state(journal.token, journal.last_checksum)

    def _keep(self, times: int = 1) -> None:
        """Write a checkpoint if one is due; `times=0` is the last one. A failure to write it does no harm."""
        journal = self.journal
        if journal is None or journal.within or self._guard.broken is not None:  # broken: this state is unknown
            return
        if not journal.checkpoints.due(self._run.events, times):
            return
        try:
            journal.checkpoints.keep(self._run.events, self._state(), last=times == 0)
        except (OSError, ValueError, JournalError) as error:
            log.warning("no checkpoint of %s can be written: %s", journal.path, error)

    @asks
    def close(self) -> None:
        """Write a last checkpoint and the end of the run, and close the journal; open questions remain."""
        self._close(True)

    def _close(self, ended: bool) -> None:
        journal = self.journal
        if self._teller is not None and (journal is None or self._guard.broken == CLOSED):
            self._teller.close()
        if journal is None or self._guard.broken == CLOSED:
            return
        try:
            if self._guard.broken is None and not journal.within:
                self._snapshot.write(journal, time.time(), last=True)
                if ended:
                    journal.reach(ENDED, {"time": time.time(), "events": journal.events})
                self._keep(0)
        finally:
            self._guard.broken = CLOSED
            journal.close()
            if self._teller is not None:
                self._teller.close()

    def __enter__(self) -> Online:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._close(kind is None)  # a run that an error stopped has not ended


def time_of(event: Any) -> dict[str, Any]:
    """Return the time that an event carries, as keyword of `ask` and `answer`; empty without one.

    Examples
    --------
    >>> from streams.messages import Message, TimedMessage
    >>> message = Message(7, None, "spam", position=12)
    >>> time_of(message), time_of(TimedMessage.of(message, 1.5))
    ({}, {'at': 1.5})
    """
    at = getattr(event, "at", None)
    return {} if at is None else {"at": at}


def _is_event(event: Any) -> bool:
    return hasattr(event, "id") and (hasattr(event, "x") or hasattr(event, "y"))


def _is_question(event: Any) -> bool:
    """Whether an event is a question, or else an answer; or say that it is neither."""
    if not _is_event(event):
        raise TypeError(f"events must be questions (id, x) and answers (id, y), got {event!r}")
    return hasattr(event, "x")


def _iterable(events: Any) -> Iterable[Any]:
    if not isinstance(events, Iterable):
        raise TypeError(f"events must be an iterable of questions (id, x) and answers (id, y), got {events!r}")
    return events
