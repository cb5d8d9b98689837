"""Conformal prediction by given quantiles and distributions, by definition: every rank from nothing, at every step."""

import numpy as np


def distribution_function(quantiles, levels, y, least):
    """F(y): straight between the sorted quantiles, with the slope 1 / (last - first) outside, nowhere too steep."""
    knots = sorted(quantiles)
    for j in range(1, len(knots)):
        knots[j] = max(knots[j], knots[j - 1] + least * (levels[j] - levels[j - 1]))
    width = max(knots[-1] - knots[0], least)
    if y <= knots[0]:
        return levels[0] - (knots[0] - y) / width
    for j in range(1, len(knots)):
        if y <= knots[j]:
            share = (y - knots[j - 1]) / (knots[j] - knots[j - 1])
            return levels[j - 1] + share * (levels[j] - levels[j - 1])
    return levels[-1] + (y - knots[-1]) / width


def same(a, b):
    """Whether two numbers differ by rounding only."""
    return abs(a - b) <= 1e-7 * max(1.0, abs(a), abs(b))


def p_value(old, new, tau):
    """The share of levels below the new one, ties broken by tau."""
    below = sum(u < new and not same(u, new) for u in old)
    equal = sum(same(u, new) for u in old)
    return (below + tau * (equal + 1)) / (len(old) + 1)


def strangeness(quantiles, y):
    """How far a label lies outside the outermost quantiles."""
    return max(min(quantiles) - y, y - max(quantiles))


def p_value_of_strange(old, new, tau):
    """The share of examples that are stranger, ties broken by tau."""
    above = sum(e > new and not same(e, new) for e in old)
    equal = sum(same(e, new) for e in old)
    return (above + tau * (equal + 1)) / (len(old) + 1)


def interval(old, quantiles, epsilon):
    """Both outermost quantiles moved by the ceil((1 - epsilon) (n + 1))-th smallest strangeness."""
    rank = int(np.ceil((1 - epsilon) * (len(old) + 1) - 1e-9))
    if rank > len(old) or not old:
        return -np.inf, np.inf
    by = sorted(old)[rank - 1] if rank > 0 else min(old)
    return min(quantiles) - by, max(quantiles) + by
