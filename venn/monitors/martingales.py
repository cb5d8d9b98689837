"""Test martingales: their capital grows only when p-values are not independent and uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from venn._compiled import martingales as compiled
from venn._compiled.martingales import CELLS, EPSILONS, WIDTH, no_bets, run_cells
from venn.monitors.sums import OfNumbers, restored_memory
from venn.parameters import LARGEST_INTEGER, fraction, integer, is_number, optional, with_methods
from venn.prediction import Floats
from venn.saved import component, own, param, restored_codes, state

# -------------------------------------------------------------------------------------------------------------- betting
# The base of test martingales: checked p-values, a compiled bet.


class Martingale(Protocol):
    """What an alarm needs from a martingale: any object with these methods will do."""

    @property
    def n(self) -> int:
        """Number of p-values seen."""

    @property
    def log(self) -> float:
        """ln S_n; 0 at the start, minus infinity once all is lost; never NaN or infinity."""

    def update_many(self, ps: Any) -> Floats:
        """Bet on (m,) p-values in order; return ln S after each."""

    def fresh(self) -> Self:
        """Return a martingale with the same parameters that has seen nothing."""


def pattern(name: str, value: Any) -> Martingale:
    """Return a martingale that has seen nothing, this one or a fresh one; or say what it must be."""
    methods, wanted = ("update_many", "fresh"), "a martingale object, such as SimpleJumper()"
    given: Martingale = with_methods(name, value, wanted, *methods, has=["n", "log"])
    return given.fresh() if given.n else given


class Bettor(OfNumbers):
    """Base of the martingales: a compiled bet and its state, a fixed number of floats.

    The capital S starts at 1 and is multiplied by f(p) at each p-value. The bet f depends only on earlier p-values, is
    not negative and has mean 1 over [0, 1].

    Theorem: if p_1, p_2, ... are independent and uniform on [0, 1], as smoothed conformal p-values of
    exchangeable data are, S is a martingale: E S_n = 1 for every n, and S ever reaches 1/a with probability at
    most a (Ville). How fast S grows otherwise is not a theorem, and depends on the martingale.
    """

    @property
    def log(self) -> float:
        """ln S_n, the natural logarithm of the capital; 0 at the start."""
        return self._memory.item(1)

    @property
    def arrays(self) -> tuple[Floats, Floats]:
        """What another compiled loop needs to bet: the constants, and the memory, which it changes."""
        return self._constants, self._memory


# ---------------------------------------------------------------------------------------------------------- martingales

FINEST = 4096  # grid of a Sleeper


def _rate(name: str, value: Any) -> float:
    """Return a number in (0, 1], or say what it must be."""
    if not is_number(value):
        raise TypeError(f"{name} must be numbers in (0, 1], got {value!r}")
    if not 0 < value <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}")
    return float(value)


def _rates(name: str, values: Any) -> tuple[float, ...]:
    """Return at least one number in (0, 1], or say what they must be."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise TypeError(f"{name} must be a sequence of numbers in (0, 1], at least one, got {values!r}")
    return tuple(_rate(name, value) for value in values)


@component
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

    size = 4  # steps, ln S, how many p-values are not below 1e-12, minus the sum of their logarithms

    kappa: float = param(fraction, default=0.5)

    @property
    def constants(self) -> Any:
        """kappa and its logarithm."""
        return self.kappa, math.log(self.kappa)


def _restored_sums(name: str, memory: Any, size: int) -> Floats:
    """Return the memory of a `SimpleMixture` in a state: below 0 its series would not end."""
    found = restored_memory(name, memory, size)
    if not (found[2:] >= 0).all():
        raise ValueError(f"{name} must have no sums below 0, got {found[2:].tolist()}")
    return found


@component
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

    size = 4  # as of `Power`

    _memory: Floats = state(_restored_sums, own(lambda one: one.size), start=own(lambda one: one.begin()))


def _restored_cells(name: str, memory: Any, size: int) -> Floats:
    """Return the memory of a `PlugIn` in a state: those of its window are numbers of cells."""
    cells = restored_memory(name, memory, size)[6 + CELLS : -(CELLS + 1)]
    restored_codes(f"window of {name}", cells, cells.shape, 0, CELLS, np.float64)
    return memory


@component
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

    uniform: float = param(fraction, default=0.05)
    window: int | None = param(optional, integer, 1, LARGEST_INTEGER, default=None, sized=True)

    _memory: Floats = state(_restored_cells, own(lambda one: one.size), start=own(lambda one: one.begin()))

    @property
    def constants(self) -> Any:
        """The share and the window."""
        return self.uniform, self.window or 0

    @property
    def size(self) -> int:
        """Steps, ln S, since, bandwidth, sum, squares; counts; the cells of the window; the kernel."""
        return 6 + CELLS + (self.window or 0) + CELLS + 1


@component
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

    size = 4  # steps, ln S, sum, squares

    uniform: float = param(fraction, default=0.05)

    @property
    def constants(self) -> Any:
        """The share."""
        return (self.uniform,)


class Jumpers(Bettor):
    """Base of `SimpleJumper` and `CompositeJumper`: one simple jumper for each rate, and their mean."""

    _run = staticmethod(compiled.run_jumpers)

    @property
    def size(self) -> int:
        """Steps, ln S; of each rate the logarithm of its capital, and the shares of its bettors."""
        return 2 + (1 + len(EPSILONS)) * len(self.constants)

    def begin(self) -> Floats:
        """Return the memory before the first step: equal shares."""
        memory = np.zeros(self.size)
        memory[2 + len(self.constants) :] = 1 / len(EPSILONS)
        return memory


@component
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

    jump: float = param(_rate, default=0.01)

    @property
    def constants(self) -> Any:
        """The rate."""
        return (self.jump,)


@component
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

    jumps: Sequence[float] = param(_rates, default=(0.0001, 0.001, 0.01, 0.1, 1.0))

    @property
    def constants(self) -> Any:
        """The rates."""
        return self.jumps


@component
class CellJumper(Bettor):
    """Jumpers whose bettors also bet on where p-values lately fell: it sees one value that comes again and again.

    The jumpers are those of `CompositeJumper`. Each has one bettor more: its bet is the density of the latest p-values
    over 16 cells of [0, 1], forgotten by a twentieth at each step, nine tenths of it, and one tenth uniform. It suits
    p-values of labels, which stay near each other where one label comes more often.

    Theorem: a test martingale, see `Bettor`; S never falls below 1/5. Memory: 48 floats.

    Examples
    --------
    >>> cells, composite = CellJumper(), CompositeJumper()
    >>> bool(cells.update_many([0.5] * 50)[-1] > 20 > composite.update_many([0.5] * 50)[-1])
    True
    """

    _run = staticmethod(run_cells)

    @property
    def constants(self) -> Any:
        """None."""
        return ()

    @property
    def size(self) -> int:
        """Floats of the memory, see `venn._compiled.martingales`."""
        return WIDTH

    def begin(self) -> Floats:
        """Return the memory before the first step: equal shares, equal cells."""
        return no_bets(1)[0]


def _fine(name: str, grid: Any) -> int:
    """Return the size of a grid, or say what it must be."""
    found = integer(name, grid, 2)
    if found > FINEST:
        raise ValueError(f"{name} must be an integer from 2 to {FINEST}, got {grid!r}: it has grid^2 bettors")
    return found


@component
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

    rate: float = param(fraction, default=0.001)
    grid: int = param(_fine, default=10, sized=True)

    @property
    def constants(self) -> Any:
        """What falls asleep and wakes, and the two bets of each bettor."""
        k, kept = (self.grid - 1) ** 2, 1 - self.rate
        a, b = (grid.ravel() for grid in np.mgrid[1 : self.grid, 1 : self.grid] / self.grid)
        first = [math.log1p(-self.rate), self.rate / kept / k, self.grid]
        return np.concatenate([first, b / a / kept, (1 - b) / (1 - a) / kept])

    @property
    def size(self) -> int:
        """Steps, ln S; of each bettor the capital and its power."""
        return 2 + 2 * (self.grid - 1) ** 2
