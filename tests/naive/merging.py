"""Sums and scores by definition: fractions, one row at a time."""

import math
from fractions import Fraction

import numpy as np


def rounded_sum(values, divisor=1):
    """Return the number nearest to the sum of the values over a divisor."""
    return float(sum(map(Fraction, values), Fraction(0)) / divisor)


def scorecard(rows, predicted, codes, clip, bins):
    """Return what a scorecard says of predictions: point forecasts, lower and upper bounds of each class."""
    n, c = len(codes), len(rows[0][0])
    log_losses, briers, own_lower, own_upper, hits, clipped = [], [], [], [], 0, 0
    cells = {}
    for (p, lower, upper), guess, y in zip(rows, predicted, codes, strict=True):
        log_losses.append(-math.log(max(p[y], clip)))
        briers.append(sum(((k == y) - p[k]) ** 2 for k in range(c)))
        own_lower.append(lower[guess])
        own_upper.append(upper[guess])
        hits += guess == y
        clipped += p[y] < clip
        place = sum(p[guess] >= i / bins for i in range(1, bins))
        cells.setdefault(place, []).append((p[guess], guess == y, lower[guess], upper[guess]))
    classes = []
    for k in range(c):
        rate = sum(y == k for y in codes) / n
        low = rounded_sum([lower[k] for _, lower, _ in rows], n)
        high = rounded_sum([upper[k] for _, _, upper in rows], n)
        classes.append((rate, low, high))
    return {
        "errors": n - hits, "clipped": clipped, "log_loss": rounded_sum(log_losses, n), "brier": rounded_sum(briers, n),
        "lower": rounded_sum(own_lower, n), "upper": rounded_sum(own_upper, n), "classes": classes,
        "bins": [
            (len(cell), rounded_sum([p for p, *_ in cell], len(cell)), sum(hit for _, hit, *_ in cell) / len(cell))
            for _, cell in sorted(cells.items())
        ],
    }  # fmt: skip


CLOSE = 1e-12  # sums of parts differ from those of the whole by rounding


def alike(one, other):
    """Whether two say the same: numbers to CLOSE, all else exactly."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float | np.ndarray):
        return np.allclose(one, other, rtol=CLOSE, atol=CLOSE)
    return one == other
