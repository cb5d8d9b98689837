"""State of support vector machines of the hinge loss: objects, examples, solutions, in buffers that grow."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import Branches, Objects, Scratch, Solved
from venn._compiled.path import EVENTS
from venn.machines.hinge_hypotheses import Distinct
from venn.machines.hinge_kept import KeptHinge
from venn.machines.kernels import proximities
from venn.machines.machine import grown
from venn.machines.spans import Spans
from venn.machines.store import ObjectStore, Weighing, doubled
from venn.prediction import Floats, Integers

# Extra columns of a matrix beyond its room, a power of two: else all rows would start at one place of the cache.
OFFSET = 8


class HingeState(KeptHinge, Weighing):
    """Several machines over the same distinct objects, and the examples at each object, in buffers that grow."""

    def _start(self) -> None:
        #: (machines, c) whether examples of a class are positive, negative or unused for a machine
        self.signs = self._signs_of(len(self.classes))
        c, k = len(self.classes), len(self.signs)
        self._store = ObjectStore(proximities(self.kernel))
        self._count = 0  # distinct objects learned
        self._where: dict[bytes, int] = {}
        self._history = np.zeros((2, 64), np.int64)  # object and class of each example
        self._weights = np.zeros(64)  # of each example, without that of its class
        # Examples at an object that differ from the first in class or weight, and their number.
        self._extras: dict[tuple[int, int, float], int] = {}
        # Largest squared distance from the first object, and K(x, x) where the kernel does not know its proximities.
        self._scale = 0.0
        self._held: dict[tuple[int, int], Solved] = {}  # by machine and side, branches with margins of their own
        # Buffers: `_make_room` and `_make_margin_room` replace them, and those of `_weigh`, by larger ones.
        self._room = self._margin_room = 0
        self._counts = np.zeros((c, 0), np.int64)  # examples of each class at each object
        # Class and weight of the first example at each object, and the number of those equal to it.
        self._first, self._first_weight, self._equal = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        self._objects = Objects(np.zeros((0, 0)), np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 2), np.int64))
        self._solved = Solved(
            np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 0), np.int8), np.zeros(k),
            np.zeros((k, 0), np.int64), np.zeros(k, np.int64), np.zeros((k, 0, 0)), np.zeros((k, 0, 0)), np.zeros(k),
        )  # fmt: skip
        self._set_scratch()
        self._spans = Spans(self.signs, 0)

    def _weigh(self, class_weights: Floats) -> None:
        self.class_weights = class_weights
        # Negative examples weigh alike within a group of classes.
        self._values, self._group = np.unique(class_weights, return_inverse=True)
        self._side = np.where(self.signs > 0, len(self._values), np.where(self.signs < 0, self._group, -1))
        sides, k = len(self._values) + 1, len(self.signs)
        # Weight of an example, times that of its class: in each branch (0 where there is none), and as it joins.
        self._unit = np.zeros((sides, k))
        machine, code = (self._side >= 0).nonzero()
        self._unit[self._side[machine, code], machine] = class_weights[code]
        self._joining = np.array([self.signs > 0, self.signs != 0]).T * class_weights[:, None, None]
        self._branches = self._new_branches()
        self._spans = Spans(self.signs, sides, self._spans.kept)

    @abstractmethod
    def _signs_of(self, c: int) -> NDArray[np.int8]:
        """Return (machines, c): +1 where examples of a class are positive for a machine, -1 negative, 0 neither."""

    def _new_branches(self) -> Branches:
        sides, k, room, wide = len(self._values) + 1, len(self.signs), self._room, self._margin_room
        counters = np.zeros((3, k, sides), np.int64)
        return Branches(
            np.zeros((sides, k, room)), np.zeros((sides, k, room)), np.zeros((sides, k, room), np.int8), counters[0],
            counters[1], np.zeros((k, sides, wide), np.int64), np.zeros((k, sides, wide), np.bool_), counters[2],
            np.zeros((k, sides, EVENTS, wide + OFFSET)), np.zeros((k, sides, EVENTS)), np.zeros((k, sides), np.bool_),
            np.zeros((k, sides)),
        )  # fmt: skip

    def _set_scratch(self) -> None:
        """Make scratch of the sizes that the rooms have now."""
        self._scratch = self._new_scratch()
        self._beside: list[Scratch] = []  # that of each thread that has solved something, while it is not in use

    def _new_scratch(self) -> Scratch:
        width = self._room + EVENTS + 8
        return Scratch(
            np.arange(max(self._room, self._margin_room)), np.empty((9, self._margin_room)), np.empty((12, width)),
            np.empty(width, np.int64), np.empty(self._margin_room * width),
        )  # fmt: skip

    def _make_room(self, objects: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        if objects <= self._room:
            return
        c, k = len(self.classes), len(self.signs)
        room = self._room = doubled(self._room, objects)
        self._counts, self._equal = grown(self._counts, c, room), grown(self._equal, room)
        self._first, self._first_weight = grown(self._first, room), grown(self._first_weight, room)
        kernel, of_class, total, sizes = self._objects
        self._objects = Objects(
            grown(kernel, room, room + OFFSET), grown(of_class, k, room), grown(total, k, room), sizes
        )
        sides = len(self._branches.beta)
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            beta=grown(old.beta, k, room), score=grown(old.score, k, room), state=grown(old.state, k, room)
        )
        self._branches = asked._replace(
            beta=grown(asked.beta, sides, k, room),
            score=grown(asked.score, sides, k, room),
            state=grown(asked.state, sides, k, room),
        )
        self._set_scratch()

    def _make_margin_room(self, size: int) -> None:
        """Make room for margins of `size` members and a path's events; capacities double."""
        need = size + EVENTS + 4
        if need <= self._margin_room:
            return
        k, room = len(self.signs), doubled(max(128, self._margin_room), need)
        self._margin_room = room
        sides = len(self._branches.beta)
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            members=grown(old.members, k, room),
            inverse=grown(old.inverse, k, room, room + OFFSET),
            spare=grown(old.spare, k, room, room + OFFSET),
        )
        self._branches = asked._replace(
            index=grown(asked.index, k, sides, room),
            alive=grown(asked.alive, k, sides, room),
            terms=np.zeros((k, sides, EVENTS, room + OFFSET)),
        )
        self._set_scratch()

    def _distinct(self, count: int) -> Distinct:
        """Return the distinct examples at the first `count` objects; the object asked about may have none yet."""
        return Distinct(
            self._scratch.order[:count], self._first[:count], self._first_weight[:count], self._equal[:count],
            self._extras, self.class_weights,
        )  # fmt: skip

    def _scale_with(self, p: int) -> float:
        """Return the scale if object p is added to the others."""
        kernel = self._objects.kernel
        itself = float(kernel[p, p])
        return max(self._scale, itself, float(kernel[0, 0] + itself - 2.0 * kernel[p, 0]), 1e-300)

    def _scale_of_all(self) -> float:
        kernel, m = self._objects.kernel, self._count
        itself = kernel.diagonal()[:m]
        away = itself - 2.0 * kernel[0, :m]
        return max(0.0, float(itself.max(initial=0.0)), float(away.max() + kernel[0, 0]) if m else 0.0)

    def _enlist(self, p: int, label: int, weight: float) -> None:
        """Count an example at object p among the distinct ones."""
        if self._equal[p] == 0:
            self._first[p], self._first_weight[p] = label, weight
        if self._first[p] == label and self._first_weight[p] == weight:
            self._equal[p] += 1
        else:
            like = (p, label, float(weight))
            self._extras[like] = self._extras.get(like, 0) + 1

    def _masses_at(self, examples: Integers) -> Floats:
        """Return the (machines, 2) masses of these examples of one object: of the positive ones, and of all.

        They are summed in order of arrival: so every bit is as if no other examples had ever come.
        """
        masses = np.zeros((examples.size + 1, len(self.signs), 2))
        masses[1:] = self._joining[self._history[1, examples]] * self._weights[examples, None, None]
        return masses.cumsum(axis=0)[-1]

    def _strike(self, i: int, p: int, others: Integers) -> None:
        """Remove the i-th example from the records; `others` are those at its object p, in order of arrival."""
        codes, weights = self._history[1, : self.n].tolist(), self._weights[: self.n].tolist()
        self._counts[codes[i], p] -= 1
        self._equal[p] = 0
        for example in (i, *others.tolist()):
            self._extras.pop((p, codes[example], weights[example]), None)
        for example in others.tolist():
            self._enlist(p, codes[example], weights[example])
        last = self.n - 1
        self._history[:, i:last] = self._history[:, i + 1 : self.n]
        self._weights[i:last] = self._weights[i + 1 : self.n]
        self.n = last

    def _drop(self, p: int) -> None:
        """Remove object p, at which no example is left; the last one takes its place."""
        last = self._count - 1
        del self._where[self._store.key(p)]
        if p != last:
            self._where[self._store.key(last)] = p
            if self._extras:
                numbers = self._extras.items()
                self._extras = {(p if q == last else q, code, weight): n for (q, code, weight), n in numbers}
            history = self._history[0, : self.n]
            history[history == last] = p
            members = self._solved.members
            members[(members == last) & (np.arange(members.shape[1]) < self._solved.size[:, None])] = p
            kernel, of_class, total, _ = self._objects
            kernel[p, :last] = kernel[last, :last]
            kernel[p, p] = kernel[last, last]
            kernel[:last, p] = kernel[p, :last]
            by_object = [
                self._counts, self._equal, self._first, self._first_weight, of_class, total, self._solved.beta,
                self._solved.score, self._solved.state,
            ]  # fmt: skip
            for values in by_object:
                values[..., p] = values[..., last]
            self._spans.move(last, p)
        self._store.drop(p, last)
        self._counts[:, last] = self._equal[last] = 0
        self._count = last
