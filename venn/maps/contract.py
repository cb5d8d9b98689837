"""What maps share: checks of examples, the contracts of a map and its follower online, and followers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from venn._compiled.scaling import apply_bins, apply_isotonic, apply_platt, fit_bins, fit_isotonic, fit_platt
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, with_methods
from venn.prediction import Floats, Integers, Label
from venn.saved import checked_keys, restored_rows

# --------------------------------------------------------------------------------------------------------------- checks
# Checks of the examples that a calibrator or a map is fitted to: scores, labels, weights.


def finite_array(name: str, values: Any, dimensions: int = 1) -> Floats:
    """Return finite numbers as a new contiguous float64 array, -0.0 as 0.0, or say what is wrong with them."""
    shape = "a sequence" if dimensions == 1 else "rows"
    if np.ma.isMaskedArray(values):
        raise TypeError(f"{name} must have no masked values, got {values!r}")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu" and array.size > 0:
            raise TypeError
        clean = np.array(array, np.float64, order="C") + 0.0
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {shape} of numbers, got {values!r}") from None
    if clean.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimension{'s'[: dimensions > 1]}, got shape {clean.shape}")
    finite = np.isfinite(clean)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {clean[where]} at {where[0] if dimensions == 1 else where}")
    return clean


def binary_labels(name: str, labels: Any, n: int) -> Integers:
    """Return (n,) labels 0 and 1, or say what is wrong with them."""
    return _labels(name, labels, (n, 2), "biuf", "score", "0, 1, False or True")


def _labels(name: str, labels: Any, shape: tuple[int, int], kinds: str, each: str, wanted: str) -> Integers:
    """Return n labels, whole numbers below c of certain kinds of arrays, or say what is wrong with them."""
    n, c = shape
    if np.ma.isMaskedArray(labels):
        raise TypeError(f"{name} must have no masked values, got {labels!r}")
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(f"{name} must be {wanted}, got {labels!r}") from None
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"{name} must have shape ({n},), one label for each {each}, got {array.shape}")
    with np.errstate(invalid="ignore"):  # NaN
        codes = array.astype(np.int64) if array.dtype.kind in kinds else np.full(n, -1)
    wrong = (codes != array) | (codes < 0) | (codes >= c)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name} must be {wanted}, got {array[i]!r} at {i}")
    return codes


def weighed(weights: Any, n: int) -> Floats:
    """Return (n,) weights, 1 each by default, or say what is wrong with them."""
    clean = np.ones(n) if weights is None else finite_array("weights", weights)
    if len(clean) != n:
        raise ValueError(f"weights must have shape ({n},), one weight for each score, got {clean.shape}")
    if (clean < 0).any():
        i = int((clean < 0).argmax())
        raise ValueError(f"weights must be >= 0, got {clean[i]} at {i}")
    with np.errstate(over="ignore"):
        total = clean.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"weights must have a finite sum > 0, got {total} of {n} examples")
    return clean


def binary_examples(scores: Any, labels: Any, weights: Any) -> tuple[Floats, Integers, Floats]:
    """Return (n,) scores, labels and weights of the examples with weight > 0."""
    f = finite_array("scores", scores)
    y = binary_labels("labels", labels, len(f))
    w = weighed(weights, len(f))
    present = w > 0
    return f[present], y[present], w[present]


def class_examples(scores: Any, labels: Any, weights: Any) -> tuple[Floats, Integers, Floats]:
    """Return (n, c) scores, (n,) labels and weights of the examples with weight > 0."""
    f = finite_array("scores", scores, dimensions=2)
    n, c = f.shape
    if c < 2:
        raise ValueError(f"scores must have at least 2 columns, one for each class, got {c}")
    y = _labels("labels", labels, (n, c), "iu", "row of scores", f"integers from 0 to {c - 1}, positions of columns")
    w = weighed(weights, n)
    present = w > 0
    return f[present], y[present], w[present]


def class_scores(scores: Any, c: int) -> Floats:
    """Return (n, c) new scores, or say what is wrong with them."""
    f = finite_array("scores", scores, dimensions=2)
    if f.shape[1] != c:
        raise ValueError(f"scores must have {c} columns, one for each class, got {f.shape[1]}")
    return f


# ------------------------------------------------------------------------------------------------------------- contract
# The contracts of this room: a map, its follower online, and the edges of bins.


class FittedMap(Protocol):
    """What `fit` returns: a frozen function of scores."""

    def __call__(self, scores: Any) -> Floats:
        """Return the probabilities at new scores: (n,) of label 1, or (n, c) of all classes."""


class ScoreMap(Protocol):
    """Protocol of maps from scores to probabilities.

    Binary maps take (n,) scores and labels 0 and 1. Maps for several classes have a true attribute
    `of_all_classes` and take (n, c) scores and labels 0 .. c - 1, positions of columns. No map carries a
    guarantee.

    An example with weight w counts as w equal examples, one with weight 0 as none. All maps refuse scores that are not
    finite, weights that are negative, not finite or all 0, and lengths that differ.

    Online a map is fitted anew after every example, unless it has a method `follower(classes)` that returns a
    `Follower`. It may have `fit_counts`, which fits to counts at distinct scores without checking them: `(scores,
    of_class, of_all)`, each (n,), or `(scores, counts)`, each (c, n), for a map of all classes.
    """

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedMap:
        """Return the map fitted to the examples."""


class BinaryMap(Parameters):
    """Base of binary maps that are fitted to the weights at each score: examples are checked in one place.

    A map of your own has one method, `fit_counts`, and keeps its constructor's arguments in attributes of their names.

    Examples
    --------
    >>> import numpy as np
    >>> class Rate(BinaryMap):
    ...     def fit_counts(self, scores, of_class, of_all):
    ...         rate = of_class.sum() / of_all.sum()
    ...         return lambda scores: np.full(len(scores), rate)
    >>> Rate().fit([-1.0, 0.5, 2.0, 2.5], [0, 1, 1, 1])([0.0])
    array([0.75])
    """

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> Any:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        NotConverged
            A search does not reach its optimum: scores of some 1e150 beside ordinary ones.
        """
        f, y, w = binary_examples(scores, labels, weights)
        return self.fit_counts(f, w * y, w)

    def fit_counts(self, scores: Floats, of_class: Floats, of_all: Floats) -> Any:
        """Return the map fitted to counts, or weights > 0 in all, at each of (n,) scores."""
        raise NotImplementedError


class Follower(Protocol):
    """Keeps the maps of all classes fitted online.

    Its answers are a function of the examples of the last fit: an earlier fit may make the next one faster,
    but changes it in the last digits at most.
    """

    def fit(self, scores: Floats, positives: Integers, totals: Integers) -> None:
        """Fit to the examples there are now, at least one; the arrays are read only."""

    @property
    def state(self) -> dict[str, Any]:
        """The maps of the last fit."""

    def restore(self, state: dict[str, Any], c: int) -> None:
        """Take the maps of a `state`, of c classes; raise ValueError if it is not one."""

    def __call__(self, test_scores: Floats) -> Floats:
        """Return (c,) numbers >= 0, in proportion to the probabilities, at the (c,) scores of one object."""


class Edges(Protocol):
    """Where bins meet."""

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return (c, bins - 1) nondecreasing cuts for scores (c, m) with weights (m,) each.

        Bin 0 lies below the first cut; a score equal to a cut belongs to the bin above.
        """


def checked_map(name: str, score_map: Any) -> ScoreMap:
    """Return the map, or say what is wrong with it."""
    return with_methods(name, score_map, "an object with a method 'fit', such as Platt()", "fit")


# ------------------------------------------------------------------------------------------------------------ followers
# Maps kept fitted online, while examples join and all their scores move: one fit for each learned example.
#
# Arrays by class: `scores` (c, m) float64, `positives` (c, m) int64, the examples of class k at each distinct object,
# and `totals` (m,) int64, all examples there.


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
            if restored_rows(name, value) != c or value.ndim != 2 or value.dtype != np.float64 or np.isnan(value).any():
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


class Fitted:
    """Equality by value, and arrays that cannot be written to."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(vars(self).values(), vars(other).values(), strict=True))

    __hash__ = None  # type: ignore[assignment]
