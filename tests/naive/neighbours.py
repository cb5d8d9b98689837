"""Votes of the nearest examples and distances to centroids, by definition."""

import math

import numpy as np


def votes(X, y, c, k, deleted):
    """Return (n, c) votes of the k nearest of each example, and of all as far; `deleted`: it is not one of them."""
    answer = np.zeros((len(y), c))
    for i in range(len(y)):
        far = sorted((sum((a - b) ** 2 for a, b in zip(X[i], X[o], strict=True)), o) for o in range(len(y)))
        others = [(distance, o) for distance, o in far if not (deleted and o == i)]
        if others:
            reach = others[min(k, len(others)) - 1][0]
            for distance, o in others:
                answer[i, y[o]] += distance <= reach
    return answer


def centroids(X, y, c, deleted):
    """Return (n, c) minus the distances of each example to the means of the classes; -1e9 where there is none."""
    answer = np.full((len(y), c), -1e9)
    for i in range(len(y)):
        for j in range(c):
            theirs = [X[o] for o in range(len(y)) if y[o] == j and not (deleted and o == i)]
            if theirs:
                mean = [math.fsum(column) / len(theirs) for column in zip(*theirs, strict=True)]
                answer[i, j] = -math.dist(X[i], mean)
    return answer
