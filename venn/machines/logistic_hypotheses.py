"""What a kernel logistic machine answers about a new object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from venn.machines.logistic_inverse import Deletion
from venn.machines.machine import Answer, ScoreTable
from venn.prediction import Floats, Integers

if TYPE_CHECKING:
    from venn.machines.logistic import KernelLogisticRegression


class LogisticHypotheses(Answer["KernelLogisticRegression"]):
    """What the machines would look like if the new object had each of the labels.

    Attributes
    ----------
    test : int
        The object among the distinct ones.
    """

    def __init__(
        self, machine: KernelLogisticRegression, key: bytes, test_scores: Floats, test: int, count: int
    ) -> None:
        super().__init__(machine, key, test_scores)
        self.test = test
        self.count = count
        self._training: ScoreTable | None = None
        self._deleted: ScoreTable | None = None

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        labels: Integers = machine._places[1, machine._history[: machine.n]]
        return labels

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all."""
        machine = self._buffers()
        if self._training is None:
            objects = np.append(machine._places[0], self.test)
            self._training = self._table(*machine._scores[:, :, objects])
        return self._training

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines without it, to one Newton step: see `deleted_bag`.

        The new example is treated like the others. Its scores may depend on the hypothesis.
        """
        machine = self._buffers()
        if self._deleted is None:
            objects = np.append(machine._places[0], self.test)
            scores = np.empty((2, len(machine.classes), objects.size))
            total = machine._total[: self.count].copy()
            total[self.test] += 1
            for side in range(2):
                for k, row in enumerate(scores[side]):
                    change = machine._change(k, side, self.test, self.count)
                    branch = Deletion(
                        machine._scores[side, k, : self.count], total, int(machine._sizes[k]) + side,
                        machine.n + 1, change.weights / total, change.diagonal, change.sums,
                    )  # fmt: skip
                    row[:] = branch.deleted(machine.C, objects, np.append(machine._places[1] == k, side == 1))
            self._deleted = self._table(*scores)
        return self._deleted

    def _table(self, negative: Floats, positive: Floats) -> ScoreTable:
        machine = self._machine
        objects, codes, weights = machine._places
        columns = np.append(objects, self.test)
        return ScoreTable(
            negative, positive, np.append(codes, 0), np.append(weights, 0), objects.size, machine._columns[:, columns]
        )

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._in_order(self.table, j)

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""
        return self._in_order(self.deleted_table, j)

    def _in_order(self, table: ScoreTable, j: int) -> Floats:
        machine = self._machine
        columns = np.append(machine._history[: machine.n], table.test)
        return self._under(j, table.negative, table.positive, columns)

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients C ((t + 1) / 2 - p) under hypothesis j; 0 for one class in all."""
        machine, scores = self._buffers(), self.scores(j)
        codes = np.append(self.labels, j)
        own = codes[:, None] == np.arange(scores.shape[1])
        duals: Floats = machine.C * np.where(own, expit(-scores), -expit(scores))
        duals[:, own.all(axis=0) | ~own.any(axis=0)] = 0.0
        return duals
