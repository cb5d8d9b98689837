"""Inductive Venn-Abers: one online calibrator for each class, behind the schedules of inductive predictors."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.calibrators import VennAbers
from venn.prediction import Bools, ClassIntervals, Floats, Integers, Label
from venn.predictors.base import Inductive, schedule_for
from venn.predictors.blocks import ManyClassIntervals
from venn.predictors.merging import Mergeable
from venn.predictors.schedules import Schedule
from venn.taxonomies.scores import on_grid

LARGEST = 1e300  # of scores told apart: larger ones have no place on the grid


def steps(scores: Floats) -> Floats:
    """Return the scores in whole steps of the grid of 1e-6 that taxonomies compare them on too."""
    return on_grid(np.clip(scores, -LARGEST, LARGEST))


class ClasswiseAbers(Mergeable):
    """Reader of calibration scores: class k against all others by column k, one `VennAbers` for each class.

    Scores are compared on the grid: isotonic regression knows their order and ties alone, so whole steps do.
    """

    def __init__(self, classes: tuple[Label, ...]) -> None:
        self.classes = classes
        self.clear()

    def _parameters(self) -> dict[str, Any]:
        return {"classes": self.classes}

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._calibrators: list[VennAbers] = [VennAbers() for _ in self.classes]

    def _hold(self, one: ClasswiseAbers, other: ClasswiseAbers) -> None:
        pairs = zip(one._calibrators, other._calibrators, strict=True)
        self._calibrators = [a.merge(b) for a, b in pairs]

    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""
        grid = steps(scores)
        for k, calibrator in enumerate(self._calibrators):
            calibrator.insert_many(grid[:, k], codes == k)

    def predict(self, scores: Floats) -> ManyClassIntervals:
        """Return the predictions for n objects of (n, c) scores, each as if it came alone; leaves no trace."""
        grid = steps(scores)
        pairs = [calibrator.query_many(grid[:, k]) for k, calibrator in enumerate(self._calibrators)]
        return ManyClassIntervals(np.stack(pairs, axis=1), self.classes)

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> ManyClassIntervals:
        """Predict, then take in where it calibrates, each example in turn; return the predictions."""
        grid, pairs = steps(scores), np.empty((*scores.shape, 2))
        for k, calibrator in enumerate(self._calibrators):
            examples = zip(grid[:, k].tolist(), (codes == k).tolist(), calibrates.tolist(), strict=True)
            for pair, (score, y, calibrate) in zip(pairs[:, k], examples, strict=True):
                pair[:] = calibrator.query(score)
                if calibrate:
                    calibrator.insert(score, y)
        return ManyClassIntervals(pairs, self.classes)

    def nothing(self, n: int) -> ManyClassIntervals:
        """Return predictions for n objects that say nothing, for want of a scorer: [0, 1] for every class."""
        return ManyClassIntervals(np.tile([0.0, 1.0], (n, len(self.classes), 1)), self.classes)

    def join(self, blocks: list[ManyClassIntervals]) -> ManyClassIntervals:
        """Return one block of all, in order."""
        return ManyClassIntervals.join(blocks)


class InductiveVennAbers(Inductive[ManyClassIntervals]):
    """Venn-Abers predictor of every class, by a scorer that is not trained on the examples it calibrates on.

    For class k the label is "k or not". The isotonic regression of the calibration examples and the new one
    on their scores of class k, the new one supposed not k and then k, is read at the new one: (p0, p1). Its
    categories are the blocks of the isotonic fit, so each pair is a Venn prediction of the event y = k:
    when calibration examples and the new one are exchangeable, the one of the true hypothesis is perfectly
    calibrated. What holds of sums over a stream is the schedule's, as for `InductiveVenn`.

    Scores are compared on a grid of 1e-6, so that equal ones are equal whatever the order of training has left
    in their last bits. Scores that differ by less may be taken for equal, which no theorem minds: give
    decision values, or logarithms, where probabilities below 1e-6 matter.

    Predicting and learning cost O(c log^2 m) for m calibration examples, some microseconds for each class.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing, or a scorer fitted elsewhere, on other examples.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenScorer`. The former trains on
        everything each time: give it `last` where the machine's memory grows as the square of that.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Not to be taught.

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

    def __init__(self, machine: Any, schedule: Schedule | None = None) -> None:
        schedule = schedule_for(machine, schedule)
        super().__init__(machine, ClasswiseAbers(tuple(machine.classes)), schedule)

    def __repr__(self) -> str:
        return f"InductiveVennAbers({self._given!r}, schedule={self.schedule!r})"

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return the intervals of every class for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.predict_block(x)[0]
