"""Transductive Venn prediction by definition: c machines fitted from nothing for each of c hypotheses."""

import numpy as np

from naive import svm


def on_grid(scores):
    """Return scores as whole numbers of grid steps."""
    return np.rint(np.asarray(scores) * 1e6 + 0.2718281828)  # off the multiples where symmetric data tie


def argmax(scores):
    """Return the category of each row of scores: its largest class, on the grid, ties to the first."""
    return np.array([list(row).index(max(row)) for row in on_grid(scores)])


def augmented_scores(X, y, x, c, kernel, C):
    """Return c arrays (n + 1, c): the scores of the whole bag, the new example last, under each hypothesis."""
    bag = np.vstack([np.asarray(X, float).reshape(len(y), len(x)), x])
    K = kernel(bag, bag)
    return [svm.one_vs_all(K, np.append(np.asarray(y, int), j), c, C) for j in range(c)]


def matrix(categories, y, c):
    """Return the (c, c) multiprobability from c arrays of n + 1 categories, the new example last."""
    P = np.zeros((c, c))
    for j in range(c):
        labels = [*y, j]
        beside = [label for label, here in zip(labels, categories[j], strict=True) if here == categories[j][-1]]
        for k in range(c):
            P[j, k] = beside.count(k) / len(beside)
    return P


def transductive(X, y, x, c, kernel, C, taxonomy=argmax):
    """Return the (c, c) multiprobability of x after the bag (X, y)."""
    return matrix([taxonomy(s) for s in augmented_scores(X, y, x, c, kernel, C)], y, c)


def without_the_new_example(X, y, x, c, kernel, C):
    """Return what a *broken* predictor says: trained on the past alone, the new example placed afterwards.

    The past fits its own labels and the new example does not take part, so its category is purer than
    it deserves. No guarantee holds, and the tests of validity must refuse it.
    """
    X, y = np.asarray(X, float), np.asarray(y, int)
    bag = np.vstack([X, x])
    cross = kernel(bag, X)
    scores = np.empty((len(bag), c))
    for k in range(c):
        t = np.where(y == k, 1.0, -1.0)
        if abs(t.sum()) == len(t):
            scores[:, k] = t[0]
            continue
        alpha = svm.coefficients(cross[:-1], t, C)
        least, most = svm.bias_interval(cross[:-1], t, alpha, C)
        scores[:, k] = cross @ (alpha * t) + (least + most) / 2
    return matrix([argmax(scores)] * c, y, c)
