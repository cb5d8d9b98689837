"""Scaling by definition: every example on its own, every map fitted from nothing.

A bag is a list of scores and a list of labels, 1 for a positive, 0 for a negative; one entry for each
example, however many of them are equal.
"""

import numpy as np
from scipy.optimize import minimize, root

from naive import maps


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
    return maps.isotonic(scores, labels, [1] * len(scores), interpolation)


def binning(scores, labels, bins, frequency, laplace):
    """Return the rate of positives by bin; equal width, or equal frequency."""
    return maps.binning(scores, labels, [1] * len(scores), bins, frequency, laplace)


def forecast(fit, scores, labels, test_scores):
    """Return (c,) probabilities: `fit` on each machine's (n,) scores against the class, then normalised."""
    c = len(test_scores)
    if not labels:
        return np.full(c, 1 / c)
    p = np.array([fit(list(scores[k]), [int(y == k) for y in labels])(test_scores[k]) for k in range(c)])
    return p / p.sum() if p.sum() > 0 else np.full(c, 1 / c)
