"""Maps kept fitted online, while examples join and all their scores move: one fit for each learned example.

Arrays by class: `scores` (c, m) float64, `positives` (c, m) int64, the examples of class k at each distinct object,
and `totals` (m,) int64, all examples there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.scaling import apply_bins, apply_isotonic, apply_platt, fit_bins, fit_isotonic, fit_platt
from venn.machines.machine import NotConverged
from venn.maps.contract import Edges, FittedMap, Follower, ScoreMap
from venn.prediction import Floats, Integers, Label
from venn.saved import checked_keys, held_rows


class Following:
    """Base of followers whose maps are arrays, a row for each class."""

    def _wanted(self, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shape that a row of each array must have, from the shapes that they have."""
        raise NotImplementedError

    #: Attributes that hold the maps.
    held: tuple[str, ...]

    @property
    def state(self) -> dict[str, Any]:
        """The maps of the last fit, None before it."""
        return {name: getattr(self, name, None) for name in self.held}

    def restore(self, state: dict[str, Any], c: int) -> None:
        """Take the maps of a `state`, of c classes."""
        checked_keys("state of the maps", state, self.held)
        if all(value is None for value in state.values()):
            return
        for name, value in state.items():
            if held_rows(name, value) != c or value.ndim != 2 or value.dtype != np.float64 or np.isnan(value).any():
                raise ValueError(f"{name} must be rows of numbers, one for each of {c} classes, got {value!r}")
        shapes = [np.shape(value)[1:] for value in state.values()]
        if shapes != (wanted := self._wanted(shapes)) or shapes[-1] == (0,):
            raise ValueError(f"maps must have {wanted} numbers a class, got {shapes}")
        for name, value in state.items():
            setattr(self, name, np.array(value))


class Refitting:
    """Follows by fitting the map anew each time: one map, or one for each class.

    With `near` the map's `fit_counts` is given the last fit as well, to start from.
    """

    def __init__(self, score_map: ScoreMap, near: bool = False) -> None:
        self._map = score_map
        self._near = near
        self._of_all = bool(getattr(score_map, "of_all_classes", False))
        self.fitted: tuple[FittedMap, ...] = ()  # one for each class, or one for all

    def fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit to the examples there are now."""
        rows = [scores] if self._of_all else scores
        counts: list[tuple[Any, ...]]
        counts = [(positives,)] if self._of_all else [(positive, totals) for positive in positives]
        from_counts = getattr(self._map, "fit_counts", self._from_counts)
        if self._near and self.fitted:
            counts = [(*numbers, last) for numbers, last in zip(counts, self.fitted, strict=True)]
        self.fitted = tuple(from_counts(f, *numbers) for f, numbers in zip(rows, counts, strict=True))

    def _from_counts(self, scores: Floats, positives: Integers, totals: Integers | None = None) -> FittedMap:
        if totals is None:
            at, labels = positives.T.nonzero()
            return self._map.fit(scores.T[at], labels, positives[labels, at])
        labels = np.repeat([1, 0], len(totals))
        return self._map.fit(np.tile(scores, 2), labels, np.append(positives, totals - positives))

    @property
    def state(self) -> dict[str, Any]:
        """The maps of the last fit."""
        return {"fitted": self.fitted}

    def restore(self, state: dict[str, Any], c: int) -> None:
        """Take the maps of a `state`."""
        checked_keys("state of the maps", state, ("fitted",))
        fitted = state["fitted"]
        if not isinstance(fitted, tuple) or not all(callable(one) for one in fitted):
            raise ValueError(f"fitted must be maps, got {fitted!r}")
        self.fitted = fitted

    def __call__(self, test_scores: Floats) -> Floats:
        """Return (c,) probabilities, each by the map of its class, or all by the one map."""
        if self._of_all:
            return self.fitted[0](test_scores[None])[0]
        return np.array([one(test_scores[k : k + 1])[0] for k, one in enumerate(self.fitted)])


class FollowingPlatt(Following):
    """Sigmoids by Newton's method from the last optimum."""

    held = ("_maps",)

    _maps: Floats | None = None  # (c, 3) slope, offset, centre: u = slope * (f - centre) + offset

    def __init__(self, classes: Sequence[Label]) -> None:
        self._classes = tuple(classes)

    @property
    def coefficients(self) -> Floats:
        """(c, 2) A and B of p = 1 / (1 + exp(A f + B)) of each class; NaN before the first fit."""
        if self._maps is None:
            return np.full((len(self._classes), 2), np.nan)
        slope, offset, centre = self._maps.T
        return np.column_stack([slope, offset - slope * centre])

    def _wanted(self, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(3,)]

    def fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit to the examples there are now."""
        start = np.full((len(scores), 3), np.nan) if self._maps is None else self._maps
        maps, failed = fit_platt(scores, positives, totals, start)
        if failed >= 0:
            raise NotConverged(
                f"the sigmoid of class {self._classes[failed]!r} must converge, got no optimum for scores "
                f"from {scores[failed].min()} to {scores[failed].max()}"
            )
        self._maps = maps

    def __call__(self, test_scores: Floats) -> Floats:
        """Return (c,) probabilities, each by the sigmoid of its class."""
        return apply_platt(self._maps, test_scores)


def binned(
    scores: Floats, positives: NDArray[Any], totals: NDArray[Any], bins: int, edges: Edges, laplace: bool
) -> tuple[Floats, Floats]:
    """Return the (c, bins - 1) cuts, and the (c, bins) rates between them; `positives` and `totals` may be weights."""
    cuts = np.array(edges.cuts(scores, totals, bins), np.float64, order="C")
    good = cuts.shape == (len(scores), bins - 1)
    if good:
        rates, good = fit_bins(scores, positives, totals, cuts, laplace)
    if not good:
        rows = "one row" if len(scores) == 1 else f"{len(scores)} rows"
        raise ValueError(f"edges must give {rows} of {bins - 1} finite nondecreasing cuts, got {cuts!r}")
    return cuts, rates


class FollowingBins(Following):
    """Bins counted anew each time, in compiled code."""

    held = ("_cuts", "_rates")

    def __init__(self, bins: int, edges: Edges, laplace: bool) -> None:
        self._bins, self._edges, self._laplace = bins, edges, laplace

    def _wanted(self, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(self._bins - 1,), (self._bins,)]

    def fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit to the examples there are now."""
        self._cuts, self._rates = binned(scores, positives, totals, self._bins, self._edges, self._laplace)

    def __call__(self, test_scores: Floats) -> Floats:
        """Return (c,) rates, each of its class in the bin of its score."""
        return apply_bins(self._cuts, self._rates, test_scores)


class FollowingIsotonic(Following):
    """Isotonic fits that remember the order of the scores, which changes little from fit to fit."""

    held = ("_first", "_last", "_value")  # the order only saves time

    _order: Integers | None = None  # (c, m) sorts the scores of the last fit

    def __init__(self, linear: bool) -> None:
        self._linear = linear

    def _wanted(self, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return shapes[:1] * 3

    def fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit to the examples there are now."""
        # Objects join at the end; if there were more before, the last order means nothing.
        order = self._order
        if order is None or order.shape[1] > scores.shape[1]:
            order = np.zeros((len(scores), 0), np.int64)
        self._order, self._first, self._last, self._value = fit_isotonic(scores, positives, totals, order)

    def __call__(self, test_scores: Floats) -> Floats:
        """Return (c,) values, each of the fit of its class."""
        return apply_isotonic(self._first, self._last, self._value, self._linear, test_scores[:, None])[:, 0]


def follower_of(score_map: ScoreMap, classes: Sequence[Label]) -> Follower:
    """Return the follower of a map: its own, if it has one."""
    own = getattr(score_map, "follower", None)
    return Refitting(score_map) if own is None else own(classes)
