"""Scaling by the definition: the first objects give each column's middle and spread, all later ones are scaled."""

import math
from fractions import Fraction


def fixed_by(first):
    """Return of each column the median, the distance of the quartiles / 1.349, and the deviation after both and asinh.

    Where the quartiles are equal the spread is the standard deviation; a constant column has 1 and 1.
    """
    center, spread, stretch = [], [], []
    for column in zip(*first, strict=True):
        values = sorted(Fraction(float(value)) for value in column)
        low, middle, high = (quantile(values, Fraction(k, 4)) for k in (1, 2, 3))
        center.append(float(middle))
        spread.append(float(high - low) / 1.349 or deviation(values) or 1.0)
        stretch.append(deviation([Fraction(math.asinh((v - middle) / Fraction(spread[-1]))) for v in values]) or 1.0)
    return center, spread, stretch


def quantile(values, share):
    """Return a quantile of sorted numbers, linear between two of them."""
    place = share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def deviation(values):
    """Return the standard deviation."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def root_mean_squares(first):
    """Return the root mean square of each column; 1 for an empty one."""
    squares = [sum(Fraction(float(value)) ** 2 for value in column) / len(first) for column in zip(*first, strict=True)]
    return [math.sqrt(square) if square else 1.0 for square in squares]


def on_scale(x, center, spread, stretch):
    """Return the scaled object."""
    return [math.asinh((float(value) - c) / s) / t for value, c, s, t in zip(x, center, spread, stretch, strict=True)]
