"""The constrained SVM by its definition: every choice of examples that must be correct, a quadratic program for each.

Imports nothing of the package.
"""

from itertools import product

import numpy as np
from scipy.optimize import linprog, minimize


def objective(X, signs, weights, C, w, b):
    """Return 1/2 |w|^2 + C sum of the weighted hinge losses."""
    return 0.5 * w @ w + C * weights @ np.maximum(0, 1 - signs * (X @ w + b))


def with_correct(X, signs, weights, C, correct, M):
    """Return the least objective, w and b with y f >= 1 for the correct and losses <= M, or None without any."""
    n, d = X.shape
    rows = signs[:, None] * np.column_stack([X, np.ones(n)])
    # Unknowns (w, b, xi): y f + xi >= 1, 0 <= xi <= M, xi = 0 of the correct.
    A = np.column_stack([rows, np.eye(n)])
    caps = np.where(correct, 0.0, M)
    free = [(None, None)] * (d + 1)
    any_point = linprog(np.zeros(d + 1 + n), -A, -np.ones(n), bounds=free + [(0, cap) for cap in caps])
    if any_point.status == 2:
        return None
    assert any_point.status == 0
    cost = C * weights

    def value(u):
        return 0.5 * u[:d] @ u[:d] + cost @ u[d + 1 :]

    def slope(u):
        return np.concatenate([u[:d], [0.0], cost])

    constraints = [{"type": "ineq", "fun": lambda u: A @ u - 1, "jac": lambda u: A}]
    found = minimize(
        value, any_point.x, jac=slope, method="SLSQP", constraints=constraints,
        bounds=free + [(0, cap) for cap in caps], options={"maxiter": 2000, "ftol": 1e-14},
    )  # fmt: skip
    return found.fun, found.x[:d], found.x[d]


def constrained_svm(X, signs, weights, C, shares, M=1000.0):
    """Return the least objective, w and b of the machine, or None where there is none.

    `shares` has least shares of weight outside the margin, by "sensitivity", "specificity" and "accuracy".
    """
    counted = {"sensitivity": signs > 0, "specificity": signs < 0, "accuracy": signs != 0}
    about = np.zeros(len(X), bool)
    for name in shares:
        about |= counted[name]
    free = np.flatnonzero(about)
    good = []
    for choice in product([False, True], repeat=len(free)):
        correct = np.zeros(len(X), bool)
        correct[free] = choice
        lacking = [
            weights[correct & counted[name]].sum() - share * weights[counted[name]].sum()
            for name, share in shares.items()
        ]
        if min(lacking, default=0) >= -1e-9:
            good.append(correct)
    # A larger set of correct examples is a harder problem: only the smallest ones matter.
    smallest = [a for a in good if not any((b <= a).all() and (b != a).any() for b in good)]
    solved = [with_correct(X, signs, weights, C, correct, M) for correct in smallest]
    return min((one for one in solved if one is not None), key=lambda one: one[0], default=None)
