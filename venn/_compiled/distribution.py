"""Predictive distributions of numbers: of ridge regression and processes, their critical points, scores and mixture."""

import numpy as np

from venn._compiled.jit import compiled, in_lanes
from venn._compiled.mixture import log_sum

TILE = 16  # objects between which a row of a large matrix stays at hand


@compiled
def linear(n, u, sums, diagonal, solution, base, total, pivot, gain, shares, coefficients, q):  # type: ignore[no-untyped-def]
    """Set what is linear in a new target, for n >= 1 examples; return K(x, x) + ridge less what the others explain.

    u = M^-1 k, `sums` = M^-1 1, `total` their sum, `pivot` = K(x, x) + ridge - k.u, `gain` = (1 - 1'u) / pivot. With
    the bias, `shares` w = u + sums e / total, where e = 1 - 1'u, and D = pivot + e^2 / total.
    """
    e = gain * pivot
    bias = base / total
    ratio = e / total
    for i in range(n):
        shares[i] = u[i] + sums[i] * ratio
        coefficients[i] = solution[i] - bias * sums[i]
        q[i] = diagonal[i] - sums[i] * (sums[i] / total)
    return pivot + e * ratio


@compiled
def critical_points(n, forecast, D, w, a, q, step, points):  # type: ignore[no-untyped-def]
    """Set the label at which the new example is as strange as example i, by studentised residuals: n of them.

    C_i = f + D a_i / (w_i + sqrt(w_i^2 + D q_i)), computed without cancellation; rounded to multiples of `step`, so
    that labels that are equal but for rounding are equal.
    """
    if n == 1:  # it explains itself: q = 0
        points[0] = np.rint(forecast / step) * step
        return
    for i in range(n):
        root = np.sqrt(w[i] * w[i] + D * q[i])
        away = D * a[i] / (w[i] + root) if w[i] >= 0.0 else a[i] * (root - w[i]) / q[i]
        points[i] = np.rint((forecast + away) / step) * step


@compiled
def both_ends(n, forecast, D, w, a, q, step, lower, upper):  # type: ignore[no-untyped-def]
    """Set the interval of labels at which example i is at least as strange as the new one, by absolute residuals.

    Its ends are C_i of `critical_points` and C_i' = f - D a_i / (sqrt(w_i^2 + D q_i) - w_i); the forecast is inside.
    """
    if n == 1:
        lower[0] = upper[0] = np.rint(forecast / step) * step
        return
    for i in range(n):
        root = np.sqrt(w[i] * w[i] + D * q[i])
        if w[i] >= 0.0:
            one, other = D * a[i] / (w[i] + root), -a[i] * (root + w[i]) / q[i]
        else:
            one, other = a[i] * (root - w[i]) / q[i], -D * a[i] / (root - w[i])
        lower[i] = np.rint((forecast + min(one, other)) / step) * step
        upper[i] = np.rint((forecast + max(one, other)) / step) * step


@in_lanes
def explained(row, k):  # type: ignore[no-untyped-def]
    """Return the product of a row of a lower triangular matrix with `k`."""
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * k[j]
    return total


@compiled
def process_at(rows, objects, factor, solution, height, noise, found):  # type: ignore[no-untyped-def]
    """Set `found` (n, 2) to mean and standard deviation of a Gaussian process at n objects.

    Parameters
    ----------
    rows : (m, d) float64
        Objects that it was fitted to, divided by the widths, as `objects` (n, d) are.
    factor : (m (m + 1) / 2,) float64
        The inverse of the lower Cholesky factor of their covariance, packed by rows: it is read in one go.
    solution : (m,) float64
        The covariance's inverse times the targets.
    """
    (m, d), n = rows.shape, objects.shape[0]
    k, known = np.empty((min(n, TILE), m)), np.empty(TILE)
    for first in range(0, n, TILE):
        count = min(TILE, n - first)
        for one in range(count):
            mean = 0.0
            for i in range(m):
                square = 0.0
                for j in range(d):
                    apart = rows[i, j] - objects[first + one, j]
                    square += apart * apart
                k[one, i] = height * height * np.exp(-0.5 * square)
                mean += k[one, i] * solution[i]
            found[first + one, 0], known[one] = mean, 0.0
        start = 0
        for i in range(m):  # a row of the factor is read once for all of them
            row = factor[start : start + i + 1]
            start += i + 1
            for one in range(count):
                part = explained(row, k[one])
                known[one] += part * part
        for one in range(count):
            found[first + one, 1] = np.sqrt(max(height * height + noise * noise - known[one], noise * noise))


@compiled
def leaf_quantiles(leaves, begins, ends, members, labels, levels, without, found):  # type: ignore[no-untyped-def]
    """Set `found` (n, k) to quantiles of the labels in the leaves of n objects, each leaf of equal weight.

    Parameters
    ----------
    leaves : (n, t) int64
        The leaf of each object in each tree.
    begins, ends : (m,) int64
        Where the `members` of a leaf stand: places of labels.
    labels : (l,) float64
        In ascending order.
    levels : (k,) float64
        From 0 to 1.
    without : int
        Place of a label that does not count; -1: all do.
    """
    weights = np.empty(labels.shape[0])
    for one in range(leaves.shape[0]):
        weights[:] = 0.0
        for leaf in leaves[one]:
            share = 1.0 / (ends[leaf] - begins[leaf])
            for j in range(begins[leaf], ends[leaf]):
                weights[members[j]] += share
        if without >= 0:
            weights[without] = 0.0
        total = 0.0
        for i in range(labels.shape[0]):
            total += weights[i]
            weights[i] = total
        for q in range(levels.shape[0]):
            place = np.searchsorted(weights, levels[q] * total)
            found[one, q] = labels[min(place, labels.shape[0] - 1)]


@compiled
def crps(points, places, n, y):  # type: ignore[no-untyped-def]
    """Return the integral of (F(u) - 1{u >= y})^2, where F is the step function of n sorted points.

    `points` are some of them and `places` their places, from 1; what lies between two is divided between both.
    """
    m = points.shape[0]
    total = 0.0
    if y < points[0]:
        total += points[0] - y
    if y > points[m - 1]:
        total += y - points[m - 1]
    for j in range(m - 1):
        left, right = points[j], points[j + 1]
        if right > left:
            share = 0.5 * (places[j] + places[j + 1] - 1) / n
            below = min(max(y, left), right) - left
            total += share * share * below + (1.0 - share) * (1.0 - share) * (right - left - below)
    return total


@compiled
def mixed_points(said, order, weights, most, which, places):  # type: ignore[no-untyped-def]
    """Set the points of a mixture of experts' distributions: which quantiles, and their places; return how many.

    The mixture of distribution functions F_i with weights w_i is 1/2 + (1/4) ln(sum w_i exp(-2 (1 - F_i)^2) /
    sum w_i exp(-2 F_i^2)). A quantile has all ranks from that after the previous one's to its own: it stands at the
    first and at the last.

    Parameters
    ----------
    said : (m, q) float64
        Quantiles of each expert, NaN of one that says nothing.
    order : (m q,) int64
        Sorts them, all together; NaN come last.
    weights : (m,) float64
        Logarithms.
    most : int
        Number of all ranks.
    which, places : (2 m q,) int64
    """
    experts, quantiles = said.shape
    passed, shares = np.zeros(experts, np.int64), np.zeros(experts)
    above, below = np.empty(quantiles + 1), np.empty(quantiles + 1)
    for i in range(quantiles + 1):
        upto = i / quantiles
        above[i], below[i] = np.exp(-2.0 * (1.0 - upto) ** 2), np.exp(-2.0 * upto**2)
    total, n = 0.0, 0
    for i in range(experts):
        if not np.isnan(said[i, 0]):
            shares[i] = np.exp(weights[i])
            total += shares[i]
            n += quantiles
    for i in range(experts):
        shares[i] /= total if n else 1.0
    last, size = 0, 0
    for place in range(n):
        passed[order[place] // quantiles] += 1
        one, other = 0.0, 0.0
        for i in range(experts):
            one += shares[i] * above[passed[i]]
            other += shares[i] * below[passed[i]]
        share = min(max(0.5 + 0.25 * (np.log(one) - np.log(other)), 0.0), 1.0)
        rank = max(last, int(np.rint(most * share))) if place < n - 1 else most
        if rank > last:
            which[size], places[size] = order[place], last + 1
            size += 1
        if rank > last + 1:
            which[size], places[size] = order[place], rank
            size += 1
        last = rank
    return size


@compiled
def weigh_numbers(said, points, places, most, label, shares, dealt, sums):  # type: ignore[no-untyped-def]
    """Weigh experts by what they have said of an example with this label.

    Parameters
    ----------
    said : (m, q) float64
        Quantiles of each expert, NaN of one that says nothing; it counts as if it had said what the others say.
    points, places : (k,) float64, int64
        Of the forecast; none if nobody says anything.
    most : int
        Number of all ranks.
    label : float
    shares : float
        Logarithm of the share of a weight that is kept.
    dealt : (2, m) float64
        Logarithms of what is dealt out to each, and of what each keeps at least.
    sums : (4, m) float64, changed
        Logarithms of weights, losses and allowances; the last row begins with the loss of the mixture, and the span.
    """
    m, quantiles = said.shape
    weights, losses, allowance, _ = sums
    own = crps(points, places, most, label) if points.shape[0] else abs(label)
    lost, every = np.full(m, own), np.arange(1, quantiles + 1)
    lowest, highest, awake = label, label, False
    for i in range(m):
        if not np.isnan(said[i, 0]):
            awake = True
            lost[i] = crps(said[i], every, quantiles, label)
            for value in said[i]:
                lowest, highest = min(lowest, value), max(highest, value)
    if awake:
        grown = max(highest - lowest - sums[3, 1], 0.0)
        for i in range(m):
            allowance[i] -= 0.5 * grown * weights[i]
        sums[3, 1] += grown
    sums[3, 0] += own
    least, span, all_weights = lost.min(), sums[3, 1], -np.inf
    for i in range(m):
        losses[i] += lost[i]
        # 2 / span may be infinite, as of labels of 1e-312.
        weights[i] -= 2.0 * ((lost[i] - least) / span) if span > 0.0 else 0.0
        all_weights = log_sum(all_weights, weights[i]) if i else weights[i]
    for i in range(m):
        weights[i] = log_sum(weights[i] - all_weights + shares, dealt[0, i])
        allowance[i] -= 0.5 * span * dealt[1, i]


@compiled
def mix_numbers(said, order, near, labels, most, shares, dealt, sums, which, places, sizes):  # type: ignore[no-untyped-def]
    """Mix what experts say of n examples in turn, as `mixed_points` does; weigh them by each label before the next one.

    `near` (n, m, q) and the `labels` (n,) are what counts of quantiles and labels; the rest is as above, row by row.
    """
    points = np.empty(which.shape[1])
    for one in range(said.shape[0]):
        size = sizes[one] = mixed_points(said[one], order[one], sums[0], most, which[one], places[one])
        for i in range(size):
            points[i] = near[one, which[one, i] // said.shape[2], which[one, i] % said.shape[2]]
        weigh_numbers(near[one], points[:size], places[one, :size], most, labels[one], shares, dealt, sums)


@compiled
def add_numbers(crps, rows, truths, predicted, levels, sums, table):  # type: ignore[no-untyped-def]
    """Write what a monitor averages of n predictions of numbers into `table` (n, 2 + 4 * levels); add it to `sums`.

    `rows` (n, 2 * levels) hold the ends of their intervals. Infinite intervals count in no width and no score.
    """
    m = levels.shape[0]
    for i in range(truths.shape[0]):
        ring, truth = table[i], truths[i]
        ring[0] = abs(truth - predicted[i])
        ring[1] = crps[i]
        for place in range(m):
            lower, upper = rows[i, 2 * place], rows[i, 2 * place + 1]
            width, away = upper - lower, max(lower - truth, truth - upper, 0.0)
            finite = width < np.inf
            ring[2 + place] = away > 0.0
            ring[2 + m + place] = finite
            ring[2 + 2 * m + place] = width if finite else 0.0
            ring[2 + 3 * m + place] = width + 2.0 / levels[place] * away if finite else 0.0
        for column in range(sums.shape[0]):
            sums[column] += ring[column]
