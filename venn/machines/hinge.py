"""Support vector machines of the hinge loss over the same objects, kept exact online."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn._compiled.buffers import REBUILD, UNSOLVED
from venn._compiled.margin import commit_step, rebuild, worst_residual
from venn._compiled.path import ABOVE, BELOW, MIDDLE
from venn._compiled.span import delete_standing, delete_step
from venn._compiled.step import solve_step
from venn.machines.batch import Problem, batch_solve
from venn.machines.hinge_hypotheses import HingeHypotheses
from venn.machines.hinge_state import HingeState
from venn.machines.machine import (
    Bag,
    NotConverged,
    Tuned,
    checked_class_weights,
    checked_place,
    checked_weight,
    code_of,
)
from venn.machines.masses import Moved, move_masses
from venn.parameters import positive
from venn.prediction import Floats, Integers, Label

TOLERANCE = 1e-8


class HingeMachine(HingeState):
    """Base of exact incremental support vector machines, several of them, over the same objects.

    For each machine the examples of a class are positive, negative, or none of its own: `signs` says which.
    """

    #: Deleted scores are to first order: see `deleted_bag`.
    deletes_exactly = False
    tuning: Tuned | None = None  #: what chose the kernel and C, if `tune` did

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

    def _delete_standing(self, count: int, objects: Integers, codes: Integers, weights: Floats, test: int) -> Floats:
        """Return the (machines, entries) deleted scores by the machines as they stand; `test` is not their example."""
        self._make_span_room()
        scores = np.empty((len(self.signs), objects.size))
        delete_standing(
            count, self._scale, self.C, self.signs, self._objects, self._solved, self._known, objects, codes, weights,
            test, scores,
        )  # fmt: skip
        return scores

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
        x : (d,) finite numbers, or a sparse row
        weight : float > 0, default 1
            Of the new example; that of its supposed class multiplies it.

        Returns
        -------
        HingeHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x, weight = self._store.clean(x), positive("weight", weight)
        key = x.tobytes()
        known: HingeHypotheses[Any] | None = self._remembered(key, weight)
        if known is not None:
            return known
        supposed = self._unit * weight
        self._forget()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count)
        self._make_margin_room(max(self._solved.size.tolist()))
        if p == self._count:
            self._store.put(p, x)
            self._store.row(count, x, self._objects.kernel[p])
            self._first[p] = self._equal[p] = 0
        worst, unsolved = solve_step(
            p, p == self._count, count, self._scale_with(p), self.C, supposed, self._objects, self._solved,
            self._branches, self._scratch,
        )  # fmt: skip
        if math.isnan(worst):
            raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
        if unsolved:
            for k, side in np.argwhere(self._branches.commit == UNSOLVED):
                worst = max(worst, self._solve_afresh(int(k), int(side), p, count, float(supposed[side, k])))
        if not worst <= TOLERANCE:
            raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {self.n}")
        answer = self._asked = self._answer(key, p, count, weight)
        return answer

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

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`."""
        x = self._store.clean(x)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key:
            remembered: Floats = self._asked.test_scores.copy()
            return remembered
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

    def learn_one(self, x: Any, y: Label, weight: float = 1.0) -> None:
        """Learn one example: the branch already solved for its label becomes the machine.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        y : one of `classes`
        weight : float >= 0, default 1
            It counts as that many equal examples; none is learned of weight 0.
        """
        label = code_of(y, self._codes)
        weight = checked_weight(weight)
        if weight == 0:
            self._store.clean(x)
            return
        answer = self.hypotheses(x, weight)
        p, count, deleted = answer.test, answer.count, answer._deleted is not None
        self._forget()
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
        sides = self._side[:, label]
        if deleted:
            learning = np.flatnonzero(sides >= 0)
            self._known[learning, :count] = self._spans[sides[learning], learning, :count]
        else:
            self._known.fill(np.nan)
        joining = weight * self._joining[label]
        if commit_step(sides, p, joining, count, self._objects, self._solved, self._branches):
            for k in np.flatnonzero(sides >= 0).tolist():
                if self._branches.commit[k, sides[k]] == REBUILD:
                    self._make_margin_room(int((abs(self._solved.state[k, :count]) == 1).sum()))
                    rebuild(k, self._scale, count, self.C, self._objects, self._solved)
                    self._refresh(k)
        self._changed()

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machines are then those that have learned all others.

        Each machine follows its exact solution while the example's weight goes to 0 in a straight line. The one
        that did not depend on the example stays as it is. An object without examples goes too.

        Predictors that number their steps, as `Conformal` does, need a `SlidingWindow` around the machine.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Place of the example in order of arrival; later ones move up.

        Raises
        ------
        ValueError, TypeError
            For another `i`; nothing changes.
        NotConverged
            When a solution misses the tolerance of 1e-8 even after a batch solve; nothing changes.

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
        # Beyond its level an example has no part in the solution; but the bias of an empty margin may hang on it.
        beyond = np.where(signs > 0, ABOVE, BELOW)
        idle = own & ~one_class & (solved.state[:, p] == beyond) & (solved.size > 0)
        positive, total = objects.positive[:, :count].copy(), objects.total[:, :count].copy()
        positive[own, p], total[own, p] = masses[own].T
        try:
            moved = move_masses(
                objects, solved, count, max(self._scale, 1e-300), self.C, positive, total, TOLERANCE,
                np.flatnonzero(own & ~one_class & ~idle).tolist(),
            )  # fmt: skip
        except NotConverged as error:
            raise NotConverged(f"{error}: example {i} is not unlearned") from error
        self._forget()
        self._take(moved)
        objects.positive[:, p], objects.total[:, p], objects.sizes[:] = positive[:, p], total[:, p], sizes
        solved = self._solved
        for k in np.flatnonzero(one_class).tolist():
            sign = 1 if sizes[k, 0] > 0 else -1
            solved.beta[k, :count], solved.score[k, :count], solved.bias[k] = 0.0, sign, sign
            solved.state[k, :count], solved.size[k] = 2 * sign, 0
            self._known[k] = np.nan
        lowered = np.where(signs > 0, positive[:, p], total[:, p] - positive[:, p])
        solved.state[idle & (lowered == 0), p] = MIDDLE  # a step of height zero is no step
        self._strike(i, p, others)
        if others.size == 0:
            self._drop(p)
        self._scale = float(objects.kernel.diagonal()[: self._count].max(initial=0.0))
        self._changed()
        if self.n == 0:
            self._changes = 0
            self._store.clear()

    def _take(self, moved: Moved) -> None:
        """Let machines stand where they moved to."""
        self._make_margin_room(max((int(machine.size[0]) for machine in moved.machines.values()), default=0))
        count, solved = self._count, self._solved
        for k, machine in moved.machines.items():
            solved.beta[k, :count], solved.score[k, :count] = machine.beta[0], machine.score[0]
            solved.state[k, :count], solved.bias[k] = machine.state[0], machine.bias[0]
            m = int(machine.size[0])
            solved.size[k], solved.members[k, :m] = m, machine.members[0, :m]
            solved.inverse[k, : m + 1, : m + 1] = machine.inverse[0, : m + 1, : m + 1]
            self._known[k] = np.nan

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
        moved = move_masses(
            self._objects, self._solved, count, max(self._scale, 1e-300), self.C, of, of + of_not, TOLERANCE
        )
        self._forget()
        self._objects.positive[:, :count], self._objects.total[:, :count] = of, of + of_not
        self._weigh(weights)
        self._take(moved)
