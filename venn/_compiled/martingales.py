"""Martingales of p-values, alone and many beside each other, and bets that a mean is larger than a risk.

The memory of a stream among many is a row of numbers: its steps, the logarithm of its capital, the largest that this
has been; then ln S of each jumper, the capital shares of its bettors, and how often p-values lately fell into each cell
of [0, 1].
"""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np
from numpy.typing import NDArray

from venn._compiled.jit import compiled
from venn._compiled.ranks import beyond, reaching
from venn.prediction import Floats

# ---------------------------------------------------------------------------------------------------------- martingales
# Betting on p-values: one step after another, all capital in logs.
#
# Every loop has the form run(constants, state, ps, path): it updates `state` by the p-values and writes the logarithm
# of the capital after each to `path`. state[0] is the number of p-values seen, state[1] that logarithm. A single
# p-value is an array of length 1, so single steps and blocks use the same code.

TINY = 1e-12  # this close to where a bet is infinite, the bet pays its mean over the interval of this length
LOG_TINY = np.log(TINY)

EPSILONS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


@compiled
def run_power(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, number of p >= TINY, L = minus the sum of ln max(p, TINY). Constants: kappa, ln kappa."""
    for i in range(ps.shape[0]):
        if ps[i] >= TINY:
            state[2] += 1.0
            state[3] -= np.log(ps[i])
        else:
            state[3] -= LOG_TINY
        state[0] += 1.0
        state[1] = state[2] * constants[1] + (1.0 - constants[0]) * state[3]
        path[i] = state[1]


@compiled
def log_mean_exp(logs):  # type: ignore[no-untyped-def]
    """Return ln of the mean of e^logs."""
    top = logs[0]
    for one in logs:
        top = max(top, one)
    total = 0.0
    for one in logs:
        total += np.exp(one - top)
    return top + np.log(total / logs.shape[0])


@compiled
def jump(constants, state, p):  # type: ignore[no-untyped-def]
    """Bet on one p-value; see `run_jumpers`.

    After jumping every share is at least rate / 5, so none is ever lost.
    """
    k = constants.shape[0]
    e = EPSILONS.shape[0]
    logs = state[2 : 2 + k]
    away = p - 0.5
    for j in range(k):
        shares = state[2 + k + j * e : 2 + k + (j + 1) * e]
        rate = constants[j]
        growth = 0.0
        for m in range(e):
            shares[m] = ((1.0 - rate) * shares[m] + rate / e) * (1.0 + EPSILONS[m] * away)
            growth += shares[m]
        for m in range(e):
            shares[m] /= growth
        logs[j] += np.log(growth)
    state[0] += 1.0
    state[1] = log_mean_exp(logs)


@compiled
def run_jumpers(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, ln S of each jumper, then its capital shares, which sum to 1. Constants: the jump rates."""
    for i in range(ps.shape[0]):
        jump(constants, state, ps[i])
        path[i] = state[1]


@compiled
def cusum_after(log, step):  # type: ignore[no-untyped-def]
    """Return ln gamma_n; `log` is ln gamma_{n-1}, not above 0 at the start, `step` is ln(S_n / S_{n-1})."""
    return max(log, 0.0) + step


@compiled
def shiryaev_roberts_after(log, step):  # type: ignore[no-untyped-def]
    """Return ln R_n; `log` is ln R_{n-1}, minus infinity at the start, `step` is ln(S_n / S_{n-1})."""
    one_more = log + np.log1p(np.exp(-log)) if log > 0.0 else np.log1p(np.exp(log))
    return one_more + step


@compiled
def scan(by_sum, log, before, path, threshold, out):  # type: ignore[no-untyped-def]
    """Follow the statistic along `path` of ln S, `before` at its start, until it reaches the threshold, or is 0.

    Return the number of steps done; the last one rang if out[done - 1] >= threshold.
    """
    for i in range(path.shape[0]):
        step = path[i] - before
        before = path[i]
        log = shiryaev_roberts_after(log, step) if by_sum else cusum_after(log, step)
        out[i] = log
        if log >= threshold or log == -np.inf:
            return i + 1
    return path.shape[0]


# --------------------------------------------------------------------------------------------------------------- naming
# Many streams of p-values beside each other: ranks of columns among their own past, and a bet on each stream.
#
# The memory of a stream is a row of numbers: its steps, the logarithm of its capital, the largest that this has been;
# then ln S of each jumper, the capital shares of its bettors, and how often p-values lately fell into each cell of
# [0, 1].

JUMPS = np.array([0.0001, 0.001, 0.01, 0.1])  # and one jumper that never bets: no more than 4/5 is ever lost
COARSE = 16
FORGETS = 0.05  # of what a cell has, at each step
UNIFORM = 0.1  # least density that is bet
K, E = len(JUMPS), len(EPSILONS)
BETTORS = E + 1  # those of a simple jumper, and one on the cells
SHARES = 3 + K + 1
OWN_CELLS = SHARES + K * BETTORS
WIDTH = OWN_CELLS + COARSE


def no_bets(streams: int) -> NDArray[np.float64]:
    """Return the memories of so many streams before the first step."""
    memory = np.zeros((streams, WIDTH))
    memory[:, SHARES:OWN_CELLS] = 1 / BETTORS
    memory[:, OWN_CELLS:] = 1 / COARSE
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
    late = np.empty((len(x), 1))
    rank_late(held, n, late, 0, x, tau, ps)
    join_late(held, n, late, 1)


@compiled
def rank_late(held, n, late, m, x, tau, ps):  # type: ignore[no-untyped-def]
    """Do the same among n numbers and m later ones, ascending in `late`, where each is kept: it has room for it."""
    for j in range(len(x)):
        row, new = held[j], late[j]
        value = x[j] if x[j] == x[j] else np.inf
        first, place = reaching(row, 0, n, value), reaching(new, 0, m, value)
        last = beyond(row, first, n, value) + beyond(new, place, m, value)
        ps[j] = (n + m - last + tau * (last - first - place + 1)) / (n + m + 1)
        for later in range(m, place, -1):
            new[later] = new[later - 1]
        new[place] = value


@compiled
def join_late(held, n, late, m):  # type: ignore[no-untyped-def]
    """Put m numbers of each row of `late` among the n in `held`: each of these moves once, not once for each number."""
    for j in range(len(late)):
        row, new, end = held[j], late[j], n
        for q in range(m - 1, -1, -1):
            place = beyond(row, 0, end, new[q])
            for i in range(end - 1, place - 1, -1):
                row[i + q + 1] = row[i]
            row[place + q] = new[q]
            end = place


@compiled
def bet(state, p):  # type: ignore[no-untyped-def]
    """Bet on one p-value of one stream; `state` is its memory, changed in place."""
    cells = state[OWN_CELLS:]
    cell = min(int(p * COARSE), COARSE - 1)
    away, density = p - 0.5, UNIFORM + (1.0 - UNIFORM) * COARSE * cells[cell]
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
    for c in range(COARSE):
        cells[c] *= 1.0 - FORGETS
    cells[cell] += FORGETS
    state[0] += 1.0
    state[1] = log_mean_exp(state[3:SHARES])
    state[2] = max(state[2], state[1])


@compiled
def bet_each(memory, ps):  # type: ignore[no-untyped-def]
    """Bet on one p-value of each stream that has one, NaN: it has none; return whether a largest capital has grown.

    Parameters
    ----------
    memory : (d, WIDTH) float64, changed in place
    ps : (d,) float64
    """
    grown = False
    for j in range(ps.shape[0]):
        if ps[j] == ps[j]:
            most = memory[j, 2]
            bet(memory[j], ps[j])
            grown |= memory[j, 2] > most
    return grown


@compiled
def run_cells(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """Bet on the p-values of one stream in order, whose memory is `state`; no constants."""
    for i in range(ps.shape[0]):
        bet(state, ps[i])
        path[i] = state[1]


# ---------------------------------------------------------------------------------------------------------------- floor
# Bets that a mean is larger than a risk.

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
