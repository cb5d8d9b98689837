"""A machine without a kernel for tests, exact online: distances to class centroids."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from venn.labels import checked_labels
from venn.machines.base import BaseHypotheses, PlacedTable
from venn.machines.machine import Bag, ScoreTable, Tables, code_of, doubled, grown
from venn.machines.objects import clean_object
from venn.machines.store import ObjectStore, Storing
from venn.prediction import Floats, Integers, Label
from venn.saved import checked_keys, component, param, restored_codes, restored_finite

#: Sets the scores (c, m + 1) of all columns, leave-one-out ones or not: where the new object is not of a class, where
#: it is.
Fill: TypeAlias = Callable[[bool, Floats, Floats], None]

LARGEST_NORM = 1e8  # of an object: distances are then at most 2e8, below what a class without examples has
ABSENT = -1e9  # score of a class without examples


def add_exactly(sums, errors, x):
    """Add x to sums, and the rounding error to errors: the sum then hardly depends on the order."""
    total = sums + x
    back = total - sums
    errors += (sums - (total - back)) + (x - back)
    sums[:] = total


def centroid_scores(columns, m, sums, errors, count, out):
    """Set out[:m] to minus the distances to the mean of `count` objects, or to ABSENT if there are none."""
    out[:m] = 0.0 if count else ABSENT
    if count:
        for column, centre in zip(columns, (sums + errors) / count, strict=True):
            out[:m] += (column[:m] - centre) ** 2
        out[:m] = -np.sqrt(out[:m])


def leave_out(labels, m, k, count, out):
    """Change scores for class k so that none of its `count` examples is in the centroid it is compared with.

    From one of them the mean of the others is count / (count - 1) times as far as the mean of all.
    """
    own = np.flatnonzero(labels[:m] == k)
    out[own] = out[own] * count / (count - 1) if count > 1 else ABSENT


class PlacedByClass(PlacedTable):
    """Examples of equal objects share a place only where they are of one class: a place is a column."""

    def _content(self, place):
        return super()._content(place) + bytes([self.codes[np.flatnonzero(self.places[: self.n] == place)[0]]])

    def find(self, content, code):
        return super().find(content + bytes([code]))

    def put(self, content, code):
        return super().put(content + bytes([code]), code)

    def drop(self, place):
        """Give up a place without examples; return the last place, whose contents are to move there."""
        del self._where[self._keys[place]]
        key = self._keys.pop()
        last = len(self._keys)
        if place != last:
            self._keys[place], self._where[key] = key, place
            self.places[: self.n][self.places[: self.n] == last] = place
        return last


@component
class NearestCentroid(Storing):
    """Minus the distances to the means of the classes; leave-one-out scores leave an example out of its own mean."""

    unnamed = 0
    exact_leave_one_out = True
    residual = 0.0  # nothing is solved

    classes: Any = param(checked_labels, 2)

    def _new_store(self) -> ObjectStore:
        return ObjectStore(None, True)

    def _new_examples(self) -> PlacedTable:
        return PlacedByClass(self._store, len(self.classes))

    def derive(self) -> None:
        """Make room for the columns, of examples of one class each, and the sums of the classes."""
        super().derive()
        m, places = self._examples.count, self._examples.places[: self.n]
        self._labels, self._weights = np.zeros((2, 0), np.int64)  # class of each column, and number of its examples
        self._new_sums(0)
        self._make_room(m, self._store.features or 0)
        self._labels[places] = self._examples.codes[: self.n]
        self._weights[:m] = np.bincount(places, minlength=m)

    def _new_sums(self, features: int) -> None:
        c = len(self.classes)
        self._sums, self._errors = np.zeros((2, c, features))
        self._sizes = np.zeros(c, np.int64)

    def _make_room(self, columns: int, features: int) -> None:
        """Make room for `columns` columns, the new object's after the last; capacities double."""
        if features != self._sums.shape[1]:  # nothing is learned yet: only then may objects of another length come
            self._new_sums(features)
        self._store.make_room(columns)
        if columns > len(self._labels):
            room = doubled(len(self._labels), columns)
            self._labels, self._weights = grown(self._labels, room), grown(self._weights, room)

    def _fill(self) -> Fill:
        """Return what sets the scores of all columns; without a new object those of the last column mean nothing."""
        columns, labels, m = self._columns, self._labels, self._examples.count
        all_sums, all_errors, sizes = self._sums, self._errors, self._sizes

        def fill(leave_one_out: bool, negative: Floats, positive: Floats) -> None:
            x = columns[:, m].copy()
            for k, size in enumerate(sizes):
                sums, errors = all_sums[k].copy(), all_errors[k].copy()
                centroid_scores(columns, m + 1, sums, errors, size, negative[k])
                add_exactly(sums, errors, x)
                centroid_scores(columns, m + 1, sums, errors, size + 1, positive[k])
                if leave_one_out:
                    leave_out(labels, m, k, size, negative[k])
                    leave_out(labels, m, k, size + 1, positive[k])
                    positive[k, m] = negative[k, m]

        return fill

    def _bag(self, leave_one_out: bool) -> Bag:
        m, c = self._examples.count, len(self.classes)
        self._make_room(m + 1, self._columns.shape[0])
        negative, positive = np.empty((2, c, m + 1))
        self._fill()(leave_one_out, negative, positive)
        counts = np.zeros((m, c), np.int64)
        counts[np.arange(m), self._labels[:m]] = self._weights[:m]
        return Bag(negative[:, :m].copy(), counts)

    @property
    def bag(self) -> Bag:
        """Training scores now, by distinct example."""
        return self._bag(False)

    @property
    def leave_one_out_bag(self) -> Bag:
        """Leave-one-out scores now, by distinct example."""
        return self._bag(True)

    def _kept(self, x: Any) -> Floats:
        clean = clean_object(x, self._store.features)
        # The largest feature is checked first: squares could overflow.
        norm = float(np.abs(clean).max())
        if norm <= LARGEST_NORM:
            norm = float(np.linalg.norm(clean))
        if norm > LARGEST_NORM:
            raise ValueError(f"x must have a norm of at most {LARGEST_NORM:g}, got {norm:g}: scale the features")
        return clean

    def hypotheses(self, x: Any) -> "ObjectHypotheses":
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Remembered until a label is learned or another object asked about; asking changes no later answer.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.answer(x)

    def _solved_for(self, x: Floats, key: bytes, weight: float) -> "ObjectHypotheses":
        self.forget()
        m = self._examples.count
        self._make_room(m + 1, x.size)
        self._store.put(m, x)
        self._labels[m] = self._weights[m] = 0
        scores, here = np.empty((len(self.classes), 1)), np.ascontiguousarray(x[:, None])
        for k, row in enumerate(scores):
            centroid_scores(here, 1, self._sums[k], self._errors[k], self._sizes[k], row)
        return ObjectHypotheses(
            key, scores[:, 0], self._fill(), self._columns, self._labels[: m + 1], self._weights[: m + 1],
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
        add_exactly(self._sums[code], self._errors[code], self._columns[:, self._examples.count].copy())
        self._sizes[code] += 1
        self._labels[column] = code
        self._weights[column] += 1
        self._examples.put(key, code)
        self._store.keep(column)

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then, to the last bit, the one that has learned all others."""
        i = self._leaving(i)
        self.forget()
        column = int(self._examples.places[i])
        self._examples.remove(i)
        self._examples.places[i : self.n] = self._examples.places[i + 1 : self.n + 1]
        self._weights[column] -= 1
        code = int(self._labels[column])
        # Summed anew: subtracting would leave rounding from the old sum.
        chosen = self._examples.places[: self.n][self._examples.codes[: self.n] == code]
        self._sums[code] = self._errors[code] = 0.0
        for place in chosen:
            add_exactly(self._sums[code], self._errors[code], self._columns[:, place])
        self._sizes[code] -= 1
        if self._weights[column] > 0:
            return
        last = self._examples.drop(column)  # it takes the place of the column that is empty now
        self._columns[:, column], self._store.n = self._columns[:, last], last
        self._labels[column], self._weights[column] = self._labels[last], self._weights[last]
        if self.n == 0:
            self._store.clear()

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """The objects, the examples, and the sums of the classes."""
        arrays = {"sums": self._sums.copy(), "errors": self._errors.copy(), "sizes": self._sizes.copy()}
        return super().state | {"arrays": arrays if self.n else None}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        if self.n == 0:
            return
        checked_keys("arrays", state["arrays"], ("sums", "errors", "sizes"))
        for name, own in (("sums", self._sums), ("errors", self._errors)):
            own[...] = restored_finite(name, state["arrays"][name], own.shape)
        self._sizes[...] = restored_codes("sizes", state["arrays"]["sizes"], self._sizes.shape, 0, self.n + 1)


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

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the scores of all examples, one table for all hypotheses."""
        self.check_current()
        c, m = self.test_scores.size, len(self._codes) - 1
        if leave_one_out not in self._tables:
            negative, positive = np.empty((2, c, m + 1))
            self._fill(leave_one_out, negative, positive)
            self._tables[leave_one_out] = ScoreTable(negative, positive, self._codes, self._weights, m, self._columns)
        return [(self._tables[leave_one_out], np.arange(c))]
