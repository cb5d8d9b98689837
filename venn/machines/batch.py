"""A batch solve of one machine: the start and the safety net of the incremental path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS
from venn._compiled.smo import bias_interval, descend, resolution, scores_from
from venn.prediction import Floats


class Problem(NamedTuple):
    """One machine over distinct objects; coefficients live on segments, see `venn._compiled.path`."""

    kernel: Floats  # (m, >= m)
    positive: Floats  # (m,) weights of the examples of the class
    total: Floats  # (m,) weights of all examples
    C: float

    @property
    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Ends of the segments: of the lower one's bottom, between, of the upper one's top."""
        return (
            np.multiply(-self.C, self.total - self.positive, dtype=np.float64),
            np.multiply(self.C, 2 * self.positive - self.total, dtype=np.float64),
            np.multiply(self.C, self.positive, dtype=np.float64),
        )

    @property
    def near(self) -> float:
        """How near to an end a coefficient counts as there."""
        near: float = resolution(self.C, max(1e-300, float(self.kernel.diagonal().max())))
        return near


class Solution(NamedTuple):
    """Coefficients, scores, states, and the worst violation of the optimality conditions."""

    beta: Floats
    score: Floats
    state: NDArray[np.int8]
    violation: float


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


def violations(problem: Problem, score: Floats, state: NDArray[np.int8]) -> Floats:
    """Return (m,) distances by which scores lie outside what their states allow."""
    rises = (state == MIDDLE) & (problem.positive > 0)
    falls = (state == MIDDLE) & (problem.total > problem.positive)
    above = np.select([(state == PLUS) | rises, (state == MINUS) | (state == BELOW)], [1.0, -1.0], np.inf)
    below = np.select([(state == MINUS) | falls, (state == PLUS) | (state == ABOVE)], [-1.0, 1.0], -np.inf)
    outside: Floats = np.maximum(score - above, below - score)
    return outside


def solve_on(problem: Problem, beta: Floats, state: NDArray[np.int8]) -> Solution:
    """Solve exactly for the given states; a wrong guess shows as a violation.

    A few rounds mend the guess: members that leave their segment stop at its end, objects past their
    level become members.
    """
    low, middle, high = problem.ends
    count, scale = beta.size, problem.C
    best: Solution | None = None
    for _ in range(8):
        inside = np.flatnonzero(np.abs(state) == 1)
        beta = np.select([state == ABOVE, state == MIDDLE, state == BELOW], [low, middle, high], beta)
        score = np.empty(count)
        scores_from(beta, 0.0, problem.kernel, count, score)
        if inside.size:
            system = np.zeros((inside.size + 1, inside.size + 1))
            system[0, 1:] = system[1:, 0] = 1.0
            system[1:, 1:] = problem.kernel[np.ix_(inside, inside)]
            for _ in range(3):
                error = np.append(-beta.sum(), state[inside] - score[inside])
                change = np.linalg.lstsq(system, error, rcond=1e-14)[0]
                beta[inside] += change[1:]
                score += change[0] + change[1:] @ problem.kernel[inside, :count]
        to_an_end = np.minimum(np.abs(beta - middle), np.minimum(beta - low, high - beta))
        if not (to_an_end[inside] > problem.near).any():
            # Nobody strictly inside: the bias is free in an interval.
            state = settle(problem, beta, problem.near)
            least, most = bias_interval(beta, score, problem.positive, problem.total, problem.C, count, problem.near)
            score += 0.5 * (least + most)
        floor, ceiling = np.where(state == PLUS, low, middle), np.where(state == PLUS, middle, high)
        member = np.abs(state) == 1
        outside = np.where(member, np.maximum(floor - beta, beta - ceiling), 0.0) / scale
        wrong = violations(problem, score, state)
        worst = float(np.max([outside.max(), wrong.max(), abs(beta.sum()) / scale]))
        worst = np.inf if np.isnan(worst) else worst
        if best is None or worst < best.violation:
            best = Solution(beta.copy(), score, state.copy(), worst)
        if worst <= 1e-10:
            break
        state = state.copy()
        over, under = member & (beta - ceiling > 0), member & (floor - beta > 0)
        level = np.where(score > 0, PLUS, MINUS)
        for who, at_plus, at_minus in ((over, MIDDLE, BELOW), (under, ABOVE, MIDDLE)):
            state[who] = np.where(state[who] == PLUS, at_plus, at_minus)
        enter = ~member & (wrong > 1e-10)
        from_outer = (state == ABOVE) | (state == BELOW)
        state[enter] = np.where(from_outer, np.where(state == ABOVE, PLUS, MINUS), level)[enter]
    assert best is not None
    return best


def interior(problem: Problem) -> Floats:
    """Return near-optimal coefficients by a primal-dual interior point; sure where pairs of steps crawl.

    Minimises 1/2 a'Qa - 1'a over 0 <= a <= u, t'a = 0, one variable for each object and label, by
    Mehrotra's predictor and corrector.
    """
    m = problem.total.size
    here = np.concatenate([np.flatnonzero(problem.positive > 0), np.flatnonzero(problem.total > problem.positive)])
    t = np.ones(here.size)
    t[int((problem.positive > 0).sum()) :] = -1.0
    u = problem.C * np.where(t > 0, problem.positive[here], (problem.total - problem.positive)[here])
    Q = problem.kernel[np.ix_(here, here)] * np.outer(t, t)
    few = min(u[t > 0].sum(), u[t < 0].sum())
    a = 0.5 * u * np.where(t > 0, few / u[t > 0].sum(), few / u[t < 0].sum())
    s, z, w, b = u - a, np.ones(here.size), np.ones(here.size), 0.0
    with np.errstate(all="ignore"):
        for _ in range(150):
            dual = Q @ a - 1.0 + b * t - z + w
            mu = (a @ z + s @ w) / (2 * here.size)
            if mu < 1e-18 * problem.C:
                break
            try:
                inverse = np.linalg.inv(Q + np.diag(z / a + w / s))
            except np.linalg.LinAlgError:
                break
            target, cross_a, cross_s = 0.0, np.zeros(here.size), np.zeros(here.size)
            for corrector in (False, True):
                comp_a, comp_s = (target - cross_a) / a - z, (target - cross_s) / s - w
                step_r, step_t = inverse @ (comp_a - comp_s - dual), inverse @ t
                db = (t @ step_r + t @ a) / (t @ step_t)
                da = step_r - db * step_t
                dz, dw = comp_a - z / a * da, comp_s + w / s * da
                longest = 1.0
                for value, change in ((a, da), (s, -da), (z, dz), (w, dw)):
                    falling = change < 0
                    longest = min(longest, float((-value[falling] / change[falling]).min(initial=1.0)))
                if not corrector:
                    after = ((a + longest * da) @ (z + longest * dz) + (s - longest * da) @ (w + longest * dw)) / (
                        2 * here.size
                    )
                    target, cross_a, cross_s = mu * (after / mu) ** 3, da * dz, -da * dw
            longest *= 0.995
            ahead = (a + longest * da, s - longest * da, z + longest * dz, w + longest * dw)
            if longest < 1e-12 or not all(np.isfinite(v).all() and (v > 0).all() for v in ahead):
                break
            (a, s, z, w), b = ahead, b + longest * db
    # A variable is free when both its slacks outweigh their multipliers; the others go to their end.
    a = np.where((a < s) & (a < 1e-3 * u) & (z > a), 0.0, a)
    a = np.where((s < a) & (s < 1e-3 * u) & (w > s), u, a)
    beta = np.zeros(m)
    np.add.at(beta, here, a * t)
    return beta


def batch_solve(problem: Problem, start: Floats, tolerance: float) -> Solution:
    """Solve one machine from a feasible start.

    Pairwise descent finds the active set and a linear solve on it makes the answer exact; where the
    descent crawls, an interior point finds the set.
    """
    count = start.size
    beta, score = start.copy(), np.empty(count)
    best: Solution | None = None
    for gap in (1e-4, 1e-7, 1e-10, 1e-12, None):
        if gap is None:
            trial = interior(problem)
        else:
            kernel, positive, total, C = problem
            scores_from(beta, 0.0, kernel, count, score)
            descend(kernel, count, positive, total, C, beta, score, gap, 100_000_000 // count)
            trial = beta.copy()
        solution = solve_on(problem, trial, settle(problem, trial, problem.near))
        if best is None or solution.violation < best.violation:
            best = solution
        if best.violation <= 0.01 * tolerance:
            break
    assert best is not None
    return best
