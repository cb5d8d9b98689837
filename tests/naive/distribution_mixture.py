"""A mixture of distributions by its definition: every threshold by itself, every score an integral over thresholds."""

import itertools
import math


def share_below(quantiles, u):
    return sum(q <= u for q in quantiles) / len(quantiles)


def merged(said, weights, u):
    """Return the forecast's distribution function at u, from what each expert says there."""
    one = sum(w * math.exp(-2 * (1 - share_below(q, u)) ** 2) for w, q in zip(weights, said, strict=True))
    other = sum(w * math.exp(-2 * share_below(q, u) ** 2) for w, q in zip(weights, said, strict=True))
    return 0.5 + 0.25 * math.log(one / other)


def crps(F, ends, y):
    """Return the integral of (F(u) - 1{u >= y})^2, where F is constant between the ends."""
    ends, total = sorted({*ends, y}), 0.0
    for left, right in itertools.pairwise(ends):
        total += (right - left) * (F(left) - (left >= y)) ** 2
    return total


def follow(rows, labels, share):
    """Yield after each step the loss, the (M,) losses, what is allowed beside each of them, and the (M,) weights.

    Each row holds M lists of quantiles, the experts' at that step, None for one that says nothing.
    """
    m = len(rows[0])
    weights, span, loss, losses, allowance = [1 / m] * m, 0.0, 0.0, [0.0] * m, [0.0] * m
    for said, y in zip(rows, labels, strict=True):
        awake = [i for i in range(m) if said[i] is not None]
        those, ends = [said[i] for i in awake], [q for i in awake for q in said[i]]
        w = [weights[i] / sum(weights[j] for j in awake) for i in awake]
        mine = crps(lambda u, those=those, w=w: merged(those, w, u), ends, y)
        lost = [mine if q is None else crps(lambda u, q=q: share_below(q, u), q, y) for q in said]
        grown = max(0.0, max([*ends, y]) - min([*ends, y]) - span)
        allowance = [a - grown / 2 * math.log(v) for a, v in zip(allowance, weights, strict=True)]
        span += grown
        loss, losses = loss + mine, [a + b for a, b in zip(losses, lost, strict=True)]
        weights = [v * math.exp(-2 * s / span) for v, s in zip(weights, lost, strict=True)]
        weights = [(1 - share) * v / sum(weights) + share / m for v in weights]
        allowance = [a - span / 2 * math.log(1 - share + share / m) for a in allowance]
        yield loss, losses, allowance, weights
