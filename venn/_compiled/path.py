"""The exact path: one machine's answer when one more label is supposed at one object.

Conventions, for one one-against-all machine over m distinct objects: object i has examples of total weight
`positive[i]` and `negative[i]`. Its signed coefficient beta_i is a monotone step function of its score:

    beta = -C negative                above +1        state ABOVE
    between                           at +1           state PLUS   (a member of the margin)
    beta = C (positive - negative)    between -1, +1  state MIDDLE
    between                           at -1           state MINUS  (a member of the margin)
    beta = C positive                 below -1        state BELOW

A step of height zero is no step: an object with only positives lives in ABOVE, PLUS, MIDDLE. Grouping equal objects
this way keeps the bordered matrix of the margin [[0, 1], [1, K_MM]] regular, while one variable per example would make
it singular.

Supposing one more example of sign s and weight w at object p lets beta_p rise (s=+1) or fall (s=-1) by up to C w. The
path drives beta_p and moves the margin along, event by event, until p's score reaches s or C w is
spent. References: Cauwenberghs & Poggio (2000); Diehl & Cauwenberghs (2003).
"""

import numpy as np

from venn._compiled.dense import add_rows, dot
from venn._compiled.jit import compiled

ABOVE, PLUS, MIDDLE, MINUS, BELOW = 2, 1, 0, -1, -2

FLAT = 1e-11  # a rate below this counts as no motion
# A squared distance from the margin's span below this, in units of the problem's scale, counts as dependence: a smaller
# one could not move a score by the tolerance, and is near rounding.
DEPENDENT = 3e-15
SPOILT = 1e-8  # the inverse is spoilt where p joins with a smaller distance, likewise in units of the scale
NOISE = 2e-13  # share of the terms of such a distance: less is rounding
DOUBTFUL = 1e-5  # with a smaller distance, as a share of its terms, updating an inverse loses digits
REACH, NEAR = 1.2, 0.02  # how much more than its first rate says an unwatched object may move
AGAIN, CLOSE = 0.25, 0.01  # how near to a level, relative to its move and absolutely, an unwatched object may end
EVENTS = 256  # most events of one path: they are kept as rank-one terms

# What a path returns.
SOLVED, FAILED = 0, 1


@compiled
def level_above(state, positive):  # type: ignore[no-untyped-def]
    """Return the level that a rising score meets next, or +inf."""
    if state == MIDDLE and positive > 0:
        return 1.0
    if state == BELOW:
        return -1.0
    return np.inf


@compiled
def level_below(state, negative):  # type: ignore[no-untyped-def]
    """Return the level that a falling score meets next, or -inf."""
    if state == MIDDLE and negative > 0:
        return -1.0
    if state == ABOVE:
        return 1.0
    return -np.inf


@compiled
def set_levels(i, state, positive, negative, up, down):  # type: ignore[no-untyped-def]
    """Write the levels between which object i's score is free: infinite for a member, which has its own test."""
    up[i] = level_above(state, positive)
    down[i] = level_below(state, negative)


@compiled
def copy_levels(count, state, positive, total, copy, up, down):  # type: ignore[no-untyped-def]
    """Copy the states and write the levels of all objects; without branches, which the compiler can widen."""
    for i in range(count):
        at = state[i]
        copy[i] = at
        middle = at == MIDDLE
        rise = 1.0 if middle & (positive[i] > 0.0) else np.inf
        fall = -1.0 if middle & (total[i] - positive[i] > 0.0) else -np.inf
        up[i] = -1.0 if at == BELOW else rise
        down[i] = 1.0 if at == ABOVE else fall


@compiled
def segment(sign, positive, negative, C):  # type: ignore[no-untyped-def]
    """Return the lowest and highest coefficient of a member at level `sign`."""
    middle = C * (positive - negative)
    if sign > 0:
        return -C * negative, middle
    return middle, C * positive


@compiled
def first_event(value, rate, low, high, n, sign, flat, ratio):  # type: ignore[no-untyped-def]
    """Return (step, who): which value, moving at its rate, meets its bound first; `ratio` is scratch."""
    for i in range(n):
        r = sign * rate[i]
        gap = high[i] - value[i] if r > 0.0 else low[i] - value[i]
        ratio[i] = gap / r if abs(r) > flat else np.inf
    best = np.inf
    who = -1
    for i in range(n):
        if ratio[i] < best:
            best = ratio[i]
            who = i
    return max(0.0, best), who


@compiled
def apply_inverse(out, B, m, slots, z, U, kappa, events, alive, shape):  # type: ignore[no-untyped-def]
    """Set out = B' z, where B' is B plus the rank-one terms of the events so far.

    Slot 0 is the bias, slots 1..m the base margin, later slots joined on the way.
    """
    for a in range(slots):
        out[a] = 0.0
    add_rows(out, m + 1, B, shape, z, m + 1)
    for e in range(events):
        row = U[e]
        weight = dot(row, z, slots) / kappa[e]
        for a in range(slots):
            out[a] += weight * row[a]
    for a in range(1, slots):
        if not alive[a]:
            out[a] = 0.0


@compiled
def distance_left(own, u, z, slots):  # type: ignore[no-untyped-def]
    """Return (own - u'z, sum of the sizes of its terms): the squared distance of an object from a span."""
    left, extent = own, abs(own)
    for a in range(slots):
        left -= u[a] * z[a]
        extent += abs(u[a] * z[a])
    return left, extent


@compiled
def mend(u, K, B, m, slots, z, U, kappa, events, index, alive, shape):  # type: ignore[no-untyped-def]
    """Take a step of iterative refinement of u = B' z, see `apply_inverse`."""
    rest, fix = np.zeros(slots), np.empty(slots)
    rest[0] = z[0]
    for a in range(1, slots):
        if alive[a]:
            rest[0] -= u[a]
            row = K[index[a]]
            left = z[a] - u[0]
            for b in range(1, slots):
                if alive[b]:
                    left -= row[index[b]] * u[b]
            rest[a] = left
    apply_inverse(fix, B, m, slots, rest, U, kappa, events, alive, shape)
    for a in range(slots):
        u[a] += fix[a]


@compiled
def screen(case, budget, widen, response, base, slack):  # type: ignore[no-untyped-def]
    """Set `slack` to at most 0 at the objects to watch: those that an event could reach.

    Their distance to a level is at most `widen` times a bound on their motion by their first rate (all, for widen = 0).
    """
    sign, p, _, count, _, _, _, scale, _ = case
    score, up, down = base.score, base.up, base.down
    reach = budget
    if response[p] > FLAT * scale:
        reach = min(budget, sign * (sign - score[p]) / response[p])
    if widen > 0.0:
        for i in range(count):
            distance = min(up[i] - score[i], score[i] - down[i])
            slack[i] = distance - widen * (REACH * abs(response[i]) * reach + NEAR)
    else:
        for i in range(count):
            slack[i] = -1.0 if up[i] < np.inf or down[i] > -np.inf else 1.0
    slack[p] = 1.0


@compiled
def look_closer(count, p, score, base, slack):  # type: ignore[no-untyped-def]
    """After a path that missed events, also watch the objects that end past one of their levels, or near one.

    `score` is where the path ended. "Near" is relative to how far an object has moved. Returns how many more are
    watched: if none, a new path would be the same.
    """
    up, down = base.up, base.down
    more = 0
    for i in range(count):
        distance = min(up[i] - score[i], score[i] - down[i])
        closer = distance - (AGAIN * abs(score[i] - base.score[i]) + CLOSE)
        more += slack[i] > 0.0 and closer <= 0.0 and i != p
        slack[i] = min(slack[i], closer)
    slack[p] = 1.0
    return more


@compiled
def follow(case, budget, margin, motion, branch, scratch):  # type: ignore[no-untyped-def]
    """Drive p's coefficient by up to `budget` in the direction of `case.sign`, from a nonempty margin.

    `branch` holds a solved base and is updated in place; `margin` and `motion` are those of the base. Only
    the objects that `screen` has marked in `scratch` are watched on the way.

    Returns (outcome, budget left, slots, events, p joined, whether the terms lost digits).
    Slots alive afterwards are the new margin; the rows of `branch.terms` over `branch.kappa` are its inverse's rank-one
    terms.
    """
    sign, p, K, count, positive, total, C, scale, _ = case
    members, m, B = margin
    direction, response = motion
    beta, score, state, up, down, index, alive, U, kappa = branch
    shape, work, around, near, pack = scratch
    limit = index.shape[0]
    v, z, u, now, lowest, highest, rhs, ratio = (work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7])
    z[0] = 1.0
    now[0] = 0.0
    v[0] = direction[0]
    # The bias has no bound; a rate of 0 keeps dead slots out of the ratio test, and so does infinity here.
    lowest[0] = -np.inf
    highest[0] = np.inf
    index[0] = -1
    alive[0] = True
    for a in range(1, m + 1):
        i = members[a - 1]
        v[a] = direction[a]
        index[a] = i
        alive[a] = True
        z[a] = K[p, i]
        now[a] = beta[i]
        lowest[a], highest[a] = segment(state[i], positive[i], total[i] - positive[i], C)
    slots = m + 1
    live = m
    events = 0
    flat = FLAT * scale

    goal = float(sign)
    f_p = score[p]
    rate_p = response[p]
    driven = 0.0
    p_joined = False
    spoilt = False
    up[p] = np.inf
    down[p] = -np.inf
    # Watch the objects that an event could reach.
    slack = around[0]
    f_q, rate_q, up_q, down_q, lift, ratio_q = around[1], around[2], around[3], around[4], around[5], around[6]
    q = 0
    for i in range(count):
        if slack[i] <= 0.0:
            near[q] = i
            q += 1
    width = q + EVENTS + 4
    for t in range(q):
        i = near[t]
        f_q[t] = score[i]
        rate_q[t] = response[i]
        up_q[t] = up[i]
        down_q[t] = down[i]
    block = pack[: (m + EVENTS + 2) * width].reshape((m + EVENTS + 2, width))
    packed = False
    outcome = SOLVED
    steps = 0
    absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE

    while True:
        steps += 1
        if steps > 4 * EVENTS + count:
            outcome = FAILED
            break
        # Which event comes first?
        step = budget - driven
        kind = 0  # 0 budget spent, 1 p arrives, 2 a member leaves, 3 an object joins
        if rate_p > flat:
            target_p = -goal if absorbing else goal
            arrival = max(0.0, sign * (target_p - f_p) / rate_p)
            if arrival <= step:
                step = arrival
                kind = 1
        leave, who = first_event(now, v, lowest, highest, slots, goal, FLAT, ratio)
        if leave < step:
            step = leave
            kind = 2
        join, watched = first_event(f_q, rate_q, down_q, up_q, q, goal, flat, ratio_q)
        if join < step:
            step = join
            kind = 3
            who = watched
        if step > 0.0:
            move = goal * step
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
                # p's own step at -sign comes first: it uses part of the budget and nothing else moves.
                height = C * (total[p] - positive[p] if sign > 0 else positive[p])
                if budget - driven > height:
                    budget -= height
                    absorbing = False
                    state[p] = MIDDLE
                    continue
                budget = driven
            if events >= EVENTS or slots >= limit:
                outcome = FAILED
                break
            row = U[events]
            for a in range(slots):
                row[a] = v[a]
            row[slots] = 1.0
            for e in range(events):
                U[e, slots] = 0.0
            spoilt |= rate_p < SPOILT * scale
            kappa[events] = rate_p
            events += 1
            index[slots] = p
            alive[slots] = True
            if absorbing:
                state[p] = MINUS if sign > 0 else PLUS
            else:
                state[p] = PLUS if sign > 0 else MINUS
            now[slots] = beta[p] + sign * driven
            slots += 1
            p_joined = True
            break
        if events >= EVENTS - 1 or slots >= limit - 2:
            outcome = FAILED
            break
        if not packed:
            # Rows of the margin at the watched objects, gathered once.
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
            level = float(state[i])
            if state[i] == PLUS:
                state[i] = MIDDLE if at_high else ABOVE
            else:
                state[i] = BELOW if at_high else MIDDLE
            set_levels(i, state[i], positive[i], total[i] - positive[i], up, down)
            alive[who] = False
            live -= 1
            if live == 0:
                break
            # u: column `who` of the current inverse.
            for a in range(slots):
                u[a] = B[who, a] if who <= m and a <= m else 0.0
            for e in range(events):
                row = U[e]
                weight = row[who] / kappa[e]
                for a in range(slots):
                    u[a] += weight * row[a]
            pivot = u[who]
            if not pivot > 1e-14 / scale:
                outcome = FAILED
                break
            for a in range(1, slots):
                if not alive[a]:
                    u[a] = 0.0
            u[who] = pivot
            row = U[events]
            for a in range(slots):
                row[a] = u[a]
            kappa[events] = -pivot
            weight = -v[who] / pivot
            # The object is at its level and may come back: watch it.
            near[q] = i
            for a in range(1, slots):
                block[a, q] = K[i, index[a]]
            f_q[q] = level
            rate_q[q] = 0.0
            up_q[q] = up[i]
            down_q[q] = down[i]
            q += 1
        else:
            i = near[who]
            rising = sign * rate_q[who] > 0.0
            level = up_q[who] if rising else down_q[who]
            rhs[0] = -1.0
            for a in range(1, slots):
                rhs[a] = -block[a, who] if alive[a] else 0.0
            apply_inverse(u, B, m, slots, rhs, U, kappa, events, alive, shape)
            pivot, extent = distance_left(K[i, i], u, rhs, slots)
            if not pivot > DOUBTFUL * extent:
                # Rounding in the inverse may look like a distance.
                mend(u, K, B, m, slots, rhs, U, kappa, events, index, alive, shape)
                pivot, extent = distance_left(K[i, i], u, rhs, slots)
            if not pivot > max(DEPENDENT * scale, NOISE * extent):
                # It depends on the members, and stays on its level as they do: only rounding moved it.
                rate_q[who] = 0.0
                continue
            spoilt |= pivot < DOUBTFUL * extent
            u[slots] = 1.0
            row = U[events]
            for a in range(slots + 1):
                row[a] = u[a]
            for e in range(events):
                U[e, slots] = 0.0
            kappa[events] = pivot
            weight = -rate_q[who] / pivot
            source = K[i]
            into = block[slots]
            for t in range(q):
                into[t] = source[near[t]]
            index[slots] = i
            alive[slots] = True
            z[slots] = K[p, i]
            v[slots] = 0.0
            # Its coefficient is an end of the segment that it enters (beta[i] may be out of date, if it returns).
            entered_high = state[i] == MIDDLE if level > 0 else state[i] == BELOW
            state[i] = PLUS if level > 0 else MINUS
            up[i] = np.inf
            down[i] = -np.inf
            lowest[slots], highest[slots] = segment(state[i], positive[i], total[i] - positive[i], C)
            now[slots] = highest[slots] if entered_high else lowest[slots]
            slots += 1
            live += 1
        events += 1
        # All rates change by `weight` times the response to u.
        shift = u[0]
        for t in range(q):
            lift[t] = shift
        add_rows(lift, q, block[1:], shape, u[1:], slots - 1)
        for t in range(q):
            rate_q[t] += weight * lift[t]
        rate_p += weight * dot(z, u, slots)
        for a in range(slots):
            v[a] += weight * u[a]
        if kind == 2:
            v[who] = 0.0
            rate_q[q - 1] = weight
        else:
            rate_q[who] = 0.0
            up_q[who] = np.inf
            down_q[who] = -np.inf

    if outcome == SOLVED:
        move = sign * driven
        if events == 0 and live == m:
            for i in range(count):
                score[i] += move * response[i]
            for a in range(1, slots):
                beta[index[a]] = now[a]
        else:
            used = 0
            for a in range(1, slots):
                i = index[a]
                if i != p:
                    # An object that left and came back has two slots; the later one has the right value.
                    near[used] = i
                    rhs[used] = now[a] - beta[i]
                    used += 1
                    beta[i] = now[a]
            near[used] = p
            rhs[used] = move
            used += 1
            shift = now[0]
            for i in range(count):
                score[i] += shift
            add_rows(score, count, K, near, rhs, used)
        beta[p] += move
    return outcome, budget - driven, slots, events, p_joined, spoilt
