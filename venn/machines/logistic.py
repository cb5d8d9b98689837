"""Kernel logistic regression, kept exact online."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venn._compiled import logistic as compiled
from venn._compiled import packed
from venn._compiled.dense import dot
from venn.machines.kernels import Kernel, checked_kernel, kernel_row, positive
from venn.machines.logistic_both import Both, Scratch, error, worths
from venn.machines.logistic_hypotheses import LogisticHypotheses
from venn.machines.logistic_inverse import Change, Deletion, Standing, levels_of, made_anew, rounded_weights
from venn.machines.machine import (
    Bag,
    NotConverged,
    Tuned,
    checked_class_weights,
    checked_weight,
    clean_object,
    code_of,
    grown,
    shown_class_weights,
)
from venn.prediction import Floats, Integers, Label, class_codes

REFRESH = 64  # examples between two checks of the inverses
DRIFT = 1e-10


class KernelLogisticRegression:
    """One-against-all kernel logistic regression, exact online.

    Machine k minimises 1/2 |w|^2 + C sum_i ln(1 + exp(-t_i f_k(x_i))), t_i = +1 for class k and -1 for the others,
    with f_k(x) = <w, phi(x)> + b. So 1 / (1 + exp(-f_k(x))) is its probability of class k. Each step solves, for every
    machine, the two problems with the new object as positive and as negative, from the last solution; the branch
    of the revealed label is kept.

    A class without examples has the score -1 everywhere, and a machine with one class only +1: there the bias would be
    infinite. Equal objects share one coefficient, so that equal examples have equal scores.

    A step solves by Newton's method. Its matrix changes with all weights p (1 - p), so that no factor of it can be
    kept. What is kept, for each machine, is the inverse with the weights rounded to powers of sqrt 2: it changes by few
    ranks a step, and conjugate gradients preconditioned by it need few passes. A step costs O(c n^2).

    Memory: 4 (c + 1) n^2 bytes for n distinct objects and little more. When room doubles, the old buffers stand beside
    the new ones for a moment; what is never touched is never resident.

    Parameters
    ----------
    kernel : Kernel
        `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the same method.
    C : float > 0
        Weight of the loss; bound on the coefficient of one example of weight 1.
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
        Largest error of a probability, |p_i - (t_i + 1) / 2 + beta_i / (C weight)| over all examples and machines,
        scores computed afresh from the kernel.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When a residual is above 1e-9 after a batch solve too, or the kernel is not positive semidefinite.

    References
    ----------
    Keerthi, Duan, Shevade & Poo (2005), "A fast dual algorithm for kernel logistic regression"; Zhu & Hastie
    (2005), "Kernel logistic regression and the import vector machine".

    Examples
    --------
    >>> from venn import RBF
    >>> machine = KernelLogisticRegression(RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 1.909, -1.909])
    >>> machine.hypotheses([0.6]).deleted(1).shape
    (5, 2)
    """

    #: Deleted scores are one Newton step: see `deleted_bag`.
    deletes_exactly = False
    tuning: Tuned | None = None  #: what chose the kernel and C, if `tune` did

    def __init__(
        self, kernel: Kernel, C: float, classes: Sequence[Label], class_weights: Sequence[float] | Floats | None = None
    ) -> None:
        self.kernel = checked_kernel(kernel)
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.n = 0
        c = len(self.classes)
        self._features: int | None = None
        self._asked: LogisticHypotheses | None = None
        self._where: dict[bytes, int] = {}  # object of each content
        self._examples: dict[tuple[int, int, float], int] = {}  # place of each distinct example: object, class, weight
        self._places = np.zeros((3, 0), np.int64)  # object, class and number of each distinct example
        self._weight = np.zeros(0)  # of each distinct example, without that of its class
        self._history = np.zeros(64, np.int64)  # place of each example
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._count = 0  # distinct objects
        self._room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._kernel = np.zeros(0)  # packed by rows of the lower triangle, like the inverses
        self._scale = 0.0  # largest K(x, x)
        self._masses = np.zeros((c, 0))  # of the examples at each object, weights times those of classes, by class
        self._total = np.zeros(0)
        self._beta, self._score = np.zeros((2, c, 0))
        self._bias = np.zeros(c)
        self._levels = np.zeros((c, 0), np.int64)
        self._inverse = np.zeros((c, 0))  # packed
        self._sums, self._diagonals = np.zeros((2, c, 0))  # of the inverses: rows added, and diagonals
        self._arrange(checked_class_weights(class_weights, self.classes))

    def fresh(self) -> KernelLogisticRegression:
        """Return a machine with the same parameters that has learned nothing."""
        machine = KernelLogisticRegression(self.kernel, self.C, self.classes, self.class_weights)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        weights = shown_class_weights(self.class_weights)
        return f"KernelLogisticRegression({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r}{weights})"

    def _arrange(self, class_weights: Floats) -> None:
        """Take the weights of the classes, and say what may be supposed about a new object.

        The last side is that it is of class k; before it, that it is not, for each weight that it then may have.
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
        self._work = Scratch(np.empty((26, room)), np.empty((2, compiled.FOLDED, room)))

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
        self._kernel = grown(self._kernel, room * (room + 1) // 2)
        self._masses, self._total = grown(self._masses, c, room), grown(self._total, room)
        self._beta, self._score = grown(self._beta, c, room), grown(self._score, c, room)
        self._levels = grown(self._levels, c, room)
        self._sums, self._diagonals = grown(self._sums, c, room), grown(self._diagonals, c, room)
        self._inverse = grown(self._inverse, c, room * (room + 1) // 2)
        self._make_scratch()

    # ------------------------------------------------------------------ reading

    @property
    def residual(self) -> float:
        """Largest error of a probability over all machines, scores computed afresh from the kernel."""
        m = self._count
        total = self._total[:m]
        two, out = np.zeros((2, m)), np.empty((2, m))
        worst = 0.0
        for k in range(len(self.classes)):
            if 0 < self._sizes[k] < self.n:
                beta, masses = self._beta[k, :m], self._masses[k, :m]
                two[0] = beta
                packed.multiply(self._kernel, m, two, out)
                worth = float(worths(masses[None], total.sum(keepdims=True), self.n)[0])
                worst = max(worst, error(beta, out[0] + self._bias[k], masses, total, self.C, worth))
        return worst

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by distinct example."""
        return Bag(self._score[:, self._places[0]], self._by_class())

    @property
    def deleted_bag(self) -> Bag:
        """Score of each example by the machines without it, to one Newton step, by distinct example.

        Without the example, the others' coefficients are taken to move as the weights p (1 - p) have it, each rounded
        to the nearest power of sqrt 2: f_i moves by -v a, where a is the multiplier of the example and v the variance
        that the others leave to f_i in the Gaussian approximation. That is a function of the bag and the example that
        treats all alike, and so makes valid taxonomies; it is not the score of a machine solved without the example.
        Of a machine, the only example of its sign has the other sign's constant score. One class in all
        keeps its scores.

        References
        ----------
        Cawley & Talbot (2008), "Efficient approximate leave-one-out cross-validation for kernel logistic regression".
        """
        m = self._count
        scores = np.empty((len(self.classes), self._places.shape[1]))
        for k, row in enumerate(scores):
            bag = Deletion(
                self._score[k, :m], self._total[:m], int(self._sizes[k]), self.n,
                rounded_weights(self.C, 1.0, self._levels[k, :m]), self._diagonals[k, :m], self._sums[k, :m],
            )  # fmt: skip
            row[:] = bag.deleted(self.C, self._places[0], self._places[1] == k, self._masses_of_places())
        return Bag(scores, self._by_class())

    def _by_class(self) -> Integers:
        objects, codes, numbers = self._places
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return counts

    def _masses_of_places(self) -> Floats:
        """Return the weight of one of each distinct example times that of its class."""
        masses: Floats = self._weight * self.class_weights[self._places[1]]
        return masses

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`."""
        x = clean_object(x, self._features)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key:
            remembered: Floats = self._asked.test_scores.copy()
            return remembered
        known = self._where.get(key)
        if known is not None:
            scores: Floats = self._score[:, known].copy()
            return scores
        return self._score_row(kernel_row(self.kernel, self._columns, self._count, x))

    def _score_row(self, row: Floats) -> Floats:
        scores = np.array([dot(beta, row, self._count) for beta in self._beta]) + self._bias
        scores[self._sizes == self.n] = 1.0
        scores[self._sizes == 0] = -1.0
        return scores

    # ----------------------------------------------------------------- learning

    def hypotheses(self, x: Any, weight: float = 1.0) -> LogisticHypotheses:
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
        LogisticHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x, weight = clean_object(x, self._features), positive("weight", weight)
        key = x.tobytes()
        if self._asked is not None and self._asked.key == key and self._asked.weight == weight:
            return self._asked
        self._forget()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count, x.size)
        if p == self._count:
            self._columns[:, p] = x
            row = self._row(p)
            self.kernel.row(self._columns, count, x, row)
            if not np.isfinite(row).all():
                raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
            self._masses[:, p] = self._total[p] = 0.0
            test_scores = self._score_row(row)
        else:
            test_scores = self._score[:, p].copy()
        self._suppose(p, count, test_scores, weight)
        self._asked = LogisticHypotheses(self, key, test_scores, p, count, weight)
        return self._asked

    def _row(self, p: int) -> Floats:
        """Return the kernel of object p with those before it and itself, a view."""
        start = p * (p + 1) // 2
        return self._kernel[start : start + p + 1]

    def _constant(self, size: int, n: int) -> float:
        """Return the score from which a machine with one class only starts when the other comes."""
        return math.log(max(n, 1)) * (1 if size else -1)

    def _suppose(self, p: int, count: int, test_scores: Floats, weight: float) -> None:
        """Solve all branches for object p."""
        m, n, last = self._count, self.n, len(self._unit) - 1
        row, new = self._row(p), p == m
        for k, size in enumerate(self._sizes.tolist()):
            alone = size in (0, n)
            base = self._constant(size, n) if alone else float(test_scores[k])
            bordered = self._join(k, row, new)
            V = rounded_weights(self.C, self._total[:m], self._levels[k, :m])
            for pair in self._pairs[k]:
                positive = pair == last
                masses = weight * self._unit[pair, k]
                both = self._both(k, self._masses[k, :count], self._total[:count], n + 1)
                for s, mass in enumerate(masses):
                    both.total[s, p] += mass
                    both.positive[s, p] += mass * positive[s]
                both.todo[: pair.size] = np.where(positive, size < n, size > 0)
                if both.todo.any():
                    if alone:
                        both.score[:, :m] = base
                    if new:
                        bounds = np.where(positive, self.C, -self.C) * masses
                        compiled.start_both(bordered, V, base, bounds, both.todo, both.beta, both.score)
                    self._solve(both, max(self._scale, float(row[-1])), bordered, V)
                for s, side in enumerate(pair):
                    if not both.todo[s]:
                        both.beta[s] = 0.0
                        both.score[s] = both.bias[s] = 1.0 if positive[s] else -1.0
                    self._betas[side, k, :count], self._scores[side, k, :count] = both.beta[s], both.score[s]
                    self._biases[side, k] = both.bias[s]

    def _both(self, k: int, masses: Floats, total: Floats, n: int) -> Both:
        """Return two problems of machine k, with these masses of n examples; both as it stands and none to do."""
        count = total.size
        two = np.empty((4, 2, count))
        two[:] = np.stack([masses, total, self._beta[k, :count], self._score[k, :count]])[:, None]
        positive, whole, beta, score = two
        return Both(self.C, n, positive, whole, np.zeros(2, bool), beta, score, np.zeros(2))

    def _solve(self, both: Both, scale: float, bordered: compiled.Bordered, V: Floats) -> None:
        try:
            both.solve(self._kernel, scale, bordered, V, self._work)
        except NotConverged as error:
            raise NotConverged(f"{error} at example {self.n}: scale the features, or lower C") from error

    def _join(self, k: int, row: Floats, new: bool) -> compiled.Bordered:
        m = self._count
        G, g = self._inverse[k], self._sums[k, :m]
        u, kappa = np.zeros(0), 1.0
        if new:
            two, out = np.zeros((2, m)), np.empty((2, m))
            two[0] = row[:m]
            packed.multiply(G, m, two, out)
            u, kappa = self._joined[k, :m], 0.0
            u[:] = out[0]
            kappa = float(row[m] - dot(row, u, m))
        return compiled.Bordered(G, self._diagonals[k, :m], g, float(g.sum()), u, kappa)

    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.current = False
            self._asked = None

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
        weight = checked_weight(weight)
        if weight == 0:
            clean_object(x, self._features)
            return
        answer = self.hypotheses(x, weight)
        p, count = answer.test, answer.count
        self._forget()
        sides = self._side[:, label].tolist()
        changes = [self._change(k, side, p, count, weight) for k, side in enumerate(sides)]
        self._features = self._columns.shape[0]
        self._where[answer.key] = p
        mass = weight * float(self.class_weights[label])
        self._masses[label, p] += mass
        self._total[p] += mass
        self._sizes[label] += 1
        place = self._examples.setdefault((p, label, weight), self._weight.size)
        if place == self._weight.size:
            self._places = np.append(self._places, [[p], [label], [0]], axis=1)
            self._weight = np.append(self._weight, weight)
        self._places[2, place] += 1
        if self.n == self._history.size:
            self._history = grown(self._history, 2 * self.n)
        self._history[self.n] = place
        self.n += 1
        for k, (side, change) in enumerate(zip(sides, changes, strict=True)):
            self._beta[k, :count] = self._betas[side, k, :count]
            self._score[k, :count] = self._scores[side, k, :count]
            self._bias[k] = self._biases[side, k]
            self._take(k, change)
        self._count = count
        self._scale = max(self._scale, float(self._row(p)[-1]))
        if self.n % REFRESH == 0:
            self._refresh()

    def _refresh(self) -> None:
        """Build an inverse anew where rounding has moved it."""
        for k in range(len(self.classes)):
            standing = self._standing(k)
            if not standing.drift((self.n // REFRESH) % self._count) <= DRIFT:
                self._take(k, made_anew(self._kernel, self._levels[k, : self._count], standing.weights))

    def _standing(self, k: int) -> Standing:
        m = self._count
        return Standing(
            self._kernel, self._inverse[k], self._diagonals[k, :m], self._sums[k, :m],
            rounded_weights(self.C, self._total[:m], self._levels[k, :m]),
        )  # fmt: skip

    def _take(self, k: int, change: Change) -> None:
        """Change machine k's inverse; `_count` still says of how many objects it was."""
        count = change.levels.size
        change.apply(self._inverse[k], self._count)
        self._levels[k, :count], self._sums[k, :count] = change.levels, change.sums
        self._diagonals[k, :count] = change.diagonal

    def _change(self, k: int, side: int, p: int, count: int, weight: float) -> Change:
        """Return how machine k's inverse changes when its branch is committed."""
        m, n, standing = self._count, self.n + 1, self._standing(k)
        total = self._total[:count].copy()
        total[p] += weight * self._unit[side, k]
        size = int(self._sizes[k]) + (side == len(self._unit) - 1)
        alone = size in (0, n)
        levels = levels_of(np.full(count, self._constant(size, n)) if alone else self._scores[side, k, :count])
        weights = rounded_weights(self.C, total, levels)
        return standing.changed(levels, weights, self._joined[k, :m], self._row(p) if p == m else None)

    def reweigh(self, class_weights: Sequence[float] | Floats | None) -> None:
        """Give the classes other weights: the machine is then the one that learned all examples with these.

        Each machine is solved from its solution so far, by Newton's method. Its inverse is made anew: O(c n^3), and the
        old inverses stand beside the new ones for a moment.

        Parameters
        ----------
        class_weights : sequence of c numbers > 0, or None
            Weight of an example of each class, those learned included; None for 1 each.

        Raises
        ------
        ValueError, TypeError
            For weights out of range; nothing changes.
        NotConverged
            When a residual is above 1e-9 after a batch solve too; nothing changes.

        Examples
        --------
        >>> import venn
        >>> machine = venn.KernelLogisticRegression(venn.RBF(1.0), C=1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.reweigh([1, 5])
        >>> machine
        KernelLogisticRegression(RBF(gamma=1.0), C=1.0, classes=['no', 'yes'], class_weights=[1.0, 5.0])
        """
        class_weights = checked_class_weights(class_weights, self.classes)
        objects, codes, numbers = self._places
        masses = np.zeros_like(self._masses)
        np.add.at(masses, (codes, objects), numbers * self._weight * class_weights[codes])
        inverse = np.zeros_like(self._inverse)
        m = self._count
        solved = [self._resolve(k, masses[:, :m], inverse[k]) for k in range(len(self.classes) if m else 0)]
        self._forget()
        self._masses, self._total, self._inverse = masses, masses.sum(axis=0), inverse
        for k, (both, change) in enumerate(solved):
            self._beta[k, :m], self._score[k, :m], self._bias[k] = both.beta[0], both.score[0], both.bias[0]
            self._levels[k, :m] = change.levels
            self._sums[k, :m], self._diagonals[k, :m] = change.sums, change.diagonal
        self._arrange(class_weights)

    def _resolve(self, k: int, masses: Floats, G: Floats) -> tuple[Both, Change]:
        """Solve machine k for other (c, m) masses from where it stands; set its inverse G."""
        m, size, total = self._count, int(self._sizes[k]), masses.sum(axis=0)
        both = self._both(k, masses[k], total, self.n)
        alone = size in (0, self.n)
        both.todo[0] = not alone
        both.bias[0] = self._bias[k]  # of a machine with one class only nothing changes but the inverse
        levels = levels_of(np.full(m, self._constant(size, self.n)) if alone else both.score[0])
        change = made_anew(self._kernel, levels, rounded_weights(self.C, total, levels))
        change.apply(G, m)
        if not alone:
            sums, weights, none = change.sums, change.weights, np.zeros(0)
            self._solve(
                both, self._scale, compiled.Bordered(G, change.diagonal, sums, float(sums.sum()), none, 1.0), weights
            )
            levels = levels_of(both.score[0])
            standing = Standing(self._kernel, G, change.diagonal, sums, weights)
            change = standing.changed(levels, rounded_weights(self.C, total, levels), none, None)
            change.apply(G, m)
        return both, change

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: no scratch, no remembered answer."""
        scratch = ("_betas", "_scores", "_biases", "_joined", "_work")
        return {name: value for name, value in vars(self).items() if name not in scratch} | {"_asked": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_scratch()
