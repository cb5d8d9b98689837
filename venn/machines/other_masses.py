"""Machines solved anew for other weights of their examples: by their path, or else by a batch solve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from venn._compiled.buffers import Objects, Solved
from venn._compiled.margin import certify
from venn._compiled.masses import follow_masses
from venn._compiled.path import SOLVED
from venn._compiled.solvers import scores_from
from venn.machines.batch_solve import GOOD, batch_solve, solved_near
from venn.machines.block_pivoting import Problem, Solution, exchanged, margin_from_states, settle
from venn.machines.machine import NotConverged
from venn.machines.rounding import SURE, assured, seen
from venn.machines.threads import one_thread
from venn.prediction import Floats


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


def follow(
    count: int, scale: float, tolerance: float, C: float, objects: Objects, solved: Solved, old: Floats, new: Floats
) -> tuple[Solved, int]:
    """Let a machine follow its path; return it with its new margin, and the number of events.

    The number is -1 where the path failed: the machine's contents then mean nothing.
    """
    m = int(solved.size[0])
    outcome, events, solved.bias[0], members, inverse = follow_masses(
        objects.kernel, count, scale, tolerance, C, old, new, solved.bias[0], solved.members[0, :m], solved.inverse[0],
        solved.beta[0], solved.score[0], solved.state[0],
    )  # fmt: skip
    if outcome != SOLVED:
        return solved, -1
    solved.size[0] = members.size
    return solved._replace(members=members[None], inverse=inverse[None]), int(events)


def problem_of(count: int, scale: float, tolerance: float, C: float, objects: Objects) -> Problem:
    """Return the problem of the only machine of `objects`."""
    return Problem(objects.kernel[:count], objects.positive[0, :count], objects.total[0, :count], C, scale, tolerance)


def build_margin(
    count: int, scale: float, tolerance: float, C: float, objects: Objects, solved: Solved, apart: bool = False
) -> Solved:
    """Return a machine with the margin of `margin_from_states`; its scores are from the kernel."""
    problem = problem_of(count, scale, tolerance, C, objects)
    members, inverse = margin_from_states(problem, solved.beta[0, :count], solved.state[0, :count], apart)
    solved.size[0] = members.size
    solved = solved._replace(members=members[None], inverse=inverse[None])
    certify(0, tolerance, count, C, objects, solved)
    return solved


def move_masses(
    objects: Objects,
    solved: Solved,
    count: int,
    scale: float,
    C: float,
    positive: Floats,
    total: Floats,
    tolerance: float,
    which: Iterable[int],
) -> dict[int, Solved]:
    """Return the machines `which` for the masses `positive` and `total`, (machines, count); what is given stays.

    Each machine follows its path from the old masses to the new ones; where that fails, a batch solve starts from the
    old coefficients. Each is in its own arrays, (1, count), and its margin has no room to grow. Machines whose examples
    all have one sign have nothing to solve.

    Raises
    ------
    NotConverged
        A machine misses the tolerance.
    """
    moved = {}
    for k in which:
        own = slice(k, k + 1)
        before, after = (
            Objects(objects.kernel, of_class[own], of_all[own], objects.sizes[own])
            for of_class, of_all in ((objects.positive, objects.total), (positive, total))
        )
        moved[k], _ = move_one(before, after, solved, k, count, scale, C, tolerance)
    return moved


def move_one(
    before: Objects,
    after: Objects,
    solved: Solved,
    k: int,
    count: int,
    scale: float,
    C: float,
    tolerance: float,
    path: bool = True,
    later: bool = False,
) -> tuple[Solved, int]:
    """Return machine k for the masses `after` of its examples, and the events of its path, -1 where that failed.

    Without a `path` only batch solves are tried. What is certified `later` may be as plain sums see it.
    """
    old, new = (
        np.array([of.positive[0, :count], of.total[0, :count] - of.positive[0, :count]]) for of in (before, after)
    )
    most = SURE * tolerance if later else tolerance

    def standing(of: Solved, found: float) -> float:
        if later and found <= GOOD * tolerance:
            return found
        worst = assured(0, count, scale, tolerance, C, after, of, found)
        return min(worst, found) if later else worst

    machine, events = copy_of(k, count, solved), -1
    if path:
        machine, events = follow(count, scale, tolerance, C, before, machine, old, new)
    if path and events < 0:
        # Rounding may have spoilt the inverse: try once more, from one built anew.
        machine = build_margin(count, scale, tolerance, C, before, copy_of(k, count, solved))
        machine, events = follow(count, scale, tolerance, C, before, machine, old, new)
    best, found, surest, least = machine, np.inf, np.inf, np.inf
    if events >= 0:
        found = seen(0, count, C, after, machine)
        surest = least = min(np.inf, standing(machine, found))  # NaN counts as infinite
        if surest <= most and (found <= GOOD * tolerance or surest < found):  # less: it was mostly rounding
            return best, events
    machine = copy_of(k, count, solved)
    problem = problem_of(count, scale, tolerance, C, after)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN is refused below
        start = Solution(feasible(C, machine.beta[0], old, new), machine.score[0], machine.state[0], np.inf)
        ways = (way(problem, start) for way in (near, pivoted, batch_solve))
        for solution in chain.from_iterable(ways):
            least = min(least, solution.violation)
            if not solution.violation <= min(SURE * tolerance, surest):
                continue
            machine.beta[0], machine.state[0] = solution.beta, solution.state
            machine.score[0] = np.where(np.abs(solution.state) == 1, solution.state, solution.score)
            machine.bias[0] = solution.score[0] - problem.kernel[0, :count] @ solution.beta
            for apart in (False, True):
                moved = build_margin(count, scale, tolerance, C, after, alone(machine), apart)
                if moved.size[0] < (np.abs(moved.state) == 1).sum():
                    continue  # nobody would watch those left out
                found = float(np.max([solution.violation, seen(0, count, C, after, moved)]))
                worst = standing(moved, found)
                if worst < surest:
                    best, events, surest = moved, -1, worst
                if worst <= most and (found <= GOOD * tolerance or worst < found):
                    return best, events
    if surest <= most:
        return best, events
    got = surest if surest < np.inf else least
    raise NotConverged(f"residual must be at most {tolerance:.3g}, got {got:.3g} with the new weights")


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
