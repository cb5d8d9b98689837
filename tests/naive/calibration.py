"""Measures of calibration by definition: one forecast after another, bins as lists, laws as sums over all outcomes.

Forecasts of an event are lists of p and lists of 0 and 1.
"""

import math
from fractions import Fraction
from itertools import product


def brier_event(p, y):
    return sum((b - a) ** 2 for a, b in zip(p, y, strict=True)) / len(p)


def brier_classes(rows, truth):
    return sum(sum(((k == y) - p) ** 2 for k, p in enumerate(row)) for row, y in zip(rows, truth, strict=True)) / len(
        rows
    )


def log_loss(of_truth, clip):
    """Return the mean of -ln of the probabilities of what came, and how many lie below the clip."""
    total = 0.0
    for p in of_truth:
        p = max(p, clip)
        total += -math.log(p) if p > 0 else math.inf
    return total / len(of_truth), sum(1 for p in of_truth if p < clip)


def top_label(rows, truth):
    predicted = [row.index(max(row)) for row in rows]
    return [max(row) for row in rows], [int(a == b) for a, b in zip(predicted, truth, strict=True)]


def width_bin(p, bins):
    """Return the bin [i / bins, (i + 1) / bins) of p; the last one holds 1."""
    for i in range(bins):
        if p < (i + 1) / bins:
            return i
    return bins - 1


def in_width_bins(p, y, bins):
    """Return the (p, y) pairs of each bin."""
    groups = [[] for _ in range(bins)]
    for pair in zip(p, y, strict=True):
        groups[width_bin(pair[0], bins)].append(pair)
    return groups


def ece(groups):
    n = sum(map(len, groups))
    error = 0.0
    for group in groups:
        if group:
            frequency = sum(y for _, y in group) / len(group)
            confidence = sum(p for p, _ in group) / len(group)
            error += len(group) / n * abs(frequency - confidence)
    return error


def number_of_events(p):
    """Return the exact probability of each number of events, over all outcomes."""
    p = [Fraction(one) for one in p]
    law = [Fraction(0)] * (len(p) + 1)
    for outcome in product((0, 1), repeat=len(p)):
        chance = Fraction(1)
        for a, b in zip(p, outcome, strict=True):
            chance *= a if b else 1 - a
        law[sum(outcome)] += chance
    return law


def number_of_events_step_by_step(p):
    """The same, adding one event at a time."""
    law = [1.0]
    for one in p:
        law = [
            (law[k] * (1 - one) if k < len(law) else 0.0) + (law[k - 1] * one if k else 0.0)
            for k in range(len(law) + 1)
        ]
    return law


def quantile(law, level):
    """Return the least number whose distribution function reaches the level."""
    total = 0
    for k, chance in enumerate(law):
        total += chance
        if total >= level:
            return k
    return len(law) - 1


def entropy(row):
    return -sum(p * math.log(p) for p in row if p > 0)
