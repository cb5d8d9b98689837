"""Maps that count: bins, and the isotonic fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venn._compiled.pav import pool
from venn._compiled.scaling import ranges
from venn.maps.checks import binary_examples, finite_array
from venn.maps.contract import Edges
from venn.maps.followers import FollowingBins, FollowingIsotonic
from venn.maps.sigmoids import Fitted
from venn.parameters import Parameters, flag, has_methods, integer
from venn.prediction import Floats, Label
from venn.saved import saved


@saved
class EqualWidth(Parameters):
    """Cuts that divide the range of the scores into equal parts.

    Examples
    --------
    >>> EqualWidth().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([1, 1, 1]), 4)
    array([[1., 2., 3.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts low + i / bins * (high - low)."""
        low, high = ranges(scores)
        with np.errstate(over="ignore"):
            cuts: Floats = low + (high - low) * (np.arange(1, bins) / bins)
        return cuts


@saved
class EqualFrequency(Parameters):
    """Cuts that give every bin as much weight as ties allow.

    In order of score, cut i is the first score at which the weight so far exceeds i / bins of all.

    Examples
    --------
    >>> EqualFrequency().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([2, 1, 1]), 2)
    array([[1.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts."""
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
        p: Floats = self.rates[self.cuts.searchsorted(finite_array("scores", scores), side="right")]
        return p


@saved
class Binning(Parameters):
    """Histogram binning: the rate of positives among the examples in the score's bin.

    Scores outside the range of the examples belong to the end bins; a bin without examples takes the rate of
    the nearest bin with some, counted in bins, the lower of two. When all scores are equal there is one bin.
    One class only, and separable scores, give rates of 0 and 1, where one error has infinite log loss: unless
    `laplace`.

    Parameters
    ----------
    bins : int >= 1, default 10
    edges : Edges, default EqualWidth()
        `EqualWidth()`, `EqualFrequency()`, or an object with the same method.
    laplace : bool, default False
        Rate (n+ + 1) / (n + 2) instead of n+ / n in a bin with n examples, n+ positive.

    References
    ----------
    Zadrozny & Elkan (2001); Drish (2001); Rueping (2004) uses 10 and 50 bins.

    Examples
    --------
    >>> fitted = Binning(bins=2).fit([0.0, 0.2, 0.4, 0.6, 1.0], [0, 0, 1, 1, 1])
    >>> fitted.cuts, fitted([-7.0, 0.5, 0.9]).round(3)
    (array([0.5]), array([0.333, 1.   , 1.   ]))
    """

    def __init__(self, bins: int = 10, edges: Edges | None = None, laplace: bool = False) -> None:
        self.bins = integer("bins", bins, 1)
        if edges is not None and not has_methods(edges, "cuts"):
            raise TypeError(f"edges must be an object with a method 'cuts', such as EqualWidth(), got {edges!r}")
        self.edges: Edges = EqualWidth() if edges is None else edges
        self.laplace = flag("laplace", laplace)

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedBins:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights, or cuts that decrease or are not finite.
        """
        f, y, w = binary_examples(scores, labels, weights)
        cuts = np.array(self.edges.cuts(f[None], w, self.bins), np.float64)
        if cuts.shape != (1, self.bins - 1) or not (np.isfinite(cuts).all() and (cuts[0, 1:] >= cuts[0, :-1]).all()):
            raise ValueError(f"edges must give one row of {self.bins - 1} finite nondecreasing cuts, got {cuts!r}")
        # The compiled counts of the online scaler are whole numbers; weights are not.
        where = cuts[0].searchsorted(f, side="right")
        of_all = np.bincount(where, w, self.bins)
        of_class = np.bincount(where, w * y, self.bins)
        full = np.flatnonzero(of_all)
        every = np.arange(self.bins)
        below = full[np.maximum(full.searchsorted(every, side="right") - 1, 0)]
        above = full[np.minimum(full.searchsorted(every), len(full) - 1)]
        near = np.where(np.abs(every - below) <= np.abs(above - every), below, above)
        extra = int(self.laplace)
        return FittedBins(cuts[0], (of_class[near] + extra) / (of_all[near] + 2 * extra))

    def follower(self, classes: Sequence[Label]) -> FollowingBins:
        """Return what keeps the bins of all classes counted online."""
        return FollowingBins(self.bins, self.edges, self.laplace)


@saved
@dataclass(frozen=True, eq=False)
class FittedIsotonic(Fitted):
    """Blocks of equal value, from score `first` to score `last`, all (blocks,) increasing."""

    first: Floats
    last: Floats
    value: Floats
    interpolation: str

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        f = finite_array("scores", scores)
        block = np.maximum(self.first.searchsorted(f, side="right") - 1, 0)
        p: Floats = self.value[block]
        if self.interpolation == "linear":
            gap = np.flatnonzero((f > self.last[block]) & (block < len(self.first) - 1))
            b = block[gap]
            # Halves where the difference overflows (elsewhere they might be equal); and never above the next value.
            with np.errstate(over="ignore"):
                unit = np.where(self.first[b + 1] - self.last[b] < np.inf, 1.0, 0.5)
            share = (unit * f[gap] - unit * self.last[b]) / (unit * self.first[b + 1] - unit * self.last[b])
            p[gap] = np.minimum(p[gap] + share * (self.value[b + 1] - p[gap]), self.value[b + 1])
        return p


@saved
class Isotonic(Parameters):
    """The nondecreasing map of least weighted squared error: pool adjacent violators, equal scores pooled first.

    Below the smallest score and above the largest the map is constant. All scores equal: the rate of
    positives. Scores of the wrong order: the same. One class only: 0 or 1. Separable: 0 or 1, too, and
    in the gap what the interpolation says. Where the map is 0 or 1, one error has infinite log loss.

    Parameters
    ----------
    interpolation : {"step", "linear"}, default "step"
        Between two neighbouring scores of the fit: "step" takes the value of the lower one, "linear" goes
        straight from one value to the other.

    References
    ----------
    Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> fitted = Isotonic("linear").fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted([-1.0, 0.5, 1.5, 9.0])
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    def __init__(self, interpolation: str = "step") -> None:
        if not isinstance(interpolation, str) or interpolation not in ("step", "linear"):
            raise ValueError(f"interpolation must be 'step' or 'linear', got {interpolation!r}")
        self.interpolation = interpolation

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedIsotonic:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        """
        f, y, w = binary_examples(scores, labels, weights)
        order = f.argsort(kind="stable")
        f = f[order]
        w = w[order]
        distinct = np.flatnonzero(np.append(True, f[1:] > f[:-1]))
        totals = np.add.reduceat(w, distinct)
        first, value = pool(np.add.reduceat(w * y[order], distinct), totals)
        f = f[distinct]
        last = np.append(first[1:], len(f)) - 1
        return FittedIsotonic(f[first], f[last], value, self.interpolation)

    def follower(self, classes: Sequence[Label]) -> FollowingIsotonic:
        """Return what keeps the fits of all classes online."""
        return FollowingIsotonic(self.interpolation == "linear")
