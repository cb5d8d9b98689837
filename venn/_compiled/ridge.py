"""Kernel ridge regression on several targets: one inverse Cholesky factor for all of them.

M = K + R over the n examples, with R = `ridge` diagonal. W, lower triangular with W M W' = I, is packed by rows: row r
has r + 1 numbers and starts at r (r + 1) / 2. A step reads W once and writes one row. Also kept, and updated in O(n t)
for t targets, are `sums` = M^-1 1, `diagonal` = diag(M^-1) and `solutions` (t, n) = M^-1 t_k, with t_k the k-th of the
`targets` (t, n). The bias is a rank-one correction: H = M^-1 - sums sums' / (1' sums) has H 1 = 0, the coefficients are
a_k = H t_k. The leave-one-out score of example i is t_ik - a_ki / H_ii. A new example's targets are first set to one
value, `low`: everything else follows from that result and from the last column of the new H, in which it is linear.
"""

import numpy as np

from venn._compiled.jit import compiled, in_lanes
from venn._compiled.rows import dot


@in_lanes
def one_pass(W, n, k, u):  # type: ignore[no-untyped-def]
    """Set u[:n] = M^-1 k = W' W k and return |W k|^2, reading W once.

    Four rows at a time: each number of W is used for its row's product with k and, while it is
    still in the cache, for u.
    """
    for i in range(n):
        u[i] = 0.0
    norm = 0.0
    whole = n - n % 4
    for r in range(0, whole, 4):
        s0 = r * (r + 1) // 2
        s1 = s0 + r + 1
        s2 = s1 + r + 2
        s3 = s2 + r + 3
        w0, w1, w2, w3 = W[s0 : s0 + r + 1], W[s1 : s1 + r + 2], W[s2 : s2 + r + 3], W[s3 : s3 + r + 4]
        l0, l1, l2, l3 = 0.0, 0.0, 0.0, 0.0
        for i in range(r + 1):
            value = k[i]
            l0 += w0[i] * value
            l1 += w1[i] * value
            l2 += w2[i] * value
            l3 += w3[i] * value
        l1 += w1[r + 1] * k[r + 1]
        l2 += w2[r + 1] * k[r + 1] + w2[r + 2] * k[r + 2]
        l3 += w3[r + 1] * k[r + 1] + w3[r + 2] * k[r + 2] + w3[r + 3] * k[r + 3]
        norm += (l0 * l0 + l1 * l1) + (l2 * l2 + l3 * l3)
        for i in range(r + 1):
            u[i] += (l0 * w0[i] + l1 * w1[i]) + (l2 * w2[i] + l3 * w3[i])
        u[r + 1] += l1 * w1[r + 1] + l2 * w2[r + 1] + l3 * w3[r + 1]
        u[r + 2] += l2 * w2[r + 2] + l3 * w3[r + 2]
        u[r + 3] += l3 * w3[r + 3]
    for r in range(whole, n):
        start = r * (r + 1) // 2
        w = W[start : start + r + 1]
        share = 0.0
        for i in range(r + 1):
            share += w[i] * k[i]
        norm += share * share
        for i in range(r + 1):
            u[i] += share * w[i]
    return norm


@compiled
def suppose(n, u, targets, sums, solutions, bases, total, pivot, low, work):  # type: ignore[no-untyped-def]
    """Extend the system by a new example whose targets are all `low`: set `work`, return the new numbers.

    Parameters
    ----------
    u : (>= n,) M^-1 k, where k is the kernel row of the new example
    bases : (t,) sums of the solutions
    total : sum of `sums`
    pivot : K(x, x) + its ridge - k' M^-1 k

    Returns
    -------
    gain : float
        Entry of the new example in the new `sums`.
    new_total : float
    entries, biases : (t,) float64
        Entry of the new example in each new solution, and the bias of each target.

    Notes
    -----
    `work[0]` is set to the new `sums`, `work[1]` to the last column of the new H; raising the new example's target by
    an amount adds that amount times this column to a_k.
    """
    t = solutions.shape[0]
    all_of_u = 0.0
    for i in range(n):
        all_of_u += u[i]
    gain = (1.0 - all_of_u) / pivot
    new_total = total + (1.0 - all_of_u) * gain
    entries = np.empty(t)
    biases = np.empty(t)
    for k in range(t):
        entries[k] = (low - dot(u, targets[k], n)) / pivot
        biases[k] = (bases[k] + (1.0 - all_of_u) * entries[k]) / new_total
    new_sums, column = work[0], work[1]
    share = gain / new_total
    for i in range(n):
        new_sums[i] = sums[i] - u[i] * gain
        column[i] = -u[i] / pivot - new_sums[i] * share
    new_sums[n] = gain
    column[n] = 1.0 / pivot - gain * share
    return gain, new_total, entries, biases


@compiled
def training_table(  # type: ignore[no-untyped-def]
    n, u, targets, ridge, solutions, entries, biases, work, low, step, negative, positive
):
    """Set `negative` and `positive` (t, > n) to the training scores t - a ridge of all examples, the new one last.

    `negative` is for a new target of `low`, `positive` for one higher by `step`.
    """
    new_sums, column = work[0], work[1]
    for k in range(solutions.shape[0]):
        solution, target, below, above = solutions[k], targets[k], negative[k], positive[k]
        entry, bias = entries[k], biases[k]
        for i in range(n):
            a = solution[i] - u[i] * entry - bias * new_sums[i]
            below[i] = target[i] - a * ridge[i]
            above[i] = below[i] - step * column[i] * ridge[i]
        a = entry - bias * new_sums[n]
        below[n] = low - a * ridge[n]
        above[n] = low + step - (a + step * column[n]) * ridge[n]


@compiled
def leave_one_out_table(  # type: ignore[no-untyped-def]
    n, u, targets, diagonal, solutions, new_total, pivot, entries, biases, test_scores, work, step, negative, positive
):
    """Set `negative` and `positive` (t, > n) to the leave-one-out scores t - a / H_ii of all, the new example last.

    The new example's leave-one-out scores are by the system without it and do not depend on its targets. For the others
    see `training_table`.
    """
    new_sums, column, inverse, shift = work[0], work[1], work[2], work[3]
    for i in range(n):
        inverse[i] = 1.0 / (diagonal[i] + u[i] * (u[i] / pivot) - new_sums[i] * (new_sums[i] / new_total))
        shift[i] = step * column[i] * inverse[i]
    for k in range(solutions.shape[0]):
        solution, target, below, above = solutions[k], targets[k], negative[k], positive[k]
        entry, bias = entries[k], biases[k]
        for i in range(n):
            a = solution[i] - u[i] * entry - bias * new_sums[i]
            below[i] = target[i] - a * inverse[i]
            above[i] = below[i] - shift[i]
        below[n] = test_scores[k]
        above[n] = test_scores[k]


@compiled
def append(W, n, u, pivot, low, targets, sums, diagonal, solutions, bases, gain, entries):  # type: ignore[no-untyped-def]
    """Learn the example with M^-1 k = `u` and its targets in column n: a new row of W, and O(n t) for the rest."""
    root = np.sqrt(pivot)
    start = n * (n + 1) // 2
    for i in range(n):
        W[start + i] = -u[i] / root
        diagonal[i] += u[i] * (u[i] / pivot)
        sums[i] -= u[i] * gain
    W[start + n] = 1.0 / root
    diagonal[n] = 1.0 / pivot
    sums[n] = gain
    for k in range(solutions.shape[0]):
        entry = entries[k] + (targets[k, n] - low) / pivot
        solution = solutions[k]
        for i in range(n):
            solution[i] -= u[i] * entry
        solution[n] = entry
        bases[k] += gain * pivot * entry


@in_lanes
def turn(v, w, out, cosine, sine, m):  # type: ignore[no-untyped-def]
    """Rotate v and w, m numbers each: write one result to `out`, the other to v.

    A separate loop over arrays from 0 on: with offsets in the subscripts it would take four times as long.
    """
    for j in range(m):
        a, b = v[j], w[j]
        out[j] = sine * b - cosine * a
        v[j] = cosine * b + sine * a


@in_lanes
def rotate_out(W, n, i, carry, cosines, sines):  # type: ignore[no-untyped-def]
    """Remove example i from W, in place: rotate down the rows until only the last row has an entry in column i.

    Afterwards W has n - 1 rows, and `carry[:n]` is the row that was dropped: M^-1 of the others is the old one minus
    carry carry'. Row r is finished as soon as row r + 1 is read, so one pass reads and writes every number once, and a
    rotation makes no number larger than the two it came from. The rotation that finished row r is kept in `cosines[r]`
    and `sines[r]`.
    """
    start = i * (i + 1) // 2
    for j in range(i + 1):
        carry[j] = W[start + j]
    for r in range(i, n - 1):
        start = r * (r + 1) // 2
        row, below = W[start : start + r + 1], W[start + r + 1 : start + 2 * r + 3]
        a, b = carry[i], below[i]
        length = np.hypot(a, b)
        # carry[i] > 0 from the diagonal of row i on: so sine > 0, and all diagonals stay positive.
        cosine, sine = b / length, a / length
        cosines[r], sines[r] = cosine, sine
        carry[r + 1] = 0.0
        turn(carry, below, row, cosine, sine, i)
        carry[i] = length
        turn(carry[i + 1 :], below[i + 1 :], row[i:], cosine, sine, r + 1 - i)


@compiled
def rotate_in(W, n, i, carry, cosines, sines):  # type: ignore[no-untyped-def]
    """Undo `rotate_out` up to the last bits: W has n rows again; `carry` is lost."""
    for r in range(n - 2, i - 1, -1):
        start = r * (r + 1) // 2
        row, below = W[start : start + r + 1], W[start + r + 1 : start + 2 * r + 3]
        cosine, sine = cosines[r], sines[r]
        for j in range(r + 1, i, -1):
            x, v = row[j - 1], carry[j]
            below[j] = sine * x + cosine * v
            carry[j] = sine * v - cosine * x
        below[i] = cosine * carry[i]
        carry[i] = sine * carry[i]
        for j in range(i):
            x, v = row[j], carry[j]
            below[j] = sine * x + cosine * v
            carry[j] = sine * v - cosine * x
    start = i * (i + 1) // 2
    for j in range(i + 1):
        W[start + j] = carry[j]


@compiled
def remove(n, i, carry, sums, diagonal, solutions, bases):  # type: ignore[no-untyped-def]
    """Remove example i from everything that follows from M^-1, given the row that W lost; return the new sum of `sums`.

    And by what factor an entry of the diagonal shrinks at most: so many times larger its error is then.

    By Schur's complement: M^-1 of the others is the old one minus carry carry', and its old column i was carry[i]
    carry.
    """
    pivot = carry[i]
    share = sums[i] / pivot
    total = 0.0
    shrunk = 1.0
    for j in range(n):
        if j != i:
            to = j if j < i else j - 1
            sums[to] = sums[j] - share * carry[j]
            left = diagonal[j] - carry[j] * carry[j]
            shrunk = max(shrunk, diagonal[j] / left) if left > 0.0 else np.inf
            diagonal[to] = left
            total += sums[to]
    for k in range(solutions.shape[0]):
        solution = solutions[k]
        share = solution[i] / pivot
        bases[k] = 0.0
        for j in range(n):
            if j != i:
                to = j if j < i else j - 1
                solution[to] = solution[j] - share * carry[j]
                bases[k] += solution[to]
    return total, shrunk


@compiled
def score_row(n, row, sums, solutions, bases, total):  # type: ignore[no-untyped-def]
    """Return (t,) scores k' a + b by the current system, from a kernel row."""
    c = solutions.shape[0]
    scores = np.empty(c)
    of_sums = dot(row, sums, n)
    for k in range(c):
        bias = bases[k] / total
        scores[k] = dot(row, solutions[k], n) - bias * of_sums + bias
    return scores


@compiled
def score_rows(n, rows, sums, solutions, bases, total, out):  # type: ignore[no-untyped-def]
    """Set `out` (m, t) to the scores by the current system, from (m, >= n) kernel rows."""
    for i in range(rows.shape[0]):
        scores = score_row(n, rows[i], sums, solutions, bases, total)
        for k in range(scores.shape[0]):
            out[i, k] = scores[k]


@compiled
def row_violation(i, n, row, ridge, targets, W, sums, diagonal, solutions, bases, total):  # type: ignore[no-untyped-def]
    """Return the error of example i's equations (M a_k)_i + b_k = t_ik, for the worst target, from its kernel row.

    And that of (M sums)_i = 1, or the error of diag(M^-1)_i, relative to its size, from column i of W.
    """
    scores = score_row(n, row, sums, solutions, bases, total)
    worst = 0.0
    for k in range(scores.shape[0]):
        a = solutions[k, i] - bases[k] / total * sums[i]
        worst = max(worst, abs(scores[k] + a * ridge - targets[k, i]))
    square = 0.0
    for r in range(i, n):
        w = W[r * (r + 1) // 2 + i]
        square += w * w
    return worst, max(abs(dot(row, sums, n) + sums[i] * ridge - 1.0), abs(square - diagonal[i]) / square)


@compiled
def new_violation(n, row, kappa, u, solutions, entries, biases, low, share, work):  # type: ignore[no-untyped-def]
    """Return the error of the new example's equations, its targets `low` or `low + 2`, for the worst target.

    `share` is by how much a bias rises with the new target.
    """
    new_sums, column = work[0], work[1]
    along_u = dot(row, u, n)
    along_sums = dot(row, new_sums, n)
    rise = dot(row, column, n) + kappa * column[n] + share - 1.0
    worst = abs(along_sums + kappa * new_sums[n] - 1.0)
    for k in range(solutions.shape[0]):
        entry, bias = entries[k], biases[k]
        a = entry - bias * new_sums[n]
        missed = dot(row, solutions[k], n) - along_u * entry - bias * along_sums + kappa * a + bias - low
        worst = max(worst, max(abs(missed), abs(missed + 2.0 * rise)))
    return worst


@compiled
def sweep_in(n, row, weight, sweep):  # type: ignore[no-untyped-def]
    """Extend `sweep` (4, > n) by an example of this kernel row, itself last.

    It holds weights, K weights, the roots of K(x, x), and the largest root so far.
    """
    weights, image, lengths = sweep[0], sweep[1], sweep[2]
    total = weight * row[n]
    for i in range(n):
        image[i] += weight * row[i]
        total += weights[i] * row[i]
    weights[n] = weight
    image[n] = total
    lengths[n] = np.sqrt(max(row[n], 0.0))
    sweep[3, n] = max(lengths[n], sweep[3, n - 1]) if n > 0 else lengths[n]


@compiled
def sweep_out(n, i, row, sweep):  # type: ignore[no-untyped-def]
    """Remove example i of n from `sweep`, given its kernel row with the others."""
    weight, longest = sweep[0, i], sweep[3]
    for values in sweep[:3]:
        for j in range(i, n - 1):
            values[j] = values[j + 1]
    for j in range(i, n - 1):
        longest[j] = max(sweep[2, j], longest[j - 1]) if j > 0 else sweep[2, j]
    image = sweep[1]
    for j in range(n - 1):
        image[j] -= weight * row[j]


@in_lanes
def swept_equations(n, sweep, ridge, x, aim):  # type: ignore[no-untyped-def]
    """Return the weighted sum of the errors of all equations M x = aim."""
    weights, image = sweep[0], sweep[1]
    error = 0.0
    for i in range(n):
        error += (image[i] + ridge[i] * weights[i]) * x[i] - weights[i] * aim[i]
    return abs(error)


@in_lanes
def carried(n, lengths, solution, u, new_sums, column, entry, bias):  # type: ignore[no-untyped-def]
    """Return the sums of (|x| a)^2 with a new example whose target is `low`, and is higher by 2, over the old ones."""
    low, high = 0.0, 0.0
    for i in range(n):
        a = solution[i] - u[i] * entry - bias * new_sums[i]
        part, raised = lengths[i] * a, lengths[i] * (a + 2.0 * column[i])
        low += part * part
        high += raised * raised
    return low, high


@compiled
def leave_one_out_loss(n, diagonal, sums, total, u, pivot, gain, work):  # type: ignore[no-untyped-def]
    """Return how many times larger the inverse's diagonal is than that of H: digits lost in leave-one-out scores.

    With a new example: `u` and `pivot` are its. Without one, u and `gain` are 0. It is the largest factor or a little
    more, a sum of fourth powers, which takes no comparisons; `work` (>= n,) is written to.
    """
    own = 1.0 / (1.0 - gain * pivot * (gain / total))
    for i in range(n):
        whole = diagonal[i] + u[i] * (u[i] / pivot)
        share = sums[i] - u[i] * gain
        factor = whole / (whole - share * (share / total))
        work[i] = factor * factor
    own *= own
    return np.sqrt(np.sqrt(dot(work, work, n) + own * own))


@compiled
def sweep_solution(  # type: ignore[no-untyped-def]
    n, sweep, targets, ridge, sums, diagonal, solutions, bases, total, ones, none, work, rounding
):
    """Return three numbers about a solution of at least one example.

    A weighted sum of the errors of all equations; what rounding of the kernel costs scores and leave-one-out scores, if
    it moves a value K(x, z) by `rounding` |x| |z|, at random; and by how much errors are larger in leave-one-out
    scores. `ones` and `none` are (>= n,) ones and zeros, `work` (>= n,) is written to.
    """
    of_sums = swept_equations(n, sweep, ridge, sums, ones)
    missed, away = 0.0, 0.0
    for k in range(solutions.shape[0]):
        bias = bases[k] / total
        missed = max(missed, swept_equations(n, sweep, ridge, solutions[k], targets[k]) + abs(bias) * of_sums)
        away = max(away, carried(n, sweep[2], solutions[k], none, sums, none, 0.0, bias)[0])
    loss = leave_one_out_loss(n, diagonal, sums, total, none, 1.0, 0.0, work) if n > 1 else 1.0
    if not loss < np.inf:
        return np.inf, np.inf, np.inf
    return max(missed, loss * of_sums), rounding * max(sweep[3, n - 1] * np.sqrt(away), loss), loss


@compiled
def sweep_new(  # type: ignore[no-untyped-def]
    n, sweep, row, u, targets, ridge, sums, diagonal, solutions, pivot, gain, new_total, entries, biases, work, ones,
    rounding,
):  # fmt: skip
    """Return the same as `sweep_solution` with a new example of this kernel row, for targets of `low` and `low + 2`."""
    if n == 0:
        return 0.0, 0.0, 1.0
    new_sums, column = work[0], work[1]
    of_sums = swept_equations(n, sweep, ridge, sums, ones)
    of_u = swept_equations(n, sweep, ridge, u, row)
    own = np.sqrt(max(row[n], 0.0))
    raised = 2.0 * abs(gain / new_total)  # by how much the bias moves with the target
    missed, away = 0.0, 0.0
    for k in range(solutions.shape[0]):
        entry, bias = entries[k], biases[k]
        steepest = abs(bias) + raised
        error = swept_equations(n, sweep, ridge, solutions[k], targets[k]) + steepest * of_sums
        missed = max(missed, error + (abs(entry) + 2.0 / pivot + steepest * abs(gain)) * of_u)
        low, high = carried(n, sweep[2], solutions[k], u, new_sums, column, entry, bias)
        a = entry - bias * new_sums[n]
        away = max(away, max(low + (own * a) ** 2, high + (own * (a + 2.0 * column[n])) ** 2))
    loss = leave_one_out_loss(n, diagonal, sums, new_total, u, pivot, gain, work[2])
    if not loss < np.inf:
        return np.inf, np.inf, np.inf
    missed = max(missed, loss * (of_sums + abs(gain) * of_u))
    return missed, rounding * max(max(own, sweep[3, n - 1]) * np.sqrt(away), loss), loss


@compiled
def supposed_violation(  # type: ignore[no-untyped-def]
    i, n, row, to_new, ridge, targets, u, solutions, entries, biases, gain, new_total, loss, work
):  # fmt: skip
    """Return the error of example i's equations with a new example, for targets of `low` and `low + 2`.

    `row` is the kernel row of i with the n old ones, `to_new` its kernel with the new one.
    """
    new_sums, column = work[0], work[1]
    along_sums = dot(row, new_sums, n) + to_new * new_sums[n] + ridge * new_sums[i]
    along_u = dot(row, u, n) + ridge * u[i]
    rise = dot(row, column, n) + to_new * column[n] + ridge * column[i] + gain / new_total
    worst = loss * abs(along_sums - 1.0)
    for k in range(solutions.shape[0]):
        entry, bias = entries[k], biases[k]
        along = dot(row, solutions[k], n) + ridge * solutions[k, i]
        missed = along + (to_new - along_u) * entry - bias * along_sums + bias - targets[k, i]
        worst = max(worst, max(abs(missed), abs(missed + 2.0 * rise)))
    return worst


@compiled
def training_scores(n, targets, ridge, sums, solutions, bases, total):  # type: ignore[no-untyped-def]
    """Return (t, n) scores of the learned examples."""
    scores = np.empty((solutions.shape[0], n))
    for k in range(scores.shape[0]):
        bias = bases[k] / total
        for i in range(n):
            a = solutions[k, i] - bias * sums[i]
            scores[k, i] = targets[k, i] - a * ridge[i]
    return scores


@compiled
def leave_one_out_scores(n, targets, sums, diagonal, solutions, bases, total):  # type: ignore[no-untyped-def]
    """Return (t, n) scores of the learned examples, each by the system without it; 0 for a single one."""
    scores = np.zeros((solutions.shape[0], n))
    for k in range(scores.shape[0]):
        bias = bases[k] / total
        for i in range(n if n > 1 else 0):
            a = solutions[k, i] - bias * sums[i]
            h = diagonal[i] - sums[i] * (sums[i] / total)
            scores[k, i] = targets[k, i] - a / h
    return scores


@compiled
def packed(lower, W, diagonal):  # type: ignore[no-untyped-def]
    """Pack the rows of a lower triangular matrix; set `diagonal` to its columns' squared norms."""
    n = lower.shape[0]
    for i in range(n):
        diagonal[i] = 0.0
    start = 0
    for r in range(n):
        for i in range(r + 1):
            W[start + i] = lower[r, i]
            diagonal[i] += lower[r, i] * lower[r, i]
        start += r + 1
