"""Defensive forecasting: the forecast at which no test of the kernel gains, and features of forecasts and objects.

The Gaussian kernel of two forecasts, exp(-gamma (p - q)^2), is a scalar product of features exp(-gamma p^2) c_j p^j,
where c_j^2 = (2 gamma)^j / j!. As many of these are taken as double precision can tell. So the sum over all past
forecasts is a polynomial, and costs nothing that grows with their number.
"""

import numpy as np

from venn._compiled.jit import compiled

HALVINGS = 64  # of [0, 1]: until neighbouring numbers are left


@compiled
def add_features(p, gamma, roots, weight, sums):  # type: ignore[no-untyped-def]
    """Add weight times the features of the forecast p to sums (J,)."""
    power = weight * np.exp(-gamma * p * p)
    for j in range(roots.shape[0]):
        sums[j] += power * roots[j]
        power *= p


@compiled
def read_at(g, gamma, roots, sums):  # type: ignore[no-untyped-def]
    """Return the product of sums (J,) with the features of the forecast g."""
    value = 0.0
    for j in range(roots.shape[0] - 1, -1, -1):
        value = value * g + sums[j] * roots[j]
    return value * np.exp(-gamma * g * g)


@compiled
def defensive_forecast(gamma, roots, sums, of_object, own):  # type: ignore[no-untyped-def]
    """Return the forecast p, and S(p) without its last term, where S is 0 or forces the outcome.

    S(g) = sum_i r_i k((g, x), (p_i, x_i)) + (1/2 - g) k((g, x), (g, x)).

    Parameters
    ----------
    gamma : float
    roots : (J,) float64, c_j
    sums : (J,) float64, sum of r_i times the features of p_i
    of_object : float, sum of r_i K(x_i, x)
    own : float, 1 + K(x, x)
    """
    at_low = read_at(0.0, gamma, roots, sums) + of_object + 0.5 * own
    at_high = read_at(1.0, gamma, roots, sums) + of_object - 0.5 * own
    if at_low >= 0.0 and at_high >= 0.0:
        return 1.0, at_high + 0.5 * own
    if at_low <= 0.0 and at_high <= 0.0:
        return 0.0, at_low - 0.5 * own
    low, high = 0.0, 1.0
    falls = at_low > 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        value = read_at(middle, gamma, roots, sums) + of_object + (0.5 - middle) * own
        if value == 0.0:
            low = middle
            break
        if (value > 0.0) == falls:
            low = middle
        else:
            high = middle
    return low, read_at(low, gamma, roots, sums) + of_object


@compiled
def coordinates(factor, m, row, out):  # type: ignore[no-untyped-def]
    """Set out[:m] to the coordinates of an object by m landmarks; return the sum of their squares.

    Parameters
    ----------
    factor : (>= m, >= m) float64, lower triangular, factor factor' is the kernel of the landmarks
    row : (>= m,) float64, kernel of the object with the landmarks
    """
    total = 0.0
    for i in range(m):
        value = row[i]
        for j in range(i):
            value -= factor[i, j] * out[j]
        out[i] = value / factor[i, i]
        total += out[i] * out[i]
    return total
