"""Support vector machines of the hinge loss over the same objects, kept exact online."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Self

import numpy as np

from venn._compiled.buffers import HELD, REBUILD, UNSOLVED, UPDATE, Objects, Scratch, Solved
from venn._compiled.dense import add_rows
from venn._compiled.exchange import judge
from venn._compiled.margin import certify, commit_step, place, worst_residual
from venn._compiled.path import ABOVE, BELOW, EVENTS, MIDDLE
from venn._compiled.smo import tolerance_of
from venn._compiled.step import PART, solve_step
from venn.machines.checks import checked_place
from venn.machines.exchange import (
    SMALL,
    Problem,
    Solution,
    exchanged,
    margin_from_states,
    one_thread,
)
from venn.machines.hinge_hypotheses import HingeHypotheses, Question
from venn.machines.hinge_state import HingeState
from venn.machines.machine import Bag, NotConverged
from venn.machines.masses import SURE, backup_of, move_masses, move_one
from venn.machines.store import Content
from venn.machines.threads import side_by_side
from venn.prediction import Floats, Integers

MANY, SHARE = 150, 0.25  # most objects that may change on a path: number and share of all, see `changes_of_a_path`


def changes_of_a_path(count: int) -> int:
    """Return how many of `count` objects may change on a path: with more, block pivoting is faster."""
    return max(MANY, min(int(SHARE * count), 2 * EVENTS))


class HingeMachine(HingeState):
    """Base of several exact incremental support vector machines over the same objects.

    For each machine the examples of a class are positive, negative or unused: `signs` says which.
    """

    #: Deleted scores are first-order approximations: see `deleted_bag`.
    deletes_exactly = False

    @abstractmethod
    def _answer(self, key: bytes, test_scores: Floats, asked: Question) -> HingeHypotheses:
        """Return the answer to a question."""

    @abstractmethod
    def _by_class(self, scores: Floats) -> Floats:
        """Return (c, m) scores by class from (machines, m) scores by the machines."""

    def fresh(self) -> Self:
        """Return a machine with the same parameters that has learned nothing."""
        machine = super().fresh()
        if self._spans.kept:
            machine.expect_deleted()
        return machine

    @property
    def bag(self) -> Bag:
        """Training scores now, by distinct object."""
        m = self._count
        return Bag(self._by_class(self._solved.score[:, :m]), self._counts[:, :m].T.copy())

    @property
    def deleted_bag(self) -> Bag:
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
        distinct = self._distinct(self._count)
        objects, codes, numbers = distinct.examples()
        scores = self._spans.standing(self.C, self._scale, self._objects, self._solved, self._count, distinct.entries())
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return Bag(self._by_class(scores), counts)

    def expect_deleted(self) -> None:
        """Update the terms of deleted scores at each step: reading these is then faster, and learning slower."""
        self._spans.kept = True

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        if self.n == 0:
            return 0.0
        return worst_residual(self._count, self.C, self._objects, self._solved)

    @property
    def duals(self) -> Floats:
        """(n, machines) signed coefficients in order of arrival; equal objects share theirs in proportion to weight."""
        m, history = self._count, self._history[:, : self.n]
        own = np.abs(self.signs[:, history[1]]) * self._weights[: self.n] * self.class_weights[history[1]]
        total = self._objects.total[:, :m]
        shares: Floats = (self._solved.beta[:, :m] / np.where(total > 0, total, 1.0))[:, history[0]] * own
        return shares.T

    @property
    def tolerance(self) -> float:
        """Largest accepted violation of the optimality conditions, see the class."""
        return float(tolerance_of(self.C, self._scale))

    @property
    def _stored(self) -> int:
        return self._count

    def _solved_for(self, x: Content, key: bytes, weight: float) -> HingeHypotheses:
        supposed = self._unit * weight
        self.forget()
        self._held.clear()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count)
        self._make_margin_room(max(self._solved.size.tolist()))
        if p == self._count:
            self._store.put(p, x)
            self._store.row(count, x, self._objects.kernel[p])
            self._first[p] = self._equal[p] = 0
            self._spans.forget_object(p)
        scale = self._scale_with(p)
        tolerance = tolerance_of(self.C, scale)
        worst, unsolved = self._solve(p, count, scale, tolerance, supposed)
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if unsolved:
            for k, side in np.argwhere(self._branches.commit == UNSOLVED).tolist():
                worst = max(worst, self._solve_afresh(k, side, p, count, tolerance, float(supposed[side, k])))
        if not worst <= tolerance:
            raise NotConverged(f"{self._missed(tolerance, worst, scale)} at example {self.n}")
        asked = Question(
            p, weight, self.C, self._scale, scale, self.signs, self._side, supposed, self._objects, self._solved,
            self._branches, self._distinct(count), self._history[:, : self.n], self._weights[: self.n], self._store,
            self._spans,
        )  # fmt: skip
        return self._answer(key, self._by_class(self._solved.score[:, p, None])[:, 0], asked)

    def _solve(self, p: int, count: int, scale: float, tolerance: float, supposed: Floats) -> tuple[float, int]:
        """Solve all branches about object p by their paths; return (worst violation, branches left unsolved)."""
        objects, solved, branches, machines = self._objects, self._solved, self._branches, len(self.signs)
        many = changes_of_a_path(count)

        def step(new: bool, scratch: Scratch, first: int, last: int) -> tuple[float, int]:
            return solve_step(
                p, new, count, scale, tolerance, self.C, supposed, objects, solved, branches, scratch, (first, last),
                many,
            )  # fmt: skip

        if self.threads == 1:
            return step(p == self._count, self._scratch, 0, machines)

        def of_machine(k: int) -> tuple[float, int]:
            try:
                scratch = self._beside.pop()
            except IndexError:
                scratch = self._new_scratch()
            try:
                return step(False, scratch, k, k + 1)
            finally:
                self._beside.append(scratch)

        if p == self._count and place(p, objects, solved) != 0.0:
            return math.nan, 0
        worst, unsolved = zip(*side_by_side(of_machine, range(machines), self.threads), strict=True)
        return max(worst), sum(unsolved)

    def _commit_branches(self, sides: Integers, p: int, count: int, joining: Floats) -> None:
        """Set the machines to those of the branches `sides` (c,); -1 leaves a machine as it is."""
        commit_step(sides, p, joining, count, self._objects, self._solved, self._branches)

    def _missed(self, tolerance: float, worst: float, scale: float) -> str:
        """Return a message: a residual is too large, and what may help."""
        cure = ""
        if self.C * scale > 1e6:
            cure = f" (C times the largest squared distance of objects is {self.C * scale:.1g}: scale them, or lower C)"
        return f"residual must be at most {tolerance:.3g}, got {worst:.3g}{cure}"

    def _solve_afresh(self, k: int, side: int, p: int, count: int, tolerance: float, weight: float) -> float:
        """Solve one branch by other means than the path of one coefficient; return its worst violation."""
        own, of = slice(k, k + 1), side == len(self._values)
        sign = 1 if of else -1
        kernel, positive, total, sizes = self._objects
        before = Objects(kernel, positive[own, :count], total[own, :count], sizes[own])
        after = Objects(kernel, before.positive.copy(), before.total.copy(), sizes[own] + [of, 1])
        after.positive[0, p] += weight if of else 0.0
        after.total[0, p] += weight
        branches, scale = self._branches, self._scale_with(p)
        problem = Problem(kernel[:count], after.positive[0], after.total[0], self.C, scale, tolerance)
        start = self._straight_ahead(k, p, count, sign, weight)
        with one_thread(), np.errstate(invalid="ignore", over="ignore"):  # NaN misses the tolerance
            guess = start.state.copy()
            judge(count, *problem[1:4], SMALL * tolerance, problem.near, start.beta, start.score, start.state, guess)
            found = exchanged(problem, start._replace(state=guess))
        commit, drift = REBUILD, found.violation
        if not found.violation <= PART * tolerance:
            if self._solved.size[k] > changes_of_a_path(count):  # else its path has failed
                worst = self._walk(k, side, p, count, scale, tolerance, weight)
                if branches.commit[k, side] != UNSOLVED:
                    return worst
            try:
                machine, _ = move_one(before, after, self._solved, k, count, scale, self.C, tolerance)
            except NotConverged:
                return found.violation
            found = Solution(machine.beta[0], machine.score[0], machine.state[0], 0.0)
            commit, drift = HELD, float(machine.drift[0])
            self._held[k, side] = machine
        members = np.abs(found.state) == 1
        branches.beta[side, k, :count], branches.state[side, k, :count] = found.beta, found.state
        branches.score[side, k, :count] = np.where(members, found.state, found.score)
        branches.drift[k, side] = drift
        branches.commit[k, side] = commit
        return found.violation

    def _walk(self, k: int, side: int, p: int, count: int, scale: float, tolerance: float, weight: float) -> float:
        """Solve one branch by its path, however many members change on it; return its worst violation."""
        commit = self._branches.commit
        others = commit[k].copy()
        supposed = np.zeros((len(others), len(self.signs)))
        supposed[side, k] = weight
        worst, _ = solve_step(
            p, False, count, scale, tolerance, self.C, supposed, self._objects, self._solved, self._branches,
            self._scratch, (k, k + 1), count,
        )  # fmt: skip
        others[side] = commit[k, side]
        commit[k] = others
        return float(worst)

    def _straight_ahead(self, k: int, p: int, count: int, sign: int, weight: float) -> Solution:
        """Return machine k if its first motion continued to the end, with one more label supposed at p."""
        solved, kernel = self._solved, self._objects.kernel
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

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        known = self._where.get(key)
        if known is not None:
            return self._by_class(self._solved.score[:, known, None])[:, 0]
        m = self._count
        row = self._store.row_with(m, x)
        scores = self._solved.bias + self._solved.beta[:, :m] @ row[:m]
        of_class, examples = self._objects.sizes.T
        scores[of_class == examples] = 1.0
        scores[of_class == 0] = -1.0
        return self._by_class(scores[:, None])[:, 0]

    def _learn(self, answer: HingeHypotheses, label: int, weight: float) -> None:
        p, count = answer.asked.test, answer.asked.distinct.size
        sides = self._side[:, label]
        if self._spans.kept:
            answer.measure(sides)
        self._commit(sides, p, count, weight * self._joining[label])
        self.forget()
        self._held.clear()
        self._store.keep(p)
        self._where[answer.key] = p
        self._scale = self._scale_with(p)
        self._count = count
        self._enlist(p, label, weight)
        self._counts[label, p] += 1
        if self.n == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
            self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
        self._history[:, self.n] = p, label
        self._weights[self.n] = weight
        self.n += 1
        self._spans.take(sides, count)

    def _commit(self, sides: Integers, p: int, count: int, joining: Floats) -> None:
        """Set the machines to those of the branches `sides` (c,), -1 as they are; or raise, and change none.

        The residual of a branch comes from scores that were updated for many steps. Where rounding may have added up,
        or the margin is rebuilt, scores are computed from the kernel before anything is learned.
        """
        branches, solved, objects = self._branches, self._solved, self._objects
        scale = self._scale_with(p)
        tolerance = tolerance_of(self.C, scale)
        own = np.arange(len(sides))
        doubtful = (branches.commit[own, sides] >= REBUILD) | (branches.drift[own, sides] > PART * tolerance)
        doubtful &= sides >= 0
        if doubtful.any():
            before = {k: backup_of(k, count, solved) for k in np.flatnonzero(doubtful).tolist()}
            sizes, masses = objects.sizes.copy(), (objects.positive[:, p].copy(), objects.total[:, p].copy())
            self._commit_branches(np.where(doubtful, sides, -1), p, count, joining)
            try:
                for k in before:
                    self._certify(k, int(sides[k]), count, scale, tolerance)
            except NotConverged:
                objects.sizes[:], (objects.positive[:, p], objects.total[:, p]) = sizes, masses
                self._take(before)
                raise
        if not doubtful.all():
            self._commit_branches(np.where(doubtful, -1, sides), p, count, joining)

    def _certify(self, k: int, side: int, count: int, scale: float, tolerance: float) -> None:
        """Make sure that machine k, just committed, satisfies its equations; raise where it does not."""
        if not 0 < self._objects.sizes[k, 0] < self._objects.sizes[k, 1]:
            self._solved.size[k] = 0
            return
        how, worst = self._branches.commit[k, side], math.inf
        if how == HELD:
            self._take({k: self._held[k, side]})
        for build, apart in ((how not in (HELD, UPDATE), False), (True, False), (True, True)):
            if build:
                self._stand_as(k, side, count)
                self._rebuild(k, count, scale, tolerance, apart)
            worst = certify(k, scale, tolerance, count, self.C, self._objects, self._solved)
            if worst <= SURE * tolerance:
                return
        most = tolerance if worst > tolerance else SURE * tolerance
        raise NotConverged(f"{self._missed(most, worst, scale)} at example {self.n}")

    def _stand_as(self, k: int, side: int, count: int) -> None:
        """Set machine k, except its margin, to its branch."""
        solved, branches = self._solved, self._branches
        solved.beta[k, :count] = branches.beta[side, k, :count]
        solved.score[k, :count] = branches.score[side, k, :count]
        solved.state[k, :count] = branches.state[side, k, :count]
        solved.bias[k] = solved.score[k, 0] - self._objects.kernel[0, :count] @ solved.beta[k, :count]

    def _rebuild(self, k: int, count: int, scale: float, tolerance: float, apart: bool) -> None:
        """Build machine k's margin from its states: see `margin_from_states`."""
        kernel, positive, total, _ = self._objects
        problem = Problem(kernel[:count], positive[k, :count], total[k, :count], self.C, scale, tolerance)
        members, inverse = margin_from_states(
            problem, self._solved.beta[k, :count], self._solved.state[k, :count], apart
        )
        m = members.size
        self._make_margin_room(m)
        solved = self._solved
        solved.size[k], solved.members[k, :m], solved.inverse[k, : m + 1, : m + 1] = m, members, inverse

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machines are then those that have learned all others.

        Each machine follows its exact solution while the example's weight goes linearly to 0. A machine
        that did not depend on the example stays as it is. An object without examples is removed too.

        Predictors that number their steps, as `Conformal` does, need a `SlidingWindow` around the machine.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Place of the example in order of arrival; later ones move up.

        Raises
        ------
        ValueError, TypeError
            For any other `i`; nothing changes.
        NotConverged
            When a solution misses the tolerance even after a batch solve; nothing changes.

        References
        ----------
        Cauwenberghs & Poggio (2000), "Incremental and decremental support vector machine learning".

        Examples
        --------
        >>> import venn
        >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n
        3
        """
        i = checked_place(i, self.n)
        p, label = self._history[:, i].tolist()
        there = np.flatnonzero(self._history[0, : self.n] == p)
        others = there[there != i]
        count, objects, solved, signs = self._count, self._objects, self._solved, self.signs[:, label]
        own, masses = signs != 0, self._masses_at(others)
        sizes = objects.sizes - (self._joining[label] > 0)
        one_class = own & ((sizes[:, 0] == 0) | (sizes[:, 0] == sizes[:, 1]))
        # Beyond its level an example plays no part in the solution; but an empty margin's bias may depend on it.
        beyond = np.where(signs > 0, ABOVE, BELOW)
        idle = own & ~one_class & (solved.state[:, p] == beyond) & (solved.size > 0)
        positive, total = objects.positive[:, :count].copy(), objects.total[:, :count].copy()
        positive[own, p], total[own, p] = masses[own].T
        scale = max(self._scale, 1e-300)
        try:
            moved = move_masses(
                objects, solved, count, scale, self.C, positive, total, tolerance_of(self.C, scale),
                np.flatnonzero(own & ~one_class & ~idle).tolist(),
            )  # fmt: skip
        except NotConverged as error:
            raise NotConverged(f"{error}: example {i} is not unlearned") from error
        self.forget()
        self._take(moved.machines)
        self._spans.forget_machines(list(moved.machines))
        objects.positive[:, p], objects.total[:, p], objects.sizes[:] = positive[:, p], total[:, p], sizes
        solved = self._solved
        for k in np.flatnonzero(one_class).tolist():
            sign = 1 if sizes[k, 0] > 0 else -1
            solved.beta[k, :count], solved.score[k, :count], solved.bias[k] = 0.0, sign, sign
            solved.state[k, :count] = np.where(objects.total[k, :count] > 0, 2 * sign, MIDDLE)
            solved.size[k], solved.drift[k] = 0, 0.0
            self._spans.forget_machines([k])
        lowered = np.where(signs > 0, positive[:, p], total[:, p] - positive[:, p])
        solved.state[idle & (lowered == 0), p] = MIDDLE  # a step of height zero is no step
        self._strike(i, p, others)
        if others.size == 0:
            self._drop(p)
        self._scale = self._scale_of_all()
        if self.n == 0:
            self._store.clear()

    def _take(self, machines: Mapping[int, Solved]) -> None:
        """Replace machines by those given in separate arrays."""
        self._make_margin_room(max((int(machine.size[0]) for machine in machines.values()), default=0))
        solved = self._solved
        for k, machine in machines.items():
            count = machine.beta.shape[1]
            solved.beta[k, :count], solved.score[k, :count] = machine.beta[0], machine.score[0]
            solved.state[k, :count], solved.bias[k] = machine.state[0], machine.bias[0]
            solved.drift[k] = machine.drift[0]
            m = int(machine.size[0])
            solved.size[k], solved.members[k, :m] = m, machine.members[0, :m]
            solved.inverse[k, : m + 1, : m + 1] = machine.inverse[0, : m + 1, : m + 1]
