"""Inductive Venn prediction by definition: every split and every scorer from nothing, at every step."""

import math

import numpy as np

from naive import venn

# Splits: which of the first n examples train the scorer, which calibrate it; None while there is no scorer ---------


def times(first, growth, last, n):
    """Return the training times up to n."""
    found, time = [], first
    while time <= n and (last is None or time <= last):
        found.append(time)
        time = max(time + 1, math.floor(time * growth))
    return found


def prefix_restart(n, first, growth=2.0, last=None):
    known = times(first, growth, last, n)
    return (list(range(known[-1])), list(range(known[-1], n))) if known else None


def prefix(n, share, first, last=None):
    known = times(first, 2.0, last, n)
    if not known or math.floor(share * known[-1]) == 0:
        return None
    cut = math.floor(share * known[-1])
    return list(range(cut)), list(range(cut, n))


def fresh_split(n, share, seed):
    rng = np.random.default_rng(seed)
    order = []
    for k in range(1, n + 1):
        order = list(rng.permutation(k))
    size = math.floor(share * n)
    return (sorted(order[size:]), sorted(order[:size])) if n else None


def random_assignment(n, probability, seed, first, growth=2.0, last=None):
    rng = np.random.default_rng(seed)
    calibrates = [rng.random() < probability for _ in range(n)]
    known = times(first, growth, last, n)
    train = [i for i in range(known[-1]) if not calibrates[i]] if known else []
    return (train, [i for i in range(n) if calibrates[i]]) if train else None


def fixed_calibration(n, size, train):
    return (list(range(train)), list(range(train, min(n, train + size)))) if n >= train else None


def fold(n, k, folds, seed, first):
    rng = np.random.default_rng(seed)
    own = [math.floor(rng.random() * folds) == k for _ in range(n)]
    known = times(first, 2.0, None, n)
    train = [i for i in range(known[-1]) if not own[i]] if known else []
    return (train, [i for i in range(n) if own[i]]) if train else None


# Scorers: (X, y, Q, c) -> (len(Q), c) scores of Q by a scorer trained on X, y ----------------------------------------


def least_squares(gamma, C):
    """One-against-all least-squares machines, one linear system each."""

    def score(X, y, Q, c):
        n = len(y)

        def kernel(A, B):
            return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

        system = np.zeros((n + 1, n + 1))
        system[0, 1:] = system[1:, 0] = 1
        system[1:, 1:] = kernel(X, X) + np.eye(n) / C
        targets = np.array([[1.0 if label == k else -1.0 for k in range(c)] for label in y])
        solution = np.linalg.solve(system, np.vstack([np.zeros(c), targets]))
        return solution[0] + kernel(Q, X) @ solution[1:]

    return score


# Taxonomies ----------------------------------------------------------------------------------------------------------


def one_category(scores):
    return np.zeros(len(scores), int)


def above_median(scores):
    """Whether the first score is above the median of all: looks at the whole bag."""
    return (scores[:, 0] > np.median(scores[:, 0]) + 1e-7).astype(int)


# Prediction ----------------------------------------------------------------------------------------------------------


def counts(X, y, x, split, c, score, taxonomy=venn.argmax):
    """Return the (c,) labels of the calibration examples in the category of x."""
    if split is None:
        return [0] * c
    train, calibration = split
    bag = score(X[train], y[train], np.vstack([X[calibration], x]), c)
    categories = taxonomy(bag)
    beside = [y[i] for i, here in zip(calibration, categories, strict=False) if here == categories[-1]]
    return [beside.count(k) for k in range(c)]


def matrix(counts):
    """Return the multiprobability of counts: row j counts the new example as class j."""
    c = len(counts)
    return np.array([[(counts[k] + (k == j)) / (sum(counts) + 1) for k in range(c)] for j in range(c)])


def predict(X, y, x, split, c, score, taxonomy=venn.argmax):
    """Return the (c, c) multiprobability of x after the examples (X, y)."""
    return matrix(counts(X, y, x, split, c, score, taxonomy))


def cross(X, y, x, splits, c, score):
    """Return the multiprobability of the mean counts over several splits."""
    return matrix(np.mean([counts(X, y, x, split, c, score) for split in splits], axis=0))


# Broken predictors, which tests of validity must refuse --------------------------------------------------------------


def calibrated_on_training(X, y, x, split, c, score):
    """The calibration examples have trained the scorer too."""
    train, calibration = split
    return predict(X, y, x, (train + calibration, calibration), c, score)


def balanced(X, y, x, split, c, score):
    """Calibration examples of each class are dropped, the latest first, until all classes have as many."""
    train, calibration = split
    size = min([y[i] for i in calibration].count(k) for k in range(c))
    kept = []
    for i in calibration:
        if [y[m] for m in kept].count(y[i]) < size:
            kept.append(i)
    return predict(X, y, x, (train, kept), c, score)


def edge_by_labels(X, y, x, split, c, score):
    """Two categories, parted where the labels of the calibration examples differ most."""
    train, calibration = split
    bag = score(X[train], y[train], np.vstack([X[calibration], x]), c)[:, 0]
    own = np.array([y[i] for i in calibration])

    def difference(edge):
        left, right = own[bag[:-1] <= edge], own[bag[:-1] > edge]
        return abs((left == 0).mean() - (right == 0).mean()) if len(left) and len(right) else 0.0

    edge = max(bag[:-1], key=difference)
    beside = own[(bag[:-1] > edge) == (bag[-1] > edge)]
    return matrix([int((beside == k).sum()) for k in range(c)])


def restarted_by_errors(y, c):
    """Return the multiprobability after labels y, one category, counted since the last wrong prediction."""
    now = [0] * c
    for label in y:
        wrong = label != now.index(max(now))
        now[label] += 1
        if wrong:
            now = [0] * c
    return matrix(now)
