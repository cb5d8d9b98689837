"""Martingales of p-values, alone and many beside each other, and bets that a mean is larger than a risk.

The memory of a stream among many is a row of numbers: its steps, the logarithm of its capital, the largest that this
has been; then ln S of each jumper, the capital shares of its bettors, and how often p-values lately fell into each cell
of [0, 1].
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

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
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
DROP = 40.0  # terms smaller than the largest one by this factor, in logs, are left out
FEW_TERMS = 60.0  # for L below this the series is short enough

EPSILONS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])

CELLS = 256  # number of cells of the plug-in density
CAUTION = 10.0  # number of uniform p-values with which plug-in densities start
CUT = 6.0  # the kernel ends at this many bandwidths
LEAST, MOST = 0.01, 1000.0  # bounds on the parameters of the fitted beta density

HUGE = 2.0**500
LOG_HUGE = np.log(HUGE)


@compiled
def log_power(kappa, log_kappa, kept, L):  # type: ignore[no-untyped-def]
    """Return ln of kappa^kept e^((1 - kappa) L)."""
    return kept * log_kappa + (1.0 - kappa) * L


@compiled
def count_power(state, p):  # type: ignore[no-untyped-def]
    """Count a p-value in the state of `run_power`."""
    if p >= TINY:
        state[2] += 1.0
        state[3] -= np.log(p)
    else:
        state[3] -= LOG_TINY
    state[0] += 1.0


@compiled
def run_power(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, number of p >= TINY, L = minus the sum of ln max(p, TINY). Constants: kappa, ln kappa."""
    for i in range(ps.shape[0]):
        count_power(state, ps[i])
        state[1] = log_power(constants[0], constants[1], state[2], state[3])
        path[i] = state[1]


@compiled
def stirling_rest(a):  # type: ignore[no-untyped-def]
    """Return ln Gamma(a) - ((a - 1/2) ln a - a + ln(2 pi) / 2)."""
    if a < 16.0:
        return lgamma(a) - ((a - 0.5) * np.log(a) - a + HALF_LOG_TWO_PI)
    b = 1.0 / (a * a)
    return (1.0 / 12.0 - b * (1.0 / 360.0 - b * (1.0 / 1260.0 - b / 1680.0))) / a


@compiled
def log_mixture(kept, L):  # type: ignore[no-untyped-def]
    """Return ln of the integral of k^kept e^((1 - k) L) over k from 0 to 1, for any L >= 0, in bounded time.

    With a = kept + 1 the integral is e^L L^-a gamma(a, L). There are three methods, all without cancellation:
    the series sum of L^m / (a (a + 1) ... (a + m)), all terms positive, where it is short;
    Gamma(a) for gamma(a, L) where L lies so far above a that they are equal, with Stirling's formula, so that
    large terms meet before they are rounded;
    between, where L is about a and the series would take some 8 sqrt(a) terms, Gauss-Legendre in -ln k
    over the peak.
    """
    a = kept + 1.0
    if 0.5 * a > L or L < FEW_TERMS:
        term = 1.0
        total = 1.0
        m = a
        while term > 1e-17 * total:
            m += 1.0
            term *= L / m
            total += term
        return np.log(total) - np.log(a)
    peak = 0.0
    at_peak = 0.0
    curvature = L
    slope = a - L
    if a < L:
        excess = (L - a) / a
        peak = np.log1p(excess)
        at_peak = a * (excess - peak)
        curvature = a
        slope = 0.0
        if at_peak > DROP:
            return at_peak - 0.5 * np.log(a) + HALF_LOG_TWO_PI + stirling_rest(a)
    # In s = -ln k = peak + r, r >= -peak, the logarithm of the integrand is concave: at the peak plus
    # curvature (1 - r - e^-r) - slope r, where r - 1 + e^-r >= r^2 / (2 + 2 r / 3) for r > 0.
    high = 2.0 * DROP / (slope + np.sqrt(slope * slope + 2.0 * curvature * DROP))
    high *= 1.0 + high / 3.0
    low = -min(peak, np.sqrt(2.0 * DROP / curvature))
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    total = 0.0
    for i in range(NODES.shape[0]):
        r = middle + half * NODES[i]
        total += WEIGHTS[i] * np.exp(curvature * (-r - np.expm1(-r)) - slope * r)
    return at_peak + np.log(half * total)


@compiled
def run_mixture(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State as for `run_power`. No constants."""
    for i in range(ps.shape[0]):
        count_power(state, ps[i])
        state[1] = log_mixture(state[2], state[3])
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
def log_awake(capital, powers):  # type: ignore[no-untyped-def]
    """Return ln(1 + the sum of capital HUGE^powers)."""
    top = 0.0
    for j in range(powers.shape[0]):
        top = max(top, powers[j])
    total = 0.0
    for j in range(powers.shape[0]):
        if powers[j] == top:
            total += capital[j]
        elif powers[j] == top - 1.0:
            total += capital[j] / HUGE
    return np.log1p(total) if top == 0.0 else top * LOG_HUGE + np.log(total)


@compiled
def run_sleeper(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, capital of each bettor in units of the sleeping capital, and its powers of HUGE.

    Constants: ln(1 - rate), amount given to each bettor per step in those units, cells g, factor of each bettor when
    p <= its threshold and when p > its threshold; bettors are ordered by threshold, g - 1 of each.

    In these units a bettor never falls below this amount, so nothing can vanish; capital beyond HUGE is counted in
    powers of it.
    """
    given = constants[1]
    g = int(constants[2])
    k = (g - 1) * (g - 1)
    below = constants[3 : 3 + k]
    above = constants[3 + k : 3 + 2 * k]
    capital = state[2 : 2 + k]
    powers = state[2 + k : 2 + 2 * k]
    for i in range(ps.shape[0]):
        p = ps[i]
        for t in range(1, g):
            under = p <= t / g
            for j in range((t - 1) * (g - 1), t * (g - 1)):
                c = capital[j] * (below[j] if under else above[j])
                if powers[j] == 0.0:
                    c += given
                elif c < 1.0:
                    c *= HUGE
                    powers[j] -= 1.0
                if c >= HUGE:
                    c /= HUGE
                    powers[j] += 1.0
                capital[j] = c
        state[0] += 1.0
        state[1] = state[0] * constants[0] + log_awake(capital, powers)
        path[i] = state[1]


@compiled
def fit_kernel(bandwidth, kernel):  # type: ignore[no-untyped-def]
    """Fill `kernel` (CELLS + 1,) with the weights of a Gaussian d cells away, up to CUT bandwidths.

    kernel[0] + 2 (kernel[1] + ...) = 1, so that it still sums to 1 when reflected at 0 and at 1.
    """
    reach = min(CELLS, int(np.ceil(CUT * bandwidth * CELLS)))
    width = bandwidth * CELLS
    kernel[:] = 0.0
    total = 0.0
    for d in range(reach + 1):
        kernel[d] = np.exp(-0.5 * (d / width) * (d / width))
        total += kernel[d] if d == 0 else 2.0 * kernel[d]
    for d in range(reach + 1):
        kernel[d] /= total


@compiled
def run_plug_in(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, steps since the bandwidth was chosen, the bandwidth, sum of cells, of their squares, p-values
    in each cell, the cells of the last `window` p-values in a ring, then the kernel of that bandwidth.

    Constants: least share of the uniform density, window (0: none).
    """
    window = int(constants[1])
    counts = state[6 : 6 + CELLS]
    ring = state[6 + CELLS : 6 + CELLS + window]
    kernel = state[6 + CELLS + window :]
    for i in range(ps.shape[0]):
        n = state[0]
        held = min(n, constants[1]) if window > 0 else n
        cell = min(int(ps[i] * CELLS), CELLS - 1)
        if held > 0.0:
            if state[2] * 16.0 >= held:
                spread = max(0.0, state[5] / held - (state[4] / held) * (state[4] / held))
                state[3] = max(1.06 * np.sqrt(spread) * held ** (-0.2), 1.0) / CELLS
                fit_kernel(state[3], kernel)
                state[2] = 0.0
            reach = min(CELLS, int(np.ceil(CUT * state[3] * CELLS)))
            density = counts[cell] * kernel[0]
            for d in range(1, reach + 1):
                left = cell - d
                left = left if left >= 0 else -1 - left
                right = cell + d
                right = right if right < CELLS else 2 * CELLS - 1 - right
                density += (counts[left] + counts[right]) * kernel[d]
            uniform = max(constants[0], CAUTION / (CAUTION + held))
            state[1] += np.log(uniform + (1.0 - uniform) * density * CELLS / held)
        if window > 0:
            place = int(n % window)
            if n >= window:
                oldest = int(ring[place])
                counts[oldest] -= 1.0
                state[4] -= oldest
                state[5] -= oldest * oldest
            ring[place] = cell
        counts[cell] += 1.0
        state[4] += cell
        state[5] += cell * cell
        state[2] += 1.0
        state[0] += 1.0
        path[i] = state[1]


@compiled
def log_beta(p, a, b):  # type: ignore[no-untyped-def]
    """Return ln of the beta density; within TINY of an end of [0, 1], ln of at most its mean there."""
    constant = lgamma(a + b) - lgamma(a) - lgamma(b)
    if p < TINY:
        return constant + (a - 1.0) * LOG_TINY - np.log(a) - max(0.0, b - 1.0) * 2.0 * TINY
    if 1.0 - p < TINY:
        return constant + (b - 1.0) * LOG_TINY - np.log(b) - max(0.0, a - 1.0) * 2.0 * TINY
    return constant + (a - 1.0) * np.log(p) + (b - 1.0) * np.log1p(-p)


@compiled
def run_beta(constants, state, ps, path):  # type: ignore[no-untyped-def]
    """State: n, log, sum of p, sum of p^2. Constants: share of the uniform density."""
    uniform = constants[0]
    for i in range(ps.shape[0]):
        p = ps[i]
        held = state[0] + CAUTION
        mean = (state[2] + CAUTION / 2.0) / held
        spread = (state[3] + CAUTION / 3.0) / held - mean * mean
        size = mean * (1.0 - mean) / spread - 1.0
        a = min(max(mean * size, LEAST), MOST)
        b = min(max((1.0 - mean) * size, LEAST), MOST)
        state[1] += np.log(uniform + (1.0 - uniform) * np.exp(log_beta(p, a, b)))
        state[2] += p
        state[3] += p * p
        state[0] += 1.0
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
