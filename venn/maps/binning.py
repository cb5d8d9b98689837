"""Histogram binning: the rate of positives between two cuts of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venn._compiled.scaling import ranges
from venn.maps.contract import Edges, Fitted, FollowingBins, binary_examples, binned, finite_array
from venn.parameters import Parameters, flag, integer, with_methods
from venn.prediction import Floats, Label
from venn.saved import component, param, saved


@component
class EqualWidth(Parameters):
    """Cuts for bins that divide the range of the scores into equal parts.

    Examples
    --------
    >>> EqualWidth().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([1, 1, 1]), 4)
    array([[1., 2., 3.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts low + i / bins * (high - low) of (c, n) scores; totals do not matter."""
        low, high = ranges(scores)
        with np.errstate(over="ignore"):
            cuts: Floats = low + (high - low) * (np.arange(1, bins) / bins)
        return cuts


@component
class EqualFrequency(Parameters):
    """Cuts for bins of equal weight, as nearly as ties allow.

    In order of score, cut i is the first score at which the weight so far exceeds i / bins of the total.

    Examples
    --------
    >>> EqualFrequency().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([2, 1, 1]), 2)
    array([[1.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts of (c, n) scores, each with its weight in the (n,) totals."""
        shares = np.arange(1, bins) * totals.sum()
        cuts = np.empty((len(scores), bins - 1))
        for row, f in zip(cuts, scores, strict=True):
            order = f.argsort()
            row[:] = f[order[(totals[order].cumsum() * bins).searchsorted(shares, side="right")]]
        return cuts


@saved
@dataclass(frozen=True, eq=False)
class FittedBins(Fitted):
    """Rates (bins,) between `cuts` (bins - 1,); a score equal to a cut belongs to the bin above."""

    cuts: Floats
    rates: Floats

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        return self.rates[self.cuts.searchsorted(finite_array("scores", scores), side="right")]


@component
class Binning(Parameters):
    """Histogram binning: the rate of positives among the examples in the score's bin.

    Scores outside the range of the examples belong to the end bins. A bin without examples takes the rate of
    the nearest bin that has some, counted in bins, and of two the lower one. When all scores are equal there is one
    bin. One class only, and separable scores, give rates of 0 and 1, where one error has infinite log loss, unless
    `laplace`.

    Parameters
    ----------
    bins : int >= 1, default 10
    edges : Edges, default EqualWidth()
        `EqualWidth()`, `EqualFrequency()`, or an object with the same method.
    laplace : bool, default False
        Rate (n+ + 1) / (n + 2) instead of n+ / n in a bin with n examples, n+ positive.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Zadrozny & Elkan (2001); Drish (2001); Rueping (2004) uses 10 and 50 bins.

    Examples
    --------
    >>> fitted = Binning(bins=2).fit([0.0, 0.2, 0.4, 0.6, 1.0], [0, 0, 1, 1, 1])
    >>> fitted.cuts, fitted([-7.0, 0.5, 0.9]).round(3)
    (array([0.5]), array([0.333, 1.   , 1.   ]))
    """

    bins: int = param(integer, 1, default=10)
    edges: Edges = param(
        with_methods, "an object with a method 'cuts', such as EqualWidth()", "cuts", default=EqualWidth()
    )
    laplace: bool = param(flag, default=False)

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedBins:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights, or cuts that decrease or are not finite.
        """
        f, y, w = binary_examples(scores, labels, weights)
        cuts, rates = binned(f[None], (w * y)[None], w, self.bins, self.edges, self.laplace)
        return FittedBins(cuts[0], rates[0])

    def follower(self, classes: Sequence[Label]) -> FollowingBins:
        """Return an object that keeps the bins of all classes counted online."""
        return FollowingBins(self.bins, self.edges, self.laplace)
