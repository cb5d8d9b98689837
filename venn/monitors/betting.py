"""The base of test martingales: checked p-values, a compiled bet."""

from __future__ import annotations

from typing import Any, Protocol, Self

from venn.monitors.running import OfNumbers
from venn.parameters import with_methods
from venn.prediction import Floats


class Martingale(Protocol):
    """What an alarm needs from a martingale: any object with these methods will do."""

    @property
    def n(self) -> int:
        """Number of p-values seen."""

    @property
    def log(self) -> float:
        """ln S_n; 0 at the start, minus infinity once all is lost; never NaN or infinity."""

    def update(self, p: float) -> None:
        """Bet on one p-value."""

    def update_many(self, ps: Any) -> Floats:
        """Bet on (m,) p-values in order; return ln S after each."""

    def fresh(self) -> Self:
        """Return a martingale with the same parameters that has seen nothing."""


def pattern(name: str, value: Any) -> Martingale:
    """Return a martingale that has seen nothing, this one or a fresh one; or say what it must be."""
    methods, wanted = ("update", "update_many", "fresh"), "a martingale object, such as SimpleJumper()"
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
