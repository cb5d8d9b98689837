"""Nonconformity measures that are functions of the scores, and the new example's rank by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from venn._compiled.counting import GRID, OFFSET
from venn._compiled.nonconformity import rank_beside_rivals, start_counts, tally
from venn._compiled.ranks import margin_steps
from venn.machines.machine import Hypotheses, Machine, ScoreTable, under_each
from venn.parameters import Parameters, flag, with_methods
from venn.prediction import Floats, Integers
from venn.saved import component, param
from venn.shifts import CovariateShift, table_weights
from venn.taxonomies.scores import on_grid

CHUNK = 1024  # objects whose scores are repeated for every label at a time


class Ranks(NamedTuple):
    """The rank of the new example's nonconformity among all, under every hypothesis.

    Row j supposes that the new label is class j. Column y counts examples of class y, the new one included,
    as one of class j. Nonconformity is compared on a grid of 1e-6.
    """

    greater: Integers  #: (c, c) examples of greater nonconformity than the new one's
    equal: Integers  #: (c, c) examples of equal nonconformity, the new one among them
    total: Integers  #: (c, c) examples


class Measure(Protocol):
    """What a conformal predictor needs from a nonconformity measure."""

    @property
    def leave_one_out(self) -> bool:
        """Whether it reads leave-one-out scores: machines then expect that."""

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""

    def check_machine(self, machine: Machine) -> None:
        """Raise if the machine does not provide what the measure needs; a predictor calls this once, when made."""


def checked_measure(measure: Any) -> Measure:
    """Return `measure`, or say what is wrong with it."""
    named = "methods 'rank' and 'check_machine' and an attribute 'leave_one_out'"
    wanted = f"a nonconformity measure, with {named}, such as Margin()"
    return with_methods("measure", measure, wanted, "rank", "check_machine", has=["leave_one_out"])


class ScoreMeasure(Parameters):
    """Base of nonconformity measures that are functions of the scores and the labels.

    A subclass gives `values(scores, codes)`, which must treat all rows alike: permuting the rows permutes the
    values. That alone makes conformal predictors valid; a good measure makes their sets small.

    Attributes
    ----------
    leave_one_out : bool, default True
        Read the score of each example by the machines without it, not training scores: a flexible machine fits
        any supposed label, and then no label looks strange.
    pointwise : bool, default False
        The value of an example depends on its own scores and label alone. A subclass for which this is
        true may say so: equal examples are then valued once, and the inductive predictor can use it.
    of_probabilities : bool, default False
        Scores should be probabilities: a `Forecaster` shows those of a given classifier of more than two classes, if it
        has any. Elsewhere say `FrozenScorer(fitted, method="predict_proba")`.

    Examples
    --------
    The probability that softmax gives to the other classes:

    >>> class Denied(ScoreMeasure):
    ...     pointwise = True
    ...     def values(self, scores, codes):
    ...         shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    ...         shares /= shares.sum(axis=1, keepdims=True)
    ...         return 1 - shares[np.arange(len(codes)), codes]
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = venn.Conformal(machine, Denied())
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15]).set(0.2)
    ('no',)
    """

    leave_one_out = True
    pointwise = False
    of_probabilities = False

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) nonconformity, larger where stranger; may be infinite, not NaN.

        Parameters
        ----------
        scores : (n, c) float64
        codes : (n,) int64 class codes
            The labels, for the new example the supposed one.
        """
        raise NotImplementedError

    def checked_values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) values, of the right shape; may hold NaN.

        Raises
        ------
        ValueError
            `values` gave another shape.
        """
        values = np.asarray(self.values(scores, codes), np.float64)
        if values.shape != (len(scores),):
            raise ValueError(
                f"values must be ({len(scores)},) numbers, one for each row of scores, got shape {values.shape} "
                f"from {self!r}"
            )
        return values

    def steps(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) values in whole steps of the grid, checked.

        Raises
        ------
        ValueError
            `values` gave another shape, or NaN.
        """
        values = self.checked_values(scores, codes)
        if np.isnan(values).any():
            i = int(np.isnan(values).argmax())
            raise ValueError(f"values must not be NaN, got it for the scores {scores[i].tolist()} from {self!r}")
        with np.errstate(over="ignore"):  # beyond the largest number: infinite
            return on_grid(values)

    def steps_with_each_label(self, scores: Floats) -> Floats:
        """Return (n, c): the steps of n objects of (n, c) scores with each label; of pointwise measures."""
        values, every = np.empty(scores.shape), np.arange(scores.shape[1])
        for start in range(0, len(scores), CHUNK):
            part = scores[start : start + CHUNK]
            with np.errstate(over="ignore"):  # beyond the largest number: infinite
                repeated = self.steps(np.repeat(part, len(every), axis=0), np.tile(every, len(part)))
            values[start : start + CHUNK] = repeated.reshape(part.shape)
        return values

    def check_machine(self, machine: Machine) -> None:
        """Do nothing: every machine has scores."""

    def weighed_ranks(
        self, hypotheses: Hypotheses, shift: CovariateShift, label_conditional: bool
    ) -> tuple[Floats, ...]:
        """Return (c,) weights of examples of greater nonconformity, of equal, of all; the new one among the last two.

        Raises
        ------
        TypeError
            The machine's tables hold no dense objects.
        """

        def read(table: ScoreTable) -> tuple[Floats, ...]:
            weights = table_weights(table, shift)
            greater, equal, total = np.zeros((3, len(table.negative)))
            for j in range(len(total)):
                codes = table.codes(j)
                steps = self.steps(table.scores(j), codes)
                beside = weights[:-1] * (codes[:-1] == j) if label_conditional else weights[:-1]
                greater[j] = beside[steps[:-1] > steps[-1]].sum()
                equal[j] = beside[steps[:-1] == steps[-1]].sum() + weights[-1]
                total[j] = beside.sum() + weights[-1]
            return greater, equal, total

        return under_each(hypotheses.tables(self.leave_one_out), read)

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""
        return under_each(hypotheses.tables(self.leave_one_out), self.rank_table)

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the scores in a table, training or leave-one-out ones."""
        c, m = len(table.negative), len(table.labels)
        ranks = Ranks(*start_counts(c, table.labels, table.weights))
        columns = np.append(np.arange(m), table.test)
        for j in range(c):
            if self.pointwise:
                rows, codes = table.negative[:, columns], table.labels[columns]
                rows[j], codes[-1] = table.positive[j, columns], j
                steps = self.steps(rows.T, codes)
                tally(steps[:-1], steps[-1], table.labels, table.weights, ranks.greater[j], ranks.equal[j])
            else:
                codes = table.codes(j)
                steps = self.steps(table.scores(j), codes)
                ones = np.ones(len(codes) - 1, np.int64)
                tally(steps[:-1], steps[-1], codes[:-1], ones, ranks.greater[j], ranks.equal[j])
        return ranks


@component
class Margin(ScoreMeasure):
    """How far the best score of the other classes is above the score of the own class.

    A_i = max over k != y_i of s_k(x_i), less s_{y_i}(x_i). All machines are trained on the whole bag, so the
    measure treats all examples alike, whatever their labels. A step costs O(n c) in addition to the machine's.

    Parameters
    ----------
    leave_one_out : bool, default True
        Use the score of each example by the machines without it.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 3 and 4.

    Examples
    --------
    >>> Margin().values(np.array([[1.0, -1.0, 0.5], [1.0, -1.0, 0.5]]), np.array([0, 1]))
    array([-0.5,  2. ])
    """

    pointwise = True
    compiled_values: ClassVar[Callable[..., Floats]]  #: the `values` that the compiled paths rank by

    leave_one_out: bool = param(flag, default=True)

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) largest scores of other classes less those of the own."""
        rows = np.arange(len(codes))
        others = np.array(scores)
        own = others[rows, codes]
        others[rows, codes] = -np.inf
        return others.max(axis=1) - own

    compiled_values = values

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the compiled path: the scores of a hypothesis are never gathered."""
        if type(self).values is not Margin.compiled_values:  # of a subclass that has its own
            return super().rank_table(table)
        return Ranks(*rank_beside_rivals(table.negative, table.positive, table.labels, table.weights, table.test))

    def steps_with_each_label(self, scores: Floats) -> Floats:
        """Return (n, c): the steps of n objects of (n, c) scores with each label, compiled."""
        if type(self).values is Margin.compiled_values:
            out = np.empty(scores.shape)
            if margin_steps(scores, GRID, OFFSET, out):
                return out
        return super().steps_with_each_label(scores)  # which says what is wrong
