"""The monitor of one predictor: how well it does, whether its claims hold, and an alarm when they stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from venn._compiled.outcomes import CONFIDENCE, WIDTH
from venn.labels import Classes, LabelSpace, label_space
from venn.monitors.alarms import Alarm
from venn.monitors.bounds import StitchedBound
from venn.monitors.change_point import MEMORY, ChangePoint
from venn.monitors.curves import Outcomes
from venn.monitors.evidence import AT_ONCE, AllEvidence, Evidence, Exchangeability, PointForecasts, Scored
from venn.monitors.kind import Kind
from venn.monitors.kinds import FORECAST, KINDS, Scorer, kind_of
from venn.monitors.martingales import CompositeJumper, Martingale, pattern
from venn.monitors.sources import OneClass, Source, level_shares, usual_sources
from venn.monitors.sums import CalibrationBins, Means
from venn.monitors.verdict import CHANGED, Judge, Latest, Verdict
from venn.monitors.watching import AGAIN, LASTED, Case, Watching
from venn.parameters import above_one, ascending, fraction, integer, one_of, optional, with_methods
from venn.prediction import Floats, Label, Prediction
from venn.saved import component, own, param, restored_int, restored_like, restored_text, restored_twin, state
from venn.smoothing import Smoothing
from venn.turns import TakesTurns, asks, changes

WINDOW = 1000  # latest steps that a verdict is about, by default
OFTEN = 10  # steps between two checks whether a change has ended
LATER = 64  # steps that curves add at once; no alarm depends on curves


def labels_of(name: str, value: Any) -> Any:
    """Return the labels of a space of classes, or another space itself; refuse anything else."""
    space: LabelSpace = value if isinstance(value, LabelSpace) else Classes(value)
    return space.labels or space


def _bets(name: str, value: Any) -> Martingale:
    """Return a martingale that has seen nothing, by default `CompositeJumper()`; or say what it must be."""
    return CompositeJumper() if value is None else pattern(name, value)


def _of_classes(name: str, source: Any, space: LabelSpace) -> None:
    """Refuse a source of a class that is not there."""
    if isinstance(source, OneClass) and space.labels[source.code : source.code + 1] != (source.label,):
        raise ValueError(f"{name} must be of the classes {list(space.labels)!r} in order, got {source!r}")


def _sources(name: str, values: Any, space: LabelSpace) -> tuple[Source, ...]:
    """Return sources as a tuple, or say what they must be."""
    if isinstance(values, type | str) or not isinstance(values, Sequence):
        raise TypeError(f"{name} must be a sequence of source objects, such as [RealisedRow()], got {values!r}")
    for source in values:
        with_methods(name, source, "source objects, such as RealisedRow()", "read")
        _of_classes(name, source, space)
    return tuple(values)


def _restored_kind(name: str, value: Any) -> str:
    """Return the name of a kind of predictions of a state, or say what it must be."""
    return one_of(name, restored_text(name, value), tuple(KINDS))


def _restored_truths(name: str, value: Any, none: deque[int] | None, space: LabelSpace) -> deque[int] | None:
    """Return the codes of the latest labels of a state, None where labels are not classes; or say what they must be."""
    codes = restored_like(name, value, none)
    if none is None:
        return None
    if not all(type(one) is int and 0 <= one < len(space.labels) for one in codes):
        raise ValueError(f"{name} must be codes of the labels {list(space.labels)!r}, got {codes!r}")
    return deque(codes, none.maxlen)


def _restored_evidence(name: str, values: Any, space: LabelSpace) -> tuple[Evidence, ...]:
    """Return the evidence of a state, or say what it must be."""
    if type(values) is not tuple or not all(isinstance(one, Exchangeability | PointForecasts) for one in values):
        raise ValueError(f"{name} must be a tuple of evidence, got {values!r}")
    for one in values:
        _of_classes(name, one.source, space)
    return values


SPACE = own(lambda monitor: label_space(monitor.classes))


@component
class Monitor(TakesTurns, Watching):
    """Watches one predictor: curves, calibration, evidence against its claims, alarms.

    Its bets follow from the guarantee of the predictions. For "predicted label" and "realised row" (Venn predictors)
    it bets on the event that the predicted label, or the best class of the realised row, is right; for "each class" on
    the likelier of each class and the rest; and for these three, on how often each class comes. For "error rate"
    (conformal predictors) it bets on the p-values of the true labels. Point forecasts guarantee nothing: there forward
    e-processes bet against the claim that they are the true conditional probabilities, of the predicted label and of
    each class. If no statement would be a theorem, as for plain p-values, there is no evidence, only curves and
    calibration.

    Theorems. On exchangeable data, and for point forecasts that are the conditional probabilities, the probability that
    any of the detectors `Ville`, `DeviationBand` and `ForwardEProcess` ever rings is at most `level`: it is divided
    among the sources of p-values, half for how sure predictions are and half for the shares of the classes, and for
    each event between the first two. The detector `ShiryaevRoberts`, which finds changes after a long calm, rings
    falsely at most n / `run_length` times in n steps on average, for every n, and the mean number of steps to the first
    such alarm is at least `run_length`: a source with the share s of the level has the threshold `run_length` / s.
    Calibration error and curves are descriptive only.

    The theorems hold for transductive predictors and for inductive ones whose schedule is exact "online", such as
    `PrefixRestart` and `NoTraining`. With other schedules, under a `PriorShift` and in `Balanced`, single predictions
    are valid but those of different steps depend on each other, as with one fixed calibration set: a monitor may detect
    that, and ring. Nor do they hold on a `SlidingWindow` that has forgotten an example: see there what is known.

    Parameters
    ----------
    classes : sequence of c labels, or LabelSpace
        The predictor's classes; `venn.labels.Real()` where labels are numbers.
    level : float in (0, 1), default 0.01
        Probability that the detectors above, together, ever ring falsely.
    run_length : float > 1, default 100000
        Least mean number of steps to a false alarm of `ShiryaevRoberts`, whatever the number of sources.
    window : int >= 1, default 1000
        Number of latest steps for a second set of means in the snapshot.
    clip : float in (0, 1), default 1e-15
        Smaller probabilities of the true label count as this in the log loss, and are counted.
    seed : int >= 0, default 0
        Of the random numbers that break ties in p-values.
    martingale : Martingale, optional
        A pattern for the bets, by default `CompositeJumper()`.
    sources : sequence of Source, optional
        Used instead of the sources that follow from the guarantee; if empty, there are curves and calibration only.
    restarts : sequence of int >= 1, optional
        Steps after which all bets begin anew, ascending: those of a predictor's trainings, if the theorems hold from
        one to the next but not across (schedules that are "exact within a period"). Of k periods each has `level` / k:
        the chance that any of them ever rings falsely is at most `level`, and `ShiryaevRoberts` rings falsely at most
        n / `run_length` times in n steps on average, as before; only its first alarm may then come sooner.

    Attributes
    ----------
    n : int
        Number of steps.
    alarms : tuple of Alarm
        The latest 100, oldest first.
    count : int
        Number of alarms so far.
    cases : list of Case
        The changes that these alarms are about, oldest first.

    Raises
    ------
    ValueError, TypeError
        A parameter is not what it must be.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.prediction import Multiprobability
    >>> monitor = Monitor(["no", "yes"])
    >>> rows = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> for step in range(30):  # it claims 0.8 to 0.9 for "no", and is always wrong
    ...     for alarm in monitor.update(Multiprobability(rows, ["no", "yes"]), "yes"):
    ...         print(alarm.detector, "rings against the", alarm.about)
    DeviationBand rings against the realised row
    DeviationBand rings against the share of class 'yes'
    Ville rings against the share of class 'yes'
    Ville rings against the realised row
    """

    sees = "predictions"  # and labels: what `update` takes

    classes: Any = param(labels_of)
    level: float = param(fraction, default=0.01, kw_only=True)
    run_length: float = param(above_one, default=100_000, kw_only=True)
    window: int = param(integer, 1, default=WINDOW, kw_only=True)
    clip: float = param(fraction, default=1e-15, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    martingale: Martingale = param(_bets, default=None, kw_only=True)
    sources: Sequence[Source] | None = param(optional, _sources, SPACE, default=None, kw_only=True)
    restarts: Sequence[int] = param(ascending, default=(), kw_only=True)

    def _new_means(self) -> Means:
        kind = FORECAST if self._predictions is None else KINDS[self._predictions]
        return Means(kind.columns, self.window)

    def _no_truths(self) -> deque[int] | None:
        return deque(maxlen=self.window) if label_space(self.classes).labels else None

    _predictions: str | None = state(optional, _restored_kind, start=None)  # the name of their kind
    _guaranteed: str | None = state(optional, restored_text, start=None)
    _means: Means = state(restored_twin, start=own(_new_means))
    _truths: deque[int] | None = state(_restored_truths, own(_no_truths), SPACE, start=own(_no_truths))  # codes
    _evidence: tuple[Evidence, ...] = state(_restored_evidence, SPACE, start=())
    #: Of the mean conditional accuracy.
    _accuracy: StitchedBound = state(restored_like, start=own(lambda _: StitchedBound(0.05, empirical=True)))
    _calibration: CalibrationBins = state(restored_like, start=own(lambda _: CalibrationBins()))
    #: Steps after which bets have begun or will begin anew, see `begin_anew`.
    _begins: tuple[int, ...] = state(ascending, start=own(lambda one: one.restarts))
    _anew: int = state(restored_int, start=0)  # the latest step after which everything began anew

    def derive(self) -> None:
        """Set up the scoring of predictions."""
        self.space = label_space(self.classes)
        self._judge = Judge(self.level, self.window)
        self._smoothing = Smoothing(self.seed)
        self._scorer = Scorer("the predictor", self.space)
        self._numbers, self._row = np.empty(WIDTH), np.empty(0)
        self._later, self._waiting = _no_steps(LATER, 0), 0  # steps that curves have not added yet
        self._together = AllEvidence(self._evidence)
        if self._predictions is not None:
            self._score(KINDS[self._predictions])

    def _score(self, kind: Kind) -> None:
        """Score predictions of this kind from now on."""
        self._scorer.kind, self._scorer.guaranteed = kind, self._guaranteed
        if len(self._row) != kind.breadth(self.space):  # else it holds the scores of the first prediction
            self._row = np.empty(kind.breadth(self.space))
        if self._later.rows.shape[1] != len(self._row):
            self._later = _no_steps(LATER, len(self._row))

    def _settle(self) -> None:
        """Bring curves and evidence up to date before they are read."""
        self._together.settle()
        self._draw()

    def _draw(self) -> None:
        """Add the waiting steps to the curves."""
        count, self._waiting = self._waiting, 0
        if count:
            self._add(self._later.part(slice(count)))

    @property
    def state(self) -> dict[str, Any]:
        """What the declarations above name, when the evidence has taken note of all steps."""
        self._settle()
        return super().state

    @asks
    def __getstate__(self) -> Any:  # of a subclass that is in no file
        self._settle()
        return super().__getstate__()

    @property
    def n(self) -> int:
        """Number of steps."""
        return self._means.n + self._waiting

    def fresh(self, seed: int | None = None) -> Self:
        """Return one with the same parameters that has seen nothing; a given seed replaces its own."""
        return self.made_of(self.parameters | ({} if seed is None else {"seed": seed}))

    @property
    def _kind(self) -> Kind:
        """Kind of the predictions; before the first one, that of forecasts."""
        return self._scorer.kind or FORECAST

    @property
    def ringing(self) -> ChangePoint | None:
        """The estimated beginning of the change whose alarm rang at the latest step; None if none rang."""
        case = self.case()
        return case.change if case is not None and case.last == self.n else None

    # ------------------------------------------------------------------ updating

    @changes
    def update(self, prediction: Prediction, y: Label) -> tuple[Alarm, ...]:
        """Process a prediction and the label that was then revealed; return the alarms that ring now.

        Parameters
        ----------
        prediction : Forecast, Multiprobability, ClassIntervals or PredictionSet
            All of one kind, with the monitor's classes and the same guarantee.
        y : one of the classes

        Raises
        ------
        TypeError
            Not a prediction, or one of another kind than the first.
        ValueError
            An unknown label, other classes, another guarantee, or numbers that are not probabilities. In all
            cases the monitor is unchanged.
        """
        truth, scorer = self.space.encode(y), self._scorer
        if scorer.kind is None:
            self._row = np.empty(kind_of(prediction, scorer.name).breadth(self.space))
        predicted = scorer.score(prediction, truth, self._numbers, self._row)
        if prediction.guaranteed != scorer.guaranteed:
            if scorer.guaranteed is not None:
                _check_guarantee(prediction, scorer.guaranteed)
            self._begin(kind_of(prediction), prediction.guaranteed)
        return self._take(truth, predicted)

    @changes
    def update_many(self, predictions: Any, labels: Iterable[Label]) -> tuple[Alarm, ...]:
        """Process predictions and their labels, as `update` would one after the other; return all alarms that rang.

        Parameters
        ----------
        predictions : sequence of n predictions, or a block of them
            As from `predict_many` and `replay_many` of inductive predictors.
        labels : iterable of n labels

        Raises
        ------
        TypeError, ValueError
            As by `update` for one of them, or their numbers differ: the monitor is unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from venn.prediction import Forecast
        >>> monitor = Monitor(["no", "yes"])
        >>> monitor.update_many([Forecast(np.array([0.2, 0.8]), ("no", "yes"))] * 3, ["yes", "no", "yes"])
        ()
        >>> monitor.n
        3
        """
        truths = list(labels)
        if len(predictions) != len(truths):
            raise ValueError(f"labels must be one for each of {len(predictions)} predictions, got {len(truths)}")
        rung: list[Alarm] = []
        for alarms in self.in_turn(self.scored(predictions, self.space.encode_many(truths))):
            rung += alarms
        return tuple(rung)

    @asks
    def scored(self, predictions: Any, codes: Any) -> Scored:
        """Return predictions, a block or a sequence, and the codes of their labels in numbers; begin with the first.

        Raises
        ------
        TypeError, ValueError
            As by `update_many`: the monitor is unchanged.
        """
        scorer, n = Scorer("the predictor", self.space), len(codes)  # scores all before anything counts
        scorer.kind, scorer.guaranteed = self._scorer.kind, self._scorer.guaranteed
        kind = scorer.kind or (kind_of(predictions[0], scorer.name) if n else FORECAST)
        numbers, rows = np.empty((n, WIDTH)), np.empty((n, kind.breadth(self.space)))
        if n and kind.score_each is not None and getattr(predictions, "one", None) is kind.of:
            predicted = kind.scored_many(predictions, scorer.name, self.space, codes, numbers, rows)
            scorer.score(predictions[0], codes[0], numbers[0], rows[0])  # says what is wrong with its classes
            scorer.keep(predictions[0])
            _check_guarantee(predictions, scorer.guaranteed)
        else:
            predicted = []
            for i, truth in enumerate(codes.tolist()):
                prediction = predictions[i]
                predicted.append(scorer.score(prediction, truth, numbers[i], rows[i]))
                if scorer.guaranteed is None:
                    scorer.keep(prediction)
                _check_guarantee(prediction, scorer.guaranteed)
        if self._scorer.kind is None and scorer.kind is not None and scorer.guaranteed is not None:
            self._begin(scorer.kind, scorer.guaranteed)
        return Scored(np.array(codes, np.float64), np.array(predicted, np.float64), numbers, rows)

    @changes
    def follow(self, steps: Outcomes, kind: str, guaranteed: str) -> tuple[Alarm, ...]:
        """Process n steps of a record, as `update` would have; return all alarms that rang.

        Parameters
        ----------
        steps : Outcomes
            Of n steps, as returned by `Record.outcomes`.
        kind, guaranteed : str
            Of the predictions, as in `Record.kinds` and `Record.guaranteed`.

        Raises
        ------
        ValueError
            The kind is unknown, or the monitor has seen predictions of another kind or guarantee.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        if self._scorer.kind is None:
            self._begin(KINDS[kind], guaranteed)
        elif (self._scorer.kind.name, self._scorer.guaranteed) != (kind, guaranteed):
            raise ValueError(
                f"steps must be of kind {self._scorer.kind.name!r} and guarantee {self._scorer.guaranteed!r}, "
                f"got {kind!r} and {guaranteed!r}"
            )
        return tuple(alarm for alarms in self.in_turn(Scored.of(steps)) for alarm in alarms)

    def in_turn(self, scored: Scored) -> Iterator[tuple[Alarm, ...]]:
        """Process steps in turn; yield the alarms of those at which one may ring."""
        done = 0
        while done < len(scored.truths):
            calm = self.quiet(scored.part(slice(done, None)))
            self.go_on(scored.part(slice(done, done + calm)))
            done += calm
            if done < len(scored.truths) and not calm:
                yield self.take(scored, done)
                done += 1

    @asks
    def quiet(self, scored: Scored) -> int:
        """Return a number of first steps at which certainly no alarm rings; no step is made."""
        n = self.n
        if n in self._begins or self._together.singly:
            return 0
        few = min([AT_ONCE, len(scored.truths), *(step - n for step in self._begins if step > n)])
        if (found := self.lasting()) is not None:  # a step at which it may end is made alone
            late = n + 1 - found.last - self.window
            few = min(few, -late if late <= 0 else -late % OFTEN)
            if not few:
                return 0
        return self._together.calm(scored.part(slice(few)), self._smoothing.block(n, few))

    @changes
    def go_on(self, scored: Scored, looked: Sequence[int] = (), means: bool = True) -> list[dict[str, Any]]:
        """Make at most as many steps as `quiet` has just returned; return the figures at the given places.

        Without `means` only the evidence, as where somebody else has the curves.
        """
        size, done, evidence = len(scored.truths), 0, list[list[dict[str, Any]]]()
        if not size:
            return []
        taus = self._smoothing.block(self.n, size)
        self._draw()
        for stop in (*looked, size):
            if stop > done:
                self._together.go_on(scored.part(slice(done, stop)), taus[done:stop])
            if len(evidence) < len(looked):
                evidence.append(self._shown_evidence())
            done = stop
        figures = [{"evidence": one} for one in evidence]
        for one, curves in zip(figures, self._add(scored, looked if means else ()), strict=False):
            one |= curves
        return figures

    def _add(self, scored: Scored, looked: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Add steps to all curves, after those that wait; return the means after so many of them."""
        kind, means, n = self._kind, self._means, self._means.n
        table, before = np.empty((len(scored.truths), len(kind.columns))), means.sums.copy()
        hits = kind.add(scored, self.clip, means.sums, table)
        latest = means.extend(table, looked)
        if kind.calibrated:
            self._calibration.update_many(np.minimum(scored.numbers[:, CONFIDENCE], 1.0), hits)
        self._accuracy.update_many(hits.astype(np.float64))
        if self._truths is not None:
            self._truths.extend(scored.truths.astype(np.int64).tolist())
        if not looked:
            return []
        steps = np.array(looked)
        sums = np.vstack([before, table]).cumsum(axis=0)[steps]  # in their order, as `add` adds them
        counts = n + steps
        each = zip(counts.tolist(), means.named(sums / counts[:, None]), latest, strict=True)
        return [self._shown_means(*one) for one in each]

    def _shown_means(self, n: int, of_all: dict[str, float], of_latest: dict[str, float]) -> dict[str, Any]:
        """Return what a point of the curves needs of the means over n steps, and over the latest of these."""
        window = self._kind.finished(of_latest) | {"size": min(n, self.window)}
        return {"curves": self._kind.finished(of_all), "window": window}

    def _shown_evidence(self) -> list[dict[str, Any]]:
        """Return one entry for each detector, after the steps of the loop."""
        self._together.settle()
        return [entry for evidence in self._evidence for entry in evidence.snapshot()]

    @changes
    def take(self, scored: Scored, i: int) -> tuple[Alarm, ...]:
        """Process step i of several; return the alarms that ring."""
        code: Any = int if self.space.labels else float
        self._numbers[:], self._row[:] = scored.numbers[i], scored.rows[i]
        return self._take(code(scored.truths[i]), code(scored.predicted[i]))

    def _begin(self, kind: Kind, guaranteed: str) -> None:
        """Choose the evidence that suits the first prediction."""
        sources = usual_sources(guaranteed, self.space.labels) if self.sources is None else self.sources
        for source in sources:
            if not source.suits(kind.name, guaranteed):
                raise ValueError(f"sources must suit predictions that guarantee {guaranteed!r}, got {source!r}")
        memory = min(self.window, MEMORY)
        if sources:
            level = self.level / (len(self.restarts) + 1)
            self._evidence = tuple(
                Exchangeability(one, self.martingale, share * level, self.run_length / share, memory)
                for one, share in zip(sources, level_shares(sources), strict=True)
            )
        elif self.sources is None:
            self._evidence = kind.evidence(self.level, memory, self.space.labels)
        self._together = AllEvidence(self._evidence)
        self._predictions, self._guaranteed = kind.name, guaranteed
        self._score(kind)
        self._means = self._new_means()

    def _take(self, truth: Any, predicted: Any) -> tuple[Alarm, ...]:
        """Process a step of these codes, whose scores are held."""
        place, numbers, row = self._waiting, self._numbers, self._row
        n = self._means.n + place
        if n in self._begins:
            self._together.begin_anew()
        tau = self._smoothing.at(n)
        rung: list[Alarm] = []
        witness: Evidence | None = None
        for evidence, alarms in self._together.update(truth, predicted, numbers, row, tau):  # first: own ones may fail
            rung += alarms
            witness = witness or evidence
        later = self._later
        later.truths[place], later.predicted[place], later.numbers[place], later.rows[place] = (
            truth, predicted, numbers, row,
        )  # fmt: skip
        self._waiting = place + 1
        if self._waiting == LATER:
            self._draw()
        if witness is not None:
            self._rang(self._shown(self._kind), rung, witness)
        if self.cases:
            self.pass_by()
        return self._took(rung) if rung else ()

    def _rang(self, latest: Latest, rung: Sequence[Alarm], witness: Evidence) -> None:
        """Record alarms: they continue the present change, unless they can only be about a later one.

        They are about a later one if the predictor has begun anew since, or if the estimate lies after all earlier
        alarms.
        """
        before, n = self.lasting(), latest.n
        anew = 0 if before is None else before.anew
        found = Case(**self._judge.rang(latest, rung[0], witness, max(anew, self._anew)), alarms=len(rung))
        later = before is not None and n - before.last >= LASTED and found.change.lower > before.last
        self._note(found, bool(anew) or later)

    def pass_by(self) -> None:
        """End the change if nothing has rung for the window and the latest steps are as claimed."""
        found = self.lasting()
        late = -1 if found is None else self.n - found.last - self.window
        due = late >= 0 and not late % OFTEN
        if found is not None and due and self._judge.departs(self._shown(self._kind)) is None:
            self._put(replace(found, ended=self.n, how=AGAIN))

    @changes
    def begin_anew(self, restarts: Sequence[int] = ()) -> None:
        """Begin all bets anew before the next step: the predictor has forgotten what it learned, as after a change.

        The level is then that of a new stream. Curves, alarms and the change that rang stay.

        Parameters
        ----------
        restarts : sequence of int >= 1, optional
            After so many further steps bets begin anew, in place of those that were to come.

        Raises
        ------
        TypeError, ValueError
            `restarts` is not as described.
        """
        further = ascending("restarts", restarts)
        if not self.n:
            return
        self._together.begin_anew()
        self._anew = self.n
        if (found := self.lasting()) is not None:
            self._put(replace(found, anew=self.n))
        past = [step for step in self._begins if step < self.n]
        self._begins = (*past, self.n, *(self.n + step for step in further))

    # ------------------------------------------------------------------- reading

    def verdict(self, given: Monitor | None = None) -> Verdict:
        """Return whether the predictor does what it claims, now, with the numbers, in one sentence.

        - "changed" if a detector has rung: since the estimated step of the change. It ends when no alarm has rung for
          `window` steps and the latest `window` steps keep what is claimed, as when the predictor has learned what is
          new: then it is "as claimed again". The next alarm begins another change.
        - "too early to say" before step ln(2 / level) / (2 * 0.1^2), 265 at level 0.01: until then chance alone may
          move a mean as much as 0.1.
        - "doubtful" if a detector that has not rung is within a factor level^(-1/2), 10 at level 0.01, of ringing
          (after a change only `ShiryaevRoberts`: others may still hold what they won by it); or if the latest 150 steps
          or the latest `window` steps depart from what is claimed as much as chance does with a probability of at most
          `level`, of all that is looked at together: the means of what is said, and of each source of p-values the sum
          of its departures, such as 1{y = k} minus the probability of class k. What comes and goes cancels in many
          steps, not in few. Sums and accuracies are compared with sqrt(ln(2 / share of the level) / (2 N)), by Azuma
          and Hoeffding, errors with Chernoff's bound.
        - "no better than guessing" if it would be "as claimed again", but the Brier score (of sets: the share of wrong
          labels) of the latest `window` steps is not below .95 of that of the frequencies of the classes. It is valid
          then, and useless.
        - "as claimed" otherwise.

        What is certified. Only an alarm makes it "changed": while the conditions of the theorems above hold, it is ever
        so within n steps with probability at most level + n / run_length; the second part belongs to
        `ShiryaevRoberts`, without whose alarms it would be `level`. A doubt by a detector comes ever within n steps
        with probability at most (level + n / run_length) / sqrt(level). A doubt by the latest steps has at each step a
        probability of at most `level`, if the predicted label, the realised row or the sets are guaranteed; elsewhere
        the accuracy of the predicted label is descriptive, and the sums of the sources are not. All else is: "as
        claimed" says that nothing was found, and the step of a change is estimated among the latest `window` steps,
        1000 at most, before its first alarm (see `ChangePoint`).

        "Changed" and "doubtful" give the reason: what rang or departs, in numbers that show it. Of a change they are
        those from its estimated step to its first alarm. Then come means over the latest `window` steps, or over those
        since the change if these are fewer. "Within chance" is added where these do not depart from what is claimed,
        except that "as claimed" needs no such word if they differ by no more than a standard deviation or so.

        Parameters
        ----------
        given : Monitor, optional
            Of the same steps, but by the predictions that were given to a user. Where labels come late these are older
            than those which `self` compares with the labels. If their numbers are others, the sentence has both.

        Raises
        ------
        TypeError
            `given` is no monitor.

        Examples
        --------
        >>> import numpy as np
        >>> from venn.prediction import Forecast
        >>> monitor, rng = Monitor(["no", "yes"]), np.random.default_rng(0)
        >>> for step in range(1500):  # it says 0.8 for "yes", which is so in the first 900 steps
        ...     y = "yes" if rng.random() < (0.8 if step < 900 else 0.25) else "no"
        ...     alarms = monitor.update(Forecast(np.array([0.2, 0.8]), ["no", "yes"]), y)
        ...     if step in (49, 899):
        ...         print(monitor.verdict())
        Wait, too early to say: 50 of 265 examples.
        Go on: right in .78 of the last 900, claimed .80.
        >>> print(monitor.verdict())
        Do not rely on it since step 901: right in .25 of the last 600, claimed .80. Labels exchanged?
        >>> print(monitor.verdict().details)
        changed since about 901 ...
        """
        kind, of_given = self._scorer.kind, self._means_of(given)
        if kind is None or not self.n:
            return self._judge.nothing()
        found = self._judge.judge(self._shown(kind), self.case(), of_given)
        if self._anew:
            found = replace(found, details=f"{found.details}; began anew after {self._anew}", anew=self._anew)
        return found

    def _shown(self, kind: Kind) -> Latest:
        """Return what the judge needs to know of the latest steps."""
        restarts = [step for step in self._begins if step < self.n]
        guaranteed = str(self._scorer.guaranteed)
        self._settle()
        return Latest(self.n, kind, guaranteed, self._latest, self._frequencies, self._evidence, restarts)

    def _frequencies(self, size: int) -> Floats:
        """Return (c,) frequencies of the classes among the latest steps; none of numbers."""
        if self._truths is None:
            return np.empty(0)
        self._settle()
        counts = np.bincount(list(self._truths)[-size:], minlength=len(self.space.labels))
        return counts / size

    def _means_of(self, given: Any) -> Callable[[int], dict[str, float]] | None:
        """Return the latest means of another monitor, if it has seen the same steps and knows as many of them."""
        if given is None:
            return None
        if not isinstance(given, Monitor):
            raise TypeError(f"given must be a Monitor, got {given!r}")
        other: Monitor = given
        same = other.n == self.n and other.window >= self.window and other._scorer.kind is self._scorer.kind
        return other._latest if same else None

    def _latest(self, size: int) -> dict[str, float]:
        """Return the means over the latest steps, as many as there are in the window at most."""
        self._settle()
        return self._means.of_latest(size)

    def snapshot(self, given: Monitor | None = None) -> dict[str, Any]:
        """Return everything to show now, as plain data: for a page, a log, a metrics endpoint.

        Parameters
        ----------
        given : Monitor, optional
            As for `verdict`, which says what is raised.

        Returns
        -------
        dict
            ``step``; ``verdict``, as JSON; ``predictions`` and ``guaranteed``, which describe the predictor;
            ``curves``, the means over all steps; ``window``, the means over the latest steps, and their number
            ``size``; ``recent``, the same over the steps of which the verdict speaks, as they were given;
            ``accuracy_interval``, a
            confidence sequence of level 0.05 for the mean conditional accuracy; ``calibration``, expected calibration
            error and bins; ``evidence``, one entry for each detector, with base 10 logarithms; ``alarms``, their
            ``count`` and the ``last`` ones.
        """
        verdict = self.verdict(given)
        shown = super().snapshot() | {
            "verdict": verdict.plain(),
            "predictions": self._predictions,
            "guaranteed": self._guaranteed,
            **self.figures(),
            "recent": {"size": 0},
        }
        if self.n:
            size = min(self.n, self.window)
            if verdict.state == CHANGED and verdict.since is not None:
                size = min(size, self.n - verdict.since + 1)
            latest = self._means_of(given) or self._latest
            shown["recent"] = self._kind.finished(latest(size)) | {"size": size}
            shown["accuracy_interval"] = [self._accuracy.lower, self._accuracy.upper]
            if self._kind.calibrated:
                shown["calibration"] = {"ece": self._calibration.ece, "bins": self._calibration.reliability}
        return shown

    @asks
    def figures(self, means: bool = True) -> dict[str, Any]:
        """Return what a point of the curves needs of the snapshot: ``curves``, ``window`` and ``evidence``.

        Without `means` only the evidence.
        """
        found: dict[str, Any] = {"curves": {}, "window": {"size": 0}}
        if means and self.n:
            self._draw()
            found = self._shown_means(self.n, self._means.of_all(), self._latest(min(self.n, self.window)))
        return {**found, "evidence": self._shown_evidence()}


def _no_steps(count: int, breadth: int) -> Scored:
    """Return room for steps."""
    return Scored(np.empty(count), np.empty(count), np.empty((count, WIDTH)), np.empty((count, breadth)))


def _check_guarantee(prediction: Prediction, guaranteed: str | None) -> None:
    """Refuse a prediction that guarantees something else than the first one did."""
    if prediction.guaranteed != guaranteed:
        raise ValueError(
            f"prediction must guarantee {guaranteed!r} as the first one did, got {prediction.guaranteed!r}: each "
            "predictor needs a monitor of its own"
        )
