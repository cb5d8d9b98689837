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

from venn._compiled.buffers import Slots, WatchedBuffers
from venn._compiled.jit import compiled
from venn._compiled.rows import add_rows, dot

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

# The events of a path: the budget is spent, p arrives at its level, a member leaves the margin, an object joins it.
SPENT, ARRIVES, LEAVES, JOINS = 0, 1, 2, 3


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
def nearest(value, low, high):  # type: ignore[no-untyped-def]
    """Return the end of a segment that a coefficient is nearer to."""
    return low if value - low < high - value else high


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
def set_out(case, margin, motion, branch, slots):  # type: ignore[no-untyped-def]
    """Give each member its slot; slot 0 is the bias."""
    _, p, K, _, positive, total, C, _, _ = case
    members, m, _ = margin
    direction = motion.direction
    rate, kernel, _, now, lowest, highest, _, _ = slots
    kernel[0] = 1.0
    now[0] = 0.0
    rate[0] = direction[0]
    # The bias has no bound; a rate of 0 keeps dead slots out of the ratio test, and so does infinity here.
    lowest[0] = -np.inf
    highest[0] = np.inf
    branch.index[0] = -1
    branch.alive[0] = True
    for a in range(1, m + 1):
        i = members[a - 1]
        rate[a] = direction[a]
        branch.index[a] = i
        branch.alive[a] = True
        kernel[a] = K[p, i]
        now[a] = branch.beta[i]
        lowest[a], highest[a] = segment(branch.state[i], positive[i], total[i] - positive[i], C)


@compiled
def gather(count, slack, response, branch, watched):  # type: ignore[no-untyped-def]
    """Gather the objects that an event could reach, those with `slack` at most 0; return how many."""
    near, score, rate, up, down, _, _ = watched
    q = 0
    for i in range(count):
        if slack[i] <= 0.0:
            near[q] = i
            q += 1
    for t in range(q):
        i = near[t]
        score[t] = branch.score[i]
        rate[t] = response[i]
        up[t] = branch.up[i]
        down[t] = branch.down[i]
    return q


@compiled
def next_event(goal, left, target, score, rate, flat, n, slots, q, watched):  # type: ignore[no-untyped-def]
    """Return (step, event, who): what comes first, and when, as the move of p's coefficient.

    `score` is p's, which moves at `rate` to `target`; n slots, q watched objects.
    """
    step, event = left, SPENT
    if rate > flat:
        arrival = max(0.0, goal * (target - score) / rate)
        if arrival <= step:
            step = arrival
            event = ARRIVES
    leave, who = first_event(slots.now, slots.rate, slots.lowest, slots.highest, n, goal, FLAT, slots.ratio)
    if leave < step:
        step = leave
        event = LEAVES
    join, joining = first_event(watched.score, watched.rate, watched.down, watched.up, q, goal, flat, watched.ratio)
    if join < step:
        step = join
        event = JOINS
        who = joining
    return step, event, who


@compiled
def add_term(branch, events, slots, u, pivot):  # type: ignore[no-untyped-def]
    """Make slot `slots`, whose compensation by the others is u, part of the inverse, by another rank-one term."""
    U = branch.terms
    row = U[events]
    for a in range(slots):
        row[a] = u[a]
    row[slots] = 1.0
    for e in range(events):
        U[e, slots] = 0.0
    branch.kappa[events] = pivot


@compiled
def own_height(sign, p, positive, total, C):  # type: ignore[no-untyped-def]
    """Return the height of p's own step on the other side: where p starts beyond it, that part is spent there."""
    return C * (total[p] - positive[p] if sign > 0 else positive[p])


@compiled
def step_off(case, who, branch, slots):  # type: ignore[no-untyped-def]
    """Take a member, which is at an end of its segment, off its level; return the level."""
    sign, positive, total = case.sign, case.positive, case.total
    state = branch.state
    i = branch.index[who]
    at_high = sign * slots.rate[who] > 0.0
    slots.now[who] = slots.highest[who] if at_high else slots.lowest[who]
    level = float(state[i])
    if state[i] == PLUS:
        state[i] = MIDDLE if at_high else ABOVE
    else:
        state[i] = BELOW if at_high else MIDDLE
    set_levels(i, state[i], positive[i], total[i] - positive[i], branch.up, branch.down)
    branch.alive[who] = False
    return level


@compiled
def column_of(who, margin, n, branch, events, u):  # type: ignore[no-untyped-def]
    """Set u to column `who` of the current inverse, as a term of the next; return its pivot, not positive if spoilt."""
    _, m, B = margin
    U, kappa, alive = branch.terms, branch.kappa, branch.alive
    for a in range(n):
        u[a] = B[who, a] if who <= m and a <= m else 0.0
    for e in range(events):
        row = U[e]
        weight = row[who] / kappa[e]
        for a in range(n):
            u[a] += weight * row[a]
    pivot = u[who]
    for a in range(1, n):
        if not alive[a]:
            u[a] = 0.0
    u[who] = pivot
    row = U[events]
    for a in range(n):
        row[a] = u[a]
    kappa[events] = -pivot
    return pivot


@compiled
def watch_again(i, level, K, n, q, branch, watched, block):  # type: ignore[no-untyped-def]
    """Watch an object that has left the margin: it is at its level and may come back."""
    near, score, rate, up, down, _, _ = watched
    near[q] = i
    for a in range(1, n):
        block[a, q] = K[i, branch.index[a]]
    score[q] = level
    rate[q] = 0.0
    up[q] = branch.up[i]
    down[q] = branch.down[i]


@compiled
def compensation(case, who, i, margin, n, branch, events, slots, block, shape):  # type: ignore[no-untyped-def]
    """Set `slots.change` to the motion of the slots that compensates a unit of the coefficient of watched object i.

    Returns its squared distance from the span of the members, and the sum of the sizes of the terms of that.
    """
    K = case.kernel
    _, m, B = margin
    u, rhs = slots.change, slots.rhs
    index, alive, U, kappa = branch.index, branch.alive, branch.terms, branch.kappa
    rhs[0] = -1.0
    for a in range(1, n):
        rhs[a] = -block[a, who] if alive[a] else 0.0
    apply_inverse(u, B, m, n, rhs, U, kappa, events, alive, shape)
    pivot, extent = distance_left(K[i, i], u, rhs, n)
    if not pivot > DOUBTFUL * extent:
        # Rounding in the inverse may look like a distance.
        mend(u, K, B, m, n, rhs, U, kappa, events, index, alive, shape)
        pivot, extent = distance_left(K[i, i], u, rhs, n)
    return pivot, extent


@compiled
def step_on(case, i, level, n, branch, slots, q, near, block):  # type: ignore[no-untyped-def]
    """Put a watched object, which has met its level, on the margin in slot n."""
    _, p, K, _, positive, total, C, _, _ = case
    state = branch.state
    source = K[i]
    into = block[n]
    for t in range(q):
        into[t] = source[near[t]]
    branch.index[n] = i
    branch.alive[n] = True
    slots.kernel[n] = K[p, i]
    slots.rate[n] = 0.0
    # Its coefficient is an end of the segment that it enters (beta[i] may be out of date, if it returns).
    entered_high = state[i] == MIDDLE if level > 0 else state[i] == BELOW
    state[i] = PLUS if level > 0 else MINUS
    branch.up[i] = np.inf
    branch.down[i] = -np.inf
    slots.lowest[n], slots.highest[n] = segment(state[i], positive[i], total[i] - positive[i], C)
    slots.now[n] = slots.highest[n] if entered_high else slots.lowest[n]


@compiled
def arrive(case, n, moved, absorbing, branch, slots):  # type: ignore[no-untyped-def]
    """Put p, which has arrived at a level, on the margin in slot n."""
    sign, p = case.sign, case.p
    branch.index[n] = p
    branch.alive[n] = True
    if absorbing:
        branch.state[p] = MINUS if sign > 0 else PLUS
    else:
        branch.state[p] = PLUS if sign > 0 else MINUS
    slots.now[n] = branch.beta[p] + moved


@compiled
def turn(weight, n, slots, q, watched, block, shape):  # type: ignore[no-untyped-def]
    """Change the rates of all slots and watched objects by `weight` times the response to `slots.change`."""
    rate, u, lift = watched.rate, slots.change, watched.lift
    shift = u[0]
    for t in range(q):
        lift[t] = shift
    add_rows(lift, q, block[1:], shape, u[1:], n - 1)
    for t in range(q):
        rate[t] += weight * lift[t]
    for a in range(n):
        slots.rate[a] += weight * u[a]


@compiled
def finish(case, moved, changed, n, motion, branch, slots, near):  # type: ignore[no-untyped-def]
    """Write coefficients and scores where the path ends; `changed` says whether the margin is another one."""
    _, p, K, count, _, _, _, _, _ = case
    beta, score, index, now, rhs = branch.beta, branch.score, branch.index, slots.now, slots.rhs
    if not changed:
        for i in range(count):
            score[i] += moved * motion.response[i]
        for a in range(1, n):
            beta[index[a]] = now[a]
    else:
        used = 0
        for a in range(1, n):
            i = index[a]
            if i != p:
                # An object that left and came back has two slots; the later one has the right value.
                near[used] = i
                rhs[used] = now[a] - beta[i]
                used += 1
                beta[i] = now[a]
        near[used] = p
        rhs[used] = moved
        used += 1
        shift = now[0]
        for i in range(count):
            score[i] += shift
        add_rows(score, count, K, near, rhs, used)
    beta[p] += moved


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
    m = margin.size
    state, index = branch.state, branch.index
    shape, work, around, near, pack = scratch
    limit = index.shape[0]
    slots = Slots(work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7])
    watched = WatchedBuffers(near, around[1], around[2], around[3], around[4], around[5], around[6])
    set_out(case, margin, motion, branch, slots)
    n, live, events = m + 1, m, 0
    flat, goal = FLAT * scale, float(sign)
    f_p, rate_p, driven = branch.score[p], motion.response[p], 0.0
    joined, spoilt, packed, outcome = False, False, False, SOLVED
    branch.up[p] = np.inf
    branch.down[p] = -np.inf
    q = gather(count, around[0], motion.response, branch, watched)
    width = q + EVENTS + 4
    block = pack[: (m + EVENTS + 2) * width].reshape((m + EVENTS + 2, width))
    absorbing = state[p] == BELOW if sign > 0 else state[p] == ABOVE
    steps = 0
    while True:
        steps += 1
        if steps > 4 * EVENTS + count:
            outcome = FAILED
            break
        target = -goal if absorbing else goal
        step, event, who = next_event(goal, budget - driven, target, f_p, rate_p, flat, n, slots, q, watched)
        if step > 0.0:
            move = goal * step
            for a in range(n):
                slots.now[a] += move * slots.rate[a]
            for t in range(q):
                watched.score[t] += move * watched.rate[t]
            f_p += move * rate_p
            driven += step

        if event == SPENT:
            break
        if event == ARRIVES:
            if absorbing:
                # p's own step at -sign comes first: it uses part of the budget and nothing else moves.
                height = own_height(sign, p, positive, total, C)
                if budget - driven > height:
                    budget -= height
                    absorbing = False
                    state[p] = MIDDLE
                    continue
                budget = driven
            if events >= EVENTS or n >= limit:
                outcome = FAILED
                break
            spoilt |= rate_p < SPOILT * scale
            add_term(branch, events, n, slots.rate, rate_p)
            arrive(case, n, sign * driven, absorbing, branch, slots)
            events += 1
            n += 1
            joined = True
            break
        if events >= EVENTS - 1 or n >= limit - 2:
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
        if event == LEAVES:
            level = step_off(case, who, branch, slots)
            live -= 1
            if live == 0:
                break
            pivot = column_of(who, margin, n, branch, events, slots.change)
            if not pivot > 1e-14 / scale:
                outcome = FAILED
                break
            weight = -slots.rate[who] / pivot
            watch_again(index[who], level, K, n, q, branch, watched, block)
            q += 1
        else:
            i = near[who]
            pivot, extent = compensation(case, who, i, margin, n, branch, events, slots, block, shape)
            if not pivot > max(DEPENDENT * scale, NOISE * extent):
                # It depends on the members, and stays on its level as they do: only rounding moved it.
                watched.rate[who] = 0.0
                continue
            spoilt |= pivot < DOUBTFUL * extent
            slots.change[n] = 1.0
            add_term(branch, events, n, slots.change, pivot)
            weight = -watched.rate[who] / pivot
            level = watched.up[who] if sign * watched.rate[who] > 0.0 else watched.down[who]
            step_on(case, i, level, n, branch, slots, q, near, block)
            n += 1
            live += 1
        events += 1
        turn(weight, n, slots, q, watched, block, shape)
        rate_p += weight * dot(slots.kernel, slots.change, n)
        if event == LEAVES:
            slots.rate[who] = 0.0
            watched.rate[q - 1] = weight
        else:
            watched.rate[who] = 0.0
            watched.up[who] = np.inf
            watched.down[who] = -np.inf

    if outcome == SOLVED:
        finish(case, sign * driven, events > 0 or live < m, n, motion, branch, slots, near)
    return outcome, budget - driven, n, events, joined, spoilt
