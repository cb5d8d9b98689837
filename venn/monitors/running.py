"""The base of what a compiled loop updates step by step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from venn.monitors.checks import number, numbers
from venn.parameters import LARGEST
from venn.prediction import Floats
from venn.saved import Saved, component, held_finite, own, state


def held_memory(name: str, memory: Any, size: int) -> Floats:
    """Return the memory of a `Sums` in a state, whose first number is one of steps; or say what it must be."""
    found = held_finite(name, memory, (size,))
    if not 0 <= found[0] <= LARGEST:
        raise ValueError(f"{name} must begin with a number of steps, got {found[0]}")
    return found


@component
class Sums(Saved):
    """Base with a fixed number of floats, first the number of steps, which a compiled loop updates.

    One number is an array of length 1, so that single steps and blocks of steps run the same code.
    """

    unnamed = 0
    _run: ClassVar[Any]  # compiled: run(constants, memory, xs, out)
    _width: ClassVar[tuple[int, ...]] = ()  # of what the loop writes after each number
    _inputs: ClassVar[tuple[int, ...]] = (1,)  # shape of what it reads in one step

    _memory: Floats = state(held_memory, own(lambda one: one.size), start=own(lambda one: one.begin()))

    @property
    def constants(self) -> Any:
        """What the loop reads besides."""
        return ()

    @property
    def size(self) -> int:
        """Length of the memory."""
        raise NotImplementedError

    def begin(self) -> Floats:
        """Return the memory before the first step."""
        return np.zeros(self.size)

    def derive(self) -> None:
        """Make room for one number and its result."""
        self._constants = np.array(self.constants, np.float64)
        self._one = np.empty(self._inputs)
        self._out = np.empty((1, *self._width))
        self._step = self._constants, self._memory, self._one, self._out

    @property
    def n(self) -> int:
        """Number of steps."""
        return int(self._memory[0])

    def _many(self, clean: Floats) -> Floats:
        """Process (m,) numbers; return what the loop writes after each."""
        out = np.empty((clean.shape[-1], *self._width))
        self._run(self._constants, self._memory, clean, out)
        return out


class OfNumbers(Sums):
    """Base of those that read one number at each step."""

    _named: ClassVar[tuple[str, str]] = "p", "ps"  # one number of its input, and several
    _least: ClassVar[float] = 0.0  # of its input; the largest is 1
    _truth: ClassVar[bool] = False  # whether True and False are numbers as well

    def update(self, x: Any) -> None:
        """Take in one number, from 0 to 1, of a deviation from -1 to 1.

        Raises
        ------
        TypeError, ValueError
            It is not; nothing changes.
        """
        # The usual case first: two comparisons, both false for NaN.
        usual = type(x) is float and self._least <= x <= 1.0
        self._one[0] = x if usual else number(self._named[0], x, self._least, self._truth)
        self._run(*self._step)

    def update_many(self, xs: Any) -> Floats:
        """Take in (m,) numbers in order; return (m, ...) what it says after each, to the last bit as one by one.

        Of a martingale that is ln S, of a bound its lower and upper end, of a band the total and the radius.

        Raises
        ------
        TypeError, ValueError
            `xs` is not one-dimensional, or not all are numbers from 0 to 1 (-1 to 1); nothing changes.
        """
        return self._many(numbers(self._named[1], xs, self._least, self._truth))
