"""Mixtures of machines: a rising sigmoid of each machine's scores, weighted by how well it forecasts the labels.

Everything here treats the examples alike: it is computed from their scores on the grid and their labels, each example
once. With two classes the second is the mirror image of the first, so only the first is computed.
"""

from __future__ import annotations

import math

import numpy as np

from venn._compiled.counting import GRID, rank
from venn._compiled.jit import compiled, in_lanes
from venn._compiled.ranks import plainly
from venn._compiled.scaling import extremes, newton, roots, sigmoid

# -------------------------------------------------------------------------------------------------------------- mixture

CHUNK = 512  # numbers from 1 to 2 whose product is a floating-point number
MANY, THIN = 512, 8  # of so many examples every eighth is fitted to first


@compiled
def on_grid(row, m, out):  # type: ignore[no-untyped-def]
    """Set `out[:m]` to the scores on the grid: equal ones are then equal, whatever their rounding."""
    for i in range(m):
        out[i] = rank(row[i], 0.0) / GRID


@in_lanes
def moments(f, positives):  # type: ignore[no-untyped-def]
    """Return the number of positives, the two means of their scores and of the others, and the variance within."""
    m = f.shape[0]
    positive = 0.0
    of_positive = 0.0
    of_all = 0.0
    for i in range(m):
        positive += positives[i]
        of_positive += positives[i] * f[i]
        of_all += f[i]
    above = of_positive / positive
    below = (of_all - of_positive) / (m - positive)
    within = 0.0
    for i in range(m):
        rest = f[i] - (below + positives[i] * (above - below))
        within += rest * rest
    return positive, above, below, within / m


@compiled
def fit_rising(f, positives, ones, target, start, fitted):  # type: ignore[no-untyped-def]
    """Fit Platt's sigmoid, its slope not below 0, to all examples; return whether Newton's method converged.

    Parameters
    ----------
    f : (m,) float64
        Scores on the grid.
    positives : (m,) float64
        1 where the label is the class, else 0.
    ones : (m,) float64
        All 1.
    target : (m,) float64
        Room for the targets.
    start : (3,) float64
        Slope, offset and centre to start from; a slope that is not below 0 stands for none. The optimum is the
        same from every start, up to about 1e-14 of a logit.
    fitted : (3,) float64
        Set to slope <= 0, offset and centre of p = 1 / (1 + exp(slope (f - centre) + offset)).
    """
    m = f.shape[0]
    positive, above, below, within = moments(f, positives)
    low, high = extremes(f)
    of_positive = (positive + 1.0) / (positive + 2.0)
    of_negative = 1.0 / (m - positive + 2.0)
    if positive == 0 or positive == m or not low < high or not above > below:
        # The optimum over slopes >= 0 is the constant map.
        mean = (positive * of_positive + (m - positive) * of_negative) / m
        fitted[0] = 0.0
        fitted[1] = np.log((1.0 - mean) / mean)
        fitted[2] = low
        return True
    for i in range(m):
        target[i] = of_negative + positives[i] * (of_positive - of_negative)
    odds = np.log((m - positive + 1.0) / (positive + 1.0))
    slope, offset, centre = start[0], start[1], start[2]
    some, wanted = f, target
    if not slope < 0.0:
        # As if both classes were normal, of equal variance; no logit beyond 8.
        offset, centre = odds, 0.5 * (above + below)
        slope = -min((above - below) / max(within, 1e-300), 8.0 / max(high - centre, centre - low))
        if m >= MANY:  # some of the examples know nearly as well, at an eighth of the price
            some, wanted = f[::THIN].copy(), target[::THIN].copy()
    flat = done = False
    while not done:  # a single call of newton: each is compiled into this loop
        few = some.shape[0]
        slope, offset, centre, done = newton(some, wanted, ones[:few], low, high, slope, offset, centre)
        if few < m:
            some, wanted, done = f, target, False
        elif flat:
            break
        elif not done:
            slope, offset, centre, flat = 0.0, odds, below + positive / m * (above - below), True
    fitted[0] = slope
    fitted[1] = offset
    fitted[2] = centre
    return done


@compiled
def loss_of(f, positives, fitted, root):  # type: ignore[no-untyped-def]
    """Return the sum of the log losses of a sigmoid of the scores on the labels, given its `roots`.

    It is added up in four lanes, which are written out: the sum does not depend on the processor.
    """
    m = f.shape[0]
    slope, offset, centre = fitted[0], fitted[1], fitted[2]
    loss = 0.0
    for first in range(0, m, CHUNK):
        last = min(first + CHUNK, m)
        whole = last - (last - first) % 4
        a, b, c, d = loss, 0.0, 0.0, 0.0
        p, q, r, s = 1.0, 1.0, 1.0, 1.0
        for i in range(first, whole, 4):
            p, a = one_more(p, a, f[i], positives[i], root[i], slope, offset, centre)
            q, b = one_more(q, b, f[i + 1], positives[i + 1], root[i + 1], slope, offset, centre)
            r, c = one_more(r, c, f[i + 2], positives[i + 2], root[i + 2], slope, offset, centre)
            s, d = one_more(s, d, f[i + 3], positives[i + 3], root[i + 3], slope, offset, centre)
        product, loss = (p * r) * (q * s), (a + c) + (b + d)
        for i in range(whole, last):
            product, loss = one_more(product, loss, f[i], positives[i], root[i], slope, offset, centre)
        loss += np.log(product)
    return loss


@compiled
def one_more(product, loss, score, positive, root, slope, offset, centre):  # type: ignore[no-untyped-def]
    """Return the product of all 1 + e^-|u|, and the rest of the loss, with one more example."""
    u = slope * (score - centre) + offset
    loss += (positive - 1.0) * u
    return product * (1.0 + root * root), loss + max(u, 0.0)


@compiled
def forecast(f, fitted, out):  # type: ignore[no-untyped-def]
    """Set `out`, which holds its `roots`, to the sigmoid of the scores."""
    slope, offset, centre = fitted[0], fitted[1], fitted[2]
    for i in range(f.shape[0]):
        u = slope * (f[i] - centre) + offset
        e = out[i] * out[i]
        out[i] = (e if u >= 0.0 else 1.0) / (1.0 + e)


@compiled
def weigh(losses, rate, weights):  # type: ignore[no-untyped-def]
    """Set `weights` (M,), of sum 1, in proportion to exp(-rate loss)."""
    least = losses[0]
    for j in range(1, losses.shape[0]):
        least = min(least, losses[j])
    total = 0.0
    for j in range(losses.shape[0]):
        weights[j] = np.exp(-rate * (losses[j] - least))
        total += weights[j]
    for j in range(losses.shape[0]):
        weights[j] /= total


@compiled
def mixture_tables(negative, positive, labels, rate, start, below, above):  # type: ignore[no-untyped-def]
    """Set `below` and `above` to the mixed forecasts of all examples under both suppositions about the new one.

    Parameters
    ----------
    negative, positive : (M, c, >= m) float64
        Scores by every machine, if the new example is supposed not of the class, and if it is.
    labels : (m,) int64
        Class codes; the new example is the last, its code means nothing.
    rate : float > 0
    start : (M, c, 3) float64
        Sigmoids fitted to all examples but the new one: Newton's method then needs two or three steps, not eight.
    below, above : (c, m) float64

    Returns
    -------
    failed : int
        The first machine whose sigmoid could not be fitted, or -1.
    """
    machines, c, m = negative.shape[0], negative.shape[1], labels.shape[0]
    f = np.empty(m)
    target = np.empty(m)
    positives = np.empty(m)
    ones = np.ones(m)
    p = np.empty((machines, m))
    fitted = np.empty((machines, 3))
    losses = np.empty(machines)
    weights = np.empty(machines)
    for k in range(1 if c == 2 else c):
        for j in range(machines):
            for i in range(3):
                fitted[j, i] = start[j, k, i]
        for i in range(m):
            positives[i] = 1.0 if labels[i] == k else 0.0
        for side in range(2):
            positives[m - 1] = side
            for j in range(machines):
                on_grid(positive[j, k] if side == 1 else negative[j, k], m, f)
                if not fit_rising(f, positives, ones, target, fitted[j], fitted[j]):
                    return j
                roots(f, fitted[j, 0], fitted[j, 1], fitted[j, 2], p[j])
                losses[j] = loss_of(f, positives, fitted[j], p[j])
                forecast(f, fitted[j], p[j])
            weigh(losses, rate, weights)
            out = above[k] if side == 1 else below[k]
            mix(weights, p, out)
    if c == 2:
        for i in range(m):
            below[1, i] = 1.0 - above[0, i]
            above[1, i] = 1.0 - below[0, i]
    return -1


@compiled
def mix(weights, p, out):  # type: ignore[no-untyped-def]
    """Set `out` (m,) to the weighted mean of the rows of `p` (M, m)."""
    out[:] = 0.0
    for j in range(p.shape[0]):
        weight, row = weights[j], p[j]
        for i in range(out.shape[0]):
            out[i] += weight * row[i]


@compiled
def fit_mixture(scores, labels, rate, maps, weights):  # type: ignore[no-untyped-def]
    """Fit a mixture to scored examples: set `maps` (M, c, 3) and `weights` (c, M).

    Parameters
    ----------
    scores : (M, c, m) float64, m >= 1
    labels : (m,) int64
    rate : float > 0

    Returns
    -------
    failed : int
        The first machine whose sigmoid could not be fitted, or -1.
    """
    machines, c, m = scores.shape
    f = np.empty(m)
    target = np.empty(m)
    positives = np.empty(m)
    ones = np.ones(m)
    losses = np.empty(machines)
    maps[:] = 0.0
    for k in range(1 if c == 2 else c):
        for i in range(m):
            positives[i] = 1.0 if labels[i] == k else 0.0
        for j in range(machines):
            on_grid(scores[j, k], m, f)
            if not fit_rising(f, positives, ones, target, maps[j, k], maps[j, k]):
                return j
            roots(f, maps[j, k, 0], maps[j, k, 1], maps[j, k, 2], target)
            losses[j] = loss_of(f, positives, maps[j, k], target)
        weigh(losses, rate, weights[k])
    return -1


@compiled
def apply_mixture(maps, weights, scores, out):  # type: ignore[no-untyped-def]
    """Set `out` (c, m) to the mixed forecasts of m objects, from their scores (M, c, m)."""
    machines, c, m = scores.shape
    for k in range(1 if c == 2 else c):
        for i in range(m):
            g = 0.0
            for j in range(machines):
                score = rank(scores[j, k, i], 0.0) / GRID
                g += weights[k, j] * sigmoid(maps[j, k, 0] * (score - maps[j, k, 2]) + maps[j, k, 1])
            out[k, i] = g
    if c == 2:
        for i in range(m):
            out[1, i] = 1.0 - out[0, i]


# ----------------------------------------------------------------------------------------------------------------- pool
# The log-linear pool of several forecasts: the product of their powers, normalised, and its log loss.


@compiled
def pooled(logs, exponents, biases, out):  # type: ignore[no-untyped-def]
    """Set `out` (c,) to the pool of forecasts, whose logarithms are (m, c); return the largest logarithm's norm."""
    m, c = logs.shape
    most = -math.inf
    for k in range(c):
        total = biases[k]
        for i in range(m):
            total += exponents[i] * logs[i, k]
        out[k] = total
        most = max(most, total)
    norm = 0.0
    for k in range(c):
        out[k] = math.exp(out[k] - most)
        norm += out[k]
    for k in range(c):
        out[k] /= norm
    return most + math.log(norm)


@compiled
def pool_loss(logs, codes, exponents, biases, by_exponent, by_bias):  # type: ignore[no-untyped-def]
    """Return the log loss of the pool on n examples; set its gradients by exponents (m,) and biases (c,).

    Parameters
    ----------
    logs : (n, m, c) float64
        Logarithms of the forecasts.
    codes : (n,) int64
        Class codes of the labels.
    """
    n, m, c = logs.shape
    by_exponent[:], by_bias[:] = 0.0, 0.0
    q = np.empty(c)
    loss = 0.0
    for t in range(n):
        code = codes[t]
        loss += pooled(logs[t], exponents, biases, q) - biases[code]
        for i in range(m):
            loss -= exponents[i] * logs[t, i, code]
        q[code] -= 1.0
        for i in range(m):
            total = 0.0
            for k in range(c):
                total += q[k] * logs[t, i, k]
            by_exponent[i] += total
        for k in range(c):
            by_bias[k] += q[k]
    return loss


# ------------------------------------------------------------------------------------------------------------ learners
# What the parts of a stack say of n objects: see `venn.machines.stack`. Nothing is rounded otherwise than by numpy.


@plainly
def sum_of(row):  # type: ignore[no-untyped-def]
    """Return the sum of numbers as numpy adds up to 128: from eight on in eight interleaved sums."""
    whole = len(row) - len(row) % 8
    total = 0.0
    if whole:
        a0, a1, a2, a3, a4, a5, a6, a7 = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        for k in range(8, whole, 8):
            a0 += row[k]
            a1 += row[k + 1]
            a2 += row[k + 2]
            a3 += row[k + 3]
            a4 += row[k + 4]
            a5 += row[k + 5]
            a6 += row[k + 6]
            a7 += row[k + 7]
        total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for k in range(whole, len(row)):
        total += row[k]
    return total


@plainly
def to_shares(row):  # type: ignore[no-untyped-def]
    """Replace logarithms (c,) by the shares of sum 1."""
    most = row[0]
    for value in row:
        most = max(most, value)
    for k in range(len(row)):
        row[k] = math.exp(row[k] - most)
    total = sum_of(row)
    for k in range(len(row)):
        row[k] /= total


@plainly
def logarithm(share, floor, c):  # type: ignore[no-untyped-def]
    """Return the logarithm of one of c probabilities, none of which counts as 0; NaN: all classes are alike."""
    return math.log((1.0 - floor) * (1.0 / c if math.isnan(share) else share) + floor / c)


@plainly
def learners_say(by_forest, by_extra, boosted, scores, present, said):  # type: ignore[no-untyped-def]
    """Set said (3, n, c) to the probabilities of all classes by two forests, boosted trees and a regression.

    Returns
    -------
    bool
        Whether all say something of c classes; if not nothing is set.

    Parameters
    ----------
    by_forest, by_extra, boosted : (n, c) float64
    scores : (n, k) float64
        Of the regression; (n, 1) where there are two classes, of the second one.
    present : (k,) int64
        Codes of the classes of the regression; it gives 0 to others.
    """
    n, c = said.shape[1:]
    if by_forest.shape[1] != c or by_extra.shape[1] != c or boosted.shape[1] != c:
        return False
    row, first = np.empty(len(present)), len(present) - scores.shape[1]
    for t in range(n):
        for k in range(c):
            said[0, t, k] = (by_forest[t, k] + by_extra[t, k]) / 2.0
            said[1, t, k] = boosted[t, k]
            said[2, t, k] = 0.0
        row[0] = 0.0
        for k in range(scores.shape[1]):
            row[first + k] = scores[t, k]
        to_shares(row)
        for k in range(len(present)):
            said[2, t, present[k]] = row[k]
    return True


@plainly
def raise_to_powers(said, powers, floor):  # type: ignore[no-untyped-def]
    """Replace the probabilities (m, n, c) of each part by their normalised powers (m,); by NaN where that is 0."""
    m, n, c = said.shape
    row = np.empty(c)
    for i in range(m):
        if powers[i] != 1.0:
            for t in range(n):
                for k in range(c):
                    row[k] = powers[i] * logarithm(said[i, t, k], floor, c)
                to_shares(row)
                for k in range(c):
                    said[i, t, k] = np.nan if powers[i] == 0.0 or math.isnan(said[i, t, k]) else row[k]


@plainly
def product_of_powers(said, powers, biases, floor, out):  # type: ignore[no-untyped-def]
    """Set out (n, c) to the logarithms of the product of powers of probabilities (m, n, c), plus biases (c,)."""
    m, n, c = said.shape
    for t in range(n):
        for k in range(c):
            total = biases[k]
            for i in range(m):
                total += powers[i] * logarithm(said[i, t, k], floor, c)
            out[t, k] = total


# -------------------------------------------------------------------------------------------------------------- experts
# Forecasts of experts and their pool, weighed by their past: see `venn.predictors.expert_mixture`.


@compiled
def shares_of_scores(scores, log_odds, out):  # type: ignore[no-untyped-def]
    """Set `out` (n, c) to probabilities by (n, c) scores: logarithms of odds, or probabilities that may be just off."""
    n, c = scores.shape
    for i in range(n):
        total = 0.0
        for k in range(c):
            value = scores[i, k]
            out[i, k] = 1.0 / (1.0 + math.exp(-value)) if log_odds else min(max(value, 0.0), 1.0)
            total += out[i, k]
        for k in range(c):
            out[i, k] = out[i, k] / total if total > 0.0 else 1.0 / c


@compiled
def log_sum(a, b):  # type: ignore[no-untyped-def]
    """Return ln(e^a + e^b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@compiled
def mix_experts(each, codes, seen, shares, dealt, powers, biases, sums, logs, out):  # type: ignore[no-untyped-def]
    """Mix what experts say of n examples in turn; weigh them by each label before the next one.

    One example is a block of one: so a block says what its examples say one by one, to the last bit.

    Parameters
    ----------
    each : (n, m, c) float64
        Probabilities by m experts, NaN where one says nothing.
    codes : (n,) int64
        Class codes; -1 for an object that is only asked about.
    seen : int
        Number of examples before.
    shares : (3,) float64
        Logarithm of the share of a weight that is kept; share of the uniform distribution in what an expert says, and
        after how many examples that begins to fall.
    dealt : (2, m + 1) float64
        Logarithms of what is dealt out to each, and of what each keeps at least.
    powers, biases : (m,) and (c,) float64
        Of the pool: of the experts, and logarithms of factors of the classes.
    sums : (4, m + 1) float64, changed
        Logarithms of weights, losses and allowances, of the experts and the pool; the first number of the last row is
        the loss of the mixture.
    logs : (n, m + 1, c) float64
        Set to the logarithms of what counts as said by the experts and the pool.
    out : (n, c) float64
        Set to the forecasts.
    """
    n, m, c = each.shape
    weights, losses, allowance, loss = sums
    said, exponents, share = np.empty((m + 1, c)), np.empty(m), np.empty(m + 1)
    for t in range(n):
        floor = shares[1] * shares[2] / max(seen, shares[2])
        awake, power = 0, 0.0
        for i in range(m):
            sleeps = np.isnan(each[t, i, 0])
            awake += 0 if sleeps else 1
            exponents[i] = 0.0 if sleeps else powers[i]
            power += exponents[i]
            share[i] = 0.0 if sleeps else math.exp(weights[i])
            for k in range(c):
                said[i, k] = 1.0 if sleeps else each[t, i, k] * (1.0 - floor) + floor / c
                logs[t, i, k] = math.log(said[i, k])
        if power == 0.0 and 0 < awake < m:  # nobody who is awake was in the pool
            for i in range(m):
                exponents[i] = 0.0 if np.isnan(each[t, i, 0]) else 1.0 / awake
        share[m] = math.exp(weights[m])
        pooled(logs[t, :m], exponents, biases, said[m])
        total = 0.0
        for k in range(c):
            said[m, k] = said[m, k] * (1.0 - floor) + floor / c
            logs[t, m, k] = math.log(said[m, k])
            mean = 0.0
            for i in range(m + 1):
                mean += share[i] * said[i, k]
            out[t, k] = mean
            total += mean
        for k in range(c):
            out[t, k] /= total
        for i in range(m):
            if np.isnan(each[t, i, 0]):  # it counts as if it had said what the others say together
                for k in range(c):
                    logs[t, i, k] = math.log(out[t, k])
        code = codes[t]
        if code < 0:
            continue
        seen += 1
        loss[0] -= math.log(out[t, code])
        top = -math.inf
        for i in range(m + 1):
            lost = -logs[t, i, code]
            losses[i] += lost
            allowance[i] -= dealt[1, i]
            weights[i] -= lost
            top = max(top, weights[i])
        norm = 0.0
        for i in range(m + 1):
            norm += math.exp(weights[i] - top)
        norm = top + math.log(norm)
        for i in range(m + 1):
            weights[i] = log_sum(weights[i] - norm + shares[0], dealt[0, i])
