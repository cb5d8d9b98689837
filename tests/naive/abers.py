"""Inductive Venn-Abers by the definition, several times: refits, the minimax formula, exact fractions."""

from fractions import Fraction

import numpy as np
from scipy.optimize import isotonic_regression


def fit_at_last(scores, targets):
    """Return the isotonic fit of the targets at the last score; equal scores are one point, at their mean."""
    where = np.unique(scores, return_inverse=True)[1]
    weights = np.bincount(where)
    means = np.bincount(where, weights=targets) / weights
    return float(isotonic_regression(means, weights=weights).x[where[-1]])


def refitted(scores, labels, s):
    """Return p0, p1 at `s`: two isotonic regressions of the calibration set with (s, 0) and with (s, 1)."""
    bag = np.append(scores, s)
    return tuple(fit_at_last(bag, np.append(labels, float(y))) for y in (0, 1))


def pava(weights, sums):
    """Return the isotonic fit of points with these weights and sums of labels, as exact fractions."""
    blocks = []
    for weight, total in zip(weights, sums, strict=True):
        blocks.append([weight, total, 1])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [Fraction(int(total), int(weight)) for weight, total, points in blocks for _ in range(points)]


def pooled(counts, s):
    """Return p0, p1 at `s` by `pava`; `counts` maps each distinct score to [examples, positives]."""
    answer = []
    for y in (0, 1):
        points = {score: list(count) for score, count in counts.items()}
        point = points.setdefault(s, [0, 0])
        point[0] += 1
        point[1] += y
        order = sorted(points)
        fit = pava([points[score][0] for score in order], [points[score][1] for score in order])
        answer.append(float(fit[order.index(s)]))
    return tuple(answer)


def minimax(scores, labels, s):
    """Return p0, p1 at `s` by min over r >= m, max over q <= m of the mean label of points q..r."""
    answer = []
    for y in (0, 1):
        bag, targets = np.append(scores, s), np.append(labels, y)
        distinct, where = np.unique(bag, return_inverse=True)
        weights, sums = np.bincount(where), np.bincount(where, weights=targets)
        m = int(np.searchsorted(distinct, s))
        answer.append(
            min(
                max(sums[q : r + 1].sum() / weights[q : r + 1].sum() for q in range(m + 1))
                for r in range(m, len(distinct))
            )
        )
    return tuple(answer)


class Bag:
    """A calibration set in order of score, and how far a claimed p is from the isotonic fit.

    With W, S the numbers of examples and of positives up to a score, isotonic regression with (s, y)
    is the slope of the lower hull of the points (W, S), those from s on moved by (1, y). Its slope
    across s is the p at which a line of slope p touches the points before s and those from s on at the same
    height. The difference of the two heights falls in p at a rate of at least 1, since any point
    behind lies at least 1 to the right of any point before. So that difference, at a claimed p, bounds
    the error of p. It takes two passes over the points, and no fit.
    """

    def __init__(self):
        self.scores = np.empty(0)
        self.labels = np.empty(0)
        self.points = None

    def insert(self, score, label):
        where = self.scores.searchsorted(score)
        self.scores = np.concatenate([self.scores[:where], [score], self.scores[where:]])
        self.labels = np.concatenate([self.labels[:where], [label], self.labels[where:]])
        self.points = None

    def delete(self, score, label):
        where = np.flatnonzero((self.scores == score) & (self.labels == label))[0]
        self.scores = np.concatenate([self.scores[:where], self.scores[where + 1 :]])
        self.labels = np.concatenate([self.labels[:where], self.labels[where + 1 :]])
        self.points = None

    def errors(self, s, claimed):
        """Return bounds on the errors of the claimed p0 and p1 at `s`."""
        if self.points is None:  # they stand behind whole ties only
            last_of_tie = np.append(self.scores[1:] != self.scores[:-1], [True] * (len(self.scores) > 0))
            ends = np.append(0, np.flatnonzero(last_of_tie) + 1)
            self.points = ends, ends.astype(float), np.append(0.0, self.labels.cumsum())[ends]
        ends, W, S = self.points
        first, last = self.scores.searchsorted(s, side="left"), self.scores.searchsorted(s, side="right")
        before = slice(0, ends.searchsorted(first, side="right"))
        behind = slice(ends.searchsorted(last, side="left"), len(ends))
        return [
            abs((S[before] - p * W[before]).min() - (S[behind] + y - p * (W[behind] + 1)).min())
            for y, p in enumerate(claimed)
        ]
