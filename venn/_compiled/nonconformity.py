"""Nonconformity of all examples under every hypothesis, compared with the new example's: greater or equal.

Entry (j, y) of the counts: examples of class y under hypothesis j. The new example is always counted, as an example of
class j equal to itself.
"""

import numpy as np

from venn._compiled.counting import TILE, rank
from venn._compiled.jit import compiled

CHUNK = 4  # hypotheses whose comparisons share one key of a histogram, two bits for each
PATTERNS = 1 << 2 * CHUNK
ALIKE = 4e-6  # by so much of themselves shares differ whose logarithms are on different steps of the grid


@compiled
def share_of(own, before, after, whole):  # type: ignore[no-untyped-def]
    """Return the share of a score where one of all has changed, which added up to `whole`; 1 if all are 0.

    By rounding the sum of the others may be below 0: then there is one score alone.
    """
    own = max(own, 0.0)
    total = max(whole - max(before, 0.0) + max(after, 0.0), own)
    return own / total if total > 0.0 else 1.0


@compiled
def start_counts(c, codes, weights):  # type: ignore[no-untyped-def]
    """Return greater, equal, total (c, c) int64 where all examples but the new one are still to be compared."""
    greater = np.zeros((c, c), np.int64)
    equal = np.zeros((c, c), np.int64)
    total = np.zeros((c, c), np.int64)
    for i in range(codes.shape[0]):
        total[0, codes[i]] += weights[i]
    for j in range(c - 1, -1, -1):
        for k in range(c):
            total[j, k] = total[0, k]
        total[j, j] += 1
        equal[j, j] = 1
    return greater, equal, total


@compiled
def tally(steps, own, codes, weights, greater, equal):  # type: ignore[no-untyped-def]
    """Add to greater, equal (c,) the weights of the examples whose nonconformity is above, or equal to, `own`.

    Parameters
    ----------
    steps : (m,) float64, in whole steps of the grid
    own : float
        Nonconformity of the new example.
    codes, weights : (m,) int64
    """
    for i in range(codes.shape[0]):
        # No branches: comparisons are unpredictable.
        greater[codes[i]] += weights[i] * (steps[i] > own)
        equal[codes[i]] += weights[i] * (steps[i] == own)


@compiled
def compare(steps, own, shift, keys):  # type: ignore[no-untyped-def]
    """Add to each key, from bit `shift` on, 2 where its nonconformity is above `own` and 1 where it is equal."""
    one = 1 << shift
    for i in range(keys.shape[0]):
        above = one if steps[i] > own else 0
        at_least = one if steps[i] >= own else 0
        keys[i] += above + at_least


@compiled
def read_histogram(histogram, greater, equal):  # type: ignore[no-untyped-def]
    """Add the counts of histogram (chunks, c * PATTERNS) to greater, equal (c, c)."""
    c = greater.shape[0]
    for chunk in range(histogram.shape[0]):
        low = chunk * CHUNK
        for key in range(histogram.shape[1]):
            count = histogram[chunk, key]
            if count > 0:
                label = key // PATTERNS
                for j in range(low, min(c, low + CHUNK)):
                    code = key >> 2 * (j - low) & 3
                    if code == 2:
                        greater[j, label] += count
                    elif code == 1:
                        equal[j, label] += count


@compiled
def rank_beside_rivals(negative, positive, codes, weights, test):  # type: ignore[no-untyped-def]
    """Rank the new example among all, for every hypothesis j, by own score and best score of the other classes.

    Under hypothesis j the scores are `negative`, but class j has `positive`. So the two best rivals of an example among
    the negative scores decide every hypothesis: the first of them, or the second if the first is class j, together with
    the positive score of class j; and only the first of them if j is the example's own class.

    Parameters
    ----------
    negative, positive : (c, >= m) float64
    codes, weights : (m,) int64
    test : column of the new example

    Returns
    -------
    greater, equal, total : (c, c) int64
    """
    c = negative.shape[0]
    m = codes.shape[0]
    greater, equal, total = start_counts(c, codes, weights)
    own = np.empty(c)
    for j in range(c):
        rival = -np.inf
        for k in range(c):
            if k != j:
                rival = max(rival, negative[k, test])
        own[j] = rank(rival - positive[j, test], 0.0)
    best = np.empty(TILE)
    second = np.empty(TILE)
    mine = np.empty(TILE)
    steps = np.empty(TILE)
    keys = np.empty(TILE, np.int64)
    histogram = np.zeros(((c + CHUNK - 1) // CHUNK, c * PATTERNS), np.int64)
    for start in range(0, m, TILE):
        size = min(TILE, m - start)
        labels = codes[start : start + size]
        weight = weights[start : start + size]
        for i in range(size):
            best[i] = -np.inf
            second[i] = -np.inf
        for k in range(c):
            row = negative[k, start : start + size]
            for i in range(size):
                value = row[i]
                is_own = labels[i] == k
                mine[i] = value if is_own else mine[i]
                value = -np.inf if is_own else value
                b = best[i]
                second[i] = max(second[i], min(value, b))
                best[i] = max(b, value)
        for chunk in range(histogram.shape[0]):
            low = chunk * CHUNK
            for i in range(size):
                keys[i] = labels[i] * PATTERNS
            for j in range(low, min(c, low + CHUNK)):
                row = negative[j, start : start + size]
                supposed = positive[j, start : start + size]
                for i in range(size):
                    # If another class has the same score as class j, the second is the best too and either will do.
                    other = second[i] if row[i] == best[i] else best[i]
                    is_own = labels[i] == j
                    rival = best[i] if is_own else max(other, supposed[i])
                    steps[i] = rank(rival - (supposed[i] if is_own else mine[i]), 0.0)
                compare(steps, own[j], 2 * (j - low), keys[:size])
            table = histogram[chunk]
            for i in range(size):
                table[keys[i]] += weight[i]
    read_histogram(histogram, greater, equal)
    return greater, equal, total


@compiled
def rank_own(of_not, of, of_test, codes, weights):  # type: ignore[no-untyped-def]
    """Rank the new example's value among all, where each example's value is by its own class's machine.

    Parameters
    ----------
    of_not, of : (m,) float64
        Value of each example if the new one is not of its class, and if it is.
    of_test : (c,) float64
        Value of the new example as each class.
    codes, weights : (m,) int64

    Returns
    -------
    greater, equal, total : (c, c) int64
    """
    c = of_test.shape[0]
    m = codes.shape[0]
    greater, equal, total = start_counts(c, codes, weights)
    steps = np.empty(TILE)
    keys = np.empty(TILE, np.int64)
    histogram = np.zeros(((c + CHUNK - 1) // CHUNK, c * PATTERNS), np.int64)
    for start in range(0, m, TILE):
        size = min(TILE, m - start)
        labels = codes[start : start + size]
        for chunk in range(histogram.shape[0]):
            low = chunk * CHUNK
            for i in range(size):
                keys[i] = labels[i] * PATTERNS
            for j in range(low, min(c, low + CHUNK)):
                for i in range(size):
                    steps[i] = rank(of[start + i] if labels[i] == j else of_not[start + i], 0.0)
                compare(steps, rank(of_test[j], 0.0), 2 * (j - low), keys[:size])
            table = histogram[chunk]
            for i in range(size):
                table[keys[i]] += weights[start + i]
    read_histogram(histogram, greater, equal)
    return greater, equal, total


@compiled
def rank_shares(negative, positive, codes, weights, test):  # type: ignore[no-untyped-def]
    """Rank the new example among all by minus the logarithm of the own class's share of the scores, 0 where below 0.

    Under hypothesis j the scores are `negative`, but class j has `positive`. Logarithms are taken only where shares are
    alike to some steps of the grid; elsewhere the shares decide.

    Parameters
    ----------
    negative, positive : (c, >= m) float64
    codes, weights : (m,) int64
    test : column of the new example

    Returns
    -------
    greater, equal, total : (c, c) int64
    """
    c = negative.shape[0]
    m = codes.shape[0]
    greater, equal, total = start_counts(c, codes, weights)
    sums = np.zeros(m)
    mine = np.empty(m)
    whole = 0.0
    for k in range(c):
        row = negative[k]
        whole += max(row[test], 0.0)
        for i in range(m):
            value = max(row[i], 0.0)
            sums[i] += value
            if codes[i] == k:
                mine[i] = value
    for j in range(c):
        row = negative[j]
        supposed = positive[j]
        new = share_of(supposed[test], row[test], supposed[test], whole)
        step = rank(-np.log(new) if new > 0.0 else np.inf, 0.0)
        for i in range(m):
            share = share_of(supposed[i] if codes[i] == j else mine[i], row[i], supposed[i], sums[i])
            if share < new * (1.0 - ALIKE):
                greater[j, codes[i]] += weights[i]
            elif share <= new * (1.0 + ALIKE):
                other = rank(-np.log(share) if share > 0.0 else np.inf, 0.0)
                greater[j, codes[i]] += weights[i] * (other > step)
                equal[j, codes[i]] += weights[i] * (other == step)
    return greater, equal, total


@compiled
def shares(greater, equal, total, tau, label_conditional):  # type: ignore[no-untyped-def]
    """Return the (c,) shares (greater + tau * equal) / total of all examples, or of those of class j in row j."""
    c = greater.shape[0]
    values = np.empty(c)
    for j in range(c):
        first, last = (j, j + 1) if label_conditional else (0, c)
        above = level = size = 0
        for y in range(first, last):
            above += greater[j, y]
            level += equal[j, y]
            size += total[j, y]
        values[j] = (above + tau * level) / size
    return values
