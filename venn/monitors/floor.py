"""A floor that the user sets, such as an accuracy of .9: evidence that a predictor has sunk below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, log
from typing import Any, Self

import numpy as np

from venn._compiled.outcomes import WIDTH
from venn.labels import LabelSpace, Real, label_space
from venn.monitors.alarms import LOWEST, PER_DECADE, Alarm, odds, shares
from venn.monitors.bounds import StitchedBound
from venn.monitors.change_point import MEMORY, ChangePoint, Trace, change_point
from venn.monitors.curves import Outcomes, outcome
from venn.monitors.evidence import Scored, against
from venn.monitors.floor_bets import FloorBets
from venn.monitors.kind import Kind
from venn.monitors.kinds import Scorer, kind_of
from venn.monitors.losses import Accuracy, Coverage, checked_loss
from venn.monitors.verdict import BELOW, CLAIMED, EARLY, VISIBLE, Verdict
from venn.monitors.watching import AGAIN, ANSWERS, QUESTIONS, Case, Watching
from venn.parameters import (
    Parameters,
    above_one,
    flag,
    fraction,
    instance,
    integer,
    is_number,
    number,
    optional,
    probability,
)
from venn.prediction import Label, Prediction
from venn.saved import component, own, param, restored_int, restored_like, restored_text, restored_twin, state
from venn.turns import TakesTurns, changes

GUESSING = 0.5  # a predicted loss replaces missing labels if a label is asked for with at most this chance
LOSSES, FLOOR = "losses", "floor"


@component
class Floor(Parameters):
    """A requirement on a predictor, such as an accuracy of at least .9: `FloorWatch(floor)` watches it.

    Parameters
    ----------
    at : float
        The least accuracy or coverage, in (0, 1); the largest mean cost.
    of : str or loss, default "accuracy"
        "accuracy"; "coverage", of sets and intervals at level .05; `Coverage(epsilon)`; `Cost(costs)`; or an object
        with a `name`, `risk(at)`, the largest mean loss, `loss(step, kind, space)` in [0, 1], and `said(mean)`.
    level : float in (0, 1), default 0.01
        Probability that it ever rings though the floor is kept. It is apart from the level of the monitor.
    run_length : float > 1, default 100000
        Least mean number of steps to a false alarm of `ShiryaevRoberts`.
    chance : float in (0, 1], default 1
        Least chance at which a label is asked for. `Online(labels=...)` sets it.
    judged : bool, optional
        Whether a judge predicts the loss of each question. `Online(judge=...)` sets it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> str(Floor(0.9)), str(Floor(0.93, of="coverage"))
    ('accuracy of at least .90', 'coverage at 0.05 of at least .93')
    """

    at: float = param(number)
    of: Any = param(checked_loss, default="accuracy")
    level: float = param(fraction, default=0.01, kw_only=True)
    run_length: float = param(above_one, default=100_000, kw_only=True)
    chance: float = param(probability, default=1.0, kw_only=True)
    judged: bool | None = param(optional, flag, default=None, kw_only=True)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a floor; files from before there were judges do not name them."""
        return super().made_of({"judged": None} | parameters)

    def derive(self) -> None:
        """Find the largest mean loss."""
        self.risk = self.of.risk(self.at)
        if not 0 < self.risk < 1:
            raise ValueError(f"at must be such that a loss in (0, 1) is left, {self.risk:g} is not, got {self.at!r}")

    @property
    def name(self) -> str:
        """What is measured."""
        return str(self.of.name)

    def __str__(self) -> str:
        if isinstance(self.of, Accuracy | Coverage):
            return f"{self.name} of at least {shares(self.at)[0]}"
        return f"a mean {self.name} of at most {self.at:g}"


def floor_of(name: str, value: Any) -> Floor:
    """Return a floor; a number is one on accuracy."""
    return instance(name, Floor(value) if is_number(value) else value, Floor, "a Floor or a number in (0, 1)")


def _bets(watch: FloorWatch) -> FloorBets:
    floor = watch.floor
    guesses = floor.chance <= GUESSING and hasattr(floor.of, "guess")
    return FloorBets(floor.risk, floor.chance, bool(floor.judged or guesses))


@component
class FloorWatch(TakesTurns, Watching):
    """Watches one floor: losses come in, and it rings when the mean loss is larger than the floor allows.

    In an `Online` it stands among the monitors under a name of its own, and gets the losses of one predictor, of the
    predictions as they were given. By hand, `watch.see(prediction, y)` takes a prediction and its label, and
    `watch.update(loss)` any loss in [0, 1], such as that of another program.

    Theorems. Let the mean of each loss, given all before it, be at most the floor's risk r. Then `Ville` ever rings
    with probability at most the floor's level, and `ShiryaevRoberts`, which forgets a long calm, rings falsely at least
    `run_length` steps apart on average (`FloorBets`). Nothing else is assumed: no exchangeability, no model. Apart from
    that, the average of these means up to now is above `worst_mean` at any step with probability at most 1 - level
    (`StitchedBound`): where it is above r, the floor is not kept on average since the start.

    Parameters
    ----------
    floor : Floor or float
    memory : int >= 1, default 1000
        Number of latest steps that it speaks of, and among which the beginning is looked for.
    predictor : str, default ""
        Of several predictors the name of the one whose losses it gets, by default the first.

    Attributes
    ----------
    n : int
        Number of steps.
    below : bool
        Whether it has rung and not recovered: without an alarm for `memory` steps, and with a mean loss of at most r.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> watch = FloorWatch(0.9)
    >>> for step in range(400):  # right nine times in ten or more, then two times in three
    ...     for alarm in watch.update(float(step % 12 == 0 if step < 300 else step % 3 == 0)):
    ...         print(alarm.step, alarm.detector)
    352 ShiryaevRoberts
    >>> print(watch.sentence)
    below the floor, accuracy of at least .90, since about 301 (273 to 319): right in ...
    """

    sees = LOSSES  # what `update` takes
    about = FLOOR

    floor: Floor = param(floor_of)
    memory: int = param(integer, 1, default=MEMORY)
    predictor: str = param(restored_text, default="", kw_only=True)

    bets: FloorBets = state(restored_twin, start=own(_bets))
    bound: StitchedBound = state(
        restored_like, start=own(lambda watch: StitchedBound(2 * min(watch.floor.level, 0.49), empirical=True))
    )
    trace: Trace = state(restored_like, start=own(lambda watch: Trace(True, watch.memory)))
    first: int = state(restored_int, start=0)  # step at which K rang
    rung: int = state(restored_int, start=0)  # how often R did

    def derive(self) -> None:
        """Find the words."""
        self._thresholds = -log(self.floor.level), log(self.floor.run_length)
        self._enough = ceil(log(2 / self.floor.level) / (2 * VISIBLE**2))
        self.claim = f"floor, {self.floor}"
        self.counted = "question" if self.by_lot else "step"
        self._scorer = Scorer("the predictor", Real())

    @property
    def n(self) -> int:
        """Number of steps."""
        return self.bets.n

    @property
    def by_lot(self) -> bool:
        """Whether labels come by lot: then it gets the losses of all questions in their order, see `update`."""
        return self.floor.chance < 1

    def ask_by_lot(self, chance: float, judged: bool = False) -> None:
        """Prepare for labels by lot: the least chance of a label, and whether a judge predicts losses.

        Raises
        ------
        ValueError
            It has seen steps.
        """
        if (self.floor.chance, bool(self.floor.judged)) == (chance, judged):
            return
        if self.n:
            raise ValueError(f"labels must be asked for by lot from the first step on, got a floor after {self.n}")
        floor = Floor(**(self.floor.parameters | {"chance": chance, "judged": judged or None}))
        vars(self).update(vars(type(self)(**(self.parameters | {"floor": floor}))))

    def counts(self, part: str = "") -> str:
        """Return what its steps count: answers, or questions if labels come by lot."""
        return QUESTIONS if self.by_lot else ANSWERS

    def among(self, predictions: Mapping[str, Any]) -> Any:
        """Return the prediction that it judges, from predictions by name."""
        return predictions[self.predictor or next(iter(predictions))]

    def guess(self, prediction: Any) -> float:
        """Return the predicted loss that replaces a missing label; 0 if most labels are asked for."""
        return self.floor.of.guess(prediction, kind_of(prediction)) if self.bets.guessed else 0.0

    def loss_of(self, prediction: Prediction, y: Label) -> float:
        """Return the loss of a prediction with this label."""
        kind, scorer = kind_of(prediction, "the predictor"), self._scorer
        if prediction.classes != scorer.space.labels:
            scorer = self._scorer = Scorer(scorer.name, label_space(prediction.classes or Real()))
        space = scorer.space
        truth, numbers, row = space.encode(y), np.empty(WIDTH), np.empty(kind.breadth(space))
        step = outcome(truth, scorer.score(prediction, truth, numbers, row), numbers, row)
        return float(self.floor.of.loss(step, kind, space))

    def see(self, prediction: Prediction, y: Label) -> tuple[Alarm, ...]:
        """Process a prediction and its label; return the alarms that ring now. By lot losses come by `update` alone."""
        return () if self.by_lot else self.update(self.loss_of(prediction, y))

    def follow(self, steps: Outcomes, kind: Kind, space: LabelSpace) -> tuple[Alarm, ...]:
        """Process n steps of a record; return the alarms that rang."""
        code: Any = int if space.labels else float
        of = Scored.of(steps)
        each = zip(of.truths, of.predicted, of.numbers, of.rows, strict=True)
        found = (outcome(code(truth), code(said), numbers, row) for truth, said, numbers, row in each)
        return tuple(alarm for step in found for alarm in self.update(self.floor.of.loss(step, kind, space)))

    @changes
    def update(self, loss: float | None, guess: float = 0.0, chance: float | None = None) -> tuple[Alarm, ...]:
        """Process the loss of one step; return the alarms that ring now.

        Parameters
        ----------
        loss : float in [0, 1] or None
            None: its label was not asked for.
        guess : float in [0, 1], default 0
            A predicted loss, known before; see `guess`.
        chance : float, optional
            At which the label was asked for; by default the floor's, which is the least.

        Raises
        ------
        TypeError, ValueError
            A number is not as described: nothing changes.
        """
        for name, value in {"loss": loss, "guess": guess}.items():
            if value is not None and not (is_number(value) and 0 <= value <= 1):
                kind = ValueError if is_number(value) else TypeError
                raise kind(f"{name} must be a number in [0, 1], got {value!r}")
        share = self.floor.chance if chance is None else probability("chance", chance)
        if share < self.floor.chance:
            raise ValueError(f"chance must be at least that of the floor, {self.floor.chance:g}, got {chance!r}")
        z = float(guess) if loss is None else guess + (loss - guess) / share
        bets, rung = self.bets, []
        bets.update(z)
        self.bound.update((z - bets.lowest) / (bets.highest - bets.lowest))
        self.trace.add(z)
        if bets.log >= self._thresholds[0] and not self.first:
            self.first = self.n
            rung.append(self._alarm("Ville", bets.log))
        if bets.log_sum >= self._thresholds[1]:
            self.rung += 1
            rung.append(self._alarm("ShiryaevRoberts", bets.log_sum))
            bets.forget()
        if rung:
            change, before, detector = self._began(), self.case(), against(rung[0].detector, self.claim)
            another = before is None or not self._lasts or change.lower > before.last
            if before is not None and not another:
                change = before.change
            self._note(Case(self.n, self.n, change, LOSSES, detector, "", alarms=len(rung)), another)
            if self.cases[-1].first == self.n:
                self._put(replace(self.cases[-1], reason=self.sentence))
        elif self.cases:
            self.pass_by()
        return self._took(rung)

    def pass_by(self) -> None:
        """End the change if nothing has rung for `memory` steps and the floor is kept."""
        found = self.lasting()
        if found is not None and self.n - found.last >= self.memory and not self.below:
            self._put(replace(found, ended=self.n, how=AGAIN))

    def _began(self) -> ChangePoint:
        bets = np.array(self.bets.bets)
        ratios = np.log1p((self.trace.latest(self.memory)[:, None] - self.floor.risk) * bets)
        return change_point(ratios, self.n)

    def mean(self, size: int) -> float:
        """Return the mean loss of the latest `size` steps, in [0, 1]; 0 before the first step."""
        latest = self.trace.latest(integer("size", size, 1))
        return min(max(float(latest.mean()), 0.0), 1.0) if latest.size else 0.0

    @property
    def worst_mean(self) -> float:
        """Lower end of the mean loss since the start; 0 before the first step."""
        low, high = self.bets.lowest, self.bets.highest
        return max(low + self.bound.lower * (high - low), 0.0) if self.n else 0.0

    @property
    def since_start(self) -> bool:
        """Whether the floor is not kept on average since the start."""
        return self.worst_mean > self.floor.risk

    @property
    def _lasts(self) -> bool:
        """Whether the change lasts: an alarm rang among the latest steps, or they are still below the floor."""
        case = self.case()
        return case is not None and (self.n - case.last < self.memory or self.mean(self.memory) > self.floor.risk)

    @property
    def below(self) -> bool:
        """Whether the floor is not kept now."""
        return self._lasts or self.since_start

    @property
    def sentence(self) -> str:
        """How the floor stands, with the numbers; empty before the first step."""
        if not self.n:
            return ""
        size = min(self.n, self.memory)
        span = f"of the last {size}" if self.n > size else f"of all {size}"
        if not self.below:
            return f"{self.claim}; {self._in_words(self.mean(size))} {span}"
        parts, case = [], self.case()
        if case is not None and self._lasts:
            since = self.n - case.change.step + 1
            size, span = (since, f"of the {since} since then") if since < size else (size, span)
            begun = str(case.change).replace("about", "about question" if self.by_lot else "about")
            parts.append(f"since {begun}: {self._in_words(self.mean(size))} {span}")
            parts.append(f"last alarm at {case.last}")
        if self.since_start:
            parts.append(f"since the start {self._in_words(self.worst_mean)} at best, by a bound for all steps")
        return f"{BELOW}, {self.floor}, {'; '.join(parts)}"

    def _in_words(self, mean: float) -> str:
        """Return a mean loss in words: an estimate, where labels come by lot."""
        return f"{self.floor.of.said(mean)}{'' if self.floor.chance == 1 else ', by estimate,'}"

    def verdict(self) -> Verdict:
        """Return whether it is below the floor, in one sentence."""
        if not self.below:
            state = EARLY if self.n < self._enough else CLAIMED
            details = self.sentence or f"no step of {self._enough}"
            return Verdict(state, None, None, LOSSES, "", f"{state}: {details}")
        case, lasts = self.case(), self._lasts
        change = None if case is None else case.change
        since = change.step if lasts and change is not None and not self.by_lot else None
        detector = against("Ville or ShiryaevRoberts" if lasts else "StitchedBound", self.claim)
        return Verdict(BELOW, since, change, LOSSES, detector, self.sentence, reason=self.sentence)

    def _alarm(self, detector: str, log_evidence: float) -> Alarm:
        """Return an alarm."""
        floor = self.floor
        seldom, what = f"this alarm ever rings with probability at most {floor.level:g}", ""
        if detector == "ShiryaevRoberts":
            seldom = f"such alarms come at least {floor.run_length:,.12g} {self.counted}s apart on average"
            what = ", summed over all moments at which it may have begun,"
        size = min(self.n, self.memory)
        sentence = (
            f"At {self.counted} {self.n} the odds{what} are {odds(log_evidence)} against {floor}: "
            f"{floor.of.said(self.mean(size))} of the last {size}. Theorem: while the mean loss of each, "
            f"given those before, is at most {floor.risk:.4g}, {seldom}."
        )
        return Alarm(self.n, detector, log_evidence, sentence, self.claim)

    def evidence(self) -> list[dict[str, Any]]:
        """Return one plain mapping for each detector, as of other evidence."""
        logs, counts = (self.bets.log, self.bets.log_sum), (int(self.first > 0), self.rung)
        return [
            {"name": self.claim, "detector": detector, "log10": max(found / PER_DECADE, LOWEST),
             "threshold": threshold / PER_DECADE, "alarms": count}
            for detector, found, threshold, count in zip(
                ("Ville", "ShiryaevRoberts"), logs, self._thresholds, counts, strict=True
            )
        ]  # fmt: skip

    def snapshot(self) -> dict[str, Any]:
        """Return how it stands; in ``floor`` are its words and numbers, and whether the predictor is below it."""
        floor = {
            "floor": str(self.floor), "at": self.floor.at, "of": self.floor.name, "risk": self.floor.risk,
            "step": self.n, "below": self.below, "sentence": self.sentence, "worst_mean": self.worst_mean,
            "recent": self.mean(self.memory) if self.n else None, "predictor": self.predictor,
        }  # fmt: skip
        return super().snapshot() | {"evidence": self.evidence(), "floor": floor}
