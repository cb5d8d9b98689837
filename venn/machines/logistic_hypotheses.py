"""What a kernel logistic machine answers about a new object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from venn.machines.checks import check_code
from venn.machines.logistic_inverse import Deletion
from venn.machines.machine import Answer, ScoreTable, only_table
from venn.prediction import Floats, Integers

if TYPE_CHECKING:
    from venn.machines.logistic import KernelLogisticRegression


class LogisticHypotheses(Answer["KernelLogisticRegression"]):
    """What the machines would look like if the new object had each of the labels.

    There is one table of scores for all hypotheses unless classes differ in weight: then one for each weight.

    Attributes
    ----------
    test : int
        The object among the distinct ones.
    weight : float
        Of the new example, without that of its supposed class.
    """

    def __init__(
        self, machine: KernelLogisticRegression, key: bytes, test_scores: Floats, test: int, count: int, weight: float
    ) -> None:
        super().__init__(machine, key, test_scores)
        self.test = test
        self.count = count
        self.weight = weight
        self._tables: dict[bool, list[tuple[ScoreTable, Integers]]] = {}

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        labels: Integers = machine._places[1, machine._history[: machine.n]]
        return labels

    def tables(self, deleted: bool) -> list[tuple[ScoreTable, Integers]]:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        machine = self._buffers()
        if deleted not in self._tables:
            objects, codes, numbers = machine._places
            columns = np.append(objects, self.test)
            *negatives, positive = self._delete(columns) if deleted else machine._scores[:, :, columns]
            codes, numbers, features = np.append(codes, 0), np.append(numbers, 0), machine._store.of(columns)
            self._tables[deleted] = [
                (
                    ScoreTable(negative, positive, codes, numbers, objects.size, features),
                    np.flatnonzero(machine._group == g),
                )
                for g, negative in enumerate(negatives)
            ]
        return self._tables[deleted]

    def _delete(self, columns: Integers) -> Floats:
        """Return the (sides, c, entries) deleted scores under all suppositions; 0 where a machine has no such one."""
        machine = self._machine
        sides, c, _ = machine._scores.shape
        of_examples, n = machine._masses_of_places(), machine.n + 1
        scores = np.zeros((sides, c, columns.size))
        scale = max(machine._scale, float(machine._row(self.test)[-1]))

        def of_machine(k: int) -> None:
            own = machine._places[1] == k
            for side in np.unique(machine._side[k]).tolist():
                positive = side == sides - 1
                mass = self.weight * float(machine._unit[side, k])
                total = machine._total[: self.count].copy()
                total[self.test] += mass
                change = machine._change(k, side, self.test, self.count, self.weight)
                branch = Deletion(
                    machine._scores[side, k, : self.count], total, int(machine._sizes[k]) + positive, n,
                    change.weights / total, change.diagonal, change.sums, scale,
                )  # fmt: skip
                scores[side, k] = branch.deleted(
                    machine.C, columns, np.append(own, positive), np.append(of_examples, mass)
                )

        machine._of_each_class(of_machine)
        return scores

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all."""
        return only_table(self.tables(False))

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines without it, to one Newton step: see `deleted_bag`.

        The new example is treated like the others. Its scores may depend on the hypothesis.
        """
        return only_table(self.tables(True))

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._in_order(False, j)

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""
        return self._in_order(True, j)

    def _in_order(self, deleted: bool, j: int) -> Floats:
        check_code(j, len(self.classes))
        machine = self._buffers()
        table, _ = self.tables(deleted)[machine._group[j]]
        columns = np.append(machine._history[: machine.n], table.test)
        return self._under(j, table.negative, table.positive, columns)

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients C weight ((t + 1) / 2 - p) under hypothesis j; 0 for one class in all.

        The weight is that of the example times that of its class.
        """
        machine, scores = self._buffers(), self.scores(j)
        codes = np.append(self.labels, j)
        masses = machine._masses_of_places()[machine._history[: machine.n]]
        masses = np.append(masses, self.weight * machine.class_weights[j])
        own = codes[:, None] == np.arange(scores.shape[1])
        duals: Floats = machine.C * masses[:, None] * np.where(own, expit(-scores), -expit(scores))
        duals[:, own.all(axis=0) | ~own.any(axis=0)] = 0.0
        return duals
