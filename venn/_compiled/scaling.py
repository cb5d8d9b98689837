"""Binary maps from scores to probabilities, for all one-against-all machines in one call.

Arrays by machine: `scores` (c, m) float64; `positives` (c, m) int64, examples of class k at each
distinct object; `totals` (m,) int64, all examples there. Every example counts once, so a count is
a weight.
"""

import numpy as np

from venn._compiled.jit import compiled

ITERATIONS = 100
# The largest change of a logit over the training scores that a last Newton step may make. Steps
# converge quadratically with a constant near 1, so about its square is left after it.
LAST_STEP = 1e-7
RUN = 16  # length of the runs that insertion sorts before they are merged
FEW = 100  # cuts up to which comparing with all of them, without branches, beats a binary search


@compiled
def sigmoid(u):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + e^u) without overflow."""
    e = np.exp(-abs(u))
    return (e if u >= 0.0 else 1.0) / (1.0 + e)


@compiled
def derivatives(f, target, weight, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Return the first and second derivatives of the objective by slope and offset."""
    gs = 0.0
    go = 0.0
    hss = 0.0
    hso = 0.0
    hoo = 0.0
    for i in range(f.shape[0]):
        z = f[i] - centre
        u = slope * z + offset
        e = np.exp(-abs(u))
        p = (e if u >= 0.0 else 1.0) / (1.0 + e)
        g = target[i] - weight[i] * p
        d = weight[i] * e / ((1.0 + e) * (1.0 + e))
        gs += g * z
        go += g
        dz = d * z
        hss += dz * z
        hso += dz
        hoo += d
    return gs, go, hss, hso, hoo


@compiled
def objective(f, target, weight, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Return the cross-entropy of p = 1 / (1 + e^u) against the targets, without overflow."""
    value = 0.0
    for i in range(f.shape[0]):
        u = slope * (f[i] - centre) + offset
        rest = weight[i] * np.log1p(np.exp(-abs(u)))
        value += (target[i] if u >= 0.0 else target[i] - weight[i]) * u + rest
    return value


@compiled
def newton(f, target, weight, low, high, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Minimise the objective from the given start; return slope, offset, centre and success.

    u = slope * (f - centre) + offset. The centre follows the mean of the scores by curvature, where the
    two unknowns separate: scores far from 0 lose no digits, and no ridge is needed.
    """
    for _ in range(ITERATIONS):
        gs, go, hss, hso, hoo = derivatives(f, target, weight, slope, offset, centre)
        shift = hso / hoo
        spread = hss - shift * hso
        mean = centre + shift
        if not (np.isfinite(slope * shift) and 0.0 < hss < np.inf):
            return slope, offset, centre, False
        if spread > 1e-6 * hss:  # else mostly cancelled: ask again from the better centre
            ds = (shift * go - gs) / spread
            at_mean = -go / hoo
            do = at_mean - ds * shift
            reach = abs(ds) * max(high - mean, mean - low) + abs(at_mean)
            if not np.isfinite(reach):
                return slope, offset, centre, False
            if reach <= LAST_STEP:
                return slope + ds, offset + do, centre, True
            # While no logit moves by more than r = 1 the curvature cannot grow by more than e^r on the way,
            # so the step removes at least 1 - (e^r - r - 1) / r^2 > 1/4 of what its slope promises:
            # sufficient decrease is certain, and the objective need not be evaluated.
            step = 1.0
            if reach > 1.0:
                before = objective(f, target, weight, slope, offset, centre)
                promise = gs * ds + go * do
                while step * reach > 1.0:
                    after = objective(f, target, weight, slope + step * ds, offset + step * do, centre)
                    if after <= before + 1e-4 * step * promise:
                        break
                    step *= 0.5
            slope += step * ds
            offset += step * do
        # By the distance really moved: among equal large scores the mean is not a floating-point number.
        offset += slope * (mean - centre)
        centre = mean
    return slope, offset, centre, False


@compiled
def fit_platt(scores, positives, totals, maps):  # type: ignore[no-untyped-def]
    """Fit all sigmoids; start from `maps` (c, 3) of slope, offset, centre where these are finite.

    Return the new maps (c, 3) and the number of the first machine without convergence, or -1.
    """
    c, m = scores.shape
    fitted = np.empty((c, 3))
    target = np.empty(m)
    weight = totals.astype(np.float64)
    n = totals.sum()
    for k in range(c):
        f = scores[k]
        positive = 0
        low = f[0]
        high = f[0]
        for i in range(m):
            positive += positives[k, i]
            low = min(low, f[i])
            high = max(high, f[i])
        of_positive = (positive + 1.0) / (positive + 2.0)
        of_negative = 1.0 / (n - positive + 2.0)
        centre = 0.0
        for i in range(m):
            target[i] = positives[k, i] * of_positive + (totals[i] - positives[k, i]) * of_negative
            centre += weight[i] * f[i]
        if low == high or positive == 0 or positive == n:
            # One class: the constant map is the optimum. One score: the slope is free, and set to 0.
            mean = (positive * of_positive + (n - positive) * of_negative) / n
            fitted[k, 0] = 0.0
            fitted[k, 1] = np.log((1.0 - mean) / mean)
            fitted[k, 2] = low
            continue
        done = False
        if np.isfinite(maps[k, 0]):
            slope, offset, at, done = newton(f, target, weight, low, high, maps[k, 0], maps[k, 1], maps[k, 2])
        if not done:
            start = np.log((n - positive + 1.0) / (positive + 1.0))
            slope, offset, at, done = newton(f, target, weight, low, high, 0.0, start, centre / n)
        if not done:
            return fitted, k
        fitted[k, 0] = slope
        fitted[k, 1] = offset
        fitted[k, 2] = at
    return fitted, -1


@compiled
def apply_platt(maps, test_scores):  # type: ignore[no-untyped-def]
    """Return the (c,) probabilities by the sigmoids."""
    out = np.empty(test_scores.shape[0])
    for k in range(out.shape[0]):
        out[k] = sigmoid(maps[k, 0] * (test_scores[k] - maps[k, 2]) + maps[k, 1])
    return out


@compiled
def bin_of(cuts, score):  # type: ignore[no-untyped-def]
    """Return the number of cuts <= score; cuts do not decrease."""
    low = 0
    left = cuts.shape[0]
    while left > 0:
        half = (left + 1) >> 1
        low += half if cuts[low + half - 1] <= score else 0
        left -= half
    return low


@compiled
def fit_bins(scores, positives, totals, cuts, laplace):  # type: ignore[no-untyped-def]
    """Return the (c, bins) rates of positives between the `cuts` (c, bins - 1).

    A bin without examples takes the rate of the nearest bin with some, the lower of two.
    """
    c, m = scores.shape
    bins = cuts.shape[1] + 1
    extra = 1 if laplace else 0
    rates = np.empty((c, bins))
    where = np.empty(m, np.int64)
    of_class = np.empty(bins, np.int64)
    of_all = np.empty(bins, np.int64)
    for k in range(c):
        f = scores[k]
        if bins <= FEW:
            where[:] = 0
            for b in range(bins - 1):
                cut = cuts[k, b]
                for i in range(m):
                    where[i] += 1 if cut <= f[i] else 0
        else:
            for i in range(m):
                where[i] = bin_of(cuts[k], f[i])
        of_class[:] = 0
        of_all[:] = 0
        for i in range(m):
            b = where[i]
            of_class[b] += positives[k, i]
            of_all[b] += totals[i]
        below = -1
        above = 0
        for b in range(bins):
            if of_all[b] > 0:
                below = b
            while above < bins and (above < b or of_all[above] == 0):
                above += 1
            near = below if above == bins or (below >= 0 and b - below <= above - b) else above
            rates[k, b] = (of_class[near] + extra) / (of_all[near] + 2 * extra)
    return rates


@compiled
def apply_bins(cuts, rates, test_scores):  # type: ignore[no-untyped-def]
    """Return the (c,) rates of the bins of the test scores."""
    out = np.empty(test_scores.shape[0])
    for k in range(out.shape[0]):
        out[k] = rates[k, bin_of(cuts[k], test_scores[k])]
    return out


@compiled
def sort_again(keys, items, spare_keys, spare_items):  # type: ignore[no-untyped-def]
    """Sort keys in place, items with them; stable, and fast where they are nearly sorted.

    Insertion within short runs, then merges of the overlap of neighbouring runs only: O(m) when little
    moved, O(m log m) whatever happens.
    """
    m = keys.shape[0]
    for start in range(0, m, RUN):
        for i in range(start + 1, min(start + RUN, m)):
            key = keys[i]
            if keys[i - 1] <= key:
                continue
            item = items[i]
            j = i
            while j > start and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                items[j] = items[j - 1]
                j -= 1
            keys[j] = key
            items[j] = item
    width = RUN
    while width < m:
        for start in range(0, m - width, 2 * width):
            middle = start + width
            key = keys[middle]
            if keys[middle - 1] <= key:
                continue
            end = min(middle + width, m)
            # The left run up to the first key above the right run's smallest stays where it is.
            first = start
            left = middle - start
            while left > 0:
                half = (left + 1) >> 1
                first += half if keys[first + half - 1] <= key else 0
                left -= half
            size = middle - first
            for i in range(size):
                spare_keys[i] = keys[first + i]
                spare_items[i] = items[first + i]
            i = 0
            j = middle
            into = first
            while i < size:
                if j < end and keys[j] < spare_keys[i]:
                    keys[into] = keys[j]
                    items[into] = items[j]
                    j += 1
                else:
                    keys[into] = spare_keys[i]
                    items[into] = spare_items[i]
                    i += 1
                into += 1
        width *= 2


@compiled
def fit_isotonic(scores, positives, totals, order):  # type: ignore[no-untyped-def]
    """Weighted pool-adjacent-violators of all machines, tied scores pooled first.

    Parameters
    ----------
    order : (c, <= m) int64
        Any permutation of the first objects; the closer it sorts the scores, the faster.

    Returns
    -------
    order : (c, m) int64, sorts the scores
    first, last : (c, blocks) float64
        Smallest and largest score of each block, infinite beyond the last block.
    value : (c, blocks) float64
        Nondecreasing rates; 1 beyond the last block.
    """
    c, m = scores.shape
    known = order.shape[1]
    sorted_order = np.empty((c, m), np.int64)
    keys = np.empty(m)
    spare_keys = np.empty(m)
    spare_items = np.empty(m, np.int64)
    first = np.full((c, m), np.inf)
    last = np.full((c, m), np.inf)
    value = np.ones((c, m))
    of_class = np.empty(m, np.int64)
    of_all = np.empty(m, np.int64)
    widest = 0
    for k in range(c):
        items = sorted_order[k]
        for i in range(m):
            items[i] = order[k, i] if i < known else i
            keys[i] = scores[k, items[i]]
        sort_again(keys, items, spare_keys, spare_items)
        b = -1
        i = 0
        while i < m:
            key = keys[i]
            positive = positives[k, items[i]]
            total = totals[items[i]]
            i += 1
            while i < m and keys[i] == key:
                positive += positives[k, items[i]]
                total += totals[items[i]]
                i += 1
            start = key
            # Rates are compared as whole numbers: the blocks are exact, in any order of the examples.
            while b >= 0 and of_class[b] * total >= positive * of_all[b]:
                positive += of_class[b]
                total += of_all[b]
                start = first[k, b]
                b -= 1
            b += 1
            of_class[b] = positive
            of_all[b] = total
            first[k, b] = start
            last[k, b] = keys[i - 1]
        for a in range(b + 1):
            value[k, a] = of_class[a] / of_all[a]
        first[k, b + 1 :] = np.inf
        last[k, b + 1 :] = np.inf
        widest = max(widest, b + 1)
    return sorted_order, first[:, :widest].copy(), last[:, :widest].copy(), value[:, :widest].copy()


@compiled
def apply_isotonic(first, last, value, linear, test_scores):  # type: ignore[no-untyped-def]
    """Return the (c,) values at the test scores; constant beyond the ends."""
    out = np.empty(test_scores.shape[0])
    for k in range(out.shape[0]):
        score = test_scores[k]
        b = bin_of(first[k], score) - 1
        if b < 0:
            out[k] = value[k, 0]
        elif not linear or score <= last[k, b] or b + 1 == first.shape[1] or first[k, b + 1] == np.inf:
            out[k] = value[k, b]
        else:
            share = (score - last[k, b]) / (first[k, b + 1] - last[k, b])
            out[k] = min(value[k, b] + share * (value[k, b + 1] - value[k, b]), value[k, b + 1])
    return out
