"""One step of all machines: solve every supposed problem."""

import numpy as np

from venn._compiled.buffers import KEEP, REBUILD, UNSOLVED, UPDATE, Base, Branch, MarginBuffers, Motion, Supposition
from venn._compiled.jit import compiled
from venn._compiled.margin import ENOUGH, ROUNDING, place, total_of, without_member
from venn._compiled.path import (
    ABOVE,
    BELOW,
    FAILED,
    FLAT,
    MIDDLE,
    MINUS,
    PLUS,
    SOLVED,
    apply_inverse,
    copy_levels,
    follow,
    look_closer,
    nearest,
    own_height,
    screen,
    segment,
    set_levels,
)
from venn._compiled.rows import add_rows
from venn._compiled.solvers import bias_interval, resolution

PART = 0.25  # share of the promised violation that is accepted from a path, and also from drift
ATTEMPTS = 6  # with more objects watched each time, and all of them the last time
LANES = 16


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
def shift_bias(sign, p, absorbing, K, count, score, up, down):  # type: ignore[no-untyped-def]
    """Find what an empty margin's bias meets first when moving by `sign`: (distance, object).

    A negative distance says that an object passed its level unwatched. Among several the one nearest to p comes first,
    because p moves its score most: as with the first example of a class, where all others are at their level.
    """
    best = sign * ((-sign if absorbing else sign) - score[p])
    who = p
    row = K[p]
    for i in range(count):
        if i != p:
            distance = up[i] - score[i] if sign > 0 else score[i] - down[i]
            if distance < best or (distance == best and who != p and row[i] > row[who]):
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
    """Return the largest distance of a score outside its levels; in lanes, which the compiler can widen."""
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
def correct(K, count, C, tolerance, slots, size, B, beta, score, state, index, alive, U, kappa, events, shape, work):  # type: ignore[no-untyped-def]
    """Put the members back on their levels where rounding moved them off; return the remaining error."""
    error, before = 0.0, np.inf
    rhs, fix = work[6], work[7]
    for attempt in range(8):
        rhs[0] = -total_of(beta, count)
        error = abs(rhs[0]) / C
        for a in range(1, slots):
            i = index[a]
            rhs[a] = state[i] - score[i] if alive[a] else 0.0
            error = max(error, abs(rhs[a]))
        # With a nearly dependent margin each attempt corrects less.
        if error <= ENOUGH * tolerance or not error < 0.5 * before or attempt == 7:
            break
        before = error
        apply_inverse(fix, B, size, slots, rhs, U, kappa, events, alive, shape)
        for a in range(1, slots):
            if alive[a]:
                beta[index[a]] += fix[a]
        for i in range(count):
            score[i] += fix[0]
        add_rows(score, count, K, index[1:], fix[1:], slots - 1)
    return error


@compiled
def changes_ahead(case, budget, margin, motion, base):  # type: ignore[no-untyped-def]
    """Return how many objects would leave their segment or pass a level if the first motion continued to the end.

    There will be at least about as many events.
    """
    sign, p, _, count, positive, total, C, scale, _ = case
    direction, response = motion
    reach = budget
    if response[p] > FLAT * scale:
        reach = min(budget, sign * (sign - base.score[p]) / response[p])
    move = sign * reach
    changes = 0
    for i in range(count):
        score = base.score[i] + move * response[i]
        changes += (score > base.up[i]) | (score < base.down[i])
    for a in range(margin.size):
        i = margin.members[a]
        low, high = segment(base.state[i], positive[i], total[i] - positive[i], C)
        value = base.beta[i] + move * direction[a + 1]
        changes += (value > high) | (value < low)
    return changes


@compiled
def start(base, branch, count):  # type: ignore[no-untyped-def]
    """Set a branch to the machine's current solution."""
    for i in range(count):
        branch.beta[i] = base.beta[i]
        branch.score[i] = base.score[i]
        branch.state[i] = base.state[i]
        branch.up[i] = base.up[i]
        branch.down[i] = base.down[i]


@compiled
def living(slots, alive):  # type: ignore[no-untyped-def]
    """Return the number of slots that are members."""
    n = 0
    for a in range(1, slots):
        n += alive[a]
    return n


@compiled
def walk(case, budget, watch, margin, motion, base, branch, scratch):  # type: ignore[no-untyped-def]
    """Follow the path from the current machine, also through empty margins.

    With `watch` 1 `slack` in `scratch` says which objects are watched on the way, with 0 `screen` chooses them, and
    with -1 all are watched. Returns (outcome, how to commit, the margin that slots refer to, slots, events, whether its
    inverse lost digits).
    """
    sign, p, K, count, positive, total, C, _, tolerance = case
    score, state, up, down, alive = branch.score, branch.state, branch.up, branch.down, branch.alive
    direction, response = motion
    slack = scratch.around[0]
    alone = np.empty(1, np.int64)
    alone_B = np.empty((2, 2))
    commit, left = UPDATE, budget
    members, size, B = margin
    slots, events, outcome, spoilt = 1, 0, SOLVED, False
    for leg in range(4 * count + 50):
        if size == 0:
            # The margin is empty: only the bias can move, until an object joins.
            commit = REBUILD
            absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE
            distance, who = shift_bias(float(sign), p, absorbing, K, count, score, up, down)
            if distance < -PART * tolerance:
                outcome = FAILED
                break
            distance = max(0.0, distance)
            for i in range(count):
                score[i] += sign * distance
            slots, events = 1, 0
            if who == p:
                if absorbing:
                    height = own_height(sign, p, positive, total, C)
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
            members, size, B = alone, 1, alone_B
        if leg > 0 or margin.size == 0:
            respond(K, count, members, size, B, p, direction, response, scratch.order, scratch.margin[6])
        if leg > 0 or watch < 0:
            screen(case, left, 0.0, response, branch, slack)
        elif watch == 0:
            screen(case, left, 1.0, response, branch, slack)
        outcome, left, slots, events, joined, lost = follow(
            case, left, MarginBuffers(members, size, B), motion, branch, scratch
        )
        spoilt |= lost
        if outcome != SOLVED:
            break
        remaining = living(slots, alive)
        if remaining == 0:
            commit = REBUILD
            slots, events = 1, 0
        if joined or remaining > 0 or left <= 0.0:
            break
        size = 0
    return outcome, commit, MarginBuffers(members, size, B), slots, events, spoilt


@compiled
def land(case, commit, slots, events, margin, branch, scratch):  # type: ignore[no-untyped-def]
    """Finish a path: put coefficients exactly at their ends, and members exactly on their levels.

    Returns (how to commit, slots, events, worst violation of the members, how far coefficients were corrected).
    """
    _, p, K, count, positive, total, C, scale, tolerance = case
    beta, score, state, up, down, index, alive, U, kappa = branch
    _, size, B = margin
    near_end = resolution(C, scale)
    if state[p] != PLUS and state[p] != MINUS:
        # The budget is spent: p's coefficient is exactly at an end of its segments.
        end = C * (2 * positive[p] - total[p])
        if state[p] == ABOVE:
            end = -C * (total[p] - positive[p])
        elif state[p] == BELOW:
            end = C * positive[p]
        change = end - beta[p]
        if change != 0.0:
            # Mostly rounding; but a coefficient slightly beyond its end had no budget to come back.
            beta[p] = end
            for i in range(count):
                score[i] += change * K[p, i]
    if living(slots, alive) == 1:
        # A single member balances the others, which are all at ends: so it is exact with them. Where members that have
        # left were nearly equal, the path's imbalance is more than rounding: scores move with it.
        for a in range(1, slots):
            if alive[a]:
                i = index[a]
                change = -total_of(beta, count)
                beta[i] += change
                shift = -change * K[i, i]
                for j in range(count):
                    score[j] += shift + change * K[i, j]
    error = 0.0
    if slots > 1:
        error = correct(
            K, count, C, tolerance, slots, size, B, beta, score, state, index, alive, U, kappa, events,
            scratch.order, scratch.margin,
        )  # fmt: skip
    inside, lone, rest = 0, -1, total_of(beta, count)
    for a in range(1, slots):
        if alive[a]:
            i = index[a]
            low, high = segment(state[i], positive[i], total[i] - positive[i], C)
            if beta[i] > low + near_end and beta[i] < high - near_end:
                inside += 1
                lone = i
                rest -= beta[i]
            else:
                rest += nearest(beta[i], low, high) - beta[i]
            error = max(error, (low - beta[i]) / C, (beta[i] - high) / C)
    snapped = 0.0
    if living(slots, alive) == 0 and (state[p] == PLUS or state[p] == MINUS):
        # It met its level by the bias alone.
        low, high = segment(state[p], positive[p], total[p] - positive[p], C)
        inside = int(low + near_end < beta[p] < high - near_end)
        lone = p
        rest -= beta[p]
    if inside == 1:
        # All others are at ends, and tell what this one is: rounding on the path may have kept it from an end.
        low, high = segment(state[lone], positive[lone], total[lone] - positive[lone], C)
        end = nearest(-rest, low, high)
        if abs(end + rest) <= near_end:
            inside = 0
            snapped += abs(end - beta[lone])
            beta[lone] = end
    if inside == 0:
        # No coefficient is strictly inside its segment: the margin is empty and the bias free in an interval.
        commit = REBUILD
        for i in range(count):
            if state[i] == PLUS or state[i] == MINUS:
                low, high = segment(state[i], positive[i], total[i] - positive[i], C)
                if beta[i] <= low + near_end:
                    snapped += abs(low - beta[i])
                    beta[i] = low
                    state[i] = ABOVE if state[i] == PLUS else MIDDLE
                elif beta[i] >= high - near_end:
                    snapped += abs(high - beta[i])
                    beta[i] = high
                    state[i] = MIDDLE if state[i] == PLUS else BELOW
                else:
                    inside += 1  # alone on the margin, at an object of several examples
                set_levels(i, state[i], positive[i], total[i] - positive[i], up, down)
        slots, events = 1, 0
        if inside == 0:
            error = max(error, abs(total_of(beta, count)) / C)
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
    return commit, slots, events, error, snapped


@compiled
def disagreement(K, count, p, beta, score):  # type: ignore[no-untyped-def]
    """Return how far the scores of three objects differ from those of the coefficients, up to the bias."""
    first, middle, last = K[0], K[count // 2], K[p]
    a, b, c = score[0], score[count // 2], score[p]
    for i in range(count):
        a -= first[i] * beta[i]
        b -= middle[i] * beta[i]
        c -= last[i] * beta[i]
    return max(a, b, c) - min(a, b, c)


@compiled
def way(beta, base, count):  # type: ignore[no-untyped-def]
    """Return the sum of the distances that coefficients have moved."""
    moved = 0.0
    for i in range(count):
        moved += abs(beta[i] - base[i])
    return moved


@compiled
def suppose(case, budget, many, margin, motion, base, branch, scratch):  # type: ignore[no-untyped-def]
    """Solve one machine with one more label, which moves the coefficient at its object by at most `budget`.

    `margin` and `motion` are those of `base`. No path is started from more than `many` members if more than `many`
    objects would change on it. Returns (how to commit, slots, events, worst violation, drift).
    """
    count, p = case.objects, case.p
    accepted = PART * case.tolerance
    worst, drift, watch = np.inf, 0.0, 0
    if margin.size > many and changes_ahead(case, budget, margin, motion, base) > many:
        return UNSOLVED, 1, 0, worst, drift
    for attempt in range(ATTEMPTS):
        if attempt == ATTEMPTS - 1 and watch >= 0:
            watch = -1
        if attempt > 0 and margin.size > 0:
            # The path may have left the direction of another margin in the scratch arrays.
            respond(
                case.kernel, count, margin.members, margin.size, margin.inverse, p, motion.direction, motion.response,
                scratch.order, scratch.margin[6],
            )  # fmt: skip
        start(base, branch, count)
        outcome, commit, of, slots, events, spoilt = walk(case, budget, watch, margin, motion, base, branch, scratch)
        error = np.inf
        if outcome == SOLVED:
            commit, slots, events, error, snapped = land(case, commit, slots, events, of, branch, scratch)
        if error <= accepted:
            worst = max(error, largest_violation(branch.score, branch.up, branch.down, count, scratch.margin[6]))
            drift = worst + case.scale * (ROUNDING * way(branch.beta, base.beta, count) + snapped)
            apart = disagreement(case.kernel, count, p, branch.beta, branch.score)
            if worst <= accepted and apart <= 2.0 * accepted and abs(branch.score[p]) < np.inf:
                if spoilt:
                    commit, slots, events = REBUILD, 1, 0
                return commit, slots, events, worst, drift
        # Try again with more objects watched: with the same ones the path would be the same.
        if watch < 0:
            break
        seen = error <= accepted and look_closer(count, p, branch.score, base, scratch.around[0]) > 0
        watch = 1 if seen else -1
    return UNSOLVED, 1, 0, worst, drift


@compiled
def solve_step(p, new, count, scale, tolerance, C, supposed, objects, solved, branches, scratch, machines, many):  # type: ignore[no-untyped-def]
    """Answer, for the `machines` from the first up to, not including, the last, all suppositions about object p.

    `count` includes p. The supposed example, not among `objects`, weighs `supposed` (sides, c); a branch
    with weight 0 is not solved. Returns the worst violation of the solved branches, NaN when the kernel is not finite
    at p, and how many branches are marked UNSOLVED and left to the caller.
    """
    K, positives, totals, sizes = objects
    beta, score, state, _, members, size, B, spare, drift = solved
    betas, scores, states, commit, slots, index, alive, events, U, kappa, alternate, drifts = branches
    shape, work, around, _, _ = scratch
    near_end = resolution(C, scale)
    worst_of_all = 0.0
    left_over = 0
    if new:
        worst_of_all = place(p, objects, solved)
        if worst_of_all != 0.0:
            return worst_of_all, 0
    direction = work[8]
    response, up, down = around[9], around[10], around[11]
    base_state = np.empty(count, np.int8)
    others = np.empty(members.shape[1], np.int64)
    sides = supposed.shape[0]
    for k in range(machines[0], machines[1]):
        positive, total = positives[k], totals[k]
        own, before = positive[p], total[p]
        one_class = sizes[k, 0] == 0 or sizes[k, 0] == sizes[k, 1]
        ready = False
        for side in range(sides):
            weight = supposed[side, k]
            if weight == 0.0:
                commit[k, side] = KEEP
                continue
            of = side == sides - 1
            sign = 1 if of else -1
            beyond = ABOVE if of else BELOW
            alternate[k, side] = False
            slots[k, side] = 1
            events[k, side] = 0
            at_level = abs(state[k, p]) == 1
            drifts[k, side] = 0.0 if one_class else drift[k]
            if one_class and (sizes[k, 0] + of == 0 or sizes[k, 0] + of == sizes[k, 1] + 1):
                commit[k, side] = REBUILD
                for i in range(count):
                    betas[side, k, i] = 0.0
                    scores[side, k, i] = sign
                    # An object without examples of the machine has no steps: it would else be met as one that has.
                    states[side, k, i] = beyond if total[i] > 0.0 or i == p else MIDDLE
                continue
            same = own if of else before - own
            total[p] = before + weight
            positive[p] = own + weight if of else own
            budget = C * weight
            if at_level:
                # p's segment moves towards `sign`; as long as the coefficient is inside, nothing changes.
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
                    copy_levels(count, state[k], positive, total, base_state, up, down)
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
                how, n_slots, n_events, worst, further = suppose(
                    Supposition(sign, p, K, count, positive, total, C, scale, tolerance),
                    budget,
                    many,
                    MarginBuffers(base_members, m, base_B),
                    Motion(direction, response),
                    Base(beta[k], score[k], base_state, up, down),
                    Branch(
                        betas[side, k],
                        scores[side, k],
                        states[side, k],
                        around[7],
                        around[8],
                        index[k, side],
                        alive[k, side],
                        U[k, side],
                        kappa[k, side],
                    ),
                    scratch,
                )
                ready = ready and how == UPDATE
                commit[k, side] = how
                slots[k, side] = n_slots
                events[k, side] = n_events
                drifts[k, side] += further
                if how == UNSOLVED:
                    left_over += 1
                else:
                    worst_of_all = max(worst_of_all, worst)
            total[p] = before
            positive[p] = own
    return worst_of_all, left_over
