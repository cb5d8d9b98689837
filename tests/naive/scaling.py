"""Scaling by definition: every example on its own, every map fitted from nothing.

A bag is a list of scores and a list of labels, 1 for a positive, 0 for a negative; one entry for each
example, however many of them are equal.
"""

from fractions import Fraction

import numpy as np
from scipy.optimize import minimize, root


def soft_targets(labels):
    """Return Platt's target for each label."""
    positive = sum(labels)
    negative = len(labels) - positive
    return np.where(np.array(labels) == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))


def platt_objective(scores, labels, A, B):
    """Return cross-entropy and its gradient by (A, B), p = 1 / (1 + exp(A f + B))."""
    f, t = np.asarray(scores, float), soft_targets(labels)
    u = A * f + B
    value = (t * u + np.logaddexp(0, -u)).sum()
    residual = t - 1 / (1 + np.exp(np.clip(u, -700, 700)))
    return value, np.array([(residual * f).sum(), residual.sum()])


def platt(scores, labels):
    """Return the map of the optimal sigmoid; equal scores or one class only: the constant mean target."""
    f = np.asarray(scores, float)
    t = soft_targets(labels)
    if f.min() == f.max() or sum(labels) in (0, len(labels)):
        return lambda s: t.mean()
    centre, scale = f.mean(), np.abs(f - f.mean()).max()
    z = (f - centre) / scale

    def hessian(ab):
        p = 1 / (1 + np.exp(ab[0] * z + ab[1]))
        d = p * (1 - p)
        return np.array([[(d * z * z).sum(), (d * z).sum()], [(d * z).sum(), d.sum()]])

    near = minimize(
        lambda ab: platt_objective(z, labels, *ab), np.zeros(2), jac=True, hess=hessian, method="trust-exact"
    )
    # The objective's digits run out before those of its gradient: the last of them are its root.
    exact = root(lambda ab: platt_objective(z, labels, *ab)[1], near.x, jac=hessian, tol=1e-13)
    gradient = platt_objective(z, labels, *exact.x)[1]
    if abs(gradient).max() > 1e-9:
        raise ArithmeticError(f"the oracle's gradient must be at most 1e-9, got {gradient}")
    a, b = exact.x
    return lambda s: 1 / (1 + np.exp(np.clip(a * (s - centre) / scale + b, -700, 700)))


def isotonic(scores, labels, interpolation):
    """Return the isotonic map: min over ends above of max over starts below of the mean."""
    levels = sorted(set(scores))
    positives = [sum(y for s, y in zip(scores, labels, strict=True) if s == level) for level in levels]
    totals = [sum(1 for s in scores if s == level) for level in levels]

    def mean(a, b):
        return Fraction(sum(positives[a : b + 1]), sum(totals[a : b + 1]))

    r = range(len(levels))
    value = [float(min(max(mean(a, b) for a in r if a <= i) for b in r if b >= i)) for i in r]

    def predict(s):
        below = [i for i in r if levels[i] <= s]
        if not below:
            return value[0]
        i = below[-1]
        if interpolation == "step" or levels[i] == s or i == len(levels) - 1:
            return value[i]
        return value[i] + (s - levels[i]) / (levels[i + 1] - levels[i]) * (value[i + 1] - value[i])

    return predict


def binning(scores, labels, bins, frequency, laplace):
    """Return the rate of positives by bin; equal width, or equal frequency."""
    n = len(scores)
    if frequency:
        cuts = [sorted(scores)[i * n // bins] for i in range(1, bins)]
    else:
        low, high = min(scores), max(scores)
        cuts = [low + (high - low) * (i / bins) for i in range(1, bins)]

    def bin_of(s):
        return sum(1 for cut in cuts if cut <= s)

    members = {b: [y for s, y in zip(scores, labels, strict=True) if bin_of(s) == b] for b in range(bins)}

    def predict(s):
        b = bin_of(s)
        nearest = min((a for a in members if members[a]), key=lambda a: (abs(a - b), a))
        here = members[nearest]
        return (sum(here) + 1) / (len(here) + 2) if laplace else sum(here) / len(here)

    return predict


def forecast(fit, scores, labels, test_scores):
    """Return (c,) probabilities: `fit` on each machine's (n,) scores against the class, then normalised."""
    c = len(test_scores)
    if not labels:
        return np.full(c, 1 / c)
    p = np.array([fit(list(scores[k]), [int(y == k) for y in labels])(test_scores[k]) for k in range(c)])
    return p / p.sum() if p.sum() > 0 else np.full(c, 1 / c)
