"""Leave-one-out scores: what an object's score would be without one of its examples, to first order.

While the margin stays the same, removing a part x of object i's coefficient moves its score by
-x S_i^2, where S_i^2 is the squared distance of its features from the affine span of the margin's other
members ("span", Chapelle & Vapnik 2000). With B the inverse of the bordered margin [[0, 1], [1, K_MM]] and
q_i = [1; K_Mi],

    S_i^2 = 1 / B_ii  for a member,        S_i^2 = K_ii - q_i' B q_i  for the others.

x is the part that the object's remaining examples cannot hold at its present score. S_i^2 costs the square of the
margin's size. It is therefore kept from step to step, and updated by the rank-one terms of a path's events.
"""

import numpy as np

from venn._compiled.buffers import KEEP, UPDATE, MarginBuffers
from venn._compiled.jit import compiled
from venn._compiled.margin import build
from venn._compiled.path import MINUS, PLUS, level_above, level_below
from venn._compiled.rows import add_rows, dot

LEVEL = 1e-8  # a score this near a level counts as at it; members are at it exactly
TIED = 1e-9  # an empty margin's bias meets all objects within this distance of the first one at the same time
WEIGHT = 1e-9  # a smaller weight in an affine combination counts as 0
# Under a kernel of low rank, the coefficients that two paths leave for the same bag differ by 1e-11. Where one is at an
# end of its segment, this must not decide what has to go.
AT_END = 1e-8  # a coefficient this near an end of its segment, in units of C, counts as at the end


@compiled
def excess(sign, weight, beta, positive, negative, C, near):  # type: ignore[no-untyped-def]
    """Return the part of a coefficient to remove with an example of sign `sign`; it has that sign, or is 0.

    Below the middle of the coefficient's range the negative examples are all at their bound, above it the positive
    ones: the share of the opposite sign is freed first. An example too light to show in a coefficient has no part.
    """
    if C * weight <= near:
        return 0.0
    middle = C * (positive - negative)
    if abs(beta - middle) <= near:
        return sign * C * weight
    if sign > 0:
        return max(0.0, beta - C * (positive - weight - (negative if beta < middle else 0)))
    return min(0.0, beta + C * (negative - weight - (positive if beta > middle else 0)))


@compiled
def first_met(sign, count, positive, total, score, state, met):  # type: ignore[no-untyped-def]
    """Find what an empty margin's bias meets when an example of sign `sign` goes.

    Scores then move against the sign until an object can take over its part. Returns (distance, number of objects met);
    the objects are in `met`.
    """
    best = np.inf
    n = 0
    for again in range(2):
        for i in range(count):
            if sign > 0:
                distance = score[i] - level_below(state[i], total[i] - positive[i])
            else:
                distance = level_above(state[i], positive[i]) - score[i]
            if again == 0:
                best = min(best, distance)
            elif distance <= best + TIED:
                met[n] = i
                n += 1
    return best, n


@compiled
def find_margin(score, state, count, positive, total, on):  # type: ignore[no-untyped-def]
    """Mark the objects at a level where their coefficient may move.

    They define the margin by content. Which of them are members depends on the order of the path, where a member is at
    an end of its segment or depends on the others. Returns how many there are, and how many are not members.
    """
    found = 0
    missed = 0
    for i in range(count):
        at_plus = abs(score[i] - 1.0) <= LEVEL and positive[i] > 0
        on[i] = at_plus or (abs(score[i] + 1.0) <= LEVEL and total[i] > positive[i])
        if on[i]:
            found += 1
            if state[i] != PLUS and state[i] != MINUS:
                missed += 1
    return found, missed


@compiled
def distance_from(margin, i, K, shape, z, u):  # type: ignore[no-untyped-def]
    """Return the squared distance of object i's features from the affine span of the margin; `u` holds its weights."""
    members, m, B = margin
    z[0] = 1.0
    for a in range(m):
        z[a + 1] = K[i, members[a]]
    for a in range(m + 1):
        u[a] = 0.0
    add_rows(u, m + 1, B, shape, z, m + 1)
    return K[i, i] - dot(u, z, m + 1)


@compiled
def margin_of(on, found, count, K, scale, span):  # type: ignore[no-untyped-def]
    """Return the margin of the objects marked in `on`, built anew, and set their squared spans.

    Objects that depend on others stay out, and have span 0 as those others do: each can be replaced by the rest. So no
    answer depends on how dependent objects share their coefficients, which is not determined.
    """
    wanted = np.empty(found, np.int64)
    n = 0
    for i in range(count):
        if on[i]:
            wanted[n] = i
            n += 1
    members, B = np.empty(found + 1, np.int64), np.empty((found + 1, found + 1))
    m, n = build(wanted, n, K, scale, members, B)
    margin = MarginBuffers(members, m, B)
    for a in range(m):
        span[members[a]] = 1.0 / B[a + 1, a + 1] if m > 1 else 0.0
    shape, z, u = np.arange(m + 1), np.empty(m + 1), np.empty(m + 1)
    for t in range(n):
        span[wanted[t]] = 0.0
        distance_from(margin, wanted[t], K, shape, z, u)
        for a in range(m):
            if abs(u[a + 1]) > WEIGHT:
                span[members[a]] = 0.0
    return margin


@compiled
def measure(  # type: ignore[no-untyped-def]
    K, count, positive, total, beta, on, margin, was, known, left, slots, index, events, U, kappa, span
):
    """Set `span` to S_i^2 of the objects off the margin whose coefficient may have to be removed.

    `known` holds S_i^2 by `margin` for objects that are not members in `was`, NaN if not yet computed. The spans are by
    this margin without its slot `left`, if not 0, and with the rank-one terms `U` over `kappa` in slots `index`.
    """
    members, m, B = margin
    shape, z, u = np.arange(max(m, slots) + 1), np.empty(m + 1), np.empty(m + 1)
    wanted = np.empty(count, np.int64)
    n = 0
    for i in range(count):
        if not on[i] and (beta[i] != 0.0 or (positive[i] > 0 and total[i] > positive[i])):
            wanted[n] = i
            n += 1
    for t in range(n):
        i = wanted[t]
        if was[i] == PLUS or was[i] == MINUS:
            span[i] = 0.0
        else:
            if np.isnan(known[i]):
                known[i] = distance_from(margin, i, K, shape, z, u)
            span[i] = known[i]
        if left > 0:
            along = B[left, 0]
            for a in range(m):
                along += B[left, a + 1] * K[i, members[a]]
            span[i] += along * along / B[left, left]
    if events > 0:
        # Kernel values side by side: sums over slots then use contiguous memory.
        block = np.empty((slots - 1, n))
        for a in range(1, slots):
            row = K[index[a]]
            into = block[a - 1]
            for t in range(n):
                into[t] = row[wanted[t]]
        lift = np.empty(n)
        for e in range(events):
            lift[:] = U[e, 0]
            add_rows(lift, n, block, shape, U[e, 1:], slots - 1)
            for t in range(n):
                span[wanted[t]] -= lift[t] * lift[t] / kappa[e]
    for t in range(n):
        span[wanted[t]] = max(0.0, span[wanted[t]])


@compiled
def measure_members(diagonal, m, slots, index, alive, events, U, kappa, span):  # type: ignore[no-untyped-def]
    """Set `span` to S_i^2 of the members: those in slots `index` that are `alive` after the events.

    A single member cannot be replaced: 0. With equal weights it is at a multiple of C, and nothing is removed.
    """
    living = 0
    for a in range(1, slots):
        living += alive[a]
    for a in range(1, slots):
        if alive[a]:
            entry = diagonal[a, a] if a <= m else 0.0
            for e in range(events):
                entry += U[e, a] * U[e, a] / kappa[e]
            span[index[a]] = 1.0 / entry if living > 1 else 0.0


@compiled
def measure_at_rest(K, count, positive, total, beta, on, found, standing, k, solved, known, scale, span):  # type: ignore[no-untyped-def]
    """Set `span` by machine k's own margin if it is the margin by content, else by a newly built one."""
    margin = MarginBuffers(solved.members[k], solved.size[k], solved.inverse[k])
    none, no_terms = np.empty(0), np.empty((0, 0))
    index = np.empty(margin.size + 1, np.int64)
    if standing:
        for a in range(margin.size):
            index[a + 1] = margin.members[a]
        alive = np.ones(margin.size + 1, np.bool_)
        measure_members(margin.inverse, margin.size, margin.size + 1, index, alive, 0, no_terms, none, span)
        measure(
            K, count, positive, total, beta, on, margin, solved.state[k], known[k], 0, 1, index, 0, no_terms, none, span
        )
    else:
        margin = margin_of(on, found, count, K, scale, span)
        row, nobody = np.full(count, np.nan), np.zeros(count, np.int8)
        measure(K, count, positive, total, beta, on, margin, nobody, row, 0, 1, index, 0, no_terms, none, span)


@compiled
def place_left_out(  # type: ignore[no-untyped-def]
    k,
    K,
    count,
    positive,
    total,
    C,
    sizes,
    beta,
    score,
    state,
    empty,
    span,
    entries,
    codes,
    weights,
    signs,
    test,
    of_test,
    near,
    out,
):
    """Set `out` to leave-one-out scores by machine k: of an example of class `codes` and a weight at each of `entries`.

    `sizes` are the numbers of positive and of all examples; `signs` gives the sign of each class's examples, 0 if the
    machine does not use them. The example at `test`, if any, has sign `of_test`.
    """
    positives, examples = sizes
    one_class = positives == 0 or positives == examples
    reach = np.zeros(2)
    found = np.zeros(2, np.int64)
    met = np.empty((2, count if empty else 0), np.int64)
    if empty and not one_class:
        for way in range(2):
            reach[way], found[way] = first_met(2 * way - 1, count, positive, total, score, state, met[way])
    for t in range(entries.size):
        i = entries[t]
        sign = of_test if t == test else signs[codes[t]]
        out[t] = score[i]
        if one_class or sign == 0:
            continue
        if (positives if sign > 0 else examples - positives) == 1:
            # Without it, one class is left.
            out[t] = -sign
            continue
        part = excess(sign, weights[t], beta[i], positive[i], total[i] - positive[i], C, near)
        if part == 0.0:
            continue
        if not empty:
            out[t] -= part * span[i]
            continue
        way = 1 if sign > 0 else 0
        square = np.inf
        for a in range(found[way]):
            j = met[way, a]
            square = min(square, K[i, i] + K[j, j] - 2.0 * K[i, j])
        out[t] -= sign * reach[way] + part * square


@compiled
def leave_out_standing(count, scale, C, signs, objects, solved, known, entries, codes, weights, test, out):  # type: ignore[no-untyped-def]
    """Set `out` (c, entries) to leave-one-out scores by the current machines; the entry `test` is no example."""
    K, positives, totals, sizes = objects
    span = np.empty(count)
    on = np.empty(count, np.bool_)
    near = AT_END * C
    for k in range(positives.shape[0]):
        positive, total = positives[k], totals[k]
        beta, score, state = solved.beta[k], solved.score[k], solved.state[k]
        found, missed = find_margin(score, state, count, positive, total, on)
        if 0 < sizes[k, 0] < sizes[k, 1] and found > 0:
            measure_at_rest(K, count, positive, total, beta, on, found, missed == 0, k, solved, known, scale, span)
        place_left_out(
            k, K, count, positive, total, C, (sizes[k, 0], sizes[k, 1]), beta, score, state, found == 0, span, entries,
            codes, weights, signs[k], test, 0, near, out[k],
        )  # fmt: skip


@compiled
def leave_out_step(  # type: ignore[no-untyped-def]
    p,
    count,
    scale,
    C,
    signs,
    supposed,
    objects,
    solved,
    branches,
    known,
    spans,
    entries,
    codes,
    weights,
    test,
    out,
):
    """Set `out` (sides, c, entries) to leave-one-out scores under each supposition about object p of weight `supposed`.

    Keeps S_i^2 by the current machines in `known`, and sets `spans` to those by the branches.
    """
    K, positives, totals, sizes = objects
    on = np.empty(count, np.bool_)
    near = AT_END * C
    sides = supposed.shape[0]
    for k in range(positives.shape[0]):
        positive, total = positives[k], totals[k]
        own, before = positive[p], total[p]
        for side in range(sides):
            weight = supposed[side, k]
            if weight == 0.0:
                continue
            of = side == sides - 1
            total[p] = before + weight
            positive[p] = own + weight if of else own
            weights[test] = weight
            beta, score, state = branches.beta[side, k], branches.score[side, k], branches.state[side, k]
            span = spans[side, k]
            span[:count] = np.nan
            found, missed = find_margin(score, state, count, positive, total, on)
            one_class = sizes[k, 0] + of == 0 or sizes[k, 0] + of == sizes[k, 1] + 1
            how = branches.commit[k, side]
            standing = missed == 0 and found > 0 and how in (KEEP, UPDATE)
            if standing and how == UPDATE:
                left, diagonal, m = 0, solved.inverse[k], solved.size[k]
                if branches.alternate[k, side]:
                    diagonal = solved.spare[k]
                    for a in range(m):
                        if solved.members[k, a] == p:
                            left = a + 1
                    m -= 1
                slots, events = branches.slots[k, side], branches.events[k, side]
                index, U, kappa = branches.index[k, side], branches.terms[k, side], branches.kappa[k, side]
                measure_members(diagonal, m, slots, index, branches.alive[k, side], events, U, kappa, span)
                measure(
                    K, count, positive, total, beta, on,
                    MarginBuffers(solved.members[k], solved.size[k], solved.inverse[k]),
                    solved.state[k], known[k], left, slots, index, events, U, kappa, span,
                )  # fmt: skip
            elif found > 0 and not one_class:
                measure_at_rest(K, count, positive, total, beta, on, found, standing, k, solved, known, scale, span)
            place_left_out(
                k, K, count, positive, total, C, (sizes[k, 0] + of, sizes[k, 1] + 1), beta, score, state, found == 0,
                span, entries, codes, weights, signs[k], test, 1 if of else -1, near, out[side, k],
            )  # fmt: skip
            if not standing:
                # These spans are not by the margin that a commit leaves, or there is no margin.
                span[:count] = np.nan
            total[p] = before
            positive[p] = own
