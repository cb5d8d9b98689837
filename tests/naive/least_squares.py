"""Least-squares support vector machines by definition: every fit, and every fit without an example, from nothing."""

import numpy as np


def fit(K, t, C):
    """Return coefficients and bias of [[0, 1'], [1, K + I / C]] [b; a] = [0; t], solved as it stands."""
    n = len(t)
    A = np.ones((n + 1, n + 1))
    A[0, 0] = 0.0
    A[1:, 1:] = K + np.eye(n) / C
    solution = np.linalg.solve(A, np.append(0.0, t))
    return solution[1:], solution[0]


def targets(y, c):
    """Return (c, n) of +1 where the label is the class and -1 elsewhere."""
    return np.where(np.asarray(y)[None, :] == np.arange(c)[:, None], 1.0, -1.0)


def training(K, y, c, C):
    """Return (n, c) scores of the examples by the machines fitted to all of them."""
    columns = []
    for t in targets(y, c):
        a, b = fit(K, t, C)
        columns.append(K @ a + b)
    return np.column_stack(columns)


def leave_one_out(K, y, c, C):
    """Return (n, c) scores of each example by the machines fitted to the others; 0 for one alone."""
    n = len(y)
    scores = np.zeros((n, c))
    for i in range(n if n > 1 else 0):
        rest = np.arange(n) != i
        for k, t in enumerate(targets(y, c)):
            a, b = fit(K[np.ix_(rest, rest)], t[rest], C)
            scores[i, k] = K[i, rest] @ a + b
    return scores


def base(K, cross, y, c, C):
    """Return (c,) scores of an object with kernel row `cross`."""
    scores = np.zeros(c)
    if len(y):
        for k, t in enumerate(targets(y, c)):
            a, b = fit(K, t, C)
            scores[k] = cross @ a + b
    return scores
