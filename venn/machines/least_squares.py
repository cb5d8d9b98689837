"""Least-squares support vector machines, kept exact online, with exact leave-one-out scores."""

from __future__ import annotations

from operator import methodcaller
from typing import NamedTuple

import numpy as np

from venn.machines.base import BaseHypotheses
from venn.machines.machine import Bag, ScoreTable, Tables
from venn.machines.ridge import Bordered, RidgeSystem
from venn.machines.store import Content, StoreWeighing
from venn.prediction import Floats, Integers
from venn.saved import component, own, state
from venn.turns import asks, changes

SMALLEST = 1e-300  # least C weight of an example: the equations contain its inverse


@component
class LeastSquaresSVM(StoreWeighing):
    """One-against-all least-squares support vector machines, exact online.

    Machine k minimises 1/2 |w|^2 + C/2 sum_i (t_i - f_k(x_i))^2, t_i = +1 for class k and -1 for the others,
    with f_k(x) = <w, phi(x)> + b: ridge regression on the labels. The system that it solves does not depend
    on the labels, so one factor serves all classes and all hypotheses, and the score of each example by
    the machine *without* it follows in closed form. A step costs n^2
    multiplications in one pass over the n^2 / 2 numbers of the factor, and O(n c); nothing of order n^2 is written.

    Any example can be forgotten: `unlearn_one` turns the factor in place, by plane rotations in
    one pass over its numbers, and costs about as much as a step.

    Leave-one-out scores are exact. That of a new object is its score by the machines without it. It is the same under
    every hypothesis about its label.

    Memory: 4 n^2 bytes for n examples and little more. When room doubles, the old factor stands beside the
    new one for a moment; a new factorisation, made when a check fails, takes 12 n^2 bytes more for a moment. Memory
    never touched is never resident.

    Objects may be sparse, rows of `scipy.sparse` of shape (1, d) or (d,): the first one decides, and the others are
    converted. A dense object takes 8 d bytes, a sparse one 12 for each number that is not 0 and 16.

    Parameters
    ----------
    kernel : Kernel
        `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the same method.
    C : float > 0
        Weight of the squared errors; 1 / C is the ridge.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    class_weights : sequence of c numbers > 0, optional
        Weight of an example of each class; 1 by default. An example of weight w counts as w equal ones.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are, and a
        `ScaleWarning` says where columns are far apart; False keeps quiet.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst error of the equations K a + a / C + b = t over all machines, the kernel computed afresh.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When an equation misses the tolerance of 1e-7, or rounding may cost a leave-one-out score as much, after a new
        factorisation too: C times the largest K(x, x), or squared distance, is too large for double precision, or the
        kernel is not positive semidefinite. Nothing is learned, or forgotten, then.

    Notes
    -----
    Every question and every unlearning checks all equations: the new example's own, a randomly weighted sum of all
    others', and each of these where the sum is not small; and whether leave-one-out scores keep enough digits. For one
    old example, in turn, its entry of the inverse's diagonal is checked too, and at 64 examples, and whenever they have
    doubled, all are. On failure everything is computed afresh. A column that is large and hardly varies costs no
    digits: the linear kernel is computed of dense objects less one of them, where that is far nearer than 0. The
    tolerance is a tenth of the grid on which taxonomies compare scores.

    References
    ----------
    Suykens & Vandewalle (1999), "Least squares support vector machine classifiers"; Cawley & Talbot (2004),
    "Fast exact leave-one-out cross-validation of sparse least-squares support vector machines".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 0.977, -0.977])
    >>> machine.hypotheses([0.6]).leave_one_out(1).shape
    (5, 2)
    """

    exact_leave_one_out = True

    _system: RidgeSystem = state(start=own(methodcaller("_new_system")), within=True)

    def _new_system(self) -> RidgeSystem:
        return RidgeSystem(self._store, len(self.classes), -1.0)

    def derive(self) -> None:
        """Group the classes by weight; targets are +1 and -1."""
        super().derive()
        self._values, self._group = np.unique(self.class_weights, return_inverse=True)
        self._tables = np.empty((len(self._values), 4, len(self.classes), 0))
        if self.n:
            self._make_room(self.n)

    def _make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        self._system.make_room(n)
        self._examples.make_room(n)
        if self._system.room > self._tables.shape[-1]:
            self._tables = np.empty((*self._tables.shape[:3], self._system.room))

    # ------------------------------------------------------------------ reading

    @property
    @asks
    def residual(self) -> float:
        """Worst error of the equations over all examples and machines, the kernel computed afresh."""
        return self._system.residual

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by example."""
        return Bag(self._system.training_scores(), self._counts())

    @property
    def leave_one_out_bag(self) -> Bag:
        """Score of each example by the machines without it, by example; 0 where there is only one."""
        return Bag(self._system.leave_one_out_scores(), self._counts())

    def _counts(self) -> Integers:
        counts = np.zeros((self.n, len(self.classes)), np.int64)
        counts[np.arange(self.n), self._examples.codes[: self.n]] = 1
        return counts

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        return self._system.scores_of(x)

    # ----------------------------------------------------------------- learning

    def _solved_for(self, x: Content, key: bytes, weight: float) -> LeastSquaresHypotheses:
        with np.errstate(over="ignore"):  # an infinite bound is no ridge
            bounds = self.C * weight * self._values
        if not bounds.min() >= SMALLEST:
            raise ValueError(f"weight must be 0, or C weight at least {SMALLEST:g} for each class, got {weight!r}")
        ridges = 1 / bounds
        self.forget()
        n = self.n
        self._make_room(n + 1)
        bordered = self._system.border(x, ridges)
        codes = self._examples.codes[: n + 1]
        codes[n] = 0
        supposed = Supposed(
            self._group, codes, self._store.columns[:, : n + 1],
            self._system, bordered, self._tables,
        )  # fmt: skip
        return LeastSquaresHypotheses(key, self._system.new_scores(), float(weight), supposed)

    def _learn(self, answer: LeastSquaresHypotheses, label: int, weight: float) -> None:
        self.forget()
        targets = np.where(np.arange(len(self.classes)) == label, 1.0, -1.0)
        self._system.append(answer.supposed.bordered[self._group[label]], targets)
        self._examples.append(label, weight)

    @changes
    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then the one that has learned the others.

        By plane rotations of the factor's rows, in place and stable; the last example's row is simply dropped.
        Forgetting the last learned example at once, and not in a copy, restores every bit. Predictors that number
        their steps need a `SlidingWindow`, which counts what it forgets.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Its place in order of arrival, 0 the oldest; later ones move up.

        Raises
        ------
        TypeError, ValueError
            For any other `i`.
        NotConverged
            When an equation misses the tolerance of 1e-7; then nothing is forgotten.

        References
        ----------
        Gill, Golub, Murray & Saunders (1974), "Methods for modifying matrix factorizations"; here of the inverse.

        Examples
        --------
        >>> import venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
        >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n, machine.scores([0.0]).round(3)
        (4, array([ 0.977, -0.977]))
        """
        i = self._leaving(i)
        self.forget()
        self._system.remove(i)
        self._examples.remove(i)


class Supposed(NamedTuple):
    """The data of an answer about an object; the new example comes last."""

    group: Integers  # (c,) group of classes of equal weight to which each class belongs
    labels: Integers  # (n + 1,) class codes, in order of arrival
    columns: Floats  # (d, n + 1) objects, empty where they are sparse
    system: RidgeSystem
    bordered: list[Bordered]  # by group
    room: Floats  # (groups, 4, c, > n) for tables: of training scores and leave-one-out ones, negative and positive


class LeastSquaresHypotheses(BaseHypotheses):
    """What the machines would look like if the new object had each of the labels.

    There is one table for all hypotheses unless classes differ in weight: then one for each weight. The leave-one-out
    score of the new example is the same under every hypothesis.
    """

    def __init__(self, key: bytes, test_scores: Floats, weight: float, supposed: Supposed) -> None:
        super().__init__(key, test_scores, weight)
        self.supposed = supposed
        self._ready = [False, False]  # tables of training and of leave-one-out scores

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        return np.arange(len(self.supposed.labels) - 1)

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        pairs = self.fill(leave_one_out)
        supposed = self.supposed
        n = len(supposed.labels) - 1
        numbers = np.ones(n + 1, np.int64)
        numbers[n] = 0
        return [
            (
                ScoreTable(negative, positive, supposed.labels, numbers, n, supposed.columns),
                np.flatnonzero(supposed.group == group),
            )
            for group, (negative, positive) in enumerate(pairs)
        ]

    def fill(self, leave_one_out: bool) -> Floats:
        """Return the scores, computed once: by group, negative and positive, (groups, 2, c, > n)."""
        self.check_current()
        supposed = self.supposed
        pairs = supposed.room[:, 2 * leave_one_out : 2 * leave_one_out + 2]
        if not self._ready[leave_one_out]:
            for new, (negative, positive) in zip(supposed.bordered, pairs, strict=True):
                supposed.system.fill(leave_one_out, new, self.test_scores, 2.0, negative, positive)
            self._ready[leave_one_out] = True
        return pairs

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) coefficients C weight (t - f) under hypothesis j, in the same order."""
        scores, supposed = self.scores(j), self.supposed
        targets = np.where(np.append(self.labels, j)[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        n = len(supposed.labels) - 1
        ridge = np.append(supposed.system.ridge[:n], supposed.bordered[supposed.group[j]].ridge)
        return (targets - scores) / ridge[:, None]
