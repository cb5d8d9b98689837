"""Venn-Abers on a mixture of machines by definition: every sigmoid, weight and isotonic fit anew."""

import numpy as np
from scipy.special import expit

from naive import least_squares
from naive.abers import fit_at_last
from naive.venn import on_grid


def rising_sigmoid(f, y):
    """Return the forecasts of Platt's sigmoid of (m,) scores, fitted to labels 0 and 1, its slope not below 0."""
    positive, m = sum(y), len(y)
    high, low = (positive + 1) / (positive + 2), 1 / (m - positive + 2)
    t = np.where(np.array(y) == 1, high, low)
    z = (f - f.mean()) / max(np.ptp(f), 1e-12)
    if positive in (0, m) or not z @ (t - t.mean()) > 1e-12:
        return np.full(m, t.mean())

    def loss(beta):
        u = beta[0] * z + beta[1]
        return np.sum(np.logaddexp(0, u) - t * u)

    beta = np.zeros(2)
    for _ in range(500):
        p = expit(beta[0] * z + beta[1])
        gradient = np.array([z @ (p - t), np.sum(p - t)])
        d = p * (1 - p)
        step = np.linalg.solve([[d @ (z * z), d @ z], [d @ z, d.sum()]], gradient)
        length = 1.0
        while loss(beta - length * step) > loss(beta) + 1e-12 and length > 1e-9:
            length /= 2
        beta = beta - length * step
        if abs(step).max() < 1e-12:
            break
    return expit(beta[0] * z + beta[1])


def mixed(scores, y, rate):
    """Return the (m,) mixed forecasts from (M, m) scores and labels 0 and 1."""
    y = np.array(y)
    P = np.array([rising_sigmoid((np.rint(f * 1e6 + 0.2718281828)) / 1e6, y) for f in scores])
    L = np.array([-np.mean(np.log(np.where(y == 1, p, 1 - p))) for p in P])
    w = np.exp(-rate * len(y) * (L - L.min()))
    return w / w.sum() @ P


def forecasts(kernels, penalties, y, c, rate):
    """Return (m, c) mixed forecasts of examples by their (m, m) kernel matrices, and their labels."""
    machines = [least_squares.leave_one_out(K, y, c, C) for K in kernels for C in penalties]
    columns = [mixed([s[:, k] for s in machines], np.array(y) == k, rate) for k in range(c)]
    if c == 2:
        columns[1] = 1 - columns[0]
    return np.column_stack(columns)


def pairs(kernels, penalties, labels, c, rate, aside=0):
    """Return (c, 2) pairs for the last of the objects, from the labels of the others.

    The first `aside` examples teach the machines and the mixture, but stand in no bag.
    """
    under = [forecasts(kernels, penalties, np.append(labels, j).astype(int), c, rate) for j in range(c)]
    answer = np.empty((c, 2))
    for k in range(c):
        for side in range(2):
            j = k if side else next(j for j in range(c) if j != k)
            g = on_grid(under[j][aside:, k])
            y = np.append(np.asarray(labels)[aside:] == k, side).astype(float)
            answer[k, side] = fit_at_last(g, y)
    return answer
