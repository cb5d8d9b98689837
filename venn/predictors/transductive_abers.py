"""Venn-Abers over the whole augmented bag, one binary problem for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.classwise import classwise_pairs
from venn.covariates import CovariateShift, checked_covariates
from venn.machines.machine import Machine, ScoreTable, only_table, weights_of
from venn.machines.window import inside
from venn.parameters import flag
from venn.prediction import ClassIntervals, Floats
from venn.predictors.inductive_abers import steps, weighed, weighed_pair
from venn.predictors.learning import OnMachine, machine_of_classes
from venn.saved import component, param


def weighed_pairs(table: ScoreTable, shift: CovariateShift) -> Floats:
    """Return the (c, 2) Venn-Abers pairs of a table whose examples are weighed by their objects."""
    c, weights = len(table.negative), weights_of(table, shift)
    pairs = np.empty((c, 2))
    for k in range(c):
        for label, j in ((0, (k + 1) % c), (1, k)):  # supposed another class, or this one
            keys = steps(table.scores(j)[:, k])
            examples = weighed(keys[:-1], table.codes(k)[:-1] == k, weights[:-1])
            pairs[k, label] = weighed_pair(examples, keys[-1], weights[-1])[label]
    return pairs


def one_against_all(name: str, machine: Any) -> Any:
    """Return a machine that scores each class against all others, whichever these are; or say what is wrong with it."""
    alone = inside(machine_of_classes(name, machine))
    if len(set(getattr(alone, "class_weights", ()))) > 1:
        raise ValueError(
            f"class_weights must be equal for one against all, got {alone.class_weights.tolist()!r}: scores if the "
            "label is not k depend on which other label it is"
        )
    return machine


@component
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
    shift : CovariateShift, optional
        For objects that are distributed differently in use; the machine must keep dense objects. A step then costs
        O(c n log n) besides the machine.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. With unequal class weights scores differ for
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

    machine: Machine = param(one_against_all)
    deleted: bool = param(flag, default=True)
    shift: CovariateShift | None = param(checked_covariates, default=None)

    def derive(self) -> None:
        """No example is in order yet."""
        if self.deleted:
            self.machine.expect_deleted()
        self._order = np.zeros((2, len(self.machine.classes), 0), np.int64)

    def predict_one(self, x: Any) -> ClassIntervals:
        """Return a pair of probabilities for each class; it changes no later answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        table = only_table(self.machine.hypotheses(x).tables(self.deleted))
        if self.shift is not None:
            return ClassIntervals(weighed_pairs(table, self.shift), self.classes)
        # Scores move little in one step: the last order nearly sorts them.
        order = self._order
        if order.shape[2] > len(table.labels):
            order = order[:, :, :0]
        pairs, self._order = classwise_pairs(
            table.negative, table.positive, table.labels, table.weights, table.test, order
        )
        return ClassIntervals(pairs, self.classes)
