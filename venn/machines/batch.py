"""A batch solve of one machine: used where both the path and block pivoting fail."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from venn._compiled.exchange import judge
from venn._compiled.smo import descend, scores_from
from venn.machines.exchange import RIDGE, STEEP, Problem, Solution, exchanged, one_thread, settle
from venn.prediction import Floats

STEPS = 100  # of pairwise descent, for each object
AT_END = 1e-13  # of C: a coefficient of an interior point this near to an end is at the end, up to rounding


def interior(problem: Problem) -> Floats:
    """Return near-optimal coefficients by a primal-dual interior point; reliable where pairwise descent is slow.

    Minimises 1/2 a'Qa - 1'a over 0 <= a <= u, t'a = 0, one variable for each object and label, by
    Mehrotra's predictor and corrector.
    """
    m = problem.total.size
    here = np.concatenate([np.flatnonzero(problem.positive > 0), np.flatnonzero(problem.total > problem.positive)])
    t = np.ones(here.size)
    t[int((problem.positive > 0).sum()) :] = -1.0
    u = problem.C * np.where(t > 0, problem.positive[here], (problem.total - problem.positive)[here])
    # Relative to one object, features have inner products that no shift changes; proximities need not be definite.
    seen = problem.kernel[:, :m] - problem.kernel[0, :m] - problem.kernel[:, :1] + problem.kernel[0, 0]
    Q = seen[np.ix_(here, here)] * np.outer(t, t)
    few = min(u[t > 0].sum(), u[t < 0].sum())
    a = 0.5 * u * np.where(t > 0, few / u[t > 0].sum(), few / u[t < 0].sum())
    s, z, w, b = u - a, np.ones(here.size), np.ones(here.size), 0.0
    with np.errstate(all="ignore"):
        for _ in range(150):
            dual = Q @ a - 1.0 + b * t - z + w
            mu = (a @ z + s @ w) / (2 * here.size)
            if mu < 1e-24 * problem.C:
                break
            matrix = Q.copy()
            matrix.flat[:: here.size + 1] += z / a + w / s
            lu, pivots, singular = dgetrf(matrix.T, overwrite_a=1)  # symmetric: the transpose is the same matrix
            if singular:
                break
            step_t = dgetrs(lu, pivots, t)[0]
            target, cross_a, cross_s = 0.0, np.zeros(here.size), np.zeros(here.size)
            for corrector in (False, True):
                comp_a, comp_s = (target - cross_a) / a - z, (target - cross_s) / s - w
                step_r = dgetrs(lu, pivots, comp_a - comp_s - dual)[0]
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


def as_found(problem: Problem, beta: Floats) -> Solution:
    """Return the solution with these coefficients: those inside a segment are members; the bias is the best one."""
    _, positive, total, C, *_ = problem
    count, beta = beta.size, beta.copy()
    state, score = settle(problem, beta, AT_END * C), np.empty(count)
    scores_from(beta, 0.0, problem.kernel, count, score)
    members = np.abs(state) == 1
    if not members.any():
        return Solution(beta, score, state, np.inf)
    off = (state - score)[members]
    score += 0.5 * (off.min() + off.max())
    _, worst, _ = judge(count, positive, total, C, 0.0, problem.near, beta, score, state, np.empty_like(state))
    return Solution(beta, score, state, worst if worst < np.inf else np.inf)


def batch_solve(problem: Problem, start: Floats) -> Iterator[Solution]:
    """Solve one machine from a feasible start: yield solutions until the caller accepts one.

    An interior point mostly gives an exact answer by itself, even where members nearly depend on one another. Otherwise
    block pivoting continues from there, or from the result of pairwise descent, which is slow but needs no definite
    matrix.
    """
    count = start.size
    beta, score = start.copy(), np.empty(count)
    with one_thread():
        trial = interior(problem)
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
