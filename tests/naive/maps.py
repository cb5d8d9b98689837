"""Batch maps from scores to probabilities by definition: one example after another, generic minimisers.

Binary maps get lists of scores, labels 0 and 1, and weights, and return a function of one score. Those for several
classes get rows of scores and labels 0 .. c - 1, and return a function of one row.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize, minimize_scalar, root
from scipy.stats import beta as beta_law


def soft_targets(labels, weights):
    positive = math.fsum(w for y, w in zip(labels, weights, strict=True) if y == 1)
    negative = math.fsum(w for y, w in zip(labels, weights, strict=True) if y == 0)
    return [(positive + 1) / (positive + 2) if y == 1 else 1 / (negative + 2) for y in labels]


def softplus(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def platt(scores, labels, weights):
    """Minimise the weighted cross-entropy of soft targets in standard units, then find the root of its gradient."""
    w, t = np.array(weights, float), np.array(soft_targets(labels, weights))
    f = np.array(scores, float)
    centre, scale = f.mean(), np.abs(f - f.mean()).max()
    z = (f - centre) / scale

    def gradient(ab):
        p = np.array([sigmoid(u) for u in ab[0] * z + ab[1]])
        return np.array([(w * (p - t) * z).sum(), (w * (p - t)).sum()])

    def loss(ab):
        u = ab[0] * z + ab[1]
        return (w * (np.array([softplus(v) for v in u]) - t * u)).sum()

    near = minimize(loss, np.zeros(2), jac=gradient, method="BFGS", options={"gtol": 1e-7})
    a, b = root(gradient, near.x, tol=1e-13).x
    if np.abs(gradient([a, b])).max() > 1e-9 * w.sum():
        raise ArithmeticError("the oracle's gradient must be 0")
    return lambda s: sigmoid(a * (s - centre) / scale + b)


def beyond(scores, labels, weights):
    """Return the rates of positives with f < -1 and f > 1, as (below, above)."""

    def rate(inside, default):
        chosen = [(y, w) for f, y, w in zip(scores, labels, weights, strict=True) if inside(f) and w > 0]
        if not chosen:
            return default
        return sum(w for y, w in chosen if y == 1) / sum(w for _, w in chosen)

    return rate(lambda f: f < -1, 0.0), rate(lambda f: f > 1, 1.0)


def linear(scores, labels, weights):
    below, above = beyond(scores, labels, weights)
    return lambda s: above if s > 1 else below if s < -1 else (1 + s) / 2


def clipped_linear(scores, labels, weights):
    below, above = beyond(scores, labels, weights)
    return lambda s: min(above, max(below, (1 + s) / 2))


def binning(scores, labels, weights, bins, frequency, laplace):
    examples = sorted((f, y, Fraction(w)) for f, y, w in zip(scores, labels, weights, strict=True) if w > 0)
    if frequency:
        total = sum(w for _, _, w in examples)
        cuts = []
        for i in range(1, bins):
            so_far = Fraction(0)
            for f, _, w in examples:
                so_far += w
                if so_far * bins > i * total:
                    cuts.append(f)
                    break
    else:
        low, high = examples[0][0], examples[-1][0]
        cuts = [low + (high - low) * (i / bins) for i in range(1, bins)]

    def bin_of(s):
        return sum(1 for cut in cuts if cut <= s)

    members = {b: [(y, w) for f, y, w in examples if bin_of(f) == b] for b in range(bins)}

    def predict(s):
        b = bin_of(s)
        here = members[min((a for a in members if members[a]), key=lambda a: (abs(a - b), a))]
        positive, total = sum(w for y, w in here if y == 1), sum(w for _, w in here)
        return float((positive + 1) / (total + 2) if laplace else positive / total)

    return predict


def isotonic(scores, labels, weights, interpolation):
    """The min over ends above of the max over starts below of the weighted mean, in exact arithmetic."""
    examples = [(f, y, Fraction(w)) for f, y, w in zip(scores, labels, weights, strict=True) if w > 0]
    levels = sorted({f for f, _, _ in examples})
    positives = [sum(w for f, y, w in examples if f == level and y == 1) for level in levels]
    totals = [sum(w for f, _, w in examples if f == level) for level in levels]
    r = range(len(levels))
    mean = {(a, b): sum(positives[a : b + 1]) / sum(totals[a : b + 1]) for a in r for b in r if a <= b}
    value = [float(min(max(mean[a, b] for a in r if a <= i) for b in r if b >= i)) for i in r]

    def predict(s):
        below = [i for i in r if levels[i] <= s]
        if not below:
            return value[0]
        i = below[-1]
        if interpolation == "step" or levels[i] == s or i == len(levels) - 1:
            return value[i]
        return value[i] + (s - levels[i]) / (levels[i + 1] - levels[i]) * (value[i + 1] - value[i])

    return predict


def moments(memberships, weights):
    """Return the mean, and M of the Beta law with this mean and variance."""
    total = math.fsum(weights)
    mean = math.fsum(w * m for m, w in zip(memberships, weights, strict=True)) / total
    variance = math.fsum(w * (m - mean) ** 2 for m, w in zip(memberships, weights, strict=True)) / total
    return mean, variance, mean * (1 - mean) / variance - 1 if variance > 0 else math.inf


def carried(m, rest, inner, outer):
    """Return Q_outer(F_inner(m)); above a half by the mirrored laws and 1 - m, where F rounds to 1."""
    if m > rest:
        return 1 - float(beta_law.ppf(beta_law.cdf(rest, *inner[::-1]), *outer[::-1]))
    return float(beta_law.ppf(beta_law.cdf(m, *inner), *outer))


def beta2(scores, labels, weights):
    """Search N on a fine grid, and then on ever finer ones around the best."""
    m = [sigmoid(2 * f) for f in scores]
    mean, _, spread = moments(m, weights)
    inner = (mean * spread, (1 - mean) * spread)
    total = math.fsum(weights)
    rate = math.fsum(w for y, w in zip(labels, weights, strict=True) if y == 1) / total
    target = soft_targets(labels, weights)

    def error(n):
        p = beta_law.ppf(beta_law.cdf(m, *inner), rate * n, (1 - rate) * n)
        return float((np.array(weights) * (p - target) ** 2).sum())

    exponents = np.linspace(-6, 20, 261)
    for _ in range(4):
        best = int(np.argmin([error(2**e) for e in exponents]))
        exponents = np.linspace(exponents[max(best - 1, 0)], exponents[min(best + 1, len(exponents) - 1)], 41)
    n = 2 ** exponents[np.argmin([error(2**e) for e in exponents])]
    return lambda s: carried(sigmoid(2 * s), sigmoid(-2 * s), inner, (rate * n, (1 - rate) * n))


def softmax(row):
    e = [math.exp(s - max(row)) for s in row]
    return [v / math.fsum(e) for v in e]


def beta_scaling(rows, labels, weights, tuned):
    c = len(rows[0])
    prior = [
        math.fsum(w for y, w in zip(labels, weights, strict=True) if y == k) / math.fsum(weights) for k in range(c)
    ]
    regions = {}
    for k in range(c):
        here = [i for i, row in enumerate(rows) if list(row).index(max(row)) == k and weights[i] > 0]
        m, w = [softmax(rows[i])[k] for i in here], [weights[i] for i in here]
        right = [labels[i] == k for i in here]
        n = math.fsum(w)
        correct = math.fsum(v for v, ok in zip(w, right, strict=True) if ok) / n if here else 0.0
        if correct == 0:
            regions[k] = None
            continue
        mean, variance, spread = moments(m, w)
        if variance < 1e-4 or all(right):
            regions[k] = (mean, correct)
            continue
        inner = (mean * spread, (1 - mean) * spread)
        size = math.floor(min(n, spread))
        if tuned:

            def error(size, m=m, w=w, right=right, inner=inner, correct=correct):
                scaled = beta_law.ppf(beta_law.cdf(m, *inner), correct * size, (1 - correct) * size)
                return float((np.array(w) * (scaled - np.array(right)) ** 2).sum())

            size = min(range(max(size, 1), math.floor(max(n, spread)) + 1), key=error)
        regions[k] = None if size == 0 else (inner, (correct * size, (1 - correct) * size), size)

    def predict(row):
        m = softmax(row)
        k = list(row).index(max(row))
        region = regions[k]
        if region is None:
            return prior
        rest = math.fsum(v for j, v in enumerate(m) if j != k)
        s = min(max(m[k] - region[0] + region[1], 0), 1) if len(region) == 2 else carried(m[k], rest, *region[:2])
        if m[k] > 1 - 1e-6:
            return [s if j == k else (1 - s) / (c - 1) for j in range(c)]
        return [s if j == k else m[j] * (1 - s) / (1 - m[k]) for j in range(c)]

    return predict


def beta_calibration(scores, labels, weights):
    """Minimise the log loss with bounds a, b >= 0, from several starts; of separable data that of soft targets."""
    x = np.array([[-softplus(-2 * f), softplus(2 * f), 1.0] for f in scores])
    scale = np.array([*np.abs(x[:, :2]).max(axis=0), 1.0])
    x /= scale
    positive = [f for f, y in zip(scores, labels, strict=True) if y == 1]
    negative = [f for f, y in zip(scores, labels, strict=True) if y == 0]
    w, t = np.array(weights, float), np.array(labels, float)
    if max(negative) <= min(positive):
        t = np.array(soft_targets(labels, weights))

    def loss(abc):
        u = x @ abc
        value = sum(weight * (softplus(v) - target * v) for weight, target, v in zip(w, t, u, strict=True))
        return value, (w * (np.array([sigmoid(v) for v in u]) - t)) @ x

    def fit(start):
        return minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 + [(None, None)],
            options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10000, "maxfun": 50000},
        )  # fmt: skip

    best = min(
        (fit(np.array(start)) for start in ((0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (5.0, 0.0, 1.0))), key=lambda r: r.fun
    )
    free = best.x > 0
    free[2] = True

    def slope(inside):
        full = np.zeros(3)
        full[free] = inside
        return loss(full)[1][free]

    best.x[free] = root(slope, best.x[free], tol=1e-14).x
    if np.abs(slope(best.x[free])).max() > 1e-9 * w.sum() or (best.x[:2] < 0).any():
        raise ArithmeticError("the oracle's gradient must be 0")
    a, b, c = best.x / scale
    return lambda s: sigmoid(c - a * softplus(-2 * s) + b * softplus(2 * s))


def temperature(rows, labels, weights):
    def loss(log_inverse):
        inverse = math.exp(log_inverse)
        total = 0.0
        for row, y, w in zip(rows, labels, weights, strict=True):
            logits = [inverse * s for s in row]
            total += w * (max(logits) + math.log(math.fsum(math.exp(v - max(logits)) for v in logits)) - logits[y])
        return total

    inverse = math.exp(minimize_scalar(loss, bounds=(-10, 10), method="bounded", options={"xatol": 1e-12}).x)
    return lambda row: softmax([inverse * s for s in row])


def one_vs_all(fit, rows, labels, weights):
    c = len(rows[0])
    maps = [fit([row[k] for row in rows], [int(y == k) for y in labels], weights) for k in range(c)]

    def predict(row):
        p = [one(s) for one, s in zip(maps, row, strict=True)]
        return [v / sum(p) for v in p] if sum(p) > 0 else [1 / c] * c

    return predict
