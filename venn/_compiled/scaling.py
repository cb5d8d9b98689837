"""Binary maps from scores to probabilities, for all one-against-all machines in one call.

Arrays by machine: `scores` (c, m) float64; `positives` (c, m), weight of the examples of class k at each
object; `totals` (m,), weight of all examples there. Online these are counts, int64, and objects are distinct;
a fit to one set of examples takes weights, float64.
"""

import numpy as np

from venn._compiled.jit import compiled, in_lanes

ITERATIONS = 100
# The largest change of a logit over the training scores that the last Newton step may make. Steps converge
# quadratically with a constant near 1, so about the square of this remains after it.
LAST_STEP = 1e-7
FAR = 1.75  # change of a logit: see `newton`
ROUGH, TINY = 1e-4, 1e-7  # errors of `rough_objectives`: five times what they are
RUN = 16  # length of the runs that insertion sorts before they are merged
FEW_NEW = 4  # most new objects that are inserted one by one
FEW = 100  # cuts up to which comparing with all of them, without branches, beats a binary search


@compiled
def extremes(f):  # type: ignore[no-untyped-def]
    """Return the smallest and the largest of the scores of one machine."""
    low = f[0]
    high = f[0]
    for i in range(f.shape[0]):
        low = min(low, f[i])
        high = max(high, f[i])
    return low, high


@compiled
def ranges(scores):  # type: ignore[no-untyped-def]
    """Return the (2, c, 1) smallest and largest scores."""
    out = np.empty((2, scores.shape[0], 1))
    for k in range(scores.shape[0]):
        out[0, k, 0], out[1, k, 0] = extremes(scores[k])
    return out


@in_lanes
def totals_of(scores, positives):  # type: ignore[no-untyped-def]
    """Return the (m,) examples at each object, and whether all scores are finite."""
    c, m = scores.shape
    totals = np.zeros(m, np.int64)
    doubt = 0.0
    for k in range(c):
        for i in range(m):
            totals[i] += positives[k, i]
        for i in range(m):
            doubt += 0.0 * scores[k, i]
    return totals, doubt == 0.0


@compiled
def sigmoid(u):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + e^u) without overflow."""
    e = np.exp(-abs(u))
    return (e if u >= 0.0 else 1.0) / (1.0 + e)


@in_lanes
def falling_root(x):  # type: ignore[no-untyped-def]
    """Return the square root of exp(x) for x <= 0, within 1e-13; a loop over it uses vector registers.

    It is a power of a polynomial: its relative error is 1e-10 at -40 and a few hundredths at -700, where the value is
    negligible beside 1.
    """
    y = max(x, -745.0) * (1 / 1024)
    p = 1.0 + y * (1 / 5) * (1.0 + y * (1 / 6))
    p = 1.0 + y * (1 / 3) * (1.0 + y * (1 / 4) * p)
    p = 1.0 + y * (1.0 + y * (1 / 2) * p)
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p


@in_lanes
def falling_exp(x):  # type: ignore[no-untyped-def]
    """Return exp(x) for x <= 0, as `falling_root`."""
    p = falling_root(x)
    return p * p


@compiled
def roots(f, slope, offset, centre, out):  # type: ignore[no-untyped-def]
    """Set `out` (m,) to the square roots of e^-|u|, u = slope (f - centre) + offset.

    A loop by itself: within a longer one they take a quarter more time, since fewer objects are under way at once.
    """
    for i in range(f.shape[0]):
        out[i] = falling_root(-abs(slope * (f[i] - centre) + offset))


@in_lanes
def derivatives(f, target, weight, slope, offset, centre, root):  # type: ignore[no-untyped-def]
    """Return the first and second derivatives of the objective by slope and offset, given the `roots` there."""
    gs = 0.0
    go = 0.0
    hss = 0.0
    hso = 0.0
    hoo = 0.0
    for i in range(f.shape[0]):
        z = f[i] - centre
        u = slope * z + offset
        e = root[i] * root[i]
        q = 1.0 / (1.0 + e)
        p = (e if u >= 0.0 else 1.0) * q
        g = target[i] - weight[i] * p
        d = weight[i] * e * q * q
        gs += g * z
        go += g
        dz = d * z
        hss += dz * z
        hso += dz
        hoo += d
    return gs, go, hss, hso, hoo


@in_lanes
def log_of_one_more(e):  # type: ignore[no-untyped-def]
    """Return log(1 + e) for 0 <= e <= 1, within 2e-13 of itself; a loop over it uses vector registers.

    It is 2 artanh(e / (2 + e)) by its series, whose argument is at most 1/3.
    """
    z = e / (2.0 + e)
    s = z * z
    p = 1 / 19 + s * (1 / 21 + s * (1 / 23))
    p = 1 / 13 + s * (1 / 15 + s * (1 / 17 + s * p))
    p = 1 / 7 + s * (1 / 9 + s * (1 / 11 + s * p))
    return 2.0 * z * (1.0 + s * (1 / 3 + s * (1 / 5 + s * p)))


@in_lanes
def objective(f, target, weight, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Return the cross-entropy of p = 1 / (1 + e^u) against the targets, without overflow."""
    value = 0.0
    for i in range(f.shape[0]):
        u = slope * (f[i] - centre) + offset
        rest = weight[i] * log_of_one_more(falling_exp(-abs(u)))
        value += (target[i] if u >= 0.0 else target[i] - weight[i]) * u + rest
    return value


@in_lanes
def rough_objectives(f, target, weight, slope, offset, ds, do, centre):  # type: ignore[no-untyped-def]
    """Return the objective before and after a step, and the sum of the weights.

    Each objective is wrong by at most ROUGH of itself and TINY of that sum. The logarithm is a polynomial, the
    exponential a lower power. `target` lies in [0, weight], so no example's objective is below 0.
    """
    before = 0.0
    after = 0.0
    total = 0.0
    for i in range(f.shape[0]):
        z = f[i] - centre
        u = slope * z + offset
        v = u + (ds * z + do)
        x = max(-abs(u), -40.0) * (1 / 64)
        y = max(-abs(v), -40.0) * (1 / 64)
        p = 1.0 + x * (1.0 + x * (1 / 2) * (1.0 + x * (1 / 3) * (1.0 + x * (1 / 4))))
        q = 1.0 + y * (1.0 + y * (1 / 2) * (1.0 + y * (1 / 3) * (1.0 + y * (1 / 4))))
        p *= p
        q *= q
        p *= p
        q *= q
        p *= p
        q *= q
        p *= p
        q *= q
        p *= p
        q *= q
        p *= p
        q *= q
        p *= 0.99999059 + p * (-0.49931465 + p * (0.32484958 + p * (-0.20907954 + p * (0.10013973 - p * 0.02344366))))
        q *= 0.99999059 + q * (-0.49931465 + q * (0.32484958 + q * (-0.20907954 + q * (0.10013973 - q * 0.02344366))))
        most = target[i] - weight[i]
        before += (target[i] if u >= 0.0 else most) * u + weight[i] * p
        after += (target[i] if v >= 0.0 else most) * v + weight[i] * q
        total += weight[i]
    return before, after, total


@compiled
def falls(f, target, weight, slope, offset, ds, do, centre, promise):  # type: ignore[no-untyped-def]
    """Return whether a step decreases the objective by `-promise` or more: computed in full where that is close."""
    before, after, total = rough_objectives(f, target, weight, slope, offset, ds, do, centre)
    rise = after - (before + promise)
    if abs(rise) > ROUGH * (before + after) + TINY * total:
        return rise < 0.0
    before = objective(f, target, weight, slope, offset, centre)
    after = objective(f, target, weight, slope + ds, offset + do, centre)
    return after <= before + promise


@compiled
def newton(f, target, weight, low, high, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Minimise the objective from the given start; return slope, offset, centre and success.

    u = slope * (f - centre) + offset. The centre follows the mean of the scores weighted by curvature, where the two
    unknowns separate: scores far from 0 lose no digits, and no ridge is needed.
    """
    root = np.empty(f.shape[0])
    for _ in range(ITERATIONS):
        roots(f, slope, offset, centre, root)
        gs, go, hss, hso, hoo = derivatives(f, target, weight, slope, offset, centre, root)
        shift = hso / hoo
        spread = hss - shift * hso
        mean = centre + shift
        if not (np.isfinite(slope * shift + offset) and 0.0 < hss < np.inf):
            return slope, offset, centre, False
        if spread > 1e-6 * hss:  # else mostly cancelled: compute again from the better centre
            ds = (shift * go - gs) / spread
            at_mean = -go / hoo
            do = at_mean - ds * shift
            reach = abs(ds) * max(high - mean, mean - low) + abs(at_mean)
            if not np.isfinite(reach):
                return slope, offset, centre, False
            if reach <= LAST_STEP:
                return slope + ds, offset + do, centre, True
            # While no logit moves by more than r the curvature cannot grow by more than e^r on the way, so the step
            # removes at least 1 - (e^r - r - 1) / r^2 of what its slope predicts, 1/50 for r = FAR: sufficient
            # decrease is certain, and the objective need not be evaluated, unless that is near its rounding.
            step = 1.0
            promise = gs * ds + go * do
            move = max(abs(ds * (high - mean) + at_mean), abs(ds * (low - mean) + at_mean))
            if reach > 1.0 and not (move <= FAR and -promise > 1e-9 * weight.shape[0]):
                while step * reach > 1.0:
                    wanted = 1e-4 * step * promise
                    if falls(f, target, weight, slope, offset, step * ds, step * do, centre, wanted):
                        break
                    step *= 0.5
            slope += step * ds
            offset += step * do
        # By the actual move: the mean of equal large scores may not be a floating-point number.
        offset += slope * (mean - centre)
        centre = mean
    return slope, offset, centre, False


@compiled
def fit_sigmoid(f, positives, totals, unit, fitted):  # type: ignore[no-untyped-def]
    """Fit the sigmoid of one machine; return whether Newton's method converged.

    `fitted` (3,) holds slope, offset and centre: the start, unless NaN, and afterwards the optimum. `positives` and
    `totals` (m,) are multiplied by `unit`: this avoids overflow, and changes the optimum only through the targets.
    """
    m = f.shape[0]
    positive = positives.sum() * unit
    n = totals.sum() * unit
    low, high = extremes(f)
    of_positive = (positive + 1.0) / (positive + 2.0)
    of_negative = 1.0 / (n - positive + 2.0)
    if low == high or positive == 0 or positive == n:
        # One class: the constant map is the optimum. One score: the slope is free, and set to 0.
        mean = (positive * of_positive + (n - positive) * of_negative) / n
        fitted[0] = 0.0
        fitted[1] = np.log((1.0 - mean) / mean)
        fitted[2] = low
        return True
    weight = totals.astype(np.float64)
    target = np.empty(m)
    for i in range(m):
        target[i] = positives[i] * of_positive + (totals[i] - positives[i]) * of_negative
    done = False
    if np.isfinite(fitted[0]):
        slope, offset, at, done = newton(f, target, weight, low, high, fitted[0], fitted[1], fitted[2])
    if not done:
        centre = 0.0
        for i in range(m):
            centre += weight[i] * f[i]
        offset = np.log((n - positive + 1.0) / (positive + 1.0))
        slope, offset, at, done = newton(f, target, weight, low, high, 0.0, offset, centre / totals.sum())
    fitted[0] = slope
    fitted[1] = offset
    fitted[2] = at
    return done


@compiled
def fit_platt(scores, positives, totals, maps):  # type: ignore[no-untyped-def]
    """Fit all sigmoids, starting from `maps` (c, 3) of slope, offset, centre where these are finite.

    Return the new maps (c, 3) and the number of the first machine without convergence, or -1.
    """
    fitted = maps.copy()
    for k in range(scores.shape[0]):
        if not fit_sigmoid(scores[k], positives[k], totals, 1.0, fitted[k]):
            return fitted, k
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
    """Return the (c, bins) rates of positives between the `cuts` (c, bins - 1), and whether these are finite in order.

    A bin without examples takes the rate of the nearest bin with some, of the lower one in a tie.
    """
    c, m = scores.shape
    bins = cuts.shape[1] + 1
    extra = 1 if laplace else 0
    rates = np.empty((c, bins))
    where = np.empty(m, np.int64)
    of_class = np.empty(bins, positives.dtype)
    of_all = np.empty(bins, positives.dtype)
    for k in range(c):
        for b in range(bins - 1):
            if not (np.isfinite(cuts[k, b]) and cuts[k, max(b - 1, 0)] <= cuts[k, b]):
                return rates, False
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
    return rates, True


@compiled
def apply_bins(cuts, rates, test_scores):  # type: ignore[no-untyped-def]
    """Return the (c,) rates of the bins of the test scores."""
    out = np.empty(test_scores.shape[0])
    for k in range(out.shape[0]):
        out[k] = rates[k, bin_of(cuts[k], test_scores[k])]
    return out


@compiled
def sort_again(keys, items, spare_keys, spare_items):  # type: ignore[no-untyped-def]
    """Sort keys in place, and items with them; stable, and fast if they are nearly sorted.

    Insertion sort within short runs, then merges only of the overlap of neighbouring runs: O(m) if little moved,
    at most O(m log m).
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
            # The left run up to the first key above the right run's smallest key does not move.
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
def sort_row(row, items, known, keys, spare_keys, spare_items):  # type: ignore[no-untyped-def]
    """Sort the items by their scores in `row`, where the first `known` of them may already be sorted; set the keys."""
    m = row.shape[0]
    for i in range(m):
        keys[i] = row[items[i]]
    unsorted = 0
    for i in range(1, known):
        unsorted += 1 if keys[i - 1] > keys[i] else 0
    if unsorted > 0 or m - known > FEW_NEW:
        sort_again(keys, items, spare_keys, spare_items)
        return
    # The scores of most machines do not change when an object joins: only the new object must find its place.
    for i in range(known, m):
        key = keys[i]
        item = items[i]
        place = bin_of(keys[:i], key)
        for j in range(i, place, -1):
            keys[j] = keys[j - 1]
            items[j] = items[j - 1]
        keys[place] = key
        items[place] = item


@compiled
def pool(keys, items, positives, totals, starts, stops, rates):  # type: ignore[no-untyped-def]
    """Weighted pool-adjacent-violators of one machine, tied scores pooled first; return the number of blocks.

    Parameters
    ----------
    keys : (m,) float64
        The scores, sorted.
    items : (m,) int64
        The objects of these scores: positions in `positives` and `totals`.
    starts, stops, rates : (>= m,) float64
        Set to the smallest and the largest score of each block, and its rate of positives, increasing.
    """
    m = keys.shape[0]
    of_class = np.empty(m, positives.dtype)
    of_all = np.empty(m, positives.dtype)
    # The last block is not yet among the others: most scores only join it.
    b = 0
    start = keys[0]
    stop = start
    positive = 0
    total = 0
    rate = np.nan
    i = 0
    while i < m:
        key = keys[i]
        p = positives[items[i]]
        t = totals[items[i]]
        i += 1
        while i < m and keys[i] == key:
            p += positives[items[i]]
            t += totals[items[i]]
            i += 1
        # Rates are compared, not products: products of small weights underflow. Different rates of fewer than 2**26
        # examples are different numbers: blocks are then exact, in any order of the examples.
        own = p / t
        if rate < own:
            starts[b] = start
            stops[b] = stop
            of_class[b] = positive
            of_all[b] = total
            rates[b] = rate
            b += 1
            start = key
            positive = p
            total = t
            rate = own
        else:
            positive += p
            total += t
            rate = positive / total
            while b > 0 and rates[b - 1] >= rate:
                b -= 1
                positive += of_class[b]
                total += of_all[b]
                rate = positive / total
                start = starts[b]
        stop = key
    starts[b] = start
    stops[b] = stop
    rates[b] = rate
    return b + 1


@compiled
def fit_isotonic(scores, positives, totals, order):  # type: ignore[no-untyped-def]
    """Pool the scores of all machines.

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
    # The blocks of all machines one after another; those of machine k end before ends[k].
    blocks = np.empty((3, c * m))
    ends = np.empty(c, np.int64)
    b = 0
    widest = 0
    for k in range(c):
        items = sorted_order[k]
        for i in range(m):
            items[i] = order[k, i] if i < known else i
        sort_row(scores[k], items, known, keys, spare_keys, spare_items)
        found = pool(keys, items, positives[k], totals, blocks[0, b:], blocks[1, b:], blocks[2, b:])
        widest = max(widest, found)
        b += found
        ends[k] = b
    first = np.full((c, widest), np.inf)
    last = np.full((c, widest), np.inf)
    value = np.ones((c, widest))
    b = 0
    for k in range(c):
        for a in range(ends[k] - b):
            first[k, a] = blocks[0, b + a]
            last[k, a] = blocks[1, b + a]
            value[k, a] = blocks[2, b + a]
        b = ends[k]
    return sorted_order, first, last, value


@compiled
def apply_isotonic(first, last, value, linear, scores):  # type: ignore[no-untyped-def]
    """Return the (c, n) values at (c, n) scores, each row by the fit of its machine; constant beyond the ends."""
    out = np.empty(scores.shape)
    for k in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            score = scores[k, i]
            b = bin_of(first[k], score) - 1
            if b < 0:
                out[k, i] = value[k, 0]
            elif not linear or score <= last[k, b] or b + 1 == first.shape[1] or first[k, b + 1] == np.inf:
                out[k, i] = value[k, b]
            else:
                # Halves only if the difference overflows: otherwise halves might be equal.
                unit = 1.0 if first[k, b + 1] - last[k, b] < np.inf else 0.5
                share = (unit * score - unit * last[k, b]) / (unit * first[k, b + 1] - unit * last[k, b])
                out[k, i] = min(value[k, b] + share * (value[k, b + 1] - value[k, b]), value[k, b + 1])
    return out
