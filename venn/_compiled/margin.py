"""The margins of the current machines: built from the states, updated by commits, refreshed, checked."""

import numpy as np

from venn._compiled.buffers import UPDATE
from venn._compiled.jit import compiled
from venn._compiled.path import DEPENDENT, MIDDLE, MINUS, PLUS, copy_levels, segment
from venn._compiled.rows import add_rows, copy_row, dot
from venn._compiled.solvers import scores_from, violation_at

ROUNDING = 2e-15  # of a score, in units of scale and of the sum of the coefficients in it, or of their moves
ENOUGH = 0.02  # of the violation allowed: members this near to their levels are not corrected
NEARLY = 1e-14  # a squared distance from the margin's span below this, in units of the problem's scale, counts as 0


@compiled
def place(p, objects, solved):  # type: ignore[no-untyped-def]
    """Set the base entries of the new object p: no examples, coefficient 0, score by every machine.

    Returns 0, or NaN when its kernel row is not finite.
    """
    K, positive, total, sizes = objects
    beta, score, state, bias = solved.beta, solved.score, solved.state, solved.bias
    row = K[p]
    doubt = 0.0
    for i in range(p + 1):
        K[i, p] = row[i]
        doubt += 0.0 * row[i]
    for k in range(positive.shape[0]):
        positive[k, p] = 0.0
        total[k, p] = 0.0
        beta[k, p] = 0.0
        state[k, p] = MIDDLE
        if sizes[k, 0] == 0:
            score[k, p] = -1.0
        elif sizes[k, 0] == sizes[k, 1]:
            score[k, p] = 1.0
        else:
            score[k, p] = bias[k] + dot(row, beta[k], p)
    return doubt


@compiled
def without_member(B, m, a, into):  # type: ignore[no-untyped-def]
    """Set `into` to the bordered inverse of the margin without its slot `a`; the last slot takes its place."""
    pivot = B[a, a]
    for r in range(m + 1):
        weight = B[r, a] / pivot
        for s in range(m + 1):
            into[r, s] = B[r, s] - weight * B[a, s]
    if a != m:
        for s in range(m + 1):
            into[a, s] = into[m, s]
        for r in range(m + 1):
            into[r, a] = into[r, m]
        into[a, a] = into[m, m]


@compiled
def join(K, i, members, m, B, scale, shape, z, u):  # type: ignore[no-untyped-def]
    """Add object i to the margin of m members with bordered inverse B, or return False if it depends on them.

    `u` is then the motion of bias and members that compensates a unit of i's coefficient.
    """
    if m == 0:
        B[0, 0] = -K[i, i]
        B[0, 1] = 1.0
        B[1, 0] = 1.0
        B[1, 1] = 0.0
        members[0] = i
        return True
    z[0] = -1.0
    for a in range(m):
        z[a + 1] = -K[i, members[a]]
    for a in range(m + 1):
        u[a] = 0.0
    add_rows(u, m + 1, B, shape, z, m + 1)
    pivot = K[i, i] - dot(u, z, m + 1)
    if not pivot > DEPENDENT * scale:
        return False
    for a in range(m + 1):
        for e in range(m + 1):
            B[a, e] += u[a] * u[e] / pivot
        B[a, m + 1] = u[a] / pivot
        B[m + 1, a] = u[a] / pivot
    B[m + 1, m + 1] = 1.0 / pivot
    members[m] = i
    return True


@compiled
def build(wanted, n, K, scale, members, B):  # type: ignore[no-untyped-def]
    """Build a margin of the n objects `wanted`, as far as they are independent; return its size and how many are left.

    The remaining ones come first in `wanted`. The object farthest from the others' span joins first: in any other order
    rounding could look like independence, and spoil everything after it.
    """
    width = n + 1
    shape = np.arange(width)
    z, u, square = np.empty(width), np.empty(width), np.empty(width)
    B[0, 0] = 0.0
    for t in range(n):
        square[t] = K[wanted[t], wanted[t]]
    m = 0
    while n > 0:
        far = 0
        for t in range(n):
            if square[t] > square[far]:
                far = t
        i = wanted[far]
        if (m > 0 and square[far] <= NEARLY * scale) or not join(K, i, members, m, B, scale, shape, z, u):
            break
        n -= 1
        wanted[far] = wanted[n]
        square[far] = square[n]
        for t in range(n):
            row = K[wanted[t]]
            if m == 0:
                square[t] += K[i, i] - 2.0 * row[i]
            else:
                along = u[0] + row[i]
                for a in range(m):
                    along += u[a + 1] * row[members[a]]
                square[t] -= along * along * B[m + 1, m + 1]
        m += 1
    return m, n


@compiled
def commit_step(sides, p, joining, count, objects, solved, branches):  # type: ignore[no-untyped-def]
    """Keep, in every machine, the branch of the revealed label: given by `sides` (c,), -1 for the machine as it is.

    `joining` (c, 2) is what the example at object p adds to the weights of the positive ones there and of all. Margins
    marked REBUILD or HELD are left to the caller.
    """
    K, positive, total, sizes = objects
    beta, score, state, bias, members, size, B, spare, drift = solved
    betas, scores, states, commit, slots, index, alive, events, U, kappa, alternate, drifts = branches
    for k in range(size.shape[0]):
        side = sides[k]
        if side < 0:
            continue
        positive[k, p] += joining[k, 0]
        total[k, p] += joining[k, 1]
        sizes[k, 0] += side == betas.shape[0] - 1
        sizes[k, 1] += 1
        for i in range(count):
            beta[k, i] = betas[side, k, i]
            score[k, i] = scores[side, k, i]
            state[k, i] = states[side, k, i]
        how = commit[k, side]
        bias[k] = score[k, 0] - dot(K[0], beta[k], count)
        drift[k] = drifts[k, side]
        if how != UPDATE:
            continue
        n = slots[k, side]
        m = size[k]
        B_k = B[k]
        if alternate[k, side]:
            m -= 1
            for r in range(m + 1):
                for s in range(m + 1):
                    B_k[r, s] = spare[k, r, s]
        for r in range(n):
            for s in range(0 if r > m else m + 1, n):
                B_k[r, s] = 0.0
        for e in range(events[k, side]):
            row = U[k, side, e]
            for r in range(n):
                weight = row[r] / kappa[k, side, e]
                if weight != 0.0:
                    into = B_k[r]
                    for s in range(n):
                        into[s] += weight * row[s]
        # The last active slots take the places of the removed ones.
        last = n - 1
        a = 1
        while a <= last:
            while last >= a and not alive[k, side, last]:
                last -= 1
            if last < a:
                break
            if not alive[k, side, a]:
                for s in range(n):
                    B_k[a, s] = B_k[last, s]
                for r in range(n):
                    B_k[r, a] = B_k[r, last]
                B_k[a, a] = B_k[last, last]
                index[k, side, a] = index[k, side, last]
                last -= 1
            members[k, a - 1] = index[k, side, a]
            a += 1
        size[k] = last


@compiled
def total_of(beta, count):  # type: ignore[no-untyped-def]
    """Return the sum of the coefficients, in four interleaved sums."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = count - count % 4
    for i in range(0, whole, 4):
        s0 += beta[i]
        s1 += beta[i + 1]
        s2 += beta[i + 2]
        s3 += beta[i + 3]
    for i in range(whole, count):
        s0 += beta[i]
    return (s0 + s1) + (s2 + s3)


@compiled
def settle(K, count, C, enough, bias, members, m, B, beta, score, state, up, down):  # type: ignore[no-untyped-def]
    """Compute all scores from the kernel and put members on their levels; return (bias, worst violation).

    Stops at `enough`: with a nearly dependent margin, more would cost large coefficients.
    """
    shape, rhs, fix = np.arange(m + 1), np.empty(m + 1), np.zeros(m + 1)
    scores_from(beta, bias, K, count, score)
    error, before, mended = 0.0, np.inf, False
    for attempt in range(8):
        rhs[0] = -total_of(beta, count)
        error = abs(rhs[0]) / C
        for a in range(m):
            rhs[a + 1] = state[members[a]] - score[members[a]]
            error = max(error, abs(rhs[a + 1]))
        worse = not error < before
        if m == 0 or attempt == 7 or error <= enough or (not worse and error > 0.5 * before):
            break
        if worse:
            # Rounding exceeds the remaining error: undo the last correction.
            for a in range(m + 1):
                fix[a] = -fix[a]
        else:
            before = error
            for a in range(m + 1):
                fix[a] = 0.0
            add_rows(fix, m + 1, B, shape, rhs, m + 1)
        bias += fix[0]
        for i in range(count):
            score[i] += fix[0]
        for a in range(m):
            beta[members[a]] += fix[a + 1]
        add_rows(score, count, K, members, fix[1:], m)
        mended = True
        if worse:
            break
    if mended:
        # After large corrections, scores that were only updated carry more rounding than the remaining error.
        scores_from(beta, bias, K, count, score)
        error = abs(total_of(beta, count)) / C
        for a in range(m):
            error = max(error, abs(state[members[a]] - score[members[a]]))
    for i in range(count):
        error = max(error, score[i] - up[i], down[i] - score[i])
    return bias, error


@compiled
def certify(k, tolerance, count, C, objects, solved):  # type: ignore[no-untyped-def]
    """Compute machine k's scores from the kernel and put members on their levels; return the worst violation."""
    K, positive, total = objects.kernel, objects.positive[k], objects.total[k]
    beta, score, state, members, m = solved.beta[k], solved.score[k], solved.state[k], solved.members[k], solved.size[k]
    up, down, same = np.empty(count), np.empty(count), np.empty(count, np.int8)
    copy_levels(count, state, positive, total, same, up, down)
    for i in range(count):
        if state[i] == PLUS or state[i] == MINUS:
            # A member left out of the margin would not be watched, and may be off its level even now.
            up[i], down[i] = -np.inf, np.inf
    for a in range(m):
        up[members[a]], down[members[a]] = np.inf, -np.inf
    before, bias, error = np.empty(count), solved.bias[k], np.inf
    copy_row(beta[:count], before)
    for enough in (ENOUGH * tolerance, np.inf):
        solved.bias[k], error = settle(
            K, count, C, enough, bias, members, m, solved.inverse[k], beta, score, state, up, down
        )
        for a in range(m):
            i = members[a]
            low, high = segment(state[i], positive[i], total[i] - positive[i], C)
            error = max(error, (low - beta[i]) / C, (beta[i] - high) / C)
        if error <= tolerance or enough == np.inf:
            break
        # With an inaccurate inverse, corrections make it worse.
        copy_row(before, beta)
    for a in range(m):
        score[members[a]] = state[members[a]]
    return error


@compiled
def worst_residual(k, fresh, count, C, objects, solved):  # type: ignore[no-untyped-def]
    """Return machine k's worst violation by coefficients alone, whose scores, computed afresh, are `fresh`."""
    positive, total = objects.positive[k], objects.total[k]
    beta, score = solved.beta[k], solved.score[k]
    worst, balance = 0.0, 0.0
    for i in range(count):
        balance += beta[i]
        here = violation_at(beta[i], fresh[i], positive[i], total[i] - positive[i], C)
        worst = max(worst, here, abs(fresh[i] - score[i]))
    return max(worst, abs(balance) / C)
