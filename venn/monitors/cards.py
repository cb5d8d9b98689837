"""The base of scorecards: whole numbers by name, their merging, comparison and saving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn.monitors.sums import held_whole, rounded
from venn.parameters import class_codes
from venn.prediction import Label
from venn.saved import Saved, checked_keys, component, mergeable, own, param, same, state, taken_apart

Whole = dict[str, list[int]]


def plain_labels(name: str, classes: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels as Python objects, with the same repr and JSON wherever they come from; or refuse them."""
    return tuple(label.item() if isinstance(label, np.generic) else label for label in class_codes(classes))


def _held(name: str, values: Any, sizes: dict[str, int], *least: int) -> Whole:
    """Return whole numbers of a state by name, or say what they must be."""
    checked_keys(name, values, sizes)
    return {one: held_whole(f"{one} of {name}", values[one], size, *least) for one, size in sizes.items()}


def _zeros(sizes: dict[str, int]) -> Whole:
    return {name: [0] * size for name, size in sizes.items()}


@component
class Card(Saved):
    """Base of scorecards: counts and sums by name, all kept as whole numbers."""

    unnamed = 0

    classes: Sequence[Label] = param(plain_labels)

    _counts: Whole = state(_held, own(lambda card: card.counted), 0, start=own(lambda card: _zeros(card.counted)))
    _sums: Whole = state(_held, own(lambda card: card.summed), start=own(lambda card: _zeros(card.summed)))  # in units

    @property
    def counted(self) -> dict[str, int]:
        """How many counts there are of each name."""
        raise NotImplementedError

    @property
    def summed(self) -> dict[str, int]:
        """How many sums there are of each name."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of predictions."""
        return self._counts["n"][0]

    def merge(self, other: Self) -> Self:
        """Return the scorecard of the predictions of both, which do not change.

        Merging is exact: parts give the scorecard of the whole, to the last bit, whatever their order and grouping,
        and a fresh scorecard changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same parameters.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described.
        """
        mergeable(self, other)
        both = self.fresh()
        for part in (self, other):
            both.gather(*part.gathered)
        return both

    @property
    def gathered(self) -> tuple[Whole, Whole]:
        """Counts and exact sums, by name."""
        return self._counts, self._sums

    def gather(self, counts: Whole, sums: Whole) -> None:
        """Add counts and exact sums, those of all names."""
        for held, more in ((self._counts, counts), (self._sums, sums)):
            for name, values in held.items():
                held[name] = [a + b for a, b in zip(values, more[name], strict=True)]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and same(taken_apart(self), taken_apart(other))

    __hash__ = None  # type: ignore[assignment]

    def _mean(self, sum_: int) -> float:
        if not self.n:
            raise ValueError("means are of at least one prediction, got 0")
        return rounded(sum_, self.n)

    def _belongs(self, block: Any, *kinds: type[Any]) -> None:
        if type(block) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"block must be {names} for a {type(self).__name__}, got {block!r}")
        own = block.classes
        if own != self.classes:
            raise ValueError(f"block must be of the classes {self.classes!r}, got {own!r}")
