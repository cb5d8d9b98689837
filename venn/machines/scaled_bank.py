"""A bank that scales its objects by the first of them: these teach it, and stand in no bag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venn.machines.bank import Bank, BankHypotheses, Member, checked_bank
from venn.machines.base import BaseHypotheses, in_bag
from venn.machines.checks import code_of
from venn.machines.first_aside import FARTHEST, FirstAside
from venn.machines.frozen import clean_rows
from venn.machines.scaled import fixed_by, stacked
from venn.prediction import Floats, Integers, Label
from venn.saved import saved


@saved
class ScaledBank(FirstAside):
    """A bank whose columns may have any units: it scales each object before it learns it, or answers about it.

    The first 30 objects fix the centre and the spread of each column. Those examples teach the bank like all others,
    but stand in no bag: predictors on the bank, its `members` and a `Mixture` count the later ones only. So no
    knowledge is lost, and the guarantees hold:

    - From then on the first 30 are given. Scale, kernels and machines are functions of them and of the bag, in which
      every example, the new one included, is treated alike: it is on the same scale, and each deleted score is that by
      a machine of the first 30 and all others in the bag.
    - Until then the bag holds all examples and the new one, and the scale is that of all their objects, the new one's
      included. It treats them alike too. It is another scale for each question, so the bank is made anew for each,
      which is cheap while there are few.

    Given the bag without its order, no earlier answer says which of its examples came last, and later answers depend on
    it only through the first 30 without their order. So conformal p-values of successive steps are independent, as
    without scaling. Labels are not looked at for the scale.

    With declared `ranges` all examples stand in the bag, and a column goes from -1.73 to 1.73. A value beyond 10
    deviations counts as 10: a column that was constant at first, or one that drifts away, does not drown all others.
    A column that is constant over the first examples is only centred; sparse objects keep their zeros, as in `Scaled`.

    Parameters
    ----------
    bank : Bank
        One that has learned nothing. It is taught by this object from now on, and by nobody else.
    first : int >= 2, default 30
        Number of examples that fix the scale. Not with `ranges`.
    ranges : sequence of (low, high), optional
        Finite numbers, low < high, one pair for each column.

    Attributes
    ----------
    bank : Bank
        The bank inside, which meets scaled objects only. Do not teach it.
    n : int
        Number of examples in the bag.
    aside : int
        Number of those that fixed the scale: they teach only.
    learned : int
        Number of all examples.
    members : tuple of Member
        The members as machines.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or objects lie too far apart to be scaled.

    Examples
    --------
    >>> import venn
    >>> from venn.machines import Bank, Mixture, MultiscaleLaplacian
    >>> bank = ScaledBank(Bank(MultiscaleLaplacian(), ["no", "yes"]), first=10)
    >>> model = venn.TransductiveVennAbers(Mixture(bank))
    >>> for i in range(40):
    ...     model.learn_one([i * 1e6, 1e-3 * (i % 2)], "yes" if i > 20 else "no")
    >>> bank.learned, bank.n, bank.aside
    (40, 30, 10)
    >>> model.predict_one([8e6, 1e-3])
    ClassIntervals('no': [0.917, 1.000])
    """

    held = "bank"

    def __init__(
        self, bank: Bank, first: int | None = None, ranges: Iterable[tuple[float, float]] | None = None
    ) -> None:
        self.bank = checked_bank(bank)
        if bank.learned:
            raise ValueError(f"bank must have learned nothing, got one of {bank.learned} examples, not scaled")
        self._expect_first(first, ranges)
        self._codes = {label: code for code, label in enumerate(bank.classes)}
        self.bank.expect_scaled()

    # -------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """The scale by examples, or the examples so far that will fix it."""
        return self._first_state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it is not a possible one."""
        super().restore(state)
        self._restore_first(state, self.bank.n)
        if self.n < 0:
            raise ValueError(f"scale must be fixed by {self.first} examples, got a bank of {self.bank.n}")

    # ------------------------------------------------------------------ reading

    @property
    def learned(self) -> int:
        """Number of all examples."""
        return self.bank.n + len(self._rows)

    @property
    def changes(self) -> int:
        """Number of changes so far: readers see by it what is out of date."""
        return self.learned

    @property
    def size(self) -> int:
        """Number of members."""
        return self.bank.size

    @property
    def members(self) -> tuple[Member, ...]:
        """The members as machines. Predictors may read them; to teach one is to teach the bank."""
        return tuple(Member(self, index) for index in range(self.size))

    def member_residual(self, index: int) -> float:
        """Return the worst error of one member's equations."""
        return self.current.member_residual(index)

    @property
    def labels(self) -> Integers:
        """(learned,) class codes of all examples, in order of arrival."""
        return self.current.labels

    @property
    def counts(self) -> Integers:
        """(learned, c) examples of each class at each place."""
        return self.current.counts

    def member_bags(self, deleted: bool) -> Floats:
        """Return the (M, c, learned) training or deleted scores of all examples by every member."""
        return self.current.member_bags(deleted)

    def member_bag(self, index: int, deleted: bool) -> Floats:
        """Return the (c, learned) training or deleted scores of all examples by one member."""
        return self.current.member_bag(index, deleted)

    def member_scores(self, x: Any) -> Floats:
        """Return the (M, c) scores of `x` by the members as they are, without `x`; 0 before the first example."""
        placed = self._placed(self._clean(x))
        return self.current.member_scores(placed)

    def member_scores_many(self, X: Any) -> Floats:
        """Return the (M, c, m) scores of m objects (m, d) by the members; each as `member_scores` gives it."""
        objects = clean_rows(X, None)
        placed = [self._placed(self._clean(objects[i])) for i in range(len(objects))]
        if not placed:
            return np.zeros((self.size, len(self.classes), 0))
        return self.current.member_scores_many(stacked(placed))

    def scores(self, x: Any) -> Floats:
        """Return the (c,) mean scores of `x` by the members as they are, without `x`; 0 before the first example."""
        return self.member_scores(x).mean(axis=0)

    # ----------------------------------------------------------------- learning

    def answer(self, x: Any) -> BankHypotheses:
        """Return the bank's answer about `x`, in which all examples stand, those that only teach too."""
        bank, placed = self._to_ask(self._clean(x))
        return bank.answer(placed)

    def hypotheses(self, x: Any) -> BaseHypotheses:
        """Answer for every hypothesis about `x` with the scores of the bag; solved once, remembered until it changes.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        """
        return in_bag(self.answer(x), self.aside)

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        code_of(y, self._codes)
        row = self._clean(x)
        scale = fixed_by([*self._rows, row]) if self.fixed is None else self.fixed
        self.bank.check(scale.place(row, FARTHEST), y)

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; the last of the first ones fixes the scale.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        y : one of `classes`
        """
        self.check(x, y)
        row = self._clean(x)
        if self.fixed is not None:
            self.bank.learn_one(self.fixed.place(row, FARTHEST), y)
            return
        rows, labels = [*self._rows, row], [*self._labels, y]
        if len(rows) == self.first:
            self._fix(rows, labels)
        else:
            self.forget()
            self._rows, self._labels = rows, labels
