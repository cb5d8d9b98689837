"""Protected forecasting by definition: a passive weight and one weight for every rate and calibrator, as plain numbers.

A step is: jump, forecast, see the label, multiply by exp(-loss). Losses are functions of a forecast and a label.
"""

import math


def log_loss(forecast, y):
    return -math.log(forecast[y]) if forecast[y] > 0 else math.inf


def brier_loss(forecast, y):
    return sum(((k == y) - p) ** 2 for k, p in enumerate(forecast))


def mean(weights, forecasts):
    """Return the mean of the forecasts by the weights."""
    c = len(forecasts[0])
    return [sum(w * f[k] for w, f in zip(weights, forecasts, strict=True)) / sum(weights) for k in range(c)]


def brier_merge(weights, forecasts):
    """Return p_k = (s - g_k)^+ / 2 with g_k = -ln sum w exp(-loss(k)); s by bisection."""
    c = len(forecasts[0])
    g = [
        -math.log(sum(w * math.exp(-brier_loss(f, k)) for w, f in zip(weights, forecasts, strict=True)) / sum(weights))
        for k in range(c)
    ]
    low, high = min(g), max(g) + 2
    for _ in range(200):
        s = (low + high) / 2
        if sum(max(s - one, 0) for one in g) > 2:
            high = s
        else:
            low = s
    return [max(low - one, 0) / 2 for one in g]


def cut_merge(weights, forecasts):
    """The merge of a published program: s from the sum of all g, negative probabilities cut off, the rest rescaled."""
    c = len(forecasts[0])
    g = [
        -math.log(sum(w * math.exp(-brier_loss(f, k)) for w, f in zip(weights, forecasts, strict=True)) / sum(weights))
        for k in range(c)
    ]
    s = (2 + sum(g)) / c
    p = [min(max((s - one) / 2, 0), 1) for one in g]
    return [one / sum(p) for one in p]


MERGE = {log_loss: mean, brier_loss: brier_merge}


def recalibrated(base, power, shift):
    """Return the forecast proportional to base^power exp(shift)."""
    values = [p**power * math.exp(a) for p, a in zip(base, shift, strict=True)]
    return [value / sum(values) for value in values]


def calibrators(c):
    """Return (power, shift) pairs, the identity first: no shift, or 1 or -1 at one class."""
    shifts = [[0] * c]
    for k in range(c) if c > 2 else [1]:
        for size in (1, -1):
            shift = [0] * c
            shift[k] = size
            shifts.append(shift)
    return [(power, shift) for power in (1, 0.5, 2) for shift in shifts]


class Protected:
    """The whole algorithm for c classes."""

    def __init__(self, c, loss, rates=(1e-2, 1e-3, 1e-4), passive=0.5, merge=None):
        self.loss, self.rates = loss, rates
        self.merge = merge or MERGE[loss]
        self.calibrators = calibrators(c)
        self.passive = passive
        self.active = [[(1 - passive) / len(rates)] + [0.0] * (len(self.calibrators) - 1) for _ in rates]

    def jumped(self):
        """Return the active weights after the jump."""
        return [
            [(1 - rate) * w + rate * sum(row) / len(row) for w in row]
            for rate, row in zip(self.rates, self.active, strict=True)
        ]

    def forecast(self, base):
        """Return the forecast for the next label when the base says `base`."""
        forecasts = [recalibrated(base, *calibrator) for calibrator in self.calibrators]
        weights = [self.passive] + [w for row in self.jumped() for w in row]
        return self.merge(weights, [list(base)] + forecasts * len(self.rates))

    def see(self, base, y):
        """Let the weights follow the losses."""
        active = self.jumped()
        if base[y] > 0 or self.loss is not log_loss:
            factors = [math.exp(-self.loss(recalibrated(base, *one), y)) for one in self.calibrators]
            active = [[w * factor for w, factor in zip(row, factors, strict=True)] for row in active]
            self.passive *= math.exp(-self.loss(base, y))
        total = self.passive + sum(map(sum, active))
        self.passive /= total
        self.active = [[w / total for w in row] for row in active]
