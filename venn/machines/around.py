"""What machines around a machine have in common: they pass on what is taught, and what is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from venn.labels import LabelSpace, space_of
from venn.machines.machine import Bag, Tuned
from venn.prediction import Label
from venn.saved import Saved
from venn.turns import TakesTurns


class Around(TakesTurns, Saved):
    """Base of what holds a machine: to teach it is to teach the machine, and what it does not change is passed on."""

    held: ClassVar[str] = "machine"  #: parameter, and attribute, that holds the machine

    @property
    def _held(self) -> Any:
        return getattr(self, self.held)

    def _turns_with(self) -> Iterable[Any]:
        return (self._held,)

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self._held.classes

    @property
    def space(self) -> LabelSpace:
        """What labels may be."""
        return space_of(self._held)

    @property
    def n(self) -> int:
        """Number of examples held."""
        return self._held.n

    @property
    def learned(self) -> int:
        """Number of examples that the machine has ever learned."""
        return self._held.learned

    @property
    def tuning(self) -> Tuned | None:
        """The result of `tune`, if it chose the machine's parameters."""
        return self._held.tuning

    @property
    def deletes_exactly(self) -> bool:
        """Whether deleted scores are those of machines solved without the example."""
        return bool(self._held.deletes_exactly)

    @property
    def residual(self) -> float:
        """Worst violation of the machine's optimality conditions over the examples held."""
        return self._held.residual

    @property
    def bag(self) -> Bag:
        """Training scores of the examples held."""
        return self._held.bag

    @property
    def deleted_bag(self) -> Bag:
        """Deleted scores of the examples held."""
        return self._held.deleted_bag

    def fresh(self) -> Self:
        """Return a machine with the same parameters, also inside, that has learned nothing."""
        return type(self)(**(self.parameters | {self.held: self._held.fresh()}))

    def expect_deleted(self) -> None:
        """Prepare the machine for readers of deleted scores at every step."""
        self._held.expect_deleted()

    def forget(self) -> None:
        """Drop the answer that the machine remembers."""
        self._held.forget()

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise for a bad example, and learn nothing."""
        self._held.check(x, y)

    def learn_one(self, x: Any, y: Label) -> None:
        """Teach the machine one example; a refused one leaves no trace."""
        self._held.learn_one(x, y)
