"""Values of an RBF kernel from inner products, for machines whose examples overlap."""

import numpy as np

from venn._compiled.jit import compiled

TILE = 256
LOG2E = 1.4426950408889634
LOWEST = -1021.0  # smaller exponents of 2 give no normal numbers and are replaced by this one
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which its last bits then hold
LN2 = 0.6931471805599453
T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12 = (LN2**k / np.prod(np.arange(1.0, k + 1)) for k in range(2, 13))


@compiled
def rbf_values(products, row_norms, column_norms, columns, gamma, out):  # type: ignore[no-untyped-def]
    """Set out[i, j] to exp(-gamma |x_i - s_k|^2), k = columns[j].

    2^z is 2^k, built by writing k into the bits of an exponent, times the Taylor polynomial of 2^(z - k), |z - k| <=
    1/2. The relative error is a few 1e-16, plus gamma times the error of the squared distance, which is a difference.
    This is twice as fast as numpy's `exp`, which has float64 vectors only with AVX-512, and it also handles gaps
    between columns.

    Parameters
    ----------
    products : (n, m) float64
        Inner products of x_i and s_k.
    row_norms : (n,) float64
        Squared lengths of x_i.
    column_norms : (m,) float64
        Squared lengths of s_k.
    columns : (u,) uint64
    gamma : float > 0
    out : (>= n, u) float64, rows of which n are filled
    """
    n, u = len(row_norms), len(columns)
    power, shifted, part = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    bits, scale = shifted.view(np.int64), shifted
    factor = gamma * LOG2E
    for i in range(n):
        row, norm, target = products[i], row_norms[i], out[i]
        for start in range(0, u, TILE):
            tile = columns[start : start + TILE]
            values = target[start : start + TILE]
            size = len(tile)
            for j in range(size):
                k = tile[j]
                power[j] = norm + column_norms[k] - 2.0 * row[k]
            for j in range(size):
                z = max(-factor * max(power[j], 0.0), LOWEST)
                near = z + ROUNDER
                r = z - (near - ROUNDER)
                shifted[j] = near
                p = T12
                p = p * r + T11
                p = p * r + T10
                p = p * r + T9
                p = p * r + T8
                p = p * r + T7
                p = p * r + T6
                p = p * r + T5
                p = p * r + T4
                p = p * r + T3
                p = p * r + T2
                p = p * r + LN2
                part[j] = p * r + 1.0
            for j in range(size):
                bits[j] = (bits[j] + 1023) << 52
            for j in range(size):
                values[j] = part[j] * scale[j]
