"""Mixing recalibrated forecasts by weights that follow their losses; weights and probabilities are logarithms."""

import numpy as np

from venn._compiled.jit import compiled


@compiled
def log_sum(values):  # type: ignore[no-untyped-def]
    """Return ln sum exp of the values (m,), of which some may be -inf."""
    largest = values.max()
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return largest + np.log(total)


@compiled
def recalibrate(log_base, powers, shifts):  # type: ignore[no-untyped-def]
    """Return (s, c) log probabilities proportional to base^power * exp(shift), for powers (s,) and shifts (s, c).

    In logs nothing underflows, and a class of probability 0 keeps it.
    """
    rows = np.empty(shifts.shape)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            rows[i, k] = powers[i] * log_base[k] + shifts[i, k]
        rows[i] -= log_sum(rows[i])
    return rows


@compiled
def jump(log_weights, rates):  # type: ignore[no-untyped-def]
    """Spread the share rates[r] of the weight of row r evenly over the row, in place."""
    states = log_weights.shape[1]
    for r in range(log_weights.shape[0]):
        row = log_weights[r]
        spread = np.log(rates[r] / states) + log_sum(row)
        stay = np.log1p(-rates[r])
        for k in range(states):
            row[k] = np.logaddexp(stay + row[k], spread)


@compiled
def pool(log_passive, log_weights):  # type: ignore[no-untyped-def]
    """Return the (s,) log weights of the calibrators: sums over the rows, the passive weight added to the first."""
    total = np.empty(log_weights.shape[1])
    for k in range(len(total)):
        total[k] = log_sum(log_weights[:, k])
    total[0] = np.logaddexp(total[0], log_passive)
    return total


@compiled
def mixture(log_weights, log_rows):  # type: ignore[no-untyped-def]
    """Return the (c,) mean of the distributions (s, c) by the weights (s,), with sum 1."""
    mean = np.empty(log_rows.shape[1])
    for k in range(len(mean)):
        mean[k] = log_sum(log_weights + log_rows[:, k])
    return np.exp(mean - log_sum(mean))


@compiled
def brier_losses(rows):  # type: ignore[no-untyped-def]
    """Return (s, c) losses sum_k (1{y = k} - p_k)^2 of distributions (s, c), for every label y."""
    losses = np.empty(rows.shape)
    for i in range(rows.shape[0]):
        squares = (rows[i] * rows[i]).sum()
        for k in range(rows.shape[1]):
            losses[i, k] = 1.0 - 2.0 * rows[i, k] + squares
    return losses


@compiled
def nearest_distribution(point):  # type: ignore[no-untyped-def]
    """Return the distribution (c,) nearest to a point in squared distance: (point_k - t)^+ with sum 1."""
    order = np.sort(point)[::-1]
    total = 0.0
    level = 0.0
    for k in range(len(order)):
        total += order[k]
        candidate = (total - 1.0) / (k + 1)
        if order[k] > candidate:
            level = candidate
    proba = np.maximum(point - level, 0.0)
    return proba / proba.sum()


@compiled
def brier_forecast(log_weights, log_rows):  # type: ignore[no-untyped-def]
    """Return the (c,) forecast whose Brier loss is at most -ln sum w exp(-loss), whatever the label."""
    losses = brier_losses(np.exp(log_rows))
    scale = log_sum(log_weights)
    point = np.empty(log_rows.shape[1])
    for k in range(len(point)):
        point[k] = 0.5 * (log_sum(log_weights - losses[:, k]) - scale)
    return nearest_distribution(point)
