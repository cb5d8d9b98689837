"""Inductive conformal prediction by definition: every rank from nothing, at every step."""

import numpy as np


def margins(rows, codes):
    """Return the best score of the other classes less that of the own, for each row."""
    return [max(s for k, s in enumerate(row) if k != y) - row[y] for row, y in zip(rows, codes, strict=True)]


def ratios(rows, codes):
    """Return the distance to the own class over the least other one, scores being minus distances."""
    answer = []
    for row, y in zip(rows, codes, strict=True):
        own, other = -row[y], min(-s for k, s in enumerate(row) if k != y)
        answer.append(1.0 if own == other else own / other if other else float("inf"))
    return answer


def on_grid(value):
    return value if np.isinf(value) else round(value * 1e6 + 0.2718281828)


def ranks(X, y, x, split, c, score, measure=margins, label_conditional=False):
    """Return for each label of x how many are stranger, how many as strange, x included, and how many there are."""
    if split is None:
        return [(0, 1, 1)] * c
    train, calibration = split
    bag = score(X[train], y[train], np.vstack([X[calibration], x]), c)
    old = [on_grid(a) for a in measure(bag[:-1], [y[i] for i in calibration])]
    answer = []
    for j in range(c):
        beside = [a for a, i in zip(old, calibration, strict=True) if y[i] == j or not label_conditional]
        new = on_grid(measure(bag[-1:], [j])[0])
        beside.append(new)
        answer.append((sum(a > new for a in beside), sum(a == new for a in beside), len(beside)))
    return answer


def p_values(ranks, tau):
    return [(greater + tau * equal) / total for greater, equal, total in ranks]


def chance(ranks, u):
    """Return the probability, over tau, that the p-value of these ranks is at most u."""
    greater, equal, total = ranks
    return min(1.0, max(0.0, (u * total - greater) / equal))


# Broken predictors, which tests of validity must refuse --------------------------------------------------------------


def ties_without_the_new_one(ranks, tau):
    """The tie term leaves the new example out, yet it is counted as one at least as strange."""
    return [(greater + tau * (equal - 1) + 1) / total for greater, equal, total in ranks]


def ties_of_the_others(ranks, tau):
    """The new example is in no count."""
    return [(greater + tau * (equal - 1)) / max(1, total - 1) for greater, equal, total in ranks]


def one_draw_for_all(ranks, tau):
    """Ties are not broken but all cut at the same place."""
    return p_values(ranks, 0.5)
