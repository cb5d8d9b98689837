"""Block pivoting: one machine solved by exchanging many members of its margin at once.

A path changes the margin by one object per event; each event is exact and costs a pass over the margin. Where hundreds
of objects change, a few factorisations cost less: guess for every object the segment on which it lives, solve for the
members of the margin, send those that left their segment to its end, take in those whose score passed a level, and
guess again. Mostly 5 to 10 rounds suffice, whatever the number of changes. Nothing guarantees that they end; so rounds
that bring no improvement are counted, and after some of them another method has to solve the problem.

References: Kostreva (1978), "Block pivot methods for solving the complementarity problem"; Júdice & Pires (1994), "A
block principal pivoting algorithm for large-scale strictly monotone linear complementarity problems".

Below are a batch solve, where both the path and block pivoting fail, and the machines solved anew for other weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf

from venn._compiled.buffers import Objects, Solved
from venn._compiled.margin import certify, worst_residual
from venn._compiled.masses import follow_masses
from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS, SOLVED
from venn._compiled.rows import add_rows
from venn._compiled.solvers import bias_interval, descend, inner_products, judge, resolution, scores_from, send_to_ends
from venn.machines.interior import minimum
from venn.machines.machine import NotConverged
from venn.machines.threads import one_thread
from venn.prediction import Floats, Integers

ROUNDS = 30
PATIENCE = 5  # rounds allowed that leave at least as many objects wrong as the best one before
DEPENDENT = 1e-13  # of the largest squared distance: a smaller one is rounding
CHOSEN = 1e-7  # of the same: with a smaller one the order of members matters, the farthest from the others' span first
SMALL = 0.05  # of the violation allowed: objects beyond a level, or their segment, by more than this change places
BACK = 1e-3  # of C: how far a coefficient may move back to let another one leave
LEAST = 5e-324  # number above 0: a tiny C times a small weight may be less
RIDGE, STEEP = 0.01, 0.2  # of the violation allowed: how far a ridge on the kernel may move a score; the last resort


def ridge_of(C: float, total: Floats, tolerance: float) -> float:
    """Return the ridge that K(x, x) can take without moving scores noticeably: it separates dependent objects."""
    return RIDGE * tolerance / max(C * float(total.max()), LEAST)


class Problem(NamedTuple):
    """One machine over distinct objects; coefficients live on segments, see `venn._compiled.path`."""

    kernel: Floats  # (m, >= m)
    positive: Floats  # (m,) weights of the examples of the class
    total: Floats  # (m,) weights of all examples
    C: float
    scale: float  # largest squared distance of objects from the first, see `HingeState`
    tolerance: float  # worst violation allowed
    steepness: float = RIDGE

    @property
    @np.errstate(over="ignore")  # with C near the largest number an end is infinite
    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Ends of the segments: bottom of the lower one, the point between them, top of the upper one."""
        return (
            np.multiply(-self.C, self.total - self.positive, dtype=np.float64),
            np.multiply(self.C, 2 * self.positive - self.total, dtype=np.float64),
            np.multiply(self.C, self.positive, dtype=np.float64),
        )

    @property
    def ridge(self) -> float:
        """What is added to K(x, x), see `ridge_of`."""
        return ridge_of(self.C, self.total, self.tolerance) * self.steepness / RIDGE

    @property
    def near(self) -> float:
        """How near to an end a coefficient counts as there."""
        return resolution(self.C, self.scale)


class Solution(NamedTuple):
    """Coefficients, scores, states, and the worst violation of the optimality conditions."""

    beta: Floats
    score: Floats
    state: NDArray[np.int8]
    violation: float


@np.errstate(invalid="ignore")  # an infinite end less a coefficient like it
def settle(problem: Problem, beta: Floats, near: float) -> NDArray[np.int8]:
    """Snap coefficients to ends that are `near` and return the states that they imply."""
    low, middle, high = problem.ends
    state = np.where(beta < middle, PLUS, MINUS).astype(np.int8)
    for end, name in ((high, BELOW), (middle, MIDDLE), (low, ABOVE)):
        there = np.abs(beta - end) <= near
        if name == ABOVE:
            there &= problem.positive > 0
        beta[there] = end[there]
        state[there] = name
    return state


class Factor:
    """Solves for the members of a margin; those that depend on others keep their coefficients.

    Relative to one of them, the root, the others' features have inner products that no shift changes: their matrix is
    positive definite where the members do not depend on one another, whether the kernel holds proximities or not. The
    root's coefficient makes the sum equal to the balance.
    """

    def __init__(self, kernel: Floats, members: Integers, ridge: float = 0.0) -> None:
        root, others = members[0], members[1:]
        away = kernel[others, root] - kernel[root, root]
        matrix = np.empty((others.size, others.size))
        inner_products(kernel, root, others, ridge, matrix)
        largest = float(matrix.diagonal().max(initial=0.0))
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if failed or (others.size and (factor.diagonal() ** 2).min() <= CHOSEN * largest):
            inner_products(kernel, root, others, ridge, matrix)
            factor, order, rank, _ = dpstrf(matrix.T, tol=DEPENDENT * largest, lower=1, overwrite_a=1)
            kept = order[:rank] - 1
            factor, others, away = factor[:rank, :rank], others[kept], away[kept]
        self._kernel = kernel
        self.members = np.append(root, others)  #: those that do not depend on others, the root first
        self._factor, self._away, self._root = factor, away - ridge, float(kernel[root, root]) + ridge

    def solve(self, rest: Floats, balance: float) -> tuple[Floats, float]:
        """Return (coefficients, bias) that give the scores `rest` and sum to `balance`."""
        wanted = rest[1:] - rest[0] - self._away * balance
        beta = dpotrs(self._factor, wanted, lower=1)[0] if wanted.size else wanted
        return np.append(balance - beta.sum(), beta), float(rest[0] - self._root * balance - self._away @ beta)

    def refined(self, rest: Floats, balance: float) -> Floats:
        """Return the coefficients that `solve` finds, corrected for rounding."""
        kernel = self._kernel[np.ix_(self.members, self.members)]
        beta, bias = self.solve(rest, balance)
        for _ in range(2):
            more, shift = self.solve(rest - kernel @ beta - bias, balance - float(beta.sum()))
            beta, bias = beta + more, bias + shift
        return beta

    def inverse(self) -> Floats:
        """Return the inverse of the bordered matrix: bias, root, others."""
        m = self.members.size
        inverse = np.zeros((m + 1, m + 1))
        half = np.tril(dpotri(self._factor, lower=1)[0]) if m > 1 else np.zeros((0, 0))
        G = half + np.tril(half, -1).T
        g, h = G.sum(axis=1), G @ self._away
        inverse[2:, 2:] = G
        inverse[1, 2:] = inverse[2:, 1] = -g
        inverse[0, 2:] = inverse[2:, 0] = -h
        inverse[1, 1], inverse[0, 1] = g.sum(), 1.0 + h.sum()
        inverse[1, 0], inverse[0, 0] = inverse[0, 1], self._away @ h - self._root
        return inverse


def solved_on(problem: Problem, found: Solution, rounds: int = 1) -> Solution:
    """Solve for states: members on their levels, all others at ends; `found` is overwritten.

    More rounds correct the rounding of the first.
    """
    kernel, positive, total, C, *_ = problem
    beta, score, state, _ = found
    count = total.size
    send_to_ends(kernel, count, positive, total, C, state, beta, score)
    members = np.flatnonzero(np.abs(state) == 1)
    if members.size:
        factor = Factor(kernel, members, problem.ridge)
        own = factor.members
        for _ in range(rounds):
            change, shift = factor.solve(state[own] - score[own] - problem.ridge * beta[own], -float(beta.sum()))
            beta[own] += change
            score += shift
            add_rows(score, count, kernel, own, change, own.size)
    return judged(problem, beta, score, state)


def judged(problem: Problem, beta: Floats, score: Floats, state: NDArray[np.int8]) -> Solution:
    """Return the solution with its worst violation; where no coefficient is inside its segment, the bias is centred."""
    kernel, positive, total, C, *_ = problem
    count, guess = total.size, np.empty_like(state)
    _, worst, off = judge(count, positive, total, C, 0.0, problem.near, beta, score, state, guess)
    if off == 1 and lone_at_end(problem, beta, state):
        off = 0
    if not off:
        # All coefficients are at ends: the bias is free in an interval.
        state = settle(problem, beta, problem.near)
        scores_from(beta, 0.0, kernel, count, score)
        least, most = bias_interval(beta, score, positive, total, C, count, problem.near)
        score += 0.5 * (least + most)
        worst = judge(count, positive, total, C, 0.0, problem.near, beta, score, state, guess)[1]
    return Solution(beta, score, state, np.inf if np.isnan(worst) or np.isnan(score).any() else worst)


def lone_at_end(problem: Problem, beta: Floats, state: NDArray[np.int8]) -> bool:
    """Whether the only member inside its segment belongs at an end, as all others tell; its coefficient is set to it.

    Rounding may have kept it from there, and its level would then fix the bias.
    """
    low, middle, high = problem.ends
    least, most = np.where(state == PLUS, low, middle), np.where(state == PLUS, middle, high)
    ends = np.where(beta - least < most - beta, least, most)
    members = np.abs(state) == 1
    inside = members & (np.abs(beta - ends) > problem.near)
    (i,) = np.flatnonzero(inside).tolist()
    rest = float(np.where(members, ends, beta).sum() - ends[i])
    end = float(least[i] if -rest - least[i] < most[i] + rest else most[i])
    if not abs(end + rest) <= problem.near:
        return False
    beta[i] = end
    return True


def exchanged(problem: Problem, start: Solution) -> Solution:
    """Return the best solution that block pivoting finds.

    Parameters
    ----------
    problem : Problem
    start : Solution
        Any coefficients, their scores up to the bias, and a guess of the states.
    """
    kernel, positive, total, C, *_ = problem
    count = total.size
    found = best = Solution(start.beta.copy(), start.score.copy(), start.state.copy(), np.inf)
    fewest, patience = count + 1, PATIENCE
    for _ in range(ROUNDS):
        found = solved_on(problem, found)
        if found.violation < best.violation:
            best = Solution(found.beta.copy(), found.score.copy(), found.state.copy(), found.violation)
        guess = np.empty_like(found.state)
        small = SMALL * problem.tolerance
        wrong, _, _ = judge(count, positive, total, C, small, problem.near, found.beta, found.score, found.state, guess)
        if wrong == 0 or not np.isfinite(found.violation):
            break
        if wrong < fewest:
            fewest, patience = wrong, PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            break
        found = found._replace(state=guess)
    if not best.violation <= problem.tolerance:
        return best
    scores_from(best.beta, 0.0, kernel, count, best.score)
    return solved_on(problem, best, rounds=3)


def margin_of(kernel: Floats, members: Integers, ridge: float = 0.0) -> tuple[Integers, Floats]:
    """Return those members of a margin that do not depend on others, in another order, and their bordered inverse."""
    with one_thread():
        factor = Factor(kernel, members, ridge)
        return factor.members, factor.inverse()


def margin_from_states(
    problem: Problem, beta: Floats, state: NDArray[np.int8], apart: bool = False
) -> tuple[Integers, Floats]:
    """Return the margin that states imply, and its bordered inverse.

    Members that depend on others leave it, which changes `beta` and `state`; or stay, if a ridge sets them `apart`.
    """
    members = np.flatnonzero(np.abs(state) == 1)
    if apart and members.size:
        return margin_of(problem.kernel, members, ridge_of(problem.C, problem.total, problem.tolerance))
    return margin_without_dependents(problem, beta, state)


def margin_without_dependents(problem: Problem, beta: Floats, state: NDArray[np.int8]) -> tuple[Integers, Floats]:
    """Return a margin whose members do not depend on one another, and their bordered inverse.

    Among dependent members (a linear kernel has few independent ones) one coefficient after the other is raised, and
    the others compensate: no score changes, until a member reaches the end of its segment and leaves. `beta` and
    `state` change.
    """
    kernel, (low, middle, high) = problem.kernel, problem.ends
    with one_thread():
        while True:
            members = np.flatnonzero(np.abs(state) == 1)
            if members.size == 0:
                return members, np.zeros((1, 1))
            factor = Factor(kernel, members)
            own = factor.members
            left = np.setdiff1d(members, own)
            if left.size == 0:
                return own, factor.inverse()
            for i in left.tolist():
                moving = np.append(i, own)
                rate = np.append(1.0, factor.refined(-kernel[own, i], -1.0))
                top = np.where(state[moving] == PLUS, middle[moving], high[moving])
                bottom = np.where(state[moving] == PLUS, low[moving], middle[moving])
                with np.errstate(divide="ignore", invalid="ignore"):
                    room = np.where(
                        np.abs(rate) > 1e-9, (np.where(rate > 0, top, bottom) - beta[moving]) / rate, np.inf
                    )
                first = int(room.argmin())
                # Rounding may put a member slightly beyond its end: move back, as nobody else compensates for that.
                beta[moving] += max(-BACK * problem.C / np.abs(rate).max(), float(room[first])) * rate
                who = moving[first]
                rises = rate[first] > 0
                beta[who] = top[first] if rises else bottom[first]
                if state[who] == PLUS:
                    state[who] = MIDDLE if rises else ABOVE
                else:
                    state[who] = BELOW if rises else MIDDLE
                if first > 0:
                    break


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


GOOD = 0.5  # of the tolerance: a smaller residual needs no other method
SURE = 0.9  # of the tolerance: most that a certificate may find; the rest is for rounding that it misses


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


def residual_of(count: int, C: float, objects: Objects, solved: Solved) -> float:
    """Return a machine's worst violation of the optimality conditions, scores from the kernel; NaN if not finite."""
    if not (np.isfinite(solved.score).all() and np.isfinite(solved.beta).all()):
        return np.nan  # comparisons would not notice it
    return worst_residual(count, C, objects, solved)


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
    certify(0, scale, tolerance, count, C, objects, solved)
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
) -> tuple[Solved, int]:
    """Return machine k for the masses `after` of its examples, and the events of its path, -1 where that failed.

    Without a `path` only batch solves are tried.
    """
    old, new = (
        np.array([of.positive[0, :count], of.total[0, :count] - of.positive[0, :count]]) for of in (before, after)
    )
    machine, events = copy_of(k, count, solved), -1
    if path:
        machine, events = follow(count, scale, tolerance, C, before, machine, old, new)
    if path and events < 0:
        # Rounding may have spoilt the inverse: try once more, from one built anew.
        machine = build_margin(count, scale, tolerance, C, before, copy_of(k, count, solved))
        machine, events = follow(count, scale, tolerance, C, before, machine, old, new)
    best, least = machine, residual_of(count, C, after, machine) if events >= 0 else np.inf
    best.drift[0] = least if least <= tolerance else np.inf
    if least <= GOOD * tolerance:
        return best, events
    machine = copy_of(k, count, solved)
    problem = problem_of(count, scale, tolerance, C, after)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN is refused below
        start = Solution(feasible(C, machine.beta[0], old, new), machine.score[0], machine.state[0], np.inf)
        ways = (way(problem, start) for way in (near, pivoted, batch_solve))
        for solution in chain.from_iterable(ways):
            least = min(least, solution.violation)
            if not solution.violation <= min(SURE * tolerance, best.drift[0]):
                continue
            machine.beta[0], machine.state[0] = solution.beta, solution.state
            machine.score[0] = np.where(np.abs(solution.state) == 1, solution.state, solution.score)
            machine.bias[0] = solution.score[0] - problem.kernel[0, :count] @ solution.beta
            for apart in (False, True):
                moved = build_margin(count, scale, tolerance, C, after, alone(machine), apart)
                if moved.size[0] < (np.abs(moved.state) == 1).sum():
                    continue  # nobody would watch those left out
                worst = float(np.max([solution.violation, residual_of(count, C, after, moved)]))
                if worst < best.drift[0]:
                    best, events = moved, -1
                    best.drift[0] = worst
                if worst <= GOOD * tolerance:
                    return best, events
    if best.drift[0] <= SURE * tolerance:
        return best, events
    raise NotConverged(f"residual must be at most {tolerance:.3g}, got {least:.3g} with the new weights")


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
