"""What a stack of numbers is fitted to, by definition: every machine solved anew without each example."""

import warnings

import numpy as np
from scipy.optimize import nnls
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor


def kernel(A, B):
    """Return the mean of exp(-w |a - b|_1 / d) over widths, and a linear part."""
    d = A.shape[1]
    far = np.abs(A[:, None] - B).sum(axis=2) / d
    return 0.94 * np.mean([np.exp(-w * far) for w in (0.25, 1, 4)], axis=0) + 0.06 * A @ B.T / d


def machine(K, y, C):
    """Return coefficients and constant of kernel ridge regression."""
    n = len(y)
    found = np.linalg.solve(np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), 0]]), np.append(y, 0))
    return found[:n], found[n]


def left_out(K, y, C):
    """Return the error at each example of the machine that has not seen it."""
    errors = []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        a, b = machine(K[np.ix_(rest, rest)], y[rest], C)
        errors.append(y[i] - K[i, rest] @ a - b)
    return np.array(errors)


def fitted(Z, labels, trees=100, rounds=100):
    """Return what is said of rows, (n, 2) forecasts and spreads, by what is fitted to scaled objects and labels."""
    n = len(Z)
    center = np.median(labels)
    unit = np.sqrt(np.mean((labels - center) ** 2))
    y = (labels - center) / unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest = RandomForestRegressor(trees, max_features=0.5, oob_score=True, random_state=0).fit(Z, y)

        def boosting(rows):
            return HistGradientBoostingRegressor(max_iter=rounds, min_samples_leaf=1 + n // 10, random_state=0).fit(
                Z[rows], y[rows]
            )

        boosted, unseen = boosting(np.arange(n) >= 0), np.column_stack([forest.oob_prediction_, np.empty(n)])
        for k in range(3):
            away = np.arange(n) % 3 == k
            unseen[away, 1] = boosting(~away).predict(Z[away])
    best = None
    for power in (0, 0.5, 1):
        factors = np.maximum(forest.feature_importances_, 0.01 * forest.feature_importances_.mean()) ** power
        factors = factors / factors.mean()
        K = kernel(Z * factors, Z * factors)
        for C in (0.1, 1, 10, 100):
            off = [left_out(K, one, C) for one in (y, *unseen.T)]
            weights = nnls(np.column_stack(off[1:]), off[0])[0]
            lost = np.mean((off[0] - weights[0] * off[1] - weights[1] * off[2]) ** 2)
            cost = n / 2 * np.log(lost) + (np.log(C / 10) / 1.5) ** 2 / 2
            if best is None or cost < best[0]:
                best = cost, K, C, weights, factors
    _, K, C, weights, factors = best
    left = y - unseen @ weights
    a, b = machine(K, left, C)
    sizes = np.abs(left_out(K, left, C))
    mean = sizes.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        woods = RandomForestRegressor(trees, min_samples_leaf=8, max_features=0.5, oob_score=True, random_state=0).fit(
            Z, np.minimum(sizes, 6 * mean)
        )
    costs = {}
    for blend in (0.1, 0.3, 0.5, 0.7, 1.0):
        each = blend * mean + (1 - blend) * woods.oob_prediction_
        costs[blend] = np.mean(np.log(each) + sizes / each)
    blend = min(costs, key=costs.get)

    def said(rows):
        f = weights[0] * forest.predict(rows) + weights[1] * boosted.predict(rows) + b
        f = f + kernel(rows * factors, Z * factors) @ a
        return np.column_stack([center + unit * f, unit * (blend * mean + (1 - blend) * woods.predict(rows))])

    return said


def shaped(labels, of, reach):
    """Return labels as they are taken, one by one, by the labels that fix it."""
    center = np.median(of)
    unit = 1.4826 * np.median([abs(y - center) for y in of if y != center])
    places = []
    for y in labels:
        z = (y - center) / unit
        far = abs(z) - reach
        places.append(z if far <= 0 else np.sign(z) * (reach + np.log(1 + far)))
    return np.array(places)


def gaps(labels):
    """Return where no labels are: between neighbours of five and more, and beyond a tenth of them."""
    numbers = sorted(set(labels))
    counts = [sum(y == one for y in labels) for one in numbers]
    found = []
    if counts[0] >= max(5, len(labels) / 10):
        found.append((-1e300, numbers[0]))
    for a, b, m, n in zip(numbers, numbers[1:], counts, counts[1:], strict=False):
        if min(m, n) >= 5:
            found.append((a, b))
    if counts[-1] >= max(5, len(labels) / 10):
        found.append((numbers[-1], 1e300))
    return found
