"""Defensive forecasting by definition: every sum over all examples, at every step; and what bounds calibeating."""

from itertools import combinations_with_replacement

import numpy as np


def s_of(g, x, past, gamma, kernel):
    """Return S(g), the sum over all past (p, x, y) and the new example's own term."""
    total = sum((y - p) * (np.exp(-gamma * (g - p) ** 2) + kernel(x, z)) for p, z, y in past)
    return total + 0.5 * (1.0 + kernel(x, x)) * (1 - 2 * g)


def forecast(x, past, gamma, kernel):
    """Return K29's forecast."""
    p, r = np.array([p for p, _, _ in past]), np.array([y - p for p, _, y in past])
    of_objects, own = sum(r * np.array([kernel(x, z) for _, z, _ in past])), 1.0 + kernel(x, x)

    def S(g):
        return (r * np.exp(-gamma * (g - p) ** 2)).sum() + of_objects + 0.5 * own * (1 - 2 * g)

    ends = S(0.0), S(1.0)
    if min(ends) >= 0:
        return 1.0
    if max(ends) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if (S(middle) > 0) == (ends[0] > 0):
            low = middle
        else:
            high = middle
    return low


def sides(past, gamma, kernel):
    """Return both sides of the inequality."""
    p, r = np.array([p for p, _, _ in past]), np.array([y - p for p, _, y in past])
    K = np.exp(-gamma * (p[:, None] - p) ** 2) + np.array([[kernel(x, z) for _, z, _ in past] for _, x, _ in past])
    return r @ K @ r, (p * (1 - p) * np.diag(K)).sum()


def bins_losses(bins, labels, forecasts):
    """Return (log loss, squared distances) of forecasts above those of the best constants by bin."""
    log_loss = squares = 0.0
    for b in set(bins):
        here = [i for i, one in enumerate(bins) if one == b]
        ones = np.eye(forecasts.shape[1])[[labels[i] for i in here]]
        best = ones.mean(axis=0)
        own = forecasts[here]
        truth = ones == 1
        log_loss += -np.log(own[truth]).sum() + np.log(np.tile(best, (len(here), 1))[truth]).sum()
        squares += ((ones - own) ** 2).sum() - ((ones - best) ** 2).sum()
    return log_loss, squares


def all_counts(n, c):
    """Yield all counts of n labels of c classes, those that differ by the order of classes once."""
    for cuts in combinations_with_replacement(range(n + 1), c - 1):
        counts = np.diff([0, *cuts, n])
        if (np.diff(counts) <= 0).all():
            yield counts
