"""What is saved of machines, and the checks on it before compiled code, which checks nothing, reads it.

A machine is made anew by its constructor, makes room as usual, and takes over the saved numbers. What follows from
those to the last bit is not saved, nor is spare room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from venn.machines.base import BaseMachine
from venn.parameters import has_methods
from venn.saved import Saved, held_array, held_codes, held_finite


class Part(NamedTuple):
    """An array that a machine keeps: the filled corner of a larger one."""

    path: str
    shape: tuple[int | str, ...]  # numbers, and names of sizes
    below: str | None = None  # integers from 0 to below this size; None for finite numbers
    dtype: Any = np.float64  # None for numbers that may be infinite

    def lengths(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape in numbers."""
        return tuple(sizes[size] if isinstance(size, str) else size for size in self.shape)


class KeptMachine(BaseMachine, Saved):
    """Base of machines that can be saved."""

    #: The arrays that make up what was learned.
    parts: ClassVar[tuple[Part, ...]] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor takes, and what chose it."""
        return super().parameters | {"tuning": self.tuning}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a machine that has learned nothing."""
        given = dict(parameters)
        tuning = given.pop("tuning", None)
        if tuning is not None and not has_methods(tuning, "met"):
            raise ValueError(f"tuning must be what tune found, got {tuning!r}")
        machine = super().made_of(given)
        machine.tuning = tuning
        return machine

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was learned from a `state`; a subclass takes it over, and no earlier answer holds then."""
        super().restore(state)
        self.forget()

    def fresh(self) -> Self:
        """Return a machine with the same parameters that has learned nothing."""
        return self.made_of(self.parameters)

    def _check_arrays(self, state: dict[str, Any], sizes: Mapping[str, int]) -> None:
        check_arrays(self.parts, state, sizes)


def kept_arrays(thing: Any, parts: Iterable[Part], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the filled corners of the arrays that a machine, or a part of one, keeps."""
    corners = {part.path: tuple(slice(0, length) for length in part.lengths(sizes)) for part in parts}
    return {path: attrgetter(path)(thing)[corner] for path, corner in corners.items()}


def check_arrays(parts: Iterable[Part], state: dict[str, Any], sizes: Mapping[str, int]) -> None:
    """Refuse arrays of other shapes and types than the parts', indices out of range, and what is not finite."""
    for part in parts:
        shape = part.lengths(sizes)
        if part.below is not None:
            held_codes(part.path, state[part.path], shape, 0, sizes[part.below], part.dtype)
        elif part.dtype is np.float64:
            held_finite(part.path, state[part.path], shape)
        else:
            held_array(part.path, state[part.path], shape, part.dtype)


def put_arrays(thing: Any, parts: Iterable[Part], state: dict[str, Any]) -> None:
    """Fill the corners of the arrays, for which there must be room."""
    for part in parts:
        array = state[part.path]
        attrgetter(part.path)(thing)[tuple(slice(0, length) for length in array.shape)] = array
