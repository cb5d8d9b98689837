"""Score calibrators: they map a machine's scores to probabilities, with any map and any source of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self
from weakref import WeakKeyDictionary, ref

import numpy as np

from venn._compiled.scaling import totals_of
from venn.machines.machine import Machine, checked_machine
from venn.maps.contract import Follower, ScoreMap, checked_map, follower_of
from venn.parameters import Parameters, above_one, has_methods, integer, optional, with_methods
from venn.prediction import Bools, Floats, Forecast, Integers, Label
from venn.predictors.counts import ScoredExamples
from venn.predictors.inductive import Fold
from venn.predictors.inductive_base import InductivePart, scorer_of_classes
from venn.predictors.learning import Predictor, of_classes, teach_all
from venn.saved import checked_keys, component, param, restored_bool, restored_int, restored_text, state
from venn.schedules import FIRST, Schedule, checked_schedule

# -------------------------------------------------------------------------------------------------------- score sources
# Sources of scores: which machine scores the examples, and which one scores a new object.
#
# A source is a small object that holds parameters. `feed(machine)` attaches it to a machine and returns a feed.


class Examples(NamedTuple):
    """Scored examples, by distinct object."""

    scores: Floats  #: (c, m) finite, by each class's machine
    positives: Integers  #: (c, m) examples of each class
    totals: Integers  #: (m,) examples of all


class ScoreSource(Protocol):
    """Where a calibrator's scores come from."""

    def feed(self, machine: Any) -> ScoreFeed:
        """Attach to a machine, or say what is wrong with it."""


def checked_source(name: str, source: Any) -> ScoreSource:
    """Return the source, by default `TrainingScores()`, or say what is wrong with it."""
    source = TrainingScores() if source is None else source
    return with_methods(name, source, "an object with a method 'feed', such as TrainingScores()", "feed")


class Kept(ScoredExamples):
    """Reader of an inductive predictor that only passes on scores: of calibration examples and of new objects."""

    def __init__(self, c: int) -> None:
        self.c = c
        self.clear()

    def predict(self, scores: Floats) -> Floats:
        """Return the scores."""
        return scores

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Floats:
        """Keep the examples that calibrate; return the scores."""
        self.add(scores[calibrates], codes[calibrates])
        return scores

    def nothing(self, n: int) -> Floats:
        """Return the scores of n objects before there is a scorer: 0, which no map reads."""
        return np.zeros((n, self.c))

    def join(self, blocks: list[Floats]) -> Floats:
        """Return the scores of all, in order."""
        return np.concatenate(blocks)


def checked_examples(scores: Floats, positives: Integers) -> Examples:
    """Return contiguous scores and counts (c, m) as examples, or say that a score is not finite."""
    totals, finite = totals_of(scores, positives)
    if not finite:
        raise ValueError(f"scores must be finite, got {scores[~np.isfinite(scores)][0]}")
    return Examples(scores, positives, totals)


class ScoreFeed(ABC):
    """A source attached to a machine: scored examples to fit maps to, and scores of new objects.

    Each of its `parts` trains a machine of its own on some examples, as a schedule says, and keeps scores of others.
    """

    machine: Any = None  #: what a panel teaches and shares; None if there is none

    def __init__(self, machine: Any, schedules: Sequence[Any] = ()) -> None:
        self.classes: tuple[Label, ...] = tuple(machine.classes)
        self._kept = [Kept(len(self.classes)) for _ in schedules]
        self.parts: list[InductivePart[Floats]] = [
            InductivePart(machine, kept, schedule) for kept, schedule in zip(self._kept, schedules, strict=True)
        ]

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of examples learned."""

    def stand_on(self, machine: Any) -> None:
        """Read, or train, this machine instead of the one it was made with; it may have learned anything."""
        for part in self.parts:
            part.given = machine

    @abstractmethod
    def test_scores(self, x: Any) -> Floats:
        """Return the (c,) scores of an object; leaves no trace."""

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what `commit` needs from before the machine learns; raise what learning would raise."""
        return [part.prepare(x, y) for part in self.parts]

    def commit(self, x: Any, y: Label, prepared: Any) -> None:
        """Learn one example that the machine has already learned; each part trains if it is time to."""
        teach_all(self.parts, x, y, prepared)

    def examples(self, reader: object) -> Examples | None:
        """Return the scored examples as they are now; None if there are none.

        Other readers may receive the same arrays: only read them. Without a reader they are computed anew.
        """
        scores = np.ascontiguousarray(np.concatenate([kept.examples[0] for kept in self._kept]).T)
        codes = np.concatenate([kept.examples[1] for kept in self._kept])
        if not len(codes):
            return None
        return checked_examples(scores, (codes == np.arange(len(scores))[:, None]).astype(np.int64))


# Of a machine's own bag ------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A bag that all readers of one machine may use until its next example."""

    machine: ref[Any]  # by identity: an equal machine may have learned other examples
    at: tuple[int, int]  # examples held, and learned ever
    examples: Examples
    readers: set[int]


#: By machine, for training and for leave-one-out scores.
_last_read: WeakKeyDictionary[Any, dict[bool, _Read]] = WeakKeyDictionary()


class MachineFeed(ScoreFeed):
    """The scores of the examples that a machine has learned, by that machine."""

    def __init__(self, machine: Machine, leave_one_out: bool, schedules: Sequence[Any] = ()) -> None:
        super().__init__(machine, schedules)
        self.machine = machine
        self._leave_one_out = leave_one_out
        if leave_one_out:
            machine.expect_leave_one_out()

    def stand_on(self, machine: Any) -> None:
        """Read this machine instead of the one it was made with; it may have learned any examples."""
        super().stand_on(machine)
        self.machine = machine

    @property
    def n(self) -> int:
        """Number of examples learned, including those that a window has forgotten."""
        return self.machine.learned

    @property
    def held(self) -> int:
        """Number of examples that the machine holds."""
        return self.machine.n

    def test_scores(self, x: Any) -> Floats:
        """Return the (c,) scores of an object by the machine, which has not learned it."""
        return np.ascontiguousarray(self.machine.hypotheses(x).test_scores, np.float64)

    def _read(self) -> Examples:
        bag = self.machine.leave_one_out_bag if self._leave_one_out else self.machine.bag
        return checked_examples(np.ascontiguousarray(bag.scores), np.ascontiguousarray(bag.counts.T))

    def examples(self, reader: object) -> Examples | None:
        """Return the bag; readers share it until the next example."""
        at = self.held, self.n
        if self.held == 0:
            return None
        if reader is None:
            return self._read()
        try:
            reads = _last_read.setdefault(self.machine, {})
        except TypeError:  # the machine has no hash, or cannot be referred to weakly
            return self._read()
        last = reads.get(self._leave_one_out)
        # A reader asks twice only after the bag has changed.
        if last is None or last.machine() is not self.machine or last.at != at or id(reader) in last.readers:
            last = reads[self._leave_one_out] = _Read(ref(self.machine), at, self._read(), set())
        last.readers.add(id(reader))
        return last.examples


@component
class TrainingScores(Parameters):
    """The score of each example by the machine that has learned it.

    The published comparisons use these scores. They are optimistic: a machine fits its own examples better than new
    ones, and a flexible machine separates them, so that maps become too bold.

    References
    ----------
    Lambrou, Papadopoulos & Gammerman (2012); Platt (1999) warns against it.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(100.0), 10.0, (0, 1))
    >>> both = venn.Panel(
    ...     training=venn.ScoreCalibrator(machine, venn.maps.Platt(), TrainingScores()),
    ...     leave_one_out=venn.ScoreCalibrator(machine, venn.maps.Platt(), LeaveOneOutScores()),
    ... )
    >>> for i in range(20):  # labels have nothing to do with objects
    ...     both.learn_one([i / 20], (0, 1, 1, 0, 0, 1)[i % 6])
    >>> said = both.predict_one([0.05])
    >>> bool(said["training"].proba.max() > said["leave_one_out"].proba.max())  # bolder
    True
    """

    def feed(self, machine: Any) -> MachineFeed:
        """Attach to a machine, which others may share."""
        return MachineFeed(of_classes(checked_machine("machine", machine)), False)


@component
class LeaveOneOutScores(Parameters):
    """The score of each example by the machine as it would be without it: leave-one-out, for the cost of one training.

    Exact where the machine's `exact_leave_one_out` says so. Each score is then distributed like that of a new object,
    by a machine of one example fewer; but scores of different examples depend on one another, so a map fitted to them
    carries no guarantee either.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.Linear(), 1.0, ("no", "yes"))
    >>> model = venn.ScoreCalibrator(machine, venn.maps.BetaCalibration(), LeaveOneOutScores())
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([1.1]).label
    'yes'
    """

    def feed(self, machine: Any) -> MachineFeed:
        """Attach to a machine, which others may share."""
        return MachineFeed(of_classes(checked_machine("machine", machine)), True)


# Of machines that have not learned the example -------------------------------------------------------------------


class HeldOutFeed(ScoreFeed):
    """Scores of calibration examples by a machine that trains on others."""

    @property
    def n(self) -> int:
        """Number of examples learned."""
        return self.parts[0].n

    def test_scores(self, x: Any) -> Floats:
        """Return the (c,) scores of an object by the last trained machine."""
        return self.parts[0].predict_block(x)[0]


@component
class HeldOutScores(Parameters):
    """The scores of calibration examples by a machine trained on other examples.

    Calibration examples and new objects are scored alike by one machine that has seen neither, so they are
    exchangeable. A scaled probability still carries no guarantee: the map is fitted, and may be of the wrong shape.
    With a `FrozenScorer` all examples calibrate.

    Parameters
    ----------
    schedule : Schedule, optional
        When the machine trains and on what, as in `InductiveVenn`. By default `PrefixRestart()` for a machine,
        `NoTraining()` for a `FrozenScorer`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.Linear(), 1.0, ("no", "yes"))
    >>> source = HeldOutScores(venn.schedules.PrefixRestart(first=10, last=10))
    >>> model = venn.ScoreCalibrator(machine, venn.maps.Platt(), source)
    >>> for i in range(40):
    ...     model.learn_one([float(i % 2)], "yes" if i % 2 else "no")
    >>> model.predict_one([1.1]).label
    'yes'
    """

    schedule: Schedule | None = param(optional, checked_schedule, default=None)

    def feed(self, machine: Any) -> HeldOutFeed:
        """Attach to a machine that has learned nothing, or a `FrozenScorer`; its `fresh()` copies are taught."""
        return HeldOutFeed(scorer_of_classes("machine", machine), [self.schedule])


class CrossFittedFeed(MachineFeed):
    """Scores of each fold's examples by a machine trained on the other folds; of new objects by one that knows all."""

    def examples(self, reader: object) -> Examples | None:
        """Return the examples of all folds that have a machine."""
        if self.parts[0].n != self.machine.n:
            raise RuntimeError(
                f"CrossFittedScores must learn all {self.machine.n} examples of its machine, got "
                f"{self.parts[0].n}: share a machine in a Panel"
            )
        return ScoreFeed.examples(self, reader)


@component
class CrossFittedScores(Parameters):
    """The scores of each fold's examples by a machine trained on the other folds.

    Every example is assigned at random, for good, to one of K folds, and machine k trains on all but fold k at
    growing numbers of examples. One map is fitted to the pooled scores and applied to the new object's score by
    the machine that has learned everything. That machine is better than those that the map was fitted to, so
    its scores lie somewhat further out.

    Costs K machines, and their memory, besides the shared one.

    Parameters
    ----------
    folds : int >= 2, default 3
    seed : int >= 0, default 0
        Seed of the assignment to folds.
    first : int >= 1, default 32
        Examples at the first training; before it there are no scores.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples. By default there is always a next one.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Platt (1999) uses 3 folds.

    Examples
    --------
    >>> import streams, venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=[0, 1])
    >>> model = venn.ScoreCalibrator(machine, venn.maps.Platt(), source=CrossFittedScores(folds=3))
    >>> for x, y in streams.synthetic.gaussians(60, classes=2, seed=0):
    ...     prediction = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> prediction.proba.shape, prediction.guaranteed
    ((2,), 'nothing')
    """

    folds: int = param(integer, 2, default=3, sized=True)
    seed: int = param(integer, 0, default=0)
    first: int = param(integer, 1, default=32)
    growth: float = param(above_one, default=2.0)
    last: int | None = param(optional, integer, FIRST, default=None)

    def feed(self, machine: Any) -> CrossFittedFeed:
        """Attach to a machine that has learned nothing; others may share it, its `fresh()` copies learn the folds.

        Raises
        ------
        TypeError
            The machine forgets examples, as a `SlidingWindow` does: the folds would remember them.
        ValueError
            The machine has learned something already.
        """
        folds = [Fold(k, self.folds, self.seed, self.first, self.growth, self.last) for k in range(self.folds)]
        scorer_of_classes("machine", machine)
        if has_methods(machine, "restart"):
            raise TypeError(
                f"machine must hold all that it learns, as the folds do, for {self!r}, got {machine!r}: "
                "LeaveOneOutScores() works with a window"
            )
        return CrossFittedFeed(checked_machine("machine", machine), False, folds)


# -------------------------------------------------------------------------------------------------------------- scaling


@component
class ScoreCalibrator(Predictor):
    """Probabilities by a map from scores, fitted anew after every example.

    A binary map, such as `Platt()`, is fitted for each class against all others: machine k's map to its scores of the
    examples, where those of class k are positive. The new object's mapped scores are divided by their sum (all zero:
    the uniform distribution). A map of all classes, such as `Temperature()`, is fitted once. The class of largest
    probability is predicted, ties to the first. Before there are scored examples the forecast is uniform. Maps are
    fitted after each learned example, so predicting changes nothing.

    These forecasts carry no guarantee: they are baselines for Venn predictors.

    `Platt` and `Isotonic` continue from their last fit, and `Binning` counts in compiled code; the others are fitted
    from nothing each time.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`; `HeldOutScores` also takes a `FrozenScorer`, and
        teaches `fresh()` machines.
    map : ScoreMap
        `Platt()`, `Binning()`, `Isotonic()`, `BetaCalibration()`, `Temperature()`, or an object with the same method,
        such as a `venn.maps.BinaryMap` of your own.
    source : ScoreSource, default TrainingScores()
        Which scores the map is fitted to: `TrainingScores()`, `LeaveOneOutScores()`, `HeldOutScores()`,
        `CrossFittedScores()`, or an object with the same method.

    Attributes
    ----------
    n : int
        Number of examples learned, including those that a window has forgotten.
    fitted : Follower
        The last fitted maps.

    Raises
    ------
    TypeError, ValueError
        A part is not as described.
    NotConverged, ValueError
        On learning, when a map cannot be fitted. The example is learned, and no forecast is given until a later fit
        succeeds.

    References
    ----------
    Zadrozny & Elkan (2002) for several classes; Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = ScoreCalibrator(machine, venn.maps.Platt())
    >>> model.predict_one([0.0])
    Forecast('no': 0.500)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Forecast('no': 0.750)
    """

    machine: Any = param(kept_as="_given")
    map: ScoreMap = param(checked_map)
    source: ScoreSource = param(checked_source, default=None)

    _fitted_to: int = state(restored_int, -1, start=-1)
    _failure: str = state(restored_text, start="")  # of the last fit that failed
    _held_then: int | None = state(optional, restored_int, start=None)
    _ready: bool = state(restored_bool, start=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._feed = self.source.feed(self._given)
        self.machine = self._feed.machine  # what a panel teaches and shares; None if the source has only its own
        self.fitted = follower_of(self.map, self._feed.classes)
        self._interim: tuple[int | None, Follower, bool] | None = None
        self._refit(None)

    @property
    def state(self) -> dict[str, Any]:
        """The last fitted maps, and the state of a source's own machines."""
        maps = getattr(self.fitted, "state", self.fitted)  # a user's own follower may have no state
        return super().state | {"maps": maps, "parts": [part.state for part in self._feed.parts]}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a scaler on this machine, which may have learned: nothing is fitted."""
        checked_keys("parameters", parameters, ("machine", "map", "source"))
        machine = parameters["machine"]
        scaler = cls(machine.fresh() if hasattr(machine, "fresh") else machine, parameters["map"], parameters["source"])
        scaler._stand_on(machine)
        return scaler

    def _stand_on(self, machine: Any) -> None:
        self._given = machine
        self._feed.stand_on(machine)
        self.machine = self._feed.machine

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        for part, held in zip(self._feed.parts, state["parts"], strict=True):
            part.restore(type(state)(held))  # what nobody else holds is taken over, else copied
        self._interim = None
        if hasattr(self.fitted, "restore"):
            self.fitted.restore(state["maps"], len(self.classes))
        else:
            self.fitted = state["maps"]
        if self._ready:
            try:
                shape = np.shape(self.fitted(np.zeros(len(self.classes))))
            except (TypeError, IndexError) as error:
                raise ValueError(f"maps must be there after a fit, got none: {error}") from error
            if shape != (len(self.classes),):
                raise ValueError("maps must be of all classes")

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self._feed.classes

    @property
    def n(self) -> int:
        """Number of examples learned, including those that a window has forgotten."""
        return self._feed.n

    @property
    def tuning(self) -> Any:
        """How the machine's kernel and C were chosen, if `tune` chose them."""
        return getattr(self._given, "tuning", None)

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers

        Raises
        ------
        RuntimeError
            The machine has learned examples that this predictor has not learned, or the last fit failed.
        """
        n, fitted_to = self._feed.n, self._fitted_to
        if n != fitted_to:
            found = (
                f"a failed fit: {self._failure}"
                if fitted_to < 0
                else f"a fit to {fitted_to}: share a machine in a Panel"
            )
            raise RuntimeError(f"ScoreCalibrator needs a fit to all {n} examples of its machine, got {found}")
        test_scores = self._feed.test_scores(x)  # even without a map: refuses a bad x
        c = len(test_scores)
        total = 0.0
        fitted, ready = self._current()
        if ready:
            p = fitted(test_scores)
            total = p.sum()
        return Forecast(p / total if total > 0 else np.full(c, 1.0 / c), self.classes)

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what machines of the source's own note, or raise what they would raise."""
        return self._feed.prepare(x, y)

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Fit the maps to the scores of the machine, which has learned the example already."""
        try:
            self._feed.commit(x, y, self.prepare(x, y) if prepared is None else prepared)
        finally:  # also when a training of the source's own machines failed, the example is learned
            self._refit(self)

    @property
    def _held(self) -> int | None:
        return getattr(self._feed, "held", None)

    def _current(self) -> tuple[Follower, bool]:
        """Return the maps and whether they are fitted.

        Between a window's restart and the next example these are other maps, fitted from scratch to what remains: a
        question must not change where the next fit starts.
        """
        held = self._held
        if held == self._held_then:
            return self.fitted, self._ready
        if self._interim is None or self._interim[0] != held:
            fitted, examples = follower_of(self.map, self._feed.classes), self._feed.examples(None)
            if examples is not None:
                fitted.fit(*examples)
            self._interim = held, fitted, examples is not None
        return self._interim[1:]

    def _refit(self, reader: object) -> None:
        # There is no fit until it succeeds: after an error predict_one refuses to answer.
        self._fitted_to = -1
        self._interim = None
        examples = self._feed.examples(reader)
        self._ready = examples is not None
        if examples is not None:
            try:
                self.fitted.fit(*examples)
            except Exception as error:
                self._failure = str(error)
                raise
        self._fitted_to, self._held_then = self._feed.n, self._held
