"""One step of all one-against-all machines: 2c supposed problems solved, and the revealed one kept."""

from typing import Any, NamedTuple

import numpy as np

from venn._compiled.dense import add_rows, dot
from venn._compiled.jit import compiled
from venn._compiled.path import (
    ABOVE,
    BELOW,
    DEPENDENT,
    FAILED,
    MIDDLE,
    MINUS,
    PLUS,
    SOLVED,
    apply_inverse,
    follow,
    segment,
    set_levels,
)
from venn._compiled.smo import bias_interval, levels, resolution, scores_from

# How a solved branch is committed: the margin stays, changes by the path's events, or is built anew.
# UNSOLVED asks the caller for a batch solve.
KEEP, UPDATE, REBUILD, UNSOLVED = 0, 1, 2, 3

ACCEPT = 1e-9  # worst violation accepted from a path; above it more objects are watched, then a batch solve is made
LANES = 16


class Objects(NamedTuple):
    """The distinct objects and the examples at them."""

    kernel: Any  # (room, room)
    counts: Any  # (c, room) int64, examples of each class
    total: Any  # (room,) int64, examples


class Solved(NamedTuple):
    """The machines as they stand."""

    beta: Any  # (c, room) signed coefficients
    score: Any  # (c, room)
    state: Any  # (c, room) int8
    bias: Any  # (c,)
    members: Any  # (c, margin room) int64
    size: Any  # (c,) int64, members
    inverse: Any  # (c, margin room, margin room), of the bordered margin
    spare: Any  # (c, margin room, margin room), the same without a member that is asked about


class Branches(NamedTuple):
    """The answers to both suppositions about an object: not of class k (side 0), of class k (side 1)."""

    beta: Any  # (2, c, room)
    score: Any  # (2, c, room)
    state: Any  # (2, c, room) int8
    commit: Any  # (c, 2) int64: KEEP, UPDATE, REBUILD or UNSOLVED
    slots: Any  # (c, 2) int64: bias, old members, joined ones
    index: Any  # (c, 2, margin room) int64, object in each slot
    alive: Any  # (c, 2, margin room) bool, still a member
    events: Any  # (c, 2) int64
    terms: Any  # (c, 2, EVENTS, margin room), rank-one terms of the inverse
    kappa: Any  # (c, 2, EVENTS), their divisors
    alternate: Any  # (c, 2) bool, terms refer to `Solved.spare`


class Scratch(NamedTuple):
    """Room for intermediate values."""

    order: Any  # 0, 1, 2, ...
    margin: Any  # (9, margin room)
    around: Any  # (12, room + EVENTS + 8)
    near: Any  # (room + EVENTS + 8,) int64
    pack: Any  # flat, margin room x (room + EVENTS + 8)


@compiled
def respond(K, count, members, m, B, p, direction, response, shape, z):  # type: ignore[no-untyped-def]
    """Set the motion of the margin (m + 1,) and of all scores (count,) per unit of beta[p]."""
    z[0] = -1.0
    for a in range(m):
        z[a + 1] = -K[p, members[a]]
    for a in range(m + 1):
        direction[a] = 0.0
    add_rows(direction, m + 1, B, shape, z, m + 1)
    row = K[p]
    shift = direction[0]
    for i in range(count):
        response[i] = row[i] + shift
    add_rows(response, count, K, members, direction[1:], m)


@compiled
def shift_bias(sign, p, absorbing, count, score, up, down):  # type: ignore[no-untyped-def]
    """Find what an empty margin's bias meets first, moving by `sign`: (distance, object).

    A negative distance says that an object went past its level unwatched.
    """
    best = sign * ((-sign if absorbing else sign) - score[p])
    who = p
    for i in range(count):
        if i != p:
            distance = up[i] - score[i] if sign > 0 else score[i] - down[i]
            if distance < best:
                best = distance
                who = i
    return best, who


@compiled
def centre(beta, score, positive, total, C, count, near):  # type: ignore[no-untyped-def]
    """With an empty margin the bias is free in an interval: move it to the midpoint."""
    low, high = bias_interval(beta, score, positive, total, C, count, near)
    shift = 0.5 * (low + high)
    for i in range(count):
        score[i] += shift


@compiled
def largest_violation(score, up, down, count, lanes):  # type: ignore[no-untyped-def]
    """Return how far a score lies outside its levels at worst; in lanes, which the compiler can widen."""
    for a in range(LANES):
        lanes[a] = 0.0
    whole = count - count % LANES
    for start in range(0, whole, LANES):
        for a in range(LANES):
            i = start + a
            outside = max(score[i] - up[i], down[i] - score[i])
            lanes[a] = outside if outside > lanes[a] else lanes[a]
    worst = 0.0
    for a in range(LANES):
        worst = max(worst, lanes[a])
    for i in range(whole, count):
        worst = max(worst, score[i] - up[i], down[i] - score[i])
    return worst


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
def correct(K, count, slots, size, B, beta, score, state, index, alive, U, kappa, events, shape, work):  # type: ignore[no-untyped-def]
    """Put the members back on their levels where rounding moved them off; return what is left."""
    error = 0.0
    rhs, fix = work[6], work[7]
    for attempt in range(3):
        rhs[0] = -total_of(beta, count)
        error = abs(rhs[0])
        for a in range(1, slots):
            i = index[a]
            rhs[a] = state[i] - score[i] if alive[a] else 0.0
            error = max(error, abs(rhs[a]))
        if error <= 2e-11 or attempt == 2:
            break
        apply_inverse(fix, B, size, slots, rhs, U, kappa, events, alive, shape)
        for a in range(1, slots):
            if alive[a]:
                beta[index[a]] += fix[a]
        for i in range(count):
            score[i] += fix[0]
        add_rows(score, count, K, index[1:], fix[1:], slots - 1)
    return error


@compiled
def suppose(  # type: ignore[no-untyped-def]
    sign,
    p,
    budget,
    scale,
    K,
    count,
    positive,
    total,
    C,
    members,
    m,
    B,
    direction,
    response,
    beta0,
    score0,
    state0,
    up0,
    down0,
    beta,
    score,
    state,
    index,
    alive,
    U,
    kappa,
    shape,
    work,
    around,
    near,
    pack,
):
    """Solve one machine with one more label of sign `sign` at p, whose counts include it already.

    The base `beta0`, ... is solved, with p at its place but not in the margin.
    Returns (how to commit, slots, events, worst violation).
    """
    worst = np.inf
    near_end = resolution(C, scale)
    up, down = around[7], around[8]
    alone = np.empty(1, np.int64)
    alone_B = np.empty((2, 2))
    widen = 1.0
    for attempt in range(4):
        if attempt > 0:
            widen *= 4.0
        if attempt == 3:
            widen = 0.0
        for i in range(count):
            beta[i] = beta0[i]
            score[i] = score0[i]
            state[i] = state0[i]
            up[i] = up0[i]
            down[i] = down0[i]
        commit = UPDATE
        left = budget
        size, base_members, base_B = m, members, B
        slots, events, outcome = 1, 0, SOLVED
        for leg in range(4 * count + 50):
            if size == 0:
                # Nobody stands on the margin: only the bias can move, until somebody does.
                commit = REBUILD
                absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE
                distance, who = shift_bias(float(sign), p, absorbing, count, score, up, down)
                if distance < -ACCEPT:
                    outcome = FAILED
                    break
                distance = max(0.0, distance)
                for i in range(count):
                    score[i] += sign * distance
                slots, events = 1, 0
                if who == p:
                    if absorbing:
                        height = C * (total[p] - positive[p] if sign > 0 else positive[p])
                        if left > height:
                            left -= height
                            state[p] = MIDDLE
                            continue
                        state[p] = MINUS if sign > 0 else PLUS
                    else:
                        state[p] = PLUS if sign > 0 else MINUS
                    break
                state[who] = PLUS if (up[who] if sign > 0 else down[who]) > 0 else MINUS
                score[who] = state[who]
                up[who] = np.inf
                down[who] = -np.inf
                alone[0] = who
                alone_B[0, 0] = -K[who, who]
                alone_B[0, 1] = 1.0
                alone_B[1, 0] = 1.0
                alone_B[1, 1] = 0.0
                size, base_members, base_B = 1, alone, alone_B
            # An earlier attempt may have left the direction of another margin behind.
            if leg > 0 or attempt > 0 or size != m or m == 0:
                respond(K, count, base_members, size, base_B, p, direction, response, shape, work[6])
            outcome, left, slots, events, joined = follow(
                sign,
                p,
                left,
                widen if leg == 0 else 0.0,
                scale,
                K,
                count,
                positive,
                total,
                C,
                base_members,
                size,
                base_B,
                direction,
                response,
                beta,
                score,
                state,
                up,
                down,
                index,
                alive,
                U,
                kappa,
                shape,
                work,
                around,
                near,
                pack,
            )
            if outcome == FAILED:
                break
            living = 0
            for a in range(1, slots):
                if alive[a]:
                    living += 1
            if living == 0:
                commit = REBUILD
                slots, events = 1, 0
            if joined or living > 0 or left <= 0.0:
                break
            size = 0
        if outcome == FAILED:
            continue
        if state[p] != PLUS and state[p] != MINUS:
            # The budget is spent: p's coefficient stands at an end of its segments, exactly.
            beta[p] = C * (2 * positive[p] - total[p])
            if state[p] == ABOVE:
                beta[p] = -C * (total[p] - positive[p])
            elif state[p] == BELOW:
                beta[p] = C * positive[p]
        only = p
        living = 0
        for a in range(1, slots):
            if alive[a]:
                living += 1
                only = index[a]
        if living == 1:
            # A single member balances the others, which all stand at ends: so, with them, it is exact.
            beta[only] -= total_of(beta, count)
        error = 0.0
        if slots > 1:
            error = correct(
                K, count, slots, size, base_B, beta, score, state, index, alive, U, kappa, events, shape, work
            )
        inside = 0
        for a in range(1, slots):
            if alive[a]:
                i = index[a]
                low, high = segment(state[i], positive[i], total[i] - positive[i], C)
                if beta[i] > low + near_end and beta[i] < high - near_end:
                    inside += 1
                error = max(error, (low - beta[i]) / C, (beta[i] - high) / C)
        if not error <= ACCEPT:
            continue
        if inside == 0:
            # No coefficient strictly inside its segment: the margin is empty and the bias an interval.
            commit = REBUILD
            for i in range(count):
                if state[i] == PLUS or state[i] == MINUS:
                    low, high = segment(state[i], positive[i], total[i] - positive[i], C)
                    if beta[i] <= low + near_end:
                        beta[i] = low
                        state[i] = ABOVE if state[i] == PLUS else MIDDLE
                    elif beta[i] >= high - near_end:
                        beta[i] = high
                        state[i] = MIDDLE if state[i] == PLUS else BELOW
                    else:
                        inside += 1  # alone on the margin, at an object of several examples
                    set_levels(i, state[i], positive[i], total[i] - positive[i], up, down)
            slots, events = 1, 0
            if inside == 0:
                centre(beta, score, positive, total, C, count, near_end)
        for a in range(1, slots):
            if alive[a]:
                i = index[a]
                score[i] = state[i]
                up[i] = np.inf
                down[i] = -np.inf
        if state[p] == PLUS or state[p] == MINUS:
            score[p] = state[p]
            up[p] = np.inf
            down[p] = -np.inf
        else:
            set_levels(p, state[p], positive[p], total[p] - positive[p], up, down)
        worst = max(error, largest_violation(score, up, down, count, work[6]))
        if worst <= ACCEPT and abs(score[p]) < np.inf:
            return commit, slots, events, worst
    return UNSOLVED, 1, 0, worst


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
def solve_step(p, new, count, examples, sizes, scale, C, objects, solved, branches, scratch):  # type: ignore[no-untyped-def]
    """Answer, for every machine, both suppositions about object p.

    `count` objects with p included; `examples` examples and `sizes` (c,) per class, without the
    supposed one. Branches marked UNSOLVED are left to the caller. Returns the worst
    violation of the solved branches, NaN when the kernel is not finite at p.
    """
    K, counts, total = objects
    beta, score, state, bias, members, size, B, spare = solved
    betas, scores, states, commit, slots, index, alive, events, U, kappa, alternate = branches
    shape, work, around, near, pack = scratch
    near_end = resolution(C, scale)
    worst_of_all = 0.0
    if new:
        worst_of_all = place(p, examples, sizes, K, counts, total, beta, score, state, bias)
        if worst_of_all != 0.0:
            return worst_of_all
    direction = work[8]
    response, up, down = around[9], around[10], around[11]
    base_state = np.empty(count, np.int8)
    others = np.empty(members.shape[1], np.int64)
    for k in range(counts.shape[0]):
        positive = counts[k]
        one_class = sizes[k] == 0 or sizes[k] == examples
        ready = False
        for side in range(2):
            sign = 1 if side == 1 else -1
            beyond = ABOVE if side == 1 else BELOW
            alternate[k, side] = False
            slots[k, side] = 1
            events[k, side] = 0
            at_level = abs(state[k, p]) == 1
            if one_class:
                commit[k, side] = REBUILD
                if sizes[k] + side == 0 or sizes[k] + side == examples + 1:
                    for i in range(count):
                        betas[side, k, i] = 0.0
                        scores[side, k, i] = sign
                        states[side, k, i] = beyond
                else:
                    commit[k, side] = UNSOLVED
                continue
            total[p] += 1
            positive[p] += side
            same = (positive[p] if side == 1 else total[p] - positive[p]) - 1
            budget = C
            if at_level:
                # p's segment moves by C towards `sign`; while the coefficient stays inside, nothing changes.
                middle = C * (2 * positive[p] - total[p])
                budget = sign * (middle - beta[k, p])
                free = state[k, p] == sign or budget < -near_end
                budget = max(0.0, budget)
            else:
                free = state[k, p] == beyond or (same == 0 and sign * score[k, p] >= 1.0 - 1e-10)
            if free:
                for i in range(count):
                    betas[side, k, i] = beta[k, i]
                    scores[side, k, i] = score[k, i]
                    states[side, k, i] = state[k, i]
                if not at_level:
                    states[side, k, p] = beyond
                if size[k] == 0:
                    centre(betas[side, k], scores[side, k], positive, total, C, count, near_end)
                commit[k, side] = KEEP
            else:
                m = size[k]
                base_members = members[k]
                base_B = B[k]
                if not ready:
                    for i in range(count):
                        base_state[i] = state[k, i]
                        if abs(base_state[i]) == 1:
                            up[i] = np.inf
                            down[i] = -np.inf
                        else:
                            set_levels(i, base_state[i], positive[i], total[i] - positive[i], up, down)
                if at_level:
                    alternate[k, side] = True
                    base_state[p] = MIDDLE
                    if m > 1:
                        where = 0
                        for a in range(m):
                            others[a] = members[k, a]
                            if others[a] == p:
                                where = a
                        without_member(B[k], m, where + 1, spare[k])
                        others[where] = others[m - 1]
                    m -= 1
                    base_members = others
                    base_B = spare[k]
                if m > 0 and not ready:
                    respond(K, count, base_members, m, base_B, p, direction, response, shape, work[6])
                # The two suppositions share direction and response, unless the first one overwrote them.
                ready = m > 0
                how, n_slots, n_events, worst = suppose(
                    sign,
                    p,
                    budget,
                    scale,
                    K,
                    count,
                    positive,
                    total,
                    C,
                    base_members,
                    m,
                    base_B,
                    direction,
                    response,
                    beta[k],
                    score[k],
                    base_state,
                    up,
                    down,
                    betas[side, k],
                    scores[side, k],
                    states[side, k],
                    index[k, side],
                    alive[k, side],
                    U[k, side],
                    kappa[k, side],
                    shape,
                    work,
                    around,
                    near,
                    pack,
                )
                ready = ready and how == UPDATE
                commit[k, side] = how
                slots[k, side] = n_slots
                events[k, side] = n_events
                if how != UNSOLVED:
                    worst_of_all = max(worst_of_all, worst)
            total[p] -= 1
            positive[p] -= side
    return worst_of_all


@compiled
def rebuild(k, scale, count, C, objects, solved):  # type: ignore[no-untyped-def]
    """Build the margin and its bordered inverse from the states; set its size.

    Members whose features depend on the others' (a linear kernel has few independent ones) leave
    the margin: their coefficient is moved along the null direction, which changes no score, until
    somebody reaches the end of its segment.
    """
    K, total, positive = objects.kernel, objects.total, objects.counts[k]
    beta, state, members, B = solved.beta[k], solved.state[k], solved.members[k], solved.inverse[k]
    m = 0
    B[0, 0] = 0.0
    shape = np.arange(B.shape[0])
    z = np.empty(B.shape[0])
    u = np.empty(B.shape[0])
    for i in range(count):
        if state[i] != PLUS and state[i] != MINUS:
            continue
        while True:
            if m == 0:
                B[0, 0] = -K[i, i]
                B[0, 1] = 1.0
                B[1, 0] = 1.0
                B[1, 1] = 0.0
                members[0] = i
                m = 1
                break
            z[0] = -1.0
            for a in range(m):
                z[a + 1] = -K[i, members[a]]
            for a in range(m + 1):
                u[a] = 0.0
            add_rows(u, m + 1, B, shape, z, m + 1)
            pivot = K[i, i] - dot(u, z, m + 1)
            if pivot > DEPENDENT * scale:
                for a in range(m + 1):
                    for e in range(m + 1):
                        B[a, e] += u[a] * u[e] / pivot
                    B[a, m + 1] = u[a] / pivot
                    B[m + 1, a] = u[a] / pivot
                B[m + 1, m + 1] = 1.0 / pivot
                members[m] = i
                m += 1
                break
            # Dependent: raise beta[i] until it or a member is at an end.
            negative = total[i] - positive[i]
            middle = C * (positive[i] - negative)
            high = middle if state[i] == PLUS else C * positive[i]
            step = high - beta[i]
            who = -1
            for a in range(m):
                j = members[a]
                middle_j = C * (2 * positive[j] - total[j])
                low_j = -C * (total[j] - positive[j]) if state[j] == PLUS else middle_j
                high_j = middle_j if state[j] == PLUS else C * positive[j]
                if u[a + 1] > 1e-9:
                    ratio = (high_j - beta[j]) / u[a + 1]
                elif u[a + 1] < -1e-9:
                    ratio = (low_j - beta[j]) / u[a + 1]
                else:
                    continue
                if ratio < step:
                    step = max(0.0, ratio)
                    who = a
            beta[i] += step
            for a in range(m):
                beta[members[a]] += step * u[a + 1]
            if who < 0:
                beta[i] = high
                state[i] = MIDDLE if state[i] == PLUS else BELOW
                break
            j = members[who]
            middle_j = C * (2 * positive[j] - total[j])
            if state[j] == PLUS:
                if u[who + 1] > 0.0:
                    beta[j] = middle_j
                    state[j] = MIDDLE
                else:
                    beta[j] = -C * (total[j] - positive[j])
                    state[j] = ABOVE
            elif u[who + 1] > 0.0:
                beta[j] = C * positive[j]
                state[j] = BELOW
            else:
                beta[j] = middle_j
                state[j] = MIDDLE
            if m == 1:
                m = 0
                B[0, 0] = 0.0
                continue
            reduced = np.empty((m + 1, m + 1))
            without_member(B, m, who + 1, reduced)
            for a in range(m):
                for e in range(m):
                    B[a, e] = reduced[a, e]
            members[who] = members[m - 1]
            m -= 1
    solved.size[k] = m


@compiled
def commit_step(label, count, objects, solved, branches):  # type: ignore[no-untyped-def]
    """Keep, in every machine, the branch of the revealed label.

    Returns how many margins are marked REBUILD and left to the caller.
    """
    K = objects.kernel
    beta, score, state, bias, members, size, B, spare = solved
    betas, scores, states, commit, slots, index, alive, events, U, kappa, alternate = branches
    anew = 0
    for k in range(size.shape[0]):
        side = 1 if k == label else 0
        for i in range(count):
            beta[k, i] = betas[side, k, i]
            score[k, i] = scores[side, k, i]
            state[k, i] = states[side, k, i]
        how = commit[k, side]
        bias[k] = score[k, 0] - dot(K[0], beta[k], count)
        if how == REBUILD:
            anew += 1
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
        # The last living slots take the places of the dead ones.
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
    return anew


@compiled
def place(p, examples, sizes, K, counts, total, beta, score, state, bias):  # type: ignore[no-untyped-def]
    """Set the base entries of the new object p: no examples, coefficient 0, score by every machine.

    Returns 0, or NaN when its kernel row is not finite.
    """
    row = K[p]
    doubt = 0.0
    for i in range(p + 1):
        K[i, p] = row[i]
        doubt += 0.0 * row[i]
    total[p] = 0
    for k in range(counts.shape[0]):
        counts[k, p] = 0
        beta[k, p] = 0.0
        state[k, p] = MIDDLE
        if sizes[k] == 0:
            score[k, p] = -1.0
        elif sizes[k] == examples:
            score[k, p] = 1.0
        else:
            score[k, p] = bias[k] + dot(row, beta[k], p)
    return doubt


@compiled
def refresh_scores(k, count, objects, solved):  # type: ignore[no-untyped-def]
    """Recompute machine k's scores from the kernel, so that rounding does not add up over a long stream."""
    K = objects.kernel
    beta, score, state, bias, members, size, _, _ = solved
    fresh = np.empty(count)
    scores_from(beta[k], 0.0, K, count, fresh)
    level = 0.0
    if size[k] > 0:
        for a in range(size[k]):
            i = members[k, a]
            level += state[k, i] - fresh[i]
        level /= size[k]
    else:
        for i in range(count):
            level += score[k, i] - fresh[i]
        level /= count
    for i in range(count):
        if state[k, i] != PLUS and state[k, i] != MINUS:
            score[k, i] = fresh[i] + level
    bias[k] = score[k, 0] - dot(K[0], beta[k], count)


@compiled
def worst_residual(count, examples, sizes, scale, C, objects, solved):  # type: ignore[no-untyped-def]
    """Return the worst violation of all machines by coefficients alone, scores computed afresh."""
    K, counts, total = objects
    beta, score, bias = solved.beta, solved.score, solved.bias
    fresh = np.empty(count)
    worst = 0.0
    for k in range(beta.shape[0]):
        if sizes[k] == 0 or sizes[k] == examples:
            continue
        scores_from(beta[k], bias[k], K, count, fresh)
        balance = 0.0
        for i in range(count):
            balance += beta[k, i]
            negative = total[i] - counts[k, i]
            rise, fall = levels(beta[k, i], counts[k, i], negative, C, resolution(C, scale))
            worst = max(worst, rise - fresh[i], fresh[i] - fall, abs(fresh[i] - score[k, i]))
            worst = max(worst, (beta[k, i] - C * counts[k, i]) / C, (-C * negative - beta[k, i]) / C)
        worst = max(worst, abs(balance) / C)
    return worst
