"""Kernel ridge regression with a bias by its definition: one dense solve for each question."""

import numpy as np


def fitted(K, ridge, targets, K_new):
    """The scores of new objects: K_new (m, n) their kernel with the examples, targets (t, n)."""
    n = len(K)
    if n == 0:
        return np.zeros((len(targets), len(K_new)))
    system = np.block([[K + np.diag(ridge), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([targets.T, np.zeros((1, len(targets)))]))
    return (K_new @ solution[:n] + solution[n]).T


def training(K, ridge, targets):
    """The (t, n) scores of the examples."""
    return fitted(K, ridge, targets, K)


def leave_one_out(K, ridge, targets):
    """The (t, n) score of each example by the system without it."""
    n = len(K)
    scores = np.zeros(targets.shape)
    for i in range(n):
        others = np.arange(n) != i
        scores[:, i] = fitted(K[np.ix_(others, others)], ridge[others], targets[:, others], K[i : i + 1, others])[:, 0]
    return scores
