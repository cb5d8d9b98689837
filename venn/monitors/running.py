"""The base of objects that are updated step by step: their state and their copies."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from venn.monitors.sums import rounded, units
from venn.parameters import LARGEST
from venn.prediction import Floats
from venn.saved import Saved, component, held_finite, held_int, own, state

State = dict[str, Any]
Kind = TypeVar("Kind")
MOST = sys.float_info.max


class Running(Saved, ABC):
    """Base of objects that learn step by step: a repr that can be typed, fresh copies, and a state of plain data.

    A subclass keeps its parameters as attributes (see `Saved`) and returns its learned state in `_held`. The first
    `unnamed` parameters are objects, such as patterns, which `repr` shows first and a state does not hold.
    """

    unnamed: ClassVar[int] = 0

    @abstractmethod
    def _held(self) -> State:
        """Return the learned state, as plain JSON data."""

    @abstractmethod
    def take_over(self, held: State) -> None:
        """Continue from the result of `_held`; if it has not its form, raise a ValueError and change nothing."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor takes, patterns as fresh ones."""
        return {name: v.fresh() if isinstance(v, Running) else v for name, v in super().parameters.items()}

    def _plain(self) -> State:
        """Return the parameters as plain JSON data."""
        named = list(super().parameters.items())[self.unnamed :]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in named}

    def __repr__(self) -> str:
        try:
            parameters = self.parameters
        except AttributeError:  # as for `Saved`
            return super().__repr__()
        each = [f"{'' if i < self.unnamed else f'{name}='}{v!r}" for i, (name, v) in enumerate(parameters.items())]
        return f"{type(self).__name__}({', '.join(each)})"

    def fresh(self) -> Self:
        """Return one with the same parameters that has seen nothing."""
        return self.made_of(self.parameters)

    @property
    def state(self) -> State:
        """The learned state, as plain JSON data; `restore` takes it back, to the last bit."""
        return {"kind": type(self).__name__, "parameters": self._plain(), **self._held()}

    def restore(self, state: State) -> None:
        """Continue from a `state` of an object with the same parameters.

        Raises
        ------
        ValueError
            `state` is not as described, or damaged; nothing changes.
        """
        own = self.state
        checked_state("state", state, own)
        if any(state[key] != own[key] for key in ("kind", "parameters")):
            raise ValueError(
                f"state must be that of {self!r}, got one of {state['kind']!r} with {state['parameters']!r}"
            )
        twin = self.fresh()
        twin.take_over(state)
        held: Any = twin.__getstate__()  # without its turn
        vars(self).update(held)


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


# ---------------------------------------------------------------------------- states


def checked_state(name: str, state: Any, wanted: State) -> None:
    """Refuse anything but a dict with the keys of `wanted`."""
    if not isinstance(state, dict) or state.keys() != wanted.keys():
        found = sorted(map(str, state)) if isinstance(state, dict) else state
        raise ValueError(f"{name} must hold {sorted(wanted)}, got {found!r}")


def held_count(name: str, value: Any) -> int:
    """Return a number of a state that counts something, or say what is wrong with it."""
    return held_int(f"state[{name!r}]", value)


def held_numbers(name: str, values: Any, size: int) -> list[float]:
    """Return the finite numbers of a state, or say what is wrong with them."""
    right = isinstance(values, list) and len(values) == size
    if not right or any(type(v) not in (int, float) or not abs(v) <= MOST for v in values):
        raise ValueError(f"state[{name!r}] must hold {size} finite numbers, got {values!r}")
    return values


def held_as(kind: type[Kind], name: str, value: Any) -> Kind:
    """Return a dataclass from its fields in a state, or say what is wrong with them."""
    try:
        found = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"state[{name!r}] must be a {kind.__name__}, got {value!r}: {error}") from None
    if asdict(found) != value:  # type: ignore[call-overload]
        raise ValueError(f"state[{name!r}] must hold the fields of a {kind.__name__} and no others, got {value!r}")
    return found


def held_sum(name: str, values: Any) -> int:
    """Return a sum of a state, given as terms that add up to it, in units; or say what is wrong with it."""
    size = len(values) if isinstance(values, list) else 0
    exact = sum(units(float(value)) for value in held_numbers(name, values, size))
    if abs(exact) > units(MOST):
        raise ValueError(f"state[{name!r}] must hold sums of finite numbers, got {rounded(exact // 2**64)} * 2**64")
    return exact
