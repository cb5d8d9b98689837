"""Weights by definition: an example of weight w is w equal examples.

Weights are multiples of a unit, of which each example has a whole number of copies, each with the box of the unit.
"""

import numpy as np

from naive import logistic, svm


def numbers(weights, unit):
    """Return how many copies of each example there are."""
    copies = np.rint(weights / unit).astype(int)
    if not np.allclose(copies * unit, weights):
        raise ValueError("weights must be multiples of the unit")
    return copies


def machine(K, t, weights, C, unit=0.25):
    """Return the (n,) scores of all objects by the machine of the examples with sign t != 0, from copies."""
    copies = numbers(weights, unit)
    own = np.flatnonzero(t)
    if len(own) == 0:
        return np.zeros(len(t))
    if abs(t[own].sum()) == len(own):
        return np.full(len(t), float(t[own[0]]))
    rows = np.repeat(own, copies[own])
    signs = t[rows].astype(float)
    own_K = K[np.ix_(rows, rows)]
    alpha = svm.coefficients(own_K, signs, C * unit)
    trained = svm.scores(own_K, signs, C * unit)
    bias = trained[0] - own_K[0] @ (alpha * signs)
    return K[:, rows] @ (alpha * signs) + bias


def one_vs_all(K, labels, weights, c, C):
    """Return the (n, c) one-against-all scores."""
    return np.array([machine(K, np.where(labels == k, 1, -1), weights, C) for k in range(c)]).T


def kernel_logistic(K, labels, weights, c, C, unit=0.25):
    """Return the (n, c) scores of kernel logistic machines, one against all, from copies."""
    copies = numbers(weights, unit)
    rows = np.repeat(np.arange(len(labels)), copies)
    first = np.append(0, copies[:-1].cumsum())
    return logistic.training(K[np.ix_(rows, rows)], np.asarray(labels)[rows], c, C, unit)[first]


def least_squares(K, labels, weights, c, C, left_out=None):
    """Return the (n, c) scores of all objects by the weighted least-squares machines, fitted without one of them."""
    n = len(labels)
    own = np.array([i for i in range(n) if i != left_out])
    A = np.zeros((len(own) + 1, len(own) + 1))
    A[0, 1:] = A[1:, 0] = 1
    A[1:, 1:] = K[np.ix_(own, own)] + np.diag(1 / (C * weights[own]))
    scores = np.empty((n, c))
    for k in range(c):
        solution = np.linalg.solve(A, np.append(0, np.where(labels[own] == k, 1, -1)))
        scores[:, k] = K[:, own] @ solution[1:] + solution[0]
    return scores
