"""The examples that a machine has learned: what each is, in order of arrival, and where its object is kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from venn.machines.machine import doubled, grown
from venn.prediction import Integers
from venn.saved import checked_keys, held_codes, held_finite, held_rows


class ExampleTable:
    """The examples of a machine, in order of arrival; the object of example i is kept at place i.

    Parameters
    ----------
    store : ObjectStore
        Of their objects.
    below : int, optional
        Number of classes; None where labels are numbers.

    Attributes
    ----------
    n : int
        Number of examples.
    codes : (>= n,) int64 or float64
        Class of each example, or its label.
    weights : (>= n,) float64
        Weight of each example, without that of its class.
    """

    def __init__(self, store: Any, below: int | None = None) -> None:
        self.store = store
        self.below = below
        self.n = 0
        self.codes: Any = np.zeros(0, np.float64 if below is None else np.int64)
        self.weights = np.zeros(0)

    def make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        if n > len(self.codes):
            room = doubled(len(self.codes), n)
            self.codes, self.weights = grown(self.codes, room), grown(self.weights, room)

    def append(self, code: float, weight: float = 1.0) -> None:
        """Take in an example: the last one."""
        self.make_room(self.n + 1)
        self.codes[self.n], self.weights[self.n] = code, weight
        self.n += 1

    def remove(self, i: int) -> None:
        """Take out the i-th example; later ones move up."""
        n, self.n = self.n, self.n - 1
        for values in (self.codes, self.weights):
            values[i : n - 1] = values[i + 1 : n]

    @property
    def state(self) -> dict[str, Any]:
        """Codes and weights."""
        return {"codes": self.codes[: self.n], "weights": self.weights[: self.n]}

    def restore(self, state: Any) -> None:
        """Take over a `state` of the objects in the store, or raise a ValueError if it is none."""
        checked_keys("examples", state, self.state)
        n = self._held(state)
        if self.below is None:
            held_finite("codes", state["codes"], (n,))
        else:
            held_codes("codes", state["codes"], (n,), 0, self.below)
        if not (held_finite("weights", state["weights"], (n,)) > 0).all():
            raise ValueError("weights must be > 0")
        self.make_room(n)
        self.codes[:n], self.weights[:n] = state["codes"], state["weights"]
        self.n = n

    def _held(self, state: dict[str, Any]) -> int:
        """Return the number of examples of a state."""
        return self.store.n


class PlacedTable(ExampleTable):
    """The same where examples of equal objects share a place.

    Places are numbered from 0 on, without a gap: where the last example has left a place, the contents of the last
    place move there. What a machine keeps by place, in arrays of its own, it moves itself.

    Parameters
    ----------
    by_class : bool, default False
        Whether examples of equal objects share a place only where they are of one class.

    Attributes
    ----------
    count : int
        Number of places.
    places : (>= n,) int64
        Place of each example.
    """

    def __init__(self, store: Any, below: int, by_class: bool = False) -> None:
        super().__init__(store, below)
        self.by_class = by_class
        self.places = np.zeros(0, np.int64)
        self._where: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []  # by place

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self._keys)

    def _key(self, content: bytes, code: int) -> Hashable:
        return (content, code) if self.by_class else content

    def find(self, content: bytes, code: int = 0) -> int:
        """Return the place of examples of this object (and class); where there are none, the one after the last."""
        return self._where.get(self._key(content, code), len(self._keys))

    def at(self, place: int) -> Integers:
        """Return the examples at a place, in order of arrival."""
        return np.flatnonzero(self.places[: self.n] == place)

    def make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        super().make_room(n)
        if len(self.places) < len(self.codes):
            self.places = grown(self.places, len(self.codes))

    def put(self, content: bytes, code: int, weight: float = 1.0) -> int:
        """Take in an example of this object, the last one; return its place."""
        key = self._key(content, code)
        place = self._where.setdefault(key, len(self._keys))
        if place == len(self._keys):
            self._keys.append(key)
        self.append(code, weight)
        self.places[self.n - 1] = place
        return place

    def remove(self, i: int) -> None:
        """Take out the i-th example; later ones move up. Its place stays."""
        super().remove(i)
        self.places[i : self.n] = self.places[i + 1 : self.n + 1]

    def drop(self, place: int) -> int:
        """Give up a place without examples; return the last place, whose contents are to move there."""
        del self._where[self._keys[place]]
        key = self._keys.pop()
        last = len(self._keys)
        if place != last:
            self._keys[place], self._where[key] = key, place
            places = self.places[: self.n]
            places[places == last] = place
        return last

    @property
    def state(self) -> dict[str, Any]:
        """Codes, weights and places."""
        return super().state | {"places": self.places[: self.n]}

    def _held(self, state: dict[str, Any]) -> int:
        return held_rows("codes", state["codes"])

    def restore(self, state: Any) -> None:
        """Take over a `state` of the objects in the store, or raise a ValueError if it is none."""
        super().restore(state)
        n, m = self.n, self.store.n
        places = self.places[:n] = held_codes("places", state["places"], (n,), 0, m)
        if not np.bincount(places, minlength=m).all():
            raise ValueError(f"places must be all of {m}, got {np.unique(places).size} of them")
        codes = np.zeros(m, np.int64)
        codes[places] = self.codes[:n]
        self._keys = [self._key(self.store.key(place), code) for place, code in enumerate(codes.tolist())]
        self._where = {key: place for place, key in enumerate(self._keys)}
        if len(self._where) < m:
            raise ValueError("objects of different places must differ")
