"""Distributions of the experts of a series, and their mixture.

An expert's distribution is its point and past scaled residuals: m + s z, z among the last ones at that horizon.

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
LIGHTEST = 1e-5  # weight in a mixture
NOTHING = 11.6  # exp(-NOTHING) is less than that


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
