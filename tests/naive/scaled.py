"""Scaling by the definition: the first objects give each column's mean and deviation, all later ones are scaled."""

from __future__ import annotations

import math
from fractions import Fraction


def fixed_by(first):
    """Return the mean and the standard deviation of each column; 1 for a constant column."""
    center, scale = [], []
    for column in zip(*first, strict=True):
        values = [Fraction(float(value)) for value in column]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        center.append(float(mean))
        scale.append(math.sqrt(variance) if variance else 1.0)
    return center, scale


def root_mean_squares(first):
    """Return the root mean square of each column; 1 for an empty one."""
    squares = [sum(Fraction(float(value)) ** 2 for value in column) / len(first) for column in zip(*first, strict=True)]
    return [math.sqrt(square) if square else 1.0 for square in squares]


def on_scale(x, center, scale):
    """Return the scaled object."""
    return [(float(value) - c) / s for value, c, s in zip(x, center, scale, strict=True)]
