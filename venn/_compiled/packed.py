"""Symmetric matrices packed by rows of the lower triangle: row i has i + 1 numbers and starts at i (i + 1) / 2.

Threads run these loops in parallel, each on its own matrices or on one that nobody changes.
"""

import numpy as np

from venn._compiled.jit import compiled, in_lanes


@in_lanes
def multiply(G, m, v, out):  # type: ignore[no-untyped-def]
    """Set out[:, :m] to G v[:, :m] for two vectors, reading the lower triangle once, four rows at a time."""
    a, b, x, y = v[0], v[1], out[0], out[1]
    for i in range(m):
        x[i] = 0.0
        y[i] = 0.0
    whole = m - m % 4
    for r in range(0, whole, 4):
        s0 = r * (r + 1) // 2
        s1 = s0 + r + 1
        s2 = s1 + r + 2
        s3 = s2 + r + 3
        g0, g1, g2, g3 = G[s0 : s0 + r + 1], G[s1 : s1 + r + 2], G[s2 : s2 + r + 3], G[s3 : s3 + r + 4]
        a0, a1, a2, a3 = a[r], a[r + 1], a[r + 2], a[r + 3]
        b0, b1, b2, b3 = b[r], b[r + 1], b[r + 2], b[r + 3]
        c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
        d0, d1, d2, d3 = 0.0, 0.0, 0.0, 0.0
        for i in range(r):
            p, q = a[i], b[i]
            c0 += g0[i] * p
            c1 += g1[i] * p
            c2 += g2[i] * p
            c3 += g3[i] * p
            d0 += g0[i] * q
            d1 += g1[i] * q
            d2 += g2[i] * q
            d3 += g3[i] * q
            x[i] += (a0 * g0[i] + a1 * g1[i]) + (a2 * g2[i] + a3 * g3[i])
            y[i] += (b0 * g0[i] + b1 * g1[i]) + (b2 * g2[i] + b3 * g3[i])
        e, f = r + 1, r + 2
        x[r] += c0 + (g0[r] * a0 + g1[r] * a1) + (g2[r] * a2 + g3[r] * a3)
        y[r] += d0 + (g0[r] * b0 + g1[r] * b1) + (g2[r] * b2 + g3[r] * b3)
        x[e] += c1 + (g1[r] * a0 + g1[e] * a1) + (g2[e] * a2 + g3[e] * a3)
        y[e] += d1 + (g1[r] * b0 + g1[e] * b1) + (g2[e] * b2 + g3[e] * b3)
        x[f] += c2 + (g2[r] * a0 + g2[e] * a1) + (g2[f] * a2 + g3[f] * a3)
        y[f] += d2 + (g2[r] * b0 + g2[e] * b1) + (g2[f] * b2 + g3[f] * b3)
        x[r + 3] += c3 + (g3[r] * a0 + g3[e] * a1) + (g3[f] * a2 + g3[r + 3] * a3)
        y[r + 3] += d3 + (g3[r] * b0 + g3[e] * b1) + (g3[f] * b2 + g3[r + 3] * b3)
    for r in range(whole, m):
        start = r * (r + 1) // 2
        g = G[start : start + r + 1]
        c, d = 0.0, 0.0
        for i in range(r):
            c += g[i] * a[i]
            d += g[i] * b[i]
            x[i] += g[i] * a[r]
            y[i] += g[i] * b[r]
        x[r] += c + g[r] * a[r]
        y[r] += d + g[r] * b[r]


@in_lanes
def multiply_one(G, m, a, x):  # type: ignore[no-untyped-def]
    """Set x[:m] to G a[:m]."""
    for i in range(m):
        x[i] = 0.0
    whole = m - m % 4
    for r in range(0, whole, 4):
        s0 = r * (r + 1) // 2
        s1 = s0 + r + 1
        s2 = s1 + r + 2
        s3 = s2 + r + 3
        g0, g1, g2, g3 = G[s0 : s0 + r + 1], G[s1 : s1 + r + 2], G[s2 : s2 + r + 3], G[s3 : s3 + r + 4]
        a0, a1, a2, a3 = a[r], a[r + 1], a[r + 2], a[r + 3]
        c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
        for i in range(r):
            p = a[i]
            c0 += g0[i] * p
            c1 += g1[i] * p
            c2 += g2[i] * p
            c3 += g3[i] * p
            x[i] += (a0 * g0[i] + a1 * g1[i]) + (a2 * g2[i] + a3 * g3[i])
        e, f = r + 1, r + 2
        x[r] += c0 + (g0[r] * a0 + g1[r] * a1) + (g2[r] * a2 + g3[r] * a3)
        x[e] += c1 + (g1[r] * a0 + g1[e] * a1) + (g2[e] * a2 + g3[e] * a3)
        x[f] += c2 + (g2[r] * a0 + g2[e] * a1) + (g2[f] * a2 + g3[f] * a3)
        x[r + 3] += c3 + (g3[r] * a0 + g3[e] * a1) + (g3[f] * a2 + g3[r + 3] * a3)
    for r in range(whole, m):
        start = r * (r + 1) // 2
        g = G[start : start + r + 1]
        c = 0.0
        for i in range(r):
            c += g[i] * a[i]
            x[i] += g[i] * a[r]
        x[r] += c + g[r] * a[r]


@in_lanes
def add_products(G, m, left, right, rank):  # type: ignore[no-untyped-def]
    """Subtract left' right from G, both (>= rank, >= m) and their product symmetric; eight ranks at a time."""
    shares = np.zeros(8)
    for j in range(0, rank, 8):
        for i in range(m):
            start = i * (i + 1) // 2
            row = G[start : start + i + 1]
            for a in range(8):
                shares[a] = left[j + a, i] if j + a < rank else 0.0
            w0, w1, w2, w3 = shares[0], shares[1], shares[2], shares[3]
            w4, w5, w6, w7 = shares[4], shares[5], shares[6], shares[7]
            last = rank - 1
            r0, r1, r2, r3 = right[j], right[min(j + 1, last)], right[min(j + 2, last)], right[min(j + 3, last)]
            if rank - j <= 4:
                for k in range(i + 1):
                    row[k] -= (w0 * r0[k] + w1 * r1[k]) + (w2 * r2[k] + w3 * r3[k])
            else:
                r4, r5 = right[min(j + 4, last)], right[min(j + 5, last)]
                r6, r7 = right[min(j + 6, last)], right[min(j + 7, last)]
                for k in range(i + 1):
                    row[k] -= (w0 * r0[k] + w1 * r1[k] + w2 * r2[k] + w3 * r3[k]) + (
                        w4 * r4[k] + w5 * r5[k] + w6 * r6[k] + w7 * r7[k]
                    )


@compiled
def append(G, m, u, pivot):  # type: ignore[no-untyped-def]
    """Set row m of G to that of an object with bordering column `u` and pivot; rows above are already corrected."""
    start = m * (m + 1) // 2
    for i in range(m):
        G[start + i] = -u[i] / pivot
    G[start + m] = 1.0 / pivot


@compiled
def columns_of(G, m, chosen, out):  # type: ignore[no-untyped-def]
    """Set out[a, :m] to column chosen[a] of G."""
    for a in range(chosen.size):
        j = chosen[a]
        start = j * (j + 1) // 2
        for i in range(j + 1):
            out[a, i] = G[start + i]
        for i in range(j + 1, m):
            out[a, i] = G[i * (i + 1) // 2 + j]


@compiled
def pack(full, m, G):  # type: ignore[no-untyped-def]
    """Copy the lower triangle of a matrix (m, m) into the packed G."""
    for i in range(m):
        start = i * (i + 1) // 2
        for j in range(i + 1):
            G[start + j] = full[i, j]


@compiled
def unpack(G, m):  # type: ignore[no-untyped-def]
    """Return the (m, m) matrix of a packed lower triangle."""
    full = np.empty((m, m))
    for i in range(m):
        start = i * (i + 1) // 2
        for j in range(i + 1):
            full[i, j] = G[start + j]
            full[j, i] = G[start + j]
    return full
