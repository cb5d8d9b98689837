"""One machine solved as a whole with one more example, where both its path and block pivoting fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from venn._compiled.buffers import Objects, Solved
from venn._compiled.margin import certify
from venn._compiled.path import ABOVE, BELOW
from venn._compiled.solvers import descend, judge, scores_from
from venn.machines.block_pivoting import (
    RIDGE,
    SMALL,
    STEEP,
    Problem,
    Solution,
    exchanged,
    judged,
    margin_from_states,
    settle,
)
from venn.machines.interior import minimum
from venn.machines.machine import NotConverged
from venn.machines.rounding import SURE, assured, seen
from venn.machines.threads import one_thread
from venn.prediction import Floats, Integers

GOOD = 0.5  # of the tolerance: a smaller residual needs no other method
STEPS = 100  # of pairwise descent, for each object
FEW = 100  # objects that take part in an interior point at first
# Of the largest diagonal entry, see `minimum`. Where the first leaves too much rounding, another one mostly does not.
FIRM = (1e-11, 1e-9, 1e-12)
FINE = 1e-24  # of C: the mean product of slacks and multipliers at which an interior point ends
AT_END = 1e-13  # of C: a coefficient of an interior point this near to an end is at the end, up to rounding


def interior(problem: Problem, own: Integers, fixed: Floats, firm: float) -> Floats | None:
    """Return near-optimal coefficients by an interior point, of the objects `own`; the others have those of `fixed`.

    Reliable where pairwise descent is slow. None where the others leave no choice. The variables are one for each
    object and label.
    """
    kernel, positive, negative = problem.kernel, problem.positive[own], (problem.total - problem.positive)[own]
    plus, minus = np.flatnonzero(positive > 0), np.flatnonzero(negative > 0)
    if not plus.size + minus.size:
        return None
    here = np.concatenate([plus, minus])
    t = np.ones(here.size)
    t[plus.size :] = -1.0
    u = problem.C * np.concatenate([positive[plus], negative[minus]])
    # Relative to one object, features have inner products that no shift changes; proximities need not be definite.
    root = own[0]
    seen = kernel[np.ix_(own, own)] - kernel[root, own] - kernel[own, root, None] + kernel[root, root]
    Q = seen[np.ix_(here, here)] * np.outer(t, t)
    others = fixed.copy()
    others[own] = 0.0
    given = np.zeros(fixed.size)
    scores_from(others, 0.0, kernel, fixed.size, given)
    gain = 1.0 - t * (given[own] - given[root] - (kernel[own, root] - kernel[root, root]) * others.sum())[here]
    a = minimum(Q, gain, t, u, -float(others.sum()), FINE * problem.C, firm)
    if a is None:
        return None
    np.add.at(others, own[here], a * t)
    return others


def as_found(problem: Problem, beta: Floats) -> Solution:
    """Return the solution with these coefficients: those inside a segment are members; the bias is the best one."""
    count, beta = beta.size, beta.copy()
    state, score = settle(problem, beta, AT_END * problem.C), np.empty(count)
    scores_from(beta, 0.0, problem.kernel, count, score)
    members = np.abs(state) == 1
    if members.any():
        off = (state - score)[members]
        score += 0.5 * (off.min() + off.max())
    return judged(problem, beta, score, state)


def solved_near(problem: Problem, start: Solution) -> Solution:
    """Solve one machine by interior points of the objects near a level; return the best solution found.

    One more label, or one less, moves few objects from one segment to another, and these are near a level. So all
    others stay at the ends that their states in `start` give. Those whose score shows that they do not belong there
    take part in the next round, the worst of them first: a few are enough, as their neighbours follow. So the work
    depends on the margin, hardly on the number of objects.

    References: Osuna, Freund & Girosi (1997), "An improved training algorithm for support vector machines".
    """
    _, positive, total, C, *_ = problem
    low, middle, high = problem.ends
    count, state = total.size, start.state
    ends = np.where(state == ABOVE, low, np.where(state == BELOW, high, middle))
    away = np.abs(np.abs(start.score) - 1.0)
    away[(np.abs(state) == 1) | (np.abs(start.beta - ends) > problem.near)] = -np.inf
    order = np.argsort(away, kind="stable")
    own, left = np.split(order, [max(FEW, int((away < 0.0).sum()))])
    best, guess = start._replace(violation=np.inf), np.empty_like(state)
    for firm in FIRM:
        while True:
            beta = interior(problem, np.sort(own), ends, firm)
            if beta is None:
                more = left[:FEW]
            else:
                found = as_found(problem, beta)
                if found.violation < best.violation:
                    best = found
                judge(count, positive, total, C, SMALL * problem.tolerance, problem.near, *found[:3], guess)
                more = left[guess[left] != found.state[left]]
                worst = -np.abs(np.abs(found.score[more]) - 1.0)
                more = more[np.argsort(worst, kind="stable")][: own.size // 4]
            if not more.size:
                break
            own, left = np.append(own, more), np.setdiff1d(left, more)
        if best.violation <= GOOD * problem.tolerance or beta is None:
            break
    return best


def batch_solve(problem: Problem, start: Solution) -> Iterator[Solution]:
    """Solve one machine from a feasible start: yield solutions until the caller accepts one.

    An interior point mostly gives an exact answer by itself, even where members nearly depend on one another. Otherwise
    block pivoting continues from there, or from the result of pairwise descent, which is slow but needs no definite
    matrix.
    """
    count = start.beta.size
    beta, score = start.beta.copy(), np.empty(count)
    for firm in FIRM:
        with one_thread():
            inner = interior(problem, np.arange(count), np.zeros(count), firm)
            trial = beta.copy() if inner is None else inner
            found = as_found(problem, trial)
        yield found
    for gap in (None, 1e-4, 1e-7):
        with one_thread():
            if gap is not None:
                kernel, positive, total, C, *_ = problem
                scores_from(beta, 0.0, kernel, count, score)
                descend(kernel, count, positive, total, C, beta, score, gap, STEPS * count)
                trial = beta.copy()
            state = settle(problem, trial, problem.near)
            scores_from(trial, 0.0, problem.kernel, count, score)
        for steepness in (RIDGE, STEEP):
            with one_thread():
                found = exchanged(problem._replace(steepness=steepness), Solution(trial, score, state, np.inf))
            yield found


def feasible(C: float, beta: Floats, old: Floats, new: Floats) -> Floats:
    """Return (m,) coefficients within the new masses that sum to 0, near the old ones as fractions of their bounds.

    `old` and `new` are (2, m) masses of positive and negative examples.
    """
    positive = np.clip(beta + C * old[1], 0, C * old[0])
    parts = np.array([positive, positive - beta])
    parts *= np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    sums = parts.sum(axis=1, keepdims=True)
    parts *= sums.min() / np.maximum(sums, 1e-300)
    return parts[0] - parts[1]


def copy_of(k: int, count: int, solved: Solved) -> Solved:
    """Return machine k alone; its margin, which nobody writes to, is a view."""
    own, m = slice(k, k + 1), int(solved.size[k])
    return Solved(
        solved.beta[own, :count].copy(), solved.score[own, :count].copy(), solved.state[own, :count].copy(),
        solved.bias[own].copy(), solved.members[own, :m], solved.size[own].copy(), solved.inverse[own],
        solved.spare[own], solved.drift[own].copy(),
    )  # fmt: skip


def backup_of(k: int, count: int, solved: Solved) -> Solved:
    """Return machine k alone, with a copy of its margin too."""
    machine = copy_of(k, count, solved)
    m = int(machine.size[0])
    return machine._replace(members=machine.members.copy(), inverse=machine.inverse[:, : m + 1, : m + 1].copy())


def alone(machine: Solved) -> Solved:
    """Return a copy of a machine without its margin."""
    own = (machine.beta, machine.score, machine.state, machine.bias, machine.size, machine.drift)
    beta, score, state, bias, size, drift = (values.copy() for values in own)
    return machine._replace(beta=beta, score=score, state=state, bias=bias, size=size, drift=drift)


def build_margin(problem: Problem, objects: Objects, solved: Solved, apart: bool) -> Solved:
    """Return a machine with the margin of `margin_from_states`; its scores are from the kernel."""
    count = problem.total.size
    members, inverse = margin_from_states(problem, solved.beta[0, :count], solved.state[0, :count], apart)
    solved.size[0] = members.size
    solved = solved._replace(members=members[None], inverse=inverse[None])
    certify(0, problem.tolerance, count, problem.C, objects, solved)
    return solved


def near(problem: Problem, start: Solution) -> Iterator[Solution]:
    """Yield what an interior point of few objects finds."""
    with one_thread():
        found = solved_near(problem, start)
    yield found


def pivoted(problem: Problem, start: Solution) -> Iterator[Solution]:
    """Yield what block pivoting makes of feasible coefficients."""
    with one_thread():
        beta, score = start.beta.copy(), np.empty(start.beta.size)
        state = settle(problem, beta, problem.near)
        scores_from(beta, 0.0, problem.kernel, beta.size, score)
        found = exchanged(problem, Solution(beta, score, state, np.inf))
    yield found


def solved_anew(
    before: Objects, after: Objects, solved: Solved, k: int, count: int, scale: float, C: float, tolerance: float
) -> Solved:
    """Return machine k for the masses `after` of its examples, in arrays (1, count) of its own; `solved` stays.

    Plain sums judge it here; its certificate comes before the example is learned.

    Raises
    ------
    NotConverged
        The machine misses the tolerance.
    """
    old, new = (
        np.array([of.positive[0, :count], of.total[0, :count] - of.positive[0, :count]]) for of in (before, after)
    )
    best = machine = copy_of(k, count, solved)
    surest = least = np.inf
    problem = Problem(after.kernel[:count], after.positive[0, :count], after.total[0, :count], C, scale, tolerance)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN is refused below
        start = Solution(feasible(C, machine.beta[0], old, new), machine.score[0], machine.state[0], np.inf)
        for solution in chain.from_iterable(way(problem, start) for way in (near, pivoted, batch_solve)):
            least = min(least, solution.violation)
            if not solution.violation <= min(SURE * tolerance, surest):
                continue
            machine.beta[0], machine.state[0] = solution.beta, solution.state
            machine.score[0] = np.where(np.abs(solution.state) == 1, solution.state, solution.score)
            machine.bias[0] = solution.score[0] - problem.kernel[0, :count] @ solution.beta
            for apart in (False, True):
                moved = build_margin(problem, after, alone(machine), apart)
                if moved.size[0] < (np.abs(moved.state) == 1).sum():
                    continue  # nobody would watch those left out
                worst = found = moved.drift[0] = float(np.max([solution.violation, seen(0, count, C, after, moved)]))
                if not found <= GOOD * tolerance:
                    worst = min(assured(0, count, scale, tolerance, C, after, moved, found), found)
                if worst < surest:
                    best, surest = moved, worst
                if worst <= SURE * tolerance and (found <= GOOD * tolerance or worst < found):
                    return best
    if surest <= SURE * tolerance:
        return best
    got = surest if surest < np.inf else least
    raise NotConverged(f"residual must be at most {tolerance:.3g}, got {got:.3g} with one more example")
