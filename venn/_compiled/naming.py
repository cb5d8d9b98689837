"""Many streams of p-values beside each other: ranks of columns among their own past, and a bet on each stream.

The memory of a stream is a row of numbers: its steps, the logarithm of its capital, the largest that this has been;
then ln S of each jumper, the capital shares of its bettors, and how often p-values lately fell into each cell of
[0, 1].
"""

import numpy as np
from numpy.typing import NDArray

from venn._compiled.jit import compiled
from venn._compiled.martingales import EPSILONS, log_mean_exp
from venn._compiled.ranks import beyond, reaching

JUMPS = np.array([0.0001, 0.001, 0.01, 0.1])  # and one jumper that never bets: no more than 4/5 is ever lost
CELLS = 16
FORGETS = 0.05  # of what a cell has, at each step
UNIFORM = 0.1  # least density that is bet
K, E = len(JUMPS), len(EPSILONS)
BETTORS = E + 1  # those of a simple jumper, and one on the cells
SHARES = 3 + K + 1
OWN_CELLS = SHARES + K * BETTORS
WIDTH = OWN_CELLS + CELLS


def no_bets(streams: int) -> NDArray[np.float64]:
    """Return the memories of so many streams before the first step."""
    memory = np.zeros((streams, WIDTH))
    memory[:, SHARES:OWN_CELLS] = 1 / BETTORS
    memory[:, OWN_CELLS:] = 1 / CELLS
    return memory


@compiled
def rank_columns(held, n, x, tau, ps):  # type: ignore[no-untyped-def]
    """Set `ps` to the p-value of each number among the n before in its column and itself; then keep it there.

    Parameters
    ----------
    held : (d, room) float64, changed in place
        The first n of each row are those before, ascending; there is room for one more.
    n : int
    x : (d,) float64
        NaN is a value of its own, above all others.
    tau : float in [0, 1]
    ps : (d,) float64, changed in place
    """
    for j in range(x.shape[0]):
        row = held[j]
        value = x[j] if x[j] == x[j] else np.inf
        first = reaching(row, 0, n, value)
        last = beyond(row, first, n, value)
        ps[j] = (n - last + tau * (last - first + 1)) / (n + 1)
        for later in range(n, last, -1):
            row[later] = row[later - 1]
        row[last] = value


@compiled
def bet(state, p):  # type: ignore[no-untyped-def]
    """Bet on one p-value of one stream; `state` is its memory, changed in place."""
    cells = state[OWN_CELLS:]
    cell = min(int(p * CELLS), CELLS - 1)
    away, density = p - 0.5, UNIFORM + (1.0 - UNIFORM) * CELLS * cells[cell]
    for k in range(K):
        shares = state[SHARES + k * BETTORS : SHARES + (k + 1) * BETTORS]
        rate = JUMPS[k]
        growth = 0.0
        for m in range(BETTORS):
            paid = density if m == E else 1.0 + EPSILONS[m] * away
            shares[m] = ((1.0 - rate) * shares[m] + rate / BETTORS) * paid
            growth += shares[m]
        for m in range(BETTORS):
            shares[m] /= growth
        state[3 + k] += np.log(growth)
    for c in range(CELLS):
        cells[c] *= 1.0 - FORGETS
    cells[cell] += FORGETS
    state[0] += 1.0
    state[1] = log_mean_exp(state[3:SHARES])
    state[2] = max(state[2], state[1])


@compiled
def bet_each(memory, ps):  # type: ignore[no-untyped-def]
    """Bet on one p-value of each stream that has one; NaN: it has none.

    Parameters
    ----------
    memory : (d, WIDTH) float64, changed in place
    ps : (d,) float64
    """
    for j in range(ps.shape[0]):
        if ps[j] == ps[j]:
            bet(memory[j], ps[j])


@compiled
def run_cells(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """Bet on the p-values of one stream in order, whose memory is `state`; no constants."""
    for i in range(ps.shape[0]):
        bet(state, ps[i])
        path[i] = state[1]
