"""Shapes of labels: strictly increasing maps that bring far labels nearer, and their inverses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from venn.prediction import Floats
from venn.saved import Saved, component, param, restored_float, restored_positive

STRETCHED, PLAIN = 1.0, 10.0  # reaches, in units: labels no farther from the centre than this stay as they are
OFTEN, SHARE = 5, 0.1  # a number that comes so many times has a gap beside it; with such a share, beyond it
GAUSSIAN = 1.4826  # the deviation of a Gaussian over its median distance from the centre
FURTHEST = 600.0  # largest exponent
SMALLEST = 1e-200  # smallest unit: 1e100, the largest label, divided by it is finite
LARGEST_NUMBER = 1e300  # largest number that is mapped back; labels are smaller


@component
class Shape(Saved):
    """Maps labels so that far ones do not rule: unchanged near their centre, by a logarithm beyond.

    With z = (y - center) / unit it is z up to `reach`, and reach + ln(1 + z - reach) beyond; the same on both sides.
    The map is strictly increasing, so ranks of labels are ranks of what they are mapped to: whatever is proved of
    ranks holds.

    Parameters
    ----------
    center : float
    unit : float > 0
    reach : float > 0

    Examples
    --------
    >>> shape = Shape(5.0, 2.0, 1.0)
    >>> shape.of(np.array([3.0, 6.0, 1e6])).round(3), shape.back(np.array([0.5])).tolist()
    (array([-1.   ,  0.5  , 14.122]), [6.0])
    """

    center: float = param(restored_float)
    unit: float = param(restored_positive)
    reach: float = param(restored_positive)

    @classmethod
    def fitted(cls, labels: Floats, reach: float) -> Self:
        """Return the shape with the median of (n,) labels as centre, and as unit their median distance from it.

        Labels that are the centre itself do not count in the unit, so that it is never 0; it is that of a Gaussian's
        deviation. One label far out moves neither.
        """
        center = float(np.median(labels))
        away = np.abs(labels - center)
        some = away[away > 0]
        unit = float(np.median(some)) * GAUSSIAN if len(some) else 1.0
        return cls(center, max(unit, SMALLEST), reach)

    def of(self, labels: Any) -> Any:
        """Return the places of labels, one or an array, on the scale of the shape."""
        return bent((labels - self.center) / self.unit, self.reach)

    def drawn_near(self, labels: Any) -> Any:
        """Return labels, one or an array, in their own unit: unchanged up to the reach, nearer beyond it."""
        with np.errstate(over="ignore"):
            z = bounded((bounded(labels) - self.center) / self.unit)
        return self.center + self.unit * bent(z, self.reach)

    def back(self, places: Any) -> Any:
        """Return the labels that have these places, of size at most 1e300."""
        return unbent(places, self.center, self.unit, self.reach)

    def steepness(self, labels: Floats) -> float:
        """Return the sum of the logarithms of the map's slope at (n,) labels, that at the centre taken as 1."""
        z = np.abs((labels - self.center) / self.unit)
        return -float(np.log1p(np.maximum(z - self.reach, 0.0)).sum())

    @property
    def row(self) -> Floats:
        """The three numbers."""
        return np.array([self.center, self.unit, self.reach])


def gaps_of(labels: Floats) -> Floats:
    """Return the (k, 2) open intervals where no label lies, between numbers that are labels again and again.

    So between two counts; and below zero where a tenth of the labels are zero and none is less: that interval begins
    at -1e300.

    Examples
    --------
    >>> gaps_of(np.repeat([0.0, 1.0, 2.0], [9, 8, 2])).tolist()
    [[-1e+300, 0.0], [0.0, 1.0]]
    """
    numbers, counts = np.unique(labels, return_counts=True)
    often, most = counts >= OFTEN, (counts >= OFTEN) & (counts >= SHARE * len(labels))
    ends = np.concatenate([[-LARGEST_NUMBER], numbers, [LARGEST_NUMBER]])
    both = np.concatenate([most[:1], often[:-1] & often[1:], most[-1:]])
    return np.column_stack([ends[:-1], ends[1:]])[both]


def within(gaps: Floats, numbers: Any) -> tuple[Any, Any]:
    """Return which of the numbers lie in a gap, and the place of that gap, which means nothing for the others."""
    if not len(gaps):
        return np.zeros(np.shape(numbers), np.bool_), None
    at = np.maximum(gaps[:, 0].searchsorted(numbers, "left") - 1, 0)
    return (gaps[at, 0] < numbers) & (numbers < gaps[at, 1]), at


def nearest(gaps: Floats, numbers: Floats) -> Floats:
    """Return numbers; those in a gap are moved to its nearer end."""
    inside, at = within(gaps, numbers)
    if not inside.any():
        return numbers
    low, high = gaps[at, 0], gaps[at, 1]
    return np.where(inside, np.where(numbers - low <= high - numbers, low, high), numbers)


def ends_between(gaps: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Move lower ends of intervals up, and upper ends down, out of the gaps: no label lies there, so none is lost."""
    if not len(gaps):
        return lows, highs
    (low, first), (high, last) = within(gaps, lows), within(gaps, highs)
    return np.where(low, gaps[first, 1], lows), np.where(high, gaps[last, 0], highs)


def bounded(numbers: Any) -> Any:
    """Return numbers clipped to the largest: np.clip, in half the time for a few."""
    return np.minimum(np.maximum(numbers, -LARGEST_NUMBER), LARGEST_NUMBER)


def bent(z: Any, reach: Any) -> Any:
    """Return the places of numbers z, which are in units from the centre."""
    size = np.abs(z)
    if (size <= reach).all():  # none is bent, as usual: that takes no logarithms
        return np.copysign(size, z)
    return np.copysign(np.minimum(size, reach) + np.log1p(np.maximum(size - reach, 0.0)), z)


def unbent(places: Any, center: Any, unit: Any, reach: Any) -> Any:
    """Return the labels that have these places."""
    size = np.abs(places)
    if (size <= reach).all():
        return bounded(center + unit * places)
    with np.errstate(over="ignore"):
        z = np.minimum(size, reach) + np.expm1(np.minimum(np.maximum(size - reach, 0.0), FURTHEST))
        return bounded(center + unit * np.copysign(z, places))
