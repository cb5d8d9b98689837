"""Test martingales: their capital grows only when p-values are not independent and uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venn._compiled import martingales as compiled
from venn._compiled.martingales import CELLS, EPSILONS
from venn.monitors.betting import Bettor
from venn.monitors.betting import Martingale as Martingale
from venn.parameters import LARGEST, fraction, integer, is_number
from venn.prediction import Floats
from venn.saved import saved

FINEST = 4096  # grid of a Sleeper


@saved
class Power(Bettor):
    """The power martingale: f(p) = kappa p^(kappa - 1) at every step.

    It grows when p-values are too small, and fastest when their density is f. Below p = 1e-12 the bet is
    1e-12^(kappa - 1), which is the mean of f over [0, 1e-12]: so p = 0 is possible, and the mean of the bet is
    still exactly 1. (Betting f(1e-12) there instead would lose a little at every step.)

    Theorem: a test martingale, see `Bettor`. Memory: 4 floats.

    Parameters
    ----------
    kappa : float in (0, 1), default 0.5

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Nouretdinov & Gammerman (2003), "Testing exchangeability on-line".

    Examples
    --------
    >>> martingale = Power()
    >>> martingale.update(0.0625)
    >>> round(math.exp(martingale.log), 12)
    2.0
    """

    _run = staticmethod(compiled.run_power)

    def __init__(self, kappa: float = 0.5) -> None:
        self.kappa = fraction("kappa", kappa)
        super().__init__([self.kappa, math.log(self.kappa)], {"kept": 1, "minus_log": 1})


@saved
class SimpleMixture(Bettor):
    """The mean of all power martingales, kappa drawn uniformly from (0, 1).

    S = integral of kappa^m e^((1 - kappa) L) over kappa from 0 to 1, where m is the number of p-values not
    below 1e-12 and L = -sum of ln max(p, 1e-12). It is computed afresh at each step from m and L, by a
    series, by quadrature, or by Stirling's formula, whichever is shorter; the error of ln S is at most about 1e-12
    and the time does not grow with n.

    Theorem: a test martingale, see `Bettor`. Memory: 4 floats.

    References
    ----------
    Vovk, Nouretdinov & Gammerman (2003), "Testing exchangeability on-line".

    Examples
    --------
    >>> martingale = SimpleMixture()
    >>> martingale.update(1.0)
    >>> round(math.exp(martingale.log), 12)
    0.5
    """

    _run = staticmethod(compiled.run_mixture)

    def __init__(self) -> None:
        super().__init__([], {"kept": 1, "minus_log": 1})

    def _derive(self, memory: Floats) -> None:
        kept, minus_log = memory[2:].tolist()
        if min(kept, minus_log) < 0:  # the series would not end
            raise ValueError(f"state['kept'] and state['minus_log'] must be >= 0, got {kept} and {minus_log}")


@saved
class PlugIn(Bettor):
    """The plug-in martingale: f is a kernel density estimate from the earlier p-values.

    p-values are counted in 256 equal cells. The density is constant within cells: counts smoothed by a
    Gaussian kernel, cut off at 6 bandwidths and reflected at 0 and at 1, so that it integrates to 1; the
    bandwidth is 1.06 sd m^(-1/5) for m p-values in memory, at least one cell, and is chosen anew after m / 16 steps.
    It is mixed with the uniform density, which has the share max(`uniform`, 10 / (10 + m)).

    Theorem: a test martingale, see `Bettor`: f depends on earlier p-values only and integrates to 1.
    Memory: 519 floats, and `window` more. Without a window all p-values are remembered, which is best against a
    lasting departure; with one, a change after a long calm is learned as quickly as an early one.

    Parameters
    ----------
    uniform : float in (0, 1), default 0.05
        Least share of the uniform density: no step divides the capital by more than 1 / uniform.
    window : int >= 1 or None, default None
        Number of last p-values that the density is estimated from; None: all.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Fedorova, Gammerman, Nouretdinov & Vovk (2012), "Plug-in martingales for testing exchangeability on-line",
    where the density is estimated from all p-values at each step.

    Examples
    --------
    >>> martingale = PlugIn()
    >>> path = martingale.update_many([0.01] * 50)
    >>> bool(path[-1] > 100)
    True
    """

    _run = staticmethod(compiled.run_plug_in)

    def __init__(self, uniform: float = 0.05, window: int | None = None) -> None:
        self.uniform = fraction("uniform", uniform)
        self.window = None if window is None else integer("window", window, 1, LARGEST)
        sizes = {"since": 1, "bandwidth": 1, "sum": 1, "squares": 1, "counts": CELLS}
        if self.window is not None:
            sizes["ring"] = self.window
        super().__init__([self.uniform, self.window or 0], sizes, CELLS + 1)

    def _derive(self, memory: Floats) -> None:
        parts = self._parts(memory)
        cells, bandwidth = parts.get("ring", memory[:0]), parts["bandwidth"][0]
        if not ((cells >= 0) & (cells < CELLS)).all():
            raise ValueError(f"state['ring'] must be numbers of cells below {CELLS}, got {cells.tolist()}")
        if bandwidth > 0:
            compiled.fit_kernel(bandwidth, memory[-(CELLS + 1) :])


@saved
class BetaPlugIn(Bettor):
    """A plug-in martingale: f is the beta density with the mean and variance of the earlier p-values.

    Ten uniform p-values are assumed before the first. Both parameters are kept within [0.01, 1000], and the density
    is mixed with the uniform one. Within 1e-12 of an end of [0, 1] the beta density is replaced by its mean there,
    or by a bound just below it, so that p = 0 and p = 1 are possible.

    Theorem: a test martingale, see `Bettor`; with that bound f may integrate to less than 1, by no more
    than 2e-9 of its mass within 1e-12 of an end, which keeps all the guarantees. Memory: 4 floats.

    Parameters
    ----------
    uniform : float in (0, 1), default 0.05
        Share of the uniform density: no step divides the capital by more than 1 / uniform.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Fedorova, Gammerman, Nouretdinov & Vovk (2012), for plug-in martingales in general.

    Examples
    --------
    >>> martingale = BetaPlugIn()
    >>> path = martingale.update_many([0.01] * 50)
    >>> bool(path[-1] > 80)
    True
    """

    _run = staticmethod(compiled.run_beta)

    def __init__(self, uniform: float = 0.05) -> None:
        self.uniform = fraction("uniform", uniform)
        super().__init__([self.uniform], {"sum": 1, "squares": 1})


class Jumpers(Bettor):
    """Base of `SimpleJumper` and `CompositeJumper`: one simple jumper for each rate, and their mean."""

    _run = staticmethod(compiled.run_jumpers)

    def __init__(self, rates: Sequence[float]) -> None:
        super().__init__(rates, {"logs": len(rates), "shares": len(EPSILONS) * len(rates)})
        self._parts(self._memory)["shares"][:] = 1 / len(EPSILONS)


@saved
class SimpleJumper(Jumpers):
    """The simple jumper: five bettors that share their capital.

    The bets are 1 + e (p - 1/2), e = -1, -1/2, 0, 1/2, 1. The capital starts in equal shares; before each step
    every bettor gives away the share `jump` of its capital, in equal parts to all five. So it follows
    departures in either direction and changes of direction, but no step multiplies S by more than 1.5.

    Theorem: a test martingale, see `Bettor`. Memory: 8 floats.

    Parameters
    ----------
    jump : float in (0, 1], default 0.01

    Raises
    ------
    TypeError
        `jump` is no number.
    ValueError
        It is outside (0, 1].

    References
    ----------
    Vovk et al. (2021), "Retrain or not retrain: conformal test martingales for change-point detection".

    Examples
    --------
    >>> martingale = SimpleJumper()
    >>> martingale.update(0.0)
    >>> martingale.log
    0.0
    >>> martingale.update(0.0)
    >>> round(math.exp(martingale.log), 6)
    1.12375
    """

    def __init__(self, jump: float = 0.01) -> None:
        self.jump = _rate("jump", jump)
        super().__init__([self.jump])


@saved
class CompositeJumper(Jumpers):
    """The mean of simple jumpers with several jump rates.

    The rate 1 never bets: with it among k rates, S never falls below 1/k.

    Theorem: a test martingale, see `Bettor`. Memory: 2 floats, and 6 for each rate.

    Parameters
    ----------
    jumps : sequence of floats in (0, 1], default (0.0001, 0.001, 0.01, 0.1, 1)

    Raises
    ------
    TypeError, ValueError
        `jumps` is no sequence, is empty, or holds a number outside (0, 1].

    References
    ----------
    Vovk et al. (2021), "Retrain or not retrain: conformal test martingales for change-point detection".

    Examples
    --------
    >>> martingale = CompositeJumper()
    >>> path = martingale.update_many([0.01] * 50)
    >>> bool(path[-1] > 15)
    True
    """

    def __init__(self, jumps: Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1.0)) -> None:
        if isinstance(jumps, str | bytes) or not isinstance(jumps, Sequence | np.ndarray) or len(jumps) == 0:
            raise TypeError(f"jumps must be a sequence of numbers in (0, 1], at least one, got {jumps!r}")
        self.jumps = tuple(_rate("jumps", jump) for jump in jumps)
        super().__init__(self.jumps)


def _rate(name: str, value: Any) -> float:
    if not is_number(value):
        raise TypeError(f"{name} must be numbers in (0, 1], got {value!r}")
    if not 0 < value <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}")
    return float(value)


@saved
class Sleeper(Bettor):
    """The Sleeper/Stayer: its capital sleeps, and a little wakes at every step, in case a change begins just now.

    For thresholds a and levels b in {1/g, ..., (g-1)/g}, g = `grid`, there is a bettor (a, b) whose bet is b/a where
    p <= a and (1-b)/(1-a) where p > a: it expects the share b of p-values at or below a. All capital sleeps
    at first. At each step the bettors bet what they have; then the share `rate` of the sleeping capital wakes
    and is divided equally among all (g-1)^2. Capital that is awake stays awake, so memory does not grow:

        S_n = (1-rate)^n + sum over m < n of rate (1-rate)^m times the mean over (a, b) of the product of
              its bets at steps m + 2, ..., n,

    the mean, over bettors and over geometrically distributed times of waking, of what each has won since. So a
    change after a calm of m steps costs ln(1 / rate) + 2 ln(g-1) + m `rate` in ln S at most, instead of all that
    a bettor would have lost before it. The bettors with a = b do not bet: S never falls below 1 / (g-1).

    Theorem: a test martingale, see `Bettor`. Memory: 2 + 2 (g-1)^2 floats.

    Parameters
    ----------
    rate : float in (0, 1), default 0.001
    grid : int from 2 to 4096, default 10

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), chapter 9, the Sleeper/Stayer.

    Examples
    --------
    >>> martingale = Sleeper()
    >>> calm = martingale.update_many([0.1, 0.3, 0.5, 0.7, 0.9] * 100)
    >>> bool(martingale.update_many([0.05] * 30)[-1] > 20)
    True
    """

    _run = staticmethod(compiled.run_sleeper)

    def __init__(self, rate: float = 0.001, grid: int = 10) -> None:
        self.rate = fraction("rate", rate)
        self.grid = integer("grid", grid, 2)
        if self.grid > FINEST:
            raise ValueError(f"grid must be an integer from 2 to {FINEST}, got {grid!r}: it has grid^2 bettors")
        k = (self.grid - 1) ** 2
        a, b = (grid.ravel() for grid in np.mgrid[1 : self.grid, 1 : self.grid] / self.grid)
        kept = 1 - self.rate
        constants = [[math.log1p(-self.rate), self.rate / kept / k, self.grid], b / a / kept, (1 - b) / (1 - a) / kept]
        super().__init__(np.concatenate(constants), {"capital": k, "powers": k})
