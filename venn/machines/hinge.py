"""One-against-all support vector machines of the hinge loss, kept exact online."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from operator import methodcaller

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import HELD, REBUILD, UNSOLVED, UPDATE, Objects, Scratch, Solved
from venn._compiled.margin import certify, commit_step, place
from venn._compiled.path import EVENTS
from venn._compiled.rows import add_rows
from venn._compiled.solvers import exact_scores_from, judge, tolerance_of
from venn._compiled.step import PART, solve_step
from venn.machines.base import PlacedTable
from venn.machines.batch_solve import backup_of, solved_anew
from venn.machines.block_pivoting import SMALL, Problem, Solution, exchanged, margin_from_states
from venn.machines.hinge_hypotheses import HingeBuffers, HingeQuestion, Listing, OneVsAllHypotheses, Spans, mirrored
from venn.machines.kernels import proximities
from venn.machines.machine import Bag, NotConverged
from venn.machines.rounding import assured, seen
from venn.machines.store import Content, ObjectStore, StoreWeighing, all_one
from venn.machines.threads import one_thread, side_by_side
from venn.parameters import integer
from venn.prediction import Floats, Integers, Label
from venn.saved import component, own, param, restored_float, state
from venn.turns import asks

MANY, SHARE = 150, 0.25  # most objects that may change on a path: number and share of all, see `changes_of_a_path`


def changes_of_a_path(count: int) -> int:
    """Return how many of `count` objects may change on a path: with more, block pivoting is faster."""
    return max(MANY, min(int(SHARE * count), 2 * EVENTS))


def signs_of(classes: Sequence[Label]) -> NDArray[np.int8]:
    """Return whether examples of a class are positive or negative for a machine; of two classes one is solved."""
    signs = (2 * np.eye(len(classes)) - 1).astype(np.int8)
    return signs[:1] if len(classes) == 2 else signs


@component
class OneVsAllSVM(StoreWeighing):
    """Exact incremental one-against-all support vector machines.

    Machine k minimises 1/2 |w|^2 + C sum_i max(0, 1 - t_i f_k(x_i)), t_i = +1 for class k and -1 for
    the others, with f_k(x) = <w, phi(x)> + b. Each step solves, for every machine, the two problems
    with the new object as positive and as negative; the branch of the revealed label is kept.

    With two classes the second machine is the first with all signs reversed: it is not solved again.

    Where the optimum leaves a choice, it is fixed by content, never by order: one class present gives
    f = +1 or -1 everywhere, an absent class f = -1, and without a free support vector the bias is the
    midpoint of its interval. Free support vectors have a score of exactly +1 or -1.

    Memory: M and S are powers of two, the next above the number of objects and above the largest margin plus 260. With
    room for M distinct objects and S margin slots a machine reserves
    8 M^2 + c (16 S^2 + 4096 S + 59 M) + 8 S (M + 264) bytes and little more (c is 1 for two classes); memory never
    touched is never resident. When room doubles, the old buffers stand beside the new ones for a moment.
    Leave-one-out scores, once read or expected, take 24 c M bytes more.

    Objects may be sparse, rows of `scipy.sparse` of shape (1, d) or (d,): the first one decides, and the others are
    converted. A dense object takes 8 d bytes, a sparse one 12 for each number that is not 0 and 16.

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
        on its coefficient is C w. With more than two classes of different weights, "not of class k" has several
        weights, and a step solves a problem for each.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are, and a
        `ScaleWarning` says where columns are far apart; False keeps quiet.
    threads : int >= 1, default 1
        Number of machines solved in parallel. It changes no bit of any result; yet a run with a journal goes on with
        the number that it began with.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst violation of the optimality conditions over all machines, scores recomputed from the kernel.
    tolerance : float
        The largest residual that is accepted after any step: 1e-8, or 1e-14 C R^2 where that is more and at most 1e-4,
        where R^2 is the largest squared distance of an object's features from the first one's (and K(x, x), for kernels
        other than `RBF` and `Linear`). A score is a sum of such terms, and a number has 16 digits.
    duals : (n, machines) float64
        Signed coefficients of the examples.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When a solution misses the tolerance even after a batch solve; nothing is learned from the example.

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

    #: Leave-one-out scores are first-order approximations: see `leave_one_out_bag`.
    exact_leave_one_out = False

    threads: int = param(integer, 1, default=1, kw_only=True, unsaid=all_one)
    _listing: Listing = state(start=own(lambda machine: Listing(machine.class_weights)), within=True)
    _spans: Spans = state(start=own(methodcaller("_new_spans")), within=True)
    _buffers: HingeBuffers = state(start=own(methodcaller("_new_buffers")), within=True)
    # Largest squared distance from the first object, and K(x, x) where the kernel does not know its proximities.
    _scale: float = state(restored_float, 0.0, start=0.0)

    def _new_store(self) -> ObjectStore:
        return ObjectStore(proximities(self.kernel), self.scale is not None)

    def _new_examples(self) -> PlacedTable:
        return PlacedTable(self._store, len(self.classes))

    def _new_spans(self) -> Spans:
        return Spans(self._examples, signs_of(self.classes), len(set(self.class_weights.tolist())) + 1)

    def _new_buffers(self) -> HingeBuffers:
        return HingeBuffers(self._examples, len(self._spans.signs), self._spans.sides)

    def derive(self) -> None:
        """Weigh what may be supposed, and sum the examples by object."""
        super().derive()
        weights, n, kept = self.class_weights, self.n, self._examples
        self.signs = self._spans.signs
        # Negative examples weigh alike within a group of classes.
        values, group = np.unique(weights, return_inverse=True)
        self._side = np.where(self.signs > 0, len(values), group)
        # Weight of an example, times that of its class: in each branch (0 where there is none), and as it joins.
        self._unit = np.zeros((len(values) + 1, len(self.signs)))
        machine, code = np.indices(self.signs.shape)
        self._unit[self._side, machine] = weights[code]
        self._joining = np.array([self.signs > 0, self.signs != 0]).T * weights[:, None, None]
        self._held: dict[tuple[int, int], Solved] = {}  # by machine and side, branches with margins of their own
        if n == 0:
            return
        self._make_room(self._stored)
        # Weights are summed in order of arrival, as they were when examples came.
        places, codes, each = kept.places[:n], kept.codes[:n], kept.weights[:n]
        joining = self._joining[codes] * each[:, None, None]
        objects, of_class = self._buffers.objects, np.bincount(codes, minlength=len(self.classes))
        objects.positive[:], objects.total[:] = 0.0, 0.0
        np.add.at(objects.positive.T, places, joining[:, :, 0])
        np.add.at(objects.total.T, places, joining[:, :, 1])
        objects.sizes[:] = np.array([(self.signs > 0) @ of_class, np.full(len(self.signs), n)]).T
        self._listing.count(zip(places.tolist(), codes.tolist(), each.tolist(), strict=True))

    @property
    def _stored(self) -> int:
        return self._examples.count

    def fresh(self) -> OneVsAllSVM:
        """Return a machine with the same parameters that has learned nothing."""
        machine = super().fresh()
        if self._spans.kept:
            machine.expect_leave_one_out()
        return machine

    # ------------------------------------------------------------------ reading

    def _by_class(self, scores: Floats) -> Floats:
        """Return (c, m) scores by class from (machines, m) scores by the machines."""
        if len(self.classes) > 2:
            return scores.copy()
        # Before the first example both classes are absent.
        return mirrored(scores) if self.n else np.full((2, scores.shape[1]), -1.0)

    @property
    def bag(self) -> Bag:
        """Training scores now, by distinct object."""
        m, examples = self._stored, self._examples
        counts = np.zeros((m, len(self.classes)), np.int64)
        np.add.at(counts, (examples.places[: self.n], examples.codes[: self.n]), 1)
        return Bag(self._by_class(self._buffers.solved.score[:, :m]), counts)

    @property
    def leave_one_out_bag(self) -> Bag:
        """First-order approximation of the score of each example by the machines without it, by distinct example.

        An example of class k at object i keeps its score where the other examples at i and the margin can replace it.
        Otherwise f(x_i) moves by the part of i's coefficient that has to go, times the squared distance of x_i's
        features from the affine span of the free support vectors ("span"). That is the score of the machine solved
        without the example as long as no other example becomes, or ceases to be, free. With no free support vector the
        bias first moves to the nearest object that can be one; the only example of its sign has the other sign's
        constant score. If there is only one class, its examples keep their scores.

        References
        ----------
        Chapelle & Vapnik (2000), "Model selection for support vector machines".
        """
        count, b = self._stored, self._buffers
        distinct = self._listing.listed(b.scratch.order[:count])
        objects, codes, numbers = distinct.examples()
        scores = self._spans.standing(self.C, self._scale, b.objects, b.solved, count, distinct.entries())
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return Bag(self._by_class(scores), counts)

    def expect_leave_one_out(self) -> None:
        """Update the terms of leave-one-out scores at each step: reading these is then faster, and learning slower."""
        self._spans.kept = True

    @property
    @asks
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        b, of, found = self._buffers, self._buffers.objects.sizes, [0.0]
        for k in np.flatnonzero((of[:, 0] > 0) & (of[:, 0] < of[:, 1])).tolist():
            found.append(seen(k, self._stored, self.C, b.objects, b.solved))
            if not found[-1] <= PART * self.tolerance:  # rounding of the sums may be in it
                found[-1] = seen(k, self._stored, self.C, b.objects, b.solved, exact_scores_from)
        return float(np.max(found))

    @property
    @asks
    def duals(self) -> Floats:
        """(n, c) signed coefficients in order of arrival; equal objects share theirs in proportion to weight."""
        m, n, solved = self._stored, self.n, self._buffers.solved
        codes = self._examples.codes[:n]
        own = self._examples.weights[:n] * self.class_weights[codes]
        total = self._buffers.objects.total[:, :m]
        shares: Floats = (solved.beta[:, :m] / np.where(total > 0, total, 1.0))[:, self._examples.places[:n]] * own
        return shares.T if len(self.classes) > 2 else mirrored(shares).T

    @property
    def tolerance(self) -> float:
        """Largest accepted violation of the optimality conditions, see the class."""
        return float(tolerance_of(self.C, self._scale))

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        m, known, solved = self._stored, self._examples.find(key), self._buffers.solved
        if known < m:
            return self._by_class(solved.score[:, known, None])[:, 0]
        row = self._store.row_with(m, x)
        scores = solved.bias + solved.beta[:, :m] @ row[:m]
        of_class, examples = self._buffers.objects.sizes.T
        scores[of_class == examples] = 1.0
        scores[of_class == 0] = -1.0
        return self._by_class(scores[:, None])[:, 0]

    # ----------------------------------------------------------------- learning

    def _make_room(self, objects: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        self._buffers.make_room(objects)
        self._listing.make_room(self._buffers.room)

    def _scale_with(self, p: int) -> float:
        """Return the scale if object p is added to the others."""
        kernel = self._buffers.objects.kernel
        itself = float(kernel[p, p])
        return max(self._scale, itself, float(kernel[0, 0] + itself - 2.0 * kernel[p, 0]), 1e-300)

    def _solved_for(self, x: Content, key: bytes, weight: float) -> OneVsAllHypotheses:
        supposed = self._unit * weight
        self.forget()
        self._held.clear()
        b, p = self._buffers, self._examples.find(key)
        count = max(self._stored, p + 1)
        self._make_room(count)
        b.make_margin_room(max(b.solved.size.tolist()))
        if p == self._stored:
            self._store.put(p, x)
            self._store.row(count, x, b.objects.kernel[p])
            self._listing.begin(p)
            self._spans.forget_object(p)
        scale = self._scale_with(p)
        tolerance = tolerance_of(self.C, scale)
        worst, unsolved = self._solve(p, count, scale, tolerance, supposed)
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if unsolved:
            for k, side in np.argwhere(b.branches.commit == UNSOLVED).tolist():
                worst = max(worst, self._solve_afresh(k, side, p, count, tolerance, float(supposed[side, k])))
        if not worst <= tolerance:
            raise NotConverged(f"{self._missed(tolerance, worst, scale)} at example {self.n}")
        asked = HingeQuestion(
            p, weight, self.C, self._scale, scale, self.signs, self._side, supposed, b.objects, b.solved, b.branches,
            self._listing.listed(b.scratch.order[:count]), self._examples, self._store, self._spans,
        )  # fmt: skip
        return OneVsAllHypotheses(key, self._by_class(b.solved.score[:, p, None])[:, 0], asked)

    def _solve(self, p: int, count: int, scale: float, tolerance: float, supposed: Floats) -> tuple[float, int]:
        """Solve all branches about object p by their paths; return (worst violation, branches left unsolved)."""
        b, machines, new = self._buffers, len(self.signs), p == self._stored
        many = changes_of_a_path(count)

        def step(new: bool, scratch: Scratch, first: int, last: int) -> tuple[float, int]:
            return solve_step(
                p, new, count, scale, tolerance, self.C, supposed, b.objects, b.solved, b.branches, scratch,
                (first, last), many,
            )  # fmt: skip

        if self.threads == 1:
            return step(new, b.scratch, 0, machines)

        def of_machine(k: int) -> tuple[float, int]:
            try:
                scratch = b.beside.pop()
            except IndexError:
                scratch = b.new_scratch()
            try:
                return step(False, scratch, k, k + 1)
            finally:
                b.beside.append(scratch)

        if new and place(p, b.objects, b.solved) != 0.0:
            return math.nan, 0
        worst, unsolved = zip(*side_by_side(of_machine, range(machines), self.threads), strict=True)
        return max(worst), sum(unsolved)

    def _missed(self, tolerance: float, worst: float, scale: float) -> str:
        """Return a message: a residual is too large, and what may help."""
        cure = ""
        if self.C * scale > 1e6:
            cure = f" (C times the largest squared distance of objects is {self.C * scale:.1g}: scale them, or lower C)"
        return f"residual must be at most {tolerance:.3g}, got {worst:.3g}{cure}"

    def _solve_afresh(self, k: int, side: int, p: int, count: int, tolerance: float, weight: float) -> float:
        """Solve one branch by other means than the path of one coefficient; return its worst violation."""
        b, own, of = self._buffers, slice(k, k + 1), side == len(self._unit) - 1
        sign = 1 if of else -1
        kernel, positive, total, sizes = b.objects
        before = Objects(kernel, positive[own, :count], total[own, :count], sizes[own])
        after = Objects(kernel, before.positive.copy(), before.total.copy(), sizes[own] + [of, 1])
        after.positive[0, p] += weight if of else 0.0
        after.total[0, p] += weight
        branches, scale = b.branches, self._scale_with(p)
        problem = Problem(kernel[:count], after.positive[0], after.total[0], self.C, scale, tolerance)
        start = self._straight_ahead(k, p, count, sign, weight)
        with one_thread(), np.errstate(invalid="ignore", over="ignore"):  # NaN misses the tolerance
            guess = start.state.copy()
            judge(count, *problem[1:4], SMALL * tolerance, problem.near, start.beta, start.score, start.state, guess)
            found = exchanged(problem, start._replace(state=guess))
        commit, drift = REBUILD, found.violation
        if not found.violation <= PART * tolerance:
            if b.solved.size[k] > changes_of_a_path(count):  # else its path has failed
                worst = self._walk(k, side, p, count, scale, tolerance, weight)
                if branches.commit[k, side] != UNSOLVED:
                    return worst
            with suppress(NotConverged):
                machine = solved_anew(before, after, b.solved, k, count, scale, self.C, tolerance)
                found = Solution(machine.beta[0], machine.score[0], machine.state[0], 0.0)
                commit, drift = HELD, float(machine.drift[0])
                self._held[k, side] = machine
        if not found.violation <= tolerance:
            return found.violation
        members = np.abs(found.state) == 1
        branches.beta[side, k, :count], branches.state[side, k, :count] = found.beta, found.state
        branches.score[side, k, :count] = np.where(members, found.state, found.score)
        branches.drift[k, side] = drift
        branches.commit[k, side] = commit
        return found.violation

    def _walk(self, k: int, side: int, p: int, count: int, scale: float, tolerance: float, weight: float) -> float:
        """Solve one branch by its path, however many members change on it; return its worst violation."""
        b, commit = self._buffers, self._buffers.branches.commit
        others = commit[k].copy()
        supposed = np.zeros((len(others), len(self.signs)))
        supposed[side, k] = weight
        worst, _ = solve_step(
            p, False, count, scale, tolerance, self.C, supposed, b.objects, b.solved, b.branches, b.scratch, (k, k + 1),
            count,
        )  # fmt: skip
        others[side] = commit[k, side]
        commit[k] = others
        return float(worst)

    def _straight_ahead(self, k: int, p: int, count: int, sign: int, weight: float) -> Solution:
        """Return machine k if its first motion continued to the end, with one more label supposed at p."""
        solved, kernel = self._buffers.solved, self._buffers.objects.kernel
        beta, score, state = (values[k, :count].copy() for values in (solved.beta, solved.score, solved.state))
        m = int(solved.size[k])
        if m == 0 or abs(state[p]) == 1:
            return Solution(beta, score, state, math.inf)
        members, inverse = solved.members[k, :m], solved.inverse[k, : m + 1, : m + 1]
        direction = -inverse @ np.append(1.0, kernel[p, members])
        response = kernel[p, :count] + direction[0]
        add_rows(response, count, kernel, members, direction[1:], m)
        move = sign * self.C * weight
        if response[p] > 0.0 and sign * (sign - score[p]) < abs(move) * response[p]:
            move = (sign - score[p]) / response[p]
            state[p] = sign
        beta[members] += move * direction[1:]
        beta[p] += move
        return Solution(beta, score + move * response, state, math.inf)

    def _learn(self, answer: OneVsAllHypotheses, label: int, weight: float) -> None:
        p, count = answer.asked.test, answer.asked.distinct.size
        sides = self._side[:, label]
        if self._spans.kept:
            answer.measure(sides)
        self._commit(sides, p, count, weight * self._joining[label])
        self.forget()
        self._held.clear()
        self._store.keep(p)
        self._scale = self._scale_with(p)
        self._listing.add(p, label, weight)
        self._examples.put(answer.key, label, weight)
        self._spans.take(sides, count)

    def _commit(self, sides: Integers, p: int, count: int, joining: Floats) -> None:
        """Set the machines to those of the branches `sides`, one for each; or raise, and change none.

        The residual of a branch comes from scores that were updated for many steps. Where rounding may have added up,
        or the margin is rebuilt, scores are computed from the kernel before anything is learned.
        """
        b, scale = self._buffers, self._scale_with(p)
        branches, solved, objects = b.branches, b.solved, b.objects
        tolerance = tolerance_of(self.C, scale)
        own = np.arange(len(sides))
        doubtful = (branches.commit[own, sides] >= REBUILD) | (branches.drift[own, sides] > PART * tolerance)
        if doubtful.any():
            before = {k: backup_of(k, count, solved) for k in np.flatnonzero(doubtful).tolist()}
            sizes, masses = objects.sizes.copy(), (objects.positive[:, p].copy(), objects.total[:, p].copy())
            commit_step(np.where(doubtful, sides, -1), p, joining, count, objects, solved, branches)
            try:
                for k in before:
                    self._certify(k, int(sides[k]), count, scale, tolerance)
            except NotConverged:
                objects.sizes[:], (objects.positive[:, p], objects.total[:, p]) = sizes, masses
                b.take(before)
                raise
        if not doubtful.all():
            # Margins may have got more room since.
            commit_step(np.where(doubtful, -1, sides), p, joining, count, b.objects, b.solved, b.branches)

    def _certify(self, k: int, side: int, count: int, scale: float, tolerance: float) -> None:
        """Make sure that machine k, just committed, satisfies its equations; raise where it does not."""
        b = self._buffers
        if not 0 < b.objects.sizes[k, 0] < b.objects.sizes[k, 1]:
            b.solved.size[k] = 0
            return
        how, least = b.branches.commit[k, side], math.inf
        if how == HELD:
            b.take({k: self._held[k, side]})
        for build, apart in ((how not in (HELD, UPDATE), False), (True, False), (True, True)):
            if build:
                self._stand_as(k, side, count)
                self._rebuild(k, count, scale, tolerance, apart)
            worst = certify(k, tolerance, count, self.C, b.objects, b.solved)
            least = min(least, assured(k, count, scale, tolerance, self.C, b.objects, b.solved, worst))
            if least <= tolerance:
                return
        raise NotConverged(f"{self._missed(tolerance, least, scale)} at example {self.n}")

    def _stand_as(self, k: int, side: int, count: int) -> None:
        """Set machine k, except its margin, to its branch."""
        solved, branches, kernel = self._buffers.solved, self._buffers.branches, self._buffers.objects.kernel
        solved.beta[k, :count] = branches.beta[side, k, :count]
        solved.score[k, :count] = branches.score[side, k, :count]
        solved.state[k, :count] = branches.state[side, k, :count]
        solved.bias[k] = solved.score[k, 0] - kernel[0, :count] @ solved.beta[k, :count]

    def _rebuild(self, k: int, count: int, scale: float, tolerance: float, apart: bool) -> None:
        """Build machine k's margin from its states: see `margin_from_states`."""
        b = self._buffers
        kernel, positive, total, _ = b.objects
        problem = Problem(kernel[:count], positive[k, :count], total[k, :count], self.C, scale, tolerance)
        members, inverse = margin_from_states(problem, b.solved.beta[k, :count], b.solved.state[k, :count], apart)
        m = members.size
        b.make_margin_room(m)
        solved = b.solved
        solved.size[k], solved.members[k, :m], solved.inverse[k, : m + 1, : m + 1] = m, members, inverse
