"""Machines that read another one, and learn as it does."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from venn.machines.around import PassesOn, inside
from venn.machines.machine import Bag
from venn.machines.scaled import scales
from venn.parameters import flag, has_methods
from venn.prediction import Label


class View(PassesOn):
    """Base of machines that read another one, the `bank`: to teach one is to teach the bank.

    So it learns whatever the bank learns. A `Panel` teaches the bank once, whichever of its views its predictors read.
    """

    bank: Any

    @property
    def learned(self) -> int:
        """Number of examples that the bank has ever learned."""
        return self.bank.learned

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self.bank.check(x, y)

    def learn_one(self, x: Any, y: Label) -> None:
        """Teach the bank one example; a refused one leaves no trace."""
        self.bank.learn_one(x, y)


class BankView(View):
    """Base of views of a bank's members; a subclass gives `_bag`.

    Parameters
    ----------
    bank : Bank, ScaledBank, or SlidingWindow on a Bank
    whole : bool, default False
        Whether examples that only teach count like all others.
    """

    held = "bank"

    def __init__(self, bank: Any, whole: bool = False) -> None:
        if not has_methods(inside(bank), "member_scores"):
            raise TypeError(f"bank must be a Bank, a ScaledBank, or a SlidingWindow on a Bank, got {bank!r}")
        if scales(bank):  # members would read the bank inside, whose objects are scaled
            raise TypeError(f"bank must not be in Scaled, got {bank!r}: ScaledBank(bank) scales for all its members")
        self.bank = bank
        self.whole = flag("whole", whole)

    def __repr__(self) -> str:
        rest = "".join(f", {n}={v!r}" for n, v in self.parameters.items() if n != self.held and v is not False)
        return f"{type(self).__name__}({self.bank!r}{rest})"

    @property
    def _aside(self) -> int:
        """Number of first examples that only teach, and do not count here."""
        return 0 if self.whole else getattr(inside(self.bank), "aside", 0)

    @property
    def n(self) -> int:
        """Number of examples that count here."""
        return super().n + (getattr(inside(self.bank), "aside", 0) if self.whole else 0)

    @property
    def bag(self) -> Bag:
        """Scores of the examples that count here, by the members' training scores."""
        return self._bag(False)

    @property
    def deleted_bag(self) -> Bag:
        """Scores of the examples that count here, by the members' deleted scores."""
        return self._bag(True)

    @abstractmethod
    def _bag(self, deleted: bool) -> Bag:
        """Return the scores by the members' training scores, or by their deleted ones."""


def taught(machine: Any) -> Any:
    """Return what is to be taught where a predictor reads this machine: the bank of a view, or the machine itself."""
    return machine.bank if isinstance(machine, View) else machine
