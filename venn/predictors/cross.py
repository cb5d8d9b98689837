"""Cross Venn prediction: several inductive predictors, each calibrated on its own fold of the examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.labels import space_of
from venn.parameters import above_one, integer, optional
from venn.prediction import NOTHING, Bools, Label, Multiprobability, RowMean
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.counts import counter
from venn.predictors.inductive import checked_taxonomy
from venn.predictors.inductive_base import InductivePart, OnGiven, scorer_of_classes
from venn.predictors.learning import WeighsClasses, teach_all
from venn.priors import PriorShift, checked_ratios
from venn.saved import component, own, param, saved, state
from venn.schedules import FIRST, RandomAssignment
from venn.taxonomies import ByScores


@saved
class Fold(RandomAssignment):
    """One fold's assignment: every example belongs to one fold, by draws that all folds share."""

    def __init__(self, fold: int, folds: int, seed: int, first: int, growth: float, last: int | None) -> None:
        super().__init__(1 / folds, seed, first, growth, last)
        self.fold = fold
        self.folds = folds

    def calibrates(self, n: int, count: int, rng: np.random.Generator) -> Bools:
        """Draw for each example whether it belongs to this fold."""
        return np.floor(rng.random(count) * self.folds) == self.fold


def _parts(model: CrossVenn) -> list[InductivePart[ManyMultiprobabilities]]:
    """Return a predictor for each fold."""
    machine, classes = model.given, tuple(model.given.classes)
    ratios = checked_ratios(model.shift, classes)
    return [
        InductivePart(
            machine,
            counter(model.taxonomy, classes, RowMean(), ratios),
            Fold(k, model.folds, model.seed, model.first, model.growth, model.last),
        )
        for k in range(model.folds)
    ]


@component
class CrossVenn(WeighsClasses, OnGiven):
    """Inductive Venn predictors on complementary parts, their counts averaged.

    Every example is assigned at random, for good, to one of K folds. Predictor k calibrates on fold k and
    trains on all other folds, so that every example calibrates once and trains K - 1 times. Training happens
    at growing numbers of examples (a transductive predictor would retrain at every one); in between, new
    examples calibrate in their fold. The K counts in the object's categories are averaged, and row j of the
    answer is (mean counts + 1{k = j}) / (mean size + 1).

    Each of the K predictions is valid alone. Nothing is proved about their merge: it is offered because it is sharp on
    few data, where giving up examples to calibration costs much.

    Costs K machines, each trained on (K - 1) / K of the examples, and K scorings for a prediction.

    Parameters
    ----------
    machine : Machine
        One that has learned nothing; its `fresh()` copies learn.
    taxonomy : taxonomy on scores, default Argmax()
    folds : int >= 2, default 5
    seed : int >= 0, default 0
        Seed of the assignment to folds.
    first : int >= 1, default 32
        Examples at the first training; predictions before it say nothing.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples. By default there is always a next training: set it where the
        machine's memory grows as the square of the number of examples.
    shift : PriorShift, optional
        For learned examples whose class frequencies differ from those of the objects asked about. Each part is then
        valid as `InductiveVenn` says; about the merge nothing is proved, as without a shift.

    Raises
    ------
    ValueError, TypeError
        A parameter is not as described, the taxonomy is not for that many classes, or the machine has learned or cannot
        learn.

    References
    ----------
    After the cross-conformal predictors of Vovk (2015).

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = CrossVenn(machine, folds=2, first=6)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes"), ([0.2], "no"), ([1.1], "yes")]:
    ...     model.learn_one(x, y)
    >>> prediction = model.predict_one([0.05])
    >>> prediction.label, prediction.guaranteed
    ('no', 'nothing')
    """

    unnamed = 2

    machine: Any = param(scorer_of_classes, kept_as="given")
    taxonomy: ByScores = param(checked_taxonomy, own(lambda m: len(m.given.classes)), default=None)
    folds: int = param(integer, 2, default=5, sized=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    first: int = param(integer, 1, default=32, kw_only=True)
    growth: float = param(above_one, default=2.0, kw_only=True)
    last: int | None = param(optional, integer, FIRST, default=None, kw_only=True)
    shift: PriorShift | None = param(default=None, kw_only=True)

    parts: list[InductivePart[ManyMultiprobabilities]] = state(None, start=own(_parts), within=True)

    def derive(self) -> None:
        """Say how examples weigh."""
        self.space = space_of(self.given)
        self._ratios = checked_ratios(self.shift, self.classes)

    @property
    def n(self) -> int:
        """Number of examples learned."""
        return self.parts[0].n

    def predict_many(self, X: Any) -> ManyMultiprobabilities:
        """Return predictions for many objects, all from the present state; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers
        """
        return self._merged([part.predict_many(X) for part in self.parts])

    def _merged(self, blocks: list[ManyMultiprobabilities]) -> ManyMultiprobabilities:
        counts = np.mean([block.counts for block in blocks], axis=0)
        return ManyMultiprobabilities(counts, self.classes, RowMean(), None, NOTHING, self._ratios)

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self._merged([part.predict_block(x) for part in self.parts])[0]

    def note(self, x: Any, y: Label) -> list[Any]:
        """Return what each fold notes, or raise what learning would raise."""
        return [part.note(x, y) for part in self.parts]

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example, and train if it is time to.

        Raises
        ------
        NotConverged
            A training failed: that fold says nothing until its next training; all other folds have learned.
        """
        teach_all(self.parts, x, y, noted or self.note(x, y))
