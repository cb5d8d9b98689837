"""Block pivoting: one machine solved by exchanging many members of its margin at once.

A path changes the margin by one object per event; each event is exact and costs a pass over the margin. Where hundreds
of objects change, a few factorisations cost less: guess for every object the segment on which it lives, solve for the
members of the margin, send those that left their segment to its end, take in those whose score passed a level, and
guess again. Mostly 5 to 10 rounds suffice, whatever the number of changes. Nothing guarantees that they end; so rounds
that bring no improvement are counted, and after some of them another method has to solve the problem.

References: Kostreva (1978), "Block pivot methods for solving the complementarity problem"; Júdice & Pires (1994), "A
block principal pivoting algorithm for large-scale strictly monotone linear complementarity problems".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf

from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS
from venn._compiled.rows import add_rows
from venn._compiled.solvers import bias_interval, inner_products, judge, resolution, scores_from, send_to_ends
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
