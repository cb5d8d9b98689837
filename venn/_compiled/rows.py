"""Kernel rows: distances and products of one dense object with all stored ones, and what kernels make of them.

Objects are stored by feature, (d, capacity).
"""

import math

from venn._compiled.jit import compiled


@compiled
def squares_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = |x_i - x|^2; from differences, so that nothing cancels, and symmetric in the two objects."""
    out[:n] = 0.0
    for f in range(x.shape[0]):
        column, value = columns[f], x[f]
        for i in range(n):
            difference = column[i] - value
            out[i] += difference * difference


@compiled
def differences_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] to the sums of the absolute differences of x_i and x."""
    out[:n] = 0.0
    for f in range(x.shape[0]):
        column, value = columns[f], x[f]
        for i in range(n):
            out[i] += abs(column[i] - value)


@compiled
def gaussians(rate, n, out):  # type: ignore[no-untyped-def]
    """Turn squared distances into exp(-rate |x_i - x|^2); that of x with itself is exactly 1."""
    for i in range(n):
        out[i] = math.exp(-rate * out[i])


@compiled
def gaussians_less_one(rate, n, out):  # type: ignore[no-untyped-def]
    """Turn squared distances into exp(-rate |x_i - x|^2) - 1, to full precision however flat the kernel is."""
    for i in range(n):
        out[i] = math.expm1(-rate * out[i])


@compiled
def average(rates, n, out):  # type: ignore[no-untyped-def]
    """Turn distances D into the mean of exp(-rate D)."""
    for i in range(n):
        total = 0.0
        for rate in rates:
            total += math.exp(-rate * out[i])
        out[i] = total / rates.size


@compiled
def average_less_one(rates, n, out):  # type: ignore[no-untyped-def]
    """Turn distances D into the mean of exp(-rate D), less 1."""
    for i in range(n):
        total = 0.0
        for rate in rates:
            total += math.expm1(-rate * out[i])
        out[i] = total / rates.size


@compiled
def dot_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = <x_i, x>."""
    out[:n] = 0.0
    for f in range(x.shape[0]):
        column, value = columns[f], x[f]
        for i in range(n):
            out[i] += column[i] * value


@compiled
def powers(n, degree, gamma, coef0, out):  # type: ignore[no-untyped-def]
    """Replace inner products by (gamma <x_i, x> + coef0)^degree."""
    for i in range(n):
        base = gamma * out[i] + coef0
        value = 1.0
        for _ in range(degree):
            value *= base
        out[i] = value
