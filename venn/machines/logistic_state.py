"""State of kernel logistic machines: objects, examples, solutions and inverses, in buffers that grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from venn._compiled import logistic as compiled
from venn.machines.logistic_both import Both, Scratch
from venn.machines.logistic_inverse import Change, Standing, made_anew, rounded_weights
from venn.machines.logistic_kept import KeptLogistic
from venn.machines.machine import NotConverged, grown
from venn.machines.store import ObjectStore, Weighing, doubled
from venn.machines.threads import side_by_side
from venn.prediction import Floats

Result = TypeVar("Result")

REFRESH = 64  # examples, learned or unlearned, between two checks of the inverses
DRIFT = 1e-10


class LogisticState(KeptLogistic, Weighing):
    """One-against-all machines over the same distinct objects, in buffers that grow."""

    def _start(self) -> None:
        c = len(self.classes)
        self._store = ObjectStore(self.kernel)
        self._where: dict[bytes, int] = {}  # place of each object, by content
        self._examples: dict[tuple[int, int, float], int] = {}  # place of each distinct example: object, class, weight
        self._places = np.zeros((3, 0), np.int64)  # object, class and number of each distinct example
        self._weight = np.zeros(0)  # of each distinct example, without that of its class
        self._history = np.zeros(64, np.int64)  # place of each example
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._count = 0  # distinct objects
        self._room = 0
        self._kernel = np.zeros(0)  # packed by rows of the lower triangle, like the inverses
        self._scale = 0.0  # largest K(x, x)
        self._changes = 0  # examples learned and unlearned
        self._masses = np.zeros((c, 0))  # of the examples at each object, weights times those of classes, by class
        self._total = np.zeros(0)
        self._beta, self._score = np.zeros((2, c, 0))
        self._bias = np.zeros(c)
        self._levels = np.zeros((c, 0), np.int64)
        self._inverse = np.zeros((c, 0))  # packed
        self._sums, self._diagonals = np.zeros((2, c, 0))  # of the inverses: sums of rows, and diagonals

    def _weigh(self, class_weights: Floats) -> None:
        """Set the weights of the classes, and list what may be supposed about a new object.

        The last side: the object is of class k. The sides before: it is not, one for each weight it may have.
        """
        c = len(self.classes)
        self.class_weights = class_weights
        values, self._group = np.unique(class_weights, return_inverse=True)
        self._side = np.where(np.eye(c, dtype=bool), len(values), self._group)  # (machines, c) under each label
        # (sides, machines) weight of a new example by its class
        self._unit = np.vstack([np.repeat(values[:, None], c, axis=1), class_weights])
        # Sides of each machine, two of which are solved side by side.
        sides = [np.unique(row) for row in self._side]
        self._pairs = [[row[i : i + 2] for i in range(0, row.size, 2)] for row in sides]
        self._make_scratch()

    def _make_scratch(self) -> None:
        (sides, c), room = self._unit.shape, self._room
        self._betas, self._scores = np.zeros((2, sides, c, room))  # 0 where a machine has no such side
        self._biases = np.zeros((sides, c))
        self._joined = np.zeros((c, room))  # inverse times the new object's kernel
        self._work: list[Scratch] = []  # that of each thread that has solved something, while it is not in use

    def _make_room(self, objects: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        if objects <= self._room:
            return
        c = len(self.classes)
        room = self._room = doubled(self._room, objects)
        self._kernel = grown(self._kernel, room * (room + 1) // 2)
        self._masses, self._total = grown(self._masses, c, room), grown(self._total, room)
        self._beta, self._score = grown(self._beta, c, room), grown(self._score, c, room)
        self._levels = grown(self._levels, c, room)
        self._sums, self._diagonals = grown(self._sums, c, room), grown(self._diagonals, c, room)
        self._inverse = grown(self._inverse, c, room * (room + 1) // 2)
        self._make_scratch()

    def _row(self, p: int) -> Floats:
        """Return the kernel of object p with those before it and itself, a view."""
        start = p * (p + 1) // 2
        return self._kernel[start : start + p + 1]

    def _both(self, k: int, masses: Floats, total: Floats, n: int) -> Both:
        """Return two problems of machine k, for these masses of n examples; both start from its current solution."""
        count = total.size
        return Both.starting(self.C, n, masses, total, self._beta[k, :count], self._score[k, :count])

    def _solve(self, kernel: Floats, both: Both, scale: float, bordered: compiled.Bordered, V: Floats) -> None:
        """Solve two problems over a packed kernel matrix, in scratch that no other thread uses meanwhile."""
        try:
            scratch = self._work.pop()
        except IndexError:
            scratch = Scratch(np.empty((26, self._room)), np.empty((2, compiled.FOLDED, self._room)))
        try:
            both.solve(kernel, scale, bordered, V, scratch)
        except NotConverged as error:
            raise NotConverged(f"{error} at example {self.n}: scale the features, or lower C") from error
        finally:
            self._work.append(scratch)

    def _of_each_class(self, work: Callable[[int], Result]) -> list[Result]:
        """Return what `work` returns for each machine; none writes what another reads."""
        return side_by_side(work, range(len(self.classes)), self.threads)

    def _strike(self, i: int, place: int) -> None:
        """Remove the i-th example, at `place`, from the records; the last place moves to an empty one."""
        self._history[i : self.n - 1] = self._history[i + 1 : self.n]
        self.n -= 1
        self._places[2, place] -= 1
        if self._places[2, place] > 0:
            return
        last = self._weight.size - 1
        keys = [(*self._places[:2, q].tolist(), float(self._weight[q])) for q in (last, place)]
        self._examples[keys[0]] = place
        del self._examples[keys[1]]
        history = self._history[: self.n]
        history[history == last] = place
        self._places[:, place], self._weight[place] = self._places[:, last], self._weight[last]
        self._places, self._weight = self._places[:, :last].copy(), self._weight[:last].copy()

    def _drop(self, p: int) -> None:
        """Remove object p, at which no example is left; the last one takes its place. The caller adapts solutions."""
        last = self._count - 1
        del self._where[self._store.key(p)]
        if p < last:
            self._where[self._store.key(last)] = p
            for place in np.flatnonzero(self._places[0] == last).tolist():
                like = int(self._places[1, place]), float(self._weight[place])
                self._examples[p, *like] = self._examples.pop((last, *like))
            self._places[0, self._places[0] == last] = p
        self._store.drop(p, last)
        compiled.move_last(self._kernel, self._count, p)
        self._count = last

    def _changed(self) -> None:
        """Count a change; now and then rebuild an inverse that rounding has moved."""
        self._changes += 1
        if self._changes % REFRESH or self.n == 0:
            return
        self._of_each_class(self._refresh)

    def _refresh(self, k: int) -> None:
        standing = self._standing(k)
        if not standing.drift((self._changes // REFRESH) % self._count) <= DRIFT:
            self._take(k, made_anew(self._kernel, self._levels[k, : self._count], standing.weights))

    def _standing(self, k: int) -> Standing:
        m = self._count
        return Standing(
            self._kernel, self._inverse[k], self._diagonals[k, :m], self._sums[k, :m],
            rounded_weights(self.C, self._total[:m], self._levels[k, :m]),
        )  # fmt: skip

    def _take(self, k: int, change: Change) -> None:
        """Change machine k's inverse; `_count` is still the number of objects before the change."""
        count = change.levels.size
        change.apply(self._inverse[k], self._count)
        self._levels[k, :count], self._sums[k, :count] = change.levels, change.sums
        self._diagonals[k, :count] = change.diagonal
