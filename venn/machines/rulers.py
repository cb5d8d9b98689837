"""Rulers: how far a label lies from what a scorer says of it, on a scale on which all objects can be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from venn.machines.shapes import bent, unbent
from venn.prediction import Floats

FAR = 30.0  # log odds, a probability of 1e-13: further out a distribution goes on as a straight line
FINEST = 2.0**-30  # of the size of an object's quantiles: widths below it are taken as this


class Ruler(ABC):
    """Measures labels by an object's scores: a function that grows with the label, and its inverse.

    For every object it must be continuous and strictly increasing, from minus infinity to infinity. Then labels and
    their measures have the same ranks, which is all that a conformal predictor reads.

    A ruler may take labels in a shape. It then speaks of labels in that shape, where rounding is alike everywhere, and
    `bends`; `back` makes labels of them.
    """

    bends = False

    @abstractmethod
    def measured(self, scores: Floats, y: Any) -> Floats:
        """Return the (n,) measures of n labels, each by the scores of its own object, (n, c)."""

    @abstractmethod
    def labels(self, scores: Floats, measures: Floats) -> Floats:
        """Return the (n, k) labels of n objects that have these (k,) measures."""

    def back(self, scores: Floats, labels: Floats) -> Floats:
        """Return (n, k) labels as they are, given them in the form in which the ruler measures: mostly the same."""
        return labels

    def middle(self, scores: Floats) -> Floats:
        """Return the (n,) labels in the middle, those of measure 0."""
        return self.labels(scores, np.zeros(1))[:, 0]

    def strangeness(self, scores: Floats, y: Any) -> Floats:
        """Return (n,) how strange each label is: by default the absolute measure."""
        return np.abs(self.measured(scores, y))

    def ends(self, scores: Floats, strangeness: Floats) -> tuple[Floats, Floats]:
        """Return lower and upper ends, (n, k) each, of the labels that are at most so strange, of (k,) numbers.

        Where no label is, the lower end is above the upper one.
        """
        return self.labels(scores, -strangeness), self.labels(scores, strangeness)

    def alike(self, scores: Floats) -> Floats:
        """Return scores with the largest number of columns that it reads."""
        return scores


class LocationScale(Ruler):
    """Measures (y - f) / s by forecasts f and spreads s, of scores (n, 2); s = 1 where there is only f.

    Examples
    --------
    >>> ruler = LocationScale()
    >>> scores = np.array([[5.0, 2.0]])
    >>> ruler.measured(scores, np.array([8.0])), ruler.labels(scores, np.array([0.0, 1.5]))
    (array([1.5]), array([[5., 8.]]))
    """

    def measured(self, scores: Floats, y: Any) -> Floats:
        """Return residuals over spreads."""
        return (y - scores[:, 0]) / _spreads(scores)

    def labels(self, scores: Floats, measures: Floats) -> Floats:
        """Return forecasts moved by so many spreads."""
        return scores[:, :1] + _spreads(scores)[:, None] * measures

    def middle(self, scores: Floats) -> Floats:
        """Return the forecasts."""
        return scores[:, 0]

    def alike(self, scores: Floats) -> Floats:
        """Return (n, 2) forecasts and spreads."""
        return np.column_stack([scores[:, 0], _spreads(scores)])

    def __repr__(self) -> str:
        return "LocationScale()"


class ShapedScale(Ruler):
    """Measures labels in a `Shape`, by forecasts and spreads of those: scores (n, 5) of f, s, center, unit and reach.

    Examples
    --------
    >>> ruler = ShapedScale()
    >>> scores = np.array([[0.0, 0.5, 5.0, 2.0, 1.0]])
    >>> ruler.measured(scores, np.array([6.0])), ruler.back(scores, ruler.labels(scores, np.array([1.0, -2.0])))
    (array([1.]), array([[6., 3.]]))
    """

    bends = True

    def measured(self, scores: Floats, y: Any) -> Floats:
        """Return residuals over spreads, in the shape."""
        forecasts, spreads, center, unit, reach = scores.T
        found: Floats = (bent((y - center) / unit, reach) - forecasts) / spreads
        return found

    def labels(self, scores: Floats, measures: Floats) -> Floats:
        """Return forecasts moved by so many spreads, in the shape."""
        return scores[:, :1] + scores[:, 1:2] * measures

    def middle(self, scores: Floats) -> Floats:
        """Return the forecasts, in the shape."""
        return scores[:, 0]

    def back(self, scores: Floats, labels: Floats) -> Floats:
        """Return labels that are in the shape."""
        found: Floats = unbent(labels, scores[:, 2:3], scores[:, 3:4], scores[:, 4:5])
        return found

    def __repr__(self) -> str:
        return "ShapedScale()"


def _spreads(scores: Floats) -> Floats:
    """Return the (n,) spreads that scores have, 1 where they have none."""
    return scores[:, 1] if scores.shape[1] > 1 else np.ones(len(scores))


class QuantileScale(Ruler):
    """Measures a label by the level at which it is a quantile: F(y), of scores that are quantiles at fixed levels.

    Between quantiles F is straight; outside them it goes on with the slope 1 / (last - first). It is nowhere steeper
    than 1 / least, so that it is strictly increasing.

    The strangeness is that of conformalized quantile regression, max(first - y, y - last).

    Parameters
    ----------
    levels : (m,) ascending floats in (0, 1)
    least : float >= 0
        In the unit of labels; 2^-30 of the object's largest quantile where that is more.

    References
    ----------
    Romano, Patterson & Candès (2019), "Conformalized quantile regression"; Chernozhukov, Wüthrich & Zhu (2021),
    "Distributional conformal prediction".

    Examples
    --------
    >>> ruler = QuantileScale((0.1, 0.5, 0.9), 0.0)
    >>> scores = np.array([[0.0, 1.0, 4.0]])
    >>> ruler.measured(scores, np.array([2.5])), ruler.labels(scores, np.array([0.7, 1.9]))
    (array([0.7]), array([[2.5, 8. ]]))
    >>> ruler.strangeness(scores, np.array([2.5])), ruler.ends(scores, np.array([1.0]))
    (array([-1.5]), (array([[-1.]]), array([[5.]])))
    """

    def __init__(self, levels: tuple[float, ...], least: float) -> None:
        self.levels, self.least = levels, least

    def _knots(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the (n, m) quantiles, those too close moved apart, and the (n, 1) widths of what is outside them."""
        least = np.maximum(np.maximum(self.least, FINEST * np.abs(scores).max(axis=1)), 2.0**-300)
        knots = scores.copy()
        for j, step in enumerate(np.diff(self.levels), 1):
            np.maximum(knots[:, j], knots[:, j - 1] + least * step, out=knots[:, j])
        return knots, np.maximum(knots[:, -1] - knots[:, 0], least)[:, None]

    def measured(self, scores: Floats, y: Any) -> Floats:
        """Return the levels of labels; below 0 and above 1 far outside."""
        y = np.asarray(y, np.float64)[:, None]
        knots, widths = self._knots(scores)
        outside = np.minimum(y - knots[:, :1], 0.0) / widths + np.maximum(y - knots[:, -1:], 0.0) / widths
        inside = [np.interp(one, own, self.levels) for one, own in zip(y, knots, strict=True)]
        return np.reshape(inside, len(y)) + outside[:, 0]

    def labels(self, scores: Floats, measures: Floats) -> Floats:
        """Return the quantiles at these levels."""
        knots, widths = self._knots(scores)
        outside = np.minimum(measures - self.levels[0], 0.0) + np.maximum(measures - self.levels[-1], 0.0)
        inside = [np.interp(measures, self.levels, own) for own in knots]
        return np.reshape(inside, (len(knots), len(measures))) + widths * outside

    def middle(self, scores: Floats) -> Floats:
        """Return the (n,) labels halfway between the outermost quantiles, which are the least strange."""
        return scores[:, 0] / 2 + scores[:, -1] / 2

    def strangeness(self, scores: Floats, y: Any) -> Floats:
        """Return how far labels lie outside of the outermost quantiles; negative inside."""
        return np.maximum(scores[:, 0] - y, y - scores[:, -1])

    def ends(self, scores: Floats, strangeness: Floats) -> tuple[Floats, Floats]:
        """Return the outermost quantiles, moved outwards by so much."""
        return scores[:, :1] - strangeness, scores[:, -1:] + strangeness

    def __repr__(self) -> str:
        return f"QuantileScale({self.levels!r}, {self.least!r})"


class FamilyScale(Ruler):
    """Measures a label by its log odds, log F(y) - log(1 - F(y)), of scores that are the parameters of a distribution.

    Beyond log odds of 30 it goes on as a straight line, with the slope 1 over the distance of the quartiles.

    Parameters
    ----------
    family
        With methods `cdf(y, *parameters)`, `sf`, `ppf(q, *parameters)` and `isf`, for arrays.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> ruler = FamilyScale(norm)
    >>> scores = np.array([[5.0, 2.0]])
    >>> ruler.labels(scores, ruler.measured(scores, np.array([8.0]))).round(9)
    array([[8.]])
    """

    def __init__(self, family: Any) -> None:
        self.family = family

    def _lines(self, scores: Floats) -> tuple[list[Floats], Floats, Floats, Floats]:
        """Return parameters, the two labels where lines begin, and the widths of these, (n, 1) each."""
        parameters = [column[:, None] for column in scores.T]
        far = 1 / (1 + np.exp(FAR))
        low, high, first, last = (
            np.asarray(ask(q, *parameters), np.float64)
            for ask, q in (
                (self.family.ppf, far),
                (self.family.isf, far),
                (self.family.ppf, 0.25),
                (self.family.isf, 0.25),
            )
        )
        good = np.isfinite(low) & np.isfinite(high) & (last > first) & (high > low)
        if not good.all():
            i = int(np.argmin(good))
            raise ValueError(
                f"family must have finite and ascending quantiles with these parameters, got {low[i, 0]} to "
                f"{high[i, 0]} with {scores[i].tolist()}"
            )
        return parameters, low, high, last - first

    def measured(self, scores: Floats, y: Any) -> Floats:
        """Return the log odds of labels."""
        y = np.asarray(y, np.float64)[:, None]
        parameters, low, high, widths = self._lines(scores)
        inside = np.clip(y, low, high)
        with np.errstate(divide="ignore"):
            odds = np.log(self.family.cdf(inside, *parameters)) - np.log(self.family.sf(inside, *parameters))
        measured: Floats = np.clip(odds, -FAR, FAR) + (y - inside) / widths
        return measured[:, 0]

    def labels(self, scores: Floats, measures: Floats) -> Floats:
        """Return the labels of these log odds."""
        parameters, low, high, widths = self._lines(scores)
        inside = np.clip(measures, -FAR, FAR)
        tails = 1 / (1 + np.exp(np.abs(inside)))
        below, above = self.family.ppf(tails, *parameters), self.family.isf(tails, *parameters)
        return np.clip(np.where(inside <= 0, below, above), low, high) + widths * (measures - inside)

    def __repr__(self) -> str:
        return f"FamilyScale({family_name(self.family)})"


def family_name(family: Any) -> str:
    """Return the name of a distribution, scipy's where it has one."""
    return str(getattr(family, "name", family))


LOCATION_SCALE, SHAPED = LocationScale(), ShapedScale()


def ruler_of(scorer: Any) -> Ruler:
    """Return what measures labels by the scores of a scorer: its `ruler`, or forecast and spread."""
    return getattr(scorer, "ruler", LOCATION_SCALE)
