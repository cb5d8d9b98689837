"""The account of answers given with a promise: it counts them, and says whether one more may be given."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from venn.monitors.alarms import shares


class Account(NamedTuple):
    """Counts of the questions so far. At every moment wrong + waiting <= promised x answered + allowance.

    Examples
    --------
    >>> account = Account(asked=4000, answered=2480, wrong=100, waiting=3, promised=0.05, allowance=5.0)
    >>> print(account)
    answered .62 of 4000, wrong .040 of the answers, promised .05 and 5 more, 3 wait for their label
    >>> account.kept, round(account.room, 9)
    (True, 26.0)
    """

    asked: int
    answered: int
    wrong: int  #: of the answers; those given up are among them, unless `unknown` says otherwise
    waiting: int  #: answers whose label has not come
    promised: float
    allowance: float

    @property
    def room(self) -> float:
        """How many more answers may be wrong: promised x answered + allowance - wrong - waiting."""
        return float(self._room())

    def _room(self, more: int = 0) -> Fraction:
        """Return the room after this many more answers. It is exact: no rounding may break the promise."""
        promised, allowance = exact(self.promised), exact(self.allowance)
        return promised * (self.answered + more) + allowance - self.wrong - self.waiting - more

    @property
    def kept(self) -> bool:
        """Whether the inequality holds."""
        return self._room() >= 0

    @property
    def may_answer(self) -> bool:
        """Whether the inequality would hold after one more answer, whatever its label."""
        return self._room(1) >= 0

    @property
    def silence(self) -> str:
        """Why no answer may be given, and what would change that; empty if one may be given."""
        if self.may_answer:
            return ""
        short = -self._room(1)
        told = (
            f"{self.wrong} of {self.answered} answers are wrong and {self.waiting} wait for their label, "
            f"{self.promised:g} of the answers and {self.allowance:g} more are allowed: it answers again "
        )
        if short <= self.waiting:
            return f"{told}when {ceil(short)} of those that wait have turned out right"
        return f"{told}with an allowance of {self.allowance + float(short):g}, and with no less"

    def snapshot(self) -> dict[str, Any]:
        """Return the counts and what is to be said of them, as plain data."""
        return {**self._asdict(), "sentence": str(self), "silence": self.silence}

    def __str__(self) -> str:
        if not self.asked:
            return f"nothing asked, wrong promised at most {shares(self.promised)[0]} of the answers"
        said = f"answered {shares(self.answered / self.asked)[0]} of {self.asked}"
        if self.answered:
            said += f", wrong {self.wrong / self.answered:.3f} of the answers".replace("0.", ".")
        waits = f", {self.waiting} wait for their label" if self.waiting else ""
        return f"{said}, promised {shares(self.promised)[0]} and {self.allowance:g} more{waits}"


def exact(number: float) -> Fraction:
    """Return a number exactly as it was typed: .05 is 1/20, not the nearest float.

    Examples
    --------
    >>> exact(0.05)
    Fraction(1, 20)
    """
    return Fraction(repr(float(number)))
