"""Bounds on what predictions claim: a band for the deviations of realised rows, evidence against point forecasts."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from venn._compiled import bounds as compiled
from venn.monitors.running import Running, number, numbers, probability
from venn.prediction import Floats

BETS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the forward e-process, mixed with equal weights


def deviation_radius(n: int, delta: float = 0.05) -> float:
    """Return what the sum of n realised-row deviations reaches in magnitude with probability at most `delta`.

    sqrt(n ln(2 / delta) / 2), by Azuma and Hoeffding. A theorem under exchangeability for one n that is fixed
    beforehand; for all n at once see `DeviationBand`, which also says what a deviation is.

    Parameters
    ----------
    n : int >= 1
    delta : float in (0, 1)

    Raises
    ------
    TypeError, ValueError
        A parameter is not that.

    Examples
    --------
    >>> round(deviation_radius(100), 2)
    13.58
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"n must be an integer >= 1, got {n!r}")
    if n < 1:
        raise ValueError(f"n must be an integer >= 1, got {n!r}")
    return sqrt(n * log(2 / probability("delta", delta)) / 2)


class DeviationBand(Running):
    """A band that the sum of realised-row deviations leaves, at any step, with probability at most `delta`.

    The deviation of step n for an event, such as "the label is class k", is d = 1{event} - P[y, event]: whether
    it happened, less its probability in the row of the true label. Instead of class k one may take the most
    probable class of that row, y* = argmax P[y, .].

    Theorem. Let the examples be exchangeable and the predictor a transductive Venn predictor. Go back in time:
    given all that comes later, the bag and what is in the new example's category, each deviation has mean 0 and
    range 1. So for one N the sum of the first N reaches `deviation_radius(N)` with probability at most delta
    (Azuma, Hoeffding). A union over N with shares delta / (N (N + 1)) gives |sum| < t_N for all N at once, where
    t_N = sqrt(N ln(2 N (N + 1) / delta) / 2). Forwards the sums are no martingale: a bet on the next deviation
    may win for ever (see `ForwardEProcess`).

    With d = 1{event} - upper or d = lower - 1{event}, bounds over all rows, only the upper side of the band is a
    theorem, total < radius. With the class that was predicted from all rows the band is a heuristic: that class
    depends on the row that is not known, unless the prediction guarantees the "predicted label".

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

    _names = ("n", "total", "radius")

    def __init__(self, delta: float = 0.05) -> None:
        self.delta = probability("delta", delta)
        self._memory = np.zeros(3)
        self._one, self._out = np.empty(1), np.empty((1, 2))

    @property
    def _parameters(self) -> dict[str, Any]:
        return {"delta": self.delta}

    @property
    def statement(self) -> str:
        """One sentence: what is a theorem, and when."""
        return (
            "Theorem: when the examples are exchangeable, the sum of realised-row deviations of a transductive Venn "
            f"predictor leaves the band at any step with probability at most {self.delta:g}."
        )

    def update(self, d: float) -> None:
        """Add the deviation `d` in [-1, 1]."""
        self._one[0] = number("d", d, -1.0, False)
        compiled.deviation_steps(self._memory, -log(self.delta), self._one, self._out)

    def update_many(self, d: Floats) -> Floats:
        """Add (n,) deviations; return (n, 2): the total and the radius after each."""
        clean = numbers("d", d, -1.0, False)
        out = np.empty((len(clean), 2))
        compiled.deviation_steps(self._memory, -log(self.delta), clean, out)
        return out

    @property
    def total(self) -> float:
        """Sum of the deviations."""
        return float(self._memory[1])

    @property
    def radius(self) -> float:
        """Half the width of the band, t_N."""
        return float(self._memory[2])

    @property
    def outside(self) -> bool:
        """True when the total is outside the band now."""
        return self.n > 0 and abs(self.total) >= self.radius


class ForwardEProcess(Running):
    """Evidence against "given the past, the chance of a hit lies in [lower, upper]", for all steps at once.

    E = the mean over bets b of 1/2 prod(1 + b (hit - upper)) + 1/2 prod(1 + b (lower - hit)), with the fixed bets
    b = 1/64, 1/32, ..., 1/2 in equal shares: the small ones find small departures, the large ones soon.

    Theorem. Where the hypothesis holds at every step, E is a nonnegative supermartingale from 1, so it ever
    reaches 1/alpha with probability at most alpha (Ville). It is the hypothesis of a point forecaster: lower =
    upper = the probability it gave to the event. While it holds the capital shrinks, and a departure that begins
    late must first win it back.

    For the intervals of Venn predictors it is a heuristic: exchangeability does not imply the hypothesis. With
    one category and fair coins, one who knows the coin and bets against each interval that misses 1/2 multiplies
    his capital by 20 in nine of ten streams of 10 000 steps, though the predictor is perfectly valid. The fixed
    bets above did so in one of a hundred: an observation, not a theorem. The theorem is `DeviationBand`.

    Attributes
    ----------
    log : float
        ln E; 0 before the first update.

    Raises
    ------
    TypeError, ValueError
        `hit` is not 0 or 1, the bounds are no probabilities or lower > upper; the process is unchanged.

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

    _names = ("n", "log")

    def __init__(self) -> None:
        self._memory = np.zeros(2)
        self._bets = np.array(BETS)
        self._logs = np.zeros((2, len(BETS)))
        self._step, self._out = np.empty((3, 1)), np.empty(1)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {}

    def _tables(self) -> dict[str, Floats]:
        return {"logs": self._logs}

    @property
    def statement(self) -> str:
        """One sentence: what is a theorem, and when."""
        return (
            "Theorem for point forecasts: if each is the chance of a hit given the past, the e-process ever reaches "
            "1/alpha with probability at most alpha; for the intervals of Venn predictors it is a heuristic."
        )

    def update(self, hit: bool, lower: float, upper: float) -> None:
        """Bet on one step: whether the event happened, and the bounds that were given for its probability."""
        clean = number("hit", hit, 0.0, True), number("lower", lower), number("upper", upper)
        _check_hits(*clean)
        self._step[0, 0], self._step[1, 0], self._step[2, 0] = clean
        compiled.forward_steps(self._logs, self._bets, self._step, self._out)
        self._memory[0] += 1
        self._memory[1] = self._out[0]

    def update_many(self, hits: Floats, lower: Floats, upper: Floats) -> Floats:
        """Bet on (n,) steps; return (n,) ln E after each."""
        hits, lower, upper = numbers("hits", hits, 0.0, True), numbers("lower", lower), numbers("upper", upper)
        if not len(hits) == len(lower) == len(upper):
            raise ValueError(
                f"hits, lower and upper must have equal length, got {len(hits)}, {len(lower)} and {len(upper)}"
            )
        bad = np.flatnonzero(((hits != 0) & (hits != 1)) | (lower > upper))
        if bad.size:
            hit, low, high = (values[bad[0]].item() for values in (hits, lower, upper))
            _check_hits(hit, low, high, f" at position {bad[0]}")
        out = np.empty(len(hits))
        compiled.forward_steps(self._logs, self._bets, np.array([hits, lower, upper]), out)
        if len(out):
            self._memory[0] += len(out)
            self._memory[1] = out[-1]
        return out

    @property
    def log(self) -> float:
        """Natural logarithm of E."""
        return float(self._memory[1])


def _check_hits(hit: float, lower: float, upper: float, at: str = "") -> None:
    if hit not in (0.0, 1.0):
        raise ValueError(f"hit must be 0 or 1, got {hit!r}{at}")
    if lower > upper:
        raise ValueError(f"lower must be at most upper, got {lower!r} > {upper!r}{at}")
