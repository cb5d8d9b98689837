"""Venn-Abers over the whole augmented bag, one binary problem for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.classwise import classwise_pairs
from venn.machines.around import inside
from venn.machines.machine import Machine, checked_machine, only_table
from venn.machines.one_vs_one import OneVsOneSVM
from venn.parameters import flag
from venn.prediction import ClassIntervals
from venn.predictors.learning import OnMachine
from venn.saved import saved


@saved
class TransductiveVennAbers(OnMachine):
    """Venn-Abers predictor of every class, over the whole augmented bag.

    For class k the label is "k or not". Under each of the two hypotheses about the new example, isotonic regression
    maps the scores by machine k of all examples, the new one included, to rates of k; its values at the new example
    are (p0, p1). The category of an example is its block of equal rates, so each pair is a Venn prediction of the
    event y = k: under exchangeability the value under the true hypothesis is perfectly calibrated.

    With deleted scores (the default) it is sharp; with training scores of a flexible machine the
    supposed label shows in its own score, and the pair says little.

    Scores are compared on a grid of 1e-6, as in `Argmax`. p0 <= p1 is not certain, as each hypothesis has its own
    scores. With exactly deleted scores the order is kept from step to step, and a step costs O(n c) besides the
    machine.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    deleted : bool, default True
        Use the score of each example by the machines without it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. With machines of pairs of classes, or unequal class weights, scores differ for
        every supposed label, so "not k" has no scores of its own.

    References
    ----------
    Vovk & Petej (2014), "Venn-Abers predictors".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = TransductiveVennAbers(machine)
    >>> model.predict_one([0.0]).pairs
    array([[0., 1.],
           [0., 1.]])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    ClassIntervals('no': [0.667, 1.000])
    """

    def __init__(self, machine: Machine, deleted: bool = True) -> None:
        self.machine = checked_machine(machine)
        alone = inside(machine)
        if isinstance(alone, OneVsOneSVM):
            raise TypeError(
                f"machine must score a class against all others, as OneVsAllSVM does, for {type(self).__name__}, "
                f"got {machine!r}: its scores if the label is not k depend on which other label it is"
            )
        if len(set(getattr(alone, "class_weights", ()))) > 1:
            raise ValueError(
                f"class_weights must be equal for {type(self).__name__}, got {alone.class_weights.tolist()!r}: scores "
                "if the label is not k depend on which other label it is"
            )
        self.deleted = flag("deleted", deleted)
        if self.deleted:
            machine.expect_deleted()
        self._order = np.zeros((2, len(machine.classes), 0), np.int64)

    def __repr__(self) -> str:
        return f"TransductiveVennAbers({self.machine!r}, deleted={self.deleted})"

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return a pair of probabilities for each class; it changes no later answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        table = only_table(self.machine.hypotheses(x).tables(self.deleted))
        # Scores move little in one step: the last order nearly sorts them.
        order = self._order
        if order.shape[2] > len(table.labels):
            order = order[:, :, :0]
        pairs, self._order = classwise_pairs(
            table.negative, table.positive, table.labels, table.weights, table.test, order
        )
        return ClassIntervals(pairs, self.classes)
