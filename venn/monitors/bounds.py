"""Bounds that hold at all times at once: on the claims of predictions, and on means of [0, 1] variables."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any

import numpy as np
from scipy.special import bdtr

from venn._compiled import bounds as compiled
from venn.monitors.sums import OfNumbers, Sums, number, numbers
from venn.parameters import flag, fraction, integer
from venn.prediction import Floats
from venn.saved import component, param

# --------------------------------------------------------------------------------------------------------------- bounds
# Bounds on the claims of predictions: a band for deviations of realised rows, evidence against point forecasts.

BETS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the forward e-process, mixed with equal weights


def binomial_limits(share: float, n: int, p: float) -> tuple[int, int]:
    """Return the counts between which a binomial number lies with this probability, half of the rest on each side.

    They are quantiles: the number lies below the first with probability less than (1 - share) / 2, and above the second
    with at most that.

    Parameters
    ----------
    share : float from 0.5 to 1 - 1e-9
    n : int >= 1
        Number of trials.
    p : float in (0, 1)
        Probability of each.

    Examples
    --------
    >>> binomial_limits(0.95, 100, 0.05)
    (1, 10)
    """
    # Beyond these counts lies less than 1e-12, by Bernstein's inequality; `scipy.stats`, which has the quantiles too,
    # takes half a second to import.
    far = ceil(8 * sqrt(n * p * (1 - p))) + 20
    least = max(0, int(n * p) - far)
    below = bdtr(np.arange(least, min(n, ceil(n * p) + far) + 1.0), n, p)
    low, high = np.searchsorted(below, [(1 - share) / 2, (1 + share) / 2])
    return least + int(low), least + int(high)


def deviation_radius(n: int, delta: float = 0.05) -> float:
    """Return a bound that the sum of n realised-row deviations reaches in size with probability at most `delta`.

    sqrt(n ln(2 / delta) / 2), by Azuma and Hoeffding. A theorem under exchangeability for one n that is fixed
    beforehand; for all n at once see `DeviationBand`, which also defines a deviation.

    Parameters
    ----------
    n : int >= 1
    delta : float in (0, 1)

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> round(deviation_radius(100), 2)
    13.58
    """
    return sqrt(integer("n", n, 1) * log(2 / fraction("delta", delta)) / 2)


@component
class DeviationBand(OfNumbers):
    """A band that the sum of realised-row deviations ever leaves with probability at most `delta`.

    The deviation of step n for an event, such as "the label is class k", is d = 1{event} - P[y, event]: 1 if it
    happened, else 0, minus its probability in the row of the true label. Instead of class k one may use the most
    probable class of that row, y* = argmax P[y, .].

    Theorem. Let the examples be exchangeable and the predictor a transductive Venn predictor. Look back in time:
    given everything later, the bag and the contents of the new example's category, each deviation has mean 0 and
    range 1. So for one N the sum of the first N reaches `deviation_radius(N)` with probability at most delta
    (Azuma, Hoeffding). A union over N with shares delta / (N (N + 1)) gives |sum| < t_N for all N at once, where
    t_N = sqrt(N ln(2 N (N + 1) / delta) / 2). Forwards in time the sums are not a martingale: a bet on the next
    deviation may win for ever (see `ForwardEProcess`).

    With d = 1{event} - upper or d = lower - 1{event}, bounds over all rows, only the upper side of the band is a
    theorem, total < radius. For the class predicted from all rows the band is a heuristic: that class depends on the
    unknown row, unless the prediction guarantees the "predicted label".

    Parameters
    ----------
    delta : float in (0, 1), default 0.05

    Attributes
    ----------
    total : float
        Sum of the deviations.
    radius : float
        t_N; 0 before the first.
    outside : bool
        True when the total is outside the band now.

    Raises
    ------
    TypeError, ValueError
        `delta` is not in (0, 1), or a deviation is not a number in [-1, 1]; the band is unchanged.

    Examples
    --------
    >>> band = DeviationBand()
    >>> for hit, probability in [(1, 0.75), (0, 0.5), (1, 0.75)]:
    ...     band.update(hit - probability)
    >>> band.total, round(band.radius, 2), band.outside
    (0.0, 3.04, False)
    """

    _run = staticmethod(compiled.deviation_steps)
    _width = (2,)
    _named, _least = ("d", "d"), -1.0
    size = 3  # steps, total, radius

    delta: float = param(fraction, default=0.05)

    @property
    def constants(self) -> Any:
        """ln(1 / delta)."""
        return (-log(self.delta),)

    @property
    def statement(self) -> str:
        """One sentence: the theorem and its condition."""
        return (
            "Theorem: when the examples are exchangeable, the sum of realised-row deviations of a Venn predictor that "
            "is transductive, or exact online, and forgets nothing leaves the band at any step with probability at "
            f"most {self.delta:g}."
        )

    @property
    def total(self) -> float:
        """Sum of the deviations."""
        return self._memory.item(1)

    @property
    def radius(self) -> float:
        """Half the width of the band, t_N."""
        return self._memory.item(2)

    @property
    def outside(self) -> bool:
        """True when the total is outside the band now."""
        steps, total, radius = self._memory.tolist()
        return steps > 0 and abs(total) >= radius


@component
class ForwardEProcess(Sums):
    """Evidence against "given the past, the probability of a hit lies in [lower, upper]", for all steps at once.

    E = the mean over bets b of 1/2 prod(1 + b (hit - upper)) + 1/2 prod(1 + b (lower - hit)), with the fixed bets
    b = 1/64, 1/32, ..., 1/2 in equal shares: small bets find small departures, large bets find departures soon.

    Theorem. If the hypothesis holds at every step, E is a nonnegative supermartingale from 1, so it ever
    reaches 1/alpha with probability at most alpha (Ville). It is the hypothesis of a point forecaster: lower =
    upper = the probability it gave to the event. While the hypothesis holds the capital shrinks, and a late
    departure must first win it back.

    For the intervals of Venn predictors it is a heuristic: exchangeability does not imply the hypothesis. With
    one category and fair coins, a bettor who knows the coin and bets against each interval that misses 1/2 multiplies
    the capital by 20 in nine of ten streams of 10 000 steps, though the predictor is perfectly valid. The fixed
    bets above did so in two of a hundred: an observation, not a theorem. The theorem is `DeviationBand`.

    Attributes
    ----------
    log : float
        ln E; 0 before the first update.

    Raises
    ------
    TypeError, ValueError
        `hit` is not 0 or 1, the bounds are not probabilities or lower > upper; the process is unchanged.

    References
    ----------
    Arnold, Henzi & Ziegel (2023), "Sequentially valid tests for forecast calibration".

    Examples
    --------
    >>> process = ForwardEProcess()
    >>> for _ in range(30):
    ...     process.update(hit=False, lower=0.7, upper=0.7)
    >>> from math import log
    >>> process.log > log(100)
    True
    """

    _run = staticmethod(compiled.forward_steps)
    _inputs = (3, 1)
    size = 2 + 2 * len(BETS)  # steps, ln E; the logarithms of the products
    constants = BETS

    @property
    def statement(self) -> str:
        """One sentence: the theorem and its condition."""
        return (
            "Theorem for point forecasts: if each is the chance of a hit given the past, the e-process ever reaches "
            "1/alpha with probability at most alpha; for the intervals of Venn predictors it is a heuristic."
        )

    def update(self, hit: bool, lower: float, upper: float) -> None:
        """Bet on one step: whether the event happened, and the bounds that were given for its probability."""
        clean = number("hit", hit, 0.0, True), number("lower", lower), number("upper", upper)
        _check_hits(*clean)
        self._one[0, 0], self._one[1, 0], self._one[2, 0] = clean
        self._run(*self._step)

    def update_many(self, hits: Floats, lower: Floats, upper: Floats) -> Floats:
        """Bet on (n,) steps; return (n,) ln E after each.

        Raises
        ------
        ValueError
            The arrays differ in length, a hit is neither 0 nor 1, or a lower end lies above its upper end; nothing is
            learned then.
        """
        hits, lower, upper = numbers("hits", hits, 0.0, True), numbers("lower", lower), numbers("upper", upper)
        if not len(hits) == len(lower) == len(upper):
            raise ValueError(
                f"hits, lower and upper must have equal length, got {len(hits)}, {len(lower)} and {len(upper)}"
            )
        bad = np.flatnonzero(((hits != 0) & (hits != 1)) | (lower > upper))
        if bad.size:
            hit, low, high = (values[bad[0]].item() for values in (hits, lower, upper))
            _check_hits(hit, low, high, f" at position {bad[0]}")
        return self._many(np.array([hits, lower, upper]))

    @property
    def log(self) -> float:
        """Natural logarithm of E."""
        return self._memory.item(1)


def _check_hits(hit: float, lower: float, upper: float, at: str = "") -> None:
    if hit not in (0.0, 1.0):
        raise ValueError(f"hit must be 0 or 1, got {hit!r}{at}")
    if lower > upper:
        raise ValueError(f"lower must be at most upper, got {lower!r} > {upper!r}{at}")


# ------------------------------------------------------------------------------------------------------------ sequences
# Confidence sequences: bounds for the mean of [0, 1] variables that hold at all times at once.
#
# For instance for the accuracy of a model (x = 1 if it was right) or its mean Brier loss. You may look at them
# after every step, and stop at any time.


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


@component
class BettingBound(_ConfidenceSequence):
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
    def statement(self) -> str:
        """One sentence: the theorem and its condition."""
        return (
            "Theorem: a conditional mean that is the same at every step lies between the bounds at all steps at once "
            f"with probability at least {1 - self.level:g}."
        )

    @property
    def size(self) -> int:
        """Number of floats: the five of the base, and four for each candidate."""
        return 5 + 4 * (self.cells - 1)

    def begin(self) -> Floats:
        """Return the memory before the first step: every gambler has a capital of 1."""
        memory = super().begin()
        memory[5 : 5 + 2 * (self.cells - 1)] = 1.0
        return memory
