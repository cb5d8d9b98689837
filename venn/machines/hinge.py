"""Support vector machines of the hinge loss over the same objects, kept exact online."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import REBUILD, UNSOLVED, Branches, Objects, Scratch, Solved
from venn._compiled.margin import commit_step, rebuild, refresh_scores, worst_residual
from venn._compiled.path import EVENTS
from venn._compiled.span import delete_standing, delete_step
from venn._compiled.step import solve_step
from venn.machines.batch import Problem, batch_solve
from venn.machines.kernels import Kernel, checked_kernel, kernel_row, positive
from venn.machines.machine import (
    Answer,
    Bag,
    NotConverged,
    ScoreTable,
    Tuned,
    check_code,
    checked_class_weights,
    checked_weight,
    clean_object,
    code_of,
    grown,
    only_table,
)
from venn.machines.masses import move_masses
from venn.prediction import Floats, Integers, Label, class_codes

TOLERANCE = 1e-8
REFRESH = 200  # examples between two recomputations of all scores from the kernel


class HingeMachine(ABC):
    """Base of exact incremental support vector machines, several of them, over the same objects.

    For each machine the examples of a class are positive, negative, or none of its own: `signs` says which.
    """

    #: Deleted scores are to first order: see `deleted_bag`.
    deletes_exactly = False
    tuning: Tuned | None = None  #: what chose the kernel and C, if `tune` did

    def __init__(
        self, kernel: Kernel, C: float, classes: Sequence[Label], class_weights: Sequence[float] | Floats | None = None
    ) -> None:
        self.kernel = checked_kernel(kernel)
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        #: (machines, c) whether examples of a class are positive, negative or no examples of a machine
        self.signs = self._signs_of(len(self.classes))
        self.n = 0
        c, k = len(self.classes), len(self.signs)
        self._features: int | None = None
        self._count = 0  # distinct objects learned
        self._where: dict[bytes, int] = {}
        self._asked: HingeHypotheses[Any] | None = None
        self._history = np.zeros((2, 64), np.int64)  # object and class of each example
        self._weights = np.zeros(64)  # of each example, without that of its class
        # Examples at an object that differ from the first in class or weight, and their number.
        self._extras: dict[tuple[int, int, float], int] = {}
        self._scale = 0.0  # largest K(x, x)
        # Buffers: `_make_room` and `_make_margin_room` replace them, and those of `_weigh`, by larger ones.
        self._room = self._margin_room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._counts = np.zeros((c, 0), np.int64)  # examples of each class at each object
        # Class and weight of the first example at each object, and the number of those equal to it.
        self._first, self._first_weight, self._equal = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        self._objects = Objects(np.zeros((0, 0)), np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 2), np.int64))
        self._solved = Solved(
            np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 0), np.int8), np.zeros(k),
            np.zeros((k, 0), np.int64), np.zeros(k, np.int64), np.zeros((k, 0, 0)), np.zeros((k, 0, 0)),
        )  # fmt: skip
        self._scratch = self._new_scratch()
        self._weigh(checked_class_weights(class_weights, self.classes))

    def _weigh(self, class_weights: Floats) -> None:
        """Set the weights of the classes and make the buffers whose shapes depend on them."""
        self.class_weights = class_weights
        # Negative examples weigh alike within a group of classes.
        self._values, self._group = np.unique(class_weights, return_inverse=True)
        self._side = np.where(self.signs > 0, len(self._values), np.where(self.signs < 0, self._group, -1))
        sides, k, room, wide = len(self._values) + 1, len(self.signs), self._room, self._margin_room
        # An example of weight 1, with that of its class: in each branch, 0 where there is none, and as it joins.
        self._unit = np.zeros((sides, k))
        machine, code = (self._side >= 0).nonzero()
        self._unit[self._side[machine, code], machine] = class_weights[code]
        self._joining = np.array([self.signs > 0, self.signs != 0]).T * class_weights[:, None, None]
        counters = np.zeros((3, k, sides), np.int64)
        self._branches = Branches(
            np.zeros((sides, k, room)), np.zeros((sides, k, room)), np.zeros((sides, k, room), np.int8), counters[0],
            counters[1], np.zeros((k, sides, wide), np.int64), np.zeros((k, sides, wide), np.bool_), counters[2],
            np.zeros((k, sides, EVENTS, wide)), np.zeros((k, sides, EVENTS)), np.zeros((k, sides), np.bool_),
        )  # fmt: skip
        # Squared spans of the bounded objects, NaN unknown: by the machines as they stand, by the branches.
        # Empty until deleted scores are asked for.
        self._known, self._spans = np.zeros((k, 0)), np.zeros((sides, k, 0))

    @abstractmethod
    def _signs_of(self, c: int) -> NDArray[np.int8]:
        """Return (machines, c): +1 where examples of a class are positive for a machine, -1 negative, 0 neither."""

    @abstractmethod
    def _answer(self, key: bytes, test: int, count: int, weight: float) -> HingeHypotheses[Any]:
        """Return the answer about the object in column `test`."""

    @abstractmethod
    def _by_class(self, scores: Floats) -> Floats:
        """Return (c, m) scores by class from (machines, m) scores by the machines."""

    def fresh(self) -> Self:
        """Return a machine with the same parameters that has learned nothing."""
        machine = type(self)(self.kernel, self.C, self.classes, self.class_weights)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        weights = (
            "" if len(self._values) == self._values[0] == 1 else f", class_weights={self.class_weights.tolist()!r}"
        )
        return f"{type(self).__name__}({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r}{weights})"

    def _new_scratch(self) -> Scratch:
        width = self._room + EVENTS + 8
        return Scratch(
            np.arange(self._margin_room), np.empty((9, self._margin_room)), np.empty((12, width)),
            np.empty(width, np.int64), np.empty(self._margin_room * width),
        )  # fmt: skip

    def _make_room(self, objects: int, features: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        if features != self._columns.shape[0]:
            # Nothing is learned yet: only then may objects of another length come.
            self._columns = np.zeros((features, self._room))
        if objects <= self._room:
            return
        c, k, room = len(self.classes), len(self.signs), max(64, self._room)
        while room < objects:
            room *= 2
        self._room = room
        self._columns = grown(self._columns, features, room)
        self._counts, self._equal = grown(self._counts, c, room), grown(self._equal, room)
        self._first, self._first_weight = grown(self._first, room), grown(self._first_weight, room)
        kernel, of_class, total, sizes = self._objects
        self._objects = Objects(grown(kernel, room, room), grown(of_class, k, room), grown(total, k, room), sizes)
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
        self._scratch = self._new_scratch()

    def _make_margin_room(self, size: int) -> None:
        """Make room for margins of `size` members and a path's events; capacities double."""
        need = size + EVENTS + 4
        if need <= self._margin_room:
            return
        k, room = len(self.signs), max(128, self._margin_room)
        while room < need:
            room *= 2
        self._margin_room = room
        sides = len(self._branches.beta)
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            members=grown(old.members, k, room),
            inverse=grown(old.inverse, k, room, room),
            spare=grown(old.spare, k, room, room),
        )
        self._branches = asked._replace(
            index=grown(asked.index, k, sides, room),
            alive=grown(asked.alive, k, sides, room),
            terms=grown(asked.terms, k, sides, EVENTS, room),
        )
        self._scratch = self._new_scratch()

    @property
    def bag(self) -> Bag:
        """Training scores now, by distinct object."""
        m = self._count
        return Bag(self._by_class(self._solved.score[:, :m]), self._counts[:, :m].T.copy())

    @property
    def deleted_bag(self) -> Bag:
        """Score of each example by the machines without it, to first order, by distinct example.

        An example of class k, at object i, that the other examples at i and the margin can replace keeps its
        score. Otherwise f(x_i) moves by the part of i's coefficient that has to go, times the squared
        distance of x_i's features from the affine span of the free support vectors ("span"). That is the score
        of the machine solved without the example as long as no other example becomes, or ceases to be, free. With
        no free support vector the bias first moves to the nearest object that can be one; the only example of
        its sign has the other sign's constant score. One class in all keeps its scores.

        References
        ----------
        Chapelle & Vapnik (2000), "Model selection for support vector machines".
        """
        objects, codes, numbers = self._examples(self._count)
        scores = self._delete_standing(self._count, objects, codes, self._example_weights(self._count), -1)
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return Bag(self._by_class(scores), counts)

    def _make_span_room(self) -> None:
        k = len(self.signs)
        if self._known.shape[1] < self._room:
            self._known = np.full((k, self._room), np.nan)
            self._spans = np.full((len(self._values) + 1, k, self._room), np.nan)

    def _delete_standing(self, count: int, objects: Integers, codes: Integers, weights: Floats, test: int) -> Floats:
        """Return the (machines, entries) deleted scores by the machines as they stand; `test` is not their example."""
        self._make_span_room()
        scores = np.empty((len(self.signs), objects.size))
        delete_standing(
            count, self._scale, self.C, self.signs, self._objects, self._solved, self._known, objects, codes, weights,
            test, scores,
        )  # fmt: skip
        return scores

    def _examples(self, count: int) -> tuple[Integers, Integers, Integers]:
        """Return object, class and number of the distinct examples.

        First those like the first one at each of `count` objects, then all others.
        """
        objects, codes, numbers = np.arange(count), self._first[:count], self._equal[:count]
        if self._extras:
            others, classes, _ = zip(*self._extras, strict=True)
            objects, codes = np.concatenate([objects, others]), np.concatenate([codes, classes])
            numbers = np.concatenate([numbers, list(self._extras.values())])
        return objects, codes, numbers

    def _example_weights(self, count: int) -> Floats:
        """Return the weight of one of each of these examples, with that of its class."""
        weights = self._first_weight[:count] * self.class_weights[self._first[:count]]
        further = [weight * self.class_weights[code] for _, code, weight in self._extras]
        return np.concatenate([weights, further])

    def _delete(self, p: int, count: int, weight: float) -> Floats:
        """Return the (sides + 1, machines, entries) deleted scores under all suppositions about p, and under none."""
        self._make_span_room()
        objects, codes, _ = self._examples(count)
        weights = self._example_weights(count)
        test = p
        if p == self._count:
            self._known[:, p] = np.nan
        else:
            # An example of its own: its sign is the supposed one.
            test = objects.size
            objects, codes, weights = np.append(objects, p), np.append(codes, 0), np.append(weights, 0.0)
        supposed = self._unit * weight
        # Zeros where a machine has no such supposition: readers compare such scores before they leave them out.
        scores = np.zeros((len(supposed) + 1, len(self.signs), objects.size))
        delete_step(
            p, count, self._scale_with(p), self.C, self.signs, supposed, self._objects, self._solved, self._branches,
            self._known, self._spans, objects, codes, weights, test, scores,
        )  # fmt: skip
        if (self._side < 0).any():
            scores[-1] = self._delete_standing(count, objects, codes, weights, test)
        return scores

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        if self.n == 0:
            return 0.0
        worst: float = worst_residual(self._count, self._scale, self.C, self._objects, self._solved)
        return worst

    def hypotheses(self, x: Any, weight: float = 1.0) -> HingeHypotheses[Any]:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Solved once and remembered until a label is learned or another object asked about; asking
        leaves no trace that a later answer could depend on.

        Parameters
        ----------
        x : (d,) finite numbers
        weight : float > 0, default 1
            Of the new example; that of its supposed class multiplies it.

        Returns
        -------
        HingeHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x, weight = clean_object(x, self._features), positive("weight", weight)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key and self._asked.weight == weight:
            return self._asked
        supposed = self._unit * weight
        self._forget()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count, x.size)
        self._make_margin_room(int(self._solved.size.max()))
        if p == self._count:
            self._columns[:, p] = x
            row = self._objects.kernel[p]
            self.kernel.row(self._columns, count, x, row)
            self._first[p] = self._equal[p] = 0
        worst = solve_step(
            p, p == self._count, count, self._scale_with(p), self.C, supposed, self._objects, self._solved,
            self._branches, self._scratch,
        )  # fmt: skip
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if UNSOLVED in self._branches.commit:
            for k, side in np.argwhere(self._branches.commit == UNSOLVED):
                worst = max(worst, self._solve_afresh(int(k), int(side), p, count, float(supposed[side, k])))
        if not worst <= TOLERANCE:
            raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {self.n}")
        self._asked = self._answer(key, p, count, weight)
        return self._asked

    def _solve_afresh(self, k: int, side: int, p: int, count: int, weight: float) -> float:
        """Solve one branch without the path; return its worst violation."""
        kernel, of_class, total, _ = self._objects
        positives, totals = of_class[k, :count].copy(), total[k, :count].copy()
        if side == len(self._values):
            positives[p] += weight
        totals[p] += weight
        problem = Problem(kernel[:count], positives, totals, self.C)
        with np.errstate(invalid="ignore"):
            solution = batch_solve(problem, self._solved.beta[k, :count], TOLERANCE)
        if not np.isfinite(solution.score).all():
            return math.inf  # weights too small to hold the bias
        members = np.abs(solution.state) == 1
        solution.score[members] = solution.state[members]
        self._branches.beta[side, k, :count] = solution.beta
        self._branches.score[side, k, :count] = solution.score
        self._branches.state[side, k, :count] = solution.state
        self._branches.commit[k, side] = REBUILD
        return solution.violation

    def _scale_with(self, p: int) -> float:
        return max(self._scale, float(self._objects.kernel[p, p]), 1e-300)

    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.current = False
            self._asked = None

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`."""
        x = clean_object(x, self._features)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key:
            remembered: Floats = self._asked.test_scores.copy()
            return remembered
        known = self._where.get(key)
        if known is not None:
            return self._by_class(self._solved.score[:, known, None])[:, 0]
        m = self._count
        row = kernel_row(self.kernel, self._columns, m, x)
        scores = self._solved.bias + self._solved.beta[:, :m] @ row[:m]
        of_class, examples = self._objects.sizes.T
        scores[of_class == examples] = 1.0
        scores[of_class == 0] = -1.0
        return self._by_class(scores[:, None])[:, 0]

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        clean_object(x, self._features)
        code_of(y, self._codes)

    def learn_one(self, x: Any, y: Label, weight: float = 1.0) -> None:
        """Learn one example: the branch already solved for its label becomes the machine.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        weight : float >= 0, default 1
            It counts as that many equal examples; none is learned of weight 0.
        """
        label = code_of(y, self._codes)
        if checked_weight(weight) == 0:
            clean_object(x, self._features)
            return
        answer = self.hypotheses(x, weight)
        p, count, deleted = answer.test, answer.count, answer._deleted is not None
        self._forget()
        self._features = self._columns.shape[0]
        self._where[answer.key] = p
        self._scale = self._scale_with(p)
        self._count = count
        if self._equal[p] == 0:
            self._first[p], self._first_weight[p] = label, weight
        if self._first[p] == label and self._first_weight[p] == weight:
            self._equal[p] += 1
        else:
            like = (p, label, float(weight))
            self._extras[like] = self._extras.get(like, 0) + 1
        self._counts[label, p] += 1
        joining = self._joining[label]  # (machines, 2): as positive, and at all
        self._objects.positive[:, p] += weight * joining[:, 0]
        self._objects.total[:, p] += weight * joining[:, 1]
        self._objects.sizes[:] += joining > 0
        if self.n == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
        self._history[:, self.n] = p, label
        self._weights[self.n] = weight
        self.n += 1
        sides = self._side[:, label]
        if deleted:
            learning = np.flatnonzero(sides >= 0)
            self._known[learning, :count] = self._spans[sides[learning], learning, :count]
        else:
            self._known.fill(np.nan)
        if commit_step(sides, count, self._objects, self._solved, self._branches):
            for k in np.flatnonzero(sides >= 0).tolist():
                if self._branches.commit[k, sides[k]] == REBUILD:
                    self._make_margin_room(int((abs(self._solved.state[k, :count]) == 1).sum()))
                    rebuild(k, self._scale, count, self.C, self._objects, self._solved)
                    self._refresh(k)
        if self.n % REFRESH == 0:
            self._known.fill(np.nan)
            for k in range(len(self.signs)):
                self._refresh(k)

    def reweigh(self, class_weights: Sequence[float] | Floats | None) -> None:
        """Give the classes other weights: the machines are then those that learned all examples with these.

        Each machine follows its exact solution while the weights go from old to new in a straight line. That costs a
        pass over the margin for each event on the way, and some over the kernel.

        Parameters
        ----------
        class_weights : sequence of c numbers > 0, or None
            Weight of an example of each class, those learned included; None for 1 each.

        Raises
        ------
        ValueError, TypeError
            For weights out of range; nothing changes.
        NotConverged
            When a solution misses the tolerance of 1e-8 even after a batch solve; nothing changes.

        Examples
        --------
        >>> import venn
        >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.reweigh([1, 5])
        >>> machine
        OneVsAllSVM(RBF(gamma=1.0), C=1.0, classes=['no', 'yes'], class_weights=[1.0, 5.0])
        """
        weights = checked_class_weights(class_weights, self.classes)
        count, (objects, codes) = self._count, self._history[:, : self.n]
        masses = np.zeros((len(self.classes), count))
        np.add.at(masses, (codes, objects), self._weights[: self.n] * weights[codes])
        of, of_not = (self.signs > 0) @ masses, (self.signs < 0) @ masses
        self._objects, self._solved, _ = move_masses(
            self._objects, self._solved, count, max(self._scale, 1e-300), self.C, of, of + of_not, TOLERANCE
        )
        self._forget()
        self._weigh(weights)
        self._make_margin_room(int(self._solved.size.max()))

    def _refresh(self, k: int) -> None:
        """Recompute machine k's scores and bias from the kernel, unless it has one class only."""
        if 0 < self._objects.sizes[k, 0] < self._objects.sizes[k, 1]:
            refresh_scores(k, self._count, self._objects, self._solved)


Hinge = TypeVar("Hinge", bound=HingeMachine)


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
            features = machine._columns[:, columns]
        else:
            scores, features = self._branches(), machine._columns
            if columns.size > self.count:
                # An object with examples of several classes or weights is several distinct examples of equal scores.
                scores, features = scores[:, :, columns], features[:, columns]
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
