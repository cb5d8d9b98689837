"""One-against-all support vector machines, kept exact online."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.path import EVENTS
from venn._compiled.step import (
    REBUILD,
    UNSOLVED,
    biases,
    commit_step,
    rebuild,
    refresh_scores,
    solve_step,
    worst_residual,
)
from venn.machines.batch import batch_solve
from venn.machines.kernels import Kernel, positive
from venn.machines.machine import Bag, NotConverged, class_codes, clean_object
from venn.prediction import Floats, Integers, Label

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

    Memory: 8 m^2 bytes for the kernel of the m distinct objects, twice that just after growing, for
    buffers double; 8 c s^2 bytes for margins of at most s support vectors, and 50 c m bytes of scores.

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
    >>> machine = OneVsAllSVM(RBF(1.0), C=10, classes=["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([ 1.122, -1.122])
    >>> machine.hypotheses([0.6]).scores(1).shape
    (5, 2)
    """

    # Buffers; capacities double. (c, .) arrays hold the solved machines, (c, 2, .) the answers to the
    # two suppositions "not of class k" and "of class k" about the object asked about.
    _kernel: Floats
    _columns: Floats
    _counts: Integers
    _total: Integers
    _first: Integers
    _beta: Floats
    _score: Floats
    _state: NDArray[np.int8]
    _betas: Floats
    _scores: Floats
    _states: NDArray[np.int8]
    _members: Integers
    _B: Floats
    _spare: Floats
    _index: Integers
    _alive: NDArray[np.bool_]
    _U: Floats
    _kappa: Floats
    _work: Floats

    def __init__(self, kernel: Kernel, C: float, classes: Sequence[Label]) -> None:
        if not callable(getattr(kernel, "row", None)):
            raise TypeError(f"kernel must be a kernel object such as RBF(0.1), got {kernel!r}")
        self.kernel = kernel
        self.C = positive("C", C)
        self._codes = class_codes(classes)
        self.classes = tuple(self._codes)
        self.n = 0
        c = len(self.classes)
        self._features: int | None = None
        self._objects = 0  # distinct objects learned
        self._where: dict[bytes, int] = {}
        self._asked: OneVsAllHypotheses | None = None
        self._history = np.zeros((2, 64), np.int64)  # object and class of each example
        self._extras: dict[tuple[int, int], int] = {}  # classes beyond the first at an object
        self._sizes = np.zeros(c, np.int64)  # examples of each class
        self._size = np.zeros(c, np.int64)  # margin of each machine
        self._bias = np.zeros(c)
        self._commit = np.zeros((c, 2), np.int64)
        self._slots = np.zeros((c, 2), np.int64)
        self._events = np.zeros((c, 2), np.int64)
        self._alternate = np.zeros((c, 2), np.bool_)
        self._statistics = np.zeros(8, np.int64)
        self._scale = 0.0  # largest K(x, x)
        self._room = 0
        self._margin_room = 0

    def __repr__(self) -> str:
        return f"OneVsAllSVM({self.kernel!r}, C={self.C!r}, classes={list(self.classes)!r})"

    def _resize(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
        old = getattr(self, name, None)
        new = np.zeros(shape, dtype)
        if old is not None:
            new[tuple(slice(0, n) for n in old.shape)] = old
        setattr(self, name, new)

    def _make_room(self, objects: int, features: int) -> None:
        if objects <= self._room:
            return
        c = len(self.classes)
        room = max(64, self._room)
        while room < objects:
            room *= 2
        self._resize("_columns", (features, room))
        self._resize("_kernel", (room, room))
        self._resize("_counts", (c, room), np.int64)
        self._resize("_total", (room,), np.int64)
        self._resize("_first", (room,), np.int64)
        for name, dtype in (("beta", np.float64), ("score", np.float64), ("state", np.int8)):
            self._resize(f"_{name}", (c, room), dtype)
            self._resize(f"_{name}s", (c, 2, room), dtype)
        self._room = room
        self._around = np.empty((12, room + EVENTS + 8))
        self._near = np.empty(room + EVENTS + 8, np.int64)
        self._pack = np.empty((self._margin_room + 1) * (room + EVENTS + 8))

    def _make_margin_room(self, size: int) -> None:
        need = size + EVENTS + 4
        if need <= self._margin_room:
            return
        c = len(self.classes)
        room = max(128, self._margin_room)
        while room < need:
            room *= 2
        self._resize("_members", (c, room), np.int64)
        self._resize("_B", (c, room, room))
        self._resize("_spare", (c, room, room))
        self._resize("_index", (c, 2, room), np.int64)
        self._resize("_alive", (c, 2, room), np.bool_)
        self._resize("_U", (c, 2, EVENTS, room))
        self._resize("_kappa", (c, 2, EVENTS))
        self._resize("_work", (9, room))
        self._pack = np.empty(room * (self._room + EVENTS + 8))
        self._shape = np.arange(room)
        self._margin_room = room

    @property
    def bag(self) -> Bag:
        """Training scores of all machines now, by distinct object."""
        m = self._objects
        if m == 0:
            c = len(self.classes)
            return Bag(np.zeros((c, 0)), np.zeros((0, c), np.int64))
        return Bag(np.ascontiguousarray(self._score[:, :m]), self._counts[:, :m].T)

    @property
    def residual(self) -> float:
        """Worst violation of the optimality conditions, all scores recomputed from the kernel."""
        if self._objects == 0:
            return 0.0
        worst: float = worst_residual(
            self._objects, self._kernel, self._counts, self._total, self.C, self._beta, self._score,
            self._sizes, self.n, self._bias,
        )  # fmt: skip
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
        p = self._where.get(key, self._objects)
        count = max(self._objects, p + 1)
        self._make_room(count, x.size)
        self._make_margin_room(int(self._size.max()))
        if p == self._objects:
            self._columns[:, p] = x
            row = self._kernel[p]
            self.kernel.row(self._columns, count, x, row)
            if not np.isfinite(row[:count]).all():
                raise ValueError(
                    f"x must give finite kernel values, got {row[:count].max()} by {self.kernel!r}"
                )
            self._first[p] = -1
            self._scale = max(self._scale, float(row[p]))
        worst = solve_step(
            p, p == self._objects, count, self.n, self._sizes, self._scale, self._kernel, self._counts, self._total,
            self.C, self._members, self._size, self._B, self._spare, self._beta, self._score, self._state, self._bias,
            self._betas, self._scores, self._states, self._index, self._alive, self._U, self._kappa, self._commit,
            self._slots, self._events, self._alternate, self._shape, self._work, self._around, self._near,
            self._pack, self._statistics,
        )  # fmt: skip
        unsolved = np.argwhere(self._commit == UNSOLVED)
        for k, side in unsolved:
            worst = max(worst, self._solve_afresh(int(k), int(side), p, count))
        if not worst <= TOLERANCE:
            raise NotConverged(f"residual must be at most {TOLERANCE}, got {worst:.3g} at example {self.n}")
        self._asked = OneVsAllHypotheses(self, key, p, count)
        return self._asked

    def _solve_afresh(self, k: int, side: int, p: int, count: int) -> float:
        """Solve one branch without the path; return its worst violation."""
        positive, total = self._counts[k, :count].copy(), self._total[:count].copy()
        positive[p] += side
        total[p] += 1
        beta, score, state, worst = batch_solve(
            self._kernel[:count], positive, total, self.C, self._beta[k, :count], TOLERANCE
        )
        members = np.abs(state) == 1
        score[members] = state[members]
        self._betas[k, side, :count] = beta
        self._scores[k, side, :count] = score
        self._states[k, side, :count] = state
        self._commit[k, side] = REBUILD
        return worst

    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.current = False
            self._asked = None

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the machines as they are, without `x`."""
        return self.hypotheses(x).test_scores.copy()

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        clean_object(x, self._features)
        self._code(y)

    def _code(self, y: Label) -> int:
        try:
            return self._codes[y]
        except (KeyError, TypeError):
            raise ValueError(f"y must be one of the classes {list(self.classes)!r}, got {y!r}") from None

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example: the branch already solved for its label becomes the machine.

        Parameters
        ----------
        x : (d,) finite numbers
        y : one of `classes`
        """
        label = self._code(y)
        answer = self.hypotheses(x)
        p, count = answer.test, answer.count
        sides = (np.arange(len(self.classes)) == label).astype(np.int64)
        anew = np.flatnonzero(self._commit[np.arange(len(sides)), sides] == REBUILD)
        for k in anew:
            self._make_margin_room(int((abs(self._states[k, sides[k], :count]) == 1).sum()))
        self._forget()
        self._features = self._columns.shape[0]
        self._where[answer.key] = p
        self._objects = count
        self._counts[label, p] += 1
        self._total[p] += 1
        self._sizes[label] += 1
        if self._first[p] < 0:
            self._first[p] = label
        elif self._first[p] != label:
            self._extras[p, label] = self._extras.get((p, label), 0) + 1
        if self.n == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
        self._history[:, self.n] = p, label
        self.n += 1
        commit_step(
            p, label, count, self._members, self._size, self._B, self._spare, self._beta, self._score, self._state,
            self._betas, self._scores, self._states, self._index, self._alive, self._U, self._kappa, self._commit,
            self._slots, self._events, self._alternate,
        )  # fmt: skip
        for k in anew:
            self._size[k] = rebuild(
                self._scale, self._kernel, count, self._counts[k], self._total, self.C, self._beta[k],
                self._state[k], self._members[k], self._B[k],
            )  # fmt: skip
        if self.n % REFRESH == 0:
            refresh_scores(
                count,
                self.n,
                self._sizes,
                self._kernel,
                self._beta,
                self._score,
                self._state,
                self._size,
                self._members,
            )
        biases(count, self._kernel, self._beta, self._score, self._bias)


class OneVsAllHypotheses:
    """What the machines would look like if the new object had each of the labels.

    Views of the machine's buffers, good until the machine is asked about another object or learns.

    Attributes
    ----------
    test_scores : (c,) float64
        Scores of the object by the machines that have not seen it.
    test : int
        Column of the object among the distinct ones.
    """

    def __init__(self, machine: OneVsAllSVM, key: bytes, test: int, count: int) -> None:
        self._machine = machine
        self.key = key
        self.test = test
        self.count = count
        self.current = True
        self.test_scores = machine._score[:, test].copy()

    def _buffers(self) -> OneVsAllSVM:
        if not self.current:
            raise RuntimeError("these hypotheses are out of date: the machine has learned or was asked again")
        return self._machine

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self._machine.classes

    @property
    def negative(self) -> Floats:
        """(c, m) scores of all distinct objects when the object is supposed not of class k."""
        return self._buffers()._scores[:, 0, : self.count]

    @property
    def positive(self) -> Floats:
        """(c, m) scores of all distinct objects when the object is supposed of class k."""
        return self._buffers()._scores[:, 1, : self.count]

    @property
    def first_labels(self) -> Integers:
        """(m,) the class first seen at each distinct object, -1 for an object not learned yet."""
        return self._buffers()._first[: self.count]

    @property
    def multiplicities(self) -> Integers:
        """(m,) number of examples at each distinct object."""
        return self._buffers()._total[: self.count]

    @property
    def extras(self) -> dict[tuple[int, int], int]:
        """Number of examples by (object, class), for the classes beyond the first at an object."""
        return self._buffers()._extras

    @property
    def bag(self) -> Bag:
        """Training scores before the object came."""
        return self._buffers().bag

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        machine = self._buffers()
        return machine._history[1, : machine.n].copy()

    def _in_order(self, of_not: Floats, of: Floats, j: int) -> Floats:
        machine = self._buffers()
        if isinstance(j, bool) or not 0 <= j < len(machine.classes):
            raise ValueError(f"j must be a class code from 0 to {len(machine.classes) - 1}, got {j!r}")
        objects = np.append(machine._history[0, : machine.n], self.test)
        rows = of_not[:, objects]
        rows[j] = of[j, objects]
        return rows.T

    def scores(self, j: int) -> Floats:
        """Return (n + 1, c) scores under hypothesis j: the examples in order of arrival, the object last."""
        return self._in_order(self.negative, self.positive, j)

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients under hypothesis j; equal objects share theirs equally."""
        betas = self._buffers()._betas[:, :, : self.count]
        share = self.multiplicities.astype(np.float64)
        share[self.test] += 1
        return self._in_order(betas[:, 0] / share, betas[:, 1] / share, j)
