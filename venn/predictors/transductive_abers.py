"""Venn-Abers over the whole augmented bag, one binary problem for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.classwise import classwise_pairs
from venn.machines.machine import Machine, checked_machine, only_table
from venn.machines.one_vs_one import OneVsOneSVM
from venn.machines.window import inside
from venn.parameters import flag
from venn.prediction import ClassIntervals
from venn.predictors.learning import OnMachine
from venn.saved import saved


@saved
class TransductiveVennAbers(OnMachine):
    """Venn-Abers predictor of every class, over the whole augmented bag.

    For class k the label is "k or not". Under each of the two hypotheses about the new example the
    scores of all examples by machine k, the new one included, are mapped to rates of k by isotonic
    regression, and the map is read at the new example: (p0, p1). The category of an example is its block
    of equal rates, so each pair is a Venn prediction of the event y = k: under exchangeability the one
    of the true hypothesis is perfectly calibrated.

    With deleted scores (the default) it is sharp; with training scores of a flexible machine the
    supposed label shows in its own score, and the pair says little.

    Scores are compared on a grid of 1e-6, as in `Argmax`. p0 <= p1 is not certain: the two
    hypotheses have scores of their own. With exactly deleted scores the order is kept from step to step
    and a step costs O(n c) beside the machine.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    deleted : bool, default True
        Use the score of each example by the machines without it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not that: machines of pairs of classes, and classes of unequal weights, have other scores for
        every label that is supposed, so that "not k" has none.

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
                f"got {machine!r}: its scores where the label is not k hang on which other one it is"
            )
        if len(set(getattr(alone, "class_weights", ()))) > 1:
            raise ValueError(
                f"class_weights must be equal for {type(self).__name__}, got {alone.class_weights.tolist()!r}: scores "
                "where the label is not k hang on which other one it is"
            )
        self.deleted = flag("deleted", deleted)
        if self.deleted:
            machine.expect_deleted()
        self._order = np.zeros((2, len(machine.classes), 0), np.int64)

    def __repr__(self) -> str:
        return f"TransductiveVennAbers({self.machine!r}, deleted={self.deleted})"

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return a pair of probabilities for each class; leaves no trace that a later answer depends on.

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
