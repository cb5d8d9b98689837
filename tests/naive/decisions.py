"""Expected costs by definition: linear programs over what is thought possible, and thresholds by counting."""

import numpy as np
from scipy import stats
from scipy.optimize import linprog


def largest(values, lower, upper):
    """Return the largest expectation over all distributions within bounds, or None if there is none."""
    found = linprog(
        -np.asarray(values), A_eq=np.ones((1, len(values))), b_eq=[1.0], bounds=list(zip(lower, upper, strict=True))
    )
    return -found.fun if found.status == 0 else None


def widened(lower, upper):
    """Return the bounds, widened by the smallest number with which there is a distribution."""
    c = len(lower)
    rows = np.block([[-np.eye(c), -np.ones((c, 1))], [np.eye(c), -np.ones((c, 1))]])
    found = linprog(
        [*[0.0] * c, 1.0], A_ub=rows, b_ub=np.concatenate([-np.asarray(lower), upper]),
        A_eq=[[*[1.0] * c, 0.0]], b_eq=[1.0], bounds=[(0.0, 1.0)] * c + [(0.0, None)],
    )  # fmt: skip
    by = found.x[-1] + 1e-12
    return np.maximum(np.asarray(lower) - by, 0.0), np.minimum(np.asarray(upper) + by, 1.0)


def threshold(confidence, right, error, delta, levels):
    """Return the lowest level whose errors would be too few, were the error rate above `error`."""
    for level in sorted(levels):
        here = [hit for value, hit in zip(confidence, right, strict=True) if value >= level]
        wrong = sum(not hit for hit in here)
        if here and stats.binom.cdf(wrong, len(here), error) <= delta / len(levels):
            return level
    return np.inf


def naive_threshold(confidence, right, error, delta, levels):
    """Return the lowest level whose share of errors so far is small enough: nothing is promised by that."""
    for level in sorted(levels):
        here = [hit for value, hit in zip(confidence, right, strict=True) if value >= level]
        if here and 1 - np.mean(here) <= error:
            return level
    return np.inf
