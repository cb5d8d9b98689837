"""Loops over rows: weighted sums, kernel rows, sparse rows, landmarks, fitted trees."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.jit import compiled, in_lanes
from venn._compiled.ranks import plainly

# ---------------------------------------------------------------------------------------------------------------- dense
# Weighted sums of matrix rows: the one expensive operation.


@compiled
def add_rows(out, n, matrix, rows, weights, m):  # type: ignore[no-untyped-def]
    """Add sum_j weights[j] * matrix[rows[j], :n] to out[:n], for j < m.

    Eight rows at a time: `out` is then read and written once for eight rows.
    """
    for j in range(0, m, 8):
        # Past the end the last row is used again, with weight 0.
        j1, j2, j3 = min(j + 1, m - 1), min(j + 2, m - 1), min(j + 3, m - 1)
        j4, j5, j6, j7 = min(j + 4, m - 1), min(j + 5, m - 1), min(j + 6, m - 1), min(j + 7, m - 1)
        w0 = weights[j]
        w1 = weights[j1] if j + 1 < m else 0.0
        w2 = weights[j2] if j + 2 < m else 0.0
        w3 = weights[j3] if j + 3 < m else 0.0
        w4 = weights[j4] if j + 4 < m else 0.0
        w5 = weights[j5] if j + 5 < m else 0.0
        w6 = weights[j6] if j + 6 < m else 0.0
        w7 = weights[j7] if j + 7 < m else 0.0
        r0, r1, r2, r3 = matrix[rows[j]], matrix[rows[j1]], matrix[rows[j2]], matrix[rows[j3]]
        r4, r5, r6, r7 = matrix[rows[j4]], matrix[rows[j5]], matrix[rows[j6]], matrix[rows[j7]]
        for i in range(n):
            out[i] += (w0 * r0[i] + w1 * r1[i] + w2 * r2[i] + w3 * r3[i]) + (
                w4 * r4[i] + w5 * r5[i] + w6 * r6[i] + w7 * r7[i]
            )


@compiled
def dot(a, b, n):  # type: ignore[no-untyped-def]
    """Return sum_i a[i] * b[i] for i < n, in four interleaved sums."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    i = 0
    while i + 4 <= n:
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        i += 4
    while i < n:
        s0 += a[i] * b[i]
        i += 1
    return (s0 + s1) + (s2 + s3)


@plainly
def put_on_scale(rows, spread, center, stretch, farthest, out):  # type: ignore[no-untyped-def]
    """Set out (n, d) to the rows on a scale: see `ColumnScale`.

    Parameters
    ----------
    rows : (n, d) float64
    spread, center : (d,) float64
    stretch : (d,) float64, or (0,) for none
    farthest : float

    Returns
    -------
    int
        -1, or the place of the first number that is not finite on the scale, where `farthest` is infinite.
    """
    n, d = rows.shape
    for i in range(n):
        for f in range(d):
            value = (rows[i, f] - center[f]) / spread[f]
            if farthest == np.inf and not np.isfinite(value):
                return i * d + f
            if len(stretch):
                value = math.asinh(value) / stretch[f]
            if value > farthest:
                value = farthest
            elif value < -farthest:
                value = -farthest
            out[i, f] = value
    return -1


@compiled
def copy_row(source, into):  # type: ignore[no-untyped-def]
    """Copy `source` to `into`; the two do not overlap.

    Numba's `into[:] = source` also formats an error for shapes that differ: seconds of compiling.
    """
    for i in range(source.size):
        into[i] = source[i]


# ----------------------------------------------------------------------------------------------------------------- rows
# Kernel rows: distances and products of one dense object with all stored ones, and what kernels make of them.
#
# Objects are stored by feature, (d, capacity).


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


# --------------------------------------------------------------------------------------------------------------- sparse
# Loops over sparse rows: one object against all stored ones, and through a linear scorer.
#
# A row is a slice of `indices`, ascending, and `values`, none of them zero.


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


# ------------------------------------------------------------------------------------------------------------ landmarks
# Kernel machines on landmarks: what several of them say together of each object.


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


# ---------------------------------------------------------------------------------------------------------------- trees
# Rows through fitted trees: from the root of each to a leaf, and the sums of what stands in the leaves.

#: A node that asks a question. Children are numbers of nodes, or -1 - i for row i of the leaves. `how` is 1 where
#: missing values go left, otherwise 0, and 2 (s + 1) more where the node asks for membership in set s. All of it in 24
#: bytes beside each other: five arrays take a fifth longer where trees are larger than the processor's cache.
NODE = np.dtype([("threshold", "f8"), ("left", "i4"), ("right", "i4"), ("column", "i4"), ("how", "i4")])
# Trees walked in turns, a step in each: the processor fetches the nodes of all of them at once, in half the time.
LANES = 8


@plainly
def tree_sums(X, single, missing, places, categories, nodes, roots, leaves, sets, start, mean, out):  # type: ignore[no-untyped-def]
    """Set out[i] to the start plus what stands in the leaves that row i comes to, tree by tree in their order.

    A row's sums do not depend on the other rows, not even in their last bit.

    Returns
    -------
    int
        -1, or the place in X of the first number that is refused; nothing is set then.

    Parameters
    ----------
    X : (n, d) float64
    single : bool
        Whether numbers are rounded to 32 bits first; those too large for this are refused.
    missing : bool
        Whether NaN is taken.
    places : (d + 1,) int64
        Categories of column f are categories[places[f]:places[f + 1]], in order; none where it is no categorical one.
    categories : (q,) float64
    nodes : (N,) NODE
        Children come after their parents.
    roots : (T,) int64
        As children are.
    leaves : (m, w) float64
        Added to all columns of `out` if these are w; if w = 1, tree t is added to column t modulo their number.
    sets : (s, 8) uint32
        Bits of the categories that go left.
    start : (k,) float64
    mean : bool
        Whether sums are divided by the number of trees.
    out : (n, k) float64
    """
    n, d = X.shape
    Z, plain = np.empty((n, d)), True
    for i in range(n):
        for f in range(d):
            value = X[i, f]
            if single:
                value = np.float64(np.float32(value))
            first, end = places[f], places[f + 1]
            if value != value:
                if not missing:
                    return i * d + f
                plain = False
            elif (single or end > first) and not np.isfinite(value):
                return i * d + f
            elif end > first:
                at = first + np.searchsorted(categories[first:end], value)
                value = np.float64(at - first) if at < end and categories[at] == value else np.nan
                plain = False
            Z[i, f] = value
    k, w = out.shape[1], leaves.shape[1]
    for i in range(n):
        for c in range(k):
            out[i, c] = start[c]
    at = np.empty(LANES, np.int64)
    for t in range(0, len(roots), LANES):
        m = min(LANES, len(roots) - t)
        for j in range(m, LANES):
            at[j] = -1
        for i in range(n):
            z, sums = Z[i], out[i]
            for j in range(m):
                at[j] = roots[t + j]
            # Neither gaps nor categories: the compiler writes out all lanes, in half the time. It does so only where
            # their number is a constant, places have no sign, and `plain` holds of all rows.
            going = True
            while going and plain:
                going = False
                for j in range(LANES):
                    if at[j] >= 0:
                        node = nodes[np.uint64(at[j])]
                        left, right = node["left"], node["right"]
                        # Without a branch, which the processor would guess wrong half the time.
                        at[j] = right ^ ((right ^ left) & -np.int32(z[np.uint64(node["column"])] <= node["threshold"]))
                        going = True
            while going:
                going = False
                for j in range(m):
                    if at[j] >= 0:
                        node = nodes[at[j]]
                        value, how, next_ = z[node["column"]], node["how"], node["right"]
                        if value != value:
                            if how & 1:
                                next_ = node["left"]
                        elif how > 1:
                            code = np.int64(value)
                            if (sets[(how >> 1) - 1, code >> 5] >> (code & 31)) & 1:
                                next_ = node["left"]
                        else:
                            next_ ^= (next_ ^ node["left"]) & -np.int32(value <= node["threshold"])
                        at[j] = next_
                        going |= next_ >= 0
            first = t * w % k
            for j in range(m):
                leaf = -1 - at[j]
                for c in range(w):
                    sums[first + c] += leaves[leaf, c]
                first += w
                if first == k:
                    first = 0
    if mean:
        for i in range(n):
            for c in range(k):
                out[i, c] /= len(roots)
    return -1
