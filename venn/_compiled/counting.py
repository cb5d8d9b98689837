"""Category counts under every hypothesis at once: the hot loop of a transductive Venn predictor.

Machine k has two score vectors over the bag, one supposing that the test object is not of class k
and one supposing that it is. Under hypothesis j the scores are positive[j] for class j and
negative[k] for the others. The best two of the negative scores settle every hypothesis: without class
j the best is the first of them, or the second where the first is j's own.
"""

import numpy as np

from venn._compiled.jit import compiled

TILE = 512  # examples at a time: their intermediate values stay in the first-level cache
CHUNK = 8  # hypotheses whose matches share one byte, and so one histogram entry

# Scores are compared on a grid of 1e-6, far above the solver's error and far below what matters: equal
# scores (+-1 exactly, or by symmetry) are then equal, and the first class of the tie wins. Adding and
# taking away 1.5 * 2^52 rounds to the nearest integer.
GRID = 1e6
ROUND = 6755399441055744.0


@compiled
def on_grid(score):  # type: ignore[no-untyped-def]
    """Return the score as a whole number of grid steps."""
    return (score * GRID + ROUND) - ROUND


@compiled
def category(negative, positive, i, j):  # type: ignore[no-untyped-def]
    """Return the argmax category of object i under hypothesis j."""
    best = -np.inf
    where = 0
    for k in range(negative.shape[0]):
        value = on_grid(positive[k, i] if k == j else negative[k, i])
        if value > best:
            best = value
            where = k
    return where


@compiled
def count_argmax(negative, positive, n, labels, weights, test):  # type: ignore[no-untyped-def]
    """Count, for every hypothesis j, the labels in the test object's argmax category.

    Parameters
    ----------
    negative, positive : (c, >= n) float64
    labels : (n,) int64 in [0, c); any value where the weight is 0
    weights : (n,) int64, examples at each object
    test : column of the test object

    Returns
    -------
    (c, c) int64: row j holds the counts under hypothesis j, the test example included as class j.
    """
    c = negative.shape[0]
    counts = np.zeros((c, c), np.int64)
    wanted = np.empty(c, np.int64)
    for j in range(c):
        wanted[j] = category(negative, positive, test, j)
        counts[j, j] += 1
    best = np.empty(TILE)
    second = np.empty(TILE)
    first_class = np.empty(TILE, np.int64)
    second_class = np.empty(TILE, np.int64)
    matches = np.empty(TILE, np.int64)
    chunks = (c + CHUNK - 1) // CHUNK
    histogram = np.zeros((chunks, c, 1 << CHUNK), np.int64)
    start = 0
    while start < n:
        size = min(TILE, n - start)
        row = negative[0, start : start + size]
        for i in range(size):
            best[i] = on_grid(row[i])
            second[i] = -np.inf
            first_class[i] = 0
            second_class[i] = c
        for k in range(1, c):
            row = negative[k, start : start + size]
            for i in range(size):
                value = on_grid(row[i])
                b = best[i]
                s = second[i]
                f = first_class[i]
                wins = value > b
                places = value > s
                second[i] = b if wins else (value if places else s)
                second_class[i] = f if wins else (k if places else second_class[i])
                best[i] = value if wins else b
                first_class[i] = k if wins else f
        for chunk in range(chunks):
            low = chunk * CHUNK
            high = min(c, low + CHUNK)
            matches[:size] = 0
            for j in range(low, high):
                row = positive[j, start : start + size]
                target = wanted[j]
                bit = 1 << (j - low)
                for i in range(size):
                    value = on_grid(row[i])
                    own = first_class[i] == j
                    rival = second[i] if own else best[i]
                    rival_class = second_class[i] if own else first_class[i]
                    wins = (value > rival) | ((value == rival) & (j < rival_class))
                    here = j if wins else rival_class
                    matches[i] |= bit if here == target else 0
            table = histogram[chunk]
            for i in range(size):
                weight = weights[start + i]
                if weight > 0:
                    table[labels[start + i], matches[i]] += weight
        start += size
    for chunk in range(chunks):
        low = chunk * CHUNK
        for j in range(low, min(c, low + CHUNK)):
            for k in range(c):
                for pattern in range(1 << CHUNK):
                    if pattern >> (j - low) & 1:
                        counts[j, k] += histogram[chunk, k, pattern]
    return counts


@compiled
def move_extras(counts, negative, positive, labels, objects, classes, examples, test):  # type: ignore[no-untyped-def]
    """Correct the counts where an object holds several classes: `count_argmax` gave all to the first."""
    for j in range(counts.shape[0]):
        wanted = category(negative, positive, test, j)
        for e in range(objects.shape[0]):
            i = objects[e]
            if category(negative, positive, i, j) == wanted:
                counts[j, classes[e]] += examples[e]
                counts[j, labels[i]] -= examples[e]
