"""Measures of nonconformity: how strange each example is among all, and the new example's rank by that."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from venn._compiled.nonconformity import rank_beside_rivals, rank_own, start_counts, tally
from venn.machines.kernels import Linear, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.least_squares_hypotheses import LeastSquaresHypotheses
from venn.machines.logistic import KernelLogisticRegression
from venn.machines.logistic_hypotheses import LogisticHypotheses
from venn.machines.machine import Hypotheses, Machine, ScoreTable, inside, under_each
from venn.machines.objects import NearestNeighbours
from venn.machines.one_vs_all import OneVsAllHypotheses, OneVsAllSVM
from venn.prediction import Floats, Integers, Parameters
from venn.taxonomies.scores import on_grid


class Ranks(NamedTuple):
    """The new example's nonconformity among those of all, under every hypothesis.

    Row j supposes that the new label is class j. Column y counts examples of class y, the new one included,
    as one of class j. Nonconformity is compared on a grid of 1e-6.
    """

    greater: Integers  #: (c, c) examples of greater nonconformity than the new one's
    equal: Integers  #: (c, c) examples of equal nonconformity, the new one among them
    total: Integers  #: (c, c) examples


class Measure(Protocol):
    """What a conformal predictor asks of a nonconformity measure."""

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""

    def check_machine(self, machine: Machine) -> None:
        """Raise where the measure cannot be had from the machine; a predictor asks once, when it is made."""


def checked_measure(measure: Any) -> Measure:
    """Return `measure`, or say what is wrong with it."""
    if isinstance(measure, type | str) or not all(
        callable(getattr(measure, method, None)) for method in ("rank", "check_machine")
    ):
        raise TypeError(
            "measure must be a nonconformity measure, with methods 'rank' and 'check_machine', such as Margin(), "
            f"got {measure!r}"
        )
    known: Measure = measure
    return known


class ByScores(Parameters):
    """Base of measures that are functions of the scores and the labels.

    A subclass gives `values(scores, codes)`, which must treat all rows alike: permuting the rows permutes the
    values. That alone makes conformal predictors valid; a good measure makes their sets small.

    Attributes
    ----------
    deleted : bool, default True
        Read the score of each example by the machines without it, not those of training: a flexible machine fits
        whatever label is supposed, and then no label looks strange.
    pointwise : bool, default False
        The value of an example depends on its own scores and label alone. A subclass of which that is
        true may say so: equal examples are then valued once, and the inductive predictor can use it.

    Examples
    --------
    The probability that softmax denies the own class:

    >>> class Denied(ByScores):
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

    deleted: bool = True
    pointwise: bool = False

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) nonconformity, larger where stranger; infinite ones will do, NaN will not.

        Parameters
        ----------
        scores : (n, c) float64
        codes : (n,) int64 class codes
            The labels, for the new example the supposed one.
        """
        raise NotImplementedError

    def checked_values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) values, NaN among them or not.

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

    def check_machine(self, machine: Machine) -> None:
        """Do nothing: every machine has scores."""

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""
        return under_each(hypotheses, self.deleted, self.rank_table)

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the scores in a table, be they of training or deleted."""
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


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or say what it must be."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


class BesideRivals(ByScores):
    """Base of `Margin` and `DistanceRatio`: the own score beside the best of the other classes, by a compiled path."""

    pointwise = True
    _ratio: bool
    _known: Callable[..., Floats]  # the `values` that the compiled path ranks by

    def __init__(self, deleted: bool = True) -> None:
        self.deleted = flag("deleted", deleted)

    def _check_table(self, table: ScoreTable) -> None:
        """Raise where the measure is not for such scores."""

    def rank_table(self, table: ScoreTable) -> Ranks:
        """Rank the new example by the compiled path: the scores of a hypothesis are never gathered."""
        if type(self).values is not type(self)._known:  # of a subclass that has its own
            return super().rank_table(table)
        self._check_table(table)
        return Ranks(
            *rank_beside_rivals(
                table.negative, table.positive, table.labels, table.weights, table.test, type(self)._ratio
            )
        )


class Margin(BesideRivals):
    """How far the best of the other classes' scores is above that of the own class.

    A_i = max over k != y_i of s_k(x_i), less s_{y_i}(x_i). All machines are trained on the whole bag, so the
    measure treats all examples alike, whatever their labels. A step costs O(n c) beside the machine.

    Parameters
    ----------
    deleted : bool, default True
        Use the score of each example by the machines without it.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 3 and 4.

    Examples
    --------
    >>> Margin().values(np.array([[1.0, -1.0, 0.5], [1.0, -1.0, 0.5]]), np.array([0, 1]))
    array([-0.5,  2. ])
    """

    _ratio = False

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) largest scores of other classes less those of the own."""
        own, rival = own_and_rival(scores, codes)
        values: Floats = rival - own
        return values

    _known = values


class DistanceRatio(BesideRivals):
    """Distance to the own class over the least distance to another class, for machines whose scores are distances.

    A_i = s_{y_i}(x_i) / max over k != y_i of s_k(x_i), the scores being distances with a minus sign, as of
    `NearestCentroid`. 1 where both distances are 0, or both infinite.

    Parameters
    ----------
    deleted : bool, default True
        Use the distance of each example from the others; otherwise it may stand beside itself, at distance 0.

    Raises
    ------
    TypeError
        By predictors, for a machine here whose scores are no distances.
    ValueError
        By predictions, for scores above 0.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 3: nearest neighbours.

    Examples
    --------
    >>> DistanceRatio().values(np.array([[-1.0, -2.0], [-1.0, 0.0], [0.0, 0.0]]), np.array([0, 0, 1]))
    array([0.5, inf, 1. ])
    """

    _ratio = True

    def check_machine(self, machine: Machine) -> None:
        """Raise where scores are known to be no distances; others show by their sign."""
        if isinstance(inside(machine), OneVsAllSVM | LeastSquaresSVM | NearestNeighbours):
            raise TypeError(
                "machine must have distances for scores, as NearestCentroid and NeighbourDistances have, for "
                f"{self!r}, got {machine!r}: Margin() goes with every machine"
            )

    def _check(self, largest: float) -> None:
        if largest > 0:
            raise ValueError(
                f"scores must be minus distances, at most 0, as of NearestCentroid, for {self!r}, got {largest}"
            )

    def _check_table(self, table: ScoreTable) -> None:
        m = len(table.labels)
        self._check(max(table.negative[:, :m].max(), table.positive[:, :m].max()))

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) ratios of the own distance and the least other one, in [0, inf]."""
        self._check(scores.max(initial=-np.inf))
        own, rival = own_and_rival(scores, codes)
        # One distance for both first: neither 0 / 0 nor inf / inf is computed. Beyond the largest number: infinite.
        with np.errstate(divide="ignore", over="ignore"):
            values: Floats = np.where(own == rival, 1.0, own) / np.where(own == rival, 1.0, np.abs(rival))
        return np.abs(values)

    _known = values


def own_and_rival(scores: Floats, codes: Integers) -> tuple[Floats, Floats]:
    """Return (n,) scores of the own class, and the largest of the others, from (n, c) scores."""
    rows = np.arange(len(codes))
    others = np.array(scores)
    own = others[rows, codes]
    others[rows, codes] = -np.inf
    return own, others.max(axis=1)


class Multiplier(Parameters):
    """The Lagrange multiplier of the example in the machine of its own class: the push that it takes to fit it.

    For `OneVsAllSVM` 0 beyond the margin, C where the margin is violated, between them on it. So most examples tie:
    smoothed p-values. With f the score by the own machine, the multiplier is C (t - f) t = C (1 - f) for
    `LeastSquaresSVM`, which may be negative, and C / (1 + e^f), C times the probability that the machine denies the own
    class, for `KernelLogisticRegression`. 0 where all examples are of one class. Multipliers are compared in
    units of C, on the grid of 1e-6.

    There is no deleted form beside it: the multiplier that an example gets on joining the bag without it is its
    multiplier in the bag.

    Raises
    ------
    TypeError
        By predictors, for a machine without multipliers.
    ValueError
        By predictors, for `OneVsAllSVM` with a `Linear` or `Polynomial` kernel: there the scores determine the
        multipliers no more once the objects on the margin are linearly dependent, and which of the solutions is
        found depends on the order of the examples. A kernel of your own must be strictly positive definite.

    Notes
    -----
    `OneVsAllSVM` keeps one coefficient b, the sum of the signed multipliers, for all examples at one object: P of
    the class and N of others. For a strictly positive definite kernel b is unique. The optimality conditions
    then determine the sum of the P multipliers, in units of C, as the nearest number to b / C + N in [0, P]:

    - where f > -1 the N others violate their margin, all are at C, and the sum is b / C + N, which is in [0, P];
    - where f <= -1 the P violate theirs, all are at C, and the sum is P; b / C >= P - N where f = -1, for the
      others carry at most N, and b / C = P where f < -1, for the others carry nothing; so b / C + N >= P.

    How equal examples, of one object and class, share the sum is not determined; here each has 1 / P of it. That
    is a function of bag and example which treats all examples alike.

    On the margin multipliers are as exact as the kernel matrix there is well-conditioned. A very flat RBF on few
    features is not, and near ties may then hang on rounding; `Margin` has no such trouble.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 3; Gammerman, Vovk &
    Vapnik (1998), "Learning by transduction".

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = venn.Conformal(machine, Multiplier())
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05]).label
    'no'
    """

    def check_machine(self, machine: Machine) -> None:
        """Raise where the machine has no multipliers, or none that are unique."""
        alone = inside(machine)
        if not isinstance(alone, OneVsAllSVM | LeastSquaresSVM | KernelLogisticRegression):
            raise TypeError(
                "machine must have Lagrange multipliers, as OneVsAllSVM, LeastSquaresSVM and KernelLogisticRegression "
                f"have, for {self!r}, got {machine!r}: Margin() goes with every machine"
            )
        if isinstance(alone, OneVsAllSVM) and isinstance(alone.kernel, Linear | Polynomial):
            raise ValueError(
                f"kernel must be strictly positive definite, as RBF is, for {self!r} on OneVsAllSVM, got "
                f"{alone.kernel!r}: its multipliers are not unique"
            )

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""
        return Ranks(*rank_own(*own_multipliers(hypotheses)))


class OwnMultipliers(NamedTuple):
    """Multipliers in units of C times the weight, by distinct example."""

    of_not: Floats  #: (m,) where the new example is supposed not of the example's class
    of: Floats  #: (m,) where it is
    of_test: Floats  #: (c,) of the new example as each class
    codes: Integers  #: (m,)
    weights: Integers  #: (m,)


@singledispatch
def own_multipliers(answer: Any) -> OwnMultipliers:
    """Return the multiplier of every example in the machine of its own class, in units of C times its weight."""
    raise TypeError(f"hypotheses must be those of a machine with multipliers, got {answer!r}")


@own_multipliers.register
def _of_hinge_loss(answer: OneVsAllHypotheses) -> OwnMultipliers:
    # `answer.duals(j)` would do, but not by distinct object: it costs O(n c) for each of c hypotheses.
    machine = answer._buffers()
    C, p = machine.C, answer.test
    mass, total = machine._objects.positive, machine._objects.total[0]
    objects, codes, weights = machine._examples(answer.count)
    if len(machine._branches.beta) > 2:
        raise ValueError(f"class_weights must be equal for Multiplier(), got {machine.class_weights.tolist()!r}")
    negative, positive = machine._branches.beta
    new = answer.weight * float(machine.class_weights[0])

    def share(sums: Floats, of_class: Floats, others: Floats) -> Floats:
        each: Floats = np.clip(sums / C + others, 0.0, of_class) / np.where(of_class > 0, of_class, 1.0)
        return each

    of_class = mass[codes, objects]
    others = total[objects] - of_class
    here = new * (objects == p)  # the new example stands here, with the class or the others
    return OwnMultipliers(
        share(negative[codes, objects], of_class, others + here),
        share(positive[codes, objects], of_class + here, others),
        share(positive[:, p], mass[:, p] + new, total[p] - mass[:, p]),
        codes,
        weights,
    )


@own_multipliers.register
def _of_squared_loss(answer: LeastSquaresHypotheses) -> OwnMultipliers:
    return _of_own_scores(answer.table, lambda f: 1.0 - f)


@own_multipliers.register
def _of_logistic_loss(answer: LogisticHypotheses) -> OwnMultipliers:
    own = _of_own_scores(answer.table, lambda f: expit(-f))
    sizes = np.bincount(own.codes, own.weights, len(own.of_test))
    only = sizes == sizes.sum()  # nothing has to be pushed where the new example is of the only class, too
    own.of[only[own.codes]] = 0.0
    own.of_test[only] = 0.0
    return own


def _of_own_scores(table: ScoreTable, multiplier: Callable[[Floats], Floats]) -> OwnMultipliers:
    columns = np.arange(len(table.labels))
    return OwnMultipliers(
        multiplier(table.negative[table.labels, columns]),
        multiplier(table.positive[table.labels, columns]),
        multiplier(table.positive[:, table.test]),
        table.labels,
        table.weights,
    )
