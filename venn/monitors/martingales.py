"""Test martingales: their capital grows only when p-values are not independent and uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from venn._compiled import martingales as compiled
from venn._compiled.martingales import EPSILONS, WIDTH, no_bets, run_cells
from venn.monitors.sums import OfNumbers
from venn.parameters import fraction, is_number, with_methods
from venn.prediction import Floats
from venn.saved import component, param

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
