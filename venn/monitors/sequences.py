"""Confidence sequences: bounds for the mean of [0, 1] variables that hold at all times at once.

For instance for the accuracy of a model (x = 1 if it was right) or its mean Brier loss. You may look at them
after every step, and stop at any time.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from venn._compiled import bounds as compiled
from venn.monitors.running import OfNumbers
from venn.parameters import flag, fraction, integer
from venn.prediction import Floats
from venn.saved import component, param


class _ConfidenceSequence(OfNumbers):
    """Bounds for a mean of [0, 1] variables; a subclass gives the loop."""

    _width = (2,)
    _named, _truth = ("x", "x"), True

    level: float

    @property
    def size(self) -> int:
        """Steps, lower, upper, total, squares; after these what a subclass has."""
        return 5

    @property
    def constants(self) -> Any:
        """ln(2 / level): half the level for each side."""
        return (log(2 / self.level),)

    def begin(self) -> Floats:
        """Return the memory before the first step: bounds 0 and 1."""
        memory = np.zeros(self.size)
        memory[2] = 1.0
        return memory

    @property
    def lower(self) -> float:
        """Lower bound now; 0 before the first number."""
        return self._memory.item(1)

    @property
    def upper(self) -> float:
        """Upper bound now; 1 before the first number."""
        return self._memory.item(2)


@component
class StitchedBound(_ConfidenceSequence):
    """Bounds for the mean of [0, 1] variables whose conditional means may change, at all times at once.

    Theorem. Let m_n = E[x_n | past]. With probability at least 1 - level, (m_1 + ... + m_N) / N lies in
    [lower, upper] for all N at once. Nothing else is assumed, so it holds for the accuracy of a model that continues
    to learn. As that average moves, the bounds are not intersected over time.

    The half width is sqrt(v ln ln v) / N in order of magnitude, stitched from bounds over epochs that double.

    Parameters
    ----------
    level : float in (0, 1), default 0.05
        Probability that the mean is ever outside, both sides together.
    empirical : bool, default False
        False: v = N / 4, the largest it can be. True: v = sum (x_n - mean of those before)^2, as observed, at the
        price of a larger constant (an empirical Bernstein bound): narrower in the long run where the variance is
        far from 1/4, as for an accuracy near 1.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or a number is not in [0, 1]; the bounds are unchanged.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences",
    theorems 1 and 4, with s = 1.4, eta = 2 and the boundary constant below v = 1.

    Examples
    --------
    >>> bound = StitchedBound(empirical=True)
    >>> _ = bound.update_many(np.tile([1, 1, 1, 0, 1, 1, 1, 1], 500))
    >>> 0.84 < bound.lower < 0.875 < bound.upper < 0.91
    True
    """

    _run = staticmethod(compiled.stitched_steps)

    level: float = param(fraction, default=0.05)
    empirical: bool = param(flag, default=False)

    @property
    def constants(self) -> Any:
        """ln(2 / level), and whether v is as observed."""
        return *super().constants, float(self.empirical)

    @property
    def statement(self) -> str:
        """One sentence: the theorem and its condition."""
        return (
            "Theorem: the average of the conditional means up to now lies between the bounds at all steps at once "
            f"with probability at least {1 - self.level:g}."
        )


class _OfConstantMean(_ConfidenceSequence):
    """Bounds for a mean that does not change."""

    @property
    def statement(self) -> str:
        """One sentence: the theorem and its condition."""
        return (
            "Theorem: a conditional mean that is the same at every step lies between the bounds at all steps at once "
            f"with probability at least {1 - self.level:g}."
        )


@component
class EmpiricalBernstein(_OfConstantMean):
    """Bounds for the constant mean of [0, 1] variables, as narrow as their variance allows, at all times at once.

    Theorem. If E[x_n | past] is the same number at every step, it lies in [lower, upper] at all steps at once
    with probability at least 1 - level. (If it changes, the bounds are for an average of the conditional means,
    weighted by the bets.) They are not intersected over time; intersecting them keeps the theorem.

    Parameters
    ----------
    level : float in (0, 1), default 0.05
        Probability that the mean is ever outside, both sides together.

    Raises
    ------
    TypeError, ValueError
        `level` is not as described, or a number is not in [0, 1]; the bounds are unchanged.

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", theorem 2: the
    predictable plug-in with bets of at most 1/2.

    Examples
    --------
    >>> bound = EmpiricalBernstein()
    >>> _ = bound.update_many(np.tile([1, 1, 1, 0, 1, 1, 1, 1], 500))
    >>> 0.84 < bound.lower < 0.875 < bound.upper < 0.91
    True
    """

    _run = staticmethod(compiled.bernstein_steps)

    level: float = param(fraction, default=0.05)

    @property
    def size(self) -> int:
        """Those five, bets, won and lost."""
        return 8


@component
class BettingBound(_OfConstantMean):
    """Bounds for the constant mean of [0, 1] variables: the candidates that betting has not refuted.

    Theorem. If E[x_n | past] is the same number at every step, it lies in [lower, upper] at all steps at once
    with probability at least 1 - level. The bounds are not intersected over time; intersecting keeps the theorem.

    Against each candidate m two gamblers bet with capital ½ each, one that the mean is larger and one that it is
    smaller; m is refused when either reaches 1 / level. The capital of the first falls with m and that of the
    second rises, so the remaining candidates are an interval, and a grid of candidates encloses it: `lower` is the
    largest refused candidate from below, `upper` the smallest from above (0 and 1 where none is). The bounds are
    therefore valid whatever the grid, and each is at most one cell wider than with all real candidates. Cells are
    cut at m = sin^2(pi k / (2 cells)): their width, about pi sqrt(m (1 - m)) / cells, shrinks near 0 and 1 as
    the bounds do. Memory is constant, a few numbers for each candidate.

    If the conditional mean changes, every candidate may be refused; `lower` may then exceed `upper`.

    Parameters
    ----------
    level : float in (0, 1), default 0.05
        Probability that the mean is ever outside, both sides together.
    cells : int >= 2, default 1000
        Cells of the grid; time and memory are proportional to it.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or a number is not in [0, 1]; the bounds are unchanged.

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", theorem 3: the
    hedged capital process with the bets of their empirical Bernstein bound, cut at 1 / (2 m), 1 / (2 (1 - m)).

    Examples
    --------
    >>> bound = BettingBound()
    >>> _ = bound.update_many(np.tile([1, 1, 1, 0, 1, 1, 1, 1], 500))
    >>> 0.84 < bound.lower < 0.875 < bound.upper < 0.91
    True
    """

    _run = staticmethod(compiled.betting_steps)

    level: float = param(fraction, default=0.05)
    cells: int = param(integer, 2, default=1000, sized=True)

    @property
    def constants(self) -> Any:
        """ln(2 / level), and of each candidate itself and the caps of the bets against it."""
        means = np.sin(np.pi * np.arange(1, self.cells) / (2 * self.cells)) ** 2
        return np.concatenate([super().constants, means, compiled.CAP / means, compiled.CAP / (1 - means)])

    @property
    def size(self) -> int:
        """Those five, and four numbers for each candidate."""
        return 5 + 4 * (self.cells - 1)

    def begin(self) -> Floats:
        """Return the memory before the first step: every gambler has a capital of 1."""
        memory = super().begin()
        memory[5 : 5 + 2 * (self.cells - 1)] = 1.0
        return memory
