"""What rounding hides from a certificate, and how machines are mended where that is too much."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venn._compiled.buffers import Objects, Solved
from venn._compiled.margin import ROUNDING, worst_residual
from venn._compiled.rows import add_rows
from venn._compiled.solvers import bias_interval, exact_scores_from, resolution, scores_from
from venn.prediction import Floats

SURE = 0.9  # of the tolerance: most that plain sums may find
UNIT = 6e-16  # of a kernel value: its rounding, as it is a product of sums, each rounded
ROUNDS = 8  # of mending


def seen(
    k: int, count: int, C: float, objects: Objects, solved: Solved, sums: Callable[..., Any] = scores_from
) -> float:
    """Return machine k's worst violation by these sums; NaN if a score or a coefficient is not finite."""
    if not (np.isfinite(solved.score[k, :count]).all() and np.isfinite(solved.beta[k, :count]).all()):
        return math.nan  # comparisons would not notice it
    fresh = np.empty(count)
    sums(solved.beta[k], float(solved.bias[k]), objects.kernel, count, fresh)
    return float(worst_residual(k, fresh, count, C, objects, solved))


def assured(
    k: int, count: int, scale: float, tolerance: float, C: float, objects: Objects, solved: Solved, worst: float
) -> float:
    """Return machine k's worst violation with all that rounding may hide; its drift allows for plain sums.

    Plain sums have found `worst`. Where they may hide too much, sums take twice the digits, and only what kernel values
    are rounded by stays hidden. Where that does not do, coefficients are mended by such sums.
    """
    may_hide = ROUNDING * scale * float(np.abs(solved.beta[k, :count]).sum())
    solved.drift[k] = math.inf if math.isnan(worst) else worst + may_hide
    if worst <= SURE * tolerance and worst + may_hide <= tolerance:
        return worst + may_hide
    if not worst <= tolerance + may_hide:
        return worst  # more than rounding is wrong
    return mended(k, count, scale, tolerance, C, objects, solved)


def of_kernel(kernel: Floats, beta: Floats) -> float:
    """Return how far rounded kernel values may move a score: each is rounded in units of its size.

    An inner product may be small beside its terms, whose size is that of the objects' own kernel values.
    """
    used, own = np.flatnonzero(beta), np.sqrt(np.abs(kernel.diagonal()[: beta.size]))
    sizes = np.maximum(np.abs(kernel[: beta.size, used]), own[:, None] * own[used])
    return UNIT * math.sqrt(((sizes * beta[used]) ** 2).sum(axis=1).max())


@np.errstate(over="ignore", invalid="ignore")  # what is not finite misses the tolerance
def mended(k: int, count: int, scale: float, tolerance: float, C: float, objects: Objects, solved: Solved) -> float:
    """Return machine k's worst violation by exact sums; while it is too large, put its members on their levels.

    Without members the bias is centred. What is kept is the best found: where members nearly depend on one another,
    corrections may cost large coefficients.
    """
    kernel, positive, total = objects.kernel, objects.positive[k], objects.total[k]
    beta, score, m = solved.beta[k], solved.score[k], int(solved.size[k])
    members, inverse, order = solved.members[k, :m], solved.inverse[k], np.arange(m + 1)
    levels, fresh, least, best = solved.state[k, members], np.empty(count), math.inf, None
    for attempt in range(ROUNDS):
        exact_scores_from(beta, float(solved.bias[k]), kernel, count, fresh)
        if attempt:
            score[:count] = fresh
            score[members] = levels
        worst = worst_residual(k, fresh, count, C, objects, solved) + of_kernel(kernel, beta[:count])
        if not worst < least:
            break
        least, best = float(worst), (beta[members], float(solved.bias[k]), score[:count].copy())
        if least <= tolerance:
            break
        if m == 0:
            solved.bias[k] += 0.5 * sum(bias_interval(beta, fresh, positive, total, C, count, resolution(C, scale)))
            continue
        off, fix = np.append(-math.fsum(beta[:count]), levels - fresh[members]), np.zeros(m + 1)
        add_rows(fix, m + 1, inverse, order, off, m + 1)
        solved.bias[k] += fix[0]
        beta[members] += fix[1:]
    if best is not None:
        beta[members], solved.bias[k], score[:count] = best
    return least
