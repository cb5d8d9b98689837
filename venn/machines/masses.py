"""The machines as they stand, solved anew for other weights of the same examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from venn._compiled.buffers import Objects, Solved
from venn._compiled.margin import rebuild, refresh_scores, worst_residual
from venn._compiled.masses import follow_masses
from venn._compiled.path import SOLVED
from venn.machines.batch import Problem, batch_solve
from venn.machines.machine import NotConverged, grown
from venn.prediction import Floats


class Moved(NamedTuple):
    """Machines whose examples have got other weights, and how: events of each one's path, -1 where it failed."""

    objects: Objects
    solved: Solved
    events: list[int]


def feasible(C: float, beta: Floats, old: Floats, new: Floats) -> Floats:
    """Return (m,) coefficients within the new masses that sum to 0, near the old ones in parts of their bounds.

    `old` and `new` are (2, m) masses of positive and negative examples.
    """
    positive = np.clip(beta + C * old[1], 0, C * old[0])
    parts = np.array([positive, positive - beta])
    parts *= np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    sums = parts.sum(axis=1, keepdims=True)
    parts *= sums.min() / np.maximum(sums, 1e-300)
    moved: Floats = parts[0] - parts[1]
    return moved


def with_room(solved: Solved, size: int) -> Solved:
    """Return the machines with room for margins of `size` members."""
    machines, room = solved.members.shape
    if size < room:
        return solved
    return solved._replace(
        members=grown(solved.members, machines, size + 1), inverse=grown(solved.inverse, machines, size + 1, size + 1)
    )


def residual_of(k: int, count: int, scale: float, C: float, objects: Objects, solved: Solved) -> float:
    """Return machine k's worst violation of the optimality conditions, scores from the kernel; NaN if not finite."""
    own = slice(k, k + 1)
    if not (np.isfinite(solved.score[k, :count]).all() and np.isfinite(solved.beta[k, :count]).all()):
        return np.nan  # which violates no inequality
    worst: float = worst_residual(
        count, scale, C, Objects(objects.kernel, *(values[own] for values in objects[1:])),
        Solved(*(values[own] for values in solved)),
    )  # fmt: skip
    return worst


def follow(
    k: int, count: int, scale: float, C: float, objects: Objects, solved: Solved, old: Floats, new: Floats
) -> tuple[Solved, int]:
    """Let machine k follow its path, in place or in larger buffers; return the machines and the number of events.

    That is -1 where the path failed: what stands in machine k then means nothing.
    """
    m = int(solved.size[k])
    outcome, events, solved.bias[k], members, inverse = follow_masses(
        objects.kernel, count, scale, C, old, new, solved.bias[k], solved.members[k, :m], solved.inverse[k],
        solved.beta[k], solved.score[k], solved.state[k],
    )  # fmt: skip
    if outcome != SOLVED:
        return solved, -1
    m = members.size
    solved = with_room(solved, m)
    solved.size[k], solved.members[k, :m] = m, members
    solved.inverse[k, : m + 1, : m + 1] = inverse[: m + 1, : m + 1]
    return solved, int(events)


def build_margin(k: int, count: int, scale: float, C: float, objects: Objects, solved: Solved) -> Solved:
    """Build machine k's margin and its inverse from the states, and its scores from the kernel."""
    solved = with_room(solved, int((np.abs(solved.state[k, :count]) == 1).sum()))
    rebuild(k, scale, count, C, objects, solved)
    refresh_scores(k, count, objects, solved)
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
) -> Moved:
    """Return the machines for the masses `positive` and `total`, both (machines, count); what is given stays as it is.

    Each machine follows its path from the old masses to the new ones; where that fails, a batch solve starts from the
    old coefficients. Machines with examples of one sign only have nothing to solve.

    Raises
    ------
    NotConverged
        A machine misses the tolerance.
    """
    new = Objects(objects.kernel, objects.positive.copy(), objects.total.copy(), objects.sizes)
    new.positive[:, :count], new.total[:, :count] = positive, total
    *kept, spare = solved
    after = Solved._make([*(values.copy() for values in kept), spare])
    events = [0] * len(solved.size)
    for k in np.flatnonzero((objects.sizes[:, 0] > 0) & (objects.sizes[:, 0] < objects.sizes[:, 1])).tolist():
        masses, target = (
            np.array([of.positive[k, :count], of.total[k, :count] - of.positive[k, :count]]) for of in (objects, new)
        )
        after, events[k] = follow(k, count, scale, C, objects, after, masses, target)
        if events[k] < 0:
            # Rounding may have spoilt the inverse: once more, from one that is built from nothing.
            after.beta[k], after.score[k], after.state[k] = solved.beta[k], solved.score[k], solved.state[k]
            after = build_margin(k, count, scale, C, objects, after)
            after, events[k] = follow(k, count, scale, C, objects, after, masses, target)
        if events[k] >= 0 and residual_of(k, count, scale, C, new, after) <= tolerance:
            continue
        events[k] = -1
        problem = Problem(objects.kernel[:count], positive[k], total[k], C)
        with np.errstate(invalid="ignore"):  # what is not a number is refused below
            solution = batch_solve(problem, feasible(C, solved.beta[k, :count], masses, target), tolerance)
        member = np.abs(solution.state) == 1
        after.beta[k, :count], after.state[k, :count] = solution.beta, solution.state
        after.score[k, :count] = np.where(member, solution.state, solution.score)
        after = build_margin(k, count, scale, C, new, after)
        worst = float(np.max([solution.violation, residual_of(k, count, scale, C, new, after)]))
        if not worst <= tolerance:
            raise NotConverged(f"residual must be at most {tolerance}, got {worst:.3g} with the new weights")
    return Moved(new, after, events)
