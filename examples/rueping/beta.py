"""Scaling by Beta distributions: one map for two classes, or one for each predicted class."""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincc, betaincinv, betaln, expit, softmax

from venn.maps import BinaryMap

LOG_TINY = np.log(1e-11)  # relative error to which the tails of a Beta law are powers
NODES = 48  # memberships at which a law is inverted in the search; log-odds between are interpolated
FACTOR = 4.0  # largest ratio of neighbours on the grid where the search for a dispersion begins
SMALLEST, LARGEST = 2.0**-6, 2.0**20  # dispersions of the Beta-2 map
EACH = 8  # smallest whole dispersions, tried one by one: minima lie close together there
ONE_POINT = 2.0**30  # a larger moment estimate: memberships differ too little to determine their law
ONE_MEMBERSHIP = 1e-4  # variance below which the memberships of a predicted class count as one
CERTAIN = 1 - 1e-6  # membership above which the other memberships do not determine their shares


def tails(shapes, membership, rest):
    """Return F(m) and 1 - F(m) of a Beta distribution, from m and 1 - m, all precise near 0."""
    a, b = shapes
    mirrored = rest < membership
    law = np.where(mirrored, b, a), np.where(mirrored, a, b), np.minimum(membership, rest)
    below, above = betainc(*law), betaincc(*law)
    return np.where(mirrored, above, below), np.where(mirrored, below, above)


def quantiles(shapes, lower, upper):
    """Return ln q and ln(1 - q) of the q with F(q) = lower, 1 - F(q) = upper."""
    a, b = shapes
    both = betaln(a, b)
    low = lower <= upper
    a, b, tail = np.where(low, a, b), np.where(low, b, a), np.where(low, lower, upper)
    # F(q) = q^a / (a B(a, b)) up to a factor 1 + O(max(b, 1) q); below some 1e-16 the general inverse may be wrong by
    # half, or NaN. The same near 1, where 1 - q has lost its digits.
    with np.errstate(divide="ignore"):
        near, far = (np.log(tail) + np.log(a) + both) / a, (np.log1p(-tail) + np.log(b) + both) / b
        near_0, near_1 = near < LOG_TINY - np.log(np.maximum(b, 1)), far < LOG_TINY - np.log(np.maximum(a, 1))
        q = np.where(near_0, np.exp(np.minimum(near, 0.0)), betaincinv(a, b, np.where(near_0, 0.5, tail)))
        log_q, log_rest = np.where(near_0, near, np.log(q)), np.where(near_1, far, np.log1p(-q))
    return np.where(low, log_q, log_rest), np.where(low, log_rest, log_q)


@dataclass(frozen=True)
class BetaTransform:
    """From one Beta law to another: Q_outer(F_inner(m)). Equal shapes make it the identity."""

    inner: tuple
    outer: tuple

    def __call__(self, membership, rest):
        """Return the scaled membership and 1 minus it, from a membership and 1 minus it."""
        scaled, left = quantiles(self.outer, *tails(self.inner, membership, rest))
        return np.exp(scaled), np.exp(left)


@dataclass(frozen=True)
class Shift:
    """m + by, clipped to [0, 1]."""

    by: float

    def __call__(self, membership, rest):
        """Return the scaled membership and 1 minus it, from a membership and 1 minus it."""
        return np.clip(membership + self.by, 0, 1), np.clip(rest - self.by, 0, 1)


class Memberships(NamedTuple):
    """Memberships of examples, some of them right, gathered by distinct membership, so that order leaves no trace."""

    log_odds: np.ndarray  #: (m,) increasing
    weights: np.ndarray  #: (m,) of all examples with that membership
    right: np.ndarray  #: (m,) of those that are right

    @classmethod
    def of(cls, log_odds, right, weights):
        """Gather (n,) examples of positive weight, and the weights of those that are right."""
        distinct, where = np.unique(log_odds, return_inverse=True)
        m = len(distinct)
        return cls(distinct, np.bincount(where, weights, m), np.bincount(where, right, m).astype(np.float64))

    def moments(self):
        """Return mean, 1 - mean and variance (divided by the weight, so never above mean (1 - mean))."""
        membership, rest = expit(self.log_odds), expit(-self.log_odds)
        mean, rest_mean = (float(np.average(m, weights=self.weights)) for m in (membership, rest))
        deviation = membership - mean if mean < rest_mean else rest - rest_mean
        return mean, rest_mean, float(np.average(deviation * deviation, weights=self.weights))


class SquaredError:
    """The squared error of Q_{mean N, (1 - mean) N}(F_inner(m)) against targets, less a constant, as N varies.

    For more than `NODES` memberships the law is inverted only at nodes, evenly spread in both weight and log-odds.
    The log-odds between them are interpolated by cubics: as a function of the log-odds that go in, their slope is the
    ratio of the densities, and they are straight in the tails.
    """

    def __init__(self, inner, mean, memberships, targets):
        z, weights, _ = memberships
        m, rest = expit(z), expit(-z)
        nodes = nodes_of(z, weights, np.flatnonzero((m > 0) & (rest > 0)))
        lower, upper = tails(inner, m[nodes], rest[nodes])
        moved = (lower > 0) & (upper > 0)  # the others stay 0 or 1, whatever N
        nodes, self._tails = nodes[moved], (lower[moved], upper[moved])
        within = slice(nodes[0], nodes[-1] + 1) if len(nodes) else slice(0)
        self._mean = mean
        self._weights, self._targets = weights[within] / weights.max(), targets[within]
        self._widths = np.append(np.diff(z[nodes]), 1.0)
        self._cell = np.repeat(np.arange(len(nodes)), np.append(np.diff(nodes), 1))
        self._share = (z[within] - z[nodes][self._cell]) / self._widths[self._cell]
        self._density = log_density(inner, np.log(m[nodes]), np.log(rest[nodes]))

    def __call__(self, dispersion):
        """Return the error at N."""
        outer = (self._mean * dispersion, (1 - self._mean) * dispersion)
        log_q, log_rest = quantiles(outer, *self._tails)
        slope = np.exp(self._density - log_density(outer, log_q, log_rest))
        # A cubic Hermite spline of the log-odds.
        a, s, t = self._cell, self._share, 1.0 - self._share
        b, value = np.minimum(a + 1, len(slope) - 1), log_q - log_rest
        ends = (t + 3.0 * s) * t * t * value[a] + (s + 3.0 * t) * s * s * value[b]
        u = ends + self._widths[a] * s * t * (t * slope[a] - s * slope[b])
        return float(self._weights @ (expit(u) - self._targets) ** 2)


def nodes_of(z, weights, among):
    """Return at most `NODES` of some indices of increasing z: dense where the weight is large, never far apart."""
    if len(among) <= NODES:
        return among
    z, before = z[among], np.cumsum(weights[among]) - weights[among]

    def cell(first, last):
        inside = before[last] - before[first + 1]
        return float(-inside * (z[last] - z[first])), first, last

    cells = [cell(0, len(z) - 1)]
    while len(cells) < NODES - 1:
        _, first, last = heappop(cells)
        middle = min(int(np.searchsorted(z, 0.5 * (z[first] + z[last]))), last - 1)
        heappush(cells, cell(first, middle))
        heappush(cells, cell(middle, last))
    return among[np.append(sorted(first for _, first, _ in cells), len(z) - 1)]


def log_density(shapes, log_q, log_rest):
    """Return the logarithms of the density of the log-odds under a Beta law."""
    return shapes[0] * log_q + shapes[1] * log_rest - betaln(*shapes)


def least(error, low, high):
    """Return the N in [low, high] of least error: each minimum on a grid is improved between its neighbours."""
    grid = np.linspace(np.log(low), np.log(high), 2 + int(np.log(high / low) / np.log(FACTOR)))
    found = [(error(np.exp(x)), x) for x in grid]
    errors = np.array([value for value, _ in found])
    padded = np.concatenate([[np.inf], errors, [np.inf]])
    for i in np.flatnonzero((errors < padded[:-2]) & (errors <= padded[2:])).tolist():
        around = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        at_end = i in (0, len(grid) - 1)
        if at_end and error(np.exp(grid[i] + 1e-3 * (sum(around) / 2 - grid[i]))) >= errors[i]:
            continue
        nearest = minimize_scalar(lambda x: error(np.exp(x)), bounds=around, method="bounded", options={"xatol": 1e-7})
        found.append((float(nearest.fun), float(nearest.x)))
    return float(np.clip(np.exp(min(found)[1]), low, high))


class Beta2(BinaryMap):
    """Binary Beta scaling: memberships by softmax scaling, carried from their Beta law to one with the right mean.

    The membership is m = 1 / (1 + e^(-2 f)). A Beta law with shapes (mu M, (1 - mu) M) is fitted to the memberships by
    moments, M = mu (1 - mu) / S - 1 with mean mu and variance S (a sum divided by the weight). The other has shapes
    (pi N, (1 - pi) N), pi the rate of positives; p = Q(F(m)) with F of the first and Q of the second. N minimises
    the squared error against Platt's soft targets, over 2^-6 <= N <= 2^20: against the labels themselves N would run
    to 0 and p to 0 and 1 on separable data. The map is increasing.

    One class only gives Platt's target of that class everywhere. Memberships that are all equal, or differ by so little
    that M > 2^30, give the constant pi. Rueping (2004) names the method without its formulas; this definition is ours.
    """

    def fit_counts(self, scores, of_class, of_all):
        positive = float(of_class.sum())
        negative = float(of_all.sum()) - positive
        of_negative, of_positive = 1 / (negative + 2), (positive + 1) / (positive + 2)
        rate = positive / (positive + negative)
        if rate in (0, 1):
            return constant(of_positive if rate else of_negative)
        memberships = Memberships.of(2 * scores, of_class, of_all)
        mean, rest_mean, variance = memberships.moments()
        product = mean * rest_mean
        if variance == 0 or variance * ONE_POINT < product:
            return constant(rate)
        spread = max(product / variance - 1, SMALLEST)
        inner = (mean * spread, rest_mean * spread)
        target = of_negative + (of_positive - of_negative) * memberships.right / memberships.weights
        n = least(SquaredError(inner, rate, memberships, target), SMALLEST, LARGEST)
        return FittedBeta2(inner, (rate * n, (1 - rate) * n))


def constant(probability):
    """Return the map to one probability."""
    return lambda f: np.full(len(f), probability)


@dataclass(frozen=True)
class FittedBeta2:
    """p = Q_outer(F_inner(m)), m = 1 / (1 + e^(-2 f)); F and Q of Beta distributions with the given shapes."""

    inner: tuple
    outer: tuple

    def __call__(self, scores):
        return BetaTransform(self.inner, self.outer)(expit(2 * scores), expit(-2 * scores))[0]


@dataclass(frozen=True)
class BetaScaling:
    """Garczarek's Beta scaling for several classes: one map for the memberships of each predicted class.

    Memberships are the softmax of the scores. Take the n_k examples whose largest score is for class k (ties to the
    first class): CR is the fraction that belong to class k, mu and S are mean and variance of their memberships in it,
    and M = mu (1 - mu) / S - 1. A new object's membership m in its predicted class becomes
    s = Q_{CR N, (1 - CR) N}(F_{mu M, (1 - mu) M}(m)), F and Q of Beta distributions. Its memberships in other classes
    are multiplied by (1 - s) / (1 - m), or share 1 - s equally when m > 1 - 1e-6.

    N is the integer floor(min(n_k, M)), or, if `tuned`, the integer from there to floor(max(n_k, M)), at least 1, with
    the least squared error of s against being right. When S < 1e-4, as with equal scores, or CR = 1, as with scores
    that separate the class, s = m - mu + CR clipped to [0, 1]. When CR = 0 or N = 0, and for a class that is never
    predicted, the probabilities are the rates of the labels.

    Rueping (2004) prints the same shapes for F and Q, which would change nothing; Garczarek (2002), "Classification
    rules in standardized partition spaces", has them as here.
    """

    tuned: bool = False
    of_all_classes = True

    def fit(self, scores, labels, weights=None):
        """Return the maps fitted to (n, c) scores, labels 0 .. c - 1, and weights >= 0."""
        w = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
        f, y, w = np.asarray(scores, float)[w > 0], np.asarray(labels)[w > 0], w[w > 0]
        c = f.shape[1]
        p, predicted = softmax(f, axis=1), f.argmax(axis=1)
        transforms = []
        for k in range(c):
            rows = predicted == k
            with np.errstate(divide="ignore"):
                log_odds = np.log(p[rows, k]) - np.log(np.delete(p[rows], k, axis=1).sum(axis=1))
            transforms.append(self._transform(Memberships.of(log_odds, w[rows] * (y[rows] == k), w[rows])))
        return FittedBetaScaling(tuple(transforms), np.bincount(y, w, c) / w.sum())

    def _transform(self, memberships):
        n, right = float(memberships.weights.sum()), float(memberships.right.sum())
        if right == 0:
            return None
        correct = right / n
        mean, rest_mean, variance = memberships.moments()
        if variance < ONE_MEMBERSHIP or correct == 1:
            return Shift(correct - mean)
        spread = mean * rest_mean / variance - 1
        inner = (mean * spread, rest_mean * spread)
        low, high = (float(np.floor(size)) for size in sorted((n, spread)))
        if self.tuned:
            low, high = max(low, 1.0), max(high, 1.0)
            error = SquaredError(inner, correct, memberships, memberships.right / memberships.weights)
            tried = np.arange(low, min(high, low + EACH) + 1).tolist()
            if tried[-1] < high:
                near = least(error, tried[-1], high)
                tried += [float(np.floor(near)), float(np.ceil(near))]
            low = min(tried, key=error)
        return None if low == 0 else BetaTransform(inner, (correct * low, (1 - correct) * low))


@dataclass(frozen=True)
class FittedBetaScaling:
    """The transformation of each predicted class, and the (c,) prior for classes without one."""

    transforms: tuple
    prior: np.ndarray

    def __call__(self, scores):
        """Return (n, c) probabilities at (n, c) scores."""
        f = np.asarray(scores, float)
        p, predicted = softmax(f, axis=1), f.argmax(axis=1)
        for k, transform in enumerate(self.transforms):
            rows = np.flatnonzero(predicted == k)
            if transform is None:
                p[rows] = self.prior
                continue
            others = np.arange(len(self.prior)) != k
            membership, shares = p[rows, k], p[np.ix_(rows, others)]
            scaled, left = transform(membership, shares.sum(axis=1))
            shares[membership > CERTAIN] = 1.0
            shares *= (left / shares.sum(axis=1))[:, None]
            p[rows, k], p[np.ix_(rows, others)] = scaled, shares
        return p
