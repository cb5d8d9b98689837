"""Weighted sums of matrix rows: the one expensive operation."""

from venn._compiled.jit import compiled


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


@compiled
def copy_row(source, into):  # type: ignore[no-untyped-def]
    """Copy `source` to `into`; the two do not overlap.

    Numba's `into[:] = source` also formats an error for shapes that differ: seconds of compiling.
    """
    for i in range(source.size):
        into[i] = source[i]


@compiled
def copy_square(source, into, n):  # type: ignore[no-untyped-def]
    """Copy the first n rows and columns of `source` to `into`; the two do not overlap."""
    for r in range(n):
        copy_row(source[r, :n], into[r])


@compiled
def magnitude(values, n):  # type: ignore[no-untyped-def]
    """Return the sum of |values[i]| for i < n."""
    total = 0.0
    for i in range(n):
        total += abs(values[i])
    return total


@compiled
def largest(values, n):  # type: ignore[no-untyped-def]
    """Return the largest |values[i]| for i < n; NaN if one is NaN."""
    found = 0.0
    for i in range(n):
        if not abs(values[i]) <= found:
            found = abs(values[i])
            if found != found:
                break
    return found
