"""Base of machines that keep the objects themselves, and what they answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from venn.machines.base import BaseHypotheses
from venn.machines.checks import checked_place, clean_object, code_of
from venn.machines.kept import Part, checked_sizes, distinct_columns, kept_arrays, put_arrays
from venn.machines.machine import Bag, ScoreTable, Tables, grown
from venn.machines.scale import OnScale, ScaleLike
from venn.machines.store import doubled
from venn.parameters import class_codes
from venn.prediction import Floats, Integers, Label

#: Sets the scores (c, m + 1) of all columns, deleted ones or not: where the new object is not of a class, where it is.
Fill: TypeAlias = Callable[[bool, Floats, Floats], None]


class ObjectMachine(OnScale):
    """Base of machines that keep one column for each distinct example: object and class.

    The new object stands in the column after the last.
    """

    deletes_exactly = True
    residual = 0.0  # nothing is solved
    # Norm of an object. Distances are then at most 2e8: below the 1e9 of a class without examples.
    _largest: ClassVar[float] = 1e8
    _absent: ClassVar[float] = -1e9

    #: The arrays that all of them keep, and those that a subclass keeps besides.
    common = (
        Part("_columns", ("d", "m")),
        Part("_labels", ("m",), "c", np.int64),
        Part("_weights", ("m",), dtype=np.int64),
        Part("_history", ("n",), "m", np.int64),
    )
    own: tuple[Part, ...] = ()

    def __init__(self, classes: Sequence[Label], *, scale: ScaleLike = None) -> None:
        self._put_on(scale)
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

    def _kept(self, x: Any) -> Floats:
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
        return self.answer(x)

    def _solved_for(self, x: Floats, key: bytes, weight: float) -> ObjectHypotheses:
        self.forget()
        m = self._count
        self._make_room(m + 1, x.size)
        self._columns[:, m] = x
        self._labels[m] = self._weights[m] = 0
        test_scores = self._suppose()
        return ObjectHypotheses(
            key, test_scores, self._fill(True), self._columns, self._labels[: m + 1], self._weights[: m + 1],
            self._history[: self.n],
        )  # fmt: skip

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""
        return self.hypotheses(x).test_scores.copy()

    def _check_label(self, y: Label) -> None:
        code_of(y, self._codes)

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

    # -------------------------------------------------------------------- state

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.parts = cls.common + cls.own

    def _lengths(self) -> dict[str, int]:
        return {"k": getattr(self, "k", 0), "c": len(self.classes)}

    @property
    def state(self) -> dict[str, Any]:
        """What was learned."""
        sizes = self._lengths() | {"d": len(self._columns), "m": self._count, "n": self.n}
        read = kept_arrays(self, self.parts, sizes) if self.n else {part.path: None for part in self.parts}
        return super().state | read | {"n": self.n, "columns": self._count, "features": self._features}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`, or raise a ValueError where it contradicts itself."""
        super().restore(state)
        d, m, n = checked_sizes(state, "columns")
        if n == 0:
            if any(state[part.path] is not None for part in self.parts):
                raise ValueError("a machine without examples must have no objects")
            return
        sizes = self._lengths() | {"d": d, "m": m, "n": n}
        self._check_arrays(state, sizes)
        if not np.array_equal(np.bincount(state["_history"], minlength=m), state["_weights"]):
            raise ValueError("_weights must be the numbers of examples of each column")
        contents = list(zip(distinct_columns(state["_columns"]), state["_labels"].tolist(), strict=True))
        if len(set(contents)) != m:
            raise ValueError("examples of different columns must differ")
        if not (np.linalg.norm(state["_columns"], axis=0) <= self._largest * (1 + 1e-9)).all():
            raise ValueError(f"objects must have a norm of at most {self._largest:g}")
        self._check_state(state, sizes)
        self._make_room(m, d)
        room = doubled(len(self._history), n)
        self._history = grown(self._history, room)
        put_arrays(self, self.parts, state)
        self._where = {content: column for column, content in enumerate(contents)}
        self.n, self._count, self._features = n, m, d

    def _check_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        """Refuse arrays of `own` that contradict each other, or the examples."""


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
