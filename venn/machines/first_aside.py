"""Machines that scale their objects by the first examples, which teach them too, and stand in no bag."""

from __future__ import annotations

from typing import Any, NamedTuple

from venn.machines.machine import Bag
from venn.machines.scaled import ByFirst, Scale, expect_scaled, fixed_by
from venn.prediction import Label

FARTHEST = 10.0  # deviations from the centre


class Early(NamedTuple):
    """What was made anew for a question, as the scale is not fixed yet."""

    key: bytes
    machine: Any
    scale: Scale


class FirstAside(ByFirst):
    """Base of what the first objects teach as well; those stand in no bag.

    Until these have fixed the scale, it is that of all objects so far and of the new one: another for each question. So
    the machine is made anew for each, which is cheap while there are few.
    """

    learned: Any
    _asked: Early | None = None  # for the last question
    _now: tuple[int, Any] | None = None  # without any new object, of so many

    @property
    def aside(self) -> int:
        """Number of examples that have fixed the scale: they teach, and stand in no bag."""
        return 0 if self.first is None or self.fixed is None else self.first

    @property
    def n(self) -> int:
        """Number of examples in the bag."""
        learned: int = self.learned
        return learned - self.aside

    @property
    def current(self) -> Any:
        """What has learned all objects so far, on their scale."""
        seen = len(self._rows)
        if self.fixed is not None or not seen:
            return self._held
        if self._now is None or self._now[0] != seen:
            self._now = seen, self._made(fixed_by(self._rows))
        return self._now[1]

    @property
    def residual(self) -> float:
        """Worst error of the equations, the kernels computed afresh."""
        return float(self.current.residual)

    @property
    def bag(self) -> Bag:
        """Training scores now, by example of the bag."""
        return self._in_bag(self.current.bag)

    @property
    def deleted_bag(self) -> Bag:
        """Score of each example of the bag without it."""
        return self._in_bag(self.current.deleted_bag)

    def _in_bag(self, bag: Bag) -> Bag:
        return Bag(bag.scores[:, self.aside :], bag.counts[self.aside :])

    def forget(self) -> None:
        """Drop the answer that is remembered; those who hold it can no longer read it."""
        super().forget()
        if self._asked is not None:
            self._asked.machine.forget()
            self._asked = None

    # ------------------------------------------------------------------ scaling

    def _placed(self, row: Any) -> Any:
        """Return a clean object on the scale of the objects learned so far."""
        scale = fixed_by(self._rows or [row]) if self.fixed is None else self.fixed
        return scale.place(row, FARTHEST)

    def _to_ask(self, row: Any) -> tuple[Any, Any]:
        """Return the machine to ask about a clean object, and the object on its scale."""
        if self.fixed is not None:
            return self._held, self.fixed.place(row, FARTHEST)
        key = row.tobytes()
        if self._asked is None or self._asked.key != key:
            scale = fixed_by([*self._rows, row])
            made = Early(key, self._made(scale), scale)
            self.forget()
            self._asked = made
        return self._asked.machine, self._asked.scale.place(row, FARTHEST)

    def _made(self, scale: Scale) -> Any:
        """Return a machine that has learned the examples so far, on this scale."""
        machine = self._held.fresh()
        expect_scaled(machine)
        for row, label in zip(self._rows, self._labels, strict=True):
            machine.learn_one(scale.place(row, FARTHEST), label)
        return machine

    def _fix(self, rows: list[Any], labels: list[Label]) -> None:
        """Fix the scale by the first objects, the last of which is new, and teach them."""
        machine, placed = self._to_ask(rows[-1])
        machine.learn_one(placed, labels[-1])
        setattr(self, self.held, machine)
        self.fixed = fixed_by(rows)
        self._rows, self._labels, self._asked, self._now = [], [], None, None
