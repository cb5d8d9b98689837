"""A batch solve of one machine: the safety net where neither a path nor block pivoting goes."""

from __future__ import annotations

import numpy as np

from venn._compiled.smo import descend, scores_from
from venn.machines.exchange import RIDGE, STEEP, Problem, Solution, exchanged, one_thread, settle
from venn.prediction import Floats

STEPS = 100  # of pairwise descent, for each object


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
    # Seen from one object, features have inner products that no shift changes; proximities need not be definite.
    seen = problem.kernel[:, :m] - problem.kernel[0, :m] - problem.kernel[:, :1] + problem.kernel[0, 0]
    Q = seen[np.ix_(here, here)] * np.outer(t, t)
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


def batch_solve(problem: Problem, start: Floats) -> Solution:
    """Solve one machine from a feasible start.

    Pairwise descent finds the active set and block pivoting makes the answer exact; where the descent crawls, an
    interior point finds the set.
    """
    count = start.size
    beta, score = start.copy(), np.empty(count)
    best: Solution | None = None
    with one_thread():
        for gap in (1e-4, 1e-7, None):
            if gap is None:
                trial = interior(problem)
            else:
                kernel, positive, total, C, *_ = problem
                scores_from(beta, 0.0, kernel, count, score)
                descend(kernel, count, positive, total, C, beta, score, gap, STEPS * count)
                trial = beta.copy()
            state = settle(problem, trial, problem.near)
            scores_from(trial, 0.0, problem.kernel, count, score)
            for steepness in (RIDGE, STEEP):
                solution = exchanged(problem._replace(steepness=steepness), Solution(trial, score, state, np.inf))
                if best is None or solution.violation < best.violation:
                    best = solution
                if best.violation <= 0.3 * problem.tolerance:
                    return best
    assert best is not None
    return best
