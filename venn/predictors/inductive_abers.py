"""Inductive Venn-Abers: an online calibrator for each class, with the schedules of inductive predictors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from venn._compiled.counting import GRID, OFFSET
from venn._compiled.hull_tree import pairs_of_one
from venn._compiled.hulls import weighed_rate
from venn._compiled.ranks import mirror, on_grid_within
from venn.machines.objects import ObjectRows
from venn.maps import VennAbers
from venn.maps.abers import ClassTrees
from venn.parameters import has_methods
from venn.prediction import FEW, Bools, ClassIntervals, Floats, Integers, Label
from venn.predictors.blocks import ManyClassIntervals
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule, scorer_of_classes
from venn.predictors.merging import Mergeable, MergingReader, sorted_rows
from venn.saved import array, component, each, param
from venn.schedules import Schedule
from venn.shifts import CovariateShift, checked_covariates

LARGEST_SCORE = 1e300  # of scores that can be distinguished: larger ones are off the grid
STEPS = LARGEST_SCORE, GRID, OFFSET


def steps(scores: Floats) -> Floats:
    """Return the scores in whole steps of the grid of 1e-6, the same grid as for taxonomies."""
    grid = np.empty(scores.shape)
    on_grid_within(scores.ravel(), *STEPS, grid.ravel())
    return grid


def steps_by_class(scores: Floats) -> Floats:
    """Return the (n, c) scores in whole steps; of two classes the columns mirror each other, if the scores do.

    p and 1 - p, or f and -f, are on either side of different steps. Rounded one by one, near 0 and 1 objects would tie
    for one class and not for the other, and the intervals of "no" and "yes" would contradict each other.
    """
    grid = steps(scores)
    if scores.shape[1] == 2:
        mirror(np.ascontiguousarray(scores), GRID, grid)
    return grid


class ClasswiseAbers(Mergeable):
    """Reader of calibration scores: class k against all others by column k, one `VennAbers` for each class.

    Scores are compared on the grid: isotonic regression uses only their order and ties, so whole steps suffice.
    """

    def __init__(self, classes: tuple[Label, ...]) -> None:
        self.classes = classes
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._calibrators = ClassTrees([VennAbers() for _ in self.classes])

    @property
    def state(self) -> dict[str, Any]:
        """The examples of each calibrator."""
        return {"calibrators": [one.state for one in self._calibrators]}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        merged = []
        for own, held in zip(self._calibrators, state["calibrators"], strict=True):
            further = VennAbers()
            further.restore(held)
            merged.append(own.merge(further))
        self._calibrators = ClassTrees(merged)

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        if len(scores) == 1:
            self._calibrators.insert_one(scores, STEPS, codes.item(0))
            return
        grid = steps_by_class(scores)
        for k, calibrator in enumerate(self._calibrators):
            calibrator.insert_many(grid[:, k], codes == k)

    def predict_one(self, scores: Floats) -> ClassIntervals:
        """Return the prediction for one object of (1, c) scores; leaves no trace."""
        c = len(self.classes)
        pairs, proba = np.empty((c, 2)), np.empty(c)
        nodes, leaves = self._calibrators.arrays
        index = pairs_of_one(nodes, leaves, scores, *STEPS, pairs, proba)
        if c >= FEW:
            return ClassIntervals.unchecked(pairs, self.classes)
        proba.setflags(write=False)
        return ClassIntervals.unchecked(pairs, self.classes, proba=proba, index=index)

    def predict(self, scores: Floats) -> ManyClassIntervals:
        """Return the predictions for n objects of (n, c) scores, each as if it were alone; leaves no trace."""
        grid = steps_by_class(scores)
        pairs = [calibrator.query_many(grid[:, k]) for k, calibrator in enumerate(self._calibrators)]
        return ManyClassIntervals(np.stack(pairs, axis=1), self.classes)

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> ManyClassIntervals:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        grid = steps_by_class(scores)
        pairs = [one.replay_many(grid[:, k], codes == k, calibrates) for k, one in enumerate(self._calibrators)]
        return ManyClassIntervals(np.stack(pairs, axis=1), self.classes)

    def take_back(self, scores: Floats, codes: Integers) -> None:
        """Forget calibration examples that were added, by their scores and class codes."""
        for row, code in zip(steps_by_class(scores).tolist(), codes.tolist(), strict=True):
            for k, (calibrator, score) in enumerate(zip(self._calibrators, row, strict=True)):
                calibrator.delete(score, 1 if code == k else 0)

    def nothing(self, n: int) -> ManyClassIntervals:
        """Return uninformative predictions for n objects, while there is no scorer: [0, 1] for every class."""
        return ManyClassIntervals(np.tile([0.0, 1.0], (n, len(self.classes), 1)), self.classes)


def weighed_pair(examples: Floats, at: float, own: float) -> tuple[float, float]:
    """Return (p0, p1) of a new example at a step of the grid, of weight `own`, among sorted `weighed` ones."""
    if own == 0:  # an object that cannot come
        return 0.0, 1.0
    keys, positive, weights = examples.T
    return tuple(weighed_rate(keys, positive, weights, at, own, label) for label in (0.0, 1.0))


class WeighedAbers(ClasswiseAbers):
    """Reader like `ClasswiseAbers`, of examples weighed by their objects: the last column that it reads is the weight.

    A prediction costs O(c m).
    """

    holds: ClassVar = {"examples": each(array(None, 3), "classes")}

    predict_one, replay = Mergeable.predict_one, Mergeable.replay

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._held = [np.zeros((0, 3)) for _ in self.classes]

    @property
    def state(self) -> dict[str, Any]:
        """Steps, whether it is the class, and weights of the calibration examples, sorted, by class."""
        return {"examples": [held.copy() for held in self._held]}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        if any(
            (held[:, 2] < 0).any() for held in state["examples"]
        ):  # a negative weight would send the loop past the first block
            raise ValueError("examples must have weights >= 0")
        self._held = [sorted_rows(*both) for both in zip(self._held, state["examples"], strict=True)]

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c + 1) scores and weights, and (n,) class codes."""
        grid = steps_by_class(scores[:, :-1]) + 0.0
        self._held = [
            sorted_rows(held, np.column_stack([grid[:, k], codes == k, scores[:, -1]]))
            for k, held in enumerate(self._held)
        ]

    def predict(self, scores: Floats) -> ManyClassIntervals:
        """Return the predictions for n objects of (n, c + 1) scores and weights, each as if it were alone."""
        grid, own = steps_by_class(scores[:, :-1]), scores[:, -1].tolist()
        pairs = np.empty((*grid.shape, 2))
        for k, held in enumerate(self._held):
            for i, at in enumerate(grid[:, k].tolist()):
                pairs[i, k] = weighed_pair(held, at, own[i])
        return ManyClassIntervals(pairs, self.classes)


def _of_probabilities(name: str, machine: Any) -> Any:
    """Return the machine or scorer; a scorer with probabilities is read by them. Refuse anything else."""
    scorer_of_classes(name, machine)
    return machine.by_probabilities() if has_methods(machine, "by_probabilities") else machine


@component
class InductiveVennAbers(Inductive[ManyClassIntervals]):
    """Venn-Abers predictor of every class, by a scorer that is not trained on the examples it calibrates on.

    For class k the label is "k or not". Isotonic regression is fitted to the scores of class k of the calibration
    examples and the new one, which is supposed first not k, then k; its values at the new one are (p0, p1). Its
    categories are the blocks of the isotonic fit, so each pair is a Venn prediction of the event y = k: when
    calibration examples and the new one are exchangeable, the value under the true hypothesis is perfectly
    calibrated. What holds of sums over a stream depends on the schedule, as for `InductiveVenn`.

    Scores are compared on a grid of 1e-6, so that equal scores stay equal whatever the order of training does to their
    last bits. Scores that differ by less may count as equal, which harms no theorem: give decision values, or
    logarithms, where probabilities below 1e-6 matter.

    Of more than two classes a decision value means something beside the others only, and here each class is read by
    itself. So the probabilities of a `FrozenScorer` are read, where it has `predict_proba` and was given no `method`:
    `given` is then the scorer by probabilities.

    Predicting and learning cost O(c log^2 m) for m calibration examples, some microseconds for each class.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing, or a scorer fitted elsewhere, on other examples.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenScorer`. The former trains on all
        examples each time: set its `last` where the machine's memory grows as the square of their number.
    shift : CovariateShift, optional
        For objects that are distributed differently in use. A prediction then costs O(c m).

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError
        A part is not what it must be.
    ValueError
        The machine has learned, or the schedule does not suit it.

    References
    ----------
    Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of
    validity", arXiv:1511.00213.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from venn.machines.frozen import FrozenScorer
    >>> scorer = FrozenScorer(LinearSVC().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]))
    >>> model = InductiveVennAbers(scorer)
    >>> model.learn_many([[0.2], [0.3], [1.1], [0.9]], ["no", "no", "yes", "yes"])
    >>> model.predict_one([1.0]).pairs.round(3)
    array([[0. , 0.5],
           [0.5, 1. ]])
    """

    questioned = True

    machine: Any = param(_of_probabilities, kept_as="given")
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    shift: CovariateShift | None = param(checked_covariates, default=None, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return a calibrator for each class."""
        return (ClasswiseAbers if self.shift is None else WeighedAbers)(tuple(self.given.classes))

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return the intervals of every class for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.said_of(*self.scored(x))

    def said_of(self, rows: ObjectRows, scores: Floats) -> ClassIntervals:
        """Return the intervals of a checked object, from its scores."""
        reader = self._reader
        return reader.nothing(1)[0] if self.scorer is None else reader.predict_one(scores)
