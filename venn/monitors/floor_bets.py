"""Bets that the mean of numbers, such as losses, is larger than a floor allows."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np

from venn._compiled.martingales import NOTHING, floor_steps
from venn.monitors.bounds import BETS
from venn.monitors.sums import Sums
from venn.parameters import flag, fraction, is_number, probability
from venn.prediction import Floats
from venn.saved import component, param

TOP = 0.9  # largest share of the capital that one step may lose


@component
class FloorBets(Sums):
    """Bets that the mean of numbers is larger than a risk r: their capital K, and their Shiryaev-Roberts sum R.

    K_n = the mean over bets b of prod (1 + b (z - r)) over steps 1 to n; R_n = the sum over m < n of the same over
    steps m + 1 to n: for each moment at which z may have become larger, one who began to bet then. Of a loss z in
    [0, 1] the bets are 1/r times 1/64, ..., 1/2: small ones find small departures, large ones find departures soon.

    Theorem. If E[z_n | past] <= r at every step, K is a nonnegative supermartingale from 1, so it ever reaches 1/a with
    probability at most a (Ville), and R_n - n is a supermartingale from 0, so R reaches a threshold t after t steps or
    more on average.

    Labels by lot: a label is asked for with chance c. If z is the loss over c, or 0 where the label was not asked for,
    it has the mean of the loss, and the bets are the same, and smaller ones. `guessed`: z = f + (loss - f) / c, or f,
    with a predicted loss f; it may lie 1/c - 1 below 0, and the bets are 0.9 / (r + 1/c - 1) times 1/64, ..., 1.

    Parameters
    ----------
    risk : float in (0, 1)
    chance : float in (0, 1], default 1
    guessed : bool, default False

    Attributes
    ----------
    log, log_sum : float
        ln K, 0 at the start; ln R.
    lowest, highest : float
        Between which the numbers lie.
    """

    _run = staticmethod(floor_steps)
    _width = (2,)

    risk: float = param(fraction)
    chance: float = param(probability, default=1.0)
    guessed: bool = param(flag, default=False)

    @property
    def bets(self) -> tuple[float, ...]:
        """The bets, ascending."""
        if self.guessed:
            top = TOP / (self.risk + 1 / self.chance - 1)
            return (*(top * bet for bet in BETS), top)
        more = ceil(log2(1 / self.chance))
        return (*(BETS[0] / 2**k / self.risk for k in range(more, 0, -1)), *(bet / self.risk for bet in BETS))

    def derive(self) -> None:
        """Find the range of the numbers."""
        self.highest = 1 / self.chance
        self.lowest = 1 - self.highest if self.guessed else 0.0
        super().derive()

    @property
    def constants(self) -> Any:
        """The risk and the bets."""
        return self.risk, *self.bets

    @property
    def size(self) -> int:
        """Steps, ln K, ln R; of each bet both logarithms."""
        return 3 + 2 * len(self.bets)

    def begin(self) -> Floats:
        """Return the memory before the first step: every sum is empty."""
        memory = np.zeros(self.size)
        memory[2], memory[3 + len(self.bets) :] = NOTHING, NOTHING
        return memory

    def forget(self) -> None:
        """Reset the Shiryaev-Roberts sum."""
        fresh = self.begin()
        self._memory[2], self._memory[3 + len(self.bets) :] = fresh[2], fresh[3 + len(self.bets) :]

    @property
    def log(self) -> float:
        """ln K; 0 at the start."""
        return self._memory.item(1)

    @property
    def log_sum(self) -> float:
        """ln R; -1e308 at the start."""
        return self._memory.item(2)

    def update(self, z: float) -> None:
        """Bet on one number.

        Raises
        ------
        TypeError, ValueError
            It is not a number in the range; nothing changes.
        """
        if not is_number(z):
            raise TypeError(f"z must be a number, got {z!r}")
        if not self.lowest <= z <= self.highest:
            raise ValueError(f"z must lie in [{self.lowest:g}, {self.highest:g}], got {z!r}")
        self._one[0] = z
        self._run(self._constants, self._memory, self._one, self._out)

    def update_many(self, zs: Any) -> Floats:
        """Bet on (m,) numbers in order; return (m, 2): ln K and ln R after each."""
        clean = np.ascontiguousarray(zs, np.float64)
        if clean.ndim != 1 or not ((clean >= self.lowest) & (clean <= self.highest)).all():
            raise ValueError(f"zs must be a 1-D array of numbers in [{self.lowest:g}, {self.highest:g}], got {zs!r}")
        return self._many(clean)
