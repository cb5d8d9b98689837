"""Forecasts in bins: the cuts between bins, and the contents of each bin."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from venn.monitors.checks import forecasts, number
from venn.monitors.sums import held_whole, means, rounded, totals
from venn.parameters import LARGEST, Parameters, integer, with_methods
from venn.prediction import Floats, Integers
from venn.saved import Saved, component, mergeable, own, param, state

WAITING = 512  # forecasts put into bins at once: one by one each takes a microsecond more


class Bins(Protocol):
    """Chooses the cuts between bins of probabilities."""

    def cuts(self, probabilities: Floats) -> Floats:
        """Return (b - 1,) nondecreasing cuts in [0, 1] for b bins.

        Bin 0 lies below the first cut; a probability equal to a cut belongs to the bin above.
        """


@component
class WidthBins(Parameters):
    """Bins of equal width: [i / bins, (i + 1) / bins), the last one closed.

    Parameters
    ----------
    bins : int >= 1, default 10

    Examples
    --------
    >>> WidthBins(4).cuts(np.array([0.1, 0.2]))
    array([0.25, 0.5 , 0.75])
    """

    bins: int = param(integer, 1, LARGEST, default=10)

    def cuts(self, probabilities: Floats) -> Floats:
        """Return the cuts i / bins."""
        return np.arange(1, self.bins) / self.bins


@component
class MassBins(Parameters):
    """Bins that hold equally many forecasts, as nearly as possible: equal forecasts share a bin.

    Of n probabilities in increasing order, counted from 0, cut i is number floor(i n / bins).

    Parameters
    ----------
    bins : int >= 1, default 10

    Examples
    --------
    >>> MassBins(2).cuts(np.array([0.1, 0.2, 0.2, 0.4]))
    array([0.2])
    """

    bins: int = param(integer, 1, LARGEST, default=10)

    def cuts(self, probabilities: Floats) -> Floats:
        """Return the cuts."""
        ranks = np.arange(1, self.bins) * len(probabilities) // self.bins
        return np.sort(probabilities)[ranks]


def cuts_of(bins: Bins | None, p: Floats) -> Floats:
    """Return the cuts between the bins, by default `WidthBins(10)`, or say what is wrong with them."""
    wanted = "an object with a method 'cuts', such as WidthBins(10)"
    bins = with_methods("bins", WidthBins() if bins is None else bins, wanted, "cuts")
    cuts = np.asarray(bins.cuts(p), np.float64)
    if cuts.ndim != 1 or not ((cuts >= 0.0) & (cuts <= 1.0)).all() or not (cuts[:-1] <= cuts[1:]).all():
        raise ValueError(f"bins must give nondecreasing cuts in [0, 1], got {cuts!r}")
    return cuts


def place(p: Floats, cuts: Floats) -> Integers:
    """Return the bin of each probability."""
    return np.searchsorted(cuts, p, side="right")


def count_bins(places: Integers, p: Floats, y: Integers) -> tuple[Integers, Floats, Integers]:
    """Return the numbers of forecasts, the sums of their probabilities and the numbers of events, by bin."""
    counts: Integers = np.bincount(places)
    sums = means(totals(p, places, len(counts)), 1)  # rounded once: the order of the forecasts does not matter
    events: Integers = np.bincount(places[y == 1], minlength=len(counts))
    return counts, sums, events


def calibration_error(counts: Integers, sums: Floats, events: Integers) -> float:
    """Return the mean over the forecasts of |share of events - mean probability| in their bin."""
    return float(np.abs(events - sums).sum() / counts.sum())


def _size(card: CalibrationBins) -> int:
    return card.bins


def _zeros(card: CalibrationBins) -> list[int]:
    return [0] * card.bins


@component
class CalibrationBins(Saved):
    """The bins of a reliability diagram, of equal width, filled one forecast at a time in constant memory.

    Probabilities are added up without rounding: merged bins of parts are the bins of all forecasts, to the last bit.

    Parameters
    ----------
    bins : int >= 1, default 10

    Attributes
    ----------
    n : int
        Number of forecasts.
    ece : float
        Expected calibration error: equal to the function `ece` of the same forecasts, to the last bit.

    Raises
    ------
    ValueError, TypeError
        The number of bins is not as described.

    Examples
    --------
    >>> monitor = CalibrationBins(2)
    >>> for confidence, hit in [(0.75, True), (0.75, True), (0.25, False), (0.25, True)]:
    ...     monitor.update(confidence, hit)
    >>> monitor.ece
    0.25
    >>> monitor.reliability[1]
    {'lower': 0.5, 'upper': 1.0, 'count': 2, 'confidence': 0.75, 'accuracy': 1.0}
    """

    unnamed = 0

    bins: int = param(integer, 1, LARGEST, default=10, sized=True)

    _counts: list[int] = state(held_whole, own(_size), 0, start=own(_zeros))
    _sums: list[int] = state(held_whole, own(_size), start=own(_zeros))  # in units, see `venn.monitors.sums`
    _hits: list[int] = state(held_whole, own(_size), 0, start=own(_zeros))

    def derive(self) -> None:
        """Find the cuts."""
        self._cuts: list[float] = WidthBins(self.bins).cuts(np.empty(0)).tolist()
        self._waiting: list[float] = []  # forecasts not yet in their bins
        self._came: list[bool] = []  # whether their events happened

    @property
    def state(self) -> dict[str, Any]:
        """What is in the bins, when those that wait have been put there."""
        self._settle()
        return super().state

    def update(self, confidence: float, hit: Any) -> None:
        """Add one forecast: a probability in [0, 1], and whether the event happened (True, 1, False or 0)."""
        if type(confidence) is not float or not 0.0 <= confidence <= 1.0:
            confidence = float(number("confidence", confidence))
        if hit is not True and hit is not False:
            if not isinstance(hit, np.bool_ | int | np.integer) or hit not in (0, 1):
                raise TypeError(f"hit must be True or False, got {hit!r}")
            hit = bool(hit)
        self._waiting.append(confidence)
        self._came.append(hit)
        if len(self._waiting) == WAITING:
            self._settle()

    def _settle(self) -> None:
        """Put the waiting forecasts into bins."""
        if self._waiting:
            self._put(np.array(self._waiting), np.array(self._came))
            self._waiting.clear()
            self._came.clear()

    def _put(self, p: Floats, y: Any) -> None:
        size, places = len(self._counts), place(p, np.array(self._cuts))
        self._sums = [one + more for one, more in zip(self._sums, totals(p, places, size), strict=True)]
        self._counts = (np.bincount(places, minlength=size) + self._counts).tolist()
        self._hits = (np.bincount(places[y == 1], minlength=size) + self._hits).tolist()

    def update_many(self, confidence: Any, hit: Any) -> None:
        """Add (n,) forecasts, with the same result as one after another."""
        if np.shape(confidence) == np.shape(hit) == (0,):
            return
        p, y = forecasts(confidence, hit, ("confidence", "hit"))
        if p.ndim != 1:
            raise ValueError(f"confidence must have shape (n,), got {p.shape}")
        self._put(p, y)

    def merge(self, other: CalibrationBins) -> CalibrationBins:
        """Return the bins of the forecasts of both, which do not change.

        Parameters
        ----------
        other : CalibrationBins
            With as many bins.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described.

        Examples
        --------
        >>> one, other = CalibrationBins(), CalibrationBins()
        >>> one.update(0.3, True)
        >>> other.update_many([0.3, 0.1], [False, False])
        >>> one.merge(other).n
        3
        """
        mergeable(self, other)
        self._settle()
        other._settle()
        both = self.fresh()
        for name in ("_counts", "_sums", "_hits"):
            setattr(both, name, [a + b for a, b in zip(getattr(self, name), getattr(other, name), strict=True)])
        return both

    @property
    def n(self) -> int:
        """Number of forecasts."""
        return sum(self._counts) + len(self._waiting)

    @property
    def ece(self) -> float:
        """Expected calibration error; 0.0 before the first forecast."""
        if not self.n:
            return 0.0
        self._settle()
        return calibration_error(np.array(self._counts), means(self._sums, 1), np.array(self._hits))

    @property
    def reliability(self) -> list[dict[str, float]]:
        """The non-empty bins, as plain data: ends, count, mean confidence, share of events."""
        self._settle()
        ends = [0.0, *self._cuts, 1.0]
        return [
            {
                "lower": ends[i],
                "upper": ends[i + 1],
                "count": self._counts[i],
                "confidence": rounded(self._sums[i]) / self._counts[i],
                "accuracy": self._hits[i] / self._counts[i],
            }
            for i in range(len(self._counts))
            if self._counts[i]
        ]
