"""The exact path of a machine's solution while the weights of its examples move from old to new ones.

The masses of an object, the weights of its positive and of its negative examples, set the ends of the segments on which
its coefficient lives (see `venn._compiled.path`). They move linearly from old to new, at time t from 0 to 1. Objects
off the margin are at ends, so their coefficients move at known rates; the members of the margin and the bias
compensate, so that members keep their level and coefficients their sum. All rates are constant until

    a member meets an end of its moving segment, and leaves the margin,
    another object's score meets a level where one of its segments begins, and it joins, or
    the margin is empty: only the bias can move, and it jumps to the first level that it meets.

A leg is a number of events between two computations of all scores from the kernel, so that rounding does not add up
over a path. During a leg only objects whose scores could soon meet a level are watched. The next scores show whether
that was enough; if not, the leg is repeated with more of them, or all.

References: Hastie, Rosset, Tibshirani & Zhu (2004), "The entire regularization path for the support vector machine",
where all weights move alike; Karasuyama, Harada, Sugiyama & Takeuchi (2012), "Multi-parametric solution-path algorithm
for instance-weighted support vector machines".
"""

import numpy as np

from venn._compiled.buffers import MarginBuffers
from venn._compiled.counting import smallest
from venn._compiled.jit import compiled
from venn._compiled.leave_one_out_span import distance_from
from venn._compiled.margin import ENOUGH, build, join, settle, total_of
from venn._compiled.path import ABOVE, BELOW, FAILED, MIDDLE, MINUS, PLUS, SOLVED, nearest, segment, set_levels
from venn._compiled.rows import add_rows, copy_row, copy_square, dot, largest, magnitude
from venn._compiled.solvers import resolution, scores_from
from venn._compiled.step import centre

PORTION = 100  # events of a leg
FLAT = 1e-15  # a rate below this, in units of the largest possible one, counts as no motion
# Rounding can cause cycles in which time moves by rounding only. So a path has at most so many events for each object,
# and for each of a leg; and so many legs, or a tenth of the number of objects.
EVENTS, LEGS = 10, 500
# Share of the promised violation accepted at the end; a score beyond all of it met a level unwatched.
ACCEPT = 0.4
SPOILT = 1e-12  # an inverse with a larger relative error is replaced
REACH = 1.5  # factor by which an unwatched object may move faster than at first in a leg
ROUNDING = 1e-14  # of a rate, in units of the sum of its terms
DOUBT = 1e-9  # squared distance from a margin's span that needs a second check, in units of the scale of `HingeState`
NEARLY = 3e-14  # with a smaller one, in the same units, an inverse would be meaningless
SMALL = 8  # with fewer members all objects are watched, because the margin may become empty


@compiled
def end_of(state, positive, negative, C):  # type: ignore[no-untyped-def]
    """Return the coefficient of an object off the margin; or its change, given changes of the masses."""
    if state == ABOVE:
        return -C * negative
    if state == BELOW:
        return C * positive
    return C * (positive - negative)


@compiled
def leave(B, m, a, column):  # type: ignore[no-untyped-def]
    """Remove slot `a` from the bordered inverse of a margin of m members; the last slot takes its place."""
    pivot = B[a, a]
    for r in range(m + 1):
        column[r] = B[a, r]
    for r in range(m + 1):
        weight = column[r] / pivot
        for s in range(m + 1):
            B[r, s] -= weight * column[s]
    for s in range(m + 1):
        B[a, s] = B[m, s]
    for r in range(m + 1):
        B[r, a] = B[r, m]


@compiled
def watch(score, response, up, down, count, wanted, caution):  # type: ignore[no-untyped-def]
    """Return (objects to watch, for how long), about `wanted` of them; all with a level if these suffice."""
    speed = 0.0
    for i in range(count):
        speed += abs(response[i]) / count
    ratio, found = np.empty(count), np.empty(count, np.int64)
    n = 0
    for i in range(count):
        distance = min(up[i] - score[i], score[i] - down[i])
        if distance < np.inf:
            # Rates change at events: an object that does not move now may move later.
            ratio[n] = max(0.0, distance) / (abs(response[i]) + 0.25 * speed + 1e-300)
            found[n] = i
            n += 1
    if n <= wanted:
        return found[:n], np.inf
    shuffled = np.empty(n)
    copy_row(ratio[:n], shuffled)
    longest = smallest(shuffled, n, wanted)
    q = 0
    for t in range(n):
        if ratio[t] <= longest:
            found[q] = found[t]
            q += 1
    return found[:q], longest / (REACH * caution) if q < n else np.inf


@compiled
def mend(K, members, m, B, shape, rhs, out):  # type: ignore[no-untyped-def]
    """Take a step of iterative refinement of `out` = B `rhs`, B the bordered inverse of a margin."""
    rest = np.empty(m + 1)
    rest[0] = rhs[0]
    for a in range(m):
        rest[0] -= out[a + 1]
        rest[a + 1] = rhs[a + 1] - out[0]
        row = K[members[a]]
        for b in range(m):
            rest[a + 1] -= row[members[b]] * out[b + 1]
    add_rows(out, m + 1, B, shape, rest, m + 1)


@compiled
def stands_apart(i, K, scale, members, m, B, shape, z, u, moves):  # type: ignore[no-untyped-def]
    """Whether object i is independent of a margin's members; `moves` says whether it certainly moves."""
    if distance_from(MarginBuffers(members, m, B), i, K, shape, z, u) > DOUBT * scale:
        return True
    if not moves:
        return False
    # Rounding in B may look like a distance.
    mend(K, members, m, B, shape, z, u)
    return K[i, i] - dot(u, z, m + 1) > NEARLY * scale


@compiled
def first_to_meet(score, rate, up, down, n, flat):  # type: ignore[no-untyped-def]
    """Return (step, who): which score, moving at its rate, meets a level first."""
    best, who = np.inf, -1
    for s in range(n):
        if abs(rate[s]) > flat:
            step = ((up[s] if rate[s] > 0.0 else down[s]) - score[s]) / rate[s]
            if step < best:
                best, who = step, s
    return max(0.0, best), who


@compiled
def first_to_leave(t, masses, change, C, members, m, beta, state, rate, flat):  # type: ignore[no-untyped-def]
    """Return (step, who, whether upwards): which member meets an end of its segment first; ends move too."""
    best, who, upwards = np.inf, -1, False
    for a in range(m):
        i = members[a]
        low, high = segment(state[i], masses[0, i] + t * change[0, i], masses[1, i] + t * change[1, i], C)
        of_low, of_high = segment(state[i], change[0, i], change[1, i], C)
        if rate[a] - of_high > flat:
            step = max(0.0, (high - beta[i]) / (rate[a] - of_high))
            if step < best:
                best, who, upwards = step, a, True
        if rate[a] - of_low < -flat:
            step = max(0.0, (low - beta[i]) / (rate[a] - of_low))
            if step < best:
                best, who, upwards = step, a, False
    return best, who, upwards


@compiled
def follow_leg(  # type: ignore[no-untyped-def]
    K, count, scale, C, t, masses, change, caution, bias, members, m, B, beta, score, state, up, down
):
    """Follow the path from a settled solution at time t for a number of events, or as long as watching is safe.

    The greater the `caution`, a power of 4, the fewer the events, and the more objects are watched and corrected.
    Updates members, their bordered inverse, `beta` of members, `state`, `up` and `down`; there is room for
    `PORTION` more members. Returns (outcome, t, bias, size of the margin, events).
    """
    unit = max(largest(change[0], count), largest(change[1], count))
    flat, flat_score = FLAT * C * unit, FLAT * C * unit * scale
    width = m + PORTION + 2
    shape, rhs, v, z, u = np.arange(width), np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    # Motion due to coefficients off the margin: of each, of their sum, and of the scores.
    motions, g = np.empty(count), np.empty(count)
    for i in range(count):
        member = state[i] == PLUS or state[i] == MINUS
        motions[i] = 0.0 if member else end_of(state[i], change[0, i], change[1, i], C)
    pull, effort = total_of(motions, count), magnitude(motions, count)
    scores_from(motions, 0.0, K, count, g)
    response = np.empty(count)
    copy_row(g, response)
    rhs[0] = -pull
    for a in range(m):
        rhs[a + 1] = -g[members[a]]
    v[:] = 0.0
    if m > 0:
        add_rows(v, m + 1, B, shape, rhs, m + 1)
        for i in range(count):
            response[i] += v[0]
        add_rows(response, count, K, members, v[1:], m)
    wanted = count if m < SMALL else caution * (512 + count // 4)
    watched, safe = watch(score, response, up, down, count, wanted, caution)
    whole = safe == np.inf
    last = min(1.0, t + safe)

    q = watched.size
    room = q + PORTION + 1
    near = np.empty(room, np.int64)
    f_q, g_q, rate_q, up_q, down_q = np.empty(room), np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    copy_row(watched, near)
    for s in range(q):
        i = near[s]
        f_q[s], g_q[s], up_q[s], down_q[s] = score[i], g[i], up[i], down[i]
    # Kernel values of members and watched objects side by side: sums over members then use contiguous memory.
    block, g_m = np.empty((width, room)), np.empty(width)
    for a in range(m):
        row = K[members[a]]
        g_m[a] = g[members[a]]
        for s in range(q):
            block[a, s] = row[near[s]]

    outcome, events = SOLVED, 0
    while events < max(1, PORTION // caution):
        step, leaving, joining, upwards = 0.0, -1, -1, False
        if m == 0:
            if not whole:
                break
            # Only the bias can move. While the coefficients' sum grows, scores rise until a coefficient can fall.
            shift = np.inf
            upwards = pull > 0.0
            for s in range(q):
                distance = up_q[s] - f_q[s] if upwards else f_q[s] - down_q[s]
                if distance < shift:
                    shift, joining = distance, s
            if joining < 0:
                outcome = FAILED
                break
            shift = max(0.0, shift) if upwards else -max(0.0, shift)
            bias += shift
            for s in range(q):
                f_q[s] += shift
            join(K, near[joining], members, m, B, scale, shape, z, u)
        else:
            rhs[0] = -pull
            for a in range(m):
                rhs[a + 1] = -g_m[a]
            v[: m + 1] = 0.0
            add_rows(v, m + 1, B, shape, rhs, m + 1)
            if caution > 1:
                mend(K, members, m, B, shape, rhs, v)
            for s in range(q):
                rate_q[s] = g_q[s] + v[0]
            add_rows(rate_q, q, block, shape, v[1:], m)
            step, leaving, upwards = first_to_leave(t, masses, change, C, members, m, beta, state, v[1:], flat)
            # An object that depends (nearly) on the members keeps its score as they do: only rounding moves it.
            noise = ROUNDING * scale * (effort + magnitude(v[1:], m))
            while True:
                meeting, who = first_to_meet(f_q, rate_q, up_q, down_q, q, flat_score)
                if meeting >= min(step, last - t):
                    break
                if not stands_apart(near[who], K, scale, members, m, B, shape, z, u, abs(rate_q[who]) > noise):
                    rate_q[who] = 0.0
                elif join(K, near[who], members, m, B, scale, shape, z, u):
                    step, leaving, joining, upwards = meeting, -1, who, rate_q[who] > 0.0
                    break
                else:
                    rate_q[who] = 0.0
            ends = step >= last - t
            if ends:
                step = last - t
            for a in range(m):
                beta[members[a]] += step * v[a + 1]
            for s in range(q):
                f_q[s] += step * rate_q[s]
            bias += step * v[0]
            t += step
            if ends:
                t = last
                break
        events += 1
        if leaving >= 0:
            i = members[leaving]
            if m > 1 and not B[leaving + 1, leaving + 1] > 1e-14 / scale:
                outcome = FAILED
                break
            f_q[q] = state[i]
            if state[i] == PLUS:
                state[i] = MIDDLE if upwards else ABOVE
            else:
                state[i] = BELOW if upwards else MIDDLE
            beta[i] = end_of(state[i], masses[0, i] + t * change[0, i], masses[1, i] + t * change[1, i], C)
            set_levels(i, state[i], 2.0 * masses[0, i] + change[0, i], 2.0 * masses[1, i] + change[1, i], up, down)
            # It is at its level and may come back: watch it.
            motion = end_of(state[i], change[0, i], change[1, i], C)
            row = K[i]
            near[q], g_q[q], up_q[q], down_q[q] = i, g_m[leaving] + motion * row[i], up[i], down[i]
            if m > 1:
                leave(B, m, leaving + 1, z)
            m -= 1
            members[leaving] = members[m]
            g_m[leaving] = g_m[m]
            copy_row(block[m, :q], block[leaving])
            for a in range(m):
                block[a, q] = row[members[a]]
            for s in range(q):
                g_q[s] += motion * row[near[s]]
            q += 1
        else:
            i = near[joining]
            motion = -end_of(state[i], change[0, i], change[1, i], C)
            # It enters at an end of its segment.
            beta[i] = end_of(state[i], masses[0, i] + t * change[0, i], masses[1, i] + t * change[1, i], C)
            state[i] = PLUS if (up_q[joining] if upwards else down_q[joining]) > 0.0 else MINUS
            up[i], down[i] = np.inf, -np.inf
            up_q[joining], down_q[joining] = np.inf, -np.inf
            row = K[i]
            for s in range(q):
                block[m, s] = row[near[s]]
                g_q[s] += motion * row[near[s]]
            g_m[m] = g_q[joining] - motion * row[i]
            m += 1
        pull += motion
        for a in range(m):
            g_m[a] += motion * row[members[a]]
    return outcome, t, bias, m, events


@compiled
def inverse_error(K, members, m, B):  # type: ignore[no-untyped-def]
    """Return the error of B as inverse of the margin's bordered matrix, by its effect on one vector."""
    shape, signs, image = np.arange(m + 1), np.empty(m + 1), np.zeros(m + 1)
    for a in range(m + 1):
        signs[a] = 1.0 if a % 3 else -1.0
    add_rows(image, m + 1, B, shape, signs, m + 1)
    before = np.empty(m + 1)
    copy_row(image, before)
    mend(K, members, m, B, shape, signs, image)
    for a in range(m + 1):
        image[a] -= before[a]
    return largest(image, m + 1) / largest(before, m + 1)


@compiled
def to_ends(C, near, count, masses, members, m, beta, state):  # type: ignore[no-untyped-def]
    """Send members to the nearest end of their segment: all of them, or only those whose segment has no height.

    All of them if none is strictly inside: the margin is then empty. Where only one is, all others tell what it is:
    rounding may have kept it from an end. Returns a mask of those sent.
    """
    inside, rest, least, most = 0, total_of(beta, count), 0.0, 0.0
    gone = np.zeros(m, np.bool_)
    for again in range(2):
        if again == 1 and inside == 1 and abs(nearest(-rest, least, most) + rest) <= near:
            inside = 0
        for a in range(m):
            i = members[a]
            low, high = segment(state[i], masses[0, i], masses[1, i], C)
            if again == 0:
                if low + near < beta[i] < high - near:
                    inside += 1
                    rest -= beta[i]
                    least, most = low, high
                else:
                    rest += nearest(beta[i], low, high) - beta[i]
            elif inside == 0 or masses[0 if state[i] == PLUS else 1, i] == 0.0:
                gone[a] = True
                if nearest(beta[i], low, high) == low:
                    beta[i] = low
                    state[i] = ABOVE if state[i] == PLUS else MIDDLE
                else:
                    beta[i] = high
                    state[i] = MIDDLE if state[i] == PLUS else BELOW
    return gone


@compiled
def keep(count, rows, state, kept, kept_state):  # type: ignore[no-untyped-def]
    """Copy four rows and the states to `kept` (4, count) and `kept_state`."""
    a, b, c, d = rows
    for i in range(count):
        kept[0, i], kept[1, i], kept[2, i], kept[3, i], kept_state[i] = a[i], b[i], c[i], d[i], state[i]


@compiled
def put_back(count, rows, state, kept, kept_state):  # type: ignore[no-untyped-def]
    """Undo the changes since `keep`."""
    a, b, c, d = rows
    for i in range(count):
        a[i], b[i], c[i], d[i], state[i] = kept[0, i], kept[1, i], kept[2, i], kept[3, i], kept_state[i]


@compiled
def build_again(members, m, K, scale, B):  # type: ignore[no-untyped-def]
    """Build the margin of the first m members anew, in place; return how many members remain outside."""
    wanted = np.empty(m, np.int64)
    copy_row(members[:m], wanted)
    return build(wanted, m, K, scale, members, B)[1]


@compiled
def follow_masses(K, count, scale, tolerance, C, old, new, bias, members, inverse, beta, score, state):  # type: ignore[no-untyped-def]
    """Solve one machine for other masses of its examples, from its solution for the old ones.

    Parameters
    ----------
    K : (>= count, >= count) float64
        Kernel values of the objects.
    count : int
    scale : float
        Scale of the problem, see `HingeState`.
    tolerance : float
        Worst violation promised.
    C : float
    old, new : (2, count) float64
        Masses of the positive and of the negative examples at each object; in `new` both signs have some.
    bias : float
    members : (m,) int64
    inverse : (>= m + 1, >= m + 1) float64
        Of the bordered margin.
    beta, score, state : (>= count,)
        Replaced by those of the new solution.

    Returns
    -------
    outcome : SOLVED or FAILED
        If it failed, `beta`, `score` and `state` mean nothing.
    events : int
    bias : float
    members : (new m,) int64
    inverse : (>= new m + 1, >= new m + 1) float64
    """
    change, masses = np.empty((2, count)), np.empty((2, count))
    for side in range(2):
        for i in range(count):
            change[side, i] = new[side, i] - old[side, i]
    m = members.size
    up, down = np.empty(count), np.empty(count)
    for i in range(count):
        # An object beyond a level that is newly created is beyond it from the start.
        if state[i] == MIDDLE and old[0, i] == 0.0 < new[0, i] and score[i] > 1.0:
            state[i] = ABOVE
        elif state[i] == MIDDLE and old[1, i] == 0.0 < new[1, i] and score[i] < -1.0:
            state[i] = BELOW
        set_levels(i, state[i], old[0, i] + new[0, i], old[1, i] + new[1, i], up, down)
        if state[i] == PLUS or state[i] == MINUS:
            up[i], down[i] = np.inf, -np.inf
    t, events, legs, still, caution, outcome = 0.0, 0, 0, 0, 1, SOLVED
    # The last settled solution, to return to.
    kept_t, kept_bias, kept_members, kept_inverse = t, bias, np.empty(m, np.int64), np.empty((m + 1, m + 1))
    copy_row(members, kept_members)
    copy_square(inverse, kept_inverse, m + 1)
    kept, kept_state = np.empty((4, count)), np.empty(count, np.int8)
    B = kept_inverse
    while True:
        for side in range(2):
            for i in range(count):
                masses[side, i] = old[side, i] + t * change[side, i] if t < 1.0 else new[side, i]
        for i in range(count):
            if state[i] != PLUS and state[i] != MINUS:
                beta[i] = end_of(state[i], masses[0, i], masses[1, i], C)
        bias, error = settle(K, count, C, ENOUGH * tolerance, bias, members, m, B, beta, score, state, up, down)
        if outcome == SOLVED and error <= (1.0 if t < 1.0 else ACCEPT) * tolerance:
            caution = max(1, caution // 4)
            kept_t, kept_bias, kept_members, kept_inverse = t, bias, np.empty(m, np.int64), np.empty((m + 1, m + 1))
            copy_row(members[:m], kept_members)
            copy_square(B, kept_inverse, m + 1)
            keep(count, (beta, score, up, down), state, kept, kept_state)
            if t >= 1.0:
                break
        elif caution >= 64 or events == 0:
            return FAILED, events, bias, members, B
        else:
            caution *= 4
            t, bias, m = kept_t, kept_bias, kept_members.size
            put_back(count, (beta, score, up, down), state, kept, kept_state)
            if build_again(kept_members, m, K, scale, kept_inverse) > 0:
                return FAILED, events, bias, members, B
        width = m + PORTION + 2
        members, B = np.empty(width, np.int64), np.empty((width, width))
        copy_row(kept_members, members)
        copy_square(kept_inverse, B, m + 1)
        outcome, t, bias, m, passed = follow_leg(
            K, count, scale, C, t, old, change, caution, bias, members, m, B, beta, score, state, up, down
        )
        events += passed
        legs += 1
        still = still + passed if t == kept_t else 0
        circling = still > count + 2 * PORTION or events > EVENTS * (count + PORTION)
        if circling or legs > max(LEGS, count // 10):
            return FAILED, events, bias, members, B

    near = resolution(C, scale)
    gone = to_ends(C, near, count, new, members, m, beta, state)
    column = np.empty(m + 1)
    for a in range(m - 1, -1, -1):
        if gone[a]:
            if m > 1:
                leave(B, m, a + 1, column)
            m -= 1
            members[a] = members[m]
    for i in range(count):
        if (state[i] == ABOVE and new[0, i] == 0.0) or (state[i] == BELOW and new[1, i] == 0.0):
            state[i] = MIDDLE
        set_levels(i, state[i], new[0, i], new[1, i], up, down)
        if state[i] == PLUS or state[i] == MINUS:
            up[i], down[i] = np.inf, -np.inf
    if m == 0:
        centre(beta, score, new[0], new[0] + new[1], C, count, near)
        bias = score[0] - dot(K[0], beta, count)
    # Rounding adds up in an inverse that is updated often: rebuild it then, as leave-one-out scores use it.
    spoilt = m > 0 and inverse_error(K, members, m, B) > SPOILT
    if spoilt and build_again(members, m, K, scale, B) > 0:
        return FAILED, events, bias, members, B
    left = False
    for a in range(gone.size):
        left = left or gone[a]
    if spoilt or m == 0 or left:
        bias, error = settle(K, count, C, ENOUGH * tolerance, bias, members, m, B, beta, score, state, up, down)
    for a in range(m):
        i = members[a]
        low, high = segment(state[i], new[0, i], new[1, i], C)
        error = max(error, (low - beta[i]) / C, (beta[i] - high) / C)
        score[i] = state[i]
    return SOLVED if error <= ACCEPT * tolerance else FAILED, events, bias, members[:m], B
