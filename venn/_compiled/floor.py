"""Bets that a mean is larger than a risk."""

from __future__ import annotations

from math import exp, log, log1p

from venn._compiled.jit import compiled
from venn._compiled.martingales import shiryaev_roberts_after
from venn.prediction import Floats

NOTHING = -1e308  # for the logarithm of 0


@compiled
def floor_steps(constants: Floats, memory: Floats, zs: Floats, out: Floats) -> None:
    """Bet on numbers; out (n, 2): ln K and ln R after each.

    Constants: the risk, then k bets. Memory: steps, ln K, ln R; of each bet the logarithms of its product, and of its
    sum.
    """
    k = len(constants) - 1
    risk, logs = constants[0], memory[3:].reshape(2, k)
    for i in range(len(zs)):
        for j in range(k):
            factor = log1p(constants[1 + j] * (zs[i] - risk))
            logs[0, j] += factor
            logs[1, j] = shiryaev_roberts_after(logs[1, j], factor)
        for row in range(2):
            high = logs[row, 0]
            for j in range(1, k):
                high = max(high, logs[row, j])
            total = 0.0
            for j in range(k):
                total += exp(logs[row, j] - high)
            out[i, row] = high + log(total / k)
        memory[0] += 1.0
        memory[1], memory[2] = out[i]
