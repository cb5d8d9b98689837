"""Kernel rows: one dense object against all stored ones. Objects are stored by feature, (d, capacity)."""

import math

from venn._compiled.jit import compiled


@compiled
def squares_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = |x_i - x|^2; from differences, so that nothing cancels."""
    out[:n] = 0.0
    for f in range(x.shape[0]):
        column, value = columns[f], x[f]
        for i in range(n):
            difference = column[i] - value
            out[i] += difference * difference


@compiled
def rbf_row(columns, n, x, gamma, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = exp(-gamma |x_i - x|^2); K(x, x) is exactly 1."""
    squares_row(columns, n, x, out)
    for i in range(n):
        out[i] = math.exp(-gamma * out[i])


@compiled
def rbf_proximity_row(columns, n, x, gamma, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = exp(-gamma |x_i - x|^2) - 1, to full precision however flat the kernel is."""
    squares_row(columns, n, x, out)
    for i in range(n):
        out[i] = math.expm1(-gamma * out[i])


@compiled
def multiscale_row(columns, n, x, rates, out):  # type: ignore[no-untyped-def]
    """Set out[:n] to the mean of exp(-rate |x_i - x|^2) over (w,) rates, from one squared distance; K(x, x) is 1."""
    squares_row(columns, n, x, out)
    average(rates, n, out)


@compiled
def average(rates, n, out):  # type: ignore[no-untyped-def]
    """Turn squared distances into the mean of their Gaussians."""
    for i in range(n):
        total = 0.0
        for rate in rates:
            total += math.exp(-rate * out[i])
        out[i] = total / rates.size


@compiled
def multiscale_proximity_row(columns, n, x, rates, out):  # type: ignore[no-untyped-def]
    """Set out[:n] to that mean less 1, all digits of it however flat the kernel is."""
    squares_row(columns, n, x, out)
    average_less_one(rates, n, out)


@compiled
def average_less_one(rates, n, out):  # type: ignore[no-untyped-def]
    """Turn squared distances into the mean of their Gaussians, less 1."""
    for i in range(n):
        total = 0.0
        for rate in rates:
            total += math.expm1(-rate * out[i])
        out[i] = total / rates.size


@compiled
def linear_proximity_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = -|x_i - x|^2 / 2, to full precision however far from the origin the objects are."""
    squares_row(columns, n, x, out)
    for i in range(n):
        out[i] *= -0.5


@compiled
def dot_row(columns, n, x, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = <x_i, x>."""
    out[:n] = 0.0
    for f in range(x.shape[0]):
        column, value = columns[f], x[f]
        for i in range(n):
            out[i] += column[i] * value


@compiled
def power_row(columns, n, x, degree, gamma, coef0, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = (gamma <x_i, x> + coef0)^degree."""
    dot_row(columns, n, x, out)
    powers(n, degree, gamma, coef0, out)


@compiled
def powers(n, degree, gamma, coef0, out):  # type: ignore[no-untyped-def]
    """Replace inner products by (gamma <x_i, x> + coef0)^degree."""
    for i in range(n):
        base = gamma * out[i] + coef0
        value = 1.0
        for _ in range(degree):
            value *= base
        out[i] = value
