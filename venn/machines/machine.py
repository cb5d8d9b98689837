"""The contract between a machine and its readers: what it would look like under each hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from venn.parameters import with_methods
from venn.prediction import Floats, Integers, Label


class NotConverged(RuntimeError):
    """A solver did not reach its tolerance; the message names the solver and the example.

    Nothing is learned by the step that raises it: the machine is as before, and may be asked about other objects.

    Examples
    --------
    A stream goes on without the one example that could not be solved:

    >>> import venn
    >>> model = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> try:
    ...     model.learn_one([0.5], "no")
    ... except NotConverged as error:
    ...     print("left out:", error)
    >>> model.n
    1
    """


@dataclass(frozen=True)
class Bag:
    """Scores of the examples a machine has learned; equal ones may be one entry.

    Attributes
    ----------
    scores : (c, m) float64
        Score of each entry by each one-against-all machine.
    counts : (m, c) int64
        Number of examples of each class at each entry.

    Examples
    --------
    >>> from venn.machines import LeastSquaresSVM, Linear
    >>> machine = LeastSquaresSVM(Linear(), 1.0, ("no", "yes"))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([1.0], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.bag.counts.sum(axis=0).tolist()  # examples of each class
    [1, 2]
    >>> machine.bag.scores.shape[0]  # a row for each class
    2
    """

    scores: Floats
    counts: Integers


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


class ScoreTable(NamedTuple):
    """Scores of all examples under every hypothesis about a new one, by distinct example.

    One-against-all machines need two solutions each, not one for each hypothesis: machine k sees the
    new object as positive under hypothesis k and as negative under every other. So the scores under
    hypothesis j are those of `negative`, but for row j, which is that of `positive`.

    Examples
    --------
    >>> from venn.machines import LeastSquaresSVM, Linear
    >>> machine = LeastSquaresSVM(Linear(), 1.0, ("no", "yes"))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes")]:
    ...     machine.learn_one(x, y)
    >>> table = machine.hypotheses([0.5]).table
    >>> [table.scores(j).shape for j in range(2)]  # two examples and the new one, by two machines
    [(3, 2), (3, 2)]
    """

    negative: Floats  #: (c, >= m) scores by machine k when the new object is supposed not of class k
    positive: Floats  #: (c, >= m) scores by machine k when the new object is supposed of class k
    labels: Integers  #: (m,) class codes; the one at `test` means nothing where its weight is 0
    weights: Integers  #: (m,) number of learned examples; without the new one
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


Tables: TypeAlias = list[tuple[ScoreTable, Integers]]  #: tables of scores, each with its hypotheses' class codes


class Hypotheses(Protocol):
    """A machine's answer about one object, for every hypothesis on its label."""

    @property
    def test_scores(self) -> Floats:
        """(c,) scores of the object by the machines that have not seen it."""

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""

    def tables(self, deleted: bool) -> Tables:
        """Return the scores of all examples under every hypothesis.

        Training scores, or deleted ones: those of each example by the machines without it. One table serves all
        hypotheses unless these do not share their scores, as with classes of different weights. Each comes with the
        class codes of the hypotheses that it is for.
        """


class Tuned(Protocol):
    """What chose a machine's parameters; it remembers the examples used."""

    @property
    def n(self) -> int:
        """Number of those examples."""

    def met(self, x: Any, y: Label) -> bool:
        """Whether the example is one of them."""


class Machine(Protocol):
    """An underlying algorithm kept exact online; `BaseMachine` provides what most machines have in common.

    One that can forget also has `unlearn_one(i=0)`, which forgets the i-th learned example in order of arrival, 0 the
    oldest; later ones move up. The machine is then the one that has learned all others. A refused `i` leaves no trace.

    Some machines have more, which is read where it is there: `probabilities = True` if scores are probabilities;
    `space` if labels are not classes (`venn.labels.Real`); and `expect_training()`, which an inductive predictor calls,
    whose training examples are in no bag.
    """

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""

    @property
    def n(self) -> int:
        """Number of examples held."""

    @property
    def learned(self) -> int:
        """Number of examples ever learned, including those that a window has forgotten: it numbers the steps."""

    @property
    def tuning(self) -> Tuned | None:
        """The result of `tune`, if it chose the parameters."""

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
        """Answer for every hypothesis about `x`; solved once, remembered until a label is learned.

        A question changes no bit of any later answer.
        """

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""

    def expect_deleted(self) -> None:
        """Prepare for reading deleted scores at every step; a predictor that does so calls this when it is made.

        A machine may then keep, as it learns, what makes them cheap. That may change their last bits.
        """

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise, and learn nothing."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; a refused one leaves no trace."""

    def fresh(self) -> Machine:
        """Return a machine with the same parameters that has learned nothing."""


def checked_machine(name: str, machine: Any) -> Machine:
    """Return a machine, or say what is wrong with it."""
    return with_methods(name, machine, "a machine object, with a method 'hypotheses'", "hypotheses")


def only_table(tables: Tables) -> ScoreTable:
    """Return the one table for all hypotheses, or say that there are several."""
    if len(tables) > 1:
        raise ValueError(f"class_weights must be equal for one table of scores, got {len(tables)} different weights")
    return tables[0][0]


def under_each(tables: Tables, read: Callable[[ScoreTable], Arrays]) -> Arrays:
    """Return arrays by hypothesis: what `read` computes from each hypothesis's table of scores."""
    (table, _), *others = tables
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


def doubled(room: int, least: int) -> int:
    """Return the room, doubled until it is enough."""
    room = max(64, room)
    while room < least:
        room *= 2
    return room
