"""What bounds calibeating, by definition."""

from itertools import combinations_with_replacement

import numpy as np


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
