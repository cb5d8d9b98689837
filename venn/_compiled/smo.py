"""A batch solve from any feasible start: slow, sure, and used where the path cannot go.

The path needs a solved base with a regular margin. A class met for the first time has none, and
rounding may spoil one. Sequential minimal optimisation finds the active set; a linear solve on that set
then makes the answer exact. Reference: Fan, Chen & Lin (2005), second-order working sets.
"""

import numpy as np

from venn._compiled.dense import add_rows
from venn._compiled.jit import compiled
from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS, violation


@compiled
def levels(beta, positive, negative, C):  # type: ignore[no-untyped-def]
    """Return the levels that bound the score from below and above, given the coefficient.

    The optimum has rise <= score <= fall: +inf or -inf where the coefficient cannot move.
    """
    low = -C * negative
    middle = C * (positive - negative)
    high = C * positive
    if beta < middle:
        rise = 1.0
    elif beta < high:
        rise = -1.0
    else:
        rise = -np.inf
    if beta > middle:
        fall = -1.0
    elif beta > low:
        fall = 1.0
    else:
        fall = np.inf
    return rise, fall


@compiled
def kkt_gap(beta, score, positive, total, C, count):  # type: ignore[no-untyped-def]
    """Return the range of shifts of the bias that satisfies all objects: (lowest, highest)."""
    lowest = -np.inf
    highest = np.inf
    for i in range(count):
        rise, fall = levels(beta[i], positive[i], total[i] - positive[i], C)
        lowest = max(lowest, rise - score[i])
        highest = min(highest, fall - score[i])
    return lowest, highest


@compiled
def worst_violation(state, score, positive, total, count):  # type: ignore[no-untyped-def]
    """Return the largest violation of the optimality conditions over all objects."""
    worst = 0.0
    for i in range(count):
        worst = max(worst, violation(state[i], score[i], positive[i], total[i] - positive[i]))
    return worst


@compiled
def settle(beta, state, positive, total, C, count):  # type: ignore[no-untyped-def]
    """Snap coefficients to the ends of their segments and derive states from them; return the margin's size.

    A coefficient strictly inside a segment makes a member of the margin.
    """
    size = 0
    for i in range(count):
        negative = total[i] - positive[i]
        low = -C * negative
        middle = C * (positive[i] - negative)
        high = C * positive[i]
        near = 1e-11 * C * max(1, total[i])
        if positive[i] > 0 and beta[i] <= low + near:
            beta[i] = low
            state[i] = ABOVE
        elif abs(beta[i] - middle) <= near:
            beta[i] = middle
            state[i] = MIDDLE
        elif beta[i] >= high - near:
            beta[i] = high
            state[i] = BELOW
        else:
            state[i] = PLUS if beta[i] < middle else MINUS
            size += 1
    return size


@compiled
def scores_from(beta, bias, K, count, score):  # type: ignore[no-untyped-def]
    """Set score[:count] = K beta + bias from scratch."""
    rows = np.empty(count, np.int64)
    weights = np.empty(count)
    used = 0
    for i in range(count):
        if beta[i] != 0.0:
            rows[used] = i
            weights[used] = beta[i]
            used += 1
    score[:count] = bias
    add_rows(score, count, K, rows, weights, used)


@compiled
def polish(K, count, positive, total, C, beta, score, state):  # type: ignore[no-untyped-def]
    """Solve the linear system of the margin exactly; return the worst violation afterwards."""
    size = settle(beta, state, positive, total, C, count)
    if size == 0:
        low, high = kkt_gap(beta, score, positive, total, C, count)
        if low - high > 0.0:
            return low - high
        shift = 0.5 * (low + high)
        for i in range(count):
            score[i] += shift
        return worst_violation(state, score, positive, total, count)
    members = np.empty(size, np.int64)
    a = 0
    for i in range(count):
        if state[i] == PLUS or state[i] == MINUS:
            members[a] = i
            a += 1
    system = np.zeros((size + 1, size + 1))
    for a in range(size):
        system[0, a + 1] = 1.0
        system[a + 1, 0] = 1.0
        for e in range(size):
            system[a + 1, e + 1] = K[members[a], members[e]]
    for _ in range(3):
        error = np.empty(size + 1)
        error[0] = -beta[:count].sum()
        for a in range(size):
            error[a + 1] = state[members[a]] - score[members[a]]
        change = np.linalg.lstsq(system, error, 1e-13)[0]
        for a in range(size):
            beta[members[a]] += change[a + 1]
        add_rows(score, count, K, members, change[1:], size)
        for i in range(count):
            score[i] += change[0]
    worst = worst_violation(state, score, positive, total, count)
    for a in range(size):
        i = members[a]
        negative = total[i] - positive[i]
        middle = C * (positive[i] - negative)
        if state[i] == PLUS:
            worst = max(worst, beta[i] - middle, -C * negative - beta[i])
        else:
            worst = max(worst, beta[i] - C * positive[i], middle - beta[i])
    return worst


@compiled
def batch_solve(K, count, positive, total, C, beta, score, state, tolerance):  # type: ignore[no-untyped-def]
    """Solve one machine for its label counts from the feasible start `beta` (sum 0).

    Returns the worst violation reached; above `tolerance` means failure. Sets beta, score, state.
    """
    scores_from(beta, 0.0, K, count, score)
    target = 1e-4
    trial_beta = np.empty(count)
    trial_score = np.empty(count)
    trial_state = np.empty(count, np.int8)
    best = np.inf
    rounds = 0
    limit = 20000 + 200 * count
    while rounds < limit:
        rounds += 1
        i = -1
        lowest = -np.inf
        highest = np.inf
        for a in range(count):
            rise, fall = levels(beta[a], positive[a], total[a] - positive[a], C)
            if rise - score[a] > lowest:
                lowest = rise - score[a]
                i = a
            highest = min(highest, fall - score[a])
        gap = lowest - highest
        if gap <= target:
            shift = 0.5 * (lowest + highest)
            trial_beta[:] = beta[:count]
            for a in range(count):
                trial_score[a] = score[a] + shift
            worst = polish(K, count, positive, total, C, trial_beta, trial_score, trial_state)
            if worst <= 0.01 * tolerance or (target < 1e-11 and worst <= tolerance):
                beta[:count] = trial_beta
                score[:count] = trial_score
                state[:count] = trial_state
                return worst
            best = min(best, worst)
            if target < 1e-13:
                return best
            target *= 0.1
            scores_from(beta, 0.0, K, count, score)
            continue
        j = -1
        gain = -1.0
        row = K[i]
        for a in range(count):
            rise, fall = levels(beta[a], positive[a], total[a] - positive[a], C)
            slack = lowest - (fall - score[a])
            if slack > 0.0 and a != i:
                curvature = max(row[i] + K[a, a] - 2.0 * row[a], 1e-12)
                if slack * slack > gain * curvature:
                    gain = slack * slack / curvature
                    j = a
        if j < 0:
            return best
        rise, fall = levels(beta[j], positive[j], total[j] - positive[j], C)
        step = (lowest - (fall - score[j])) / max(row[i] + K[j, j] - 2.0 * row[j], 1e-12)
        middle = C * (2 * positive[i] - total[i])
        room = (middle if beta[i] < middle else C * positive[i]) - beta[i]
        whole_i = step >= room
        if whole_i:
            step = room
        middle_j = C * (2 * positive[j] - total[j])
        floor = middle_j if beta[j] > middle_j else -C * (total[j] - positive[j])
        whole_j = step >= beta[j] - floor
        if whole_j:
            step = beta[j] - floor
            whole_i = whole_i and step >= room
        beta[i] += step
        beta[j] -= step
        if whole_i:
            beta[i] = middle if beta[i] - 0.5 * step < middle else C * positive[i]
        if whole_j:
            beta[j] = floor
        other = K[j]
        for a in range(count):
            score[a] += step * (row[a] - other[a])
    return best
