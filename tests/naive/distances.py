"""Mean distances to nearest examples of each class, by definition."""

import math

import numpy as np


def mean_distances(X, y, c, k, deleted, absent=-1e9):
    """Return (n, c) minus the mean distances of each example from the nearest k of each class.

    With `deleted` an example is not among its own nearest.
    """
    answer = np.full((len(y), c), absent)
    for i in range(len(y)):
        for j in range(c):
            theirs = [o for o in range(len(y)) if y[o] == j and not (deleted and o == i)]
            nearest = sorted(math.dist(X[i], X[o]) for o in theirs)[:k]
            if nearest:
                answer[i, j] = -math.fsum(nearest) / len(nearest)
    return answer


def bag(X, y, c, k, deleted):
    """Return the rows (class, own scores) of all examples, sorted."""
    return sorted((label, *row) for label, row in zip(y, mean_distances(X, y, c, k, deleted), strict=True))
