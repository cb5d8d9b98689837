"""Algorithm 1 of Benitez-Pena et al. (2020), step by step; the machines are given as a function."""

import numpy as np


def draws(y, resamples, seed):
    """Return rows of each resample: of both classes, drawn from one generator in turn."""
    random = np.random.RandomState(seed)
    found = []
    while len(found) < resamples:
        rows = random.randint(len(y), size=len(y))
        if len(set(y[rows])) == 2:
            found.append(rows)
    return found


def tables(X, y, new, Cs, resamples, seed, scorer):
    """Return accuracies (R, B), NaN without examples left out, and scores (R, B, m) of new objects.

    `scorer(X, y, C)` gives a function to scores; y is 0 or 1.
    """
    accuracies = np.full((len(Cs), resamples), np.nan)
    scores = np.empty((len(Cs), resamples, len(new)))
    for b, rows in enumerate(draws(y, resamples, seed)):
        out = [i for i in range(len(y)) if i not in set(rows)]
        for r, C in enumerate(Cs):
            f = scorer(X[rows], y[rows], C)
            scores[r, b] = f(new)
            if out:
                accuracies[r, b] = np.mean((f(X[out]) >= 0) == (y[out] == 1))
    return accuracies, scores


def weights(accuracies, epsilon):
    """Return the weights of the values of C."""
    means = np.array([np.mean([a for a in row if not np.isnan(a)]) for row in accuracies])
    J = [r for r in range(len(means)) if means[r] >= max(means) - epsilon]
    return np.array([means[r] ** 2 / sum(means[k] ** 2 for k in J) if r in J else 0.0 for r in range(len(means))])


def positive(w, scores, a=0.0):
    """Return (m,) probabilities of the positive class."""
    m = scores.shape[2]
    return np.array(
        [1 - sum(w[r] * np.mean([s < -a for s in scores[r, :, i]]) for r in range(len(w))) for i in range(m)]
    )


def threshold(w, scores, wanted):
    """Return the least a >= 0 at which the wanted share of the objects has a probability above 1/2, by trial."""
    candidates = np.concatenate([[0.0], np.sort(-scores[scores < 0])])
    for a in candidates:
        if np.mean(positive(w, scores, a) > 0.5 + 1e-12) >= wanted - 1e-12:
            return a
    raise AssertionError("beyond the lowest score all are positive")
