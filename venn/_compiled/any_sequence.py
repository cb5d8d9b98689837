"""Thresholds that move with the errors, on any sequence: p-values put on the levels' scale, and one step."""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled

# The books are one table, as what costs most of such a step is to hand arrays over: (l + 1, 4 m + 1) float64, for l
# levels and m groups. Each level's row has m thresholds, m counts of errors, m sums of finite sizes, m counts of these,
# and the level itself; the last row has m counts of objects. The threshold of a level for an object in groups g is the
# largest theta @ g so far.


@compiled
def on_levels(books, g, p_values, new):  # type: ignore[no-untyped-def]
    """Compute p-values such that for every level k: new <= level k exactly if old <= the threshold of level k.

    Parameters
    ----------
    books : (l + 1, 4 m + 1) float64
    g : (m,) float64
        1 for the groups of the object, everyone first, 0 for others. There may be more than in the books.
    p_values : (c,) float64 in [0, 1]
    new : (c,) float64
        Set to the p-values on the scale of the levels.
    """
    n = books.shape[0] - 1
    m = books.shape[1] // 4
    cuts = np.empty(n)
    for k in range(n):
        cuts[k] = 0.0
        for i in range(m):
            cuts[k] += books[k, i] * g[i]
        if k > 0 and cuts[k] < cuts[k - 1]:
            cuts[k] = cuts[k - 1]
    for j in range(p_values.shape[0]):
        p = p_values[j]
        k = 0
        while k < n and cuts[k] < p:
            k += 1
        low, high = (0.0, 0.0) if k == 0 else (cuts[k - 1], books[k - 1, 4 * m]), (1.0, 1.0)
        if k < n:
            high = (cuts[k], books[k, 4 * m])
        share = (p - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 1.0
        value = min(low[1] + (high[1] - low[1]) * share, high[1])
        # Rounding must not put it on the level below: it would leave the set.
        new[j] = np.nextafter(low[1], 1.0) if k > 0 and value <= low[1] else value


@compiled
def move(books, g, size, missed, sizes):  # type: ignore[no-untyped-def]
    """Move the thresholds by one step, and count the object, its errors and the sizes of what was told.

    Parameters
    ----------
    books : (l + 1, 4 m + 1) float64
        Changed.
    g : (m,) float64
        1 for the groups of the object, everyone first, 0 for others.
    size : float
        Of the step.
    missed : (l,) float64
        1 where what was told at the level missed the label, else 0.
    sizes : (l,) float64
        Of what was told at each level; infinite ones are not counted.
    """
    m = g.shape[0]
    n = books.shape[0] - 1
    for i in range(m):
        books[n, i] += g[i]
    for k in range(n):
        for i in range(m):
            books[k, i] += size * g[i] * (books[k, 4 * m] - missed[k])
            books[k, m + i] += g[i] * missed[k]
            if sizes[k] < np.inf:
                books[k, 2 * m + i] += g[i] * sizes[k]
                books[k, 3 * m + i] += g[i]


@compiled
def move_by_set(books, g, size, p_values, truth):  # type: ignore[no-untyped-def]
    """Do that by the sets of (c,) p-values on the scale of the levels, as they were told, and the label's code."""
    n = books.shape[0] - 1
    found = np.zeros((2, n))  # whether each missed the label, and its size
    for k in range(n):
        level = books[k, books.shape[1] - 1]
        found[0, k] = p_values[truth] <= level
        for p in p_values:
            found[1, k] += p > level
    move(books, g, size, found[0], found[1])
