"""Category counts under every hypothesis at once: the hot loop of a transductive Venn predictor.

Machine k has two score vectors over the bag, one supposing that the test object is not of class k
and one supposing that it is. Under hypothesis j the scores are positive[j] for class j and
negative[k] for the others. The two best negative scores decide every hypothesis: without class j the best is the first
of them, or the second if the first is j's own.
"""

import numpy as np

from venn._compiled.jit import compiled

TILE = 2048  # examples at a time: their rows and intermediate values stay in the second-level cache
CHUNK = 8  # number of hypotheses whose matches share one byte, and so one entry of the histogram

# Scores are compared on a grid of 1e-6, far above the solver's error and far below what matters: equal scores (+-1
# exactly, or by symmetry) are then equal, and the first class of the tie wins. The grid is shifted by an odd part of a
# step, so that simple fractions, which symmetric data give, are not near its edges. Adding and subtracting 1.5 * 2^52
# rounds to the nearest integer.
GRID = 1e6
OFFSET = 0.2718281828
ROUND = 6755399441055744.0


@compiled
def rank(score, lag):  # type: ignore[no-untyped-def]
    """Return the score on the grid minus its class's lag, which breaks ties in class order.

    Exact for scores below 1e9 / c.
    """
    return ((score * GRID + OFFSET + ROUND) - ROUND) - lag


@compiled
def category(negative, positive, i, j, lag):  # type: ignore[no-untyped-def]
    """Return the argmax category of object i under hypothesis j."""
    best = -np.inf
    where = 0
    for k in range(negative.shape[0]):
        value = rank(positive[k, i] if k == j else negative[k, i], k * lag)
        if value > best:
            best = value
            where = k
    return where


@compiled
def lag_of(c):  # type: ignore[no-untyped-def]
    """Return the lag between neighbouring classes: a power of two, c of which stay within a grid step."""
    lag = 1.0
    while lag * c > 1.0:
        lag *= 0.5
    return lag


@compiled
def count_argmax(negative, positive, n, labels, weights, test):  # type: ignore[no-untyped-def]
    """Count, for every hypothesis j, the labels in the test object's argmax category.

    Parameters
    ----------
    negative, positive : (c, >= n) float64
    labels : (n,) int64 in [0, c)
    weights : (n,) int64, examples at each object
    test : column of the test object

    Returns
    -------
    counts : (c, c) int64
        Row j holds the counts under hypothesis j, the test example included as class j.
    categories : (c,) int64
        Category of the test example under each hypothesis.
    """
    c = negative.shape[0]
    lag = lag_of(c)
    counts = np.zeros((c, c), np.int64)
    wanted = np.empty(c, np.int64)
    for j in range(c):
        wanted[j] = category(negative, positive, test, j, lag)
        counts[j, j] += 1
    ranks = np.empty((c, TILE))
    best = np.empty(TILE)
    second = np.empty(TILE)
    keys = np.empty(TILE, np.int64)
    chunks = (c + CHUNK - 1) // CHUNK
    histogram = np.zeros((chunks, c << CHUNK), np.int64)
    for start in range(0, n, TILE):
        size = min(TILE, n - start)
        for i in range(size):
            best[i] = -np.inf
            second[i] = -np.inf
        for k in range(c):
            row = negative[k, start : start + size]
            own = ranks[k]
            behind = k * lag
            for i in range(size):
                own[i] = rank(row[i], behind)
            for i in range(size):
                value = own[i]
                b = best[i]
                s = second[i]
                best[i] = max(value, b)
                second[i] = max(s, min(value, b))
        for chunk in range(chunks):
            low = chunk * CHUNK
            mine = labels[start : start + size]
            for i in range(size):
                keys[i] = mine[i] << CHUNK
            for j in range(low, min(c, low + CHUNK)):
                row = positive[j, start : start + size]
                own = ranks[j]
                bit = 1 << (j - low)
                behind = j * lag
                if wanted[j] == j:
                    for i in range(size):
                        rival = second[i] if best[i] == own[i] else best[i]
                        keys[i] += bit if rank(row[i], behind) > rival else 0
                else:
                    target = ranks[wanted[j]]
                    for i in range(size):
                        rival = second[i] if best[i] == own[i] else best[i]
                        here = (target[i] == rival) & (rival > rank(row[i], behind))
                        keys[i] += bit if here else 0
            table = histogram[chunk]
            weight = weights[start : start + size]
            for i in range(size):
                table[keys[i]] += weight[i]
    for j in range(c):
        chunk = j // CHUNK
        for k in range(c):
            for pattern in range(1 << min(CHUNK, c - chunk * CHUNK)):
                if pattern >> (j - chunk * CHUNK) & 1:
                    counts[j, k] += histogram[chunk, (k << CHUNK) + pattern]
    return counts, wanted
