"""What a fleet names, by definition: capitals of p-values, A of the largest so far, e-BH and Holm."""

import math

from tests.naive.kinds import capitals


def adjusted(m):
    """Return A(m) = (m - 1 - ln m) / ln^2 m, and its limit at 1."""
    return 0.5 if m == 1 else (m - 1 - math.log(m)) / math.log(m) ** 2


def e_value(streams):
    """Return the mean of A of the largest capital so far, at least 1, over streams of p-values."""
    return sum(adjusted(max([1.0, *capitals(ps)])) for ps in streams) / len(streams)


def p_value(streams):
    """Return the number of streams times the smallest inverse of the largest capital so far, at most 1."""
    return min(1.0, len(streams) * min(1 / max([1.0, *capitals(ps)]) for ps in streams))
