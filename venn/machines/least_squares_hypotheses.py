"""What least-squares machines would look like under each hypothesis: views of one machine's buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from venn._compiled import least_squares as compiled
from venn.machines.checks import check_code
from venn.machines.machine import Answer, ScoreTable, only_table
from venn.prediction import Floats, Integers

if TYPE_CHECKING:
    from venn.machines.least_squares import LeastSquaresSVM


class Joined(NamedTuple):
    """A new example, supposed of no class, in all machines: the bordered numbers."""

    ridge: float  # 1 / (C weight)
    pivot: float
    gain: float
    total: float
    entries: Floats  # (c,)
    biases: Floats  # (c,)


class LeastSquaresHypotheses(Answer["LeastSquaresSVM"]):
    """What the machines would look like if the new object had each of the labels."""

    def __init__(self, machine: LeastSquaresSVM, key: bytes, weight: float) -> None:
        super().__init__(machine, key, machine._score(machine._row) if machine.n else np.zeros(len(machine.classes)))
        self.weight = weight
        self._ready = [False, False]  # tables of training and of deleted scores

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        return machine._labels[: machine.n].copy()

    def tables(self, deleted: bool) -> list[tuple[ScoreTable, Integers]]:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for.

        There is one table for all hypotheses unless classes differ in weight: then one for each weight.
        """
        machine = self._buffers()
        if not self._ready[deleted]:
            for joined, work, tables in zip(machine._joined, machine._work, machine._tables, strict=True):
                self._fill(deleted, joined, work, *tables[2 * deleted : 2 * deleted + 2])
            self._ready[deleted] = True
        return [
            (self._table(*tables[2 * deleted : 2 * deleted + 2]), np.flatnonzero(machine._group == group))
            for group, tables in enumerate(machine._tables)
        ]

    def _fill(self, deleted: bool, joined: Joined, work: Floats, negative: Floats, positive: Floats) -> None:
        machine = self._machine
        n = machine.n
        if deleted:
            compiled.deleted_table(
                n, machine._u, machine._labels, machine._diagonal, machine._solutions, joined.total, joined.pivot,
                joined.entries, joined.biases, self.test_scores, work, negative, positive,
            )  # fmt: skip
            return
        machine._ridge[n] = joined.ridge
        compiled.training_table(
            n, machine._u, machine._labels, machine._ridge, machine._solutions, joined.entries, joined.biases, work,
            negative, positive,
        )  # fmt: skip

    def _table(self, negative: Floats, positive: Floats) -> ScoreTable:
        machine = self._machine
        n = machine.n
        machine._labels[n] = 0
        numbers = np.ones(n + 1, np.int64)
        numbers[n] = 0
        return ScoreTable(negative, positive, machine._labels[: n + 1], numbers, n, machine._columns[:, : n + 1])

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all."""
        return only_table(self.tables(False))

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines without it; that of the new one knows no hypothesis."""
        return only_table(self.tables(True))

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._in_order(False, j)

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the same order."""
        return self._in_order(True, j)

    def _in_order(self, deleted: bool, j: int) -> Floats:
        check_code(j, len(self.classes))
        table, _ = self.tables(deleted)[self._machine._group[j]]
        return self._under(j, table.negative, table.positive, np.arange(table.test + 1))

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) coefficients C weight (t - f) under hypothesis j, in the same order."""
        scores = self.scores(j)
        machine = self._machine
        targets = np.where(np.append(self.labels, j)[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        ridge = np.append(machine._ridge[: machine.n], machine._joined[machine._group[j]].ridge)
        duals: Floats = (targets - scores) / ridge[:, None]
        return duals
