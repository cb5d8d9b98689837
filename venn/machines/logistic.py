"""Kernel logistic regression, kept exact online."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from venn._compiled import logistic as compiled
from venn._compiled import packed
from venn._compiled.dense import dot
from venn.machines.checks import checked_class_weights, checked_place
from venn.machines.logistic_both import Both, error, worths
from venn.machines.logistic_hypotheses import LogisticHypotheses, Question
from venn.machines.logistic_inverse import Change, Deletion, Standing, levels_of, made_anew, rounded_weights, without
from venn.machines.logistic_state import LogisticState
from venn.machines.machine import Bag, NotConverged, grown
from venn.machines.store import Content, check_row
from venn.prediction import Floats, Integers
from venn.saved import saved

SMALLEST = 1e-12  # least C weight of an example: below it, Newton's matrices become singular
EPS = np.finfo(np.float64).eps
ROUNDING = 1e-7  # of scores, at most


class Settled(NamedTuple):
    """A machine solved for other masses, and not set yet."""

    both: Both  #: the first problem is the machine's
    change: Change  #: of the inverse, to that for the solution
    standing: Standing  #: the inverse it was solved from


@saved
class KernelLogisticRegression(LogisticState):
    """One-against-all kernel logistic regression, exact online.

    Machine k minimises 1/2 |w|^2 + C sum_i ln(1 + exp(-t_i f_k(x_i))), t_i = +1 for class k and -1 for the others,
    with f_k(x) = <w, phi(x)> + b. So 1 / (1 + exp(-f_k(x))) is its probability of class k. Each step starts from the
    last solution. For every machine it solves two problems, with the new object as positive and as negative, and keeps
    the branch of the revealed label.

    A machine whose examples all have one sign, like that of a class without examples, would have an infinite bias. It
    gives every object the same score, the log odds ln((P + e) / (N + e)), where P is the weight of the examples of the
    class and N that of the others; one of them is 0. There e = 1/2 / (1 + C max K(x, x)). This is low enough: far from
    its example, a class that came once still looks likelier than a class that never came. Equal objects share one
    coefficient, so that equal examples have equal scores.

    A step solves by Newton's method. Its matrix changes with all weights p (1 - p), so no factor of it can be
    kept. What is kept, for each machine, is the inverse with the weights rounded to powers of sqrt 2: it changes by few
    ranks a step, and conjugate gradients preconditioned by it need few passes. A step costs O(c n^2).

    Memory: 4 (c + 1) n^2 bytes for n distinct objects and little more. When room doubles, the old buffers stand beside
    the new ones for a moment; memory never touched is never resident.

    Objects may be sparse, rows of `scipy.sparse` of shape (1, d) or (d,): the first one decides, and the others are
    converted. A dense object takes 8 d bytes, a sparse one 12 for each number that is not 0 and 16.

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
        on its coefficient is C w. With more than two classes of different weights, "not of class k" has several
        weights, and a step solves a problem for each.
    threads : int >= 1, default 1
        Number of machines solved in parallel. It changes no bit of any result; yet a run with a journal goes on with
        the number that it began with.

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

    #: Deleted scores are computed by one Newton step: see `deleted_bag`.
    deletes_exactly = False

    # ------------------------------------------------------------------ reading

    @property
    def residual(self) -> float:
        """Largest error of a probability over all machines, scores computed afresh from the kernel."""
        m = self._count
        total = self._total[:m]

        def of_machine(k: int) -> float:
            if not 0 < self._sizes[k] < self.n:
                return 0.0
            beta, masses, out = self._beta[k, :m], self._masses[k, :m], np.empty(m)
            packed.multiply_one(self._kernel, m, beta, out)
            worth = float(worths(masses[None], total.sum(keepdims=True), self.n)[0])
            return error(beta, out + self._bias[k], masses, total, self.C, worth)

        return max(self._of_each_class(of_machine))

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by distinct example."""
        return Bag(self._score[:, self._places[0]], self._by_class())

    @property
    def deleted_bag(self) -> Bag:
        """Score of each example by the machines without it, approximated by one Newton step, by distinct example.

        Without the example, the others' coefficients move according to the weights p (1 - p), each rounded to the
        nearest power of sqrt 2: f_i moves by -v a, where a is the multiplier of the example and v the variance that the
        others leave to f_i in the Gaussian approximation. This function of the bag and the example treats all examples
        alike, and so makes valid taxonomies; it is not the score of a machine solved without the example. The only
        example of its sign in a machine has the constant score of the others, which all have the other sign. If there
        is only one class, its examples keep their scores.

        References
        ----------
        Cawley & Talbot (2008), "Efficient approximate leave-one-out cross-validation for kernel logistic regression".
        """
        m = self._count

        def of_machine(k: int) -> Floats:
            bag = Deletion(
                self._score[k, :m], self._total[:m], int(self._sizes[k]), self.n,
                rounded_weights(self.C, 1.0, self._levels[k, :m]), self._diagonals[k, :m], self._sums[k, :m],
                self._scale,
            )  # fmt: skip
            return bag.deleted(self.C, self._places[0], self._places[1] == k, self._masses_of_places())

        return Bag(np.array(self._of_each_class(of_machine)), self._by_class())

    def _by_class(self) -> Integers:
        objects, codes, numbers = self._places
        counts = np.zeros((objects.size, len(self.classes)), np.int64)
        counts[np.arange(objects.size), codes] = numbers
        return counts

    def _masses_of_places(self) -> Floats:
        """Return the weight of one of each distinct example times that of its class."""
        return self._weight * self.class_weights[self._places[1]]

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        known = self._where.get(key)
        if known is not None:
            return self._score[:, known].copy()
        return self._score_row(self._store.row_with(self._count, x))

    def _score_row(self, row: Floats) -> Floats:
        return np.array([dot(beta, row, self._count) for beta in self._beta]) + self._bias

    # ----------------------------------------------------------------- learning

    @property
    def _stored(self) -> int:
        return self._count

    def _solved_for(self, x: Content, key: bytes, weight: float) -> LogisticHypotheses:
        if not self.C * weight * self.class_weights.min() >= SMALLEST:
            raise ValueError(f"weight must be 0, or C weight at least {SMALLEST:g} for each class, got {weight!r}")
        self.forget()
        p = self._where.get(key, self._count)
        count = max(self._count, p + 1)
        self._make_room(count)
        if p == self._count:
            row = self._row(p)
            self._store.put(p, x)
            self._store.row(count, x, row)
            check_row(self.kernel, row, x)
            if not row[p] * self.C * EPS <= ROUNDING:
                raise NotConverged(
                    f"C K(x, x) must be at most {ROUNDING / EPS:.2g}, as scores lose their digits otherwise, got "
                    f"{self.C * row[p]:.3g}: scale the features, or lower C"
                )
            self._masses[:, p] = self._total[p] = 0.0
            test_scores = self._score_row(row)
        else:
            test_scores = self._score[:, p].copy()
        self._suppose(p, count, test_scores, weight)
        asked = Question(
            p, self._count, self.n, weight, self.C, self._scale, self.threads, self.class_weights, self._group,
            self._side, self._unit, self._history[: self.n], self._places, self._masses_of_places(), self._sizes,
            self._total[:count], self._levels, self._kernel, self._inverse, self._diagonals, self._sums, self._scores,
            self._joined, self._store,
        )  # fmt: skip
        return LogisticHypotheses(key, test_scores, asked)

    def _suppose(self, p: int, count: int, test_scores: Floats, weight: float) -> None:
        """Solve all branches for object p."""
        m, n, last = self._count, self.n, len(self._unit) - 1
        row, new = self._row(p), p == m
        scale = max(self._scale, float(row[-1]))

        def of_machine(k: int) -> None:
            size, base = int(self._sizes[k]), float(test_scores[k])
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
                    if new:
                        with np.errstate(over="ignore"):  # infinity leads to no solution, which is refused
                            bounds = np.where(positive, self.C, -self.C) * masses
                        compiled.start_both(bordered, V, base, bounds, both.todo, both.beta, both.score)
                    self._solve(self._kernel, both, scale, bordered, V)
                for s, side in enumerate(pair):
                    if not both.todo[s]:
                        both.make_constant(s, scale)
                    self._betas[side, k, :count], self._scores[side, k, :count] = both.beta[s], both.score[s]
                    self._biases[side, k] = both.bias[s]

        self._of_each_class(of_machine)

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

    def _learn(self, answer: LogisticHypotheses, label: int, weight: float) -> None:
        asked = answer.asked
        p, count = asked.test, asked.total.size
        self.forget()
        sides = self._side[:, label].tolist()
        changes = self._of_each_class(lambda k: asked.change(k, sides[k]))
        self._store.keep(p)
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
        for k, side in enumerate(sides):
            self._beta[k, :count] = self._betas[side, k, :count]
            self._score[k, :count] = self._scores[side, k, :count]
            self._bias[k] = self._biases[side, k]
        self._of_each_class(lambda k: self._take(k, changes[k]))
        self._count = count
        self._scale = max(self._scale, float(self._row(p)[-1]))
        self._changed()

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machines are then those that have learned all others.

        Newton's method solves each machine from its current solution. An object without examples is removed, also from
        the inverses: O(c n^2), with a copy of the kernel and the inverses for a moment.

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
            When a residual is above 1e-9 after a batch solve too; nothing changes.

        Examples
        --------
        >>> import venn
        >>> machine = venn.KernelLogisticRegression(venn.RBF(1.0), C=1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n
        3
        """
        i = checked_place(i, self.n)
        place = int(self._history[i])
        p, label, _ = self._places[:, place].tolist()
        m, sizes = self._count, self._sizes.copy()
        sizes[label] -= 1
        examples = np.delete(self._history[: self.n], i)
        there = examples[self._places[0, examples] == p]
        # They are summed in order of arrival: so every bit is as if the example had never come.
        summed = self._masses_of_places()[there].cumsum()
        own = self._masses_of_places()[there[self._places[1, there] == label]].cumsum()
        masses, total = self._masses[:, :m].copy(), self._total[:m].copy()
        masses[label, p], total[p] = own[-1] if own.size else 0.0, summed[-1] if summed.size else 0.0
        kernel, beta, score = self._kernel, self._beta[:, :m], self._score[:, :m]
        goes = there.size == 0
        if goes:
            column = np.empty((1, m))
            packed.columns_of(kernel, m, np.array([p]), column)
            # Scores are those of the other coefficients. The solver corrects the sum of these.
            score = without(score - beta[:, p, None] * column[0], p)
            beta, masses, total = without(beta, p), without(masses, p), without(total, p)
            kernel = kernel[: m * (m + 1) // 2].copy()
            compiled.move_last(kernel, m, p)
            m -= 1
        q = np.arange(m)
        scale = float(kernel[q * (q + 3) // 2].max(initial=0.0))  # of the diagonal

        def of_machine(k: int) -> Settled:
            standing = self._standing(k).without(p, kernel) if goes else self._standing(k)
            both = Both.starting(self.C, len(examples), masses[k], total, beta[k], score[k])
            return self._settle(standing, both, int(sizes[k]), scale)

        solved = self._of_each_class(of_machine) if m else []
        self.forget()
        self._strike(i, place)
        if goes:
            self._drop(p)
        self._masses[:, :m], self._total[:m], self._sizes[:] = masses, total, sizes

        def take(k: int) -> None:
            if goes:
                G = solved[k].standing.G
                self._inverse[k, : G.size] = G
            self._take_settled(k, solved[k])

        if solved:
            self._of_each_class(take)
        self._scale = scale
        self._changed()
        if self.n == 0:
            self._bias[:] = 0.0
            self._changes = 0
            self._store.clear()

    def _settle(self, standing: Standing, both: Both, size: int, scale: float) -> Settled:
        """Solve the first problem, `size` examples of the class, from an inverse; `scale` is the largest K(x, x)."""
        if size in (0, both.n):
            both.make_constant(0, scale)
        else:
            both.todo[0] = True
            sums = standing.sums
            bordered = compiled.Bordered(standing.G, standing.diagonal, sums, float(sums.sum()), np.zeros(0), 1.0)
            self._solve(standing.kernel, both, scale, bordered, standing.weights)
        levels = levels_of(both.score[0])
        change = standing.changed(levels, rounded_weights(self.C, both.total[0], levels), np.zeros(0), None)
        return Settled(both, change, standing)

    def _take_settled(self, k: int, settled: Settled) -> None:
        """Set machine k to a solution; `_inverse` holds the inverse that it was solved from."""
        both, m = settled.both, self._count
        self._beta[k, :m], self._score[k, :m], self._bias[k] = both.beta[0], both.score[0], both.bias[0]
        self._take(k, settled.change)

    def reweigh(self, class_weights: Sequence[float] | Floats | None) -> None:
        """Give the classes other weights: the machine is then the one that learned all examples with these.

        Newton's method solves each machine from its current solution. Its inverse is made anew: O(c n^3), and the old
        inverses stay beside the new ones for a moment.

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
        if not (self.C * self._weight * class_weights[codes] >= SMALLEST).all():
            raise ValueError(
                f"class_weights must leave every example C weight of at least {SMALLEST:g}, got "
                f"{class_weights.tolist()!r}"
            )
        masses = np.zeros_like(self._masses)
        np.add.at(masses, (codes, objects), numbers * self._weight * class_weights[codes])
        total, inverse, m = masses.sum(axis=0), np.zeros_like(self._inverse), self._count

        def of_machine(k: int) -> Settled:
            both = self._both(k, masses[k, :m], total[:m], self.n)
            levels = levels_of(both.score[0])
            change = made_anew(self._kernel, levels, rounded_weights(self.C, total[:m], levels))
            change.apply(inverse[k], m)
            standing = Standing(self._kernel, inverse[k], change.diagonal, change.sums, change.weights)
            return self._settle(standing, both, int(self._sizes[k]), self._scale)

        solved = self._of_each_class(of_machine) if m else []
        self.forget()
        self._masses, self._total, self._inverse = masses, total, inverse
        for k, settled in enumerate(solved):
            self._take_settled(k, settled)
        self._weigh(class_weights)
