"""Base of machines that keep the objects themselves, and what they answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from venn.machines.base import BaseHypotheses
from venn.machines.checks import clean_object, code_of
from venn.machines.examples import PlacedTable
from venn.machines.machine import Bag, ScoreTable, Tables, doubled, grown
from venn.machines.store import ObjectStore, Storing
from venn.prediction import Floats, Integers, Label
from venn.saved import base, checked_keys, held_array

#: Sets the scores (c, m + 1) of all columns, deleted ones or not: where the new object is not of a class, where it is.
Fill: TypeAlias = Callable[[bool, Floats, Floats], None]


@base
class ObjectMachine(Storing):
    """Base of machines that keep one column for each distinct example: object and class.

    The new object stands in the column after the last.
    """

    deletes_exactly = True
    residual = 0.0  # nothing is solved
    # Norm of an object. Distances are then at most 2e8: below the 1e9 of a class without examples.
    _largest: ClassVar[float] = 1e8
    _absent: ClassVar[float] = -1e9

    def _new_store(self) -> ObjectStore:
        return ObjectStore(None, True)

    def _new_examples(self) -> PlacedTable:
        return PlacedTable(self._store, len(self.classes), by_class=True)  # a place is a column

    def derive(self) -> None:
        """Make room for the columns, of examples of one class each."""
        super().derive()
        m, places = self._count, self._examples.places[: self.n]
        self._width = 0
        self._labels, self._weights = np.zeros((2, 0), np.int64)  # class of each column, and number of its examples
        self._make_room(m, self._store.features or 0)
        self._labels[places] = self._examples.codes[: self.n]
        self._weights[:m] = np.bincount(places, minlength=m)

    @property
    def _count(self) -> int:
        return self._examples.count

    def _make_room(self, columns: int, features: int) -> None:
        """Make room for `columns` columns; capacities double."""
        if features != self._width:  # nothing is learned yet: only then may objects of another length come
            self._width = features
            self._new_features(features)
        self._store.make_room(columns)
        if columns > len(self._labels):
            room = doubled(len(self._labels), columns)
            self._labels, self._weights = grown(self._labels, room), grown(self._weights, room)
            self._new_room(room)

    def _new_features(self, features: int) -> None:
        """Make room for objects of another length; nothing is learned yet."""

    def _new_room(self, room: int) -> None:
        """Make room for more columns."""

    @abstractmethod
    def _suppose(self) -> Floats:
        """Prepare for the object in the column after the last; return its (c,) scores without it."""

    @abstractmethod
    def _fill(self, new: bool) -> Fill:
        """Return what sets the scores of all columns; without a new object those of the last column mean nothing."""

    @abstractmethod
    def _commit(self, code: int, column: int) -> None:
        """Learn that the object asked about, to be kept in `column`, is of a class."""

    @abstractmethod
    def _part_with(self, code: int, column: int) -> None:
        """Forget one example of a class in `column`; weight, history and `n` already exclude it."""

    def _move(self, column: int, to: int) -> None:
        """Move everything else that is kept by column."""

    def _bag(self, deleted: bool) -> Bag:
        m, c = self._count, len(self.classes)
        self._make_room(m + 1, self._columns.shape[0])
        negative, positive = np.empty((2, c, m + 1))
        self._fill(False)(deleted, negative, positive)
        counts = np.zeros((m, c), np.int64)
        counts[np.arange(m), self._labels[:m]] = self._weights[:m]
        return Bag(negative[:, :m].copy(), counts)

    @property
    def bag(self) -> Bag:
        """Training scores now, by distinct example."""
        return self._bag(False)

    @property
    def deleted_bag(self) -> Bag:
        """Deleted scores now, by distinct example."""
        return self._bag(True)

    def _kept(self, x: Any) -> Floats:
        clean = clean_object(x, self._store.features)
        # The largest feature is checked first: squares could overflow.
        norm = float(np.abs(clean).max())
        if norm <= self._largest:
            norm = float(np.linalg.norm(clean))
        if norm > self._largest:
            raise ValueError(f"x must have a norm of at most {self._largest:g}, got {norm:g}: scale the features")
        return clean

    def hypotheses(self, x: Any) -> ObjectHypotheses:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Remembered until a label is learned or another object asked about; asking changes no later answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.answer(x)

    def _solved_for(self, x: Floats, key: bytes, weight: float) -> ObjectHypotheses:
        self.forget()
        m = self._count
        self._make_room(m + 1, x.size)
        self._store.put(m, x)
        self._labels[m] = self._weights[m] = 0
        test_scores = self._suppose()
        return ObjectHypotheses(
            key, test_scores, self._fill(True), self._columns, self._labels[: m + 1], self._weights[: m + 1],
            self._examples.places[: self.n],
        )  # fmt: skip

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""
        return self.hypotheses(x).test_scores.copy()

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        """
        code = code_of(y, self._codes)
        if self._begun(x, y):
            return
        key = self.answer(x).key
        self.forget()
        column = self._examples.find(key, code)
        self._commit(code, column)
        self._labels[column] = code
        self._weights[column] += 1
        self._examples.put(key, code)
        self._store.keep(column)

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then, to the last bit, the one that has learned all others.

        It costs about k + 1 steps where nearest examples are kept, and one where centroids are.

        Predictors that number their steps, as `Conformal` does, need a `SlidingWindow` around the machine.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Place of the example in order of arrival; later ones move up.

        Raises
        ------
        ValueError, TypeError
            For any other `i`; nothing changes.

        Examples
        --------
        >>> import venn
        >>> machine = venn.machines.NearestNeighbours(1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.scores([0.1])
        array([1., 1.])
        >>> machine.unlearn_one()
        >>> machine.scores([0.1])
        array([0., 1.])
        """
        i = self._leaving(i)
        self.forget()
        column = int(self._examples.places[i])
        self._examples.remove(i)
        self._weights[column] -= 1
        self._part_with(int(self._labels[column]), column)
        if self._weights[column] > 0:
            return
        last = self._examples.drop(column)  # it takes the place of the column that is empty now
        self._store.drop(column, last)
        self._labels[column], self._weights[column] = self._labels[last], self._weights[last]
        self._move(last, column)
        if self.n == 0:
            self._store.clear()

    # -------------------------------------------------------------------- state

    @abstractmethod
    def _arrays(self, m: int) -> dict[str, Any]:
        """Return what else is kept of m columns, by name: the filled corners of arrays."""

    @property
    def state(self) -> dict[str, Any]:
        """The objects, the examples, and what else is kept of them."""
        m = self._count
        return super().state | {"arrays": self._arrays(m) if m else None}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        m = self._count
        if m == 0:
            return
        own = self._arrays(m)
        checked_keys("arrays", state["arrays"], own)
        for name, corner in own.items():
            corner[...] = held_array(name, state["arrays"][name], corner.shape, corner.dtype)
        self._check_arrays(m)

    def _check_arrays(self, m: int) -> None:
        """Raise a ValueError where loops over the arrays of m columns, just taken over, would not end."""


class ObjectHypotheses(BaseHypotheses):
    """Scores of all examples by a machine, for each label that the new object may have.

    Parameters
    ----------
    fill : callable
        Sets the scores of all columns.
    columns : (d, > m) float64
        Objects by column, the new one last.
    codes, weights : (m + 1,) int64
        Class and number of the examples of each column.
    history : (n,) int64
        Column of each example, in order of arrival.
    """

    def __init__(
        self,
        key: bytes,
        test_scores: Floats,
        fill: Fill,
        columns: Floats,
        codes: Integers,
        weights: Integers,
        history: Integers,
    ) -> None:
        super().__init__(key, test_scores)
        self._fill, self._columns, self._codes, self._weights, self._history = fill, columns, codes, weights, history
        self._tables: dict[bool, ScoreTable] = {}

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        self.check_current()
        return self._history

    def tables(self, deleted: bool) -> Tables:
        """Return the scores of all examples, one table for all hypotheses."""
        self.check_current()
        c, m = self.test_scores.size, len(self._codes) - 1
        if deleted not in self._tables:
            negative, positive = np.empty((2, c, m + 1))
            self._fill(deleted, negative, positive)
            self._tables[deleted] = ScoreTable(negative, positive, self._codes, self._weights, m, self._columns)
        return [(self._tables[deleted], np.arange(c))]
