"""The contract between a machine and its readers: what it would look like under each hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from venn.machines.checks import check_code
from venn.prediction import Floats, Integers, Label


class NotConverged(RuntimeError):
    """A solver did not reach its tolerance; the message says which, and at which example."""


@dataclass(frozen=True)
class Bag:
    """Scores of the examples a machine has learned; equal ones may be one entry.

    Attributes
    ----------
    scores : (c, m) float64
        Score of each entry by each one-against-all machine.
    counts : (m, c) int64
        Number of examples of each class at each entry.
    """

    scores: Floats
    counts: Integers


class ScoreTable(NamedTuple):
    """Scores of all examples under every hypothesis about a new one, by distinct example.

    One-against-all machines need two solutions each, not one for each hypothesis: machine k sees the
    new object as positive under hypothesis k and as negative under every other. So the scores under
    hypothesis j are those of `negative`, but for row j, which is that of `positive`.
    """

    negative: Floats  #: (c, >= m) scores by machine k when the new object is supposed not of class k
    positive: Floats  #: (c, >= m) scores by machine k when the new object is supposed of class k
    labels: Integers  #: (m,) class codes; what stands at `test` means nothing where its weight is 0
    weights: Integers  #: (m,) number of learned examples; the new one is not among them
    test: int  #: column of the new example
    objects: Floats = np.empty((0, 0))  #: (d, >= m) features by column; empty where a machine keeps none

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the n examples by distinct example, the new one last."""
        columns = self._columns()
        rows: Floats = self.negative[:, columns]
        rows[j] = self.positive[j, columns]
        return rows.T

    def codes(self, j: int) -> Integers:
        """Return (n + 1,) class codes in the order of `scores`; the new example has code j."""
        codes: Integers = self.labels[self._columns()]
        codes[-1] = j
        return codes

    def _columns(self) -> Integers:
        return np.append(np.repeat(np.arange(len(self.labels)), self.weights), self.test)


class Hypotheses(Protocol):
    """A machine's answer about one object, for every hypothesis on its label.

    Where the hypotheses do not share one table of scores, as with classes of different weights, there is also
    `tables(deleted)`: a list of tables, each with the class codes of the hypotheses that it is for. `under_each` reads
    both kinds.
    """

    @property
    def test_scores(self) -> Floats:
        """(c,) scores of the object by the machines that have not seen it."""

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all: the fast path."""

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines as they would be without it: the fast path."""

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the n examples in order of arrival, the object last."""

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""


class WithClasses(Protocol):
    """What an answer asks of its machine."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
Asked = TypeVar("Asked", bound=WithClasses)


class Answer(Generic[Asked]):
    """Base of the hypotheses of the machines here: views of a machine's buffers.

    Good until the machine is asked about another object or learns.

    Attributes
    ----------
    test_scores : (c,) float64
        Scores of the object by the machines that have not seen it.
    """

    def __init__(self, machine: Asked, key: bytes, test_scores: Floats) -> None:
        self._machine = machine
        self.key = key  # the object
        self.current = True
        self.test_scores = test_scores

    def _buffers(self) -> Asked:
        if not self.current:
            raise RuntimeError("these hypotheses are out of date: the machine has learned or was asked again")
        return self._machine

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self._machine.classes

    def _under(self, j: int, of_not: Floats, of: Floats, columns: Integers) -> Floats:
        """Return (n + 1, c) values under hypothesis j, from the columns of the examples and of the new one."""
        check_code(j, len(self.classes))
        rows = of_not[:, columns]
        rows[j] = of[j, columns]
        return rows.T


class Tuned(Protocol):
    """What chose a machine's parameters, and remembers on which examples."""

    @property
    def n(self) -> int:
        """Number of those examples."""

    def met(self, x: Any, y: Label) -> bool:
        """Whether the example is one of them."""


class Machine(Protocol):
    """An underlying algorithm kept exact online.

    One that can forget also has `unlearn_one(i=0)`, which forgets the i-th learned example in order of arrival, 0 the
    oldest; later ones move up. The machine is then the one that has learned all others. A refused `i` leaves no trace.
    """

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""

    @property
    def n(self) -> int:
        """Number of examples learned."""

    @property
    def deletes_exactly(self) -> bool:
        """Whether deleted scores are those of machines solved without the example.

        The deleted score of a new object is then the same under every hypothesis about its label.
        """

    @property
    def bag(self) -> Bag:
        """Training scores now."""

    @property
    def deleted_bag(self) -> Bag:
        """Deleted scores now, by distinct example."""

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions."""

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machine as it is, without `x`."""

    def hypotheses(self, x: Any) -> Hypotheses:
        """Answer for every hypothesis about `x`; solved once, remembered until a label is learned."""

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise, and learn nothing."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; a refused one leaves no trace."""

    def fresh(self) -> Machine:
        """Return a machine with the same parameters that has learned nothing."""


def checked_machine(machine: Any) -> Machine:
    """Return `machine`, or say what is wrong with it."""
    if machine is None or isinstance(machine, type | str) or not callable(getattr(machine, "hypotheses", None)):
        raise TypeError(f"machine must be a machine object, with a method 'hypotheses', got {machine!r}")
    known: Machine = machine
    return known


def ever_learned(machine: Any) -> int:
    """Return how many examples a machine has learned, those that a window has forgotten since among them.

    It numbers the steps: `n` stands still in a window that is full.
    """
    learned: int = machine.n + getattr(machine, "forgotten", 0)
    return learned


def inside(machine: Any) -> Any:
    """Return the machine that a window slides on, or the machine itself."""
    return getattr(machine, "machine", machine)


def only_table(tables: list[tuple[ScoreTable, Integers]]) -> ScoreTable:
    """Return the one table for all hypotheses, or say that there are several."""
    if len(tables) > 1:
        raise ValueError(f"class_weights must be equal for one table of scores, got {len(tables)} different weights")
    return tables[0][0]


def under_each(hypotheses: Any, deleted: bool, read: Callable[[ScoreTable], Arrays]) -> Arrays:
    """Return what `read` makes of the table of scores, arrays by hypothesis, each hypothesis by its own table."""
    tables = getattr(hypotheses, "tables", None)
    if tables is None:
        return read(hypotheses.deleted_table if deleted else hypotheses.table)
    (table, _), *others = tables(deleted)
    rows = read(table)
    for table, codes in others:
        for into, values in zip(rows, read(table), strict=True):
            into[codes] = values[codes]
    return rows


def grown(array: Any, *shape: int) -> Any:
    """Return a copy of the array in the corner of a larger one, zero elsewhere."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger
