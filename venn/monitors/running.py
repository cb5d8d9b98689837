"""The base of what a compiled loop updates step by step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

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

    @property
    def n(self) -> int:
        """Number of steps."""
        return int(self._memory[0])

    def _many(self, clean: Floats) -> Floats:
        """Process (m,) numbers; return what the loop writes after each."""
        out = np.empty((clean.shape[-1], *self._width))
        self._run(self._constants, self._memory, clean, out)
        return out
