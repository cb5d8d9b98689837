"""Conformal prediction by definition: every machine fitted from nothing for every hypothesis, every example compared.

Each measure gives the nonconformity A_i of all n examples of a bag with labels; the new example is the last one.
"""

import math

import numpy as np

from naive import least_squares, span, svm

STEP = 1e-6  # nonconformity is compared on a grid, off the multiples where symmetric data tie


def on_grid(value):
    """Return the value as a whole number of grid steps."""
    return np.rint(value / STEP + 0.2718281828) if np.isfinite(value) else value


def margins(scores, y):
    """Return the best score of the other classes less that of the own class, for each row."""
    return [max(s for k, s in enumerate(row) if k != y[i]) - row[y[i]] for i, row in enumerate(scores)]


def margin(bag, y, c, kernel, C):
    """Return margins of the support vector machines trained on the whole bag."""
    return margins(svm.one_vs_all(kernel(bag, bag), y, c, C), y)


def span_margin(bag, y, c, kernel, C):
    """Return margins by span leave-one-out scores, equal objects being one."""
    distinct, where = np.unique(bag, axis=0, return_inverse=True)
    return margins(span.one_vs_all(kernel(distinct, distinct), where.ravel(), y, c, C), y)


def squares_margin(bag, y, c, kernel, C):
    """Return margins of the least-squares machines trained on the whole bag."""
    return margins(least_squares.training(kernel(bag, bag), y, c, C), y)


def squares_leave_one_out_margin(bag, y, c, kernel, C):
    """Return margins by least-squares machines trained on the bag without the example, one by one."""
    return margins(least_squares.leave_one_out(kernel(bag, bag), y, c, C), y)


def p_value(values, y, tau, label_conditional=False):
    """Return (#{A_i > A} + tau #{A_i = A}) / n over all n examples, or those of the last one's label."""
    greater = equal = n = 0
    last = on_grid(values[-1])
    for value, label in zip(values, y, strict=True):
        if label_conditional and label != y[-1]:
            continue
        n += 1
        greater += on_grid(value) > last
        equal += on_grid(value) == last
    return (greater + tau * equal) / n


def bags(measure, X, y, x, c, kernel, C):
    """Return (nonconformity, labels) of the bag (X, y) with x, under each hypothesis about its label."""
    bag = np.vstack([np.asarray(X, float).reshape(len(y), len(x)), x])
    labels = [np.append(np.asarray(y, int), j) for j in range(c)]
    return [(measure(bag, codes, c, kernel, C), codes) for codes in labels]


def own(rows, codes):
    """Return minus the score of the own class, for each row."""
    return [-row[y] for row, y in zip(rows, codes, strict=True)]


def shares(rows, codes):
    """Return minus the logarithm of the own class's share of each row; what is below 0 by rounding is 0."""
    answer = []
    for row, y in zip(rows, codes, strict=True):
        clean = [max(0.0, score) for score in row]
        share = clean[y] / sum(clean) if sum(clean) else 1.0
        answer.append(-math.log(share) if share else math.inf)
    return answer
