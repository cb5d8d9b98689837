"""The contracts of this room: a map, its follower online, and the edges of bins."""

from __future__ import annotations

from typing import Any, Protocol

from venn.maps.checks import binary_examples
from venn.parameters import Parameters, with_methods
from venn.prediction import Floats, Integers


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
