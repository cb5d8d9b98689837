"""How strange objects are among others, by definition."""

import math


def strangeness(objects, i, k):
    """Return the sum of the distances of object i to its k nearest others."""
    others = sorted(math.dist(objects[i], objects[j]) for j in range(len(objects)) if j != i)
    return math.fsum(others[:k])


def among_all(objects, k, tau):
    """Return the p-value of the last object among all."""
    values = [round(strangeness(objects, i, k), 9) for i in range(len(objects))]
    own = values[-1]
    return (sum(v > own for v in values) + tau * sum(v == own for v in values)) / len(values)


def against_first(objects, size, k, risk):
    """Return the p-value of the last object against the first `size`; None within these."""
    if len(objects) <= size:
        return None
    half = size // 2

    def far(x):
        return round(math.fsum(sorted(math.dist(x, one) for one in objects[:half])[:k]), 9)

    values = [far(one) for one in objects[half:size]]
    share = sum(v >= far(objects[-1]) for v in values) / len(values)
    return min(1.0, share + math.sqrt(math.log(1 / risk) / (2 * len(values))))
