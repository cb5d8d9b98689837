"""Venn-Abers by class: two isotonic fits for each one-against-all machine, read at the new example."""

import numpy as np

from venn._compiled.counting import rank
from venn._compiled.jit import compiled
from venn._compiled.scaling import sort_again


@compiled
def isotonic_at(keys, items, labels, weights, k, test, test_label, start, positives, totals):  # type: ignore[no-untyped-def]
    """Return the isotonic regression of 1{label = k} on sorted keys, read at the item `test`.

    The new example joins at `test` as one more example with label `test_label`. Equal keys are one point. Rates are
    compared as whole numbers, so the result is exact and does not depend on the order of ties.
    """
    m = keys.shape[0]
    b = -1
    i = 0
    at = 0.0
    while i < m:
        key = keys[i]
        positive = 0
        total = 0
        while i < m and keys[i] == key:
            item = items[i]
            total += weights[item]
            positive += weights[item] if labels[item] == k else 0
            if item == test:
                total += 1
                positive += test_label
                at = key
            i += 1
        if total == 0:
            continue
        first = key
        while b >= 0 and positives[b] * total >= positive * totals[b]:
            positive += positives[b]
            total += totals[b]
            first = start[b]
            b -= 1
        b += 1
        start[b] = first
        positives[b] = positive
        totals[b] = total
    while start[b] > at:
        b -= 1
    return positives[b] / totals[b]


@compiled
def weighed_rate(keys, positive, weights, at, own, label):  # type: ignore[no-untyped-def]
    """Return the isotonic regression of 0 and 1 on keys, by weighed examples, read at a new one that joins.

    Parameters
    ----------
    keys, positive, weights : (m,) float64
        In ascending order of `keys`; 1 or 0; >= 0.
    at, own, label : float
        The new example's key, weight > 0, and 1 or 0.
    """
    m = keys.shape[0]
    start, positives, totals = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    b = -1
    i = 0
    waits = True
    while i < m or waits:
        key = at if waits and (i == m or at <= keys[i]) else keys[i]
        share = 0.0
        total = 0.0
        if waits and key == at:
            waits = False
            share, total = label * own, own
        while i < m and keys[i] == key:
            share += weights[i] * positive[i]
            total += weights[i]
            i += 1
        if total == 0.0:
            continue
        first = key
        while b >= 0 and positives[b] * total >= share * totals[b]:
            share += positives[b]
            total += totals[b]
            first = start[b]
            b -= 1
        b += 1
        start[b] = first
        positives[b] = share
        totals[b] = total
    while start[b] > at:
        b -= 1
    return min(positives[b] / totals[b], 1.0)


@compiled
def near_order(row, m, order, known, keys, items, where, counts):  # type: ignore[no-untyped-def]
    """Set `keys` to the scores on the grid and `items` to their columns, nearly sorted: by narrow buckets.

    Columns come as in `order`, then those missing from it; within a bucket they stay in that order.
    """
    low, high = np.inf, -np.inf
    for i in range(m):
        low = min(low, row[i])
        high = max(high, row[i])
    buckets = counts.shape[0] - 1
    scale = (buckets - 1) / (high - low) if high > low else 0.0
    if not scale < np.inf:
        scale = 0.0
    for b in range(buckets + 1):
        counts[b] = 0
    for i in range(m):
        bucket = int((row[i] - low) * scale)
        where[i] = bucket
        counts[bucket + 1] += 1
    for b in range(buckets):
        counts[b + 1] += counts[b]
    for i in range(m):
        item = order[i] if i < known else i
        into = counts[where[item]]
        counts[where[item]] = into + 1
        items[into] = item
        keys[into] = rank(row[item], 0.0)


@compiled
def classwise_pairs(negative, positive, labels, weights, test, order):  # type: ignore[no-untyped-def]
    """Return the Venn-Abers pair of every class, from scores under both suppositions.

    Parameters
    ----------
    negative, positive : (c, >= m) float64
    labels, weights : (m,) int64, class and number of examples of each column
    test : column of the new example, which `weights` leaves out
    order : (2, c, <= m) int64
        Any permutations of the first columns; the closer they sort the scores, the faster.

    Returns
    -------
    pairs : (c, 2) float64
    order : (2, c, m) int64, sorts the scores
    """
    c, m = negative.shape[0], labels.shape[0]
    known = order.shape[2]
    new_order = np.empty((2, c, m), np.int64)
    pairs = np.empty((c, 2))
    keys, spare_keys, start = np.empty(m), np.empty(m), np.empty(m)
    spare_items, positives, totals = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    where, counts = np.empty(m, np.int64), np.empty(2 * m + 2, np.int64)
    for side in range(2):
        table = positive if side == 1 else negative
        for k in range(c):
            items = new_order[side, k]
            near_order(table[k], m, order[side, k], known, keys, items, where, counts)
            sort_again(keys, items, spare_keys, spare_items)
            pairs[k, side] = isotonic_at(keys, items, labels, weights, k, test, side, start, positives, totals)
    return pairs, new_order
