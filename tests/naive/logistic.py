"""Kernel logistic regression by definition: a generic minimiser on explicit features; deletion by whole matrices.

`mass` is the weight of an example times that of its class, one number or one for each: it multiplies C.
"""

from functools import lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def features(K):
    """Return explicit features whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-14 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep])


def constant(K, t, C, mass):
    """Return the score of a machine whose examples are all of one sign."""
    t, mass = np.asarray(t), np.broadcast_to(np.asarray(mass, float), np.shape(t))
    some = 0.5 / (1 + C * np.diag(K).max())
    return np.log(mass[t > 0].sum() + some) - np.log(mass[t < 0].sum() + some)


def fit(K, t, C, mass=1.0):
    """Return scores of the examples, t = +1 or -1."""
    t = np.asarray(t, float)
    if len(set(t.tolist())) == 1:
        return np.full(len(t), constant(K, t, C, mass))
    bounds = np.broadcast_to(C * np.asarray(mass, float), t.shape)
    return _minimum(np.asarray(K, float).tobytes(), tuple(t.tolist()), tuple(bounds.tolist())).copy()


@lru_cache(maxsize=200)  # the same problem stands behind several hypotheses and steps
def _minimum(gram, t, C):
    K, t, C = np.frombuffer(gram).reshape(len(t), len(t)), np.array(t), np.array(C)
    Z = np.column_stack([features(K), np.ones(len(t))])
    ridge = np.append(np.ones(Z.shape[1] - 1), 0.0)

    def value(w):
        return 0.5 * (ridge * w * w).sum() + (C * np.logaddexp(0, -t * (Z @ w))).sum()

    def gradient(w):
        return ridge * w - Z.T @ (C * t * expit(-t * (Z @ w)))

    def hessian(w):
        p = expit(Z @ w)
        return np.diag(ridge) + (Z.T * (C * p * (1 - p))) @ Z

    start = np.zeros(Z.shape[1])
    w = minimize(
        value,
        start,
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-3 * C.mean(), "initial_trust_radius": 10.0},
    ).x
    for _ in range(6):  # what is left is beyond the resolution of the value
        w = w - np.linalg.solve(hessian(w), gradient(w))
    assert abs(gradient(w)).max() <= 1e-10 * max(C.max(), 1.0)
    return Z @ w


def signs(y, k):
    """Return +1 where the label is k and -1 elsewhere."""
    return np.where(np.asarray(y) == k, 1.0, -1.0)


def training(K, y, c, C, mass=1.0):
    """Return (n, c) scores of the examples by the machines fitted to all of them."""
    return np.column_stack([fit(K, signs(y, k), C, mass) for k in range(c)])


def one_step(K, t, score, C, mass):
    """Return the scores of the examples after one Newton step without each of them, weights rounded to half octaves.

    Every example has a row of its own: with A = [[K + 1 / V, 1], [1', 0]] and H the inverse's block,
    1 / H_ii - 1 / V_i is how far a unit of coefficient moves the score.
    """
    n = len(t)
    mass = np.broadcast_to(np.asarray(mass, float), (n,))
    bound = C * mass
    if len(set(t.tolist())) == 1:
        return score.copy()
    p = expit(score)
    V = 0.25 * bound * 2.0 ** (np.rint(2 * np.log2(4 * p * expit(-score))) / 2)
    A = np.ones((n + 1, n + 1))
    A[:n, :n] = K + np.diag(1 / V)
    A[n, n] = 0.0
    H = np.linalg.inv(A)[:n, :n]
    found = np.empty(n)
    for i in range(n):
        rest = np.delete(t, i)
        if (rest == rest[0]).all():
            found[i] = constant(K, rest, C, np.delete(mass, i))
        else:
            found[i] = score[i] - t[i] * bound[i] * expit(-t[i] * score[i]) * (1 / H[i, i] - 1 / V[i])
    return found


def deleted(K, y, c, C, scores, mass=1.0):
    """Return (n, c) deleted scores, from training scores."""
    return np.column_stack([one_step(K, signs(y, k), scores[:, k], C, mass) for k in range(c)])


def multipliers(K, y, c, C):
    """Return each example's multiplier in the machine of its own class, in units of C; 0 for one class in all."""
    if len(set(np.asarray(y).tolist())) == 1:
        return [0.0] * len(y)
    scores = training(K, y, c, C)
    return [1 / (1 + np.exp(scores[i, label])) for i, label in enumerate(y)]
