"""What objects that are brought up to date one number at a time share: their state, and checks of the numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from venn.prediction import Floats

REAL = (int, float, np.integer, np.floating)


class Running(ABC):
    """Numbers in, a few sums kept: state, pickle, repr. `_memory` holds what `_names` names, the step first."""

    _names: ClassVar[tuple[str, ...]]
    _memory: Floats

    @property
    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Parameters of the constructor, by name."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """One sentence: what is a theorem, and when."""

    def _tables(self) -> dict[str, Floats]:
        """Return the arrays that are state besides the memory, by name."""
        return {}

    @property
    def n(self) -> int:
        """Number of updates."""
        return int(self._memory[0])

    def fresh(self) -> Self:
        """Return one with the same parameters that has seen nothing."""
        return type(self)(**self._parameters)

    @property
    def state(self) -> dict[str, Any]:
        """All that later answers depend on, as plain data (JSON); see `restore`."""
        memory = dict(zip(self._names, self._memory.tolist(), strict=True)) | {"n": self.n}
        tables = {name: table.tolist() for name, table in self._tables().items()}
        return {"kind": type(self).__name__, "parameters": self._parameters, **memory, **tables}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`.

        Raises
        ------
        TypeError, ValueError
            It is not the state of an object of this class with these parameters; nothing is changed.
        """
        own = self.state
        if not isinstance(state, dict):
            raise TypeError(f"state must be a dict, got {state!r}")
        if state.keys() != own.keys():
            raise ValueError(f"state must have the keys {', '.join(own)}, got {', '.join(map(str, state))}")
        for key in ("kind", "parameters"):
            if state[key] != own[key]:
                raise ValueError(f"state must have {key} {own[key]!r}, got {state[key]!r}")
        values = [_finite(name, state[name], ()) for name in self._names]
        if values[0] < 0 or values[0] % 1:
            raise ValueError(f"n in the state must be a whole number >= 0, got {state['n']!r}")
        tables = {name: _finite(name, state[name], table.shape) for name, table in self._tables().items()}
        self._memory[...] = values
        for name, table in self._tables().items():
            table[...] = tables[name]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._parameters.items())})"


def probability(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1, or say what is wrong with it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, REAL):
        raise TypeError(f"{name} must be a number in (0, 1), got {value!r}")
    if not 0 < value < 1:
        raise ValueError(f"{name} must be a number in (0, 1), got {value!r}")
    return float(value)


def number(name: str, value: Any, least: float = 0.0, truths: bool = False) -> float:
    """Return a number in [least, 1], or say what is wrong with it; `truths`: True and False are numbers."""
    if isinstance(value, float) and least <= value <= 1.0:
        return value
    if isinstance(value, bool | np.bool_):
        if truths:
            return float(value)
    elif isinstance(value, REAL):
        if least <= value <= 1:
            return float(value)
        raise ValueError(f"{name} must lie in [{least:g}, 1], got {value!r}")
    raise TypeError(f"{name} must be a number in [{least:g}, 1], got {value!r}")


def numbers(name: str, values: Any, least: float = 0.0, truths: bool = False) -> Floats:
    """Return (n,) numbers in [least, 1], or say what is wrong with them."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a 1-D array of numbers, got rows of different length") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array of numbers, got shape {array.shape}")
    if len(array) and array.dtype.kind not in ("biuf" if truths else "iuf"):
        raise TypeError(f"{name} must be a 1-D array of numbers, got dtype {array.dtype}")
    clean = np.ascontiguousarray(array, np.float64)
    bad = np.flatnonzero(~((clean >= least) & (clean <= 1)))  # NaN is bad
    if bad.size:
        raise ValueError(f"{name} must lie in [{least:g}, 1], got {clean[bad[0]].item()!r} at position {bad[0]}")
    return clean


def _finite(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return an array of finite numbers of a shape, or say what is wrong with it."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} in the state must have shape {shape}, got rows of different length") from None
    if array.dtype.kind not in "if" or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} in the state must be finite numbers of shape {shape}, got {values!r}")
    return array.astype(np.float64)
