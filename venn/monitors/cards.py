"""The base of scorecards: whole numbers by name, their merging, comparison and saving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn.monitors.running import Running, State, held_count, held_sum
from venn.monitors.sums import rounded, terms
from venn.parameters import class_codes
from venn.prediction import Label
from venn.saved import mergeable


class Card(Running):
    """Base of scorecards: counts and sums by name, all kept as whole numbers."""

    def __init__(self, classes: Sequence[Label], counts: State, sums: State) -> None:
        self.classes = plain_labels(classes)
        self._counts: dict[str, list[int]] = {name: [0] * size for name, size in counts.items()}
        self._sums: dict[str, list[int]] = {name: [0] * size for name, size in sums.items()}  # in units

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
    def gathered(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Counts and exact sums, by name."""
        return self._counts, self._sums

    def gather(self, counts: dict[str, list[int]], sums: dict[str, list[int]]) -> None:
        """Add counts and exact sums, those of all names."""
        for own, more in ((self._counts, counts), (self._sums, sums)):
            for name, values in own.items():
                own[name] = [a + b for a, b in zip(values, more[name], strict=True)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Card) and self.state == other.state

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

    def _held(self) -> State:
        sums = {name: [terms(one) for one in values] for name, values in self._sums.items()}
        return {"counts": {name: list(values) for name, values in self._counts.items()}, "sums": sums}

    def take_over(self, held: State) -> None:
        """Go on from a `state`, having seen nothing."""
        taken: dict[str, dict[str, list[int]]] = {}
        for kind, own, read in (("counts", self._counts, held_count), ("sums", self._sums, held_sum)):
            given = held[kind]
            if not isinstance(given, dict) or {name: _size(v) for name, v in given.items()} != {
                name: len(values) for name, values in own.items()
            }:
                raise ValueError(f"state[{kind!r}] must hold lists {sorted(own)} as those of {self!r}, got {given!r}")
            taken[kind] = {name: [read(name, one) for one in values] for name, values in given.items()}
        self._counts, self._sums = taken["counts"], taken["sums"]


def plain_labels(classes: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels as Python objects, with the same repr and JSON wherever they come from; or refuse them."""
    return tuple(label.item() if isinstance(label, np.generic) else label for label in class_codes(classes))


def _size(values: Any) -> int | None:
    return len(values) if isinstance(values, list) else None
