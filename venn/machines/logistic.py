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
from venn.machines.logistic_batch import LogisticProblem, newton
from venn.machines.logistic_hypotheses import LogisticHypotheses
from venn.machines.logistic_inverse import Change, Deletion, Standing, dense_inverse
from venn.machines.machine import Bag, NotConverged, Tuned, clean_object, code_of, grown
from venn.prediction import Floats, Integers, Label, class_codes

TOLERANCE = 1e-9  # largest error of a probability
AGAIN = 1e-11  # above it another round is made from scores computed afresh
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
        Weight of the loss; bound on the coefficient of one example.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Largest error of a probability, |p_i - (t_i + 1) / 2 + beta_i / C| over all examples and machines, scores
        computed afresh from the kernel.

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

    def __init__(self, kernel: Kernel, C: float, classes: Sequence[Label]) -> None:
        self.kernel = checked_kernel(kernel)
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.n = 0
        c = len(self.classes)
        self._features: int | None = None
        self._asked: LogisticHypotheses | None = None
        self._where: dict[bytes, int] = {}  # object of each content
        self._examples: dict[tuple[int, int], int] = {}  # place of each distinct example: object and class
        self._places = np.zeros((3, 0), np.int64)  # object, class and number of each distinct example
        self._history = np.zeros(64, np.int64)  # place of each example
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._count = 0  # distinct objects
        self._room = 0
        self._columns = np.zeros((0, 0))  # objects by feature
        self._kernel = np.zeros(0)  # packed by rows of the lower triangle, like the inverses
        self._scale = 0.0  # largest K(x, x)
        self._counts = np.zeros((c, 0), np.int64)
        self._total = np.zeros(0, np.int64)
        self._beta, self._score = np.zeros((2, c, 0))
        self._bias = np.zeros(c)
        self._levels = np.zeros((c, 0), np.int64)
        self._inverse = np.zeros((c, 0))  # packed
        self._sums, self._diagonals = np.zeros((2, c, 0))  # of the inverses: rows added, and diagonals
        self._make_scratch()

    def fresh(self) -> KernelLogisticRegression:
        """Return a machine with the same parameters that has learned nothing."""
        machine = KernelLogisticRegression(self.kernel, self.C, self.classes)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        return f"KernelLogisticRegression({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r})"

    def _make_scratch(self) -> None:
        c, room = len(self.classes), self._room
        self._betas, self._scores = np.zeros((2, 2, c, room))  # by side: the object not of class k, or of class k
        self._biases = np.zeros((2, c))
        self._joined = np.zeros((c, room))  # inverse times the new object's kernel
        self._work = np.empty((26, room))
        self._columns_kept = np.empty((2, compiled.FOLDED, room))

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
        self._counts, self._total = grown(self._counts, c, room), grown(self._total, room)
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
                beta = self._beta[k, :m]
                two[0] = beta
                packed.multiply(self._kernel, m, two, out)
                out[0] += self._bias[k]
                error = compiled.errors(beta, out[0], self._counts[k], total, self.C, m, out[1], two[1])
                worst = max(worst, error, abs(beta.sum()) / self.C)
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
                self._weights(1, self._levels[k, :m]), self._diagonals[k, :m], self._sums[k, :m],
            )  # fmt: skip
            row[:] = bag.deleted(self.C, self._places[0], self._places[1] == k)
        return Bag(scores, self._by_class())

    def _by_class(self) -> Integers:
        objects, codes, weights = self._places
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = weights
        return counts

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

    def hypotheses(self, x: Any) -> LogisticHypotheses:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Solved once and remembered until a label is learned or another object asked about; asking
        leaves no trace that a later answer could depend on.

        Parameters
        ----------
        x : (d,) finite numbers

        Returns
        -------
        LogisticHypotheses
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
        if p == self._count:
            self._columns[:, p] = x
            row = self._row(p)
            self.kernel.row(self._columns, count, x, row)
            if not np.isfinite(row).all():
                raise ValueError(f"x must have finite kernel values, got {x} which has not by {self.kernel!r}")
            self._counts[:, p] = self._total[p] = 0
            test_scores = self._score_row(row)
        else:
            test_scores = self._score[:, p].copy()
        self._suppose(p, count, test_scores)
        self._asked = LogisticHypotheses(self, key, test_scores, p, count)
        return self._asked

    def _weights(self, total: Any, levels: Integers) -> Floats:
        """Return the rounded weights, C n p (1 - p), of objects of n examples and the given levels."""
        rounded: Floats = 0.25 * self.C * total * 2.0 ** (levels / compiled.GRAIN)
        return rounded

    def _row(self, p: int) -> Floats:
        """Return the kernel of object p with those before it and itself, a view."""
        start = p * (p + 1) // 2
        return self._kernel[start : start + p + 1]

    def _constant(self, size: int, n: int) -> float:
        """Return the score from which a machine with one class only starts when the other comes."""
        return math.log(n) if size else -math.log(n)

    def _suppose(self, p: int, count: int, test_scores: Floats) -> None:
        """Solve all branches for object p."""
        m, n, new = self._count, self.n, p == self._count
        total = self._total[:count].copy()
        total[p] += 1
        row = self._row(p)
        for k in range(len(self.classes)):
            size = int(self._sizes[k])
            todo = np.array([size > 0, size < n])
            positives = np.repeat(self._counts[k, None, :count], 2, axis=0)
            positives[1, p] += 1
            betas, scores = self._betas[:, k], self._scores[:, k]
            if todo.any():
                alone = size in (0, n)
                betas[:, :m] = self._beta[k, :m]
                scores[:, :m] = self._constant(size, n) if alone else self._score[k, :m]
                base = self._constant(size, n) if alone else float(test_scores[k])
                bordered = self._join(k, row, new)
                V = self._weights(self._total[:m], self._levels[k, :m])
                if new:
                    compiled.start_both(bordered, V, base, self.C, todo, betas, scores)
                for _ in range(4):
                    finest = self._finest(betas, count)
                    compiled.descend_both(
                        bordered, V, positives, total, self.C, count, todo, finest, betas, scores,
                        self._work, self._columns_kept,
                    )  # fmt: skip
                    worst = self._certify(k, todo, positives, total, count)
                    todo &= ~(worst <= max(AGAIN, 4 * finest))
                    if not todo.any():
                        break
                for failed in np.flatnonzero(~(worst <= max(AGAIN, 20 * finest))).tolist():
                    self._solve_afresh(k, failed, positives[failed], total, count)
            for side, constant in enumerate((-1.0, 1.0)):
                if (size == 0 and side == 0) or (size == n and side == 1):
                    betas[side, :count], scores[side, :count], self._biases[side, k] = 0, constant, constant

    def _finest(self, betas: Floats, count: int) -> float:
        """Return the error of a probability to aim at: what rounding of the sums K beta allows."""
        scale = max(self._scale, float(self._row(count - 1)[-1]))
        largest = min(float(np.abs(betas[:, :count]).sum(axis=1).max()), self.C * (self.n + 1))
        aim = compiled.FINEST / max(1.0, 0.1 * self.C * scale)  # a score moves by up to C K of it
        return min(max(aim, 1e-16 * scale * largest), 0.01 * TOLERANCE)

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

    def _certify(self, k: int, todo: Any, positives: Integers, total: Integers, count: int) -> Floats:
        """Compute the scores of both branches afresh; return their largest errors."""
        betas, scores = self._betas[:, k], self._scores[:, k]
        outputs = np.empty((2, count))
        packed.multiply(self._kernel, count, betas, outputs)
        worst = np.zeros(2)
        for side in np.flatnonzero(todo).tolist():
            bias = float((scores[side, :count] - outputs[side]).mean())
            self._biases[side, k] = bias
            scores[side, :count] = outputs[side] + bias
            error = compiled.errors(
                betas[side], scores[side], positives[side], total, self.C, count, self._work[0], self._work[1]
            )
            worst[side] = max(error, abs(betas[side, :count].sum()) / self.C)
        return worst

    def _solve_afresh(self, k: int, side: int, positives: Integers, total: Integers, count: int) -> None:
        """Solve one branch from nothing."""
        try:
            fit = newton(LogisticProblem(packed.unpack(self._kernel, count), positives, total, self.C))
            if not fit.residual <= TOLERANCE:
                raise NotConverged(f"residual must be at most {TOLERANCE}, got {fit.residual:.3g}")
        except NotConverged as error:
            raise NotConverged(f"{error} at example {self.n}: scale the features, or lower C") from error
        self._betas[side, k, :count], self._scores[side, k, :count] = fit.beta, fit.score
        self._biases[side, k] = fit.bias

    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.current = False
            self._asked = None

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
        p, count = answer.test, answer.count
        self._forget()
        changes = [self._change(k, int(k == label), p, count) for k in range(len(self.classes))]
        self._features = self._columns.shape[0]
        self._where[answer.key] = p
        self._counts[label, p] += 1
        self._total[p] += 1
        self._sizes[label] += 1
        place = self._examples.setdefault((p, label), self._places.shape[1])
        if place == self._places.shape[1]:
            self._places = np.append(self._places, [[p], [label], [0]], axis=1)
        self._places[2, place] += 1
        if self.n == self._history.size:
            self._history = grown(self._history, 2 * self.n)
        self._history[self.n] = place
        self.n += 1
        for k, change in enumerate(changes):
            side = int(k == label)
            self._beta[k, :count] = self._betas[side, k, :count]
            self._score[k, :count] = self._scores[side, k, :count]
            self._bias[k] = self._biases[side, k]
            self._levels[k, :count] = change.levels
            if change.full is not None:
                packed.pack(change.full, count, self._inverse[k])
            else:
                packed.add_products(self._inverse[k], self._count, change.left, change.right, len(change.left))
                if p == self._count:
                    packed.append(self._inverse[k], p, change.right[-1], change.pivot)
            self._sums[k, :count], self._diagonals[k, :count] = change.sums, change.diagonal
        self._count = count
        self._scale = max(self._scale, float(self._row(p)[-1]))
        if self.n % REFRESH == 0:
            self._refresh()

    def _refresh(self) -> None:
        """Build an inverse anew where rounding has moved it."""
        m = self._count
        checked, out = np.empty((2, m)), np.empty((2, m))
        probe = np.array([(self.n // REFRESH) % m])
        for k in range(len(self.classes)):
            checked[0] = self._sums[k, :m]
            packed.columns_of(self._inverse[k], m, probe, checked[1:])
            packed.multiply(self._kernel, m, checked, out)
            V = self._weights(self._total[:m], self._levels[k, :m])
            out += checked / V
            out[0] -= 1.0
            out[1, probe] -= 1.0
            if not np.abs(out).max() <= DRIFT:
                full = self._dense_inverse(V, m)
                packed.pack(full, m, self._inverse[k])
                self._sums[k, :m], self._diagonals[k, :m] = full.sum(axis=1), full.diagonal()

    def _dense_inverse(self, V: Floats, m: int) -> Floats:
        """Return (K + 1 / V)^-1 of the first m objects."""
        try:
            return dense_inverse(self._kernel, V, m)
        except np.linalg.LinAlgError as error:
            raise NotConverged(
                f"kernel must be positive semidefinite with C = {self.C:g}, got {self.kernel!r}: {error}"
            ) from error

    def _change(self, k: int, side: int, p: int, count: int) -> Change:
        """Return how machine k's inverse changes when its branch is committed."""
        m, n = self._count, self.n + 1
        total = self._total[:count].copy()
        total[p] += 1
        size = int(self._sizes[k]) + side
        levels = np.empty(count, np.int64)
        alone = size in (0, n)
        compiled.levels(np.full(count, self._constant(size, n)) if alone else self._scores[side, k], count, levels)
        V = self._weights(total, levels)
        old = self._weights(self._total[:m], self._levels[k, :m])
        chosen = np.flatnonzero(V[:m] != old)
        if m < 8 or 2 * chosen.size > m:
            full = self._dense_inverse(V, count)
            return Change(levels, V, full.sum(axis=1), full.diagonal(), full=full)
        standing = Standing(self._inverse[k], self._diagonals[k, :m], self._sums[k, :m], old)
        return standing.changed(levels, V, chosen, self._joined[k, :m], self._row(p) if p == m else None)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: no scratch, no remembered answer."""
        scratch = ("_betas", "_scores", "_biases", "_joined", "_work", "_columns_kept")
        return {name: value for name, value in vars(self).items() if name not in scratch} | {"_asked": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_scratch()
