"""P-values of labels, of columns, bets on them and Holm's procedure, by definition."""

import math
from collections import Counter

RATES, LINES, CELLS = (0.0001, 0.001, 0.01, 0.1), (-1.0, -0.5, 0.0, 0.5, 1.0), 16


def rank(values, tau):
    """Return the p-value of the last number among all: large ones are strange."""
    own = values[-1]
    return (sum(v > own for v in values) + tau * sum(v == own for v in values)) / len(values)


def of_label(labels, tau):
    """Return the p-value of the last label: one that few have is strange."""
    counts = Counter(labels)
    return rank([-counts[y] for y in labels], tau)


def of_number(column, tau):
    """Return the p-value of the last number of a column; None is above all."""
    return rank([math.inf if v is None else v for v in column], tau)


def capitals(ps):
    """Return the capital after each p-value: a mean of jumpers, each with six bettors, and of one that never bets."""
    shares = [[1 / 6] * 6 for _ in RATES]
    won, cells, path = [1.0] * len(RATES), [1 / CELLS] * CELLS, []
    for p in ps:
        cell = min(int(p * CELLS), CELLS - 1)
        bets = [1 + e * (p - 0.5) for e in LINES] + [0.1 + 0.9 * CELLS * cells[cell]]
        for k, rate in enumerate(RATES):
            total = sum(shares[k])
            held = [((1 - rate) * s / total + rate / 6) * bet for s, bet in zip(shares[k], bets, strict=True)]
            won[k] *= sum(held)
            shares[k] = held
        cells = [0.95 * c + 0.05 * (i == cell) for i, c in enumerate(cells)]
        path.append((sum(won) + 1) / (len(RATES) + 1))
    return path


def holm(values, level):
    """Return the places that Holm's procedure rejects."""
    found = []
    for i, place in enumerate(sorted(range(len(values)), key=lambda j: values[j])):
        if values[place] > level / (len(values) - i):
            break
        found.append(place)
    return set(found)


def e_bh(capitals, level):
    """Return the places that e-BH rejects: the k largest, for the largest k of which the k-th is n / (k level)."""
    order = sorted(range(len(capitals)), key=lambda j: -capitals[j])
    most = [k for k in range(1, len(order) + 1) if k * capitals[order[k - 1]] >= len(order) / level]
    return set(order[: max(most, default=0)])
