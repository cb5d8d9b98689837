"""What a kernel logistic machine answers about a new object."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from venn.machines.base import BaseHypotheses
from venn.machines.logistic_inverse import Change, Deletion, Standing, levels_of, rounded_weights
from venn.machines.machine import ScoreTable, Tables
from venn.machines.store import ObjectStore
from venn.machines.threads import side_by_side
from venn.prediction import Floats, Integers


class Question(NamedTuple):
    """The object asked about, and the arrays of the machines that answer."""

    test: int  # place of the object among the distinct ones
    m: int  # distinct objects, without this one where it is new
    n: int  # examples
    weight: float  # of the new example, without that of its supposed class
    C: float
    scale: float  # largest K(x, x)
    threads: int
    class_weights: Floats
    group: Integers  # (c,) group of classes of equal weight to which each class belongs
    side: Integers  # (machines, c) what each machine supposes under each hypothesis
    unit: Floats  # (sides, machines) weight of a new example by its class
    history: Integers  # (n,) place of each example among the distinct ones
    places: Integers  # (3, places) object, class and number of each distinct example
    masses: Floats  # (places,) weight of one of each, times that of its class
    sizes: Integers  # (c,) examples of each class
    total: Floats  # (objects,) weights of the examples at each, also at this one
    levels: Integers  # (machines, m)
    kernel: Floats
    inverse: Floats
    diagonals: Floats
    sums: Floats
    scores: Floats  # (sides, machines, objects) by the branches
    joined: Floats  # (machines, objects) inverse times the new object's kernel
    store: ObjectStore

    @property
    def row(self) -> Floats:
        """Kernel of the object with those before it and itself."""
        start = self.test * (self.test + 1) // 2
        return self.kernel[start : start + self.test + 1]

    def total_with(self, k: int, side: int) -> Floats:
        """Return the weights of the examples at each object, including the new one."""
        total = self.total.copy()
        total[self.test] += self.weight * self.unit[side, k]
        return total

    def change(self, k: int, side: int) -> Change:
        """Return how machine k's inverse changes when its branch is committed."""
        m, old = self.m, self.levels[k, : self.m]
        standing = Standing(
            self.kernel, self.inverse[k], self.diagonals[k, :m], self.sums[k, :m],
            rounded_weights(self.C, self.total[:m], old),
        )  # fmt: skip
        levels = levels_of(self.scores[side, k, : self.total.size])
        weights = rounded_weights(self.C, self.total_with(k, side), levels)
        return standing.changed(levels, weights, self.joined[k, :m], self.row if self.test == m else None)


class LogisticHypotheses(BaseHypotheses):
    """What the machines would look like if the new object had each of the labels.

    There is one table of scores for all hypotheses unless classes differ in weight: then one for each weight. Deleted
    scores are computed by one Newton step: see `KernelLogisticRegression.deleted_bag`. The new example is treated like
    the others; its deleted scores may depend on the hypothesis.

    Attributes
    ----------
    asked : Question
    """

    def __init__(self, key: bytes, test_scores: Floats, asked: Question) -> None:
        super().__init__(key, test_scores, asked.weight)
        self.asked = asked
        self._tables: dict[bool, Tables] = {}

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        self.check_current()
        return self.asked.history

    def tables(self, deleted: bool) -> Tables:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        self.check_current()
        if deleted not in self._tables:
            objects, codes, numbers = self.asked.places
            columns = np.append(objects, self.asked.test)
            *negatives, positive = self._delete(columns) if deleted else self.asked.scores[:, :, columns]
            codes, numbers, features = np.append(codes, 0), np.append(numbers, 0), self.asked.store.of(columns)
            self._tables[deleted] = [
                (
                    ScoreTable(negative, positive, codes, numbers, objects.size, features),
                    np.flatnonzero(self.asked.group == g),
                )
                for g, negative in enumerate(negatives)
            ]
        return self._tables[deleted]

    def _delete(self, columns: Integers) -> Floats:
        """Return the (sides, c, entries) deleted scores under all suppositions; 0 where there is no such one."""
        asked = self.asked
        sides, c, _ = asked.scores.shape
        scores = np.zeros((sides, c, columns.size))
        scale = max(asked.scale, float(asked.row[-1]))

        def of_machine(k: int) -> None:
            own = asked.places[1] == k
            for side in np.unique(asked.side[k]).tolist():
                positive = side == sides - 1
                total, change = asked.total_with(k, side), asked.change(k, side)
                branch = Deletion(
                    asked.scores[side, k, : asked.total.size], total, int(asked.sizes[k]) + positive, asked.n + 1,
                    change.weights / total, change.diagonal, change.sums, scale,
                )  # fmt: skip
                mass = asked.weight * float(asked.unit[side, k])
                scores[side, k] = branch.deleted(
                    asked.C, columns, np.append(own, positive), np.append(asked.masses, mass)
                )

        side_by_side(of_machine, range(c), asked.threads)
        return scores

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients C weight ((t + 1) / 2 - p) under hypothesis j; 0 if there is one class.

        The weight is that of the example times that of its class.
        """
        scores, asked = self.scores(j), self.asked
        codes = np.append(self.labels, j)
        masses = np.append(asked.masses[self.order], asked.weight * asked.class_weights[j])
        own = codes[:, None] == np.arange(scores.shape[1])
        duals: Floats = asked.C * masses[:, None] * np.where(own, expit(-scores), -expit(scores))
        duals[:, own.all(axis=0) | ~own.any(axis=0)] = 0.0
        return duals
