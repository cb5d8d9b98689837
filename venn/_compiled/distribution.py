"""Predictive distributions of numbers: of ridge regression and processes, their critical points, scores and mixture."""

import numpy as np

from venn._compiled.jit import compiled, in_lanes


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
def explained(factor, k, row):  # type: ignore[no-untyped-def]
    """Return the product of a row of a lower triangular matrix with `k`."""
    total = 0.0
    for j in range(row + 1):
        total += factor[row, j] * k[j]
    return total


@compiled
def process_at(rows, objects, factor, solution, height, noise, found):  # type: ignore[no-untyped-def]
    """Set `found` (n, 2) to mean and standard deviation of a Gaussian process at n objects.

    Parameters
    ----------
    rows : (m, d) float64
        Objects that it was fitted to, divided by the widths, as `objects` (n, d) are.
    factor : (m, m) float64
        The inverse of the lower Cholesky factor of their covariance.
    solution : (m,) float64
        The covariance's inverse times the targets.
    """
    m, d = rows.shape
    k = np.empty(m)
    for one in range(objects.shape[0]):
        mean, known = 0.0, 0.0
        for i in range(m):
            square = 0.0
            for j in range(d):
                apart = rows[i, j] - objects[one, j]
                square += apart * apart
            k[i] = height * height * np.exp(-0.5 * square)
            mean += k[i] * solution[i]
        for i in range(m):
            part = explained(factor, k, i)
            known += part * part
        found[one, 0] = mean
        found[one, 1] = np.sqrt(max(height * height + noise * noise - known, noise * noise))


@compiled
def mixed_ranks(order, shares, quantiles, most, ranks):  # type: ignore[no-untyped-def]
    """Set `ranks` (n,) to those, of `most`, that a mixture gives each of its experts' quantiles in ascending order.

    The mixture of distribution functions F_i with these shares is 1/2 + (1/4) ln(sum share_i exp(-2 (1 - F_i)^2) /
    sum share_i exp(-2 F_i^2)). `order` (n,) sorts the quantiles, so many of each expert in turn.
    """
    experts, n = shares.shape[0], order.shape[0]
    passed = np.zeros(experts, np.int64)
    above, below = np.empty(quantiles + 1), np.empty(quantiles + 1)
    for i in range(quantiles + 1):
        upto = i / quantiles
        above[i], below[i] = np.exp(-2.0 * (1.0 - upto) ** 2), np.exp(-2.0 * upto**2)
    last = 0
    for place in range(n):
        passed[order[place] // quantiles] += 1
        one, other = 0.0, 0.0
        for i in range(experts):
            one += shares[i] * above[passed[i]]
            other += shares[i] * below[passed[i]]
        share = min(max(0.5 + 0.25 * (np.log(one) - np.log(other)), 0.0), 1.0)
        last = max(last, int(np.rint(most * share)))
        ranks[place] = last
    ranks[n - 1] = most


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
def add_number(crps, row, truth, predicted, levels, sums, ring):  # type: ignore[no-untyped-def]
    """Write what a monitor averages of a prediction of a number into `ring` (2 + 4 * levels,) and add it to `sums`.

    `row` (2 * levels,) holds the ends of its intervals. Infinite intervals count in no width and no score.
    """
    m = levels.shape[0]
    ring[0] = abs(truth - predicted)
    ring[1] = crps
    for place in range(m):
        lower, upper = row[2 * place], row[2 * place + 1]
        width, away = upper - lower, max(lower - truth, truth - upper, 0.0)
        finite = width < np.inf
        ring[2 + place] = away > 0.0
        ring[2 + m + place] = finite
        ring[2 + 2 * m + place] = width if finite else 0.0
        ring[2 + 3 * m + place] = width + 2.0 / levels[place] * away if finite else 0.0
    for column in range(sums.shape[0]):
        sums[column] += ring[column]


@compiled
def add_each_number(crps, rows, truths, predicted, levels, sums, table):  # type: ignore[no-untyped-def]
    """Do what `add_number` does for n predictions, in the rows of `table` (n, 2 + 4 * levels)."""
    for i in range(truths.shape[0]):
        add_number(crps[i], rows[i], truths[i], predicted[i], levels, sums, table[i])
