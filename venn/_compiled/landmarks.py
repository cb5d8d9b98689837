"""Kernel machines on landmarks: what several of them say together of each object."""

import numpy as np

from venn._compiled.jit import in_lanes
from venn._compiled.rows import average, differences_row, dot_row


@in_lanes
def landmark_scores(columns, objects, rates, linear, rate, powers, coefficients, bases, out):  # type: ignore[no-untyped-def]
    """Add to `out` (n, c) the scores of machines with one kernel, each times its power.

    A row has the same scores in a block as alone, to the last bit.

    Parameters
    ----------
    columns : (d, m) float64
        Landmarks.
    objects : (n, d) float64
    rates : (w,) float64
        Of `MultiscaleLaplacian`, and the share and the rate of its linear part.
    powers : (j,) float64
    coefficients : (j, c, m) float64
    bases : (j, c) float64
    """
    m = columns.shape[1]
    row, part = np.empty(m), np.empty(m)
    for t in range(objects.shape[0]):
        differences_row(columns, m, objects[t], row)
        average(rates, m, row)
        dot_row(columns, m, objects[t], part)
        for i in range(m):
            row[i] = (1.0 - linear) * row[i] + linear * rate * part[i]
        for j in range(powers.size):
            if powers[j] != 0.0:
                for k in range(out.shape[1]):
                    total = 0.0
                    weights = coefficients[j, k]
                    for i in range(m):
                        total += weights[i] * row[i]
                    out[t, k] += powers[j] * (bases[j, k] + total)
