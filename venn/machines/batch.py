"""A batch solve of one machine: the start and the safety net of the incremental path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venn._compiled.path import ABOVE, BELOW, MIDDLE, MINUS, PLUS
from venn._compiled.smo import bias_interval, descend, scores_from
from venn.prediction import Floats, Integers


def settle(beta: Floats, positive: Integers, total: Integers, C: float) -> NDArray[np.int8]:
    """Snap coefficients to the ends of their segments and return the states that they imply."""
    low, middle, high = -C * (total - positive), C * (2.0 * positive - total), C * positive.astype(float)
    near = 1e-11 * C * np.maximum(1, total)
    state = np.where(beta < middle, PLUS, MINUS).astype(np.int8)
    for end, name in ((high, BELOW), (middle, MIDDLE), (low, ABOVE)):
        there = np.abs(beta - end) <= near
        if name == ABOVE:
            there &= positive > 0
        beta[there] = end[there]
        state[there] = name
    return state


def violation(
    beta: Floats, score: Floats, positive: Integers, total: Integers, C: float, state: NDArray[np.int8]
) -> float:
    """Return the worst violation of the optimality conditions by scores and states, in score units."""
    low, middle, high = -C * (total - positive), C * (2.0 * positive - total), C * positive
    floor = np.select([state == PLUS, state == MINUS], [low, middle], beta)
    ceiling = np.select([state == PLUS, state == MINUS], [middle, high], beta)
    outside = np.maximum(floor - beta, beta - ceiling).max()
    rises = (state == MIDDLE) & (positive > 0)
    falls = (state == MIDDLE) & (total > positive)
    above = np.select([state == PLUS, rises, (state == MINUS) | (state == BELOW)], [1.0, 1.0, -1.0], np.inf)
    below = np.select([state == MINUS, falls, (state == PLUS) | (state == ABOVE)], [-1.0, -1.0, 1.0], -np.inf)
    return float(max(outside, (score - above).max(), (below - score).max(), abs(beta.sum()) / C))


def batch_solve(
    K: Floats, positive: Integers, total: Integers, C: float, start: Floats, tolerance: float
) -> tuple[Floats, Floats, NDArray[np.int8], float]:
    """Solve one machine from a feasible start; return its coefficients, scores, states and worst violation.

    Pairwise descent finds the active set, a linear solve on that set makes the answer exact; when the
    set turns out wrong, the descent goes on.
    """
    count = start.size
    beta, score = start.copy(), np.empty(count)
    best: tuple[Floats, Floats, NDArray[np.int8], float] | None = None
    for gap in 10.0 ** -np.arange(4, 14):
        scores_from(beta, 0.0, K, count, score)
        descend(K, count, positive, total, C, beta, score, gap, 20000 + 200 * count)
        trial, fitted = beta.copy(), score.copy()
        state = settle(trial, positive, total, C)
        scores_from(trial, 0.0, K, count, fitted)
        inside = np.flatnonzero(np.abs(state) == 1)
        low, high = bias_interval(trial, fitted, positive, total, C, count)
        fitted += 0.5 * (low + high)
        if inside.size:
            size = inside.size
            system = np.zeros((size + 1, size + 1))
            system[0, 1:] = system[1:, 0] = 1.0
            system[1:, 1:] = K[np.ix_(inside, inside)]
            for _ in range(3):
                error = np.append(-trial.sum(), state[inside] - fitted[inside])
                change = np.linalg.lstsq(system, error, rcond=1e-13)[0]
                trial[inside] += change[1:]
                fitted += change[0] + change[1:] @ K[inside, :count]
        worst = violation(trial, fitted, positive, total, C, state)
        if best is None or worst < best[3]:
            best = trial, fitted, state, worst
        if worst <= 0.01 * tolerance:
            break
    assert best is not None
    return best
