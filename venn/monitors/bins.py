"""Forecasts in bins: the cuts between bins, and the contents of each bin."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from venn.monitors.checks import forecasts, number
from venn.monitors.sums import Table, Tally, means, rounded, totals
from venn.parameters import LARGEST, Parameters, integer, with_methods
from venn.prediction import Floats, Integers
from venn.saved import component, param

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


@component
class CalibrationBins(Tally):
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
    >>> monitor.merge(monitor).n
    8
    """

    bins: int = param(integer, 1, LARGEST, default=10, sized=True)

    __eq__ = Tally.__eq__
    __hash__ = None

    def derive(self) -> None:
        """Find the cuts."""
        self._cuts: list[float] = WidthBins(self.bins).cuts(np.empty(0)).tolist()
        self._waiting: list[float] = []  # forecasts not yet in their bins
        self._came: list[bool] = []  # whether their events happened

    @property
    def columns(self) -> dict[str, int]:
        """Of each bin the forecasts, the sum of their probabilities, and the events that happened."""
        return dict.fromkeys(("counts", "sums", "hits"), self.bins)

    @property
    def state(self) -> dict[str, Any]:
        """What is in the bins, when those that wait have been put there."""
        self._settle()
        return super().state

    @property
    def table(self) -> Table:
        """The same, by name."""
        self._settle()
        return self._table

    @property
    def n(self) -> int:
        """Number of forecasts."""
        return sum(self._table["counts"]) + len(self._waiting)

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
        places = place(p, np.array(self._cuts))
        counts, hits = (np.bincount(which, minlength=self.bins).tolist() for which in (places, places[y == 1]))
        self.add({"counts": counts, "sums": totals(p, places, self.bins), "hits": hits})

    def update_many(self, confidence: Any, hit: Any) -> None:
        """Add (n,) forecasts, with the same result as one after another."""
        if np.shape(confidence) == np.shape(hit) == (0,):
            return
        p, y = forecasts(confidence, hit, ("confidence", "hit"))
        if p.ndim != 1:
            raise ValueError(f"confidence must have shape (n,), got {p.shape}")
        self._put(p, y)

    @property
    def ece(self) -> float:
        """Expected calibration error; 0.0 before the first forecast."""
        if not self.n:
            return 0.0
        counts, sums, hits = self.table.values()
        return calibration_error(np.array(counts), means(sums, 1), np.array(hits))

    @property
    def reliability(self) -> list[dict[str, float]]:
        """The non-empty bins, as plain data: ends, count, mean confidence, share of events."""
        ends = [0.0, *self._cuts, 1.0]
        return [
            {
                "lower": ends[i],
                "upper": ends[i + 1],
                "count": count,
                "confidence": rounded(sum_) / count,
                "accuracy": hits / count,
            }
            for i, (count, sum_, hits) in enumerate(zip(*self.table.values(), strict=True))
            if count
        ]
