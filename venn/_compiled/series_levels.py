"""Intervals and bands of a series: thresholds for each horizon and level that move with the errors, never clipped.

A value at time t is answered by forecasts of t - h for horizons h = 1 .. H; what was said at a time lies in slot t % H
until its last answer. NaN stands for what is not known: an expert that says nothing yet, a value that is missing.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled
from venn._compiled.series_distributions import insert, probability_at, quantile_at

HAIR = 1e-12  # of a number: means of equal numbers differ from them by rounding
TRUST = 10.0  # answers by which p-values count as uniform before there are any
KNEE = 0.1  # thresholds are chances down to here; below, each step down divides the chance
YOUNG = 30.0  # answers by which chances are smaller, so intervals wider, while there are few


@compiled
def strangeness(quantiles, levels, y):  # type: ignore[no-untyped-def]
    """Return 2 min(F(y), 1 - F(y-)), at most 1: small is strange."""
    upto = probability_at(quantiles, levels, y + HAIR * abs(y), True)
    below = probability_at(quantiles, levels, y - HAIR * abs(y), False)
    return min(2.0 * min(upto, 1.0 - below), 1.0)


@compiled
def ranked(window, n, p, prior):  # type: ignore[no-untyped-def]
    """Return the p-value: p ranked among the last n ones, which are sorted, beside some uniform ones over `prior`."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if window[middle] <= p:
            low = middle + 1
        else:
            high = middle
    return (low + TRUST * min(1.0, p * prior)) / (n + TRUST)


@compiled
def cut(window, n, a, prior):  # type: ignore[no-untyped-def]
    """Return the largest p whose p-value by `ranked` is at most a in (0, 1)."""
    A = a * (n + TRUST)
    low, high = 0, n
    while low < high:  # the first k with k + 1 + TRUST min(1, p_k prior) > A
        middle = (low + high) // 2
        if middle + 1 + TRUST * min(1.0, window[middle] * prior) > A:
            high = middle
        else:
            low = middle + 1
    free = (A - low) / (TRUST * prior) if A - low < TRUST else 1.0
    return min(window[low], free) if low < n else free


@compiled
def chance(threshold, line, empty, n):  # type: ignore[no-untyped-def]
    """Return what share of the distribution an interval leaves out, after n answers: 0 for the line, 1 for all of it.

    It rises with the threshold, is 0 up to `line`, and 1 from `empty` on.
    """
    if threshold <= line:
        return 0.0
    if threshold >= empty:
        return 1.0
    share = threshold if threshold >= KNEE else KNEE * np.exp(threshold / KNEE - 1.0)
    return share * (n + 1.0) / (n + 1.0 + YOUNG)


@compiled
def tell(distributions, levels, thresholds, line, empty, windows, counts, out, bands):  # type: ignore[no-untyped-def]
    """Set out (H, l, 2) to intervals, bands (l, H, 2) to those for whole paths; NaN ends are those of the empty one.

    Parameters
    ----------
    distributions : (H, q) float64
    thresholds : (H + 1, l) float64
        Those of bands last.
    line, empty : float
        Thresholds up to which an interval is the line, and from which on it is empty.
    windows : (H + 1, w) float64
        Sorted strangenesses that came; counts : (H + 1,) int64, how many ever.
    """
    h_max, size = out.shape[0], windows.shape[1]
    for k in range(out.shape[1]):
        for h in range(h_max + 1):
            a = thresholds[h, k]
            for j in range(
                k + 1, out.shape[1]
            ):  # so intervals are nested, and none is narrower than its threshold says
                a = min(a, thresholds[h, j])
            a = chance(a, line, empty, counts[h])
            if h < h_max:
                nested(distributions[h], levels, a, out[h, k])
            else:
                whole = cut(windows[h], min(counts[h], size), a, float(h_max)) if 0.0 < a < 1.0 else a
                for i in range(h_max):
                    nested(distributions[i], levels, whole, bands[k, i])
                    if 0.0 < a < 1.0 and bands[k, i, 0] != bands[k, i, 0]:  # one is empty where all would be
                        bands[k, i, 0] = bands[k, i, 1] = quantile_at(distributions[i], levels, 0.5)


@compiled
def nested(distribution, levels, c, ends):  # type: ignore[no-untyped-def]
    """Set ends (2,) to those of the interval that leaves out the share c of a distribution, half on each side."""
    if c >= 1.0:
        ends[0] = ends[1] = np.nan
    elif not c > 0.0 or distribution[0] != distribution[0]:  # or nothing is known yet
        ends[0], ends[1] = -np.inf, np.inf
    else:
        lower, upper = quantile_at(distribution, levels, 0.5 * c), quantile_at(distribution, levels, 1.0 - 0.5 * c)
        ends[0], ends[1] = lower - HAIR * abs(lower), upper + HAIR * abs(upper)


@compiled
def account(  # type: ignore[no-untyped-def]
    y, t, levels, epsilons, size, told, said, bands, thresholds, windows, orders, counts, books, paths, p_values
):
    """Answer the questions about time t with y: errors move thresholds by a step of `size`, strangeness is kept.

    Parameters
    ----------
    told : (H, H, l, 2) float64
        By slot: intervals as `tell` gave them; said : (H, H, q) the distributions; bands : (H, l, H, 2).
    orders : (H + 1, w) float64
        What `windows` hold, as it came.
    books : (H + 1, l, 5) float64
        Errors, sums of finite widths, number of these, empty ones, and answers.
    paths : (H, 2 + l) float64
        By slot: how many values of the path came, the least strangeness, and at which levels the band has missed.
    p_values : (H,) float64
        Set to the p-values of the answers; NaN for none.
    """
    h_max = told.shape[0]
    seen = y == y
    for h in range(1, h_max + 1):
        slot = (t - h) % h_max
        p_values[h - 1] = np.nan
        if t < h:
            continue
        if seen:
            n = counts[h - 1]
            for k in range(epsilons.shape[0]):
                lower, upper = told[slot, h - 1, k, 0], told[slot, h - 1, k, 1]
                inside = lower <= y <= upper
                note(books[h - 1, k], inside, lower, upper)
                thresholds[h - 1, k] += size * (epsilons[k] - (0.0 if inside else 1.0))
                if not bands[slot, k, h - 1, 0] <= y <= bands[slot, k, h - 1, 1]:
                    paths[slot, 2 + k] = 1.0
            paths[slot, 0] += 1.0
            distribution = said[slot, h - 1]
            if distribution[0] == distribution[0]:
                p = strangeness(distribution, levels, y)
                value = ranked(windows[h - 1], min(n, windows.shape[1]), p, 1.0)
                p_values[h - 1] = value
                paths[slot, 1] = min(paths[slot, 1], p)
                insert(windows[h - 1], orders[h - 1], n, p)
                counts[h - 1] = n + 1
        if h == h_max and paths[slot, 0] > 0.0:
            for k in range(epsilons.shape[0]):
                missed = paths[slot, 2 + k]
                lower, upper = bands[slot, k, 0, 0], 0.0
                for i in range(h_max):
                    upper += (bands[slot, k, i, 1] - bands[slot, k, i, 0]) / h_max
                note(books[h_max, k], missed == 0.0, 0.0 if lower == lower else np.nan, upper)
                thresholds[h_max, k] += size * (epsilons[k] - missed)
            if paths[slot, 1] <= 1.0:
                insert(windows[h_max], orders[h_max], counts[h_max], paths[slot, 1])
                counts[h_max] += 1


@compiled
def note(book, inside, lower, upper):  # type: ignore[no-untyped-def]
    """Count an interval that was told: (5,) errors, sum of finite widths, number of these, empty ones, all."""
    book[0] += 0.0 if inside else 1.0
    book[4] += 1.0
    if lower != lower:
        book[3] += 1.0
    elif upper - lower < np.inf:
        book[1] += upper - lower
        book[2] += 1.0
