"""Loops over sparse rows: one object against all stored ones, and through a linear scorer.

A row is a slice of `indices`, ascending, and `values`, none of them zero.
"""

from typing import Any, NamedTuple

import numpy as np

from venn._compiled.jit import compiled


class Rows(NamedTuple):
    """Sparse rows; their entries may be anywhere in the two long arrays."""

    starts: Any  # (>= n,) int64, where the entries of a row begin
    stops: Any  # (>= n,) int64, where they end
    indices: Any  # int32
    values: Any  # float64


@compiled
def sparse_dot_row(rows, n, x, work, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = <x_i, x>, to the last bit as `dot_row` does; `work` (d,) holds zeros, before and after."""
    first, last = x.starts[0], x.stops[0]
    for j in range(first, last):
        work[x.indices[j]] = x.values[j]
    for i in range(n):
        total = 0.0
        for j in range(rows.starts[i], rows.stops[i]):
            total += rows.values[j] * work[rows.indices[j]]
        out[i] = total
    for j in range(first, last):
        work[x.indices[j]] = 0.0


@compiled
def sparse_squares_row(rows, n, x, work, out):  # type: ignore[no-untyped-def]
    """Set out[:n] = |x_i - x|^2; `work` (d,) holds zeros, before and after.

    Differences come first, so that nothing cancels: |x_i|^2 + |x|^2 - 2 <x_i, x> would lose the distance of near
    duplicates. First come the entries of the stored row, then the other entries of x: sums agree with `squares_row` up
    to the last bits. Merging the two lists of indices would add in the same order, but take 8.7 ms for 2000 rows of 100
    entries where this takes 1.1.
    """
    first, last = x.starts[0], x.stops[0]
    for j in range(first, last):
        work[x.indices[j]] = x.values[j]
    for i in range(n):
        total = 0.0
        for j in range(rows.starts[i], rows.stops[i]):
            f = rows.indices[j]
            difference = rows.values[j] - work[f]
            total += difference * difference
            work[f] = 0.0
        for j in range(first, last):
            f = x.indices[j]
            total += work[f] * work[f]
            work[f] = x.values[j]
        out[i] = total
    for j in range(first, last):
        work[x.indices[j]] = 0.0


@compiled
def sparse_differences_row(rows, n, x, work, out):  # type: ignore[no-untyped-def]
    """Set out[:n] to the sums of the absolute differences of x_i and x; `work` (d,) holds zeros, before and after.

    The order of the terms is that of `sparse_squares_row`.
    """
    first, last = x.starts[0], x.stops[0]
    for j in range(first, last):
        work[x.indices[j]] = x.values[j]
    for i in range(n):
        total = 0.0
        for j in range(rows.starts[i], rows.stops[i]):
            f = rows.indices[j]
            total += abs(rows.values[j] - work[f])
            work[f] = 0.0
        for j in range(first, last):
            f = x.indices[j]
            total += abs(work[f])
            work[f] = x.values[j]
        out[i] = total
    for j in range(first, last):
        work[x.indices[j]] = 0.0


@compiled
def sparse_linear_scores(rows, n, weights, bias, out):  # type: ignore[no-untyped-def]
    """Set out[i, k] to bias[k] + sum_f X[i, f] * weights[k, f], to the last bit as `linear_scores` does.

    Parameters
    ----------
    rows : Rows
    n : int
    weights : (c, d) float64
    bias : (c,) float64
    out : (n, c) float64
    """
    d = weights.shape[1]
    whole = d - d % 8
    a = np.empty(8)
    for i in range(n):
        for k in range(len(bias)):
            w = weights[k]
            a[:] = 0.0
            # Into the same sums as in `linear_scores`.
            for j in range(rows.starts[i], rows.stops[i]):
                f = rows.indices[j]
                a[f % 8 if f < whole else 0] += rows.values[j] * w[f]
            out[i, k] = ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])) + bias[k]
