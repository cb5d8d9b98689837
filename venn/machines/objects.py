"""Machines that keep the objects themselves: nearest neighbours and class centroids, exact online."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from venn._compiled.neighbours import (
    Levels,
    add_all_exactly,
    add_exactly,
    centroid_scores,
    join,
    leave_out,
    look_around,
    part_with,
    vote_table,
    welcome,
)
from venn._compiled.rows import squares_row
from venn.machines.base import BaseHypotheses, BaseMachine
from venn.machines.checks import checked_place, clean_object, code_of
from venn.machines.machine import Bag, ScoreTable, Tables, grown
from venn.machines.objects_kept import KeptCentroid, KeptNeighbours
from venn.machines.store import doubled
from venn.parameters import class_codes, integer
from venn.prediction import Floats, Integers, Label
from venn.saved import saved

#: Sets the scores (c, m + 1) of all columns, deleted ones or not: where the new object is not of a class, where it is.
Fill: TypeAlias = Callable[[bool, Floats, Floats], None]


class ObjectMachine(BaseMachine):
    """Base of machines that keep one column for each distinct example: object and class.

    The new object stands in the column after the last.
    """

    deletes_exactly = True
    residual = 0.0  # nothing is solved
    # Norm of an object. Distances are then at most 2e8: below the 1e9 of a class without examples.
    _largest: ClassVar[float] = 1e8
    _absent: ClassVar[float] = -1e9

    def __init__(self, classes: Sequence[Label]) -> None:
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.n = 0
        self._features: int | None = None
        self._where: dict[tuple[bytes, int], int] = {}  # column of each distinct example
        self._count = 0  # columns
        self._room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._labels = np.zeros(0, np.int64)
        self._weights = np.zeros(0, np.int64)
        self._history = np.zeros(64, np.int64)  # column of each example

    def _make_room(self, columns: int, features: int) -> None:
        """Make room for `columns` columns; capacities double."""
        if features != self._columns.shape[0]:
            # Nothing is learned yet: only then may objects of another length come.
            self._columns = np.zeros((features, self._room))
            self._new_features(features)
        if columns <= self._room:
            return
        room = self._room = doubled(self._room, columns)
        self._columns = grown(self._columns, features, room)
        self._labels = grown(self._labels, room)
        self._weights = grown(self._weights, room)
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

    def _clean(self, x: Any) -> Floats:
        clean = clean_object(x, self._features)
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
        x = self._clean(x)
        key = x.tobytes()
        known: ObjectHypotheses | None = self._remembered(key)
        if known is not None:
            return known
        self.forget()
        m = self._count
        self._make_room(m + 1, x.size)
        self._columns[:, m] = x
        self._labels[m] = self._weights[m] = 0
        test_scores = self._suppose()
        answer = self._asked = ObjectHypotheses(
            key, test_scores, self._fill(True), self._columns, self._labels[: m + 1], self._weights[: m + 1],
            self._history[: self.n],
        )  # fmt: skip
        return answer

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""
        return self.hypotheses(x).test_scores.copy()

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise, and learn nothing."""
        self._clean(x)
        code_of(y, self._codes)

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        """
        code = code_of(y, self._codes)
        key = self.hypotheses(x).key
        self.forget()
        self._features = self._columns.shape[0]
        column = self._where.setdefault((key, code), self._count)
        self._commit(code, column)
        self._labels[column] = code
        self._weights[column] += 1
        self._count = max(self._count, column + 1)
        if self.n == len(self._history):
            self._history = grown(self._history, 2 * self.n)
        self._history[self.n] = column
        self.n += 1

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
        >>> machine = NearestNeighbours(1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.scores([0.1])
        array([1., 1.])
        >>> machine.unlearn_one()
        >>> machine.scores([0.1])
        array([0., 1.])
        """
        i = checked_place(i, self.n)
        self.forget()
        column = int(self._history[i])
        self._history[i : self.n - 1] = self._history[i + 1 : self.n]
        self._weights[column] -= 1
        self.n -= 1
        self._part_with(int(self._labels[column]), column)
        if self._weights[column] == 0:
            self._drop(column)
        if self.n == 0:
            self._features = None

    def _drop(self, column: int) -> None:
        """Remove a column without examples; the last one takes its place."""
        last = self._count - 1
        del self._where[self._columns[:, column].tobytes(), int(self._labels[column])]
        if column != last:
            self._where[self._columns[:, last].tobytes(), int(self._labels[last])] = column
            for values in (self._columns, self._labels, self._weights):
                values[..., column] = values[..., last]
            history = self._history[: self.n]
            history[history == last] = column
            self._move(last, column)
        self._count = last


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


@saved
class NearestNeighbours(KeptNeighbours, ObjectMachine):
    """Votes of the k nearest examples, by Euclidean distance.

    The score of a class is the number of its examples among the k nearest. All examples at the distance of the k-th
    vote too, so that no tie is cut and no vote depends on the order of arrival: the computed distance of two objects is
    the same whichever came first. Deleted scores are the votes of the *other* examples; in training scores each example
    is its own nearest one.

    `Deleted(Argmax())` on it is the nearest-neighbour taxonomy: the majority label of the k nearest others, ties to
    the first class. `Deleted(Dissent())` also distinguishes the number of dissenting neighbours. The votes on a new
    object do not depend on its label, so `CategoryClass()` applies.

    A step costs O(n d); memory is O(n (d + k c)).

    Parameters
    ----------
    k : int >= 1
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Always 0: nothing is solved.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range, or an object of norm above 1e150; nothing is learned from it.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", nearest-neighbour taxonomies.

    Examples
    --------
    >>> import venn
    >>> machine = NearestNeighbours(3, classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    >>> machine.scores([0.72])  # 1.0 and 1.1, and 0.3 nearer than 1.2
    array([1., 2.])
    """

    _largest = 1e150  # squares stay finite

    def __init__(self, k: int, classes: Sequence[Label]) -> None:
        self.k = integer("k", k, 1)
        super().__init__(classes)
        self._distances = np.zeros(0)
        self._new_levels(0)

    def _new_levels(self, room: int) -> None:
        # k others and itself, each at a different distance, and one more while it enters.
        depth, c = self.k + 2, len(self.classes)
        self._levels = Levels(
            np.zeros((room, depth)), np.zeros((room, depth, c), np.int64), np.zeros(room, np.int64),
            np.zeros((room, c), np.int64), np.zeros(room),
        )  # fmt: skip

    def _new_room(self, room: int) -> None:
        self._distances = np.zeros(room)
        self._levels = Levels(*(grown(array, room, *array.shape[1:]) for array in self._levels))

    def _suppose(self) -> Floats:
        m = self._count
        squares_row(self._columns, m, np.ascontiguousarray(self._columns[:, m]), self._distances)
        look_around(self._levels, m, self._distances, self._labels, self._weights, self.k)
        return self._levels.sums[m].astype(np.float64)

    def _fill(self, new: bool) -> Fill:
        distances = self._distances if new else np.full(self._count, np.inf)
        return partial(vote_table, self._levels, self._count, distances, self._labels, self.k)

    def _commit(self, code: int, column: int) -> None:
        welcome(self._levels, self._count, self._distances, code, self.k)
        if column == self._count:
            join(self._levels, column, 0.0, code, 1, self.k + 1)

    def _part_with(self, code: int, column: int) -> None:
        x, further = np.ascontiguousarray(self._columns[:, column]), np.empty(self._count)
        part_with(
            self._levels, self._columns, self._count, self._labels, self._weights, x, code, self.k, self._distances,
            further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in self._levels:
            values[to] = values[column]


@saved
class NearestCentroid(KeptCentroid, ObjectMachine):
    """Distances to the centroids of the classes.

    The score of a class is minus the Euclidean distance to the mean of its examples, so the largest score is
    that of the nearest centroid; -1e9 for a class without examples. Deleted scores leave each example
    out of the mean of its own class.

    `Deleted(Argmax())` on it is the nearest-centroid taxonomy. `Deleted(TopScoreBins([-far]))` also distinguishes
    objects farther than `far` from every centroid. The deleted scores of a new object do not depend
    on its label, so `CategoryClass()` applies.

    A step costs O(n c d). Distances are compared on a grid of 1e-6: features should be of a scale of about 1.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Always 0: nothing is solved.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range, or an object of norm above 1e8; nothing is learned from it.

    Examples
    --------
    >>> import venn
    >>> machine = NearestCentroid(classes=["no", "yes"])
    >>> model = venn.TransductiveVenn(machine, venn.Deleted(venn.Argmax()))
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     model.learn_one([x], "no")
    ...     model.learn_one([1 + x], "yes")
    >>> model.predict_one([0.15])
    Multiprobability('no': [0.800, 1.000])
    >>> machine.scores([0.75]).round(3)  # from 0.15 and 1.15
    array([-0.6, -0.4])
    """

    unnamed = 0

    def __init__(self, classes: Sequence[Label]) -> None:
        super().__init__(classes)
        self._new_features(0)

    def _new_features(self, features: int) -> None:
        c = len(self.classes)
        self._sums, self._errors = np.zeros((2, c, features))
        self._sizes = np.zeros(c, np.int64)

    def _suppose(self) -> Floats:
        scores = np.empty((len(self.classes), 1))
        here = np.ascontiguousarray(self._columns[:, self._count : self._count + 1])
        for k, row in enumerate(scores):
            centroid_scores(here, 1, self._sums[k], self._errors[k], self._sizes[k], self._absent, row)
        return scores[:, 0]

    def _fill(self, new: bool) -> Fill:
        columns, labels, m, absent = self._columns, self._labels, self._count, self._absent
        all_sums, all_errors, sizes = self._sums, self._errors, self._sizes

        def fill(deleted: bool, negative: Floats, positive: Floats) -> None:
            x = np.ascontiguousarray(columns[:, m])
            for k, size in enumerate(sizes):
                sums, errors = all_sums[k].copy(), all_errors[k].copy()
                centroid_scores(columns, m + 1, sums, errors, size, absent, negative[k])
                add_exactly(sums, errors, x)
                centroid_scores(columns, m + 1, sums, errors, size + 1, absent, positive[k])
                if deleted:
                    leave_out(labels, m, k, size, absent, negative[k])
                    leave_out(labels, m, k, size + 1, absent, positive[k])
                    positive[k, m] = negative[k, m]

        return fill

    def _commit(self, code: int, column: int) -> None:
        x = np.ascontiguousarray(self._columns[:, self._count])
        add_exactly(self._sums[code], self._errors[code], x)
        self._sizes[code] += 1

    def _part_with(self, code: int, column: int) -> None:
        # Summed anew: subtracting would leave rounding from the old sum.
        history = self._history[: self.n]
        chosen = history[self._labels[history] == code]
        add_all_exactly(self._columns, chosen, self._sums[code], self._errors[code])
        self._sizes[code] -= 1
