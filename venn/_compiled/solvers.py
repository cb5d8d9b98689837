"""Solvers beside the path: sequential minimal optimisation, and the loops of block pivoting."""

from __future__ import annotations

import numpy as np

from venn._compiled.jit import compiled
from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS, level_above, level_below, segment
from venn._compiled.ranks import plainly
from venn._compiled.rows import add_rows

HALVES = 134217729.0  # 2^27 + 1: a number times this shows the upper half of its digits

# ------------------------------------------------------------------------------------------------------------------ smo
# Sequential minimal optimisation: slow but reliable, and used where the path fails.
#
# The path needs a solved base with a regular margin. A class met for the first time has none, and
# rounding may spoil one. Reference: Fan, Chen & Lin (2005), second-order working sets.


@compiled
def tolerance_of(C, scale):  # type: ignore[no-untyped-def]
    """Return the worst violation allowed: 1e-8, or 1e-14 C scale if that is larger, but never above 1e-4.

    Scores are of the order of 1, and rounding is about 1e-14 of C times the squared distances of objects. With a
    tolerance above 1e-4 a machine would be solved in name only.
    """
    return min(max(1e-8, 1e-14 * C * scale), 1e-4)


@compiled
def resolution(C, scale):  # type: ignore[no-untyped-def]
    """Return the distance from an end of its segment within which a coefficient counts as at the end.

    A coefficient moved to its end changes scores by its move times a kernel value. That may cost at most a tenth of the
    tolerance of a score; rounding moves coefficients by far less.
    """
    return max(1e-14 * C, min(1e-9 * C, 0.1 * tolerance_of(C, scale) / scale))


@compiled
def levels(beta, positive, negative, C, near):  # type: ignore[no-untyped-def]
    """Return (rise, fall): the optimum has rise <= score <= fall for this coefficient.

    -inf or +inf where the coefficient is, to within `near`, at the end of its range.
    """
    middle = C * (positive - negative)
    if beta < middle - near:
        rise = 1.0
    elif beta < C * positive - near:
        rise = -1.0
    else:
        rise = -np.inf
    if beta > middle + near:
        fall = -1.0
    elif beta > -C * negative + near:
        fall = 1.0
    else:
        fall = np.inf
    return rise, fall


@compiled
def violation_at(beta, score, positive, negative, C):  # type: ignore[no-untyped-def]
    """Return the distance of a coefficient, in units of C, and a score from the pairs that the optimum allows.

    The allowed pairs form a staircase: at the segments' ends the score is free between levels, inside a segment it is
    at one level. The distance to a step is the larger of the two distances. A coefficient slightly beyond a segment of
    its level thus has that small distance, not the distance to the next level.
    """
    low, middle, high = -C * negative, C * (positive - negative), C * positive
    worst = max(abs(beta - low) / C, 1.0 - score)
    worst = min(worst, max((low - beta) / C, (beta - middle) / C, abs(score - 1.0)))
    worst = min(worst, max(abs(beta - middle) / C, abs(score) - 1.0))
    worst = min(worst, max((middle - beta) / C, (beta - high) / C, abs(score + 1.0)))
    return min(worst, max(abs(beta - high) / C, score + 1.0))


@compiled
def bias_interval(beta, score, positive, total, C, count, near):  # type: ignore[no-untyped-def]
    """Return (low, high): the shifts of the bias that satisfy all objects; low > high when none does."""
    low = -np.inf
    high = np.inf
    for i in range(count):
        rise, fall = levels(beta[i], positive[i], total[i] - positive[i], C, near)
        low = max(low, rise - score[i])
        high = min(high, fall - score[i])
    return low, high


@compiled
def scores_from(beta, bias, K, count, score):  # type: ignore[no-untyped-def]
    """Set score[:count] = K beta + bias from scratch."""
    rows = np.empty(count, np.int64)
    weights = np.empty(count)
    used = 0
    for i in range(count):
        score[i] = bias
        if beta[i] != 0.0:
            rows[used] = i
            weights[used] = beta[i]
            used += 1
    add_rows(score, count, K, rows, weights, used)


# Not `compiled`: what rounding takes from a product is only found where nothing fuses.
@plainly
def exact_scores_from(beta, bias, K, count, score):  # type: ignore[no-untyped-def]
    """Set score[:count] = K beta + bias, as if with twice the digits and rounded at the end; ten times the work.

    Reference: Ogita, Rump & Oishi (2005), "Accurate sum and dot product".
    """
    lost = np.zeros(count)
    for i in range(count):
        score[i] = bias
    for j in range(count):
        weight = beta[j]
        if weight == 0.0:
            continue
        wide = HALVES * weight
        upper = wide - (wide - weight)
        lower = weight - upper
        row = K[j]
        for i in range(count):
            value = row[i]
            wide = HALVES * value
            head = wide - (wide - value)
            tail = value - head
            product = weight * value
            before = score[i]
            after = before + product
            gone = after - before
            lost[i] += ((before - (after - gone)) + (product - gone)) + (
                ((upper * head - product) + upper * tail + lower * head) + lower * tail
            )
            score[i] = after
    for i in range(count):
        score[i] += lost[i]


@compiled
def descend(K, count, positive, total, C, beta, score, gap, rounds):  # type: ignore[no-untyped-def]
    """Move pairs of coefficients until the bias interval is violated by at most `gap`; return the violation.

    `beta` is feasible (sum 0, within range) and stays so; `score` is K beta without bias.
    """
    worst = np.inf
    for _ in range(rounds):
        i = -1
        lowest = -np.inf
        highest = np.inf
        for a in range(count):
            rise, fall = levels(beta[a], positive[a], total[a] - positive[a], C, 0.0)
            if rise - score[a] > lowest:
                lowest = rise - score[a]
                i = a
            highest = min(highest, fall - score[a])
        worst = lowest - highest
        if worst <= gap:
            break
        row = K[i]
        j = -1
        gain = -1.0
        for a in range(count):
            rise, fall = levels(beta[a], positive[a], total[a] - positive[a], C, 0.0)
            slack = lowest - (fall - score[a])
            if slack > 0.0 and a != i:
                curvature = max(row[i] + K[a, a] - 2.0 * row[a], 1e-12)
                if slack * slack > gain * curvature:
                    gain = slack * slack / curvature
                    j = a
        if j < 0:
            break
        rise, fall = levels(beta[j], positive[j], total[j] - positive[j], C, 0.0)
        step = (lowest - (fall - score[j])) / max(row[i] + K[j, j] - 2.0 * row[j], 1e-12)
        middle = C * (2 * positive[i] - total[i])
        end_i = middle if beta[i] < middle else C * positive[i]
        middle = C * (2 * positive[j] - total[j])
        end_j = middle if beta[j] > middle else -C * (total[j] - positive[j])
        room_i = end_i - beta[i]
        room_j = beta[j] - end_j
        step = min(step, room_i, room_j)
        # Ends are reached exactly, so that a coefficient is never short of its bound by a rounding error.
        beta[i] = end_i if step >= room_i else beta[i] + step
        beta[j] = end_j if step >= room_j else beta[j] - step
        other = K[j]
        for a in range(count):
            score[a] += step * (row[a] - other[a])
    return worst


# ------------------------------------------------------------------------------------------------------------- exchange
# Loops of block pivoting: a margin's matrix, coefficients moved to ends, and a test of every object's state.


@compiled
def inner_products(K, root, others, ridge, matrix):  # type: ignore[no-untyped-def]
    """Set the upper triangle of `matrix` to inner products of the others' features relative to the root's.

    `ridge` is added to each K(x, x), that of the root included.
    """
    row, own = K[root], K[root, root]
    for a in range(others.size):
        there = K[others[a]]
        away = there[root] - own - ridge
        for b in range(a, others.size):
            matrix[a, b] = there[others[b]] - row[others[b]] - away
        matrix[a, a] += ridge


@compiled
def send_to_ends(K, count, positive, total, C, state, beta, score):  # type: ignore[no-untyped-def]
    """Put the coefficients of all non-members at the ends given by their states, and update scores."""
    moved, by = np.empty(count, np.int64), np.empty(count)
    n = 0
    for i in range(count):
        end = beta[i]
        if state[i] == ABOVE:
            end = -C * (total[i] - positive[i])
        elif state[i] == MIDDLE:
            end = C * (2.0 * positive[i] - total[i])
        elif state[i] == BELOW:
            end = C * positive[i]
        if end != beta[i]:
            moved[n] = i
            by[n] = end - beta[i]
            beta[i] = end
            n += 1
    add_rows(score, count, K, moved, by, n)


@compiled
def judge(count, positive, total, C, small, near, beta, score, state, guess):  # type: ignore[no-untyped-def]
    """Set `guess` to the states implied by coefficients and scores.

    Objects change places if they are beyond a level, or their segment, by more than `small`. Returns (number of
    changes, worst violation, number of members strictly inside their segment).
    """
    wrong, off, worst, balance = 0, 0, 0.0, 0.0
    for i in range(count):
        balance += beta[i]
        here = state[i]
        guess[i] = here
        if here in (PLUS, MINUS):
            low, high = segment(here, positive[i], total[i] - positive[i], C)
            off += abs(beta[i] - low) > near and abs(beta[i] - high) > near
            over, under = (beta[i] - high) / C, (low - beta[i]) / C
            worst = max(worst, over, under)
            # The score of a dependent member follows from the other members only.
            higher = score[i] - here
            worst = max(worst, abs(higher))
            if over > small or (higher < -2.0 * small and not under > small):
                guess[i] = MIDDLE if here == PLUS else BELOW
            elif under > small or higher > 2.0 * small:
                guess[i] = ABOVE if here == PLUS else MIDDLE
        else:
            over = score[i] - level_above(here, positive[i])
            under = level_below(here, total[i] - positive[i]) - score[i]
            worst = max(worst, over, under)
            if over > small:
                guess[i] = PLUS if here == MIDDLE else MINUS
            elif under > small:
                guess[i] = MINUS if here == MIDDLE else PLUS
        wrong += guess[i] != here
    return wrong, max(worst, abs(balance) / C), off
