"""Least-squares support vector machines, kept exact online, with exact leave-one-out scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from venn._compiled import least_squares as compiled
from venn.machines.checks import checked_class_weights, checked_place, checked_weight, code_of, shown_class_weights
from venn.machines.kernels import Kernel, checked_kernel
from venn.machines.least_squares_hypotheses import Joined, LeastSquaresHypotheses
from venn.machines.machine import Bag, NotConverged, Tuned, grown
from venn.machines.store import ObjectStore, Storing, doubled
from venn.parameters import class_codes, positive
from venn.prediction import Floats, Integers, Label

TOLERANCE = 1e-7  # a tenth of the grid on which categories compare scores
SMALLEST = 1e-300  # C weight of an example: its inverse stands in the equations
FIRST = 64  # all equations are checked at this number of examples, and whenever it has doubled
Solved = tuple[Floats, Floats, Floats, Floats, float]  # sums, diagonal, solutions, bases, total
SCRATCH = ("_row", "_probe_row", "_u", "_work", "_tables", "_joined")


class LeastSquaresSVM(Storing):
    """One-against-all least-squares support vector machines, exact online.

    Machine k minimises 1/2 |w|^2 + C/2 sum_i (t_i - f_k(x_i))^2, t_i = +1 for class k and -1 for the others,
    with f_k(x) = <w, phi(x)> + b: ridge regression on the labels. The system that it solves does not depend
    on the labels, so one factor serves all classes and all hypotheses, and the score of each example by
    the machine *without* it follows in closed form. A step costs n^2
    multiplications in one pass over the n^2 / 2 numbers of the factor, and O(n c); nothing of order n^2 is written.

    An example can be forgotten, any one: `unlearn_one` turns the factor in place, by plane rotations in
    one pass over its numbers, and costs about as much as a step.

    Deleted scores are exact. That of a new object is its score by the machines without it, the same under
    every hypothesis about its label.

    Memory: 4 n^2 bytes for n examples and little more. When room doubles, the old factor stands beside the
    new one for a moment; a new factorisation, made when a check fails, takes 12 n^2 bytes more for a moment. What is
    never touched is never resident.

    Objects may be sparse, rows of `scipy.sparse` of shape (1, d) or (d,): the first one decides, and the others are
    converted. A dense object takes 8 d bytes, a sparse one 12 for each number that is not 0 and 16.

    Parameters
    ----------
    kernel : Kernel
        `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the same method.
    C : float > 0
        Weight of the squared errors; 1 / C is the ridge.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    class_weights : sequence of c numbers > 0, optional
        Weight of an example of each class; 1 by default. An example of weight w counts as w equal ones.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst error of the equations K a + a / C + b = t over all machines, the kernel computed afresh.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        When an equation misses the tolerance of 1e-7, after a new factorisation too: C times the largest
        K(x, x) is too large for double precision, or the kernel is not positive semidefinite. Nothing is
        learned, or forgotten, then.

    Notes
    -----
    Every question checks the equation of the new example, and for one old example, in turn, its equations and its
    entry of the inverse's diagonal, and so does every unlearning; at 64 examples, and whenever they have doubled, all
    are checked. On failure everything is computed afresh.
    The tolerance is a tenth of the grid on which taxonomies compare scores.

    References
    ----------
    Suykens & Vandewalle (1999), "Least squares support vector machine classifiers"; Cawley & Talbot (2004),
    "Fast exact leave-one-out cross-validation of sparse least-squares support vector machines".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 0.977, -0.977])
    >>> machine.hypotheses([0.6]).deleted(1).shape
    (5, 2)
    """

    deletes_exactly = True
    tuning: Tuned | None = None  #: what chose the kernel and C, if `tune` did

    def __init__(
        self, kernel: Kernel, C: float, classes: Sequence[Label], class_weights: Sequence[float] | Floats | None = None
    ) -> None:
        self.kernel = checked_kernel(kernel)
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.class_weights = checked_class_weights(class_weights, self.classes)
        self._values, self._group = np.unique(self.class_weights, return_inverse=True)
        self.n = 0
        c = len(self.classes)
        self._store = ObjectStore(self.kernel)
        self._asked: LeastSquaresHypotheses | None = None
        self._probe = 0  # the old example whose equations are checked next
        self._certified = 0  # examples when all equations were checked last
        self._room = 0
        self._labels = np.zeros(0, np.int64)
        self._weights = np.zeros(0)  # of each example, without that of its class
        self._ridge = np.zeros(0)  # 1 / (C weight) of each example
        self._factor = np.zeros(0)
        self._sums = np.zeros(0)
        self._diagonal = np.zeros(0)
        self._solutions = np.zeros((c, 0))
        self._bases = np.zeros(c)
        self._total = 0.0
        self._before: Solved | None = None  # what the last example learned has changed
        self._make_scratch()

    def fresh(self) -> LeastSquaresSVM:
        """Return a machine with the same parameters that has learned nothing."""
        machine = LeastSquaresSVM(self.kernel, self.C, self.classes, self.class_weights)
        machine.tuning = self.tuning
        return machine

    def __repr__(self) -> str:
        weights = shown_class_weights(self.class_weights)
        return f"LeastSquaresSVM({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r}{weights})"

    def _make_scratch(self) -> None:
        self._row = np.empty(self._room)
        self._probe_row = np.empty(self._room)
        self._u = np.empty(self._room)
        groups = len(self._values)
        self._work = np.empty((groups, 4, self._room))
        self._tables = np.empty((groups, 4, len(self.classes), self._room))

    def _make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        if n <= self._room:
            return
        room = self._room = doubled(self._room, n)
        self._labels, self._weights = grown(self._labels, room), grown(self._weights, room)
        self._ridge = grown(self._ridge, room)
        self._sums = grown(self._sums, room)
        self._diagonal = grown(self._diagonal, room)
        self._solutions = grown(self._solutions, len(self.classes), room)
        factor = np.empty(room * (room + 1) // 2)
        used = self.n * (self.n + 1) // 2
        factor[:used] = self._factor[:used]
        self._factor = factor
        self._make_scratch()

    # ------------------------------------------------------------------ reading

    @property
    def residual(self) -> float:
        """Worst error of the equations over all examples and machines, the kernel computed afresh."""
        return max((self._violation(i) for i in range(self.n)), default=0.0)

    def _violation(self, i: int) -> float:
        n, row = self.n, self._probe_row
        self._store.row_of(i, n, row)
        worst: float = compiled.row_violation(
            i, n, row, self._ridge[i], self._labels, self._factor, self._sums, self._diagonal, self._solutions,
            self._bases, self._total,
        )  # fmt: skip
        return worst

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by example."""
        scores = compiled.training_scores(
            self.n, self._labels, self._ridge, self._sums, self._solutions, self._bases, self._total
        )
        return Bag(scores, self._counts())

    @property
    def deleted_bag(self) -> Bag:
        """Score of each example by the machines without it, by example; 0 where there is only one."""
        scores = compiled.deleted_scores(
            self.n, self._labels, self._sums, self._diagonal, self._solutions, self._bases, self._total
        )
        return Bag(scores, self._counts())

    def _counts(self) -> Integers:
        counts = np.zeros((self.n, len(self.classes)), np.int64)
        counts[np.arange(self.n), self._labels[: self.n]] = 1
        return counts

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`; 0 before the first example."""
        x = self._store.clean(x)
        if self._asked is not None and self._asked.key == x.tobytes():
            remembered: Floats = self._asked.test_scores.copy()
            return remembered
        row = self._store.row_with(self.n, x)
        return self._score(row) if self.n else np.zeros(len(self.classes))

    def _score(self, row: Floats) -> Floats:
        scores: Floats = compiled.score_row(self.n, row, self._sums, self._solutions, self._bases, self._total)
        return scores

    # ----------------------------------------------------------------- learning

    def hypotheses(self, x: Any, weight: float = 1.0) -> LeastSquaresHypotheses:
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
        LeastSquaresHypotheses
            Views of this machine's buffers: read them before the next question.
        """
        x, weight = self._store.clean(x), positive("weight", weight)
        key = x.tobytes()
        known: LeastSquaresHypotheses | None = self._remembered(key, weight)
        if known is not None:
            return known
        if not self.C * weight * self._values.min() >= SMALLEST:
            raise ValueError(f"weight must be 0, or C weight at least {SMALLEST:g} for each class, got {weight!r}")
        ridges = 1 / (self.C * weight * self._values)
        self._forget()
        n = self.n
        self._make_room(n + 1)
        self._store.put(n, x)
        self._store.row(n + 1, x, self._row)
        self._store.check_row(self._row[: n + 1], x)
        worst = self._suppose(ridges)
        if not worst <= TOLERANCE:
            kept = self._kept()
            try:
                if n > 0:
                    self._factorise()
                worst = self._suppose(ridges)
                if not worst <= TOLERANCE:
                    raise NotConverged(
                        f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {n}: C = {self.C:g} is too "
                        f"large for the precision of {self.kernel!r} (scale the features), or the kernel is not "
                        "positive semidefinite"
                    )
            except NotConverged:
                # A question that is refused leaves no trace.
                (self._factor, self._sums, self._diagonal, self._solutions, self._bases, self._total) = kept
                raise
        answer = self._asked = LeastSquaresHypotheses(self, key, float(weight))
        return answer

    def _suppose(self, ridges: Floats) -> float:
        """Join the object at column n, supposed of no class, with each ridge; return the worst error checked."""
        n, row, u = self.n, self._row, self._u
        norm = compiled.one_pass(self._factor, n, row, u)
        self._joined = []
        worst = 0.0
        for ridge, work in zip(ridges, self._work, strict=True):
            kappa = row[n] + ridge
            if not kappa - norm > 0:
                return math.inf
            joined = Joined(ridge, kappa - norm, *compiled.suppose(
                n, u, self._labels, self._sums, self._solutions, self._bases, self._total, kappa - norm, work
            ))  # fmt: skip
            self._joined.append(joined)
            wrong = compiled.new_violation(n, row, kappa, u, self._solutions, joined.entries, joined.biases, work)
            worst = max(worst, wrong)
        worst = max(worst, self._probed())
        if n >= FIRST and n & (n - 1) == 0 and self._certified < n:
            worst = max(worst, self.residual)
            if worst <= TOLERANCE:
                self._certified = n
        return worst

    def _kept(self) -> tuple[Floats, Floats, Floats, Floats, Floats, float]:
        return self._factor, self._sums, self._diagonal, self._solutions, self._bases, self._total

    def _factorise(self) -> None:
        """Compute everything that is kept from the kernel and the labels, into new arrays."""
        n = self.n
        M = np.empty((n, n), order="F")
        row = np.empty(n)
        for i in range(n):
            self._store.row_of(i, n, row)
            M[:, i] = row
        M[np.diag_indices(n)] += self._ridge[:n]
        try:
            lower = cholesky(M, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise NotConverged(
                f"kernel must be positive semidefinite with C = {self.C:g}, got {self.kernel!r}: {error}"
            ) from error
        lower, _ = dtrtri(lower, lower=1, overwrite_c=1)
        self._factor, self._diagonal = np.empty_like(self._factor), np.zeros(self._room)
        self._sums, self._solutions = np.zeros(self._room), np.zeros((len(self.classes), self._room))
        self._before = None
        compiled.packed(lower, self._factor, self._diagonal)
        compiled.one_pass(self._factor, n, np.ones(n), self._sums)
        for k, solution in enumerate(self._solutions):
            compiled.one_pass(self._factor, n, np.where(self._labels[:n] == k, 1.0, -1.0), solution)
        self._bases = self._solutions[:, :n].sum(axis=1)
        self._total = float(self._sums[:n].sum())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: no scratch, no remembered answer, no way back, no room to spare."""
        state = {name: value for name, value in vars(self).items() if name not in SCRATCH}
        n = self.n
        state |= {
            "_room": n, "_asked": None, "_before": None,
            "_store": self._store.trimmed(n), "_labels": self._labels[:n].copy(),
            "_weights": self._weights[:n].copy(), "_ridge": self._ridge[:n].copy(),
            "_factor": self._factor[: n * (n + 1) // 2].copy(), "_sums": self._sums[:n].copy(),
            "_diagonal": self._diagonal[:n].copy(), "_solutions": self._solutions[:, :n].copy(),
            "_bases": self._bases.copy(),
        }  # fmt: skip
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_scratch()

    def learn_one(self, x: Any, y: Label, weight: float = 1.0) -> None:
        """Learn one example: the answer already solved, with its label, becomes the machine.

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
        self.hypotheses(x, weight)
        self._forget()
        self._store.keep(self.n)
        joined = self._joined[self._group[label]]
        self._before = self._solved()
        compiled.append(
            self._factor, self.n, self._u, joined.pivot, label, self._labels, self._sums, self._diagonal,
            self._solutions, self._bases, joined.gain, joined.entries,
        )  # fmt: skip
        self._weights[self.n], self._ridge[self.n] = weight, joined.ridge
        self._total = joined.total
        self.n += 1
        self._probe += 1

    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then the one that has learned the others.

        By plane rotations of the factor's rows, in place and stable; the last example's row is simply dropped.
        Forgetting what was learned last, at once and not in a copy, brings back every bit. Predictors that number
        their steps need a `SlidingWindow`, which counts what it forgets.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Its place in order of arrival, 0 the oldest; later ones move up.

        Raises
        ------
        TypeError, ValueError
            For an `i` that is not that.
        NotConverged
            When an equation misses the tolerance of 1e-7; then nothing is forgotten.

        References
        ----------
        Gill, Golub, Murray & Saunders (1974), "Methods for modifying matrix factorizations"; here of the inverse.

        Examples
        --------
        >>> import venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
        >>> for x, y in [([5.0], "yes"), ([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n, machine.scores([0.0]).round(3)
        (4, array([ 0.977, -0.977]))
        """
        n, i = self.n, checked_place(i, self.n)
        self._forget()
        if i == n - 1 and self._before is not None:
            self._take_back(self._before)
            self._before = None
            self._store.remove(i, n)
            self.n, self._probe = n - 1, self._probe - 1
        else:
            self._rotate_out(i)
        if self.n == 0:  # objects of another length may come, as at the start
            self._probe = self._certified = 0
            self._store.clear()

    def _solved(self) -> Solved:
        """Return copies of all that follows from the factor."""
        n = self.n
        return (
            self._sums[:n].copy(), self._diagonal[:n].copy(), self._solutions[:, :n].copy(), self._bases.copy(),
            self._total,
        )  # fmt: skip

    def _take_back(self, solved: Solved) -> None:
        sums, diagonal, solutions, bases, self._total = solved
        n = len(sums)
        self._sums[:n], self._diagonal[:n], self._solutions[:, :n], self._bases[:] = sums, diagonal, solutions, bases

    def _rotate_out(self, i: int) -> None:
        """Take example i out of everything, or raise and put it back."""
        n, factor = self.n, self._factor
        carry, cosines, sines = self._work[0, :3]
        kept, solved = self._kept(), self._solved()
        given = [array[..., i:n].copy() for array in self._given()]
        compiled.rotate_out(factor, n, i, carry, cosines, sines)
        self._total = compiled.remove(n, i, carry, self._sums, self._diagonal, self._solutions, self._bases)
        for array, old in zip(self._given(), given, strict=True):
            array[..., i : n - 1] = old[..., 1:]
        x = self._store.remove(i, n)
        self.n = n - 1
        try:
            if not self._probed() <= TOLERANCE:
                self._factorise()
                worst = self._probed()
                if not worst <= TOLERANCE:
                    raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} without example {i}")
        except NotConverged:
            self.n = n
            compiled.rotate_in(factor, n, i, carry, cosines, sines)
            (self._factor, self._sums, self._diagonal, self._solutions, self._bases, self._total) = kept
            self._take_back(solved)
            self._store.insert(i, n - 1, x)
            for array, old in zip(self._given(), given, strict=True):
                array[..., i:n] = old
            raise
        self._before = None
        self._probe += 1

    def _given(self) -> tuple[Integers | Floats, ...]:
        """Return what is kept of the examples beside the objects, each along the last axis."""
        return self._labels, self._weights, self._ridge

    def _probed(self) -> float:
        """Return the error of the example whose turn it is."""
        return self._violation(self._probe % self.n) if self.n > 0 else 0.0

    def reweigh(self, class_weights: Sequence[float] | Floats | None) -> None:
        """Give the classes other weights: the machine is then the one that learned all examples with these.

        Exact, by a new factorisation: the ridge 1 / (C weight) changes on the whole diagonal. That is of order n^3 / 3
        multiplications and a check of all equations; learning anew takes about as many, in n steps.

        Parameters
        ----------
        class_weights : sequence of c numbers > 0, or None
            Weight of an example of each class, those learned included; None for 1 each.

        Raises
        ------
        ValueError, TypeError
            For weights out of range; nothing changes.
        NotConverged
            When an equation misses the tolerance of 1e-7; nothing changes.

        Examples
        --------
        >>> import venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
        >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
        ...     machine.learn_one(x, y)
        >>> machine.reweigh([1, 5])
        >>> machine
        LeastSquaresSVM(RBF(gamma=1.0), C=1.0, classes=['no', 'yes'], class_weights=[1.0, 5.0])
        """
        weights = checked_class_weights(class_weights, self.classes)
        n, ridge, kept = self.n, self._ridge, self._kept()
        self._ridge = np.zeros(self._room)
        # From the weights, not from the old ridge: nothing adds up over many changes.
        self._ridge[:n] = 1 / (self.C * self._weights[:n] * weights[self._labels[:n]])
        try:
            if n > 0:
                self._factorise()
            worst = self.residual
            if not worst <= TOLERANCE:
                raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} with the new class_weights")
        except NotConverged:
            self._ridge = ridge
            (self._factor, self._sums, self._diagonal, self._solutions, self._bases, self._total) = kept
            raise
        self._forget()
        self.class_weights = weights
        self._values, self._group = np.unique(weights, return_inverse=True)
        self._certified = n
        self._make_scratch()
