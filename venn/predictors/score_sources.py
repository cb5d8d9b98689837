"""Sources of a scaler's scores: which machine scores the examples, and which scores a new object.

A source is a small object that holds parameters. `feed(machine)` attaches it to a machine and returns a feed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, ref

import numpy as np

from venn._compiled.scaling import totals_of
from venn.machines.machine import Machine, checked_machine
from venn.parameters import Parameters, above_one, has_methods, integer, optional, with_methods
from venn.prediction import Bools, Floats, Integers, Label
from venn.predictors.counts import ScoredExamples
from venn.predictors.inductive import Fold
from venn.predictors.inductive_base import InductivePart, scorer_of_classes
from venn.predictors.learning import of_classes, teach_all
from venn.saved import component, param
from venn.schedules import FIRST, Schedule, checked_schedule


class Examples(NamedTuple):
    """Scored examples, by distinct object."""

    scores: Floats  #: (c, m) finite, by each class's machine
    positives: Integers  #: (c, m) examples of each class
    totals: Integers  #: (m,) examples of all


class ScoreSource(Protocol):
    """Where a scaler's scores come from."""

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

    def note(self, x: Any, y: Label) -> Any:
        """Return what `after_learning` needs from before the machine learns; raise what learning would raise."""
        return [part.note(x, y) for part in self.parts]

    def after_learning(self, x: Any, y: Label, noted: Any) -> None:
        """Learn one example that the machine has already learned; each part trains if it is time to."""
        teach_all(self.parts, x, y, noted)

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

    machine: ref[Any]  # this object: an equal one may have learned other examples
    at: tuple[int, int]  # examples held, and learned ever
    examples: Examples
    readers: set[int]


#: By machine, for training and for deleted scores.
_last_read: WeakKeyDictionary[Any, dict[bool, _Read]] = WeakKeyDictionary()


class MachineFeed(ScoreFeed):
    """The scores of the examples that a machine has learned, by that machine."""

    def __init__(self, machine: Machine, deleted: bool, schedules: Sequence[Any] = ()) -> None:
        super().__init__(machine, schedules)
        self.machine = machine
        self._deleted = deleted
        if deleted:
            machine.expect_deleted()

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
        bag = self.machine.deleted_bag if self._deleted else self.machine.bag
        return checked_examples(np.ascontiguousarray(bag.scores), np.ascontiguousarray(bag.counts.T))

    def examples(self, reader: object) -> Examples | None:
        """Return the bag; it may be one that another reader has read after the same example."""
        at = self.held, self.n
        if self.held == 0:
            return None
        if reader is None:
            return self._read()
        try:
            reads = _last_read.setdefault(self.machine, {})
        except TypeError:  # the machine has no hash, or cannot be referred to weakly
            return self._read()
        last = reads.get(self._deleted)
        # A reader asks twice only after the bag has changed.
        if last is None or last.machine() is not self.machine or last.at != at or id(reader) in last.readers:
            last = reads[self._deleted] = _Read(ref(self.machine), at, self._read(), set())
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
    ...     training=venn.Scaler(machine, venn.maps.Platt(), TrainingScores()),
    ...     deleted=venn.Scaler(machine, venn.maps.Platt(), DeletedScores()),
    ... )
    >>> for i in range(20):  # labels have nothing to do with objects
    ...     both.learn_one([i / 20], (0, 1, 1, 0, 0, 1)[i % 6])
    >>> said = both.predict_one([0.05])
    >>> bool(said["training"].proba.max() > said["deleted"].proba.max())  # bolder
    True
    """

    def feed(self, machine: Any) -> MachineFeed:
        """Attach to a machine, which others may share."""
        return MachineFeed(of_classes(checked_machine("machine", machine)), False)


@component
class DeletedScores(Parameters):
    """The score of each example by the machine as it would be without it: leave-one-out, for the cost of one training.

    Exact where the machine's `deletes_exactly` says so. Each score is then distributed like that of a new object, by a
    machine of one example fewer; but scores of different examples depend on one another, so a map fitted to them
    carries no guarantee either.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.Linear(), 1.0, ("no", "yes"))
    >>> model = venn.Scaler(machine, venn.maps.BetaCalibration(), DeletedScores())
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
    >>> model = venn.Scaler(machine, venn.maps.Platt(), HeldOutScores(venn.schedules.PrefixRestart(first=10, last=10)))
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
    >>> model = venn.Scaler(machine, venn.maps.Platt(), source=CrossFittedScores(folds=3))
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
                "DeletedScores() works with a window"
            )
        return CrossFittedFeed(checked_machine("machine", machine), False, folds)
