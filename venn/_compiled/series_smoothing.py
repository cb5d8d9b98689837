"""Exponential smoothings of a series: levels, trends and seasons, of values and of their logarithms.

A value at time t is answered by forecasts of t - h for horizons h = 1 .. H; what was said at a time lies in slot t % H
until its last answer. NaN stands for what is not known: an expert that says nothing yet, a value that is missing.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled

LARGE = 700.0  # exp of more is infinite


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
