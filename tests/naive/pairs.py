"""One-against-one machines by definition: fits by scikit-learn's own RBF machine, kernel values one by one."""

import math
from itertools import combinations

import numpy as np
from sklearn.svm import SVC


def class_weights(train, operational, a, b):
    """Return operational / train of two classes over the mean of these over the training examples of the two."""
    of_a, of_b = operational[a] / train[a], operational[b] / train[b]
    mean = (train[a] * of_a + train[b] * of_b) / (train[a] + train[b])
    return of_a / mean, of_b / mean


def machine(X, y, a, b, gamma, C, weights, tol):
    """Return the decision function of a against b, > 0 for a."""
    rows = [i for i in range(len(y)) if y[i] in (a, b)]
    signs = [1 if y[i] == a else -1 for i in rows]
    own = [weights[0] if y[i] == a else weights[1] for i in rows]
    svm = SVC(gamma=gamma, C=C, tol=tol).fit(X[rows], signs, sample_weight=own)
    return lambda x: (
        sum(
            alpha * math.exp(-gamma * ((vector - x) ** 2).sum())
            for alpha, vector in zip(svm.dual_coef_[0], svm.support_vectors_, strict=True)
        )
        + float(svm.intercept_[0])
    )


def error(f, X, y, a, b, weights):
    """Return the weighted share of the examples of a and b that are on the wrong side, or on none."""
    wrong = total = 0.0
    for x, label in zip(X, y, strict=True):
        if label in (a, b):
            weight, sign = (weights[0], 1) if label == a else (weights[1], -1)
            total += weight
            wrong += weight * (sign * f(x) <= 5e-7)
    return wrong / total


def choices(X, y, held, c, gammas, Cs, weights, tol):
    """Return (gamma, C, error, decision function) of each pair: fewest errors, then smaller C, then smaller gamma."""
    found = []
    for a, b in combinations(range(c), 2):
        own = weights(a, b)
        best = None
        for C in sorted(Cs):
            for gamma in sorted(gammas):
                f = machine(X, y, a, b, gamma, C, own, tol)
                errors = error(f, *held, a, b, own)
                if best is None or errors < best[2] - 1e-12:
                    best = gamma, C, errors, f
        found.append(best)
    return found


def votes(decisions, c):
    """Return the (c,) votes and parts of margins of one object from its decisions, in order of pairs."""
    won, margins = [0] * c, [0.0] * c
    for (a, b), f in zip(combinations(range(c), 2), decisions, strict=True):
        won[a] += f > 5e-7
        won[b] += f < -5e-7
        margins[a] += f
        margins[b] -= f
    return np.array([won[k] + margins[k] / (3 * (abs(margins[k]) + 1)) for k in range(c)])


def winner(decisions, c):
    """Return the class of most votes, of equal ones that of the larger sum of margins, then the first."""
    won, margins = [0] * c, [0.0] * c
    for (a, b), f in zip(combinations(range(c), 2), decisions, strict=True):
        won[a] += f > 5e-7
        won[b] += f < -5e-7
        margins[a] += f
        margins[b] -= f
    return min(range(c), key=lambda k: (-won[k], -margins[k], k))
