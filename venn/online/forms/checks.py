"""What the numbers of a saved state must be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venn.prediction import Floats


def checked_names(what: str, found: dict[str, Any], wanted: Iterable[str]) -> None:
    """Refuse a dict with other keys."""
    if found.keys() != set(wanted):
        raise ValueError(f"{what} must be {sorted(wanted)}, got {sorted(found)}")


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return an integer of a state, or say what it must be."""
    if type(value) is not int or value < least or (most is not None and value > most):
        upto = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be an integer >= {least}{upto}, got {value!r}")
    return value


def truth(name: str, value: Any) -> bool:
    """Return a truth value of a state, or say that it is none."""
    if type(value) is not bool:
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def real(name: str, value: Any, least: float = -np.inf) -> float:
    """Return a finite number of a state, or say what it must be."""
    if type(value) is not float or not least <= value < np.inf or value == -np.inf:
        raise ValueError(f"{name} must be a finite number{f' >= {least:g}' if least > -np.inf else ''}, got {value!r}")
    return value


def numbers(name: str, value: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return an array of a state of this shape and type, or say what it must be."""
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != np.dtype(dtype):
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} of shape {shape}, got {found}")
    return value


def finite(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return an array of finite numbers."""
    array: Floats = numbers(name, value, shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def within(name: str, value: Any, shape: tuple[int, ...], least: int, below: int, dtype: Any = np.int64) -> Any:
    """Return an array of integers from `least` on, below `below`."""
    array = numbers(name, value, shape, dtype)
    if array.size and not (array.min() >= least and array.max() < below):
        raise ValueError(f"{name} must be integers from {least} to {below - 1}, got {array.min()} to {array.max()}")
    return array


def rows_of(name: str, value: Any) -> int:
    """Return the length of an array, or say that it is none."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        raise ValueError(f"{name} must be an array, got {value!r}")
    return len(value)
