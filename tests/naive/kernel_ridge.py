"""Kernel ridge regression and what conformal prediction does with it, by definition: every label is fitted anew."""

import numpy as np


def fitted(K, ridge, y, K_new):
    """Forecasts for new objects: K_new (m, n) is their kernel with the examples."""
    n = len(y)
    if n == 0:
        return np.zeros(len(K_new))
    system = np.block([[K + np.diag(ridge), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return K_new @ solution[:n] + solution[n]


def residuals(K, ridge, y):
    """y - f of each example, fitted to all."""
    return y - fitted(K, ridge, y, K)


def leave_one_out(K, ridge, y):
    """y - f of each example, fitted to the others."""
    out = np.zeros(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        out[i] = y[i] - fitted(K[np.ix_(rest, rest)], ridge[rest], y[rest], K[i : i + 1, rest])[0]
    return out


def leverages(K, ridge):
    """How much each example's own label moves its forecast."""
    n = len(K)
    return np.array([fitted(K, ridge, np.eye(n)[i], K)[i] for i in range(n)])


def studentised(K, ridge, y):
    """Residuals over the root of what is left of their variance."""
    if len(y) == 1:
        return np.zeros(1)
    return residuals(K, ridge, y) / np.sqrt(ridge * (1 - leverages(K, ridge)))


def rank(alphas, tolerance=1e-9):
    """How many are below the last one, and how many are equal to it, itself included."""
    equal = np.abs(alphas - alphas[-1]) <= tolerance
    return int((alphas < alphas[-1])[~equal].sum()), int(equal.sum())


def probability(K, ridge, y, tau, measure=studentised):
    """Pi: the share of examples less strange than the last, ties by tau."""
    below, equal = rank(measure(K, ridge, y))
    return (below + tau * equal) / len(y)


def two_sided(K, ridge, y, tau):
    """The share of examples at least as strange as the last, by absolute value, ties by tau."""
    below, equal = rank(np.abs(studentised(K, ridge, y)))
    return (len(y) - below - equal + tau * equal) / len(y)


def crps(points, y):
    """The score of the empirical distribution of the points: mean distance to the label less half the mean spread."""
    points = np.asarray(points)
    return np.abs(points - y).mean() - np.abs(points[:, None] - points[None]).mean() / 2


def kernel(A, B, gamma):
    """The Gaussian kernel of two sets of objects."""
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))
