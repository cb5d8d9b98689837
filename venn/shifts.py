"""Class frequencies or objects that differ between calibration and use: weights, and estimates of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from venn.parameters import Parameters, is_number, number, optional, positive
from venn.prediction import Floats, Label, distributions
from venn.saved import component, own, param

__all__ = ["CovariateShift", "LogLinear", "PriorShift", "estimated_shift", "operational_priors"]

# --------------------------------------------------------------------------------------------------------------- priors
# Class frequencies that change: weights of classes, and estimates of the new frequencies from unlabelled objects.

SUM = 1e-9  # how far from 1 the sum of priors may be
GAP = 1e-9  # mean log-likelihood below its maximum at which EM stops
ROUNDS = 10_000
FARTHEST = 1e6  # largest extrapolation of a round


def finite_numbers(name: str, values: Any, requirement: str) -> tuple[float, ...]:
    """Return finite numbers as floats, or say what is wrong with them."""
    wrong = f"{name} must be {requirement}, got {values!r}"
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise TypeError(wrong)
    clean = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not all(map(is_number, clean)):
        raise TypeError(wrong)
    try:
        floats = tuple(float(v) for v in clean)
    except OverflowError:  # an integer that no float holds
        raise ValueError(wrong) from None
    if not all(map(math.isfinite, floats)):
        raise ValueError(wrong)
    return floats


def probabilities(name: str, values: Any, positive: bool = False) -> tuple[float, ...]:
    """Return class probabilities in class order, or say what is wrong with them."""
    sign = "> 0" if positive else ">= 0"
    requirement = f"probabilities {sign} of at least 2 classes, in class order, with sum 1"
    clean = finite_numbers(name, values, requirement)
    least = min(clean, default=-1.0)
    if len(clean) < 2 or least < 0 or (positive and least == 0) or not abs(sum(clean) - 1) <= SUM:
        raise ValueError(f"{name} must be {requirement}, got {values!r}")
    return clean


def _checked_costs(name: str, costs: Any, c: int) -> tuple[float, ...]:
    """Return a cost for each of c classes, or say what is wrong with them."""
    requirement = f"{c} finite numbers > 0, one for each class in order"
    clean = finite_numbers(name, costs, requirement)
    if len(clean) != c or min(clean) <= 0:
        raise ValueError(f"{name} must be {requirement}, got {costs!r}")
    return clean


@component
class PriorShift(Parameters):
    """Class frequencies that differ between training and use, while P(x | y) does not change.

    It gives two kinds of weights. `ratios` are for predictors (`shift=`), which count calibration examples: how much
    likelier a class is in use. `weights` are for machines (`class_weights=shift.weights`), which minimise a loss: the
    ratios times the cost of an error on the class. Predictors ignore costs, which do not change how often a label
    occurs.

    A machine with weights is simply another machine that treats all examples of a class alike: nothing is proved about
    it, and no guarantee of a predictor is lost by it.

    With `shift=` an example of class k counts as ratios[k] examples, the new one included as one of its supposed class.
    Theorem: each single prediction is valid if the counted examples are drawn independently with the training priors
    and the new example with the operational ones, with the same P(x | y) and known ratios. The reason: given all of
    them in any order, each is the new one with a probability proportional to its ratio. The theorem requires that *all*
    counted examples come with the training priors. Examples of the operational stream do not: predict them with
    `predict_many`, or give them to a full `FixedCalibration`, which ignores them. If they are learned and counted with
    the others, the theorem is void. Nothing is proved about sums over a stream, whatever the schedule, and monitors
    that bet on independent p-values may raise alarms on valid predictions, as many steps are compared with the same
    examples. `Balanced` is the case in which the stream can be learned.

    Parameters
    ----------
    train : sequence of c probabilities > 0
        Class frequencies among the examples to learn from, in class order, with sum 1.
    operational : sequence of c probabilities >= 0
        Class frequencies among the objects to predict. With 0 such labels cannot come: for predictors that hypothesis
        is false, the class has probability 0 and the p-value 0. Machines refuse a weight of 0: leave out the examples.
    costs : sequence of c numbers > 0, optional
        Cost of an error on an example of each class; 1 by default.

    Attributes
    ----------
    train, operational : tuple of c floats
    costs : tuple of c floats, or None

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or is of another number of classes than `train`.

    References
    ----------
    Cawley & Talbot, "Manipulation of prior probabilities in support vector classification", for machines.

    Examples
    --------
    >>> shift = PriorShift(train=(0.5, 0.5), operational=(0.9, 0.1))
    >>> shift.ratios, shift.weights
    (array([1.8, 0.2]), array([1.8, 0.2]))
    >>> PriorShift.of_costs((1, 20)).weights
    array([ 1., 20.])
    """

    train: Sequence[float] = param(probabilities, True)
    operational: Sequence[float] = param(probabilities)
    costs: Sequence[float] | None = param(optional, _checked_costs, own(lambda shift: len(shift.train)), default=None)

    def derive(self) -> None:
        """Refuse what does not fit together."""
        if len(self.operational) != len(self.train):
            raise ValueError(
                f"operational must hold a probability for each of {len(self.train)} classes of train, got "
                f"{self.operational!r}"
            )
        with np.errstate(over="ignore"):
            if not np.isfinite(self.weights).all():
                raise ValueError(f"train must leave finite weights cost * operational / train, got {self.train!r}")

    @classmethod
    def of_costs(cls, costs: Sequence[float]) -> PriorShift:
        """Return weights from misclassification costs alone: class frequencies do not change.

        Parameters
        ----------
        costs : sequence of c numbers > 0

        Raises
        ------
        TypeError, ValueError
            There are fewer than 2 costs, or one is no finite number > 0.

        Examples
        --------
        >>> PriorShift.of_costs([1, 5]).weights
        array([1., 5.])
        """
        c = len(finite_numbers("costs", costs, "finite numbers > 0, one for each class in order"))
        if c < 2:
            raise ValueError(f"costs must be finite numbers > 0 of at least 2 classes, got {costs!r}")
        return cls((1 / c,) * c, (1 / c,) * c, costs)

    @classmethod
    def of_keeping(cls, keep: Sequence[float]) -> PriorShift:
        """Return the shift from examples kept with a probability that depends on their class to those offered.

        The ratios are 1 / keep up to a common factor, which changes no prediction; it is chosen as if all
        classes were offered equally often. Their actual frequencies need not be known.

        Parameters
        ----------
        keep : sequence of c probabilities in (0, 1]

        Raises
        ------
        TypeError, ValueError
            There are fewer than 2 probabilities, or one is outside (0, 1].

        Examples
        --------
        Half of the first class and a tenth of the second were kept, so each of these stands for five times as many:

        >>> ratios = PriorShift.of_keeping([0.5, 0.1]).ratios
        >>> round(float(ratios[1] / ratios[0]), 9)
        5.0
        """
        requirement = "probabilities in (0, 1] of at least 2 classes, in class order"
        clean = finite_numbers("keep", keep, requirement)
        if len(clean) < 2 or not (min(clean) > 0 and max(clean) <= 1):
            raise ValueError(f"keep must be {requirement}, got {keep!r}")
        c, total = len(clean), sum(clean)
        return cls([share / total for share in clean], (1 / c,) * c)

    @property
    def ratios(self) -> Floats:
        """(c,) operational / train: for predictors."""
        return np.array(self.operational) / np.array(self.train)

    @property
    def weights(self) -> Floats:
        """(c,) cost * operational / train: for machines."""
        return self.ratios if self.costs is None else self.ratios * self.costs


def checked_ratios(shift: Any, classes: Sequence[Label]) -> Floats | None:
    """Return the (c,) ratios of a shift, None if it changes nothing, or say what is wrong with it."""
    if shift is None:
        return None
    if not isinstance(shift, PriorShift):
        raise TypeError(f"shift must be a PriorShift, got {shift!r}")
    ratios = shift.ratios
    if len(ratios) != len(classes):
        raise ValueError(f"shift must be of the {len(classes)} classes {list(classes)!r}, got {shift!r}")
    # A common factor cancels. Without weights probabilities are quotients of whole numbers, to the last bit.
    return None if (ratios == ratios[0]).all() else ratios


def operational_priors(proba: Any, train: Sequence[float]) -> Floats:
    """Return the class frequencies that make the probabilities of unlabelled objects most likely.

    A heuristic: `proba` is taken as the true P(y | x) under the training priors, which no predictor can promise. It is
    proved that the result maximises the mean over i of log sum_k q_k / train_k proba[i, k] over all
    distributions q, to within 1e-9. Guarantees of a predictor are for known ratios, not for estimated ones.

    Parameters
    ----------
    proba : (n, c) numbers
        Probabilities of each of n >= 1 objects, in class order; rows with sum 1, up to the rounding of their type.
    train : sequence of c probabilities > 0
        Priors under which the probabilities were made.

    Returns
    -------
    (c,) float64

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    RuntimeError
        The maximum was not reached in 10 000 rounds.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori probabilities: a
    simple procedure": expectation maximisation. Varadhan & Roland (2008), "Simple and globally convergent methods for
    accelerating the convergence of any EM algorithm".

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1]] * 3 + [[0.1, 0.9]])
    >>> operational_priors(proba, train=(0.5, 0.5)).round(4)
    array([0.8125, 0.1875])
    """
    old = np.array(probabilities("train", train, positive=True))
    given = np.asarray(proba)
    requirement = f"(n, {len(old)}) probabilities, n >= 1, rows with sum 1"
    if given.dtype.kind not in "fiu":
        raise TypeError(f"proba must be {requirement}, got {proba!r}")
    if given.ndim != 2 or given.shape[1] != len(old) or not len(given):
        raise ValueError(f"proba must be {requirement}, got shape {given.shape}")
    likelihoods = distributions("proba", given, given.shape) / old

    def likelihood(priors: Floats) -> float:
        return float(np.log(likelihoods @ priors).mean())

    def gain(priors: Floats) -> Floats:
        # The factor by which a round of expectation and maximisation multiplies each prior. By concavity the maximum is
        # above by at most its largest entry minus 1.
        return (1.0 / (likelihoods @ priors)) @ likelihoods / len(likelihoods)

    new: Floats = old / old.sum()
    for _ in range(ROUNDS):
        rates = gain(new)
        if rates.max() <= 1 + GAP:
            return new
        first = new * rates
        second = first * gain(first)
        change, bend = first - new, second - 2 * first + new
        # Rounds alone take 100 000 and more where classes look alike: extrapolate from two rounds.
        size, turn = float(np.linalg.norm(change)), float(np.linalg.norm(bend))
        length = size / turn if size < FARTHEST * turn else FARTHEST
        further = second
        while length > 1.1 and further is second:
            guess = new + 2 * length * change + length**2 * bend
            if guess.min() > 0 and likelihood(guess) >= likelihood(second):
                further = guess
            length = (1 + length) / 2
        new = further / further.sum()
    raise RuntimeError(
        f"operational_priors must come within {GAP} of the maximum, got {gain(new).max() - 1:.1e} in {ROUNDS} rounds"
    )


# ----------------------------------------------------------------------------------------------------------- covariates
# Objects that come from elsewhere: weights of objects, and an estimate of them from old and new objects.

NEWTON_ROUNDS = 100
GRADIENT = 1e-9  # at which Newton's method stops, per object


def _checked_weight(name: str, weight: Any) -> Any:
    """Return a function, or say what it must be."""
    if isinstance(weight, type) or not callable(weight):
        raise TypeError(f"{name} must be a function from objects to their weights, got {weight!r}")
    return weight


@component
class CovariateShift(Parameters):
    """Objects that are distributed differently in learning and in use, while P(y | x) does not change.

    With `shift=` an example counts as w(x) examples, the new one included, where w is the density of objects in use
    over that in learning, up to a factor.

    Theorem: each single smoothed p-value is uniform, and each plain one conservative, if the examples that count are
    drawn independently from the old distribution, the new one from the new distribution, with the same P(y | x), and w
    is known. The reason: given all of them in any order, each is the new one with a probability proportional to its
    weight. With `label_conditional` the same holds within each class. The same argument holds for Venn and Venn-Abers
    predictors, one step at a time: in a category, or a block of the weighed isotonic fit, the chance that the new
    example has label k is the share of the weight that this label has there.

    As for `PriorShift`, *all* examples that count must be old ones: predict the new ones with `predict_many`, or let a
    full `FixedCalibration` ignore them. Nothing is proved about sums over a stream, and no martingale may bet on the
    p-values. With estimated weights nothing is proved at all: see `estimated_shift`.

    Where the new distribution puts objects that hardly ever came before, w is large there, and their sets are full: no
    method could know better. Where the weights of the old examples differ much, few of them decide.

    Parameters
    ----------
    weight : callable
        From an (n, d) float64 array of objects to their (n,) weights, finite numbers >= 0. It must be fixed beforehand,
        and treat each object by itself. `LogLinear` is one that `save` can keep; others must be functions of a module
        to be pickled. Sparse objects are refused.

    Raises
    ------
    TypeError, ValueError
        `weight` is no function; when predicting: what it returns is not as described.

    References
    ----------
    Tibshirani, Foygel Barber, Candès & Ramdas (2019), "Conformal prediction under covariate shift", arXiv:1904.06019.

    Examples
    --------
    >>> shift = CovariateShift(LogLinear([1.0, 0.0]))
    >>> shift.weights(np.array([[0.0, 5.0], [np.log(2), 5.0]]))
    array([1., 2.])
    """

    weight: Callable[[Floats], Any] = param(_checked_weight)

    def weights(self, rows: Any) -> Floats:
        """Return the (n,) weights of (n, d) objects.

        Raises
        ------
        TypeError
            The objects are no dense (n, d) array.
        ValueError
            `weight` has not returned n finite numbers >= 0.
        """
        if not isinstance(rows, np.ndarray) or rows.ndim != 2:
            raise TypeError(f"rows must be an (n, d) array of dense objects, to be weighed, got {type(rows).__name__}")
        weights = np.asarray(self.weight(np.array(rows)))
        if weights.shape != (len(rows),) or weights.dtype.kind not in "fiu":
            raise ValueError(f"weight must return ({len(rows)},) numbers, one for each object, got {weights!r}")
        clean = weights.astype(np.float64)
        if not (np.isfinite(clean).all() and (clean >= 0).all()):  # NaN fails
            raise ValueError(
                f"weight must return finite numbers >= 0, got {clean[~(np.isfinite(clean) & (clean >= 0))][0]}"
            )
        return clean


def table_weights(table: Any, shift: CovariateShift) -> Floats:
    """Return (n + 1,) weights of the examples in a machine's table, in the order of its `scores`: the new one is last.

    Raises
    ------
    TypeError
        The table holds no dense objects.
    """
    m = len(table.labels)
    if table.objects.shape[1] <= max(m - 1, table.test):
        raise TypeError(
            f"table must hold the objects of all {m} columns, to weigh them, got {table.objects.shape}: sparse ones "
            "are not weighed"
        )
    columns = np.append(np.arange(m), table.test)
    distinct = shift.weights(np.ascontiguousarray(table.objects[:, columns].T))
    return np.append(np.repeat(distinct[:-1], table.weights), distinct[-1])


def checked_covariates(name: str, shift: Any) -> CovariateShift | None:
    """Return a shift of objects, or none, or say what is wrong with it."""
    if shift is not None and not isinstance(shift, CovariateShift):
        raise TypeError(f"{name} must be a CovariateShift, got {shift!r}")
    return shift


@component
class LogLinear(Parameters):
    """Weights whose logarithm is linear in the features: w(x) = exp(intercept + coefficients . x).

    Between two normal distributions of one covariance the true weights are of this form.

    Parameters
    ----------
    coefficients : sequence of d numbers
    intercept : float, default 0
        A factor of all weights, which changes no prediction.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> LogLinear([1.0])(np.array([[0.0], [1.0]])).round(3)
    array([1.   , 2.718])
    """

    coefficients: Sequence[float] = param(finite_numbers, "a sequence of finite numbers")
    intercept: float = param(number, default=0.0)

    def __call__(self, rows: Floats) -> Floats:
        """Return the (n,) weights of (n, d) objects."""
        if rows.shape[1] != len(self.coefficients):
            raise ValueError(f"coefficients must be of {rows.shape[1]} features, got {len(self.coefficients)}")
        with np.errstate(over="ignore"):  # an infinite weight is refused where it is used
            weights: Floats = np.exp(self.intercept + (rows * self.coefficients).sum(axis=1))
        return weights


def estimated_shift(old: Any, new: Any, penalty: float = 1.0) -> CovariateShift:
    """Return the shift from old to new objects, estimated by a classifier that tells them apart.

    The classifier is logistic regression with a penalty, so weights are of the form `LogLinear`. It is a heuristic:
    what is proved for known weights is not proved for these. Sets then err more often by at most half the mean distance
    of the two weights, each divided by its mean (Lei & Candès 2021); but nobody knows that distance. The old objects
    must not be among the examples that calibrate: these would be weighed by a function of themselves, the new one would
    not.

    Parameters
    ----------
    old : (n, d) float64
        Objects of the old distribution, n >= 1, other than those that calibrate.
    new : (m, d) float64
        Objects of the new distribution, m >= 1; labels are not needed.
    penalty : float > 0, default 1
        Half of it times the squared coefficients, of features in units of their deviation, is added to the sum of
        logistic losses. Larger: weights nearer to 1.

    Returns
    -------
    CovariateShift

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    RuntimeError
        The minimum was not reached.

    References
    ----------
    Tibshirani, Foygel Barber, Candès & Ramdas (2019), section 2.3; Lei & Candès (2021), "Conformal inference of
    counterfactuals and individual treatment effects", theorem 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shift = estimated_shift(rng.normal(size=(2000, 1)), rng.normal(1.0, size=(2000, 1)))
    >>> bool(0.85 < shift.weight.coefficients[0] < 1.15)  # truly 1
    True
    """
    first, second = _objects("old", old), _objects("new", new)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"new must have {first.shape[1]} features, as old has, got {second.shape[1]}")
    penalty = positive("penalty", penalty)
    rows = np.concatenate([first, second])
    constant = rows.min(axis=0) == rows.max(axis=0)  # to the bit, while mean and deviation are rounded
    mean, deviation = np.where(constant, rows[0], rows.mean(axis=0)), np.where(constant, 1.0, rows.std(axis=0))
    deviation[deviation == 0] = 1.0
    X = np.column_stack([(rows - mean) / deviation, np.ones(len(rows))])
    target = np.repeat([0.0, 1.0], [len(first), len(second)])
    ridge = np.full(X.shape[1], penalty)
    ridge[-1] = 0.0
    beta = np.zeros(X.shape[1])

    def loss(beta: Floats) -> float:
        margin = X @ beta
        return float(np.logaddexp(0, margin).sum() - target @ margin + 0.5 * (ridge * beta**2).sum())

    for _ in range(NEWTON_ROUNDS):
        p = expit(X @ beta)
        gradient = X.T @ (p - target) + ridge * beta
        if np.abs(gradient).max() <= GRADIENT * len(X):
            coefficients = beta[:-1] / deviation
            # Odds of new against old, divided by how many there are of each: the quotient of densities.
            intercept = beta[-1] - coefficients @ mean + np.log(len(first) / len(second))
            return CovariateShift(LogLinear(coefficients.tolist(), float(intercept)))
        step = np.linalg.solve((X.T * (p * (1 - p))) @ X + np.diag(ridge + 1e-12), gradient)
        length = 1.0
        while loss(beta - length * step) > loss(beta) and length > 1e-6:
            length /= 2
        beta = beta - length * step
    raise RuntimeError(f"estimated_shift must reach its minimum, got a gradient of {np.abs(gradient).max():.1e}")


def _objects(name: str, values: Any) -> Floats:
    """Return (n, d) objects, or say what is wrong with them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim != 2 or not len(array):
        raise ValueError(f"{name} must be an (n, d) array of numbers, n >= 1, got {values!r}")
    clean = array.astype(np.float64)
    if not np.isfinite(clean).all():
        raise ValueError(f"{name} must be finite, got {clean[~np.isfinite(clean)][0]}")
    return clean
