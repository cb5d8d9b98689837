"""The exact path: one machine's answer when one more label is supposed at one object.

Conventions, for one one-against-all machine over m distinct objects. Object i carries `positive[i]`
and `negative[i]` examples. Its signed coefficient beta_i is a monotone step function of its score:

    beta = -C negative                above +1        state ABOVE
    between                           at +1           state PLUS   (a member of the margin)
    beta = C (positive - negative)    between -1, +1  state MIDDLE
    between                           at -1           state MINUS  (a member of the margin)
    beta = C positive                 below -1        state BELOW

A step of height zero is no step: an object of positives only lives in ABOVE, PLUS, MIDDLE. Grouping
equal objects this way keeps the bordered matrix of the margin [[0, 1], [1, K_MM]] regular, where one
variable per example makes it singular.

Supposing one more label of sign s at object p lets beta_p rise (s=+1) or fall (s=-1) by up to C. The
path drives beta_p and moves the margin along, event by event, until p's score reaches s or C is
spent. References: Cauwenberghs & Poggio (2000); Diehl & Cauwenberghs (2003).
"""

import numpy as np

from venn._compiled.dense import add_rows, dot
from venn._compiled.jit import compiled

ABOVE, PLUS, MIDDLE, MINUS, BELOW = 2, 1, 0, -1, -2

FLAT = 1e-11  # a rate below this is no motion
EVENTS = 96  # events of one path that are kept as rank-one terms

# What a path returns.
SOLVED, FAILED = 0, 1


@compiled
def level_above(state, positive, negative):  # type: ignore[no-untyped-def]
    """Return the level that a rising score meets next, or +inf."""
    if state == MIDDLE and positive > 0:
        return 1.0
    if state == BELOW:
        return -1.0
    return np.inf


@compiled
def level_below(state, positive, negative):  # type: ignore[no-untyped-def]
    """Return the level that a falling score meets next, or -inf."""
    if state == MIDDLE and negative > 0:
        return -1.0
    if state == ABOVE:
        return 1.0
    return -np.inf


@compiled
def violation(state, score, positive, negative):  # type: ignore[no-untyped-def]
    """Return by how much the score lies on the wrong side of its state, in score units."""
    if state == PLUS or state == MINUS:
        return abs(score - state)
    worst = score - level_above(state, positive, negative)
    return max(0.0, worst, level_below(state, positive, negative) - score)


@compiled
def segment(sign, positive, negative, C):  # type: ignore[no-untyped-def]
    """Return the lowest and highest coefficient of a member at level `sign`."""
    middle = C * (positive - negative)
    if sign > 0:
        return -C * negative, middle
    return middle, C * positive


@compiled
def bordered_product(out, B, m, z, shape):  # type: ignore[no-untyped-def]
    """Set out[:m + 1] = B[:m + 1, :m + 1] @ z, for symmetric B."""
    out[: m + 1] = 0.0
    add_rows(out, m + 1, B, shape, z, m + 1)


@compiled
def apply_inverse(out, B, m, slots, z, U, kappa, events, alive, shape):  # type: ignore[no-untyped-def]
    """Set out = B' z, where B' is B plus the rank-one terms of the events so far.

    Slot 0 is the bias, slots 1..m the base margin, later slots joined on the way.
    """
    out[m + 1 : slots] = 0.0
    bordered_product(out, B, m, z, shape)
    for e in range(events):
        weight = dot(U[e], z, slots) / kappa[e]
        row = U[e]
        for a in range(slots):
            out[a] += weight * row[a]
    for a in range(1, slots):
        if not alive[a]:
            out[a] = 0.0


@compiled
def follow(  # type: ignore[no-untyped-def]
    sign,
    p,
    budget,
    widen,
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
    beta,
    score,
    state,
    index,
    alive,
    U,
    kappa,
    shape,
    work,
):
    """Drive beta[p] by up to `budget` in direction `sign` from a solved base with a nonempty margin.

    Reads the base margin `members[:m]` with bordered inverse B, the base direction (m + 1,) of the
    margin and the response (count,) of all scores to beta[p]. Updates beta, score, state in place for
    `count` objects. Slots that are alive afterwards are the new margin; `U`, `kappa` hold the events
    as rank-one terms.

    Returns (outcome, budget left, slots, events, p joined).
    """
    limit = U.shape[1]
    v = work[0]
    z = work[1]
    u = work[2]
    now = work[3]
    lowest = work[4]
    highest = work[5]
    for a in range(m + 1):
        v[a] = direction[a]
    z[0] = 1.0
    now[0] = 0.0
    index[0] = -1
    alive[0] = True
    for a in range(1, m + 1):
        i = members[a - 1]
        index[a] = i
        alive[a] = True
        z[a] = K[p, i]
        now[a] = beta[i]
        lowest[a], highest[a] = segment(state[i], positive[i], total[i] - positive[i], C)
    slots = m + 1
    live = m
    events = 0

    f_p = score[p]
    rate_p = response[p]
    driven = 0.0
    p_joined = False
    packed = False
    q = 0
    # Screened objects: those that an event could reach, with a margin of safety.
    reach = budget
    goal = float(sign)
    if rate_p > FLAT:
        reach = min(budget, sign * (goal - f_p) / rate_p)
    capacity = 64
    near = np.empty(count + EVENTS + 8, np.int64)
    if widen > 0.0:
        for i in range(count):
            st = state[i]
            if st == PLUS or st == MINUS or i == p:
                continue
            f = score[i]
            distance = min(level_above(st, positive[i], total[i] - positive[i]) - f,
                           f - level_below(st, positive[i], total[i] - positive[i]))
            if distance <= widen * (1.5 * abs(response[i]) * reach + 0.03):
                near[q] = i
                q += 1
    else:
        for i in range(count):
            st = state[i]
            if st != PLUS and st != MINUS and i != p:
                near[q] = i
                q += 1
    width = q + EVENTS + 4
    f_q = np.empty(width)
    rate_q = np.empty(width)
    up_q = np.empty(width)
    down_q = np.empty(width)
    on_q = np.empty(width, np.bool_)
    for t in range(q):
        i = near[t]
        f_q[t] = score[i]
        rate_q[t] = response[i]
        up_q[t] = level_above(state[i], positive[i], total[i] - positive[i])
        down_q[t] = level_below(state[i], positive[i], total[i] - positive[i])
        on_q[t] = True
    block = np.empty((0, 0))
    lift = np.empty(width)
    outcome = SOLVED
    steps = 0
    absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE

    while True:
        steps += 1
        if steps > 50 * (m + 4) + 4 * count + 100:
            outcome = FAILED
            break
        # Ratio tests: which event comes first?
        step = budget - driven
        kind = 0  # 0 budget spent, 1 p arrives, 2 a member leaves, 3 an object joins
        who = -1
        target_p = -goal if absorbing else goal
        if rate_p > FLAT:
            ratio = max(0.0, sign * (target_p - f_p) / rate_p)
            if ratio <= step:
                step = ratio
                kind = 1
        for a in range(1, slots):
            if alive[a]:
                rate = sign * v[a]
                if rate > FLAT:
                    ratio = (highest[a] - now[a]) / rate
                elif rate < -FLAT:
                    ratio = (lowest[a] - now[a]) / rate
                else:
                    continue
                if ratio < step:
                    step = max(0.0, ratio)
                    kind = 2
                    who = a
        for t in range(q):
            if on_q[t]:
                rate = sign * rate_q[t]
                if rate > FLAT:
                    ratio = (up_q[t] - f_q[t]) / rate
                elif rate < -FLAT:
                    ratio = (down_q[t] - f_q[t]) / rate
                else:
                    continue
                if ratio < step:
                    step = max(0.0, ratio)
                    kind = 3
                    who = t
        # Move.
        if step > 0.0:
            move = sign * step
            for a in range(slots):
                now[a] += move * v[a]
            for t in range(q):
                f_q[t] += move * rate_q[t]
            f_p += move * rate_p
            driven += step

        if kind == 0:
            break
        if kind == 1:
            if absorbing:
                # p's own step at -sign must be climbed first: the budget pays for it and nothing else moves.
                opposite = total[p] - positive[p] if sign > 0 else positive[p]
                height = C * opposite
                left = budget - driven
                if left > height:
                    budget -= height
                    absorbing = False
                    state[p] = MIDDLE
                    continue
                budget = driven
            # p joins the margin.
            if events >= kappa.shape[0] or slots >= limit:
                outcome = FAILED
                break
            row = U[events]
            for a in range(slots):
                row[a] = v[a]
            row[slots] = 1.0
            for e in range(events):
                U[e, slots] = 0.0
            kappa[events] = rate_p
            events += 1
            index[slots] = p
            alive[slots] = True
            state[p] = (MINUS if sign > 0 else PLUS) if absorbing else (PLUS if sign > 0 else MINUS)
            f_p = float(state[p])
            now[slots] = beta[p] + sign * driven
            slots += 1
            live += 1
            p_joined = True
            break
        if events >= kappa.shape[0] - 1 or slots >= limit - 2 or q >= width - 1:
            outcome = FAILED
            break
        if not packed:
            # Rows of the margin at the screened objects, gathered once.
            block = np.empty((m + EVENTS + 2, width))
            for a in range(1, m + 1):
                source = K[index[a]]
                into = block[a]
                for t in range(q):
                    into[t] = source[near[t]]
            packed = True
        if kind == 2:
            i = index[who]
            at_high = sign * v[who] > 0.0
            now[who] = highest[who] if at_high else lowest[who]
            if state[i] == PLUS:
                new_state = MIDDLE if at_high else ABOVE
            else:
                new_state = BELOW if at_high else MIDDLE
            if live == 1:
                state[i] = new_state
                alive[who] = False
                live = 0
                break
            # Column `who` of the current inverse.
            if who <= m:
                for a in range(m + 1):
                    u[a] = B[who, a]
                u[m + 1 : slots] = 0.0
            else:
                u[:slots] = 0.0
            for e in range(events):
                weight = U[e, who] / kappa[e]
                row = U[e]
                for a in range(slots):
                    u[a] += weight * row[a]
            for a in range(1, slots):
                if not alive[a]:
                    u[a] = 0.0
            pivot = u[who]
            if not pivot > 1e-14:
                outcome = FAILED
                break
            row = U[events]
            for a in range(slots):
                row[a] = u[a]
            kappa[events] = -pivot
            events += 1
            weight = -v[who] / pivot
            # The object stands at its level and may come back.
            level = float(state[i])
            state[i] = new_state
            near[q] = i
            for a in range(1, slots):
                block[a, q] = K[i, index[a]]
            f_q[q] = level
            rate_q[q] = 0.0
            up_q[q] = level_above(new_state, positive[i], total[i] - positive[i])
            down_q[q] = level_below(new_state, positive[i], total[i] - positive[i])
            on_q[q] = True
            q += 1
            lift[:q] = u[0]
            add_rows(lift, q, block[1:], shape, u[1:], slots - 1)
            rise = dot(z, u, slots)
            for a in range(slots):
                v[a] += weight * u[a]
            v[who] = 0.0
            alive[who] = False
            live -= 1
            for t in range(q):
                rate_q[t] += weight * lift[t]
            rate_q[q - 1] = weight
            rate_p += weight * rise
        else:
            i = near[who]
            rising = sign * rate_q[who] > 0.0
            level = up_q[who] if rising else down_q[who]
            rhs = work[6]
            rhs[0] = 1.0
            for a in range(1, slots):
                rhs[a] = block[a, who] if alive[a] else 0.0
            apply_inverse(u, B, m, slots, rhs, U, kappa, events, alive, shape)
            for a in range(slots):
                u[a] = -u[a]
            pivot = K[i, i] + dot(u, rhs, slots)
            if not pivot > 1e-12 * K[i, i]:
                outcome = FAILED
                break
            u[slots] = 1.0
            row = U[events]
            for a in range(slots + 1):
                row[a] = u[a]
            for e in range(events):
                U[e, slots] = 0.0
            kappa[events] = pivot
            events += 1
            weight = -rate_q[who] / pivot
            into = block[slots]
            source = K[i]
            for t in range(q):
                into[t] = source[near[t]]
            index[slots] = i
            alive[slots] = True
            z[slots] = K[p, i]
            v[slots] = 0.0
            # Its coefficient is an end of the segment that it enters (beta[i] may be older: who left may return).
            entered_high = (state[i] == MIDDLE) if level > 0 else (state[i] == BELOW)
            state[i] = PLUS if level > 0 else MINUS
            lowest[slots], highest[slots] = segment(state[i], positive[i], total[i] - positive[i], C)
            now[slots] = highest[slots] if entered_high else lowest[slots]
            slots += 1
            live += 1
            lift[:q] = u[0]
            add_rows(lift, q, block[1:], shape, u[1:], slots - 1)
            rise = dot(z, u, slots)
            for a in range(slots):
                v[a] += weight * u[a]
            for t in range(q):
                rate_q[t] += weight * lift[t]
            on_q[who] = False
            rate_q[who] = 0.0
            rate_p += weight * rise

    # Bring all scores up to date.
    if outcome == SOLVED:
        change = work[6]
        rows = np.empty(slots + 1, np.int64)
        if events == 0:
            move = sign * driven
            for i in range(count):
                score[i] += move * response[i]
            for a in range(1, slots):
                beta[index[a]] = now[a]
            beta[p] += move
        else:
            used = 0
            for a in range(1, slots):
                if index[a] == p:
                    continue
                delta = now[a] - beta[index[a]]
                if delta != 0.0:
                    rows[used] = index[a]
                    change[used] = delta
                    used += 1
                    beta[index[a]] = now[a]
            rows[used] = p
            change[used] = sign * driven
            used += 1
            beta[p] += sign * driven
            shift = now[0]
            for i in range(count):
                score[i] += shift
            add_rows(score, count, K, rows, change, used)
    return outcome, budget - driven, slots, events, p_joined
