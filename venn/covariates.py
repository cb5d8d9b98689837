"""Objects that come from elsewhere: weights of objects, and an estimate of them from old and new objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from venn.parameters import Parameters, number, positive
from venn.prediction import Floats
from venn.priors import finite_numbers
from venn.saved import component, param

__all__ = ["CovariateShift", "LogLinear", "estimated_shift"]

ROUNDS = 100
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

    for _ in range(ROUNDS):
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
