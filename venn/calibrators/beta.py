"""Scaling by Beta distributions: one map for two classes, or one for each predicted class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincc, betaincinv, betaln

from venn.calibrators.abers import numbers
from venn.calibrators.maps import (
    Fitted,
    FittedConstant,
    binary_examples,
    class_examples,
    class_scores,
    logistic,
    soft_targets,
    softmax,
)
from venn.prediction import Floats, Parameters

Shapes = tuple[float, float]

GROUPS = 2048  # for the choice of a dispersion, more examples than these are put together with their neighbours
GRID = 41  # dispersions tried before the search between two of them
SMALLEST, LARGEST = 2.0**-6, 2.0**20  # dispersions of the Beta-2 map
ONE_POINT = 2.0**30  # a moment estimate beyond it: memberships that differ by less than what their law can be told by
ONE_MEMBERSHIP = 1e-4  # variance below which the memberships of a predicted class count as one
CERTAIN = 1 - 1e-6  # membership above which those of the other classes say nothing about their shares


def tails(shapes: Shapes, membership: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return F(m) and 1 - F(m) of a Beta distribution, from m and 1 - m: none of the four loses digits near 0."""
    a, b = shapes
    mirrored = rest < membership
    law = np.where(mirrored, b, a), np.where(mirrored, a, b), np.minimum(membership, rest)
    below, above = betainc(*law), betaincc(*law)
    return np.where(mirrored, above, below), np.where(mirrored, below, above)


def quantiles(shapes: Shapes, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return the q with F(q) = lower, 1 - F(q) = upper, and 1 - q."""
    a: Any
    b: Any
    a, b = shapes
    low = lower <= upper
    a, b, tail = np.where(low, a, b), np.where(low, b, a), np.where(low, lower, upper)
    # F(q) = q^a / (a B(a, b)) up to a factor 1 + O(b q); the general inverse may be wrong by half below some 1e-16.
    with np.errstate(divide="ignore"):
        power = np.exp((np.log(tail) + np.log(a) + betaln(a, b)) / a)
    q = np.where(b * power < 1e-11, power, betaincinv(a, b, tail))
    return np.where(low, q, 1 - q), np.where(low, 1 - q, q)


@dataclass(frozen=True)
class BetaTransform:
    """From one Beta law to another: Q_outer(F_inner(m)). Equal shapes make it the identity."""

    inner: Shapes
    outer: Shapes

    def __call__(self, membership: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return the scaled membership and 1 minus it, from a membership and 1 minus it."""
        return quantiles(self.outer, *tails(self.inner, membership, rest))


@dataclass(frozen=True)
class Shift:
    """m + by, clipped to [0, 1]."""

    by: float

    def __call__(self, membership: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return the scaled membership and 1 minus it, from a membership and 1 minus it."""
        return np.clip(membership + self.by, 0, 1), np.clip(rest - self.by, 0, 1)


def _moments(membership: Floats, rest: Floats, weights: Floats) -> tuple[float, float, float]:
    """Return mean, 1 - mean and variance (divided by the weight, so never above mean (1 - mean))."""
    mean, rest_mean = (float(np.average(m, weights=weights)) for m in (membership, rest))
    deviation = membership - mean if mean < rest_mean else rest - rest_mean
    return mean, rest_mean, float(np.average(deviation * deviation, weights=weights))


def _dispersion(
    inner: Shapes,
    mean: float,
    membership: Floats,
    rest: Floats,
    target: Floats,
    weights: Floats,
    low: float,
    high: float,
) -> tuple[float, Callable[[float], float]]:
    """Return the N in [low, high] of least squared error of Q_{mean N, (1 - mean) N}(F_inner(m)), and that error.

    The best of a grid is improved between its neighbours. Of more than `GROUPS` examples, neighbours in order
    of membership are put together.
    """
    if len(membership) > GROUPS:
        order = np.lexsort((-rest, membership))
        starts = np.arange(GROUPS) * len(order) // GROUPS
        middle = order[(starts + np.append(starts[1:], len(order))) // 2]
        target = np.add.reduceat((weights * target)[order], starts)
        weights = np.add.reduceat(weights[order], starts)
        target = target / weights
        membership, rest = membership[middle], rest[middle]
    lower, upper = tails(inner, membership, rest)

    def error(n: float) -> float:
        scaled, _ = quantiles((mean * n, (1 - mean) * n), lower, upper)
        return float(weights @ (scaled - target) ** 2)

    grid = np.geomspace(low, high, GRID)
    errors = [error(n) for n in grid]
    best = int(np.argmin(errors))
    around = np.log(grid[max(best - 1, 0)]), np.log(grid[min(best + 1, GRID - 1)])
    if around[0] == around[1]:
        return low, error
    found = minimize_scalar(lambda x: error(np.exp(x)), bounds=around, method="bounded", options={"xatol": 1e-9})
    return (float(np.exp(found.x)) if found.fun < errors[best] else float(grid[best])), error


@dataclass(frozen=True)
class FittedBeta2:
    """p = Q_outer(F_inner(m)), m = 1 / (1 + e^(-2 f)); F and Q of Beta distributions with the given shapes."""

    inner: Shapes
    outer: Shapes

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        return BetaTransform(self.inner, self.outer)(*_softmax_memberships(numbers("scores", scores)))[0]


def _softmax_memberships(f: Floats) -> tuple[Floats, Floats]:
    with np.errstate(over="ignore"):
        return logistic(2 * f), logistic(-2 * f)


class Beta2(Parameters):
    """Binary Beta scaling: memberships by softmax scaling, carried from their Beta law to one with the right mean.

    The membership is m = 1 / (1 + e^(-2 f)). A Beta law with shapes (mu M, (1 - mu) M) is fitted to the memberships by
    moments, M = mu (1 - mu) / S - 1 with mean mu and variance S (a sum divided by the weight). The other has shapes
    (pi N, (1 - pi) N), pi the rate of positives; p = Q(F(m)) with F of the first and Q of the second. N minimises
    the squared error against Platt's soft targets, over 2^-6 <= N <= 2^20: against the labels themselves N would run
    to 0 and p to 0 and 1 on separable data. The map is increasing. Scores of the wrong order give a large N,
    where p is nearly pi everywhere.

    One class only gives Platt's target of that class everywhere. Memberships that are all equal, or differ by
    so little that M > 2^30, give the constant pi. Scores like 1e6 and -1e6 have memberships 1 and 0, and these
    stay 1 and 0: bring scores to the scale of decision values first, or one error has infinite log loss.

    Notes
    -----
    Rueping (2004) names the method without its formulas; this definition is ours.

    Examples
    --------
    >>> fitted = Beta2().fit([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], [0, 1, 0, 1, 0, 1])
    >>> fitted.outer[0] == fitted.outer[1], fitted([0.0]).round(9)  # rate 1/2, and all is symmetric
    (True, array([0.5]))
    """

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedBeta2 | FittedConstant:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        """
        f, y, w = binary_examples(scores, labels, weights)
        positive, negative = float(w[y == 1].sum()), float(w[y == 0].sum())
        of_negative, of_positive = soft_targets(positive, negative)
        if positive == 0 or negative == 0:
            return FittedConstant(of_negative if positive == 0 else of_positive)
        m, rest = _softmax_memberships(f)
        mean, rest_mean, variance = _moments(m, rest, w)
        rate = positive / (positive + negative)
        product = mean * rest_mean
        if variance == 0 or variance * ONE_POINT < product:
            return FittedConstant(rate)
        spread = max(product / variance - 1, SMALLEST)
        inner = (mean * spread, rest_mean * spread)
        target = np.where(y == 1, of_positive, of_negative)
        n, _ = _dispersion(inner, rate, m, rest, target, w / w.max(), SMALLEST, LARGEST)
        return FittedBeta2(inner, (rate * n, (1 - rate) * n))


@dataclass(frozen=True, eq=False)
class FittedBetaScaling(Fitted):
    """The transformation of each predicted class, and the (c,) prior that stands in where there is none."""

    transforms: tuple[BetaTransform | Shift | None, ...]
    prior: Floats

    def __call__(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores."""
        f = class_scores(scores, len(self.prior))
        p = softmax(f)
        predicted = f.argmax(axis=1)
        for k, transform in enumerate(self.transforms):
            rows = np.flatnonzero(predicted == k)
            if transform is None:
                p[rows] = self.prior
                continue
            others = np.arange(len(self.prior)) != k
            membership, shares = p[rows, k], p[np.ix_(rows, others)]
            rest = shares.sum(axis=1)
            scaled, left = transform(membership, rest)
            shares[membership > CERTAIN] = 1.0
            shares *= (left / shares.sum(axis=1))[:, None]
            p[rows, k], p[np.ix_(rows, others)] = scaled, shares
        return p


class BetaScaling(Parameters):
    """Garczarek's Beta scaling for several classes: one map for the memberships of each predicted class.

    Memberships are the softmax of the scores: give logarithms of memberships where you have them. Of the n_k
    examples whose largest score is that of class k (ties to the first class), CR is the fraction of that class; mu
    and S are mean and variance of their memberships in it, and M = mu (1 - mu) / S - 1. The membership m of a new
    object in its predicted class becomes s = Q_{CR N, (1 - CR) N}(F_{mu M, (1 - mu) M}(m)), F and Q of Beta
    distributions. Those in other classes are multiplied by (1 - s) / (1 - m), or share 1 - s equally when
    m > 1 - 1e-6.

    N is the integer floor(min(n_k, M)), or, if `tuned`, the one from there to floor(max(n_k, M)), at least 1, with
    the least squared error of s against being right (of several minima the one beside the best of 41 integers
    that are evenly spaced in logarithm).

    When S < 1e-4, as with equal scores or one example, or CR = 1, as with scores that separate the class,
    s = m - mu + CR clipped to [0, 1]. When CR = 0 or N = 0, and for a class that is predicted for no example, the
    probabilities are the rates of the labels, also if one class only was there. Far scores have memberships 0 and
    1, where s is 0 and 1, and one error has infinite log loss.

    The map jumps where the predicted class changes. It need not keep that class the most probable one.

    Parameters
    ----------
    tuned : bool, default False

    Notes
    -----
    Rueping (2004) prints the same shapes for F and Q, which would change nothing. The R package klaR divides
    the sum of squares in S by n_k - 1; here it is n_k, which never makes M negative, and tunes N by another criterion.

    References
    ----------
    Garczarek (2002), "Classification rules in standardized partition spaces".

    Examples
    --------
    >>> high, low = 2 / 3 + 18**-0.5, 2 / 3 - 18**-0.5  # mean 2/3, variance 1/18: the law with shapes 2 and 1
    >>> m = np.array([[high, (1 - high) / 2, (1 - high) / 2], [low, (1 - low) / 2, (1 - low) / 2]])
    >>> fitted = BetaScaling().fit(np.log(m), [0, 1])  # half of them right: shapes 1 and 1, and s = m^2
    >>> fitted(np.log([[0.6, 0.3, 0.1]]))
    array([[0.36, 0.48, 0.16]])
    """

    def __init__(self, tuned: bool = False) -> None:
        if not isinstance(tuned, bool | np.bool_):
            raise TypeError(f"tuned must be True or False, got {tuned!r}")
        self.tuned = bool(tuned)

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedBetaScaling:
        """Return the maps fitted to (n, c) scores, labels 0 .. c - 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        """
        f, y, w = class_examples(scores, labels, weights)
        c = f.shape[1]
        memberships = softmax(f)
        predicted = f.argmax(axis=1)
        transforms = []
        for k in range(c):
            rows = predicted == k
            m, others = memberships[rows, k], np.delete(memberships[rows], k, axis=1)
            transforms.append(self._transform(m, others.sum(axis=1), y[rows] == k, w[rows]))
        return FittedBetaScaling(tuple(transforms), np.bincount(y, w, c) / w.sum())

    def _transform(self, m: Floats, rest: Floats, right: Any, w: Floats) -> BetaTransform | Shift | None:
        if not right.any():
            return None
        n = float(w.sum())
        correct = float(w[right].sum()) / n
        mean, rest_mean, variance = _moments(m, rest, w)
        if variance < ONE_MEMBERSHIP or right.all():
            return Shift(correct - mean)
        spread = mean * rest_mean / variance - 1
        inner = (mean * spread, rest_mean * spread)
        low, high = (float(np.floor(size)) for size in sorted((n, spread)))
        if self.tuned:
            low = max(low, 1.0)
            high = max(low, high)
            near, error = _dispersion(inner, correct, m, rest, right.astype(np.float64), w / w.max(), low, high)
            low = min((float(np.floor(near)), float(np.ceil(near))), key=error)
        if low == 0:
            return None
        return BetaTransform(inner, (correct * low, (1 - correct) * low))
