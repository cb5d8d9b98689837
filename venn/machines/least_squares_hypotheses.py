"""What least-squares machines would look like under each hypothesis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from venn.machines.base import BaseHypotheses
from venn.machines.machine import ScoreTable, Tables
from venn.machines.ridge import Bordered, RidgeSystem
from venn.prediction import Floats, Integers


class Supposed(NamedTuple):
    """The data of an answer about an object; the new example comes last."""

    group: Integers  # (c,) group of classes of equal weight to which each class belongs
    labels: Integers  # (n + 1,) class codes, in order of arrival
    columns: Floats  # (d, n + 1) objects, empty where they are sparse
    system: RidgeSystem
    bordered: list[Bordered]  # by group
    room: Floats  # (groups, 4, c, > n) for tables: of training scores and deleted ones, negative and positive


class LeastSquaresHypotheses(BaseHypotheses):
    """What the machines would look like if the new object had each of the labels.

    There is one table for all hypotheses unless classes differ in weight: then one for each weight. The deleted score
    of the new example is the same under every hypothesis.
    """

    def __init__(self, key: bytes, test_scores: Floats, weight: float, supposed: Supposed) -> None:
        super().__init__(key, test_scores, weight)
        self.supposed = supposed
        self._ready = [False, False]  # tables of training and of deleted scores

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        return np.arange(len(self.supposed.labels) - 1)

    def tables(self, deleted: bool) -> Tables:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        pairs = self.fill(deleted)
        supposed = self.supposed
        n = len(supposed.labels) - 1
        numbers = np.ones(n + 1, np.int64)
        numbers[n] = 0
        return [
            (
                ScoreTable(negative, positive, supposed.labels, numbers, n, supposed.columns),
                np.flatnonzero(supposed.group == group),
            )
            for group, (negative, positive) in enumerate(pairs)
        ]

    def fill(self, deleted: bool) -> Floats:
        """Return the scores, computed once: by group, negative and positive, (groups, 2, c, > n)."""
        self.check_current()
        supposed = self.supposed
        pairs = supposed.room[:, 2 * deleted : 2 * deleted + 2]
        if not self._ready[deleted]:
            for new, (negative, positive) in zip(supposed.bordered, pairs, strict=True):
                supposed.system.fill(deleted, new, self.test_scores, 2.0, negative, positive)
            self._ready[deleted] = True
        return pairs

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) coefficients C weight (t - f) under hypothesis j, in the same order."""
        scores, supposed = self.scores(j), self.supposed
        targets = np.where(np.append(self.labels, j)[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        n = len(supposed.labels) - 1
        ridge = np.append(supposed.system.ridge[:n], supposed.bordered[supposed.group[j]].ridge)
        return (targets - scores) / ridge[:, None]
