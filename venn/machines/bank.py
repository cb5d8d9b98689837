"""Several least-squares machines that learn the same examples: objects and kernel rows are shared, factors are not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from operator import attrgetter, methodcaller, not_
from typing import Any

import numpy as np

from venn.labels import checked_labels
from venn.machines.base import BaseHypotheses, in_bag
from venn.machines.kernels import checked_kernel
from venn.machines.least_squares import SMALLEST, LeastSquaresHypotheses, Supposed
from venn.machines.machine import Bag, NotConverged, ScoreTable, Tables, code_of
from venn.machines.objects import clean_rows
from venn.machines.ridge import RidgeSystem
from venn.machines.shared_store import SharedStore, same
from venn.machines.store import Content, Storing, all_one
from venn.machines.threads import side_by_side
from venn.machines.window import Around, inside
from venn.parameters import flag, has_methods, integer, several_positive
from venn.prediction import Floats, Integers, Label
from venn.saved import base, component, own, param, state
from venn.turns import asks, changes

BLOCK = 256  # objects whose kernel rows are held at a time


class BankHypotheses(BaseHypotheses):
    """What a bank would look like if the new object had each of the labels: the means of its members' scores.

    Parameters
    ----------
    members : list of LeastSquaresHypotheses
        What each member would look like.
    room : (M, 4, c, > n) float64
        The members' tables: of training scores and of leave-one-out ones, negative and positive.
    """

    def __init__(self, members: list[LeastSquaresHypotheses], room: Floats) -> None:
        super().__init__(members[0].key, np.mean([member.test_scores for member in members], axis=0))
        self.members = members
        self.mixed: dict[tuple[float, bool], ScoreTable] = {}  # made by one mixture, used by all
        self._room = room

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        return self.members[0].order

    def member_tables(self, leave_one_out: bool) -> tuple[ScoreTable, Floats, Floats]:
        """Return the first member's table, and the (M, c, > n) negative and positive scores by all members."""
        self.check_current()
        for member in self.members:
            member.fill(leave_one_out)
        (first, _), *_ = self.members[0].tables(leave_one_out)
        return first, self._room[:, 2 * leave_one_out], self._room[:, 2 * leave_one_out + 1]

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the mean scores of all examples: one table for all hypotheses."""
        first, negative, positive = self.member_tables(leave_one_out)
        m = len(first.labels)
        means = first._replace(
            negative=negative[:, :, :m].mean(axis=0), positive=positive[:, :, :m].mean(axis=0)
        )  # fmt: skip
        return [(means, np.arange(len(means.negative)))]


def _checked_kernels(name: str, kernel: Any) -> Any:
    """Return a kernel, or several."""
    if not isinstance(kernel, Sequence) or isinstance(kernel, str):
        return checked_kernel(name, kernel)
    if not kernel:
        raise ValueError(f"{name} must be one or several, got {kernel!r}")
    return tuple(checked_kernel(name, one) for one in kernel)


def checked_penalties(name: str, penalties: Any) -> tuple[float, ...]:
    """Return the penalties as numbers, or say what is wrong with them."""
    clean = several_positive(name, penalties)
    if min(clean) < SMALLEST:
        raise ValueError(f"{name} must be at least {SMALLEST:g}, got {min(clean)!r}")
    return clean


@component
class Bank(Storing):
    """Least-squares machines with several penalties, and several kernels, that learn the same examples.

    For when neither is known: `Mixture` weighs the members by how well each forecasts, and `members` are machines to be
    read one by one. As a machine itself a bank scores by the mean of its members, which is ridge regression too: its
    leave-one-out scores are exact.

    Every member is the `LeastSquaresSVM` of its kernel and penalty. They share the objects, and those of one kernel
    share each kernel row; the factors are their own. So a step takes little more than reading the factors,
    M n^2 / 2 numbers for M members of n examples, and memory is 4 M n^2 bytes.

    Parameters
    ----------
    kernel : Kernel, or sequence of Kernel
        There is a member for every kernel and every penalty, the first kernel's members first.
    classes : sequence of at least 2 distinct labels
        Declared up front; ties between classes go to the first.
    penalties : sequence of float > 0, default (0.3, 3, 30)
        Weights C of the squared errors.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are, and a
        `ScaleWarning` says where columns are far apart; False keeps quiet.
    threads : int >= 1, default 1
        Number of members solved in parallel: worth it for many members and some hundred examples, on cores that nobody
        else uses. It changes no bit of any result.

    Attributes
    ----------
    n : int
        Number of examples learned.
    systems : list of RidgeSystem
        The members' equations and their solutions. Only read them.
    residual : float
        Worst error of the members' equations, the kernels computed afresh.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range; nothing is learned from it.
    NotConverged
        As `LeastSquaresSVM`, when a member cannot be solved: none has learned, or forgotten, anything then.

    References
    ----------
    As of `LeastSquaresSVM`.

    Examples
    --------
    >>> import venn
    >>> bank = Bank(venn.machines.MultiscaleRBF(), ["no", "yes"])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     bank.learn_one(x, y)
    >>> bank.members[1].scores([0.0]).round(3)  # C = 3
    array([ 0.764, -0.764])
    >>> vmix = venn.TransductiveVennAbers(venn.machines.Mixture(bank))
    >>> panel = venn.Panel(vmix=vmix, sets=venn.Conformal(bank.members[1]))  # learns once
    """

    exact_leave_one_out = teaches = True

    kernel: Any = param(_checked_kernels)
    classes: Any = param(checked_labels, 2)
    penalties: Sequence[float] = param(checked_penalties, default=(0.3, 3.0, 30.0))
    threads: int = param(integer, 1, default=1, kw_only=True, unsaid=all_one)
    systems: list[RidgeSystem] = state(start=own(methodcaller("_new_systems")), within=True)

    def _new_store(self) -> SharedStore:
        return SharedStore(self.kernel if isinstance(self.kernel, tuple) else (self.kernel,), self.scale is not None)

    def _new_systems(self) -> list[RidgeSystem]:
        return [RidgeSystem(rows, len(self.classes), -1.0) for rows in self._store.readers for _ in self.penalties]

    def derive(self) -> None:
        """Make room for what is learned."""
        super().derive()
        self.sigmoids: dict[float, tuple[Floats, Floats]] = {}  # by the rate of a mixture, and its weights
        self._ridges = [(1 / C,) for _ in self._store.readers for C in self.penalties]
        self._group = np.zeros(len(self.classes), np.int64)
        self._tables = np.empty((len(self.systems), 4, len(self.classes), 0))
        if self.n:
            self._make_room(self.n)

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.systems)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as machines. Predictors may read them; to teach one is to teach the bank."""
        return tuple(Member(self, index) for index in range(self.size))

    def _make_room(self, n: int) -> None:
        """Make room for `n` examples; capacities double."""
        for system in self.systems:
            system.make_room(n)
        self._examples.make_room(n)
        room = self.systems[0].room
        if room > self._tables.shape[-1]:
            self._tables = np.empty((len(self.systems), 4, len(self.classes), room))

    # ------------------------------------------------------------------ reading

    @property
    @asks
    def residual(self) -> float:
        """Worst error of the equations over all members, examples and classes, the kernels computed afresh."""
        return max(self.member_residual(index) for index in range(len(self.systems)))

    def member_residual(self, index: int) -> float:
        """Return the worst error of one member's equations."""
        member = self.systems[integer("index", index, 0, len(self.systems) - 1)]
        self._store.begin()
        return member.residual

    @property
    def labels(self) -> Integers:
        """(n,) class codes of the examples, in order of arrival."""
        return self._examples.codes[: self.n]

    @property
    def counts(self) -> Integers:
        """(n, c) examples of each class at each place."""
        return np.eye(len(self.classes), dtype=np.int64)[self.labels]

    def member_bags(self, leave_one_out: bool) -> Floats:
        """Return the (M, c, n) training or leave-one-out scores of the examples by every member."""
        return np.array([self.member_bag(index, leave_one_out) for index in range(self.size)])

    def member_bag(self, index: int, leave_one_out: bool) -> Floats:
        """Return the (c, n) training or leave-one-out scores of the examples by one member."""
        system = self.systems[index]
        return system.leave_one_out_scores() if leave_one_out else system.training_scores()

    @property
    def bag(self) -> Bag:
        """Mean training scores now, by example."""
        return self._bag_of(self.member_bags(False).mean(axis=0))

    @property
    def leave_one_out_bag(self) -> Bag:
        """Mean score of each example by the members without it, by example; 0 where there is only one."""
        return self._bag_of(self.member_bags(True).mean(axis=0))

    def _bag_of(self, scores: Floats) -> Bag:
        return Bag(scores[:, self.aside :], self.counts[self.aside :])

    def member_scores(self, x: Any) -> Floats:
        """Return the (M, c) scores of `x` by the members as they are, without `x`; 0 before the first example."""
        x = self._clean(x)
        asked = self._asked
        if asked is not None and asked.key == x.tobytes():
            return np.array([member.test_scores for member in asked.members])
        self._store.begin()
        return np.array([system.scores_of(x) for system in self.systems])

    def member_scores_many(self, X: Any) -> Floats:
        """Return the (M, c, m) scores of m objects (m, d) by the members; each as `member_scores` gives it.

        One row of each kernel serves all its members.
        """
        objects = clean_rows(X, self._features)
        m, n, each = len(objects), self.n, len(self.penalties)
        scores = np.zeros((len(self.systems), len(self.classes), m))
        for start in range(0, m, BLOCK) if n else ():
            block = range(start, min(start + BLOCK, m))
            new = [self._clean(objects[i]) for i in block]
            for which, reader in enumerate(self._store.readers):
                rows = reference = None
                for member in range(which * each, (which + 1) * each):
                    wanted = self.systems[member].solution.reference
                    if rows is None or not same(reference, wanted):
                        rows = np.array([self._store.row_with(n, x, wanted, reader.kernel) for x in new])
                        reference = wanted
                    scores[member, :, start : block.stop] = self.systems[member].scores_by(rows).T
        return scores

    def scores(self, x: Any) -> Floats:
        """Return the (c,) mean scores of `x` by the members as they are, without `x`; 0 before the first example."""
        return self.member_scores(x).mean(axis=0)

    # ----------------------------------------------------------------- learning

    @asks
    def hypotheses(self, x: Any) -> BaseHypotheses:
        """Answer, for every hypothesis about `x`, with the scores of the whole augmented bag.

        Solved once and remembered until a label is learned or another object asked about; asking changes no later
        answer.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row

        Returns
        -------
        BaseHypotheses
            It holds this bank's arrays: read it before the next question.
        """
        return in_bag(self.answer(x), self.aside)

    def _solved_for(self, x: Content, key: bytes, weight: float) -> BankHypotheses:
        self.forget()
        self._store.begin()
        n = self.n
        self._make_room(n + 1)
        self._store.expect(n, x)
        # Every second time from the last member to the first: the factors read last may still be in the cache.
        order = range(len(self.systems))[:: 1 if n % 2 else -1]
        solved = side_by_side(lambda i: self.systems[i].border(x, self._ridges[i]), order, self.threads)
        bordered = dict(zip(order, solved, strict=True))
        labels, columns = self._examples.codes[: n + 1], self._store.columns[:, : n + 1]
        labels[n] = 0
        members = [
            LeastSquaresHypotheses(
                key, system.new_scores(), 1.0, Supposed(self._group, labels, columns, system, bordered[i], room[None])
            )
            for i, (system, room) in enumerate(zip(self.systems, self._tables, strict=True))
        ]
        return BankHypotheses(members, self._tables)

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""
        if self._asked is not None:
            for member in self._asked.members:
                member.current = False
        super().forget()

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example: the solutions found for its label become the members.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        y : one of `classes`
        """
        label = code_of(y, self._codes)
        if self._begun(x, y):
            return
        answer = self.answer(x)
        self.forget()
        targets = np.where(np.arange(len(self.classes)) == label, 1.0, -1.0)
        for system, member in zip(self.systems, answer.members, strict=True):
            system.append(member.supposed.bordered[0], targets)
        self._examples.append(label)
        self.sigmoids = {}

    @changes
    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the members are then those that have learned the others.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Its place in order of arrival, 0 the oldest; later ones move up.

        Raises
        ------
        TypeError, ValueError
            For any other `i`.
        NotConverged
            When an equation of a member misses the tolerance of 1e-7; then nothing is forgotten.
        """
        i = self._leaving(i)
        self.forget()
        self._store.begin()
        undo = []
        try:
            for system in self.systems:
                undo.append(system.remove(i))
        except NotConverged:
            for put_back in reversed(undo):
                put_back()
            raise
        self._examples.remove(i)
        self.sigmoids = {}


def checked_bank(name: str, bank: Any) -> Any:
    """Return the bank, or the window on one; raise an error that says what is wrong with it."""
    if not has_methods(inside(bank), "member_scores"):
        raise TypeError(f"{name} must be a Bank, or a SlidingWindow on one, got {bank!r}")
    return bank


@base
class BankView(Around):
    """Base of views of a bank's members; a subclass gives `_bag`."""

    held = "bank"
    bank: Any = param(checked_bank)
    whole: bool = param(flag, default=False, kw_only=True, unsaid=not_)

    @property
    def _aside(self) -> int:
        """Number of first examples that only teach, and do not count here."""
        return 0 if self.whole else inside(self.bank).aside

    @property
    def n(self) -> int:
        """Number of examples that count here."""
        return super().n - self._aside

    @property
    @asks
    def bag(self) -> Bag:
        """Scores of the examples that count here, by the members' training scores."""
        return self._bag(False)

    @property
    @asks
    def leave_one_out_bag(self) -> Bag:
        """Scores of the examples that count here, by the members' leave-one-out scores."""
        return self._bag(True)

    @abstractmethod
    def _bag(self, leave_one_out: bool) -> Bag:
        """Return the scores by the members' training scores, or by their leave-one-out ones."""


def _checked_index(name: str, index: Any, bank: Any) -> int:
    size = inside(bank).size
    if integer(name, index, 0) >= size:
        raise ValueError(f"{name} must be below the number of members, {size}, got {index!r}")
    return int(index)


@component
class Member(BankView):
    """One machine of a bank, to be read by predictors; to teach it is to teach the bank.

    Parameters
    ----------
    bank : Bank, or SlidingWindow on one
    index : int from 0 to M - 1
        Its place among the members.
    whole : bool, default False
        Whether examples that only teach, see `Scale`, count like all others: nothing is guaranteed then.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> bank = Bank(venn.RBF(1.0), ["no", "yes"], penalties=(1, 10))
    >>> window = venn.SlidingWindow(bank, 100)
    >>> model = venn.Conformal(Member(window, 1))
    >>> model.learn_one([0.0], "no")
    >>> bank.n, Member(window, 0).n
    (1, 1)
    """

    exact_leave_one_out = True

    index: int = param(_checked_index, own(attrgetter("bank")))

    @property
    @asks
    def residual(self) -> float:
        """Worst error of the member's equations."""
        return inside(self.bank).member_residual(self.index)

    def _bag(self, leave_one_out: bool) -> Bag:
        bank, aside = inside(self.bank), self._aside
        return Bag(bank.member_bag(self.index, leave_one_out)[:, aside:], bank.counts[aside:])

    @asks
    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of `x` by the member as it is, without `x`."""
        return inside(self.bank).member_scores(x)[self.index]

    @asks
    def hypotheses(self, x: Any) -> BaseHypotheses:
        """Answer for every hypothesis about `x`; the bank solves once for all members."""
        return in_bag(inside(self.bank).answer(x).members[self.index], self._aside)
