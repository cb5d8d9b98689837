"""Merging what calibration examples leave behind: parts of them merge to the whole."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from venn.pickled import same_content
from venn.schedules import NoTraining


def checked_alike(one: Any, other: Any, parts: dict[str, tuple[Any, Any]]) -> None:
    """Refuse to merge what does not belong together.

    Parameters
    ----------
    one, other : objects to be merged
    parts : dict of str to pair
        What must be the same of both, by the name that a message gives it; compared by their reprs.

    Raises
    ------
    TypeError
        They are of different classes.
    ValueError
        A part differs; the message names it.
    """
    if type(one) is not type(other):
        raise TypeError(
            f"other must be a {type(one).__name__}, to be merged with one, got a {type(other).__name__}: {other!r}"
        )
    for name, (own, others) in parts.items():
        if repr(own) != repr(others):
            raise ValueError(f"other must have the {name} {own!r}, to be merged, got {others!r}")


class Mergeable:
    """Base of readers of calibration scores whose parts merge.

    A merged reader is a new one, neither part changes. It answers as one that was told the examples of both, to the
    last bit, whatever the order and grouping of merges; a fresh one changes nothing.
    """

    def _parameters(self) -> dict[str, Any]:
        """Return what the constructor takes, in its order, by the names that messages give them."""
        raise NotImplementedError

    def _hold(self, one: Self, other: Self) -> None:
        """Let a fresh reader hold the examples of both."""
        raise NotImplementedError

    def fresh(self) -> Self:
        """Return one with the same parameters that has been told nothing."""
        return type(self)(*self._parameters().values())

    def merge(self, other: Self) -> Self:
        """Return a new reader that has been told the examples of both.

        Raises
        ------
        TypeError, ValueError
            They do not belong together.
        """
        if type(other) is type(self):
            theirs = other._parameters()
            parts = {name: (_plain(own), _plain(theirs[name])) for name, own in self._parameters().items()}
        else:
            parts = {}
        checked_alike(self, other, parts)
        both = self.fresh()
        both._hold(self, other)
        return both


def _plain(value: Any) -> Any:
    # The repr of an array rounds.
    return value.tolist() if isinstance(value, np.ndarray) else value


def merged(one: Any, other: Any) -> Any:
    """Return an inductive predictor that has calibrated on the examples of both; see `Inductive.merge`."""
    checked_alike(one, other, {})
    checked_unordered(one)
    checked_unordered(other)
    _same_scorer(one._given, other._given)
    alike = copy.copy(other)
    alike._given = one._given  # the same, but its repr may hold an address
    checked_alike(one, alike, {"parameters of": (one, alike)})
    if None not in (one._features, other._features) and one._features != other._features:
        raise ValueError(f"other must have seen objects of {one._features} features, got {other._features}")
    both = blank(one)
    both._reader = one._reader.merge(other._reader)
    both.n = one.n + other.n
    both._features = other._features if one._features is None else one._features
    return both


def blank(predictor: Any) -> Any:
    """Return an inductive predictor with the same parameters and the same scorer that has calibrated on nothing."""
    new = copy.copy(predictor)
    new._reader = predictor._reader.fresh()
    new.n, new._asked = 0, None
    return new


def checked_unordered(predictor: Any) -> None:
    """Refuse a predictor that treats examples by their order: parts have none between them."""
    if type(predictor.schedule) is not NoTraining:
        raise ValueError(
            f"{type(predictor).__name__} must be by NoTraining(), to be merged: by {predictor.schedule!r} it hangs on "
            "the number of the examples before which of them train or calibrate"
        )


def _same_scorer(one: Any, other: Any) -> None:
    # By content: a scorer that has been to another process is a copy.
    try:
        same = same_content(one, other)
    except Exception as error:
        raise ValueError(
            f"other must have the scorer {one!r}, to be merged, got one that cannot be compared with it: {error}"
        ) from error
    if not same:
        got = "one that prints the same, of another content" if repr(one) == repr(other) else repr(other)
        raise ValueError(f"other must have the scorer {one!r}, to be merged, got {got}")
