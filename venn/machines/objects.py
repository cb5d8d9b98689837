"""Machines that keep the objects themselves: nearest neighbours, distances and class centroids, exact online."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from venn._compiled import rows
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
from venn.labels import checked_labels
from venn.machines.base import BaseHypotheses, PlacedTable
from venn.machines.machine import Bag, ScoreTable, Tables, clean_object, code_of, doubled, grown
from venn.machines.store import ObjectStore, Storing
from venn.parameters import integer
from venn.prediction import Floats, Integers, Label
from venn.saved import base, checked_keys, component, held_array, held_codes, param
from venn.turns import asks, changes

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

    @asks
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

    @changes
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


@component
class NearestNeighbours(ObjectMachine):
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
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are.

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

    score_unit = "votes"
    _largest = 1e150  # squares stay finite

    k: int = param(integer, 1)
    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the levels: k others and itself, each at a different distance, and one more while it enters."""
        depth, c = self.k + 2, len(self.classes)
        self._distances = np.zeros(0)
        self._levels = Levels(
            np.zeros((0, depth)), np.zeros((0, depth, c), np.int64), np.zeros(0, np.int64), np.zeros((0, c), np.int64),
            np.zeros(0),
        )  # fmt: skip
        super().derive()

    def _new_room(self, room: int) -> None:
        self._distances = np.zeros(room)
        self._levels = Levels(*(grown(array, room, *array.shape[1:]) for array in self._levels))

    def _suppose(self) -> Floats:
        m = self._count
        squares_row(self._columns, m, self._columns[:, m].copy(), self._distances)
        look_around(self._levels, m, self._distances, self._labels, self._weights, self.k)
        return self._levels.sums[m].astype(np.float64)

    def _fill(self, new: bool) -> Fill:
        away = self._distances if new else np.full(self._count, np.inf)
        return partial(vote_table, self._levels, self._count, away, self._labels, self.k)

    def _commit(self, code: int, column: int) -> None:
        welcome(self._levels, self._count, self._distances, code, self.k)
        if column == self._count:
            join(self._levels, column, 0.0, code, 1, self.k + 1)

    def _part_with(self, code: int, column: int) -> None:
        x, further = self._columns[:, column].copy(), np.empty(self._count)
        part_with(
            self._levels, self._columns, self._count, self._labels, self._weights, x, code, self.k, self._distances,
            further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in self._levels:
            values[to] = values[column]

    # -------------------------------------------------------------------- state

    def _arrays(self, m: int) -> dict[str, Any]:
        return {name: values[:m] for name, values in self._levels._asdict().items()}

    @property
    def state(self) -> dict[str, Any]:
        """What was learned; what stands beyond the levels in use means nothing."""
        held = super().state
        if self.n:
            arrays = held["arrays"]
            beyond = np.arange(self.k + 2) >= arrays["used"][:, None]
            arrays["distance"] = np.where(beyond, 0.0, arrays["distance"])
            arrays["votes"] = np.where(beyond[:, :, None], 0, arrays["votes"])
        return held

    def _check_arrays(self, m: int) -> None:
        # Loops go from level to level as long as these numbers say so.
        used, votes, sums = self._levels.used[:m], self._levels.votes[:m], self._levels.sums[:m]
        held_codes("used levels", used, (m,), 1, self.k + 2)
        beyond = votes[np.arange(self.k + 2) >= used[:, None]]
        if (votes < 0).any() or beyond.any() or not np.array_equal(sums, votes.sum(axis=1)):
            raise ValueError("levels must be those of the nearest examples of each column")


@component
class NearestCentroid(ObjectMachine):
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
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are.

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

    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the sums."""
        self._new_features(0)
        super().derive()

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
            x = columns[:, m].copy()
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
        x = self._columns[:, self._count].copy()
        add_exactly(self._sums[code], self._errors[code], x)
        self._sizes[code] += 1

    def _part_with(self, code: int, column: int) -> None:
        # Summed anew: subtracting would leave rounding from the old sum.
        examples = self._examples
        chosen = examples.places[: self.n][examples.codes[: self.n] == code]
        add_all_exactly(self._columns, chosen, self._sums[code], self._errors[code])
        self._sizes[code] -= 1

    def _arrays(self, m: int) -> dict[str, Any]:
        return {"sums": self._sums, "errors": self._errors, "sizes": self._sizes}


@component
class NeighbourDistances(ObjectMachine):
    """Mean distances to the nearest examples of each class.

    The score of a class is minus the mean Euclidean distance to its k nearest examples, or to all of them where there
    are fewer than k; it is -1e9 where there is none. So the largest score is that of the nearest class. Deleted scores
    use the *other* examples; in training scores each example is its own nearest one, at distance 0, so that with k = 1
    the own class always scores 0.

    With the measures `DistanceRatio()` and `Margin()`, on deleted scores, this is the nearest-neighbour
    nonconformity of the literature: far from its own class, near to another. The deleted scores of a new
    object do not depend on its label, so `CategoryClass()` applies to taxonomies on them.

    Scores are a function of the distances alone: the same to the last bit in whatever order examples came.
    A step costs O(n (d + c)), and O(k) more for each list of nearest examples that the new one enters; memory is
    O(n (d + c k)). Distances are compared on a grid of 1e-6: features should be of a scale of about 1.

    Parameters
    ----------
    k : int >= 1
        Number of nearest examples of each class.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are.

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

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapter 3: conformal prediction by
    nearest neighbours; Proedrou, Nouretdinov, Vovk & Gammerman (2002), "Transductive confidence machines for
    pattern recognition", for more than one neighbour.

    Examples
    --------
    >>> machine = NeighbourDistances(2, classes=["no", "yes"])
    >>> for x in (0.0, 0.25, 1.0):
    ...     machine.learn_one([x], "no")
    >>> machine.learn_one([2.0], "yes")
    >>> machine.scores([0.5])  # 0.25 and 0.5 from "no", 1.5 from "yes"
    array([-0.375, -1.5  ])
    """

    k: int = param(integer, 1)
    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Make the lists of nearest examples."""
        c = len(self.classes)
        self._distances = np.zeros(0)
        self._nearest = np.zeros((c, 0, self.k))
        self._others = np.zeros((c, 0))
        self._own = np.zeros(0)
        super().derive()

    def _new_room(self, room: int) -> None:
        c = len(self.classes)
        self._distances = np.zeros(room)
        self._nearest = grown(self._nearest, c, room, self.k)
        self._others, self._own = grown(self._others, c, room), grown(self._own, room)

    def _suppose(self) -> Floats:
        m = self._count
        rows.distances_to(self._columns, m, self._columns[:, m].copy(), self._distances)
        rows.look_around(self._nearest, m, self._distances, self._labels, self._weights)
        return np.array([rows.score(row, np.inf, False, self._absent) for row in self._nearest[:, m]])

    def _fill(self, new: bool) -> Fill:
        away = self._distances if new else np.full(self._count, np.inf)
        kept = self._nearest, self._others, self._own
        return partial(rows.distance_table, *kept, self._count, away, self._labels, self._absent)

    def _commit(self, code: int, column: int) -> None:
        m = self._count
        rows.welcome(self._nearest, self._others, self._own, m, self._distances, self._labels, code, self._absent)
        if column == m:
            for j in range(len(self.classes)):
                rows.settle(self._nearest, self._others, self._own, m, j, code, self._absent)

    def _part_with(self, code: int, column: int) -> None:
        m, further = self._count, np.empty(self._count)
        rows.distances_to(self._columns, m, self._columns[:, column].copy(), self._distances)
        rows.part_with(
            self._nearest, self._others, self._own, self._columns, m, self._distances, self._labels, self._weights,
            code, self._absent, further,
        )  # fmt: skip

    def _move(self, column: int, to: int) -> None:
        for values in (self._nearest, self._others):
            values[:, to] = values[:, column]
        self._own[to] = self._own[column]

    def _arrays(self, m: int) -> dict[str, Any]:
        return {"nearest": self._nearest[:, :m], "others": self._others[:, :m], "own": self._own[:m]}
