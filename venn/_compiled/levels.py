"""Thresholds that move with the errors: p-values put on the scale of the levels, and one step of the thresholds."""

import numpy as np

from venn._compiled.jit import compiled


@compiled
def on_levels(p_values, cuts, levels):  # type: ignore[no-untyped-def]
    """Return p-values (c,) such that for every level k: new <= levels[k] exactly if old <= the threshold of level k.

    Parameters
    ----------
    p_values : (c,) float64 in [0, 1]
    cuts : (l,) float64, not falling
        The thresholds, so that sets are nested.
    levels : (l,) float64 in (0, 1), rising
    """
    n = cuts.shape[0]
    c = p_values.shape[0]
    new = np.empty(c)
    for j in range(c):
        p = p_values[j]
        k = 0
        while k < n and cuts[k] < p:
            k += 1
        low, high = (0.0, 0.0) if k == 0 else (cuts[k - 1], levels[k - 1]), (1.0, 1.0)
        if k < n:
            high = (cuts[k], levels[k])
        share = (p - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 1.0
        value = min(low[1] + (high[1] - low[1]) * share, high[1])
        # Rounding must not put it on the level below: it would leave the set.
        new[j] = np.nextafter(low[1], 1.0) if k > 0 and value <= low[1] else value
    return new


@compiled
def move(theta, g, levels, size, p_values, truth, counts, errors, sizes, cuts):  # type: ignore[no-untyped-def]
    """Move the thresholds by one step, and add to counts (m,), errors (l, m) and sizes (l, m) of sets.

    Parameters
    ----------
    theta : (l, m) float64
        Changed: each level's threshold is theta @ g.
    g : (m,) float64
        1 for the groups of the object, everyone first, 0 for others.
    levels : (l,) float64
    size : float
        Of the step.
    p_values : (c,) float64
        On the scale of the levels, as they were told.
    truth : int
        Code of the true label.
    cuts : (l,) float64
        Set to the largest threshold up to each level, of objects in no group but everyone's.
    """
    n, m = theta.shape
    for i in range(m):
        counts[i] += g[i]
    for k in range(n):
        error = 1.0 if p_values[truth] <= levels[k] else 0.0
        inside = 0.0
        for j in range(p_values.shape[0]):
            if p_values[j] > levels[k]:
                inside += 1.0
        for i in range(m):
            theta[k, i] += size * g[i] * (levels[k] - error)
            errors[k, i] += g[i] * error
            sizes[k, i] += g[i] * inside
        cuts[k] = theta[k, 0] if k == 0 else max(cuts[k - 1], theta[k, 0])
