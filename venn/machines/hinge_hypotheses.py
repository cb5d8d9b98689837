"""What support vector machines of the hinge loss answer about a new object."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from venn.machines.checks import check_code
from venn.machines.machine import Answer, ScoreTable, only_table
from venn.prediction import Floats, Integers

if TYPE_CHECKING:
    from venn.machines.hinge import HingeMachine

Hinge = TypeVar("Hinge", bound="HingeMachine")


class HingeHypotheses(Answer[Hinge]):
    """What the machines would look like if the new object had each of the labels.

    Attributes
    ----------
    test : int
        Column of the object among the distinct ones.
    weight : float
        Of the new example, without that of its supposed class.
    """

    def __init__(self, machine: Hinge, key: bytes, test: int, count: int, weight: float) -> None:
        super().__init__(machine, key, machine._by_class(machine._solved.score[:, test, None])[:, 0])
        self.test = test
        self.count = count
        self.weight = weight
        self._deleted: Floats | None = None

    def tables(self, deleted: bool) -> list[tuple[ScoreTable, Integers]]:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        machine = self._buffers()
        columns, labels, numbers = machine._examples(self.count)
        test = self.test
        if deleted:
            if self._deleted is None:
                self._deleted = machine._delete(self.test, self.count, self.weight)
            scores = self._deleted
            if scores.shape[2] > columns.size:
                # The new example has a column of its own.
                test = columns.size
                columns, labels, numbers = np.append(columns, self.test), np.append(labels, 0), np.append(numbers, 0)
            features = machine._store.of(columns)
        else:
            scores, features = self._branches(), machine._columns
            if columns.size > self.count:
                # An object with examples of several classes or weights is several distinct examples of equal scores.
                scores, features = scores[:, :, columns], machine._store.of(columns)
        return [
            (ScoreTable(negative, positive, labels, numbers, test, features), codes)
            for negative, positive, codes in self._pairs(scores)
        ]

    def _branches(self) -> Floats:
        """Return the (sides + 1, machines, objects) scores under all suppositions, and, last, under none."""
        machine = self._buffers()
        return np.concatenate([machine._branches.score, machine._solved.score[None]])

    def _class_scores(self, j: int, scores: Floats) -> Floats:
        """Return (c, m) scores by class under hypothesis j, of the machines' (machines, m)."""
        return self._machine._by_class(scores)

    def _pairs(self, scores: Floats) -> list[tuple[Floats, Floats, Integers]]:
        """Return (c, m) scores where the object is not of class k, where it is, and the hypotheses they are for."""
        raise NotImplementedError

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all."""
        return only_table(self.tables(False))

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines without it, to first order: see `OneVsAllSVM.deleted_bag`.

        The new example is treated like the others. Its scores may depend on the hypothesis, for its
        coefficient does; at an object learned before it has a column of its own.
        """
        return only_table(self.tables(True))

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        return machine._history[1, : machine.n].copy()

    def _supposed(self, j: int, values: Floats) -> Floats:
        """Return the (machines, ...) values under hypothesis j, of (sides + 1, machines, ...) ones."""
        check_code(j, len(self.classes))
        machine = self._buffers()
        under: Floats = values[machine._side[:, j], np.arange(len(machine.signs))]
        return under

    def _in_order(self) -> Integers:
        machine = self._buffers()
        return np.append(machine._history[0, : machine.n], self.test)

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        under = self._supposed(j, self._branches())[:, self._in_order()]
        return self._class_scores(j, under).T

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""
        machine, table = self._buffers(), self.tables(True)[0][0]
        assert self._deleted is not None
        objects, codes, _ = machine._examples(self.count)
        weights = machine._example_weights(self.count)
        where = {like: column for column, like in enumerate(zip(objects, codes, weights, strict=True))}
        history = machine._history[:, : machine.n]
        effective = machine._weights[: machine.n] * machine.class_weights[history[1]]
        examples = [where[like] for like in zip(*history, effective, strict=True)]
        under = self._supposed(j, self._deleted)[:, [*examples, table.test]]
        return self._class_scores(j, under).T

    def duals(self, j: int) -> Floats:
        """Return (n + 1, machines) signed coefficients under hypothesis j; equal objects share theirs by weight."""
        machine = self._buffers()
        both = machine._branches.beta
        betas = self._supposed(j, np.concatenate([both, machine._solved.beta[None]]))[:, : self.count]
        new = self.weight * machine.class_weights[j]
        total = machine._objects.total[:, : self.count].copy()
        total[machine.signs[:, j] != 0, self.test] += new
        columns = self._in_order()
        weights = np.append(machine._weights[: machine.n] * machine.class_weights[self.labels], new)
        codes = np.append(self.labels, j)
        own = np.abs(machine.signs[:, codes]) * weights
        shares: Floats = (betas / np.where(total > 0, total, 1.0))[:, columns] * own
        return shares.T
