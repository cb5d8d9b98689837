"""Kernel ridge regression with a bias, on several targets at once, exact as examples come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from venn._compiled import distribution
from venn._compiled import ridge as compiled
from venn.machines.machine import NotConverged, doubled, grown
from venn.machines.shared_store import KernelRows, same
from venn.machines.store import Content, ObjectStore, check_row
from venn.machines.threads import one_thread
from venn.prediction import Floats
from venn.saved import checked_keys, restored_finite, restored_float, restored_int


class RidgeSolution:
    """What follows from the kernel, the ridge and the targets; a system may hold the current one and a fresh one.

    Attributes
    ----------
    factor : (>= n (n + 1) / 2,) float64
        Inverse Cholesky factor W of M = K + ridge, W M W' = I, packed by rows.
    sums, diagonal : (>= n,) float64
        M^-1 1, and the diagonal of M^-1.
    solutions : (t, >= n) float64
        M^-1 targets.
    bases : (t,) float64
        Sums of the solutions.
    total : float
        Sum of `sums`.
    certified : int
        Number of examples when all equations were checked last.
    given : int
        Number of the first rows of the factor that do not follow from the rows before and the objects.
    reference : (d,) float64 or None
        What objects are less before the kernel sees them.
    sweep : (4, >= n) float64 or None
        A weight of each example, the kernel matrix times these weights, the root of K(x, x), and the largest root so
        far: by them all equations are checked at once. It is not saved; None until it is needed.
    """

    def __init__(self, room: int, outputs: int, reference: Floats | None = None) -> None:
        self.reference = reference
        self.sweep: Floats | None = None
        self.factor = np.empty(room * (room + 1) // 2)
        self.sums, self.diagonal = np.zeros((2, room))
        self.solutions = np.zeros((outputs, room))
        self.bases = np.zeros(outputs)
        self.total = 0.0
        self.certified = 0
        self.given = 0

    def grow(self, n: int, room: int) -> None:
        """Make room while n examples are held."""
        self.sums, self.diagonal = grown(self.sums, room), grown(self.diagonal, room)
        self.solutions = grown(self.solutions, len(self.bases), room)
        if self.sweep is not None:
            self.sweep = grown(self.sweep, 4, room)
        factor, used = np.empty(room * (room + 1) // 2), n * (n + 1) // 2
        factor[:used] = self.factor[:used]
        self.factor = factor

    def trimmed(self, n: int) -> RidgeSolution:
        """Return a copy for n examples, without spare room."""
        copy = RidgeSolution(n, len(self.bases), self.reference)
        copy.factor[:] = self.factor[: n * (n + 1) // 2]
        copy.take_back(self.kept(n))
        copy.certified, copy.given = self.certified, self.given
        return copy

    def state(self, n: int) -> dict[str, Any]:
        """Return what is saved of n examples: the packed factor, and what follows from it up to the last bits."""
        return {
            "factor": self.factor[: n * (n + 1) // 2], "sums": self.sums[:n], "diagonal": self.diagonal[:n],
            "solutions": self.solutions[:, :n], "bases": self.bases, "total": float(self.total),
            "certified": self.certified, "reference": self.reference,
        }  # fmt: skip

    def restore(self, state: dict[str, Any], n: int, features: int | None) -> None:
        """Take over a `state` of n examples, for which there is room, or raise a ValueError."""
        given = math.isqrt(2 * np.size(state["factor"]))
        self.given = given if given < n <= REGROWN else n
        factor, reference = self.factor[: self.given * (self.given + 1) // 2], state["reference"]
        arrays = {"sums": self.sums[:n], "diagonal": self.diagonal[:n], "solutions": self.solutions[:, :n]}
        for name, own in (arrays | {"factor": factor, "bases": self.bases}).items():
            own[:] = restored_finite(name, state[name], own.shape)
        self.total = restored_float("total", state["total"])
        self.certified = restored_int("certified", state["certified"])
        if reference is not None:
            self.reference = restored_finite("reference", reference, (features or 0,)).copy()

    def kept(self, n: int) -> KeptRows:
        """Return copies of everything about n examples except the factor."""
        total = float(self.total)  # one of numpy's where the compiler is off
        return KeptRows(
            self.sums[:n].copy(), self.diagonal[:n].copy(), self.solutions[:, :n].copy(), self.bases.copy(), total
        )

    def take_back(self, kept: KeptRows) -> None:
        """Take over what was kept."""
        n = len(kept.sums)
        self.sums[:n], self.diagonal[:n], self.solutions[:, :n] = kept.sums, kept.diagonal, kept.solutions
        self.bases[:], self.total = kept.bases, kept.total


class KeptRows(NamedTuple):
    """What is computed from a factor and changes with every example."""

    sums: Floats
    diagonal: Floats
    solutions: Floats
    bases: Floats
    total: float


def changed_by_last(before: Any, n: int, c: int) -> KeptRows | None:
    """Return what the last learned example has changed: forgetting that example restores it."""
    if before is None:
        return None
    if n < 0 or not isinstance(before, list) or len(before) != 5:
        raise ValueError(f"before must be what the last example learned has changed, got {before!r}")
    shapes: tuple[tuple[int, ...], ...] = ((n,), (n,), (c, n), (c,))
    sums, diagonal, solutions, bases = (
        restored_finite("before", array, shape).copy() for array, shape in zip(before[:4], shapes, strict=True)
    )
    return KeptRows(sums, diagonal, solutions, bases, restored_float("before", before[4]))


TOLERANCE = 1e-7  # a tenth of the grid on which categories compare scores
SURE = 0.01  # where a random sum of all errors is above this share of the tolerance, each equation is looked at
ROUNDING = 3e-16  # what a kernel value, and what is computed by it, may be off by, relative
REGROWN = 512  # examples: a factor of no more is left out of files, as far as it comes again to the last bit
CLEAR = 1e-10  # what K(x, x) may cost by rounding, relative to the ridge, before another reference is looked for
FIRST = 64  # all equations are checked at this number of examples, and whenever it has doubled
#: Weights of examples in the sum of all errors, by turns; two of them are never nearly equal.
WEIGHTS = np.random.default_rng(0).uniform(-1.0, 1.0, 4096)


class Bordered(NamedTuple):
    """A system with a new example: the numbers that differ."""

    ridge: float
    pivot: float
    work: Floats  # (4, room)
    gain: float
    total: float
    entries: Floats  # (t,)
    biases: Floats  # (t,)


class LinearPart(NamedTuple):
    """What a new example does to the coefficients of one target: all are linear in its own target.

    With a_i the coefficient of example i without the new one, and Q the matrix that makes coefficients of targets, a
    new target t makes z = (t - forecast) / pivot the coefficient of the new example, and a_i - shares_i z that of
    example i; Q_ii becomes Q_ii + shares_i^2 / pivot, and 1 / pivot for the new example.
    """

    forecast: float  # of the new example, by the system without it
    pivot: float
    shares: Floats  # (n,)
    coefficients: Floats  # (n,)
    diagonal: Floats  # (n,) of Q


class RidgeSystem:
    """Kernel ridge regression on t targets of each example: the core of least-squares classifiers and regressors.

    For each target it minimises 1/2 |w|^2 + sum_i (t_i - f(x_i))^2 / (2 r_i), f(x) = <w, phi(x)> + b, where r_i > 0 is
    the example's ridge. One inverse factor serves all targets, whatever those of a new example; all answers are linear
    in these. A new example costs n^2 multiplications, and so does forgetting one.

    It knows objects and numbers, but no classes: a classifier sets the targets to +1 and -1, a regressor to the labels.

    After every step all equations are checked: the new example's own, a randomly weighted sum of all others', and each
    of these where the sum is not small. So is what rounding of kernel values may cost, and how many digits
    leave-one-out scores lose. For one old example, in turn, and at 64 examples and whenever they have doubled for all,
    the entries of the inverse's diagonal are checked too. Where a check fails, everything is computed afresh; if a
    check fails again, `NotConverged` is raised and nothing has changed. What was computed afresh for a question is
    dropped unless the example is learned: asking changes nothing.

    Because of the bias a kernel of differences, such as the linear one, may be computed of objects less any one
    reference. Where an object is far from the reference and near to most others, one of those becomes the reference:
    a column that is large and hardly varies costs no digits.

    Parameters
    ----------
    store : ObjectStore or KernelRows
        Where the objects are kept, with their kernel. The system puts them there and takes them out. Systems that learn
        the same examples may share a `SharedStore`, one `KernelRows` for each kernel.
    outputs : int
        Number t of targets.
    low : float
        First value supposed for a new example's targets.

    Attributes
    ----------
    n : int
        Number of examples.
    targets : (t, >= n) float64
    ridge : (>= n,) float64
    solution : RidgeSolution
        The current one.
    before : KeptRows or None
        What the last learned example has changed: forgetting that example restores it.
    probe : int
        The old example, modulo n, that is checked next.

    Examples
    --------
    >>> from venn import RBF
    >>> system = RidgeSystem(ObjectStore(RBF(1.0)), outputs=1)
    >>> for x, t in [(0.0, 0.5), (1.0, 2.0), (2.0, 3.5)]:
    ...     system.append(system.border(np.array([x]), [0.1])[0], np.array([t]))
    >>> system.scores_of(np.array([1.5])).round(2)
    array([2.93])
    """

    def __init__(self, store: ObjectStore | KernelRows, outputs: int, low: float = 0.0) -> None:
        self.store = store
        self.low = low
        self.n = 0
        self.probe = 0
        self.room = 0
        self.targets = np.zeros((outputs, 0))
        self.ridge = np.zeros(0)
        self.solution = RidgeSolution(0, outputs)
        self.before: KeptRows | None = None
        self._afresh: RidgeSolution | None = None  # computed for a question where the current solution failed a check
        self._asked = self.solution  # the solution that answered the last question
        self._ways = 1  # ridges that a new example is supposed to have
        self._make_scratch()

    def _make_scratch(self) -> None:
        self._row, self._probe_row, self._u = np.empty((3, self.room))
        self._ones, self._none = np.ones(self.room), np.zeros(self.room)
        self._work = np.empty((self._ways, 4, self.room))

    def make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        if n <= self.room:
            return
        room = self.room = doubled(self.room, n)
        self.ridge, self.targets = grown(self.ridge, room), grown(self.targets, len(self.targets), room)
        self.solution.grow(self.n, room)
        self._afresh = None
        self._make_scratch()

    # ------------------------------------------------------------------ reading

    @property
    def residual(self) -> float:
        """Worst error of the equations over all examples and targets, the kernel computed afresh."""
        return self._residual(self.solution, self.ridge)

    def _residual(self, solution: RidgeSolution, ridge: Floats, loss: float = 1.0) -> float:
        return max((self._violation(i, solution, ridge, loss) for i in range(self.n)), default=0.0)

    def _violation(self, i: int, solution: RidgeSolution, ridge: Floats, loss: float = 1.0) -> float:
        """Return the error of an example's equations; what only leave-one-out scores depend on counts `loss` times."""
        n, row, s = self.n, self._probe_row, solution
        self.store.row_of(i, n, row, s.reference)
        missed, digits = compiled.row_violation(
            i, n, row, ridge[i], self.targets, s.factor, s.sums, s.diagonal, s.solutions, s.bases, s.total
        )
        return float(max(missed, loss * digits))

    def _probed(self, solution: RidgeSolution, ridge: Floats, loss: float) -> float:
        """Return the error of the example whose turn it is."""
        return self._violation(self.probe % self.n, solution, ridge, loss) if self.n > 0 else 0.0

    def _sweep_of(self, solution: RidgeSolution) -> Floats:
        """Return what all equations are checked by, computed where that is not known."""
        if solution.sweep is None:
            sweep = np.zeros((4, self.room))
            for i in range(self.n):
                self.store.row_of(i, i + 1, self._probe_row, solution.reference)
                compiled.sweep_in(i, self._probe_row, WEIGHTS[i % WEIGHTS.size], sweep)
            solution.sweep = sweep
        return solution.sweep

    def _checked(self, s: RidgeSolution, ridge: Floats, shrunk: float = 1.0) -> float:
        """Return the worst error of a solution, all equations looked at, or at a sum of them that is small.

        The inverse's diagonal has just shrunk so many times, which cost it digits.
        """
        n = self.n
        if n == 0:
            return 0.0
        summed, rounding, loss = compiled.sweep_solution(
            n, self._sweep_of(s), self.targets, ridge, s.sums, s.diagonal, s.solutions, s.bases, s.total, self._ones,
            self._none, self._row, ROUNDING,
        )  # fmt: skip
        worst = self._probed(s, ridge, loss) if summed <= SURE * TOLERANCE else self._residual(s, ridge, loss)
        return float(max(worst, rounding, ROUNDING * shrunk * loss))

    def training_scores(self) -> Floats:
        """Return the (t, n) scores of the examples."""
        s = self.solution
        return compiled.training_scores(self.n, self.targets, self.ridge, s.sums, s.solutions, s.bases, s.total)

    def leave_one_out_scores(self) -> Floats:
        """Return the (t, n) score of each example by the system without it; 0 where there is only one."""
        s = self.solution
        return compiled.leave_one_out_scores(self.n, self.targets, s.sums, s.diagonal, s.solutions, s.bases, s.total)

    def scores_of(self, x: Content) -> Floats:
        """Return the (t,) scores of an object; 0 before the first example."""
        return self._score(self.store.row_with(self.n, x, self.solution.reference), self.solution)

    def _score(self, row: Floats, s: RidgeSolution) -> Floats:
        if self.n == 0:
            return np.zeros(len(self.targets))
        return compiled.score_row(self.n, row, s.sums, s.solutions, s.bases, s.total)

    def scores_by(self, rows: Floats) -> Floats:
        """Return the (m, t) scores of m objects by their (m, >= n) kernel rows; each as `scores_of` gives it."""
        scores = np.zeros((len(rows), len(self.targets)))
        if self.n > 0:
            s = self.solution
            compiled.score_rows(self.n, rows, s.sums, s.solutions, s.bases, s.total, scores)
        return scores

    # ----------------------------------------------------------------- a new example

    def border(self, x: Content, ridges: Sequence[float] | Floats) -> list[Bordered]:
        """Suppose a new example at an object, with each ridge; its targets are supposed later.

        The answer is valid until the next one, or until the system changes.

        Raises
        ------
        NotConverged
            An equation misses the tolerance even when computed afresh.
        """
        n = self.n
        self.make_room(n + 1)
        if len(ridges) != self._ways:
            self._ways = len(ridges)
            self._make_scratch()
        self.store.put(n, x)
        worst, answer = self._suppose(x, ridges, self.solution)
        nearer = None
        if CLEAR * min(ridges) < ROUNDING * self._row[n]:
            nearer = self.store.nearer(n, x, self._row[n])
        if nearer is not None or not worst <= TOLERANCE:
            afresh = self._afresh
            if afresh is None or (nearer is not None and not same(afresh.reference, nearer)):
                afresh = self._afresh = self._solved(self.ridge, self.solution.reference if nearer is None else nearer)
            worst, answer = self._suppose(x, ridges, afresh)
            if not worst <= TOLERANCE:
                with np.errstate(divide="ignore"):
                    bound = 1 / np.min(ridges)
                raise NotConverged(
                    f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {n}: C times its weight = "
                    f"{bound:.3g} is too large for the precision of {self.store.kernel!r} (scale the "
                    "features, or lower C), or the kernel is not positive semidefinite"
                )
        return answer

    def _suppose(self, x: Content, ridges: Sequence[float] | Floats, s: RidgeSolution) -> tuple[float, list[Bordered]]:
        """Return the worst error checked, and the system bordered with each ridge."""
        n, row, u, low = self.n, self._row, self._u, self.low
        self._asked = s
        self.store.row(n + 1, x, row, s.reference)
        check_row(self.store.kernel, row[: n + 1], x)
        sweep = self._sweep_of(s)
        norm = compiled.one_pass(s.factor, n, row, u)
        answer = []
        worst, most = 0.0, 1.0
        for ridge, work in zip(ridges, self._work, strict=True):
            kappa = row[n] + ridge
            if not kappa - norm > 0:
                return math.inf, []
            new = Bordered(ridge, kappa - norm, work, *compiled.suppose(
                n, u, self.targets, s.sums, s.solutions, s.bases, s.total, kappa - norm, low, work
            ))  # fmt: skip
            answer.append(new)
            share = new.gain / new.total
            wrong = compiled.new_violation(n, row, kappa, u, s.solutions, new.entries, new.biases, low, share, work)
            summed, rounding, loss = compiled.sweep_new(
                n, sweep, row, u, self.targets, self.ridge, s.sums, s.diagonal, s.solutions, new.pivot, new.gain,
                new.total, new.entries, new.biases, work, self._ones, ROUNDING,
            )  # fmt: skip
            if not rounding <= TOLERANCE:
                return math.inf if rounding != rounding else rounding, []
            if not summed <= SURE * TOLERANCE:
                summed = max(self._supposed_violation(i, s, new, loss) for i in range(n))
            worst, most = max(worst, wrong, summed, rounding), max(most, loss)
        worst = max(worst, self._probed(s, self.ridge, most))
        if n >= FIRST and n & (n - 1) == 0 and s.certified < n:
            worst = max(worst, self._residual(s, self.ridge))
            if worst <= TOLERANCE:
                s.certified = n
        return worst, answer

    def _supposed_violation(self, i: int, s: RidgeSolution, new: Bordered, loss: float) -> float:
        """Return the error of an old example's equations with the new one."""
        n, row = self.n, self._probe_row
        self.store.row_of(i, n, row, s.reference)
        return compiled.supposed_violation(
            i, n, row, self._row[i], self.ridge[i], self.targets, self._u, s.solutions, new.entries, new.biases,
            new.gain, new.total, loss, new.work,
        )  # fmt: skip

    def new_scores(self) -> Floats:
        """Return the (t,) scores of the new object by the system without it."""
        return self._score(self._row, self._asked)

    def fill(
        self, leave_one_out: bool, new: Bordered, test_scores: Floats, step: float, negative: Floats, positive: Floats
    ) -> None:
        """Set `negative` and `positive` (t, > n) to the scores of all examples, the new one last.

        Training or leave-one-out scores, where a target of the new example is `low`, and where it is `low + step`.
        `test_scores` are those of the new object.
        """
        n, s = self.n, self._asked
        if leave_one_out:
            compiled.leave_one_out_table(
                n, self._u, self.targets, s.diagonal, s.solutions, new.total, new.pivot, new.entries, new.biases,
                test_scores, new.work, step, negative, positive,
            )  # fmt: skip
            return
        self.ridge[n] = new.ridge
        compiled.training_table(
            n, self._u, self.targets, self.ridge, s.solutions, new.entries, new.biases, new.work, self.low, step,
            negative, positive,
        )  # fmt: skip

    def linear(self, new: Bordered, target: int = 0) -> LinearPart:
        """Return what the new example does to the coefficients of one target; there is at least one example."""
        n, s = self.n, self._asked
        shares, coefficients, diagonal = np.empty((3, n))
        pivot = distribution.linear(
            n, self._u, s.sums, s.diagonal, s.solutions[target], s.bases[target], s.total, new.pivot, new.gain,
            shares, coefficients, diagonal,
        )  # fmt: skip
        return LinearPart(float(self.new_scores()[target]), pivot, shares, coefficients, diagonal)

    def append(self, new: Bordered, targets: Floats) -> None:
        """Learn the new example, with its (t,) targets."""
        n = self.n
        s = self.solution = self._asked
        self._afresh = None
        self.store.keep(n)
        self.before = s.kept(n)
        self.targets[:, n], self.ridge[n] = targets, new.ridge
        compiled.append(
            s.factor, n, self._u, new.pivot, self.low, self.targets, s.sums, s.diagonal, s.solutions, s.bases, new.gain,
            new.entries,
        )  # fmt: skip
        s.total = new.total
        compiled.sweep_in(n, self._row, WEIGHTS[self.probe % WEIGHTS.size], self._sweep_of(s))
        self.n += 1
        self.probe += 1

    # ------------------------------------------------------------------ changes

    def _solved(self, ridge: Floats, reference: Floats | None) -> RidgeSolution:
        """Return everything computed from the kernel of objects less a reference, a ridge and the targets."""
        n, kernel = self.n, self.store.kernel
        if n == 0:
            return RidgeSolution(self.room, len(self.targets), reference)
        M = np.empty((n, n), order="F")
        row = np.empty(n)
        for i in range(n):
            self.store.row_of(i, n, row, reference)
            M[:, i] = row
        s = RidgeSolution(self.room, len(self.targets), reference)
        s.sweep = np.zeros((4, self.room))
        weights = WEIGHTS[np.arange(n) % WEIGHTS.size] if self.solution.sweep is None else self.solution.sweep[0, :n]
        lengths = np.sqrt(np.maximum(M.diagonal(), 0.0))
        with one_thread():
            s.sweep[:, :n] = weights, M @ weights, lengths, np.maximum.accumulate(lengths)
            M[np.diag_indices(n)] += ridge[:n]
            try:
                lower = cholesky(M, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError as error:
                raise NotConverged(
                    f"kernel must be positive semidefinite with a ridge of {ridge[:n].min():.3g}, got {kernel!r}: "
                    f"{error}"
                ) from error
            lower, _ = dtrtri(lower, lower=1, overwrite_c=1)
        compiled.packed(lower, s.factor, s.diagonal)
        compiled.one_pass(s.factor, n, np.ones(n), s.sums)
        for target, solution in zip(self.targets, s.solutions, strict=True):
            compiled.one_pass(s.factor, n, target[:n].copy(), solution)
        s.bases = s.solutions[:, :n].sum(axis=1)
        s.total = float(s.sums[:n].sum())
        s.certified, s.given = self.solution.certified, n
        return s

    def _regrow(self, factor: Floats, s: RidgeSolution) -> bool:
        """Make the rows of a packed factor again that follow from those given; return whether all is well."""
        row, u = np.empty((2, self.n))
        for i in range(s.given, self.n):
            self.store.row_of(i, i + 1, row, s.reference)
            pivot = row[i] + self.ridge[i] - compiled.one_pass(factor, i, row, u)
            if not pivot > 0:
                return False
            root, start = np.sqrt(pivot), i * (i + 1) // 2
            factor[start : start + i], factor[start + i] = -u[:i] / root, 1.0 / root
        return True

    def _factor_to_keep(self) -> Floats:
        """Return of the packed factor what does not come again by itself, to the last bit: perhaps all of it."""
        n, s = self.n, self.solution
        s.given = min(s.given, n)
        whole, given = s.factor[: n * (n + 1) // 2], s.given * (s.given + 1) // 2
        if not s.given < n <= REGROWN:
            return whole
        again = np.empty(len(whole))
        again[:given] = whole[:given]
        return whole[:given] if self._regrow(again, s) and again.tobytes() == whole.tobytes() else whole

    def remove(self, i: int) -> Callable[[], None]:
        """Forget the i-th example; later ones move up.

        Forgetting the last learned example at once restores every bit.

        Returns
        -------
        callable
            It puts the example back, where others are left, until the next question or change.

        Raises
        ------
        NotConverged
            An equation misses the tolerance even when computed afresh; nothing is forgotten then.
        """
        self._afresh = None
        undo = self._take_back() if i == self.n - 1 and self.before is not None else self._rotate_out(i)
        if self.n == 0:  # objects of another length may come, as at the start
            self.probe = self.solution.certified = 0
            self.solution.reference = self.solution.sweep = None
            self.store.clear()
        return undo

    def _take_back(self) -> Callable[[], None]:
        """Undo the last learned example, which stays in the arrays behind the others."""
        n, before, now = self.n, self.before, self.solution.kept(self.n)
        if before is not None:
            self.solution.take_back(before)
        x = self.store.remove(n - 1, n)
        self._sweep_out(n, n - 1, x)
        self.before, self.n, self.probe = None, n - 1, self.probe - 1

        def undo() -> None:
            self.solution.take_back(now)
            self.solution.sweep = None
            self.store.insert(n - 1, n - 1, x)
            self.before, self.n, self.probe = before, n, self.probe + 1

        return undo

    def _rotate_out(self, i: int) -> Callable[[], None]:
        """Take example i out of everything, or raise and put it back."""
        n, s, before, probe = self.n, self.solution, self.before, self.probe
        carry, cosines, sines = self._work[0, :3]
        kept, given = s.kept(n), (self.targets[:, i:n].copy(), self.ridge[i:n].copy())
        compiled.rotate_out(s.factor, n, i, carry, cosines, sines)
        s.total, shrunk = compiled.remove(n, i, carry, s.sums, s.diagonal, s.solutions, s.bases)
        self.targets[:, i : n - 1], self.ridge[i : n - 1] = given[0][:, 1:], given[1][1:]
        x = self.store.remove(i, n)
        self._sweep_out(n, i, x)
        self.n, self.before = n - 1, None

        def undo() -> None:
            s.sweep = None
            self.n, self.solution, self.before, self.probe = n, s, before, probe
            compiled.rotate_in(s.factor, n, i, carry, cosines, sines)
            s.take_back(kept)
            self.store.insert(i, n - 1, x)
            self.targets[:, i:n], self.ridge[i:n] = given

        s.given = n - 1
        try:
            if not self._checked(s, self.ridge, shrunk) <= TOLERANCE:
                self.solution = self._solved(self.ridge, s.reference)
                worst = self._checked(self.solution, self.ridge)
                if not worst <= TOLERANCE:
                    raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} without example {i}")
        except NotConverged:
            undo()
            raise
        self.probe += 1
        return undo

    def _sweep_out(self, n: int, i: int, x: Content) -> None:
        """Take an object that was example i of n, and has left the store, out of what all equations are checked by."""
        s = self.solution
        if s.sweep is not None:
            self.store.row(n - 1, x, self._row, s.reference)
            compiled.sweep_out(n, i, self._row, s.sweep)

    def rescale(self, factor: float) -> None:
        """Multiply all targets by a power of two: exact, also for what would restore the state before the last."""
        self._afresh = None
        before = self.before
        self.targets *= factor
        for solution in {id(one): one for one in (self.solution, self._asked)}.values():
            solution.solutions *= factor
            solution.bases *= factor
        if before is not None:
            before.solutions.__imul__(factor)
            before.bases.__imul__(factor)

    def retarget(self, targets: Floats) -> None:
        """Give the n examples other (t, n) targets: n^2 multiplications for each."""
        n, solution = self.n, self.solution
        self._afresh = self.before = None
        self.targets[:, :n] = targets
        for target, found in zip(self.targets, solution.solutions, strict=True):
            compiled.one_pass(solution.factor, n, target[:n].copy(), found)
        solution.bases = solution.solutions[:, :n].sum(axis=1)

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """What is saved: the solution, which example is checked next, and what the last one has changed."""
        before = None if self.before is None else list(self.before)
        n = self.n
        return self.solution.state(n) | {
            "factor": self._factor_to_keep(), "targets": self.targets[:, :n], "ridge": self.ridge[:n],
            "probe": self.probe, "before": before,
        }  # fmt: skip

    def restore(self, state: Any) -> None:
        """Take over a `state` of the objects in the store, or raise a ValueError if it is none."""
        checked_keys("system", state, self.state)
        n, t = self.store.n, len(self.targets)
        self.n = 0  # what is there is not kept
        self.make_room(n)
        self._asked, self._afresh = self.solution, None
        s = self.solution
        s.restore(state, n, self.store.features)
        self.before = changed_by_last(state["before"], n - 1, t)
        self.targets[:, :n] = restored_finite("targets", state["targets"], (t, n))
        self.ridge[:n] = restored_finite("ridge", state["ridge"], (n,))
        self.n, self.probe = n, restored_int("probe", state["probe"])
        if not self._regrow(s.factor, s):
            raise ValueError("factor must go on with these objects, and does not")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: no scratch, nothing to undo the last example, no spare room."""
        n = self.n
        return {
            "store": self.store.trimmed(n), "low": self.low, "n": n, "room": n, "probe": self.probe, "before": None,
            "targets": self.targets[:, :n].copy(), "ridge": self.ridge[:n].copy(),
            "solution": self.solution.trimmed(n), "_ways": self._ways, "_afresh": None,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._asked = self.solution
        self._make_scratch()
