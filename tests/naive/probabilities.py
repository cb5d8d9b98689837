"""Nonconformity on probabilities by its definitions: classes sorted by probability, one example at a time.

Classes whose probabilities are equal on the grid are not above each other; u is given.
"""

import math

STEP = 1e-6


def shares(row, temperature):
    """Return the row if it is a distribution, else its softmax."""
    if min(row) >= 0 and abs(sum(row) - 1) <= 1e-6:
        return list(row)
    powers = [math.exp((s - max(row)) / temperature) for s in row]
    return [power / sum(powers) for power in powers]


def rank(p, y):
    """Return 1 plus the number of classes of larger probability."""
    return 1 + sum(steps(q) > steps(p[y]) for q in p)


def steps(q):
    return round(q / STEP + 0.2718281828)


def lac(p, y, u):
    return 1 - p[y]


def aps(p, y, u):
    return sum(q for q in p if steps(q) > steps(p[y])) + (1 - u) * p[y]


def raps(p, y, u, weight, free):
    return aps(p, y, u) + weight * max(0, rank(p, y) - free)
