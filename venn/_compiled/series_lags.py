"""Ridges on lags of a series: what is known of a value h steps ahead, and what they say of it."""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled

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
