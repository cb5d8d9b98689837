"""One-against-all support vector machines, kept exact online."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

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
from venn.prediction import Floats, Integers, Label, class_codes

TOLERANCE = 1e-8
REFRESH = 200  # examples between two recomputations of all scores from the kernel


class OneVsAllSVM:
    """Exact incremental one-against-all support vector machines.

    Machine k minimises 1/2 |w|^2 + C sum_i max(0, 1 - t_i f_k(x_i)), t_i = +1 for class k and -1 for
    the others, with f_k(x) = <w, phi(x)> + b. Each step solves, for every machine, the two problems
    with the new object as positive and as negative; the branch of the revealed label is kept.

    Where the optimum leaves a choice, it is fixed by content, never by order: one class present gives
    f = +1 or -1 everywhere, an absent class f = -1, and without a free support vector the bias is the
    midpoint of its interval. Free support vectors have a score of exactly +1 or -1.

    Memory: with room for M distinct objects and S margin slots, both powers of two, M the next above the
    number of objects and S the next above the largest margin plus 260, a machine reserves
    8 M^2 + c (16 S^2 + 4096 S + 59 M) + 8 S (M + 264) bytes and little more; what is never touched is never
    resident. When room doubles, the old buffers stand beside the new ones for a moment. Deleted scores, once
    asked for, take 24 c M bytes more.

    Parameters
    ----------
    kernel : Kernel
        `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the same method.
    C : float > 0
        Bound on the coefficient of one example of weight 1.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    class_weights : sequence of c numbers > 0, optional
        Weight of an example of each class; 1 by default. An example of weight w counts as w equal ones: the bound
        on its coefficient is C w. With more than two classes of different weights "not of class k" has as many
        weights, and a step solves that many problems more.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst violation of the optimality conditions over all machines, scores recomputed from the kernel.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When a solution misses the tolerance of 1e-8 even after a batch solve.

    References
    ----------
    Cauwenberghs & Poggio (2000), "Incremental and decremental support vector machine learning".

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 1.121, -1.121])
    >>> machine.hypotheses([0.6]).scores(1).shape
    (5, 2)
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
        self.class_weights = checked_class_weights(class_weights, self.classes)
        # Negative examples weigh alike within a group of classes.
        self._values, self._group = np.unique(self.class_weights, return_inverse=True)
        sides = len(self._values) + 1
        self.n = 0
        c = len(self.classes)
        self._features: int | None = None
        self._count = 0  # distinct objects learned
        self._where: dict[bytes, int] = {}
        self._asked: OneVsAllHypotheses | None = None
        self._history = np.zeros((2, 64), np.int64)  # object and class of each example
        self._weights = np.zeros(64)  # of each example, without that of its class
        # Examples at an object that differ from the first in class or weight, and their number.
        self._extras: dict[tuple[int, int, float], int] = {}
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._scale = 0.0  # largest K(x, x)
        # Buffers: `_make_room` and `_make_margin_room` replace them by larger ones.
        self._room = self._margin_room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._counts = np.zeros((c, 0), np.int64)  # examples of each class at each object
        # Class and weight of the first example at each object, and the number of those equal to it.
        self._first, self._first_weight, self._equal = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        counters = np.zeros((3, c, sides), np.int64)
        self._objects = Objects(np.zeros((0, 0)), np.zeros((c, 0)), np.zeros(0))
        self._solved = Solved(
            np.zeros((c, 0)), np.zeros((c, 0)), np.zeros((c, 0), np.int8), np.zeros(c),
            np.zeros((c, 0), np.int64), np.zeros(c, np.int64), np.zeros((c, 0, 0)), np.zeros((c, 0, 0)),
        )  # fmt: skip
        self._branches = Branches(
            np.zeros((sides, c, 0)), np.zeros((sides, c, 0)), np.zeros((sides, c, 0), np.int8), counters[0],
            counters[1], np.zeros((c, sides, 0), np.int64), np.zeros((c, sides, 0), np.bool_), counters[2],
            np.zeros((c, sides, EVENTS, 0)), np.zeros((c, sides, EVENTS)), np.zeros((c, sides), np.bool_),
        )  # fmt: skip
        self._scratch = self._new_scratch()
        # Squared spans of the bounded objects, NaN unknown: by the machines as they stand, by the branches.
        # Empty until deleted scores are asked for.
        self._known, self._spans = np.zeros((c, 0)), np.zeros((sides, c, 0))

    def fresh(self) -> OneVsAllSVM:
        """Return a machine with the same parameters that has learned nothing."""
        machine = OneVsAllSVM(self.kernel, self.C, self.classes, self.class_weights)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        weights = (
            "" if len(self._values) == self._values[0] == 1 else f", class_weights={self.class_weights.tolist()!r}"
        )
        return f"OneVsAllSVM({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r}{weights})"

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
        c, room = len(self.classes), max(64, self._room)
        while room < objects:
            room *= 2
        self._room = room
        self._columns = grown(self._columns, features, room)
        self._counts, self._equal = grown(self._counts, c, room), grown(self._equal, room)
        self._first, self._first_weight = grown(self._first, room), grown(self._first_weight, room)
        kernel, mass, total = self._objects
        self._objects = Objects(grown(kernel, room, room), grown(mass, c, room), grown(total, room))
        sides = len(self._branches.beta)
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            beta=grown(old.beta, c, room), score=grown(old.score, c, room), state=grown(old.state, c, room)
        )
        self._branches = asked._replace(
            beta=grown(asked.beta, sides, c, room),
            score=grown(asked.score, sides, c, room),
            state=grown(asked.state, sides, c, room),
        )
        self._scratch = self._new_scratch()

    def _make_margin_room(self, size: int) -> None:
        """Make room for margins of `size` members and a path's events; capacities double."""
        need = size + EVENTS + 4
        if need <= self._margin_room:
            return
        c, room = len(self.classes), max(128, self._margin_room)
        while room < need:
            room *= 2
        self._margin_room = room
        sides = len(self._branches.beta)
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            members=grown(old.members, c, room),
            inverse=grown(old.inverse, c, room, room),
            spare=grown(old.spare, c, room, room),
        )
        self._branches = asked._replace(
            index=grown(asked.index, c, sides, room),
            alive=grown(asked.alive, c, sides, room),
            terms=grown(asked.terms, c, sides, EVENTS, room),
        )
        self._scratch = self._new_scratch()

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by distinct object."""
        m = self._count
        return Bag(self._solved.score[:, :m].copy(), self._counts[:, :m].T.copy())

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
        self._make_span_room()
        objects, codes, numbers, weights = self._examples(self._count)
        scores = np.empty((len(self.classes), objects.size))
        delete_standing(
            self._count, self.n, self._sizes, self._scale, self.C, self._objects, self._solved, self._known, objects,
            codes, weights, scores,
        )  # fmt: skip
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return Bag(scores, counts)

    def _make_span_room(self) -> None:
        c = len(self.classes)
        if self._known.shape[1] < self._room:
            self._known = np.full((c, self._room), np.nan)
            self._spans = np.full((len(self._values) + 1, c, self._room), np.nan)

    def _examples(self, count: int) -> tuple[Integers, Integers, Integers, Floats]:
        """Return object, class, number and weight of the distinct examples; the weight with that of the class.

        First those like the first one at each of `count` objects, then all others.
        """
        objects, codes = np.arange(count), self._first[:count]
        numbers, weights = self._equal[:count].copy(), self._first_weight[:count].copy()
        if self._extras:
            others, classes, further = zip(*self._extras, strict=True)
            objects, codes = np.concatenate([objects, others]), np.concatenate([codes, classes])
            numbers = np.concatenate([numbers, list(self._extras.values())])
            weights = np.concatenate([weights, further])
        weights *= self.class_weights[codes]
        return objects, codes, numbers, weights

    def _supposed(self, weight: float) -> Floats:
        """Return the (sides, c) weights of an example of the given one, in each branch; 0 where there is no branch."""
        supposed = np.zeros((len(self._values) + 1, len(self.classes)))
        for code, group in enumerate(self._group):
            supposed[group] = self._values[group]
            supposed[-1, code] = self.class_weights[code]
        for code, group in enumerate(self._group):
            if (self._group == group).sum() == 1:
                supposed[group, code] = 0.0  # no other class has this weight
        return weight * supposed

    def _delete(self, p: int, count: int, weight: float) -> Floats:
        """Return the (sides, c, entries) deleted scores under all suppositions about object p, and set `_entries`."""
        self._make_span_room()
        objects, codes, _, weights = self._examples(count)
        test = p
        if p == self._count:
            self._known[:, p] = np.nan
        else:
            # An example of its own: its sign is the supposed one.
            test = objects.size
            objects, codes, weights = np.append(objects, p), np.append(codes, 0), np.append(weights, 0.0)
        supposed = self._supposed(weight)
        scores = np.empty((len(supposed), len(self.classes), objects.size))
        delete_step(
            p, count, self.n, self._sizes, self._scale_with(p), self.C, supposed, self._objects, self._solved,
            self._branches, self._known, self._spans, objects, codes, weights, test, scores,
        )  # fmt: skip
        return scores

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        if self.n == 0:
            return 0.0
        worst: float = worst_residual(
            self._count, self.n, self._sizes, self._scale, self.C, self._objects, self._solved
        )
        return worst

    def hypotheses(self, x: Any, weight: float = 1.0) -> OneVsAllHypotheses:
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
        OneVsAllHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x = clean_object(x, self._features)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key and self._asked.weight == weight:
            return self._asked
        supposed = self._supposed(positive("weight", weight))
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
            p, p == self._count, count, self.n, self._sizes, self._scale_with(p), self.C, supposed, self._objects,
            self._solved, self._branches, self._scratch,
        )  # fmt: skip
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if UNSOLVED in self._branches.commit:
            for k, side in np.argwhere(self._branches.commit == UNSOLVED):
                worst = max(worst, self._solve_afresh(int(k), int(side), p, count, float(supposed[side, k])))
        if not worst <= TOLERANCE:
            raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {self.n}")
        self._asked = OneVsAllHypotheses(self, key, p, count, float(weight))
        return self._asked

    def _solve_afresh(self, k: int, side: int, p: int, count: int, weight: float) -> float:
        """Solve one branch without the path; return its worst violation."""
        kernel, mass, total = self._objects
        positives, totals = mass[k, :count].copy(), total[:count].copy()
        if side == len(self._values):
            positives[p] += weight
        totals[p] += weight
        solution = batch_solve(
            Problem(kernel[:count], positives, totals, self.C), self._solved.beta[k, :count], TOLERANCE
        )
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
            scores: Floats = self._solved.score[:, known].copy()
            return scores
        m = self._count
        row = kernel_row(self.kernel, self._columns, m, x)
        scores = self._solved.bias + self._solved.beta[:, :m] @ row[:m]
        scores[self._sizes == self.n] = 1.0
        scores[self._sizes == 0] = -1.0
        return scores

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
        self._objects.mass[label, p] += weight * self.class_weights[label]
        self._objects.total[p] += weight * self.class_weights[label]
        self._sizes[label] += 1
        if self.n == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
        self._history[:, self.n] = p, label
        self._weights[self.n] = weight
        self.n += 1
        sides = np.full(len(self.classes), self._group[label])
        sides[label] = len(self._values)
        if deleted:
            self._known[:, :count] = self._spans[sides, np.arange(len(sides)), :count]
        else:
            self._known.fill(np.nan)
        if commit_step(sides, count, self._objects, self._solved, self._branches):
            for k in range(len(self.classes)):
                if self._branches.commit[k, sides[k]] == REBUILD:
                    self._make_margin_room(int((abs(self._solved.state[k, :count]) == 1).sum()))
                    rebuild(k, self._scale, count, self.C, self._objects, self._solved)
                    self._refresh(k)
        if self.n % REFRESH == 0:
            self._known.fill(np.nan)
            for k in range(len(self.classes)):
                self._refresh(k)

    def _refresh(self, k: int) -> None:
        """Recompute machine k's scores and bias from the kernel, unless it has one class only."""
        if 0 < self._sizes[k] < self.n:
            refresh_scores(k, self._count, self._objects, self._solved)


class OneVsAllHypotheses(Answer["OneVsAllSVM"]):
    """What the machines would look like if the new object had each of the labels.

    Attributes
    ----------
    test : int
        Column of the object among the distinct ones.
    weight : float
        Of the new example, without that of its supposed class.
    """

    def __init__(self, machine: OneVsAllSVM, key: bytes, test: int, count: int, weight: float) -> None:
        super().__init__(machine, key, machine._solved.score[:, test].copy())
        self.test = test
        self.count = count
        self.weight = weight
        self._deleted: Floats | None = None

    def tables(self, deleted: bool) -> list[tuple[ScoreTable, Integers]]:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for.

        There is one table for all hypotheses unless classes differ in weight: then one for each weight.
        """
        machine = self._buffers()
        columns, labels, numbers, _ = machine._examples(self.count)
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
            scores, features = machine._branches.score, machine._columns
            if columns.size > self.count:
                # An object with examples of several classes or weights is several distinct examples of equal scores.
                scores, features = scores[:, :, columns], features[:, columns]
        return [
            (ScoreTable(negative, scores[-1], labels, numbers, test, features), np.flatnonzero(machine._group == group))
            for group, negative in enumerate(scores[:-1])
        ]

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

    def _under_weight(self, j: int, values: Floats, columns: Integers) -> Floats:
        """Return (n + 1, c) values under hypothesis j, of (sides, c, ...) values."""
        check_code(j, len(self.classes))
        return self._under(j, values[self._machine._group[j]], values[-1], columns)

    def _in_order(self) -> Integers:
        machine = self._buffers()
        return np.append(machine._history[0, : machine.n], self.test)

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._under_weight(j, self._buffers()._branches.score, self._in_order())

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""
        machine, table = self._buffers(), self.tables(True)[0][0]
        assert self._deleted is not None
        objects, codes, _, weights = machine._examples(self.count)
        where = {like: column for column, like in enumerate(zip(objects, codes, weights, strict=True))}
        history = machine._history[:, : machine.n]
        effective = machine._weights[: machine.n] * machine.class_weights[history[1]]
        examples = [where[like] for like in zip(*history, effective, strict=True)]
        return self._under_weight(j, self._deleted, np.array([*examples, table.test]))

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients under hypothesis j; equal objects share theirs by weight."""
        machine = self._buffers()
        check_code(j, len(self.classes))
        betas = machine._branches.beta[:, :, : self.count]
        total = machine._objects.total[: self.count].copy()
        new = self.weight * machine.class_weights[j]
        total[self.test] += new
        weights = np.append(machine._weights[: machine.n] * machine.class_weights[self.labels], new)
        duals: Floats = self._under_weight(j, betas / total, self._in_order()) * weights[:, None]
        return duals
