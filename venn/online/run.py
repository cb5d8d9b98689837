"""An online run in memory: what it has learned, which questions wait, and what each event does to both."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from venn.monitors.alarms import Alarm
from venn.monitors.episodes import Episode, Episodes, episodes_of
from venn.monitors.floor import LOSSES, FloorWatch
from venn.monitors.kinds import kept, kind_of
from venn.monitors.monitor import WINDOW, Monitor
from venn.monitors.verdict import USELESS, Moment, Verdict
from venn.monitors.watching import ANSWERS, QUESTIONS, Watches, Watching
from venn.online.lot import Judged, Lot, Settling, Unlabelled, expected_loss, unlabelled, with_waiting
from venn.online.panel import Panel, Prepared
from venn.online.ripening import Ripening
from venn.online.selective import AnswerChoice, Answering
from venn.prediction import Label, Prediction
from venn.show.notify import EpisodeNews

log = logging.getLogger("venn")

# Refusals, and errors that come again when the event is repeated.
REFUSALS = (ValueError, TypeError, ArithmeticError, RuntimeError)


SEES = "objects", "examples", "predictions"  # what may be watched; losses by a `FloorWatch`
REMEMBERED = 1001  # latest questions and answers whose time and id are kept, to date changes
OFTEN = 20  # events between two looks for changes that ended without an alarm


class Rung(NamedTuple):
    """An alarm of a run."""

    predictor: str
    number: int  #: place among the predictor's alarms, from 1
    alarm: Alarm


class Waiting(NamedTuple):
    """A question whose answer has not come."""

    event: int
    number: int  #: number of the question, from 1
    step: int  #: answers that had been learned when it was asked
    x: Any
    predictions: dict[str, Prediction]
    time: float = 0.0  #: seconds since 1970


See = Callable[..., Sequence[Alarm]]  # called with a name, a watcher, and what the watcher sees


def updated(name: str, one: Any, *seen: Any) -> Sequence[Alarm]:
    """Show a watcher one step; return its alarms."""
    alarms: Sequence[Alarm] = one.update(*seen)
    return alarms


class Run:
    """State of an online run. The same events change it alike to the last bit, so their journal can rebuild it.

    Parameters
    ----------
    panel : Panel
    monitor : Monitor, another Watches, or mapping of str to these, optional
    labels : Lot, optional
        As for `Online`; see there for the attributes.

    Attributes
    ----------
    given : dict of str to Watches
        What watches predictions, by the name of their predictor, or a floor, and the run updates itself; the monitors
        of its panel see what this learns.
    drifts : dict of str to Watches
        They see each object at its question.
    examples : dict of str to Watches
        They see each example at its answer.
    rung : list of Rung
        The alarms of the latest event.
    waiting : dict
        The waiting questions by id, oldest first.
    mark : float
        Time of the last event.
    rings : dict of str to int
        By name of what rings, the number of its alarms.
    rounded : int
        Predictions of the journal that are rounded otherwise here, found when the run went on.
    """

    def __init__(
        self,
        panel: Panel,
        monitor: Any,
        labels: Lot | None = None,
        answering: Answering | None = None,
        judged: bool = False,
    ) -> None:
        self.panel, self.answering = panel, answering
        self.choice: AnswerChoice | None = None  # what is answered to the latest question
        self.ripening: Ripening | None = None
        self.judged = judged
        self._watch(panel.watch_by(checked_monitors(monitor, panel)))
        self.labels, self._settling = labels, None if labels is None or labels.chance == 1 else Settling()
        if self._settling is not None and labels is not None:
            for one in self.floors.values():
                one.ask_by_lot(labels.chance, judged)
        windows = {name: one.window for name, one in self.by_predictor.items() if isinstance(one, Monitor)}
        self.told = {name: Monitor(panel.space, sources=(), window=windows.get(name, WINDOW)) for name in panel}
        self.asked = self.answered = self.expired = 0
        self.waiting: dict[int | str, Waiting] = {}
        self.latest: Waiting | None = None  # the latest question that this process has asked
        self.mark = 0.0
        self.failure: Exception | None = None  # of what watches the object of the latest question
        self.rounded = 0
        self.rung: list[Rung] = []
        self.rings = dict.fromkeys(self.monitors, 0)
        self.usual: tuple[str, ...] = ()  # names of the default watchers of objects and examples
        self._episode_news = EpisodeNews()
        #: By name of a watcher: steps of a block that it has seen already, and that do not count here yet.
        self.ahead: dict[str, int] = {}
        self.untold: list[tuple[int, str, Episode]] = []  # event, stage and episode: nobody has been told
        #: The latest questions, and those of the latest answers: what a `Moment` has of each.
        self._latest = {what: deque[tuple[Any, ...]](maxlen=REMEMBERED) for what in (QUESTIONS, ANSWERS)}
        self._moments: dict[tuple[str, int], tuple[Any, ...]] = {}  # the same of steps that changes name
        self._sighted: list[Any] | None = []  # the changes that these are of, each with the run's number of its step 0

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self.asked + self.answered + self.expired

    @property
    def by_predictor(self) -> dict[str, Any]:
        """Watchers of predictors and floors: the panel's own monitors, which it may replace, and those given."""
        return {**self.panel.monitors, **self.panel.floors, **self.given}

    def figures(self) -> dict[str, Any]:
        """Return the evidence of each monitor, for a point of the curves."""
        seen = self.by_predictor.items()
        return {
            name: one.figures(means=False) if isinstance(one, Monitor) else one.snapshot()
            for name, one in seen
            if name in self.told
        }

    @property
    def floors(self) -> dict[str, FloorWatch]:
        """What watches floors."""
        return {name: one for name, one in self.by_predictor.items() if isinstance(one, FloorWatch)}

    @property
    def monitors(self) -> dict[str, Any]:
        """All that watches."""
        return {**self.by_predictor, **self.drifts, **self.examples, **self.panel.inner}

    def _watch(self, monitors: Mapping[str, Any]) -> None:
        """Sort the given watchers by what they see: predictions, objects, or examples."""
        by = {what: {name: one for name, one in monitors.items() if one.sees == what} for what in (*SEES, LOSSES)}
        self.drifts, self.examples, self.given = by["objects"], by["examples"], by["predictions"] | by[LOSSES]

    # ------------------------------------------------------------------- events

    def check(self, x: Any) -> None:
        """Refuse an object that cannot be watched. If the first object cannot, the default watchers are dropped."""
        try:
            for one in (*self.drifts.values(), *self.examples.values()):
                if hasattr(one, "check"):
                    one.check(x)
        except (TypeError, ValueError) as error:
            if not self.usual or self.asked:
                raise
            log.warning("objects and classes are not watched, for the first object cannot be: %s", error)
            for name in self.usual:
                self.drifts.pop(name, None)
                self.examples.pop(name, None)

    def ask(
        self, id: int | str, question: Waiting, time: float, judged: Judged = None, see: See = updated
    ) -> list[Rung]:
        """Add a question that the panel has just answered; return the alarms about its object.

        `judged` is the judge's guess. `see` returns the alarms of a watcher, which may have seen the object already.
        What failed after all had seen it is the `failure`.
        """
        self.asked += 1
        self.mark, self.latest = time, question
        # What a restart would read from the journal, so that it changes nothing.
        self.waiting[id] = question._replace(predictions=kept(question.predictions))
        self.rung = []
        if self.answering is not None:
            self.choice = self.answering.ask(question.number, self.waiting[id].predictions)
        self._latest[QUESTIONS].append((self.asked, time, id))
        self.failure = None
        for name, drift in self.drifts.items():
            try:
                self._ring(name, see(name, drift, question.x))
            except REFUSALS as error:  # the question counts, and all others see it
                self.failure = self.failure or error
        if self._settling is not None and self.labels is not None:
            said, draw = self.waiting[id].predictions, self.labels.draw(question.number, question.x)
            guesses = {
                name: one.guess(one.among(said)) if judged is None else expected_loss(judged, one, one.among(said))
                for name, one in self.floors.items()
            }
            self._settling.ask(question.number, draw, guesses)
            self._settle()
        self.place()
        return self.rung

    def place(self) -> None:
        """Keep the questions of the steps that changes name while they are still known, and queue the news.

        Without an alarm only now and then.
        """
        if not self.rung and self.events % OFTEN:
            return
        watchers = {name: one for name, one in self.monitors.items() if isinstance(one, Watching)}
        each = [(one, name, one.counts(case.part), case) for name, one in watchers.items() for case in one.cases]
        sighted = [(name, case, self._step(one, name, counts, 0)) for one, name, counts, case in each]
        if sighted == self._sighted:  # as they were: their questions are known, and so is whoever was told
            return
        self._sighted, found = sighted, dict[tuple[str, int], tuple[Any, ...]]()
        for one, name, counts, case in each:
            for step in (case.change.lower, case.change.step, case.first, case.last, case.anew, case.ended):
                at = counts, self._step(one, name, counts, step)
                known = self._moments.get(at) or self._looked_up(*at)
                if step and known is not None:
                    found[at] = known
        self._moments = found
        self.untold += [(self.events, *one) for one in self._episode_news.news(self.episodes())]

    def _step(self, one: Any, name: str, counts: str, step: int) -> int:
        """Return the run's number of a watcher's step: a watcher may have seen more or fewer steps than the run."""
        done = self.asked if counts == QUESTIONS else self.answered
        return int(done - (one.n - self.ahead.get(name, 0) - step))

    @property
    def eventful(self) -> bool:
        """Whether there was any change, so that there may be news."""
        return bool(self._moments) or any(one.cases for one in self.monitors.values() if isinstance(one, Watching))

    def _looked_up(self, counts: str, step: int) -> tuple[Any, ...] | None:
        latest = self._latest[counts]
        back = (self.asked if counts == QUESTIONS else self.answered) - step
        return latest[-1 - back] if 0 <= back < len(latest) else None

    def _moment(self, watchers: Mapping[str, Any], name: str, counts: str, step: int) -> Moment:
        """Return the question of a step of a watcher: its number alone, where time and id are no longer known."""
        own = self._step(watchers[name], name, counts, step)
        known = self._moments.get((counts, own)) or self._looked_up(counts, own)
        return Moment(max(own, 0)) if known is None else Moment(*known)

    def episodes(self) -> Episodes:
        """Return the changes so far, each with its questions."""
        watchers = self.monitors
        return episodes_of(watchers, partial(self._moment, watchers))

    def _settle(self) -> None:
        """Give the floors what is known now, in the order of the questions."""
        for one, losses in () if self._settling is None else self._settling.settled():
            for name, guess in one.guesses.items():
                loss = None if losses is None else losses.get(name, 0.0)
                self._ring(name, self.by_predictor[name].update(loss, guess, one.chance))

    def _ring(self, name: str, alarms: Sequence[Alarm]) -> None:
        """Take note of alarms. They are numbered here, for a panel may put a new monitor in the place of an old one."""
        if alarms is None:
            raise TypeError(f"update of the monitor {name!r} must return the alarms that ring, or (), got None")
        before = self.rings[name]
        self.rung += [Rung(name, number, alarm) for number, alarm in enumerate(alarms, before + 1)]
        self.rings[name] = before + len(alarms)

    def overdue(self, patience: int | None) -> list[tuple[int | str, Waiting]]:
        """Return what is given up when the next question is asked."""
        late: list[tuple[int | str, Waiting]] = []
        if patience is not None:
            for id, waiting in self.waiting.items():
                if self.asked + 1 - waiting.number < patience:
                    break
                late.append((id, waiting))
        return late

    def give_up(self, id: int | str, time: float) -> None:
        """Remove a question from those that wait; alarms are added to those of the event before."""
        self.mark = time
        x, number = self.waiting[id].x, self.waiting[id].number
        self.panel.skip(x)
        del self.waiting[id]
        self.expired += 1
        if self.answering is not None:
            self.answering.give_up(number)
        if self._settling is not None:
            self._settling.resolve(number, {})
            self._settle()
        self.place()

    def prepare(self, waiting: Waiting, y: Label) -> Prepared:
        """Return what the panel notes before it learns the answer to a question."""
        return self.panel.prepare(waiting.x, y, waiting.predictions, self.answered - waiting.step)

    def as_of_now(self, waiting: Waiting) -> dict[str, Prediction]:
        """Return the monitored predictors' predictions for an object now: as before, if nothing was learned since."""
        before = waiting.predictions if waiting.step == self.answered else {}
        return {
            name: before[name]
            if name in before and kind_of(before[name], name).whole
            else self.panel[name].predict_one(waiting.x)
            for name in self.given
            if name in self.panel
        }

    def learn(
        self, id: int | str, y: Label, current: Mapping[str, Prediction], time: float, prepared: Prepared
    ) -> tuple[list[Rung], Exception | None]:
        """Learn the answer to a question; return the alarms, and what failed after all had learned.

        `current` are the predictions `as_of_now`, `prepared` is what the panel has just prepared.
        """
        self.mark = time
        self.rung = []
        waiting = self.waiting[id]
        failure: Exception | None = None
        inside = {**self.panel.monitors, **self.panel.floors, **self.panel.inner}
        own = {name: (one, one.count) for name, one in inside.items()}
        try:
            self.panel.learn_one(waiting.x, y, prepared)
        except REFUSALS as error:
            failure = error
        del self.waiting[id]
        self.answered += 1
        if self.answering is not None:
            self.answering.reveal(waiting.number, y)
        self._latest[ANSWERS].append((waiting.number, waiting.time, id, self.asked))
        for name, (one, count) in own.items():
            self._ring(name, one.alarms[len(one.alarms) - (one.count - count) :])
        for name, told in self.told.items():
            monitor = self.given.get(name)
            try:
                told.update(waiting.predictions[name], y)
                if monitor is not None:
                    self._ring(name, monitor.update(current[name], y))
            except REFUSALS as error:
                failure = failure or error
        for name, floor in self.floors.items():
            try:
                if name in self.given:
                    self._ring(name, floor.see(floor.among(waiting.predictions), y))
            except REFUSALS as error:
                failure = failure or error
        for name, watch in self.examples.items():
            try:
                self._ring(name, watch.update(waiting.x, y))
            except REFUSALS as error:
                failure = failure or error
        if self._settling is not None:
            try:
                said = waiting.predictions
                losses = {name: one.loss_of(one.among(said), y) for name, one in self.floors.items()}
            except REFUSALS as error:
                losses, failure = {}, failure or error
            self._settling.resolve(waiting.number, losses)
            self._settle()
        self.place()
        return self.rung, failure

    def count_answer(
        self, id: int | str, y: Label, time: float, rung: Mapping[str, Sequence[Alarm]], see: See
    ) -> list[Rung]:
        """Count the answer to a question that the panel has learned, in a block; return the alarms.

        `rung` are those of the panel's monitors, by name. Those of what was told, `told`, see the answer later.
        """
        self.mark = time
        self.rung = []
        waiting = self.waiting.pop(id)
        self.answered += 1
        self._latest[ANSWERS].append((waiting.number, waiting.time, id, self.asked))
        for name, alarms in rung.items():
            self._ring(name, alarms)
        for name, watch in self.examples.items():
            self._ring(name, see(name, watch, waiting.x, y))
        self.place()
        return self.rung

    def pass_questions(self, each: Sequence[tuple[int | str, float]], waiting: Sequence[Waiting], wait: bool) -> None:
        """Count questions, ids and times, at which nothing rings; `waiting` are the last of them, which may `wait`."""
        self.latest, self.mark, self.rung = waiting[-1], each[-1][1], []
        latest = self._latest[QUESTIONS]
        latest.extend((number, time, id) for number, (id, time) in enumerate(each, self.asked + 1))
        self.asked += len(each)
        if wait:
            said = waiting[0].predictions  # of all others the journal keeps as much
            whole = all(one is said[name] for name, one in kept(said).items())
            for (id, _), one in zip(each, waiting, strict=True):
                self.waiting[id] = one if whole else one._replace(predictions=kept(one.predictions))

    def pass_answers(self, each: Sequence[tuple[int | str, float]], waited: bool) -> None:
        """Count answers, ids and times, at which nothing rings: of questions that `waited`, or have just been asked."""
        self.mark, self.rung = each[-1][1], []
        latest = self._latest[ANSWERS]
        for id, _ in each if waited else ():
            one = self.waiting.pop(id)
            latest.append((one.number, one.time, id, self.asked))
        if not waited:
            known = list(self._latest[QUESTIONS])[-len(each) :]
            latest.extend((number, time, id, number) for number, time, id in known)
        self.answered += len(each)

    def pass_over(self, id: int | str, y: Label, time: float) -> None:
        """Count the answer to a question that other predictors have learned, not these."""
        self.mark = time
        self.rung = []
        said = self.waiting.pop(id)
        self.answered += 1
        if self.answering is not None:
            self.answering.reveal(said.number, y)
        self._latest[ANSWERS].append((said.number, said.time, id, self.asked))
        for name, told in self.told.items():
            with suppress(*REFUSALS):  # as when it came
                told.update(said.predictions[name], y)
        for name, watch in self.examples.items():
            self._ring(name, watch.update(said.x, y))
        self.place()

    def begin_alarms(self, numbers: Mapping[str, int]) -> None:
        """Count alarms from these numbers on, by name of what rings."""
        self.rings |= numbers

    # ------------------------------------------------------------------ reading

    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdicts of all monitors, with the numbers of the predictions as they were given."""
        return {
            name: self._placed(name, one.verdict(self.told[name]) if isinstance(one, Monitor) else one.verdict())
            for name, one in self.monitors.items()
        }

    def _placed(self, name: str, verdict: Verdict) -> Verdict:
        """Return a verdict with the question of the step that it names, and with what waits for its label."""
        one = self.monitors[name]
        if verdict.since is not None:
            counts = one.counts() if isinstance(one, Watching) else ANSWERS
            verdict = replace(verdict, at=self._moment({name: one}, name, counts, verdict.since))
        if not isinstance(one, Monitor):
            return verdict
        if verdict.anew:
            anew = self._moment({name: one}, name, ANSWERS, verdict.anew)
            verdict = replace(verdict, heard="" if anew.time is None else anew.heard)
        if verdict.state == USELESS:  # it may have begun anew because of a change that others have seen
            lately = [each.first for each in self.episodes() if each.claims]
            verdict = replace(verdict, at=lately[-1] if lately else verdict.at)
        return with_waiting(self.panel.advised(verdict), self.unlabelled(name))

    def unlabelled(self, name: str) -> Unlabelled | None:
        """Return what a predictor claims for the latest questions that wait, 1000 at most; None if nothing."""
        return unlabelled(one.predictions[name] for one in reversed(self.waiting.values()))

    def seen(self, name: str) -> dict[str, Any]:
        """Return everything to show of the predictions as they were made, and what is claimed where no label came."""
        waiting = self.unlabelled(name)
        beside: dict[str, Any] = {} if waiting is None else {"unlabelled": waiting._asdict()}
        if self.answering is not None:
            beside["answers"] = self.answering.account.snapshot()
        if self.ripening is not None:
            beside["ripening"] = self.ripening.snapshot(len(self.waiting))
        if (ahead := getattr(self.panel[name], "ahead", None)) is not None:
            beside["ahead"] = ahead()
        return self.told[name].snapshot() | beside

    def watched(self, name: str) -> dict[str, Any] | None:
        """Return everything to show of a monitor, if there is one of this name."""
        one = self.monitors.get(name)
        if one is None:
            return None
        shown = one.snapshot(self.told[name]) if isinstance(one, Monitor) else one.snapshot()
        return shown | {"verdict": self._placed(name, Verdict.of(shown["verdict"])).plain()}

    # -------------------------------------------------------------------- state

    def state(self, token: str | None = None, last: int | None = None) -> dict[str, Any]:
        """Return all that a restart needs besides the journal's questions; token and checksum tie the two together."""
        return {
            "asked": self.asked, "answered": self.answered, "expired": self.expired,
            "waiting": [waiting.event for waiting in self.waiting.values()],
            "numbers": [waiting.number for waiting in self.waiting.values()],
            "panel": self.panel, "monitors": {**self.given, **self.drifts, **self.examples}, "told": self.told,
            "alarms": self.rings, "latest": {what: list(one) for what, one in self._latest.items()},
            "moments": [(*at, *of) for at, of in self._moments.items()],
            "heard": self._episode_news.state, "untold": [(at, stage, one.plain()) for at, stage, one in self.untold],
            "run": token, "last": last, "mark": self.mark,
            **({} if self._settling is None else {"lots": self._settling.state}),
            **({} if self.answering is None else {"answers": self.answering}),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any], waiting: dict[int | str, Waiting]) -> None:
        """Take over a state, and the waiting questions from the journal."""
        self.asked, self.answered, self.expired = state["asked"], state["answered"], state["expired"]
        self.panel, self.told = state["panel"], state["told"]
        self._watch(state["monitors"])
        self.rings = state["alarms"]
        self._latest = {what: deque(map(tuple, one), REMEMBERED) for what, one in state["latest"].items()}
        self._moments = {(counts, step): tuple(of) for counts, step, *of in state["moments"]}
        self._sighted = None
        self._episode_news.restore(state["heard"])
        self.untold = [(at, stage, Episode.of(one)) for at, stage, one in state["untold"]]
        self.waiting, self.mark = waiting, state["mark"]
        if self._settling is not None:
            self._settling.restore(state["lots"])
        if self.answering is not None:
            self.answering = state["answers"]


def checked_monitors(monitor: Any, panel: Panel) -> dict[str, Any]:
    """Return what watches by name, or say what is wrong with it."""
    if monitor is None:
        return {}
    if isinstance(monitor, Monitor):
        if len(panel) > 1:
            raise TypeError(f"monitor must be a mapping for a panel of {', '.join(panel)}, got one monitor")
        monitor = {next(iter(panel)): monitor}
    elif _watches(monitor):
        monitor = {getattr(monitor, "about", "") or type(monitor).__name__.lower(): monitor}
    if not isinstance(monitor, Mapping) or not all(map(_watches, monitor.values())):
        hint = ": a journal is given as journal=..." if isinstance(monitor, str | os.PathLike) else ""
        if hasattr(monitor, "sees") and monitor.sees not in SEES:
            hint = f", whose sees must be one of {', '.join(map(repr, SEES))}, got {monitor.sees!r}"
        raise TypeError(f"monitor must be a Monitor or a mapping of names to monitors, got {monitor!r}{hint}")
    for name, one in monitor.items():
        if one.sees != "predictions":
            if not isinstance(name, str) or name in panel or name in panel.floors:
                raise ValueError(f"monitor must give a {type(one).__name__} a name that no predictor has, got {name!r}")
            if isinstance(one, FloorWatch) and one.predictor and one.predictor not in panel:
                raise ValueError(f"predictor of {name} must be one of {', '.join(panel)}, got {one.predictor!r}")
        elif name not in panel:
            raise ValueError(f"monitor must have names of predictors, {', '.join(panel)}, got {name!r}")
        if getattr(one, "space", panel.space) != panel.space:
            raise ValueError(f"monitor must be for {panel.space.told}, got one for {one.space.told}")
    return dict(monitor)


def _watches(one: Any) -> bool:
    """Whether an object watches: it says what it sees, and has what every `Watches` has."""
    known = getattr(one, "sees", None) in SEES or isinstance(one, FloorWatch)
    return known and all(hasattr(one, of) for of in vars(Watches) if of[0] != "_")
