"""Category counts under every hypothesis at once: the hot loop of a transductive Venn predictor.

Machine k has two score vectors over the bag, one supposing that the test object is not of class k
and one supposing that it is. Under hypothesis j the scores are positive[j] for class j and
negative[k] for the others. The two best negative scores decide every hypothesis: without class j the best is the first
of them, or the second if the first is j's own.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled
from venn._compiled.rows import copy_row

# ------------------------------------------------------------------------------------------------------------- counting

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


# ----------------------------------------------------------------------------------------------------------- categories
# Categories from scores on the grid, and the labels beside the new example in its category.


@compiled
def count_beside(categories, labels, weights, test, counts):  # type: ignore[no-untyped-def]
    """Add to counts (c,) the weighted labels of the columns whose category is that of the column `test`."""
    wanted = categories[test]
    for i in range(labels.shape[0]):
        if weights[i] > 0 and categories[i] == wanted:
            counts[labels[i]] += weights[i]


@compiled
def best_two(grid):  # type: ignore[no-untyped-def]
    """Find the largest and the second largest score of each column; ties go to the first class.

    Parameters
    ----------
    grid : (c, n) float64, whole numbers; c >= 2

    Returns
    -------
    top, second : (n,) int64 classes
    best, runner : (n,) float64 their scores
    """
    c, n = grid.shape
    top, second = np.zeros(n, np.int64), np.zeros(n, np.int64)
    best, runner = np.empty(n), np.empty(n)
    row = grid[0]
    for i in range(n):
        best[i], runner[i] = row[i], -np.inf
    for k in range(1, c):
        row = grid[k]
        for i in range(n):
            value, b, r, t, s = row[i], best[i], runner[i], top[i], second[i]
            over, between = value > b, value > r
            second[i] = t if over else (k if between else s)
            top[i] = k if over else t
            runner[i] = max(r, min(b, value))
            best[i] = max(b, value)
    return top, second, best, runner


@compiled
def falling_exp(x):  # type: ignore[no-untyped-def]
    """Return exp(x) for x <= 0 to 1e-11, as a power of a polynomial: a loop over it uses vector registers.

    Below exp(-32) values are negligible beside 1, and exp(-32) may be returned.
    """
    y = max(x, -32.0) * (1 / 64)
    p = 1.0 + y * (1 / 7) * (1.0 + y * (1 / 8))
    p = 1.0 + y * (1 / 5) * (1.0 + y * (1 / 6) * p)
    p = 1.0 + y * (1 / 3) * (1.0 + y * (1 / 4) * p)
    p = 1.0 + y * (1.0 + y * (1 / 2) * p)
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p


@compiled
def best_shares(grid):  # type: ignore[no-untyped-def]
    """Return the top class of each column, its softmax share, and that of the second; (n,) each."""
    c, n = grid.shape
    top, _, best, runner = best_two(grid)
    step = 1 / GRID
    total = np.zeros(n)
    for k in range(c):
        row = grid[k]
        for i in range(n):
            total[i] += falling_exp((row[i] - best[i]) * step)
    for i in range(n):
        runner[i] = falling_exp((runner[i] - best[i]) * step) / total[i]
        best[i] = 1.0 / total[i]
    return top, best, runner


@compiled
def bins_of(values, edges):  # type: ignore[no-untyped-def]
    """Return the (n,) number of edges at or below each value."""
    n = values.shape[0]
    bins = np.zeros(n, np.int64)
    for e in range(edges.shape[0]):
        edge = edges[e]
        for i in range(n):
            one = 1 if values[i] >= edge else 0
            bins[i] += one
    return bins


@compiled
def cube_root(n):  # type: ignore[no-untyped-def]
    """Return the largest integer whose cube is at most n >= 1."""
    root = round(n ** (1 / 3))
    return root - 1 if root * root * root > n else root


@compiled
def adaptive_bins(grid):  # type: ignore[no-untyped-def]
    """Return (n,) categories top + c * bin, the bin by quantiles of the margin among equal top classes.

    Among the m margins with one top class, a margin with r smaller ones is in bin floor(r * bins / m), with
    bins = floor(m^(1/3)).
    """
    c, n = grid.shape
    top, _, best, runner = best_two(grid)
    categories = np.empty(n, np.int64)
    values = np.empty(n)
    for t in range(c):
        m = 0
        for i in range(n):
            if top[i] == t:
                values[m] = best[i] - runner[i]
                m += 1
        if m == 0:
            continue
        ordered = np.sort(values[:m])
        bins = cube_root(m)
        for i in range(n):
            if top[i] == t:
                below = np.searchsorted(ordered, best[i] - runner[i])
                categories[i] = t + c * (below * bins // m)
    return categories


@compiled
def smallest(values, n, rank):  # type: ignore[no-untyped-def]
    """Return the value at position `rank` of the first n in ascending order; this reorders them."""
    low, high = 0, n - 1
    while low < high:
        # Median of three, so that ordered values are not the worst case.
        a, b, d = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), d))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@compiled
def count_adaptive(negative, positive, labels, weights, test):  # type: ignore[no-untyped-def]
    """Count, for every hypothesis, the labels in the new example's category of `adaptive_bins`.

    The bins need no sort: among the margins with the new example's top class, only the two order statistics that bound
    its bin are found.

    Parameters
    ----------
    negative, positive : (c, m) float64 scores on the grid
    labels, weights : (m,) int64
    test : column of the new example

    Returns
    -------
    counts : (c, c) int64
    categories : (c,) int64
    """
    c, m = negative.shape
    counts = np.zeros((c, c), np.int64)
    categories = np.empty(c, np.int64)
    grid = np.empty((c, m))
    for k in range(c):
        copy_row(negative[k], grid[k])
    examples = 1
    for i in range(m):
        examples += weights[i]
    lower, upper = np.empty(examples), np.empty(examples)
    for j in range(c):
        copy_row(positive[j], grid[j])
        top, _, best, runner = best_two(grid)
        copy_row(negative[j], grid[j])
        t, own = top[test], best[test] - runner[test]
        below = above = 0
        total = 1
        for i in range(m):
            if top[i] == t:
                margin = best[i] - runner[i]
                total += weights[i]
                if margin < own:
                    for _ in range(weights[i]):
                        lower[below] = margin
                        below += 1
                elif margin > own:
                    for _ in range(weights[i]):
                        upper[above] = margin
                        above += 1
        bins = cube_root(total)
        bin_ = below * bins // total
        # Ranks first, first + 1, ..., last - 1 are in the bin.
        first = (bin_ * total + bins - 1) // bins
        last = ((bin_ + 1) * total + bins - 1) // bins
        low = smallest(lower, below, first - 1) if first > 0 else -np.inf
        skipped = total - above  # the new example and all margins at or below its own
        high = own if last <= skipped else smallest(upper, above, last - skipped - 1)
        categories[j] = t + c * bin_
        counts[j, j] += 1
        for i in range(m):
            margin = best[i] - runner[i]
            if top[i] == t and weights[i] > 0 and margin > low and margin <= high:
                counts[j, labels[i]] += weights[i]
    return counts, categories
