"""Linear support vector machines of the hinge loss by their definition, solved by a general method; few examples."""

import numpy as np
from scipy.optimize import minimize


def objective(w, b, X, signs, C, weights, levels):
    """Return 1/2 |w|^2 + C sum_i weight_i max(0, level_i - sign_i (w . x_i + b))."""
    return w @ w / 2 + C * sum(
        weight * max(0.0, level - sign * (w @ x + b))
        for x, sign, weight, level in zip(X, signs, weights, levels, strict=True)
    )


def middle_bias(w, b, X, signs, C, weights, levels):
    """Return the middle of the biases that are as good as the best one."""
    kinks = sorted({sign * level - w @ x for x, sign, level in zip(X, signs, levels, strict=True)})
    values = np.array([objective(w, kink, X, signs, C, weights, levels) for kink in kinks])
    best = np.flatnonzero(values <= values.min() + 1e-7 * max(1.0, values.min()))
    return (kinks[best[0]] + kinks[best[-1]]) / 2


def solution(X, signs, C, weights, levels):
    """Return w and b, by sequential quadratic programming on the coefficients, the bias and the losses."""
    n, d = X.shape
    rows = signs[:, None] * np.column_stack([X, np.ones(n)])
    cost = C * weights

    def value(v):
        return v[:d] @ v[:d] / 2 + cost @ v[d + 1 :]

    def slope(v):
        return np.concatenate([v[:d], [0.0], cost])

    A = np.column_stack([rows, np.eye(n)])
    start = np.concatenate([np.zeros(d + 1), np.maximum(levels, 0.0)])
    found = minimize(
        value, start, jac=slope, method="SLSQP", bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda v: A @ v - levels, "jac": lambda v: A},
        options={"maxiter": 2000, "ftol": 1e-15},
    )  # fmt: skip
    return found.x[:d], middle_bias(found.x[:d], found.x[d], X, signs, C, weights, levels)
