"""Nonconformity measures, by scores, by probabilities and by multipliers, and the new example's rank by them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import singledispatch
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from venn._compiled.counting import GRID, OFFSET
from venn._compiled.nonconformity import rank_beside_rivals, rank_own, start_counts, tally
from venn._compiled.ranks import margin_steps
from venn.machines.digests import digests_of
from venn.machines.hinge_hypotheses import OneVsAllHypotheses
from venn.machines.least_squares import LeastSquaresHypotheses
from venn.machines.machine import Hypotheses, Machine, ScoreTable, only_table, under_each
from venn.machines.window import inside
from venn.parameters import Parameters, flag, integer, not_negative, positive, with_methods
from venn.prediction import Bools, Floats, Integers
from venn.saved import component, param
from venn.shifts import CovariateShift, table_weights
from venn.smoothing import Smoothing
from venn.taxonomies.scores import on_grid

# --------------------------------------------------------------------------------------------------------------- scores
# Nonconformity measures that are functions of the scores, and the new example's rank by them.

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


# -------------------------------------------------------------------------------------------------------- probabilities
# Nonconformity measures on probabilities: what a scorer gives to other labels, or to those ranked before this one.

SUM = 1e-3  # how far from 1 the sum of probabilities may be that were rounded, as a `FrozenScorer` takes them
PLACE = 1 << 60  # of the random numbers of measures: no stream is so long that it uses them for its steps


def probabilities_of(scores: Floats, temperature: float) -> Floats:
    """Return (n, c) probabilities: a row of scores that is a distribution unchanged, any other by softmax.

    Each row by itself, so that all examples are treated alike.

    Examples
    --------
    >>> probabilities_of(np.array([[0.2, 0.8], [1.0, 1.0]]), 1.0)
    array([[0.2, 0.8],
           [0.5, 0.5]])
    """
    given = (scores >= 0).all(axis=1) & (np.abs(scores.sum(axis=1) - 1) <= SUM)
    with np.errstate(over="ignore", invalid="ignore"):
        soft = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    soft /= soft.sum(axis=1, keepdims=True)
    return np.where(given[:, None], scores, soft)


@functools.lru_cache(maxsize=64)
def _numbers(seed: int) -> Smoothing:
    return Smoothing(seed)


@component
class OnProbabilities(ScoreMeasure):
    """Base of the measures here: probabilities of own and other classes, and a random number for each object."""

    pointwise = True

    leave_one_out: bool = param(flag, default=True, kw_only=True)
    temperature: float = param(positive, default=1.0, kw_only=True)

    @property
    def of_probabilities(self) -> bool:  # type: ignore[override]
        """Whether probabilities are read where there are any: a temperature is one of decision values."""
        return self.temperature == 1

    def values(self, scores: Floats, codes: Integers) -> Floats:
        """Return the (n,) nonconformity."""
        p = probabilities_of(scores, self.temperature)
        steps = on_grid(p)  # probabilities that differ by rounding only are equal
        own = np.take_along_axis(steps, codes[:, None], axis=1)
        return self._of_shares(p, p[np.arange(len(codes)), codes], steps > own, steps)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) nonconformity.

        Parameters
        ----------
        p : (n, c) float64
            Probabilities.
        own : (n,) float64
            Of the own class.
        above : (n, c) bool
            Classes of larger probability than the own.
        steps : (n, c) float64
            Probabilities in steps of 1e-6, for `_number`.
        """
        raise NotImplementedError

    def _number(self, seed: int, steps: Floats) -> Floats:
        """Return (n,) random numbers in [0, 1), which follow from the seed and the row of probabilities alone."""
        return _numbers(seed).of(PLACE, digests_of(steps))


@component
class LAC(OnProbabilities):
    """One minus the probability of the own class: the smallest sets on average, empty ones where nothing is probable.

    Parameters
    ----------
    leave_one_out : bool, default True
        Read scores of machines without the example. Inductive predictors ignore it.
    temperature : float > 0, default 1
        A row of scores that is a distribution (as of a `FrozenScorer` with `predict_proba`) is taken as it is; any
        other goes through softmax, divided by the temperature. The same holds of all measures on probabilities.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.
    ValueError
        The temperature is not a finite number above 0.

    References
    ----------
    Sadinle, Lei & Wasserman (2019), "Least ambiguous set-valued classifiers with bounded error levels".

    Examples
    --------
    >>> LAC().values(np.array([[0.7, 0.2, 0.1]] * 2), np.array([0, 2])).round(2)
    array([0.3, 0.9])
    """

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) probabilities of the other classes."""
        return 1.0 - own


@component
class APS(OnProbabilities):
    """The probability of all classes down to the own one: sets whose size adapts to how hard an object is.

    A = sum of the probabilities above the own, plus (1 - u) of the own. u in [0, 1) is a random number of the object:
    it follows from the seed and the object's probabilities, so that the measure is a fixed function of an example, as
    validity requires, and an object asked about again has the same. Classes of equal probability are not above each
    other.

    Parameters
    ----------
    leave_one_out : bool, default True
    temperature : float > 0, default 1
        As for `LAC`.
    randomised : bool, default True
        False: u = 0; sets are then larger.
    seed : int >= 0, default 0
        Of u.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Romano, Sesia & Candès (2020), "Classification with valid and adaptive coverage".

    Examples
    --------
    >>> APS(randomised=False).values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2])).round(2)
    array([0.7, 0.9, 1. ])
    """

    randomised: bool = param(flag, default=True, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) masses down to the own class."""
        mass: Floats = (p * above).sum(axis=1) + own
        if self.randomised:
            mass -= self._number(self.seed, steps) * own
        return mass


@component
class RAPS(APS):
    """`APS` with a penalty for ranks: sets that are large for the sake of many improbable classes become smaller.

    A = APS + weight * max(0, rank - free), where rank is 1 for the most probable class.

    Parameters
    ----------
    weight : float >= 0, default 0.1
    free : int >= 0, default 1
        Number of first ranks without a penalty.
    leave_one_out : bool, default True
    temperature : float > 0, default 1
    randomised : bool, default True
    seed : int >= 0, default 0
        As for `APS`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Angelopoulos, Bates, Malik & Jordan (2021), "Uncertainty sets for image classifiers using conformal prediction".

    Examples
    --------
    >>> RAPS(0.5, randomised=False).values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2])).round(2)
    array([0.7, 1.4, 2. ])
    """

    weight: float = param(not_negative, default=0.1)
    free: int = param(integer, 0, default=1)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) masses with their penalties."""
        rank = 1 + above.sum(axis=1)
        penalty: Floats = self.weight * np.maximum(0, rank - self.free)
        return super()._of_shares(p, own, above, steps) + penalty


@component
class SAPS(OnProbabilities):
    """Only the largest probability, and the rank: for scorers whose small probabilities mean little.

    A = u p_1 for the most probable class, p_1 + (rank - 2 + u) weight for the others; p_1 is the largest
    probability, u as for `APS`.

    Parameters
    ----------
    weight : float > 0, default 0.1
    leave_one_out : bool, default True
    temperature : float > 0, default 1
    seed : int >= 0, default 0
        As for `APS`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Huang, Xi, Zhang, Yao, Qiu & Wei (2024), "Conformal prediction for deep classifier via label ranking".

    Examples
    --------
    >>> first, second, third = SAPS(0.5).values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2]))
    >>> bool(0 <= first < 0.7 <= second < 1.2 <= third < 1.7)
    True
    """

    weight: float = param(positive, default=0.1)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) values by largest probability and rank."""
        beyond, u, largest = above.sum(axis=1), self._number(self.seed, steps), p.max(axis=1)
        return np.where(beyond == 0, u * largest, largest + (beyond - 1 + u) * self.weight)


@component
class TopK(OnProbabilities):
    """The rank of the own class, 1 for the most probable: sets of nearly one size.

    Most examples tie: use smoothed p-values.

    Parameters
    ----------
    leave_one_out : bool, default True
    temperature : float > 0, default 1
        As for `LAC`.

    Raises
    ------
    TypeError
        `leave_one_out` is neither True nor False.
    ValueError
        The temperature is not a finite number above 0.

    References
    ----------
    Angelopoulos, Bates, Malik & Jordan (2021), as for `RAPS`.

    Examples
    --------
    >>> TopK().values(np.array([[0.7, 0.2, 0.1]] * 3), np.array([0, 1, 2]))
    array([1., 2., 3.])
    """

    def _of_shares(self, p: Floats, own: Floats, above: Bools, steps: Floats) -> Floats:
        """Return the (n,) ranks."""
        return 1.0 + above.sum(axis=1)


# ---------------------------------------------------------------------------------------------------------- multipliers
# Nonconformity by Lagrange multipliers, which a machine has besides its scores.


@component
class Multiplier(Parameters):
    """The Lagrange multiplier of the example in the machine of its own class: how hard the machine is pushed to fit it.

    For `OneVsAllSVM` it is 0 beyond the margin, C where the margin is violated, and between them on it. So most
    examples tie: use smoothed p-values. With f the score by the own machine, the multiplier is C (t - f) t = C (1 - f)
    for `LeastSquaresSVM`, which may be negative. It is 0 where all examples are of one class. Multipliers are
    compared in units of C, on the grid of 1e-6.

    There is no leave-one-out form: an example that joins the bag without it gets the same multiplier that it has in the
    whole bag.

    Raises
    ------
    TypeError
        By predictors, for a machine without multipliers.
    ValueError
        By predictors, for `OneVsAllSVM` with a `Linear` or `Polynomial` kernel: once the objects on the margin are
        linearly dependent, the scores no longer determine the multipliers, and which solution is found depends on the
        order of the examples. A kernel of your own must be strictly positive definite. Also for classes of unequal
        weights.

    Notes
    -----
    `OneVsAllSVM` keeps one coefficient b, the sum of the signed multipliers, for all examples at one object: P of
    the class and N of others. For a strictly positive definite kernel b is unique. The optimality conditions
    then determine the sum of the P multipliers, in units of C, as the nearest number to b / C + N in [0, P]:

    - where f > -1 the N others violate their margin, all are at C, and the sum is b / C + N, which is in [0, P];
    - where f <= -1 the P violate theirs, all are at C, and the sum is P; b / C >= P - N where f = -1, for the
      others carry at most N, and b / C = P where f < -1, for the others carry nothing; so b / C + N >= P.

    How equal examples, of one object and class, share the sum is not determined; here each has 1 / P of it. That
    is a function of bag and example that treats all examples alike.

    On the margin multipliers are only as exact as the kernel matrix there is well-conditioned. A very flat RBF on few
    features is not, and near ties may then depend on rounding; `Margin` has no such trouble.

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

    leave_one_out = False

    def check_machine(self, machine: Machine) -> None:
        """Raise unless the machine has unique multipliers."""
        alone = inside(machine)
        unique = getattr(alone, "unique_multipliers", None)
        if unique is None:
            raise TypeError(
                f"machine must have Lagrange multipliers, as OneVsAllSVM and LeastSquaresSVM have, for {self!r}, got "
                f"{machine!r}: Margin() works with every machine"
            )
        if not unique:
            raise ValueError(
                f"kernel must be strictly positive definite, as RBF is, for {self!r} on {type(alone).__name__}, got "
                f"{alone.kernel!r}: its multipliers are not unique"
            )
        if len(set(alone.class_weights)) > 1:
            raise ValueError(f"class_weights must be equal for {self!r}, got {alone.class_weights.tolist()!r}")

    def rank(self, hypotheses: Hypotheses) -> Ranks:
        """Rank the new example among all, under every hypothesis about its label."""
        return Ranks(*rank_own(*own_multipliers(hypotheses)))


class OwnMultipliers(NamedTuple):
    """Multipliers in units of C times the weight, by distinct example."""

    of_not: Floats  #: (m,) if the new example is supposed to be of another class
    of: Floats  #: (m,) if it is supposed to be of the example's class
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
    negative, positive, mass, total = answer.sums()
    C, p, distinct = answer.asked.C, answer.asked.test, answer.asked.distinct
    objects, codes, weights = distinct.examples()
    new = answer.weight * float(distinct.class_weights[0])

    def share(sums: Floats, of_class: Floats, others: Floats) -> Floats:
        return np.clip(sums / C + others, 0.0, of_class) / np.where(of_class > 0, of_class, 1.0)

    of_class = mass[codes, objects]
    others = total[objects] - of_class
    here = new * (objects == p)  # the new example is here, in the class or among the others
    return OwnMultipliers(
        share(negative[codes, objects], of_class, others + here),
        share(positive[codes, objects], of_class + here, others),
        share(positive[:, p], mass[:, p] + new, total[p] - mass[:, p]),
        codes,
        weights,
    )


@own_multipliers.register
def _of_squared_loss(answer: LeastSquaresHypotheses) -> OwnMultipliers:
    table = only_table(answer.tables(False))
    columns = np.arange(len(table.labels))
    return OwnMultipliers(
        1.0 - table.negative[table.labels, columns],
        1.0 - table.positive[table.labels, columns],
        1.0 - table.positive[:, table.test],
        table.labels,
        table.weights,
    )
