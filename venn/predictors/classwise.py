"""Venn-Abers over the whole augmented bag, one binary problem for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.classwise import classwise_pairs
from venn.machines.machine import Machine, checked_machine
from venn.prediction import ClassIntervals, Label


class TransductiveVennAbers:
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
        if not isinstance(deleted, bool | np.bool_):
            raise TypeError(f"deleted must be True or False, got {deleted!r}")
        self.deleted = bool(deleted)
        self._order = np.zeros((2, len(machine.classes), 0), np.int64)

    def __repr__(self) -> str:
        return f"TransductiveVennAbers({self.machine!r}, deleted={self.deleted})"

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return a pair of probabilities for each class; leaves no trace that a later answer depends on.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        hypotheses = self.machine.hypotheses(x)
        table = hypotheses.deleted_table if self.deleted else hypotheses.table
        # Scores move little in one step: the last order nearly sorts them.
        order = self._order
        if order.shape[2] > len(table.labels):
            order = order[:, :, :0]
        pairs, self._order = classwise_pairs(
            table.negative, table.positive, table.labels, table.weights, table.test, order
        )
        return ClassIntervals(pairs, self.classes)

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example."""
        self.machine.learn_one(x, y)
        self.after_learning(x, y)

    def after_learning(self, x: Any, y: Label) -> None:
        """Nothing: the machine holds all there is to know."""
