"""Bounds updated one number at a time: the sums behind them, and the bounds after each number.

Every loop has the form run(constants, memory, xs, out): it updates `memory`, whose entries the callers name, by the
numbers, and writes the bounds after each to `out`. One number at a time and many at once run the same loop, so they
agree to the last bit.
"""

from __future__ import annotations

from math import exp, log, log1p, sqrt

from venn._compiled.jit import compiled
from venn.prediction import Floats

MIN_VARIANCE = 1.0  # for a smaller variance the stitched bound is the one at this value
STITCH = 1.4  # exponent of the stitched bound; its epochs double
ZETA = 3.1055472779775815  # Riemann's zeta at STITCH
FIXED = log(ZETA) - STITCH * log(log(2.0))  # constant term of the stitched bound
K1 = (2**0.25 + 2**-0.25) / 2**0.5
K2 = (2**0.5 + 1) / 2
CAP = 0.5  # largest share of the capital that betting can lose in a step
SETTLE = 32  # steps after which products of capital become logarithms, well before they could overflow


@compiled
def stitched_radius(variance: float, scale: float, log_level: float) -> float:
    """Return the stitched boundary at a variance process: a sum of deviations stays below it at all times."""
    v = max(variance, MIN_VARIANCE)
    ell = STITCH * log(log(2.0 * v / MIN_VARIANCE)) + FIXED + log_level
    linear = K2 * scale * ell
    return sqrt(K1 * K1 * v * ell + linear * linear) + linear


@compiled
def stitched_bounds(
    steps: float, total: float, squares: float, log_level: float, empirical: float
) -> tuple[float, float]:
    """Return the stitched bounds for the mean of numbers of that sum."""
    if empirical > 0.0:
        radius = stitched_radius(squares, 1.0, log_level) / steps
    else:
        radius = stitched_radius(steps / 4.0, 0.0, log_level) / steps
    mean = total / steps
    return max(0.0, mean - radius), min(1.0, mean + radius)


@compiled
def deviation_radius(steps: float, log_level: float) -> float:
    """Return the bound that a sum of deviations in [-1, 1] of range 1 passes at any step with small probability."""
    return sqrt(0.5 * steps * (log(2.0 * steps) + log(steps + 1.0) + log_level))


@compiled
def deviation_steps(constants: Floats, memory: Floats, deviations: Floats, out: Floats) -> None:
    """Add deviations to memory (steps, total, radius); out (n, 2): total and radius. Constants: ln(1 / level)."""
    log_level = constants[0]
    steps, total, radius = memory
    for i in range(len(deviations)):
        steps += 1.0
        total += deviations[i]
        radius = deviation_radius(steps, log_level)
        out[i, 0] = total
        out[i, 1] = radius
    memory[0], memory[1], memory[2] = steps, total, radius


@compiled
def forward_steps(bets: Floats, memory: Floats, steps: Floats, out: Floats) -> None:
    """Bet on steps (3, n): hit, lower, upper; out (n,): log of the mean capital after each.

    Memory: steps, that log, log capital of each bet against "at most upper", then against "at least lower".
    """
    k = len(bets)
    logs = memory[2:].reshape(2, k)
    for i in range(len(out)):
        hit, lower, upper = steps[0, i], steps[1, i], steps[2, i]
        for j in range(k):
            logs[0, j] += log1p(bets[j] * (hit - upper))
            logs[1, j] += log1p(bets[j] * (lower - hit))
        out[i] = mean_capital(logs)
        memory[0] += 1.0
        memory[1] = out[i]


@compiled
def mean_capital(logs: Floats) -> float:
    """Return ln of the mean of e^logs (2, k)."""
    high = -1e308
    for j in range(logs.shape[1]):
        high = max(high, logs[0, j], logs[1, j])
    total = 0.0
    for j in range(logs.shape[1]):
        total += exp(logs[0, j] - high) + exp(logs[1, j] - high)
    return high + log(total / logs.size)


@compiled
def stitched_steps(constants: Floats, memory: Floats, xs: Floats, out: Floats) -> None:
    """Memory: steps, lower, upper, total, squares. Constants: ln(2 / level), whether the variance is learned."""
    log_level, empirical = constants
    steps, lower, upper, total, squares = memory
    for i in range(len(xs)):
        departure = xs[i] - (0.5 + total) / (steps + 1.0)
        squares += departure * departure
        steps += 1.0
        total += xs[i]
        lower, upper = stitched_bounds(steps, total, squares, log_level, empirical)
        out[i, 0] = lower
        out[i, 1] = upper
    memory[0], memory[1], memory[2], memory[3], memory[4] = steps, lower, upper, total, squares


@compiled
def betting_steps(constants: Floats, memory: Floats, xs: Floats, out: Floats) -> None:
    """Bet on numbers against every candidate mean; out (n, 2): the bounds after each.

    Memory: steps, lower, upper, total, squares; then for g candidates the capital of the bets that the mean is
    larger, of the bets that it is smaller, both since they were last settled, and their logarithms then. Constants:
    ln(2 / level); then the candidates m in increasing order, CAP / m, and CAP / (1 - m).
    """
    log_level = constants[0]
    candidates = len(constants) // 3
    grid = constants[1:].reshape(3, candidates)
    wealth = memory[5:].reshape(4, candidates)
    steps, lower, upper, total, squares = memory[0], memory[1], memory[2], memory[3], memory[4]
    for i in range(len(xs)):
        x = xs[i]
        variance = (0.25 + squares) / (steps + 1.0)
        steps += 1.0
        bet = sqrt(2.0 * log_level / (variance * steps * log(1.0 + steps)))
        total += x
        squares += (x - (0.5 + total) / (steps + 1.0)) ** 2
        for k in range(candidates):
            departure = x - grid[0, k]
            wealth[0, k] *= 1.0 + min(bet, grid[1, k]) * departure
            wealth[1, k] *= 1.0 - min(bet, grid[2, k]) * departure
        if steps % SETTLE == 0.0:
            for k in range(candidates):
                wealth[2, k] += log(wealth[0, k])
                wealth[3, k] += log(wealth[1, k])
                wealth[0, k] = 1.0
                wealth[1, k] = 1.0
        lower, upper = betting_bounds(grid[0], wealth, log_level)
        out[i, 0] = lower
        out[i, 1] = upper
    memory[0], memory[1], memory[2], memory[3], memory[4] = steps, lower, upper, total, squares


@compiled
def betting_bounds(means: Floats, wealth: Floats, log_level: float) -> tuple[float, float]:
    """Return the smallest and the largest candidate against which betting has not won enough."""
    candidates = len(means)
    # The first capital falls and the second rises with the candidate, so each excludes one end of the grid.
    low, high = 0, candidates
    while low < high:
        middle = (low + high) // 2
        if wealth[2, middle] + log(wealth[0, middle]) >= log_level:
            low = middle + 1
        else:
            high = middle
    lower = means[low - 1] if low > 0 else 0.0
    low, high = 0, candidates
    while low < high:
        middle = (low + high) // 2
        if wealth[3, middle] + log(wealth[1, middle]) >= log_level:
            high = middle
        else:
            low = middle + 1
    return lower, means[low] if low < candidates else 1.0
