"""Passes over all examples for maps from scores to probabilities; arrays as in `scaling`."""

import numpy as np

from venn._compiled.jit import compiled, in_lanes
from venn._compiled.scaling import falling_exp

UNTOLD = 1e-18  # of a log loss: what a step promises it, and rounding hides


@in_lanes
def softmax_moments(scores, weights, inverse):  # type: ignore[no-untyped-def]
    """Return sums over objects of the mean and variance of an object's scores under softmax(inverse * scores).

    `scores` (c, m) have largest value 0 at each object, `weights` are (m,).
    """
    c, m = scores.shape
    total = np.zeros(m)
    first = np.zeros(m)
    second = np.zeros(m)
    for k in range(c):
        f = scores[k]
        for i in range(m):
            e = falling_exp(inverse * f[i])
            total[i] += e
            first[i] += e * f[i]
            second[i] += e * f[i] * f[i]
    mean = 0.0
    variance = 0.0
    for i in range(m):
        at = first[i] / total[i]
        mean += weights[i] * at
        variance += weights[i] * (second[i] / total[i] - at * at)
    return mean, variance


@compiled
def log_memberships(f, out):  # type: ignore[no-untyped-def]
    """Set `out` (2, m) to ln s and -ln(1 - s) of s = 1 / (1 + e^(-2 f)), for finite results."""
    for i in range(f.shape[0]):
        tail = np.log1p(np.exp(-2.0 * abs(f[i])))
        both = 2.0 * max(-8e307, min(8e307, f[i]))
        out[0, i] = min(both, 0.0) - tail
        out[1, i] = max(both, 0.0) + tail


@in_lanes
def logistic_pass(x, target, weights, beta, curvature):  # type: ignore[no-untyped-def]
    """Return the gradient (3,) of the log loss of logits beta[0] x[0] + beta[1] x[1] + beta[2]; add to the curvature.

    `target` in [0, 1] and `weights`, (m,); `curvature` (3, 3), of which the upper triangle is set.
    """
    g0 = g1 = g2 = 0.0
    h00 = h01 = h02 = h11 = h12 = h22 = 0.0
    first, second = x[0], x[1]
    for i in range(target.shape[0]):
        u = beta[0] * first[i] + beta[1] * second[i] + beta[2]
        e = falling_exp(-abs(u))
        q = 1.0 / (1.0 + e)
        # p and 1 - p, both accurate near 0; so the residual is too.
        small = e * q
        p = q if u >= 0.0 else small
        r = small if u >= 0.0 else q
        g = weights[i] * ((1.0 - target[i]) * p - target[i] * r)
        d = weights[i] * small * q
        g0 += g * first[i]
        g1 += g * second[i]
        g2 += g
        h00 += d * first[i] * first[i]
        h01 += d * first[i] * second[i]
        h02 += d * first[i]
        h11 += d * second[i] * second[i]
        h12 += d * second[i]
        h22 += d
    gradient = np.array([g0, g1, g2])
    curvature[0, 0], curvature[0, 1], curvature[0, 2] = h00, h01, h02
    curvature[1, 0], curvature[1, 1], curvature[1, 2] = h01, h11, h12
    curvature[2, 0], curvature[2, 1], curvature[2, 2] = h02, h12, h22
    return gradient


@compiled
def logistic_loss(x, target, weights, ridge, beta):  # type: ignore[no-untyped-def]
    """Return the log loss of those logits, and half the `ridge` (3,) times the squares of `beta`."""
    value = 0.0
    for i in range(target.shape[0]):
        u = beta[0] * x[0, i] + beta[1] * x[1, i] + beta[2]
        value += weights[i] * (max(u, 0.0) - target[i] * u + np.log1p(np.exp(-abs(u))))
    for j in range(3):
        value += 0.5 * ridge[j] * beta[j] * beta[j]
    return value


@in_lanes
def reach_of(x, step):  # type: ignore[no-untyped-def]
    """Return the largest |step[0] x[0] + step[1] x[1] + step[2]|."""
    largest = 0.0
    for i in range(x.shape[1]):
        largest = max(largest, abs(step[0] * x[0, i] + step[1] * x[1, i] + step[2]))
    return largest


@compiled
def free_step(gradient, curvature, free, step, room):  # type: ignore[no-untyped-def]
    """Set `step` (3,) to Newton's step over the `free` numbers, 0 for others; return whether there is one.

    Elimination with pivots of the curvature in units of its diagonal; `room` is (3, 4).
    """
    for j in range(3):
        step[j] = 0.0
        for k in range(3):
            both = free[j] and free[k]
            here = curvature[min(j, k), max(j, k)]
            room[j, k] = here / np.sqrt(curvature[j, j] * curvature[k, k]) if both else (1.0 if j == k else 0.0)
        room[j, 3] = -gradient[j] / np.sqrt(curvature[j, j]) if free[j] else 0.0
    for j in range(3):
        best = j
        for k in range(j + 1, 3):
            best = k if abs(room[k, j]) > abs(room[best, j]) else best
        if not abs(room[best, j]) > 0.0:
            return False
        for k in range(4):
            room[j, k], room[best, k] = room[best, k], room[j, k]
        for row in range(j + 1, 3):
            share = room[row, j] / room[j, j]
            for k in range(j, 4):
                room[row, k] -= share * room[j, k]
    for j in range(2, -1, -1):
        rest = room[j, 3]
        for k in range(j + 1, 3):
            rest -= room[j, k] * room[k, 3]
        room[j, 3] = rest / room[j, j]
        step[j] = room[j, 3] / np.sqrt(curvature[j, j]) if free[j] else 0.0
    return True


@compiled
def fit_logistic(x, target, weights, ridge, beta, iterations, last_step):  # type: ignore[no-untyped-def]
    """Move `beta` (3,) to the least log loss over slopes beta[:2] >= 0; return whether that was reached.

    Newton's method over the free slopes: those > 0, and those at 0 that loss and step want larger. A step ends where
    it meets a bound. As long as no logit moves by more than 1, the curvature grows by at most a factor e, and a full
    step decreases the loss by more than a quarter of what its slope promises; longer steps are halved until they
    decrease it, too.

    It is reached when no logit moves by more than `last_step`, or when a step promises the loss, of order 1, less than
    rounding leaves of it: logits that are certain already may move, and nothing else says by how much.
    """
    curvature = np.empty((3, 3))
    room = np.empty((3, 4))
    step = np.empty(3)
    moved = np.empty(3)
    free = np.ones(3, np.bool_)
    for _ in range(iterations):
        gradient = logistic_pass(x, target, weights, beta, curvature)
        for j in range(3):
            gradient[j] += ridge[j] * beta[j]
            curvature[j, j] += ridge[j]
        for j in range(2):
            free[j] = beta[j] > 0.0 or gradient[j] < 0.0
        while True:
            if not free_step(gradient, curvature, free, step, room):
                return False
            outside = False
            for j in range(2):
                if beta[j] == 0.0 and step[j] < 0.0:
                    free[j] = False
                    outside = True
            if not outside:
                break
        reach = reach_of(x, step)
        if not np.isfinite(reach):
            return False
        promise = gradient[0] * step[0] + gradient[1] * step[1] + gradient[2] * step[2]
        length = 1.0
        for j in range(2):
            if step[j] < 0.0:
                length = min(length, -beta[j] / step[j])
        if reach > 1.0:
            before = logistic_loss(x, target, weights, ridge, beta)
            while length * reach > 1.0:
                for j in range(3):
                    moved[j] = beta[j] + length * step[j]
                if logistic_loss(x, target, weights, ridge, moved) <= before + 1e-4 * length * promise:
                    break
                length *= 0.5
        for j in range(3):
            met = j < 2 and step[j] < 0.0 and length >= -beta[j] / step[j]
            beta[j] = 0.0 if met else beta[j] + length * step[j]
        if reach <= last_step or (reach <= 1.0 and -promise <= UNTOLD):
            return True
    return False
