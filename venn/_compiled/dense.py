"""Weighted sums of matrix rows: the one operation that costs."""

from venn._compiled.jit import compiled


@compiled
def add_rows(out, n, matrix, rows, weights, m):  # type: ignore[no-untyped-def]
    """Add sum_j weights[j] * matrix[rows[j], :n] to out[:n], for j < m.

    Eight rows at a time: `out` is then read and written once for eight rows.
    """
    j = 0
    while j + 8 <= m:
        r0, r1, r2, r3 = matrix[rows[j]], matrix[rows[j + 1]], matrix[rows[j + 2]], matrix[rows[j + 3]]
        r4, r5, r6, r7 = matrix[rows[j + 4]], matrix[rows[j + 5]], matrix[rows[j + 6]], matrix[rows[j + 7]]
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        for i in range(n):
            out[i] += (w0 * r0[i] + w1 * r1[i] + w2 * r2[i] + w3 * r3[i]) + (
                w4 * r4[i] + w5 * r5[i] + w6 * r6[i] + w7 * r7[i]
            )
        j += 8
    while j < m:
        row, w = matrix[rows[j]], weights[j]
        for i in range(n):
            out[i] += w * row[i]
        j += 1


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
