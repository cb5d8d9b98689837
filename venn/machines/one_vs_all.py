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
    clean_object,
    code_of,
    grown,
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
        Bound on the coefficient of one example.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.

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

    def __init__(self, kernel: Kernel, C: float, classes: Sequence[Label]) -> None:
        self.kernel = checked_kernel(kernel)
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.n = 0
        c = len(self.classes)
        self._features: int | None = None
        self._count = 0  # distinct objects learned
        self._where: dict[bytes, int] = {}
        self._asked: OneVsAllHypotheses | None = None
        self._history = np.zeros((2, 64), np.int64)  # object and class of each example
        self._extras: dict[tuple[int, int], int] = {}  # examples of classes beyond the first at an object
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._scale = 0.0  # largest K(x, x)
        # Buffers: `_make_room` and `_make_margin_room` replace them by larger ones.
        self._room = self._margin_room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._first = np.zeros(0, np.int64)  # class first seen at each object
        counters = np.zeros((3, c, 2), np.int64)
        self._objects = Objects(np.zeros((0, 0)), np.zeros((c, 0), np.int64), np.zeros(0, np.int64))
        self._solved = Solved(
            np.zeros((c, 0)), np.zeros((c, 0)), np.zeros((c, 0), np.int8), np.zeros(c),
            np.zeros((c, 0), np.int64), np.zeros(c, np.int64), np.zeros((c, 0, 0)), np.zeros((c, 0, 0)),
        )  # fmt: skip
        self._branches = Branches(
            np.zeros((2, c, 0)), np.zeros((2, c, 0)), np.zeros((2, c, 0), np.int8), counters[0], counters[1],
            np.zeros((c, 2, 0), np.int64), np.zeros((c, 2, 0), np.bool_), counters[2],
            np.zeros((c, 2, EVENTS, 0)), np.zeros((c, 2, EVENTS)), np.zeros((c, 2), np.bool_),
        )  # fmt: skip
        self._scratch = self._new_scratch()
        # Squared spans of the bounded objects, NaN unknown: by the machines as they stand, by the branches.
        # Empty until deleted scores are asked for.
        self._known, self._spans = np.zeros((c, 0)), np.zeros((2, c, 0))

    def fresh(self) -> OneVsAllSVM:
        """Return a machine with the same parameters that has learned nothing."""
        machine = OneVsAllSVM(self.kernel, self.C, self.classes)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        return f"OneVsAllSVM({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r})"

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
        self._first = grown(self._first, room)
        kernel, counts, total = self._objects
        self._objects = Objects(grown(kernel, room, room), grown(counts, c, room), grown(total, room))
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            beta=grown(old.beta, c, room), score=grown(old.score, c, room), state=grown(old.state, c, room)
        )
        self._branches = asked._replace(
            beta=grown(asked.beta, 2, c, room),
            score=grown(asked.score, 2, c, room),
            state=grown(asked.state, 2, c, room),
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
        old, asked = self._solved, self._branches
        self._solved = old._replace(
            members=grown(old.members, c, room),
            inverse=grown(old.inverse, c, room, room),
            spare=grown(old.spare, c, room, room),
        )
        self._branches = asked._replace(
            index=grown(asked.index, c, 2, room),
            alive=grown(asked.alive, c, 2, room),
            terms=grown(asked.terms, c, 2, EVENTS, room),
        )
        self._scratch = self._new_scratch()

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by distinct object."""
        m = self._count
        return Bag(self._solved.score[:, :m].copy(), self._objects.counts[:, :m].T.copy())

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
        objects, codes, weights = self._examples(self._count)
        scores = np.empty((len(self.classes), objects.size))
        delete_standing(
            self._count, self.n, self._sizes, self._scale, self.C, self._objects, self._solved, self._known, objects,
            codes, scores,
        )  # fmt: skip
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = weights
        return Bag(scores, counts)

    def _make_span_room(self) -> None:
        c = len(self.classes)
        if self._known.shape[1] < self._room:
            self._known, self._spans = np.full((c, self._room), np.nan), np.full((2, c, self._room), np.nan)

    def _examples(self, count: int) -> tuple[Integers, Integers, Integers]:
        """Return object, class and number of the distinct examples.

        First those of the class first seen at each of `count` objects, then those of further classes.
        """
        objects, codes, weights = np.arange(count), self._first[:count], self._objects.total[:count]
        if self._extras:
            others, classes = np.array(list(self._extras), np.int64).T
            examples = np.array(list(self._extras.values()), np.int64)
            objects, codes = np.concatenate([objects, others]), np.concatenate([codes, classes])
            weights = np.concatenate([weights, examples])
            np.subtract.at(weights, others, examples)
        return objects, codes, weights

    def _delete(self, p: int, count: int) -> ScoreTable:
        """Return the deleted scores under every hypothesis about object p, the object last."""
        self._make_span_room()
        objects, codes, weights = self._examples(count)
        test = p
        if p == self._count:
            self._known[:, p] = np.nan
        else:
            # An example of its own: its sign is the supposed one.
            test = objects.size
            objects, codes, weights = np.append(objects, p), np.append(codes, 0), np.append(weights, 0)
        scores = np.empty((2, len(self.classes), objects.size))
        delete_step(
            p, count, self.n, self._sizes, self._scale_with(p), self.C, self._objects, self._solved, self._branches,
            self._known, self._spans, objects, codes, test, scores,
        )  # fmt: skip
        return ScoreTable(scores[0], scores[1], codes, weights, test, self._columns[:, objects])

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        if self.n == 0:
            return 0.0
        worst: float = worst_residual(
            self._count, self.n, self._sizes, self._scale, self.C, self._objects, self._solved
        )
        return worst

    def hypotheses(self, x: Any) -> OneVsAllHypotheses:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Solved once and remembered until a label is learned or another object asked about; asking
        leaves no trace that a later answer could depend on.

        Parameters
        ----------
        x : (d,) finite numbers

        Returns
        -------
        OneVsAllHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x = clean_object(x, self._features)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key:
            return self._asked
        self._forget()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count, x.size)
        self._make_margin_room(int(self._solved.size.max()))
        if p == self._count:
            self._columns[:, p] = x
            row = self._objects.kernel[p]
            self.kernel.row(self._columns, count, x, row)
            self._first[p] = 0
        worst = solve_step(
            p, p == self._count, count, self.n, self._sizes, self._scale_with(p), self.C, self._objects, self._solved,
            self._branches, self._scratch,
        )  # fmt: skip
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if UNSOLVED in self._branches.commit:
            for k, side in np.argwhere(self._branches.commit == UNSOLVED):
                worst = max(worst, self._solve_afresh(int(k), int(side), p, count))
        if not worst <= TOLERANCE:
            raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {self.n}")
        self._asked = OneVsAllHypotheses(self, key, p, count)
        return self._asked

    def _solve_afresh(self, k: int, side: int, p: int, count: int) -> float:
        """Solve one branch without the path; return its worst violation."""
        kernel, counts, total = self._objects
        positives, totals = counts[k, :count].copy(), total[:count].copy()
        positives[p] += side
        totals[p] += 1
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

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example: the branch already solved for its label becomes the machine.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        """
        label = code_of(y, self._codes)
        answer = self.hypotheses(x)
        p, count, deleted = answer.test, answer.count, answer._deleted is not None
        self._forget()
        self._features = self._columns.shape[0]
        self._where[answer.key] = p
        self._scale = self._scale_with(p)
        self._count = count
        if self._objects.total[p] == 0:
            self._first[p] = label
        elif self._first[p] != label:
            self._extras[p, label] = self._extras.get((p, label), 0) + 1
        self._objects.counts[label, p] += 1
        self._objects.total[p] += 1
        self._sizes[label] += 1
        if self.n == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
        self._history[:, self.n] = p, label
        self.n += 1
        if deleted:
            self._known[:, :count] = self._spans[0, :, :count]
            self._known[label, :count] = self._spans[1, label, :count]
        else:
            self._known.fill(np.nan)
        if commit_step(label, count, self._objects, self._solved, self._branches):
            for k in range(len(self.classes)):
                if self._branches.commit[k, int(k == label)] == REBUILD:
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
    """

    def __init__(self, machine: OneVsAllSVM, key: bytes, test: int, count: int) -> None:
        super().__init__(machine, key, machine._solved.score[:, test].copy())
        self.test = test
        self.count = count
        self._deleted: ScoreTable | None = None

    @property
    def table(self) -> ScoreTable:
        """Scores of all examples by the machines that have learned them all."""
        machine = self._buffers()
        negative, positive = machine._branches.score
        features = machine._columns
        columns, labels, weights = machine._examples(self.count)
        if columns.size > self.count:
            # An object with examples of several classes is several distinct examples of equal scores.
            negative, positive, features = negative[:, columns], positive[:, columns], features[:, columns]
        return ScoreTable(negative, positive, labels, weights, self.test, features)

    @property
    def deleted_table(self) -> ScoreTable:
        """Score of each example by the machines without it, to first order: see `OneVsAllSVM.deleted_bag`.

        The new example is treated like the others. Its scores may depend on the hypothesis, for its
        coefficient does; at an object learned before it has a column of its own.
        """
        machine = self._buffers()
        if self._deleted is None:
            self._deleted = machine._delete(self.test, self.count)
        return self._deleted

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        return machine._history[1, : machine.n].copy()

    def _in_order(self) -> Integers:
        machine = self._buffers()
        return np.append(machine._history[0, : machine.n], self.test)

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        negative, positive = self._buffers()._branches.score
        return self._under(j, negative, positive, self._in_order())

    def deleted(self, j: int) -> Floats:
        """Return (n + 1, c) deleted scores under hypothesis j, in the order of `scores`."""
        machine, table = self._buffers(), self.deleted_table
        column = np.zeros((self.count, len(machine.classes)), np.int64)
        objects, codes, _ = machine._examples(self.count)
        column[objects, codes] = np.arange(objects.size)
        examples = column[tuple(machine._history[:, : machine.n])]
        return self._under(j, table.negative, table.positive, np.append(examples, table.test))

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients under hypothesis j; equal objects share theirs equally."""
        betas = self._buffers()._branches.beta[:, :, : self.count]
        share = self._buffers()._objects.total[: self.count].astype(np.float64)
        share[self.test] += 1
        return self._under(j, betas[0] / share, betas[1] / share, self._in_order())
