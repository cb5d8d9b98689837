"""The log-linear pool of several forecasts: the product of their powers, normalised, and its log loss."""

import math

import numpy as np

from venn._compiled.jit import compiled


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
