"""Series many steps ahead: smoothing, ridges on lags, distributions of experts and their mixture, moving levels.

A value at time t is answered by forecasts of t - h for horizons h = 1 .. H; what was said at a time lies in slot t % H
until its last answer. NaN stands for what is not known: an expert that says nothing yet, a value that is missing.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled

FAR = 50.0  # scaled residuals are cut there
FORMS = 6  # of the residuals of one expert: as they are, relative, by the last of horizon 1, by phase; a few of two
FEW = 100  # residuals of those
SOON, LATER = 40, 4  # quantiles are read anew at each answer, and after so many at each fourth
PARTS = 3  # of a distribution, which are weighed by themselves: its lower tail, its middle, its upper tail
SEEN = 5.0  # answers by which the scale of all phases counts beside that of one
NOW = 0.06  # share of the latest residual in a scale that follows
LARGE = 700.0  # exp of more is infinite
LIGHTEST = 1e-5  # weight in a mixture
NOTHING = 11.6  # exp(-NOTHING) is less than that


# ------------------------------------------------------------------------------------------------------------ smoothing


@compiled
def smooth(y, logged, seen, t, grid, phis, seasons, level, trend, season, knots, pending, errors, rate, unit):  # type: ignore[no-untyped-def]
    """Let all smoothings learn the value of time t, and compare their forecasts for it, in place.

    Parameters
    ----------
    y, logged : float
        The value and its logarithm, NaN where there is none; of a missing value what fills the gap.
    seen : bool
        Whether the value came.
    grid : (k, 5) float64
        Shares of an error in level, trend and season, damping of the trend, and 1 for those of logarithms.
    phis : (k, H) float64
        By how much a trend counts in each horizon.
    seasons : (s,) int64
    level, trend : (k,) float64; season : (k, sum of seasons) float64
    knots : (q,) int64
        Horizons at which they are compared.
    pending : (H, k, q) float64
        What they said.
    errors : (k, q) float64
        Discounted mean absolute errors.
    rate : (q,) float64
        Share of the latest.
    unit : float
        Of errors.
    """
    h_max = pending.shape[0]
    for i in range(grid.shape[0]):
        in_logs = grid[i, 4] > 0.5
        z = logged if in_logs else y
        if seen:
            for q in range(knots.shape[0]):
                said = pending[(t - knots[q]) % h_max, i, q]
                if said == said:
                    away = abs(y - said) / unit
                    errors[i, q] = (
                        away if errors[i, q] != errors[i, q] else errors[i, q] + rate[q] * (away - errors[i, q])
                    )
        mean = level[i] + grid[i, 3] * trend[i]
        said = mean
        base = 0
        for s in range(seasons.shape[0]):
            if seasons[s] > 1:
                said += season[i, base + t % seasons[s]]
            base += seasons[s]
        e = z - said if seen else 0.0
        trend[i] = grid[i, 3] * trend[i] + grid[i, 0] * grid[i, 1] * e
        level[i] = mean + grid[i, 0] * e
        base = 0
        for s in range(seasons.shape[0]):
            if seasons[s] > 1:
                season[i, base + t % seasons[s]] += grid[i, 2] * (1.0 - grid[i, 0]) * e / seasons.shape[0]
            base += seasons[s]
        for q in range(knots.shape[0]):
            h = knots[q]
            said = level[i] + phis[i, h - 1] * trend[i]
            base = 0
            for s in range(seasons.shape[0]):
                if seasons[s] > 1:
                    said += season[i, base + (t + h) % seasons[s]]
                base += seasons[s]
            pending[t % h_max, i, q] = np.exp(min(said, LARGE)) if in_logs else said


@compiled
def smoothed(t, grid, phis, seasons, level, trend, season, nearest, errors, power, out):  # type: ignore[no-untyped-def]
    """Set out (2, H) to what the smoothings say together after time t: additive ones, and those of logarithms.

    Their weights are powers of their errors at the nearest knot.
    """
    k = grid.shape[0]
    weights = np.empty((k, errors.shape[1]))
    for mode in range(2):
        for q in range(errors.shape[1]):
            least = np.inf
            for i in range(k):
                if (grid[i, 4] > 0.5) == (mode == 1) and errors[i, q] < least:
                    least = errors[i, q]
            for i in range(k):
                weights[i, q] = 0.0
                if (grid[i, 4] > 0.5) == (mode == 1) and level[i] == level[i]:
                    if least == np.inf or errors[i, q] <= least:
                        weights[i, q] = 1.0
                    elif errors[i, q] < np.inf:
                        weights[i, q] = np.exp(power * np.log(least / errors[i, q])) if least > 0.0 else 0.0
        for h in range(out.shape[1]):
            q = nearest[h]
            total, mass = 0.0, 0.0
            for i in range(k):
                if weights[i, q] > 1e-4:
                    said = level[i] + phis[i, h] * trend[i]
                    base = 0
                    for s in range(seasons.shape[0]):
                        if seasons[s] > 1:
                            said += season[i, base + (t + h + 1) % seasons[s]]
                        base += seasons[s]
                    total += weights[i, q] * said
                    mass += weights[i, q]
            if mass > 0.0:
                said = total / mass
                out[mode, h] = np.exp(min(said, LARGE)) if mode == 1 else said
            else:
                out[mode, h] = np.nan


# ----------------------------------------------------------------------------------------------------------------- lags

LAGS = 6


@compiled
def lag_row(y, sums, x, t, h, shift, seasons, unit, out):  # type: ignore[no-untyped-def]
    """Set out (d,) to what is known at t of the value at t + h; return the anchor, from which differences count.

    Parameters
    ----------
    y, sums : (n,) float64
        Values without gaps, and their sums up to each.
    x : (n + H, k) float64
        Covariates, of the future as well.
    t, h : int
        Places in `y`, of which the first is of time `shift`.
    seasons : (s,) int64
        The first one is that of the anchor.
    unit : float
        Of differences.
    """
    m = seasons[0]
    there = t + h - m * ((h + m - 1) // m)
    known = there >= 0
    anchor = y[there] if known else y[t]
    out[0] = 1.0
    for j in range(LAGS):
        out[1 + j] = (y[t - j] - anchor) / unit if t >= j else 0.0
    place = 1 + LAGS
    out[place] = (y[there - m] - anchor) / unit if there >= m else 0.0
    out[place + 1] = (y[there - 1] - anchor) / unit if there >= 1 else 0.0
    out[place + 2] = ((y[there + 1] if there + 1 <= t else y[t]) - anchor) / unit if known else 0.0
    out[place + 3] = (y[t] - y[t - m]) / unit if t >= m else 0.0
    latest = sums[t] - sums[t - m] if t >= m else 0.0
    out[place + 4] = (latest - (sums[t - m] - sums[t - 2 * m])) / (m * unit) if t >= 2 * m else 0.0
    out[place + 5] = (latest / m - anchor) / unit if t >= m else 0.0
    place += 6
    for s in range(1, seasons.shape[0]):
        other = t + h - seasons[s] * ((h + seasons[s] - 1) // seasons[s])
        out[place] = (y[other] - anchor) / unit if other >= 0 else 0.0
        out[place + 1] = (y[t] - y[t - seasons[s]]) / unit if t >= seasons[s] else 0.0
        place += 2
    angle = 2.0 * np.pi * ((t + h + shift) % m) / m
    for k in range(1, 3):
        out[place] = np.sin(k * angle)
        out[place + 1] = np.cos(k * angle)
        place += 2
    for k in range(x.shape[1]):
        now, then = x[t + h, k], x[there if known else t, k]
        out[place] = now - then
        out[place + 1] = now
        out[place + 2] = now * now - then * then
        place += 3
    return anchor


@compiled
def lag_rows(y, sums, x, t, shift, seasons, unit, rows, anchors):  # type: ignore[no-untyped-def]
    """Set rows (H, d + 1 + s) to what is known after t of each horizon: lags, the horizon, the phases."""
    d = rows.shape[1] - 1 - seasons.shape[0]
    for h in range(1, rows.shape[0] + 1):
        anchors[h - 1] = lag_row(y, sums, x, t, h, shift, seasons, unit, rows[h - 1])
        rows[h - 1, d] = h
        for s in range(seasons.shape[0]):
            rows[h - 1, d + 1 + s] = (t + h + shift) % seasons[s]


@compiled
def pooled_rows(y, sums, x, missing, ts, hs, shift, seasons, unit, rows, targets):  # type: ignore[no-untyped-def]
    """Set rows and targets to those of pairs of a time and a horizon; return how many have a value."""
    d = rows.shape[1] - 1 - seasons.shape[0]
    count = 0
    for i in range(ts.shape[0]):
        t, h = ts[i], hs[i]
        if missing[t + h]:
            continue
        targets[count] = (y[t + h] - lag_row(y, sums, x, t, h, shift, seasons, unit, rows[count])) / unit
        rows[count, d] = h
        for s in range(seasons.shape[0]):
            rows[count, d + 1 + s] = (t + h + shift) % seasons[s]
        count += 1
    return count


@compiled
def learn_lags(y, sums, x, t, first, shift, seasons, unit, forget, factors, weights):  # type: ignore[no-untyped-def]
    """Let the ridges of each horizon learn the value at t by recursive least squares.

    Parameters
    ----------
    first : int
        Earliest place from which there was a forecast.
    forget : (r,) float64
        By what the past counts less at each step.
    factors : (r, H, d, d), from identities on, beyond whose trace none grows; weights : (r, H, d)
    """
    d = weights.shape[2]
    row, gain = np.empty(d), np.empty(d)
    for h in range(1, weights.shape[1] + 1):
        if t - h < first:
            break
        target = (y[t] - lag_row(y, sums, x, t - h, h, shift, seasons, unit, row)) / unit
        for r in range(forget.shape[0]):
            P, w = factors[r, h - 1], weights[r, h - 1]
            spread, said, trace = 0.0, 0.0, 0.0
            for i in range(d):
                gain[i] = 0.0
                for j in range(d):
                    gain[i] += P[i, j] * row[j]
                spread += gain[i] * row[i]
                said += w[i] * row[i]
                trace += P[i, i]
            keep = forget[r] if trace < d else 1.0
            scale = 1.0 / (keep + spread)
            e = (target - said) * scale
            for i in range(d):
                w[i] += gain[i] * e
                for j in range(i + 1):
                    P[i, j] = (P[i, j] - gain[i] * gain[j] * scale) / keep
                    P[j, i] = P[i, j]


@compiled
def by_lags(rows, anchors, unit, weights, out):  # type: ignore[no-untyped-def]
    """Set out (r, H) to what the ridges say of rows (H, >= d)."""
    for r in range(weights.shape[0]):
        for h in range(weights.shape[1]):
            said = 0.0
            for i in range(weights.shape[2]):
                said += weights[r, h, i] * rows[h, i]
            out[r, h] = anchors[h] + unit * said


# -------------------------------------------------------------------------------------------------------- distributions
# An expert's distribution is its point and past scaled residuals: m + s z, z among the last ones at that horizon.


@compiled
def insert(window, order, n, z):  # type: ignore[no-untyped-def]
    """Put z, the n-th number from 0 on, into a sorted window of the last ones; `order` has them as they came."""
    size = window.shape[0]
    i = min(n, size)
    if n >= size:
        old = order[n % size]
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if window[middle] < old:
                low = middle + 1
            else:
                high = middle
        i = low
        while i + 1 < size and window[i + 1] < z:
            window[i] = window[i + 1]
            i += 1
    order[n % size] = z
    while i > 0 and window[i - 1] > z:
        window[i] = window[i - 1]
        i -= 1
    window[i] = z


@compiled
def read_quantiles(window, n, levels, out):  # type: ignore[no-untyped-def]
    """Set out to quantiles of n sorted numbers at rising levels; beyond the outermost ones tails are exponential."""
    middle = window[n // 2]
    low = (middle - window[0]) / np.log(n + 1.0)
    high = (window[n - 1] - middle) / np.log(n + 1.0)
    for q in range(levels.shape[0]):
        at = levels[q] * (n + 1) - 1.0
        if at < 0.0:
            out[q] = window[0] - low * np.log(1.0 / (at + 1.0))
        elif at > n - 1:
            out[q] = window[n - 1] + high * np.log(1.0 / (n - at))
        else:
            i = min(int(at), n - 2) if n > 1 else 0
            out[q] = window[i] + (at - i) * (window[i + 1] - window[i]) if n > 1 else window[0]


@compiled
def pinball(quantiles, levels, shares, z):  # type: ignore[no-untyped-def]
    """Return the CRPS of quantiles at these levels, each of which stands for a share of all."""
    total = 0.0
    for q in range(levels.shape[0]):
        away = z - quantiles[q]
        total += shares[q] * (levels[q] * away if away > 0.0 else (levels[q] - 1.0) * away)
    return 2.0 * total


@compiled
def part_of(u):  # type: ignore[no-untyped-def]
    """Return which part of a distribution a level is in."""
    return 0 if u < 0.11 else (2 if u > 0.89 else 1)


@compiled
def few(f, window):  # type: ignore[no-untyped-def]
    """Return the part of a window that a form uses."""
    return window[: min(FEW, window.shape[0])] if f >= 4 else window


@compiled
def ends_of_parts(levels):  # type: ignore[no-untyped-def]
    """Return the places in levels at which each part begins, and the end of the last one."""
    ends = np.zeros(PARTS + 1, np.int64)
    for q in range(levels.shape[0]):
        ends[part_of(levels[q]) + 1] = q + 1
    return ends


@compiled
def score_parts(quantiles, levels, shares, ends, z, s, known, share):  # type: ignore[no-untyped-def]
    """Bring the discounted losses of the parts up to date with z, whose unit is s: known (3,)."""
    for k in range(PARTS):
        found = 0.0
        for q in range(ends[k], ends[k + 1]):
            away = z - quantiles[q]
            found += shares[q] * max(levels[q] * away, (levels[q] - 1.0) * away)
        loss = 2.0 * s * found
        known[k] = loss if known[k] != known[k] else known[k] + share * (loss - known[k])


@compiled
def answer(  # type: ignore[no-untyped-def]
    y,
    t,
    phase,
    levels,
    shares,
    discount,
    points,
    scales,
    windows,
    orders,
    counts,
    spread,
    latest,
    phases,
    quantiles,
    losses,
):
    """Let the residuals of all experts learn the value of time t, and score what was said of it.

    Parameters
    ----------
    phase : int
        Of the value.
    points : (H, p, H) float64
        By slot, expert and horizon.
    scales : (H, p, f, H) float64
    windows, orders : (p, f, H, w) float64
        Scaled residuals, sorted and as they came.
    counts : (p, H) int64
        How many there were.
    spread, latest : (p, H) float64
        Mean absolute residual, discounted, and of the latest ones.
    phases : (p, H, m) float64
        By phase.
    quantiles : (p, f, H, q) float64
        Of the windows.
    losses : (p, f, H, 3) float64
        Discounted CRPS, by part.
    """
    h_max, ends = points.shape[0], ends_of_parts(levels)
    for h in range(1, h_max + 1):
        slot = (t - h) % h_max
        for p in range(points.shape[1]):
            m = points[slot, p, h - 1]
            if m != m:
                continue
            r = y - m
            n = counts[p, h - 1]
            for f in range(FORMS):
                s = scales[slot, p, f, h - 1]
                if s != s:
                    continue
                z = min(max(r / s, -FAR), FAR)
                window = few(f, windows[p, f, h - 1])
                if n > 0:
                    share = max(1.0 / n, 1.0 - discount)
                    score_parts(quantiles[p, f, h - 1], levels, shares, ends, r / s, s, losses[p, f, h - 1], share)
                insert(window, few(f, orders[p, f, h - 1]), n, z)
                if n < SOON or (n + h) % LATER == 0:
                    read_quantiles(window, min(n + 1, window.shape[0]), levels, quantiles[p, f, h - 1])
            size = abs(r)
            spread[p, h - 1] += max(1.0 / (n + 1), 1.0 - discount) * (size - spread[p, h - 1])
            latest[p, h - 1] += max(1.0 / (n + 1), NOW) * (size - latest[p, h - 1])
            times = n // phases.shape[2] + 1
            phases[p, h - 1, phase] += max(1.0 / times, NOW) * (size - phases[p, h - 1, phase])
            counts[p, h - 1] = n + 1


@compiled
def combine(points, spread, counts, powers):  # type: ignore[no-untyped-def]
    """Set the last experts to weighted means of those before, by powers of their absolute errors: (p, H) points."""
    own = points.shape[0] - powers.shape[0]
    for h in range(points.shape[1]):
        least = np.inf
        for p in range(own):
            if points[p, h] == points[p, h] and counts[p, h] > 0 and spread[p, h] < least:
                least = spread[p, h]
        for k in range(powers.shape[0]):
            total, mass = 0.0, 0.0
            for p in range(own):
                if points[p, h] == points[p, h] and (counts[p, h] > 0 or least == np.inf):
                    weight = 1.0
                    if least < np.inf and spread[p, h] > least:
                        weight = (least / spread[p, h]) ** powers[k]
                    total += weight * points[p, h]
                    mass += weight
            points[own + k, h] = total / mass if mass > 0.0 else np.nan


@compiled
def scale(points, t, season, relative, least, counts, spread, latest, phases, scales):  # type: ignore[no-untyped-def]
    """Set scales (p, f, H) by which residuals of points (p, H) said after t are divided."""
    for p in range(points.shape[0]):
        for h in range(points.shape[1]):
            m = points[p, h]
            for f in range(FORMS):
                scales[p, f, h] = np.nan
            if m != m:
                continue
            floor = 1e-9 * abs(m) + least
            n = counts[p, h]
            scales[p, 0, h] = 1.0
            if relative:
                scales[p, 1, h] = scales[p, 4, h] = max(abs(m), floor)
            if n > 0:
                # Errors of the next value are known at once, those of h steps only after h.
                scales[p, 2, h] = max(latest[p, 0 if counts[p, 0] > 0 else h], floor)
                times = n / season
                of_phase = phases[p, h, (t + h + 1) % season]
                mean = (SEEN * spread[p, h] + times * of_phase) / (SEEN + times)
                moved = (latest[p, h] + floor) / (spread[p, h] + floor)
                scales[p, 3, h] = scales[p, 5, h] = max(mean * np.sqrt(moved), floor)


@compiled
def mix(points, scales, quantiles, losses, counts, levels, powers, floor, out, weights):  # type: ignore[no-untyped-def]
    """Set out (H, q) to the weighted means of the experts' quantiles, and weights (p, f, H) to those of the middle.

    The weights of each part are powers of its losses, which grow with the answers up to `powers` (3,). No quantile is
    below `floor`, and they rise.
    """
    shares = np.empty((PARTS, points.shape[0], FORMS))
    parts = np.empty(levels.shape[0], np.int64)
    for q in range(levels.shape[0]):
        parts[q] = part_of(levels[q])
    for h in range(out.shape[0]):
        for k in range(PARTS):
            least, mass = np.inf, 0.0
            for p in range(points.shape[0]):
                for f in range(FORMS):
                    if scales[p, f, h] == scales[p, f, h] and losses[p, f, h, k] < least:
                        least = losses[p, f, h, k]
            beyond = least * np.exp(NOTHING / powers[k])
            for p in range(points.shape[0]):
                for f in range(FORMS):
                    weight = 0.0
                    if scales[p, f, h] == scales[p, f, h] and counts[p, h] > 0:
                        weight = 1.0
                        if least < np.inf:
                            loss = losses[p, f, h, k]
                            if loss > beyond and counts[p, h] >= 40:
                                weight = 0.0
                            elif loss > least:
                                weight = (least / loss) ** (powers[k] * min(1.0, counts[p, h] / 40.0))
                            elif loss != loss:
                                weight = 0.0
                    shares[k, p, f] = weight if weight >= LIGHTEST else 0.0
                    mass += shares[k, p, f]
            for p in range(points.shape[0]):
                for f in range(FORMS):
                    shares[k, p, f] = shares[k, p, f] / mass if mass > 0.0 else np.nan
        for q in range(out.shape[1]):
            out[h, q] = 0.0
        for p in range(points.shape[0]):
            for f in range(FORMS):
                weights[p, f, h] = shares[1, p, f] if shares[1, p, f] == shares[1, p, f] else 0.0
                for q in range(out.shape[1]):
                    share = shares[parts[q], p, f]
                    if share != 0.0:  # or nothing is known: NaN
                        out[h, q] += share * (points[p, h] + scales[p, f, h] * quantiles[p, f, h, q])
        for q in range(out.shape[1]):
            least = floor if q == 0 else out[h, q - 1]
            if out[h, q] < least:
                out[h, q] = least


# --------------------------------------------------------------------------------------------------------------- levels
# Thresholds, one for each horizon and level and for bands, that move with the errors and are never clipped.

HAIR = 1e-12  # of a number: means of equal numbers differ from them by rounding
TRUST = 10.0  # answers by which p-values count as uniform before there are any
KNEE = 0.1  # thresholds are chances down to here; below, each step down divides the chance
YOUNG = 30.0  # answers by which chances are smaller, so intervals wider, while there are few


@compiled
def tail(quantiles, levels, from_above):  # type: ignore[no-untyped-def]
    """Return the scale of the exponential tail beyond the outermost quantile."""
    n = levels.shape[0]
    if from_above:
        return (quantiles[n - 1] - quantiles[n - 3]) / np.log((1.0 - levels[n - 3]) / (1.0 - levels[n - 1]))
    return (quantiles[2] - quantiles[0]) / np.log(levels[2] / levels[0])


@compiled
def quantile_at(quantiles, levels, u):  # type: ignore[no-untyped-def]
    """Return the quantile at u in [0, 1] of a distribution with these quantiles and exponential tails."""
    n = levels.shape[0]
    if u <= levels[0]:
        b = tail(quantiles, levels, False)
        return quantiles[0] if b == 0.0 else (quantiles[0] - b * np.log(levels[0] / u) if u > 0.0 else -np.inf)
    if u >= levels[n - 1]:
        b = tail(quantiles, levels, True)
        if b == 0.0:
            return quantiles[n - 1]
        return quantiles[n - 1] + b * np.log((1.0 - levels[n - 1]) / (1.0 - u)) if u < 1.0 else np.inf
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if levels[middle] <= u:
            low = middle
        else:
            high = middle
    share = (u - levels[low]) / (levels[high] - levels[low])
    return quantiles[low] + share * (quantiles[high] - quantiles[low])


@compiled
def probability_at(quantiles, levels, y, upto):  # type: ignore[no-untyped-def]
    """Return the probability of numbers below y, or up to y."""
    n = levels.shape[0]
    if y < quantiles[0]:
        b = tail(quantiles, levels, False)
        return levels[0] * np.exp((y - quantiles[0]) / b) if b > 0.0 else 0.0
    if y > quantiles[n - 1]:
        b = tail(quantiles, levels, True)
        return 1.0 - (1.0 - levels[n - 1]) * np.exp((quantiles[n - 1] - y) / b) if b > 0.0 else 1.0
    if upto:
        if y == quantiles[n - 1]:
            return levels[n - 1] if tail(quantiles, levels, True) > 0.0 else 1.0
        i = n - 2
        while quantiles[i] > y:
            i -= 1
        return levels[i] + (levels[i + 1] - levels[i]) * (y - quantiles[i]) / (quantiles[i + 1] - quantiles[i])
    if y == quantiles[0]:
        return levels[0] if tail(quantiles, levels, False) > 0.0 else 0.0
    i = 1
    while quantiles[i] < y:
        i += 1
    return levels[i - 1] + (levels[i] - levels[i - 1]) * (y - quantiles[i - 1]) / (quantiles[i] - quantiles[i - 1])


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
