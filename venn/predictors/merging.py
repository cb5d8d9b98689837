"""Readers of calibration scores, and merging: the states of the parts make the state of the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from venn.description import same_content
from venn.prediction import Bools, Floats, Integers
from venn.saved import StateCheck, arguments_of, checked_keys


def checked_alike(one: Any, other: Any, parts: dict[str, tuple[Any, Any]]) -> None:
    """Refuse to merge objects that do not belong together.

    Parameters
    ----------
    one, other : objects to be merged
    parts : dict of str to pair
        What both must have in common, by the name that a message gives it; compared by repr.

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


class MergingReader(ABC):
    """Base of what makes predictions from the scores of calibration examples, all by one scorer."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all calibration examples."""

    @abstractmethod
    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""

    @abstractmethod
    def predict(self, scores: Floats) -> Any:
        """Return the predictions for n objects of (n, c) scores, each as if it were alone; leaves no trace."""

    def predict_one(self, scores: Floats) -> Any:
        """Return the prediction for one object of (1, c) scores; leaves no trace."""
        return self.predict(scores)[0]

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Any:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        blocks = [self.predict(scores[:0])]
        for i in range(len(scores)):
            one = slice(i, i + 1)
            blocks.append(self.predict(scores[one]))
            if calibrates[i]:
                self.add(scores[one], codes[one])
        return self.join(blocks)

    @abstractmethod
    def nothing(self, n: int) -> Any:
        """Return the predictions for n objects before there is a scorer."""

    def join(self, blocks: list[Any]) -> Any:
        """Return one block of all, in order."""
        return type(blocks[0]).join(blocks)

    @property
    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The calibration examples."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Hold the calibration examples of a `state`, or raise a ValueError if it is not one."""


class Mergeable(MergingReader):
    """Base of readers whose parts can be merged into the whole.

    Merging makes a new reader and changes neither part. It answers like one that has received the examples of both, to
    the last bit, whatever the order and grouping of merges; a fresh one changes nothing.
    """

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, by name: attributes hold them."""
        return {name: getattr(self, name) for name in arguments_of(type(self))}

    @abstractmethod
    def take(self, state: dict[str, Any]) -> None:
        """Take in the calibration examples of the `state` of one with the same parameters."""

    #: What each part of the state is.
    holds: ClassVar[Mapping[str, StateCheck]] = {}

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError for what is no `state`."""
        checked_keys("state of the reader", state, self.state)
        for name, check in self.holds.items():
            check(name, state[name], self)

    def restore(self, state: dict[str, Any]) -> None:
        """Hold the calibration examples of a `state`, or raise a ValueError if it is not one."""
        self.refuse(state)
        self.clear()
        self.take(state)

    def fresh(self) -> Self:
        """Return a reader with the same parameters and no examples."""
        return type(self)(**self.parameters)

    def merge(self, other: Self) -> Self:
        """Return a new reader of the examples of both.

        Raises
        ------
        TypeError, ValueError
            They do not belong together.
        """
        parts = {}
        if type(other) is type(self):
            theirs = other.parameters
            parts = {name: (_plain(own), _plain(theirs[name])) for name, own in self.parameters.items()}
        checked_alike(self, other, parts)
        both = self.fresh()
        both.take(self.state)
        both.take(other.state)
        return both


def sorted_rows(*parts: Floats) -> Floats:
    """Return the rows of all arrays sorted by their columns, so that the order in which they came is lost."""
    rows = np.concatenate(parts)
    return rows[np.lexsort(rows.T[::-1])]


def _plain(value: Any) -> Any:
    # The repr of an array rounds.
    return value.tolist() if isinstance(value, np.ndarray) else value


class Calibration(NamedTuple):
    """What an inductive predictor keeps of its calibration examples."""

    reader: Any
    n: int  #: number of examples
    features: int | None  #: of their objects

    def merge(self, other: Calibration) -> Calibration:
        """Return the calibration of both together.

        Raises
        ------
        ValueError
            Their objects have different numbers of features.
        """
        if None not in (self.features, other.features) and self.features != other.features:
            raise ValueError(
                f"other must have seen objects of {self.features} features, to be merged, got {other.features}"
            )
        features = other.features if self.features is None else self.features
        return Calibration(self.reader.merge(other.reader), self.n + other.n, features)


def checked_parts(one: Any, other: Any) -> None:
    """Refuse to merge inductive predictors that differ in parameters or scorer, or depend on the order of examples.

    Raises
    ------
    TypeError, ValueError
        The message names the difference.
    """
    checked_alike(one, other, {})
    checked_unordered(other)
    _check_scorer(one.given, other.given)
    alike = type(other).made_of({**other.parameters, "machine": one.given})  # a machine's repr may hold an address
    checked_alike(one, alike, {"parameters of": (one, alike)})


def checked_unordered(predictor: Any) -> None:
    """Refuse a predictor that depends on the order of examples, since parts have no order."""
    if not predictor.schedule.alike:
        raise ValueError(
            f"{type(predictor).__name__} must have the schedule NoTraining(), to be merged: {predictor.schedule!r} "
            "lets examples train or calibrate by their order"
        )


def _check_scorer(one: Any, other: Any) -> None:
    # Compared by content: a scorer that was sent to another process is a copy.
    try:
        same = same_content(one, other)
    except Exception as error:
        raise ValueError(
            f"other must have the scorer {one!r}, to be merged, got one that cannot be compared with it: {error}"
        ) from error
    if not same:
        got = "one that prints the same, of another content" if repr(one) == repr(other) else repr(other)
        raise ValueError(f"other must have the scorer {one!r}, to be merged, got {got}")
