"""Series many steps ahead, slowly: residuals kept in lists, thresholds one by one, intervals by trying numbers."""

import math

import numpy as np


def pinball_loss(y, quantile, u):
    return u * (y - quantile) if y > quantile else (1 - u) * (quantile - y)


def crps_of_quantiles(quantiles, levels, shares, y):
    return 2 * sum(s * pinball_loss(y, q, u) for q, u, s in zip(quantiles, levels, shares, strict=True))


def ranked(before, p, prior, trust=10.0):
    """The share of earlier strangenesses up to p, beside `trust` uniform ones over `prior`."""
    return (sum(one <= p for one in before) + trust * min(1.0, p * prior)) / (len(before) + trust)


def begin(level):
    """The threshold at which an interval leaves out this share."""
    return level if level >= 0.1 else 0.1 + 0.1 * math.log(level / 0.1)


def left_out(threshold, levels, n):
    """The share of a distribution that an interval leaves out after n answers."""
    lowest, highest = begin(levels[0]), begin(levels[-1])
    if threshold <= min(highest - 1, lowest - 0.5):
        return 0.0
    if threshold >= max(min(lowest + 1, 1), highest):
        return 1.0
    share = threshold if threshold >= 0.1 else 0.1 * math.exp((threshold - 0.1) / 0.1)
    return share * (n + 1) / (n + 31)


class Ledger:
    """The accounts of one horizon: every interval that was told, and the value that came for it."""

    def __init__(self, levels, size):
        self.levels, self.size = levels, size
        self.thresholds = [begin(level) for level in levels]
        self.errors = [0] * len(levels)
        self.n = 0
        self.furthest = [0.0] * len(levels)

    def answer(self, intervals, y):
        self.n += 1
        for k, level in enumerate(self.levels):
            lower, upper = intervals[k]
            missed = not (lower <= y <= upper)
            self.errors[k] += missed
            self.thresholds[k] += self.size * (level - missed)
            self.furthest[k] = max(self.furthest[k], abs(self.errors[k] - level * self.n))


def least_squares(rows, targets, ridge, forget):
    """Ridge regression from all rows at once, older ones counting less."""
    n = len(rows)
    weights = np.array([forget ** (n - 1 - i) for i in range(n)])
    X, y = np.array(rows), np.array(targets)
    return np.linalg.solve((X.T * weights) @ X + ridge * forget**n * np.eye(X.shape[1]), (X.T * weights) @ y)


def smoothed(values, alpha, beta, phi, gamma, m, level, season, h):
    """Damped additive smoothing of values, the first of which has phase 0; its forecast h steps after the last."""
    trend, season = 0.0, list(season)
    for t, y in enumerate(values):
        mean = level + phi * trend
        e = y - mean - season[t % m]
        level, trend = mean + alpha * e, phi * trend + alpha * beta * e
        season[t % m] += gamma * (1 - alpha) * e
    return level + sum(phi**j for j in range(1, h + 1)) * trend + season[(len(values) + h - 1) % m]


def window_quantiles(numbers, levels):
    ordered = sorted(numbers)
    n, middle = len(ordered), ordered[len(ordered) // 2]
    found = []
    for u in levels:
        at = u * (n + 1) - 1
        if at < 0:
            found.append(ordered[0] - (middle - ordered[0]) / math.log(n + 1) * math.log(1 / (at + 1)))
        elif at > n - 1:
            found.append(ordered[-1] + (ordered[-1] - middle) / math.log(n + 1) * math.log(1 / (n - at)))
        else:
            i = min(int(at), n - 2) if n > 1 else 0
            found.append(ordered[i] + (at - i) * (ordered[i + 1] - ordered[i]) if n > 1 else ordered[0])
    return found
