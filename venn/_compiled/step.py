"""One step of all one-against-all machines: 2c supposed problems solved, and the revealed one kept."""

import numpy as np

from venn._compiled.dense import add_rows, dot
from venn._compiled.jit import compiled
from venn._compiled.path import (
    ABOVE,
    BELOW,
    FAILED,
    MIDDLE,
    MINUS,
    PLUS,
    SOLVED,
    apply_inverse,
    follow,
    level_above,
    level_below,
    violation,
)
from venn._compiled.smo import batch_solve, kkt_gap, levels, scores_from

# How a solved branch is committed.
KEEP, UPDATE, REBUILD = 0, 1, 2

ACCEPT = 1e-9  # worst violation accepted from a path; above it the path is walked again, or a batch solve made


@compiled
def respond(K, count, members, m, B, p, direction, response, shape, z):  # type: ignore[no-untyped-def]
    """Set the motion of the margin (m + 1,) and of all scores (count,) per unit of beta[p]."""
    z[0] = 1.0
    for a in range(m):
        z[a + 1] = K[p, members[a]]
    direction[: m + 1] = 0.0
    add_rows(direction, m + 1, B, shape, z, m + 1)
    for a in range(m + 1):
        direction[a] = -direction[a]
    row = K[p]
    shift = direction[0]
    for i in range(count):
        response[i] = row[i] + shift
    add_rows(response, count, K, members, direction[1:], m)


@compiled
def shift_bias(sign, p, absorbing, count, positive, total, score, state):  # type: ignore[no-untyped-def]
    """Find what an empty margin's bias meets first, moving by `sign`: (distance, object)."""
    best = sign * ((-float(sign) if absorbing else float(sign)) - score[p])
    who = p
    for i in range(count):
        if i == p:
            continue
        if sign > 0:
            distance = level_above(state[i], positive[i], total[i] - positive[i]) - score[i]
        else:
            distance = score[i] - level_below(state[i], positive[i], total[i] - positive[i])
        if distance < best:
            best = distance
            who = i
    return max(0.0, best), who


@compiled
def centre(beta, score, state, positive, total, C, count):  # type: ignore[no-untyped-def]
    """With an empty margin the bias is free in an interval: move it to the midpoint."""
    low, high = kkt_gap(beta, score, positive, total, C, count)
    shift = 0.5 * (low + high)
    for i in range(count):
        score[i] += shift


@compiled
def suppose(  # type: ignore[no-untyped-def]
    sign, p, K, count, positive, total, C, members, m, B, direction, response, known, budget,
    beta0, score0, state0, beta, score, state, index, alive, U, kappa, shape, work,
):
    """Solve one machine with one more label of sign `sign` at p, whose counts include it already.

    `beta0`, `score0`, `state0` are the solved base with p at its place, not in the margin.
    Returns (outcome, how to commit, slots, events, worst violation).
    """
    worst = np.inf
    widen = 1.0
    for attempt in range(4):
        if attempt == 3:
            widen = 0.0
        elif attempt > 0:
            widen *= 4.0
        for i in range(count):
            beta[i] = beta0[i]
            score[i] = score0[i]
            state[i] = state0[i]
        commit = UPDATE
        left = budget
        size = m
        current_members = members
        current_B = B
        slots = 1
        events = 0
        joined = False
        outcome = SOLVED
        first = True
        own_members = np.empty(1, np.int64)
        own_B = np.empty((2, 2))
        rounds = 0
        while True:
            rounds += 1
            if rounds > 4 * count + 50:
                outcome = FAILED
                break
            absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE
            if size == 0:
                commit = REBUILD
                distance, who = shift_bias(sign, p, absorbing, count, positive, total, score, state)
                for i in range(count):
                    score[i] += sign * distance
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
                    score[p] = float(state[p])
                    slots = 1
                    events = 0
                    break
                # The met object becomes the only member.
                level = level_above(state[who], positive[who], total[who] - positive[who]) if sign > 0 else (
                    level_below(state[who], positive[who], total[who] - positive[who]))
                state[who] = PLUS if level > 0 else MINUS
                score[who] = level
                own_members[0] = who
                own_B[0, 0] = -K[who, who]
                own_B[0, 1] = 1.0
                own_B[1, 0] = 1.0
                own_B[1, 1] = 0.0
                current_members = own_members
                current_B = own_B
                size = 1
                first = False
            if first and known:
                outcome, left, slots, events, joined = follow(
                    sign, p, left, widen, K, count, positive, total, C, current_members, size, current_B,
                    direction, response, beta, score, state, index, alive, U, kappa, shape, work)
            else:
                own_direction = np.empty(size + 1)
                own_response = np.empty(count)
                respond(K, count, current_members, size, current_B, p, own_direction, own_response, shape, work[6])
                outcome, left, slots, events, joined = follow(
                    sign, p, left, 0.0, K, count, positive, total, C, current_members, size, current_B,
                    own_direction, own_response, beta, score, state, index, alive, U, kappa, shape, work)
            first = False
            if outcome == FAILED:
                break
            living = 0
            for a in range(1, slots):
                if alive[a]:
                    living += 1
            if living == 0:
                commit = REBUILD
                slots = 1
                events = 0
            if joined or living > 0 or left <= 0.0:
                break
            size = 0
        if outcome == FAILED:
            return FAILED, commit, slots, events, worst
        # Members stand at their level; what rounding left is removed by one or two corrections.
        if slots > 1:
            for _ in range(3):
                error = 0.0
                rhs = work[3]
                rhs[0] = 0.0
                for i in range(count):
                    rhs[0] -= beta[i]
                error = abs(rhs[0])
                for a in range(1, slots):
                    rhs[a] = (float(state[index[a]]) - score[index[a]]) if alive[a] else 0.0
                    error = max(error, abs(rhs[a]))
                if error <= 2e-11:
                    break
                fix = work[4]
                apply_inverse(fix, current_B, size, slots, rhs, U, kappa, events, alive, shape)
                for a in range(1, slots):
                    if alive[a]:
                        beta[index[a]] += fix[a]
                for i in range(count):
                    score[i] += fix[0]
                add_rows(score, count, K, index[1:], fix[1:], slots - 1)
        inside = 0
        breach = 0.0
        for a in range(1, slots):
            if alive[a]:
                i = index[a]
                negative = total[i] - positive[i]
                middle = C * (positive[i] - negative)
                low = -C * negative if state[i] == PLUS else middle
                high = middle if state[i] == PLUS else C * positive[i]
                near = 1e-10 * C
                if beta[i] > low + near and beta[i] < high - near:
                    inside += 1
                breach = max(breach, low - beta[i], beta[i] - high)
        if breach > 1e-9 * C:
            return FAILED, commit, slots, events, breach
        if inside == 0:
            # No coefficient strictly inside: the margin is empty and the bias an interval.
            commit = REBUILD
            for i in range(count):
                if state[i] == PLUS or state[i] == MINUS:
                    negative = total[i] - positive[i]
                    middle = C * (positive[i] - negative)
                    if abs(beta[i] - middle) <= 1e-9 * C:
                        beta[i] = middle
                        state[i] = MIDDLE
                    elif state[i] == PLUS and abs(beta[i] + C * negative) <= 1e-9 * C:
                        beta[i] = -C * negative
                        state[i] = ABOVE
                    elif state[i] == MINUS and abs(beta[i] - C * positive[i]) <= 1e-9 * C:
                        beta[i] = C * positive[i]
                        state[i] = BELOW
                    else:
                        inside += 1
            slots = 1
            events = 0
            if inside == 0:
                centre(beta, score, state, positive, total, C, count)
        worst = 0.0
        for i in range(count):
            worst = max(worst, violation(state[i], score[i], positive[i], total[i] - positive[i]))
        if worst <= ACCEPT:
            for i in range(count):
                if state[i] == PLUS or state[i] == MINUS:
                    score[i] = float(state[i])
            return SOLVED, commit, slots, events, worst
    return FAILED, commit, slots, events, worst


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
def solve_step(  # type: ignore[no-untyped-def]
    p, count, examples, sizes, K, counts, total, C, members, size, B, spare, beta, score, state,
    betas, scores, states, index, alive, U, kappa, commit, slots, events, alternate, shape, work, statistics,
):
    """Answer, for every machine, both suppositions about object p; return the worst violation.

    `count` objects with p included; `examples` examples and `sizes` (c,) per class, without the
    supposed one. Base arrays (c, .) are read; `betas`, `scores`, `states` (c, 2, .) are written: [k, 0] supposes
    that p is not of class k, [k, 1] that it is.
    """
    worst_of_all = 0.0
    classes = counts.shape[0]
    direction = work[7]
    response = np.empty(count)
    base_beta = np.empty(count)
    base_score = np.empty(count)
    base_state = np.empty(count, np.int8)
    small = np.empty(count + 1, np.int64)
    for k in range(classes):
        positive = counts[k]
        m = size[k]
        one_class = sizes[k] == 0 or sizes[k] == examples
        known = False
        base_ready = False
        for side in range(2):
            sign = 1 if side == 1 else -1
            beta_v = betas[k, side]
            score_v = scores[k, side]
            state_v = states[k, side]
            total[p] += 1
            positive[p] += side
            commit[k, side] = KEEP
            alternate[k, side] = False
            slots[k, side] = 1
            events[k, side] = 0
            if one_class:
                still = sizes[k] + side == 0 or sizes[k] + side == examples + 1
                if still:
                    for i in range(count):
                        beta_v[i] = 0.0
                        score_v[i] = float(sign)
                        state_v[i] = ABOVE if sign > 0 else BELOW
                else:
                    beta_v[:count] = 0.0
                    worst = batch_solve(K, count, positive, total, C, beta_v, score_v, state_v, 1e-8)
                    worst_of_all = max(worst_of_all, worst)
                    for i in range(count):
                        if state_v[i] == PLUS or state_v[i] == MINUS:
                            score_v[i] = float(state_v[i])
                    statistics[3] += 1
                commit[k, side] = REBUILD
                total[p] -= 1
                positive[p] -= side
                continue
            st = state[k, p]
            same = (positive[p] if side == 1 else total[p] - positive[p]) - 1
            beyond = ABOVE if side == 1 else BELOW
            at_level = st == PLUS or st == MINUS
            drive = True
            budget = C
            if at_level:
                if st == sign:
                    drive = False
                else:
                    # p's segment moves by C; as long as the coefficient stays inside nothing changes.
                    low = -C * (total[p] - positive[p])
                    middle = C * (2 * positive[p] - total[p])
                    high = C * positive[p]
                    if sign > 0:
                        short = middle - beta[k, p]
                    else:
                        short = beta[k, p] - middle
                    if short <= 0.0:
                        drive = False
                    else:
                        budget = short
            elif st == beyond or (same == 0 and sign * score[k, p] >= 1.0 - 1e-10):
                drive = False
            if not drive:
                for i in range(count):
                    beta_v[i] = beta[k, i]
                    score_v[i] = score[k, i]
                    state_v[i] = state[k, i]
                if not at_level:
                    state_v[p] = beyond
                if m == 0:
                    centre(beta_v, score_v, state_v, positive, total, C, count)
                statistics[0] += 1
                total[p] -= 1
                positive[p] -= side
                continue
            statistics[1] += 1
            B_k = B[k]
            members_k = members[k]
            m_k = m
            if not base_ready:
                for i in range(count):
                    base_beta[i] = beta[k, i]
                    base_score[i] = score[k, i]
                    base_state[i] = state[k, i]
                base_ready = True
            base_state[p] = st
            if at_level:
                base_state[p] = MIDDLE
                if m > 1:
                    where = 0
                    for a in range(m):
                        small[a] = members[k, a]
                        if members[k, a] == p:
                            where = a
                    without_member(B[k], m, where + 1, spare[k])
                    small[where] = small[m - 1]
                B_k = spare[k]
                members_k = small
                m_k = m - 1
                alternate[k, side] = True
            if m_k > 0 and not (known and not at_level):
                respond(K, count, members_k, m_k, B_k, p, direction, response, shape, work[6])
                known = not at_level
            outcome, how, n_slots, n_events, worst = suppose(
                sign, p, K, count, positive, total, C, members_k, m_k, B_k, direction, response, m_k > 0, budget,
                base_beta, base_score, base_state, beta_v, score_v, state_v,
                index[k, side], alive[k, side], U[k, side], kappa[k, side], shape, work)
            statistics[2] += n_events
            if outcome == FAILED:
                statistics[4] += 1
                for i in range(count):
                    beta_v[i] = beta[k, i]
                worst = batch_solve(K, count, positive, total, C, beta_v, score_v, state_v, 1e-8)
                for i in range(count):
                    if state_v[i] == PLUS or state_v[i] == MINUS:
                        score_v[i] = float(state_v[i])
                how = REBUILD
            worst_of_all = max(worst_of_all, worst)
            commit[k, side] = how
            slots[k, side] = n_slots
            events[k, side] = n_events
            total[p] -= 1
            positive[p] -= side
    return worst_of_all


@compiled
def rebuild(K, count, positive, total, C, beta, state, members, B):  # type: ignore[no-untyped-def]
    """Build the margin and its bordered inverse from the states; return its size, or -1 on failure.

    Members whose features depend on the others' (a linear kernel has few independent ones) leave
    the margin: their coefficient is moved along the null direction, which changes no score, until
    somebody reaches the end of its segment.
    """
    m = 0
    B[0, 0] = 0.0
    shape = np.arange(B.shape[0])
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
            z = np.empty(m + 1)
            z[0] = 1.0
            for a in range(m):
                z[a + 1] = K[i, members[a]]
            u = np.zeros(m + 1)
            add_rows(u, m + 1, B, shape, -z, m + 1)
            pivot = K[i, i] + np.dot(u, z)
            scale = K[i, i] + np.abs(u[1:]).max() * np.abs(z[1:]).max()
            if pivot > 1e-10 * scale:
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
            B[:m, :m] = reduced[:m, :m]
            members[who] = members[m - 1]
            m -= 1
    return m


@compiled
def commit_step(  # type: ignore[no-untyped-def]
    p, label, count, K, counts, total, C, members, size, B, spare, beta, score, state,
    betas, scores, states, index, alive, U, kappa, commit, slots, events, alternate,
):
    """Keep, in every machine, the branch of the revealed label; counts include it already."""
    for k in range(counts.shape[0]):
        side = 1 if k == label else 0
        beta[k, :count] = betas[k, side, :count]
        score[k, :count] = scores[k, side, :count]
        state[k, :count] = states[k, side, :count]
        how = commit[k, side]
        if how == KEEP:
            continue
        B_k = B[k]
        if how == REBUILD:
            size[k] = rebuild(K, count, counts[k], total, C, beta[k], state[k], members[k], B_k)
            continue
        n = slots[k, side]
        m = size[k]
        if alternate[k, side]:
            m -= 1
            B_k[: m + 1, : m + 1] = spare[k, : m + 1, : m + 1]
        for r in range(m + 1):
            B_k[r, m + 1 : n] = 0.0
        for r in range(m + 1, n):
            B_k[r, :n] = 0.0
        U_k = U[k, side]
        for e in range(events[k, side]):
            row = U_k[e]
            for r in range(n):
                weight = row[r] / kappa[k, side, e]
                if weight != 0.0:
                    into = B_k[r]
                    for s in range(n):
                        into[s] += weight * row[s]
        index_k = index[k, side]
        alive_k = alive[k, side]
        last = n - 1
        a = 1
        while a <= last:
            if alive_k[a]:
                members[k, a - 1] = index_k[a]
                a += 1
                continue
            while last > a and not alive_k[last]:
                last -= 1
            if last == a:
                last -= 1
                break
            for s in range(n):
                B_k[a, s] = B_k[last, s]
            for r in range(n):
                B_k[r, a] = B_k[r, last]
            B_k[a, a] = B_k[last, last]
            members[k, a - 1] = index_k[last]
            last -= 1
            a += 1
        size[k] = last


@compiled
def place(p, examples, sizes, K, counts, beta, score, state, bias):  # type: ignore[no-untyped-def]
    """Set the base entries of the new object p: no examples, coefficient 0, score by every machine."""
    row = K[p]
    for i in range(p):
        K[i, p] = row[i]
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


@compiled
def biases(count, K, beta, score, bias):  # type: ignore[no-untyped-def]
    """Set the bias of each machine from its scores."""
    for k in range(bias.shape[0]):
        bias[k] = score[k, 0] - dot(K[0], beta[k], count)


@compiled
def refresh_scores(count, examples, sizes, K, beta, score, state, size, members):  # type: ignore[no-untyped-def]
    """Recompute all scores from the kernel, so that rounding does not add up over a long stream."""
    fresh = np.empty(count)
    for k in range(beta.shape[0]):
        if sizes[k] == 0 or sizes[k] == examples:
            continue
        scores_from(beta[k], 0.0, K, count, fresh)
        bias = 0.0
        if size[k] > 0:
            for a in range(size[k]):
                i = members[k, a]
                bias += state[k, i] - fresh[i]
            bias /= size[k]
        else:
            for i in range(count):
                bias += score[k, i] - fresh[i]
            bias /= count
        for i in range(count):
            if state[k, i] != PLUS and state[k, i] != MINUS:
                score[k, i] = fresh[i] + bias


@compiled
def worst_residual(count, K, counts, total, C, beta, score, sizes, examples, bias):  # type: ignore[no-untyped-def]
    """Return the worst violation of all machines by coefficients alone, scores computed afresh."""
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
            rise, fall = levels(beta[k, i], counts[k, i], negative, C)
            worst = max(worst, rise - fresh[i], fresh[i] - fall, abs(fresh[i] - score[k, i]))
            worst = max(worst, (beta[k, i] - C * counts[k, i]) / C, (-C * negative - beta[k, i]) / C)
        worst = max(worst, abs(balance) / C)
    return worst
