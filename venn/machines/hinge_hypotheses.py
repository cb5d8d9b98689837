"""What support vector machines of the hinge loss answer about a new object."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import Branches, Objects, Solved
from venn.machines.base import BaseHypotheses
from venn.machines.checks import check_code
from venn.machines.machine import ScoreTable, Tables
from venn.machines.spans import Entries, Spans
from venn.machines.store import ObjectStore
from venn.prediction import Floats, Integers


class Distinct(NamedTuple):
    """The distinct examples: first those equal to the first one at each object, then all others."""

    places: Integers  # (objects,) from 0 on
    first: Integers  # (objects,) class of the first example at each
    first_weight: Floats  # (objects,) its weight, without that of its class
    equal: Integers  # (objects,) number of examples like it
    extras: dict[tuple[int, int, float], int]  # number of the others by object, class and weight
    class_weights: Floats

    @property
    def size(self) -> int:
        """Number of objects."""
        return self.places.size

    def examples(self) -> tuple[Integers, Integers, Integers]:
        """Return object, class and number of each distinct example."""
        objects, codes, numbers = self.places, self.first, self.equal
        if self.extras:
            others, classes, _ = zip(*self.extras, strict=True)
            objects, codes = np.concatenate([objects, others]), np.concatenate([codes, classes])
            numbers = np.concatenate([numbers, list(self.extras.values())])
        return objects, codes, numbers

    def entries(self) -> Entries:
        """Return object, class and weight (times that of the class) of one of each."""
        objects, codes, _ = self.examples()
        weights = self.first_weight * self.class_weights[self.first]
        further = [weight * self.class_weights[code] for _, code, weight in self.extras]
        return Entries(objects, codes, np.concatenate([weights, further]))

    def columns(self, objects: Integers, codes: Integers, weights: Floats) -> Integers:
        """Return the place of each of these examples among the distinct ones."""
        columns = objects.copy()
        if self.extras:
            where = {like: self.places.size + column for column, like in enumerate(self.extras)}
            unlike = (codes != self.first[objects]) | (weights != self.first_weight[objects])
            for i in np.flatnonzero(unlike).tolist():
                columns[i] = where[int(objects[i]), int(codes[i]), float(weights[i])]
        return columns


class Question(NamedTuple):
    """The object asked about, and the arrays of the machines that answer."""

    test: int  # place of the object among the distinct ones
    weight: float  # of the new example, without that of its supposed class
    C: float
    scale: float  # without the object
    wider: float  # and with it
    signs: NDArray[np.int8]  # (machines, c)
    side: Integers  # (machines, c) what each machine supposes under each hypothesis, -1 for nothing
    supposed: Floats  # (sides, machines) weight of the new example
    objects: Objects
    solved: Solved
    branches: Branches
    distinct: Distinct
    history: Integers  # (2, n) object and class of each example
    weights: Floats  # (n,) of each example, without that of its class
    store: ObjectStore
    spans: Spans


class HingeHypotheses(BaseHypotheses):
    """What the machines would look like if the new object had each of the labels.

    Deleted scores are first-order approximations: see `OneVsAllSVM.deleted_bag`. The new example is treated like the
    others. Its deleted scores may depend on the hypothesis, because its coefficient does; at an object learned before
    it has its own column.

    Attributes
    ----------
    asked : Question
    """

    def __init__(self, key: bytes, test_scores: Floats, asked: Question) -> None:
        super().__init__(key, test_scores, asked.weight)
        self.asked = asked
        self._deleted: Floats | None = None

    def tables(self, deleted: bool) -> Tables:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        self.check_current()
        asked = self.asked
        columns, labels, numbers = asked.distinct.examples()
        test = asked.test
        if deleted:
            if self._deleted is None:
                self._deleted = self._delete()
            scores = self._deleted
            if scores.shape[2] > columns.size:
                # The new example has a column of its own.
                test = columns.size
                columns, labels, numbers = np.append(columns, asked.test), np.append(labels, 0), np.append(numbers, 0)
            features = asked.store.of(columns)
        else:
            scores, features = self._branches(), asked.store.columns
            if columns.size > asked.distinct.size:
                # An object with examples of several classes or weights is several distinct examples of equal scores.
                scores, features = scores[:, :, columns], asked.store.of(columns)
        return [
            (ScoreTable(negative, positive, labels, numbers, test, features), codes)
            for negative, positive, codes in self._pairs(scores)
        ]

    def _delete(self) -> Floats:
        """Return the (sides + 1, machines, entries) deleted scores under all suppositions, and under none."""
        asked = self.asked
        entries, test = self._entries()
        scores = self._supposing(asked.supposed, entries, test)
        if (asked.side < 0).any():
            scores[-1] = asked.spans.standing(
                asked.C, asked.scale, asked.objects, asked.solved, asked.distinct.size, entries, test
            )
        return scores

    def _entries(self) -> tuple[Entries, int]:
        """Return the distinct examples with the new one, and its place."""
        asked, entries = self.asked, self.asked.distinct.entries()
        if asked.distinct.equal[asked.test] == 0:
            return entries, asked.test
        # An example of its own: its sign is the supposed one.
        test = entries.objects.size
        objects, codes, weights = entries
        return Entries(np.append(objects, asked.test), np.append(codes, 0), np.append(weights, 0.0)), test

    def _supposing(self, supposed: Floats, entries: Entries, test: int) -> Floats:
        asked = self.asked
        return asked.spans.supposing(
            asked.test, supposed, asked.C, asked.wider, asked.objects, asked.solved, asked.branches,
            asked.distinct.size, entries, test,
        )  # fmt: skip

    def measure(self, sides: Integers) -> None:
        """Measure the spans by the branches `sides`, -1 for none, unless already done."""
        if self._deleted is None:
            chosen = np.arange(len(self.asked.supposed))[:, None] == sides
            alone = Entries(np.array([self.asked.test]), np.zeros(1, np.int64), np.zeros(1))  # no other is read
            self._supposing(np.where(chosen, self.asked.supposed, 0.0), alone, 0)

    def _branches(self) -> Floats:
        """Return the (sides + 1, machines, objects) scores under all suppositions, and, last, under none."""
        return np.concatenate([self.asked.branches.score, self.asked.solved.score[None]])

    @abstractmethod
    def _pairs(self, scores: Floats) -> list[tuple[Floats, Floats, Integers]]:
        """Return (c, m) scores where the object is not of class k, where it is, and the hypotheses they are for."""

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        self.check_current()
        objects, codes = self.asked.history
        return self.asked.distinct.columns(objects, codes, self.asked.weights)

    def _supposed(self, j: int, values: Floats) -> Floats:
        """Return the (machines, ...) values under hypothesis j, of (sides + 1, machines, ...) ones."""
        check_code(j, self.test_scores.size)
        return values[self.asked.side[:, j], np.arange(len(self.asked.signs))]

    def duals(self, j: int) -> Floats:
        """Return (n + 1, machines) signed coefficients under hypothesis j; equal objects share theirs by weight."""
        self.check_current()
        asked, count = self.asked, self.asked.distinct.size
        (objects, labels), by_class = asked.history, asked.distinct.class_weights
        betas = self._supposed(j, np.concatenate([asked.branches.beta, asked.solved.beta[None]]))[:, :count]
        new = self.weight * by_class[j]
        total = asked.objects.total[:, :count].copy()
        total[asked.signs[:, j] != 0, asked.test] += new
        weights = np.append(asked.weights * by_class[labels], new)
        own = np.abs(asked.signs[:, np.append(labels, j)]) * weights
        shares: Floats = (betas / np.where(total > 0, total, 1.0))[:, np.append(objects, asked.test)] * own
        return shares.T
