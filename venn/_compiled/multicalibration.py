"""Venn multicalibration: least squares of the errors on functions of the object, read under both suppositions.

R = sum g g' over the bag, the new example included, and b_k = sum g (1{label = k} - s_k) over the others. Whatever
solves the normal equations fits the same values at all examples of the bag, so a basic solution serves as well as that
of the pseudoinverse: functions that depend on others linearly are left out. No ridge: it would break the identity.
"""

import numpy as np

from venn._compiled.jit import compiled

ROUNDS = 3  # of refinement, with residuals by R itself
DEPENDENT = 2e-14  # a pivot below this times m, of a matrix with diagonal 1, is that of a dependent function
EXACT = 1e-9  # largest residual, as a part of the largest number in the right-hand side, each function of norm 1


@compiled
def factor(R, scale, order, lower):  # type: ignore[no-untyped-def]
    """Factor diag(scale) R diag(scale), which has diagonal 1, by Cholesky's method with pivots; return its rank.

    Sets scale (m,), order (m,) and the first rank rows and columns of lower (m, m). Functions that are 0 at all
    examples have scale 0 and are left out.
    """
    m = R.shape[0]
    left = np.empty(m)
    for i in range(m):
        scale[i] = 1.0 / np.sqrt(R[i, i]) if R[i, i] > 0.0 else 0.0
        left[i] = 1.0 if R[i, i] > 0.0 else 0.0
        order[i] = i
    for rank in range(m):
        best = rank
        for i in range(rank + 1, m):
            best = i if left[order[i]] > left[order[best]] else best
        if not left[order[best]] > DEPENDENT * m:
            return rank
        order[rank], order[best] = order[best], order[rank]
        for j in range(rank):
            lower[rank, j], lower[best, j] = lower[best, j], lower[rank, j]
        p = order[rank]
        pivot = np.sqrt(left[p])
        lower[rank, rank] = pivot
        for i in range(rank + 1, m):
            q = order[i]
            value = R[q, p] * scale[q] * scale[p]
            for j in range(rank):
                value -= lower[i, j] * lower[rank, j]
            lower[i, rank] = value / pivot
            left[q] -= lower[i, rank] * lower[i, rank]
    return m


@compiled
def solve(R, scale, order, lower, rank, right, out):  # type: ignore[no-untyped-def]
    """Set out (m,) to a solution of R out = right, which has one; return the largest residual left, in scaled units."""
    m = R.shape[0]
    work = np.empty(m)
    rest = right.copy()
    out[:] = 0.0
    worst = 0.0
    for turn in range(ROUNDS + 1):
        for i in range(rank):
            value = rest[order[i]] * scale[order[i]]
            for j in range(i):
                value -= lower[i, j] * work[j]
            work[i] = value / lower[i, i]
        for i in range(rank - 1, -1, -1):
            value = work[i]
            for j in range(i + 1, rank):
                value -= lower[j, i] * work[j]
            work[i] = value / lower[i, i]
        for i in range(rank):
            out[order[i]] += work[i] * scale[order[i]]
        last, worst = worst, 0.0
        for i in range(m):
            value = right[i]
            for j in range(rank):
                value -= R[i, order[j]] * out[order[j]]
            rest[i] = value
            worst = max(worst, abs(value) * scale[i])
        if worst == 0.0 or (turn > 0 and worst >= 0.5 * last):
            break
    return worst


@compiled
def largest(values, scale):  # type: ignore[no-untyped-def]
    """Return the largest absolute value, in scaled units: a function of large numbers does not hide the others."""
    most = 0.0
    for i in range(values.shape[0]):
        most = max(most, abs(values[i]) * scale[i])
    return most


@compiled
def fit_bag(R, b, scores, g, coefficients):  # type: ignore[no-untyped-def]
    """Set coefficients (c, 2, m): what is fitted to the errors if the new example is not of class k, and if it is.

    Parameters
    ----------
    R : (m, m) float64, sum of g g' over the calibration examples
    b : (c, m) float64, sums of g (1{label = k} - s_k)
    scores : (c,) float64
    g : (m,) float64

    Returns
    -------
    bool
        Whether the equations hold.
    """
    m, c = g.shape[0], scores.shape[0]
    whole = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            whole[i, j] = R[i, j] + g[i] * g[j]
    scale, order, lower = np.empty(m), np.empty(m, np.int64), np.zeros((m, m))
    rank = factor(whole, scale, order, lower)
    right = np.empty(m)
    fine = True
    for k in range(c):
        for v in range(2):
            for i in range(m):
                right[i] = b[k, i] + g[i] * (v - scores[k])
            worst = solve(whole, scale, order, lower, rank, right, coefficients[k, v])
            fine = fine and worst <= EXACT * max(largest(right, scale), largest(g, scale))
    return fine


@compiled
def replay_multicalibration(R, b, scores, functions, codes, calibrates, values):  # type: ignore[no-untyped-def]
    """Predict each of n examples, then add it to R and b if it calibrates.

    With u = R^-1 g and h = g . u the pair of class k is s_k + u . b_k - h s_k, and h more. Sets values (n, c, 2).

    Parameters
    ----------
    R : (m, m) float64
    b : (c, m) float64
    scores : (n, c) float64
    functions : (n, m) float64
    codes : (n,) int64
    calibrates : (n,) bool

    Returns
    -------
    int
        The first example whose equations do not hold, or -1. Nothing is added from there on.
    """
    n, m = functions.shape
    c = scores.shape[1]
    whole, lower = np.empty((m, m)), np.zeros((m, m))
    scale, order, u = np.empty(m), np.empty(m, np.int64), np.empty(m)
    for t in range(n):
        g = functions[t]
        for i in range(m):
            for j in range(m):
                whole[i, j] = R[i, j] + g[i] * g[j]
        rank = factor(whole, scale, order, lower)
        if not solve(whole, scale, order, lower, rank, g, u) <= EXACT * largest(g, scale):
            return t
        height = 0.0
        for i in range(m):
            height += g[i] * u[i]
        for k in range(c):
            fitted = 0.0
            for i in range(m):
                fitted += u[i] * b[k, i]
            values[t, k, 0] = scores[t, k] + fitted - height * scores[t, k]
            values[t, k, 1] = scores[t, k] + fitted + height * (1.0 - scores[t, k])
        if calibrates[t]:
            add_one(R, b, scores[t], g, codes[t])
    return -1


@compiled
def add_one(R, b, scores, g, code):  # type: ignore[no-untyped-def]
    """Add one example to the sums R and b."""
    for i in range(g.shape[0]):
        for j in range(g.shape[0]):
            R[i, j] += g[i] * g[j]
    for k in range(scores.shape[0]):
        error = (1.0 if code == k else 0.0) - scores[k]
        for i in range(g.shape[0]):
            b[k, i] += g[i] * error


@compiled
def add_many(R, b, scores, functions, codes):  # type: ignore[no-untyped-def]
    """Add n examples to the sums R and b, in order."""
    for t in range(codes.shape[0]):
        add_one(R, b, scores[t], functions[t], codes[t])
