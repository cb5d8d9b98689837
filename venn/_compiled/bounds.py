"""Bounds that are brought up to date one number at a time: the sums behind them, and the bounds after each.

All loops read and write a small `memory` whose entries the callers name; its last two are the bounds. One
number at a time and many at once run the same loop, so they agree to the last bit.
"""

from __future__ import annotations

from math import exp, log, log1p, sqrt

from venn._compiled.jit import compiled
from venn.prediction import Floats

MIN_VARIANCE = 1.0  # below this the stitched bound stays what it is there
STITCH = 1.4  # exponent of the stitched bound; its epochs double
ZETA = 3.1055472779775815  # Riemann's zeta at STITCH
FIXED = log(ZETA) - STITCH * log(log(2.0))  # what the stitched bound adds whatever the data
K1 = (2**0.25 + 2**-0.25) / 2**0.5
K2 = (2**0.5 + 1) / 2
CAP = 0.5  # largest bet of empirical Bernstein, and largest share of the capital that betting can lose in a step
SETTLE = 32  # steps after which products of capital become logarithms, well before they could overflow


@compiled
def stitched_radius(variance: float, scale: float, log_level: float) -> float:
    """Return the stitched boundary at a variance process: a sum of deviations stays below it at all times."""
    v = max(variance, MIN_VARIANCE)
    ell = STITCH * log(log(2.0 * v / MIN_VARIANCE)) + FIXED + log_level
    linear = K2 * scale * ell
    return sqrt(K1 * K1 * v * ell + linear * linear) + linear


@compiled
def deviation_steps(memory: Floats, log_level: float, deviations: Floats, out: Floats) -> None:
    """Add (n,) deviations to memory (steps, total, radius); out (n, 2): total and radius after each."""
    steps, total, radius = memory
    for i in range(len(deviations)):
        steps += 1.0
        total += deviations[i]
        radius = sqrt(0.5 * steps * (log(2.0 * steps) + log(steps + 1.0) + log_level))
        out[i, 0] = total
        out[i, 1] = radius
    memory[0], memory[1], memory[2] = steps, total, radius


@compiled
def forward_steps(logs: Floats, bets: Floats, steps: Floats, out: Floats) -> None:
    """Bet on steps (3, n): hit, lower, upper; out (n,): log of the mean capital after each.

    logs (2, bets): log capital of each bet against "at most upper" and against "at least lower".
    """
    for i in range(len(out)):
        hit, lower, upper = steps[0, i], steps[1, i], steps[2, i]
        high = -1e308
        for k in range(len(bets)):
            logs[0, k] += log1p(bets[k] * (hit - upper))
            logs[1, k] += log1p(bets[k] * (lower - hit))
            high = max(high, logs[0, k], logs[1, k])
        total = 0.0
        for k in range(len(bets)):
            total += exp(logs[0, k] - high) + exp(logs[1, k] - high)
        out[i] = high + log(total / (2 * len(bets)))


@compiled
def stitched_steps(memory: Floats, empirical: bool, log_level: float, xs: Floats, out: Floats) -> None:
    """Add (n,) numbers to memory (steps, total, squares, lower, upper); out (n, 2): the bounds after each."""
    steps, total, squares, lower, upper = memory
    for i in range(len(xs)):
        departure = xs[i] - (0.5 + total) / (steps + 1.0)
        squares += departure * departure
        steps += 1.0
        total += xs[i]
        if empirical:
            radius = stitched_radius(squares, 1.0, log_level) / steps
        else:
            radius = stitched_radius(steps / 4.0, 0.0, log_level) / steps
        mean = total / steps
        lower, upper = max(0.0, mean - radius), min(1.0, mean + radius)
        out[i, 0] = lower
        out[i, 1] = upper
    memory[0], memory[1], memory[2], memory[3], memory[4] = steps, total, squares, lower, upper


@compiled
def bernstein_steps(memory: Floats, log_level: float, xs: Floats, out: Floats) -> None:
    """Add (n,) numbers to memory (steps, total, squares, bets, won, lost, lower, upper); out (n, 2): the bounds."""
    steps, total, squares, bets, won, lost, lower, upper = memory
    for i in range(len(xs)):
        mean, variance = (0.5 + total) / (steps + 1.0), (0.25 + squares) / (steps + 1.0)
        steps += 1.0
        bet = min(CAP, sqrt(2.0 * log_level / (variance * steps * log(1.0 + steps))))
        bets += bet
        won += bet * xs[i]
        lost += (-log1p(-bet) - bet) * (xs[i] - mean) ** 2
        total += xs[i]
        squares += (xs[i] - (0.5 + total) / (steps + 1.0)) ** 2
        radius = (log_level + lost) / bets
        lower, upper = max(0.0, won / bets - radius), min(1.0, won / bets + radius)
        out[i, 0] = lower
        out[i, 1] = upper
    memory[0], memory[1], memory[2], memory[3], memory[4] = steps, total, squares, bets, won
    memory[5], memory[6], memory[7] = lost, lower, upper


@compiled
def betting_steps(memory: Floats, wealth: Floats, grid: Floats, log_level: float, xs: Floats, out: Floats) -> None:
    """Bet on (n,) numbers against every candidate mean; out (n, 2): the bounds after each.

    Parameters
    ----------
    memory : (5,) float64
        Steps, total, squares, lower, upper.
    wealth : (4, g) float64
        Capital of the bets that the mean is larger, and smaller, than the candidate: rows 0 and 1 since it was
        last settled, rows 2 and 3 its logarithm then.
    grid : (3, g) float64
        Candidates m in increasing order, CAP / m, CAP / (1 - m).
    log_level : float
        ln(2 / level).
    """
    steps, total, squares, lower, upper = memory
    candidates = grid.shape[1]
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
        # The first capital falls and the second rises with the candidate, so each refuses one end of the grid.
        low, high = 0, candidates
        while low < high:
            middle = (low + high) // 2
            if wealth[2, middle] + log(wealth[0, middle]) >= log_level:
                low = middle + 1
            else:
                high = middle
        lower = grid[0, low - 1] if low > 0 else 0.0
        low, high = 0, candidates
        while low < high:
            middle = (low + high) // 2
            if wealth[3, middle] + log(wealth[1, middle]) >= log_level:
                high = middle
            else:
                low = middle + 1
        upper = grid[0, low] if low < candidates else 1.0
        out[i, 0] = lower
        out[i, 1] = upper
    memory[0], memory[1], memory[2], memory[3], memory[4] = steps, total, squares, lower, upper
