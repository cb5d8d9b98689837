"""Checks of the input of monitors: p-values, deviations, forecasts, and the true labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.parameters import TRUTH, array_of, is_number
from venn.prediction import SUM, Floats, Integers, sum_may_miss


def number(name: str, value: Any, least: float = 0.0, truths: bool = False) -> float:
    """Return a number in [least, 1], or say what is wrong with it; with `truths` True and False are numbers."""
    if isinstance(value, float) and least <= value <= 1.0:
        return value
    if isinstance(value, TRUTH):
        if truths:
            return float(value)
    elif is_number(value):
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


def probabilities(proba: Any, name: str = "proba") -> Floats:
    """Return (n,) probabilities or (n, c) distributions, or say what is wrong with them."""
    values = np.ma.filled(proba, np.nan) if np.ma.isMaskedArray(proba) else array_of(proba)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers, got {values.dtype}: {proba!r}")
    if values.ndim not in (1, 2) or not len(values) or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(f"{name} must have shape (n,) or (n, c) with n >= 1 and c >= 2, got {values.shape}")
    p = _within_one(name, values)
    if p.ndim == 2:
        sums = p.sum(axis=1)
        off = np.abs(sums - 1.0)
        if off.max() > sum_may_miss(values.dtype, p.shape[1]):
            row = int(off.argmax())
            raise ValueError(f"{name} must have rows of sum 1, got {sums[row]} in row {row}")
        if off.max() > SUM:
            p = p / sums[:, None]
    return p


def forecasts(proba: Any, truth: Any, names: tuple[str, str] = ("proba", "truth")) -> tuple[Floats, Integers]:
    """Return both arrays, or say what is wrong with them."""
    p = probabilities(proba, names[0])
    if p.ndim == 1:
        return p, class_codes(names[1], truth, len(p), 2, "0 or 1, False or True", "iub")
    return p, class_codes(names[1], truth, len(p), p.shape[1], kinds="iub")


def p_value_rows(name: str, values: Any) -> Floats:
    """Return (n, c) p-values, or say what is wrong with them."""
    array = array_of(values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an (n, c) array of numbers, got {values!r}")
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(f"{name} must have shape (n, c) with c at least 2, got {array.shape}")
    return _within_one(name, array)


def _within_one(name: str, values: Any) -> Floats:
    """Return numbers in [0, 1], or say which one is not."""
    # Contiguous rows: numpy's sum of a row depends on that, and parts must give the rows of the whole.
    clean: Floats = np.ascontiguousarray(values, np.float64)
    wrong = np.argwhere(~((clean >= 0.0) & (clean <= 1.0)))  # NaN is wrong
    if len(wrong):
        row, *label = wrong[0].tolist()
        of = f" of label {label[0]}" if label else ""
        raise ValueError(f"{name} must lie in [0, 1], got {clean[row, *label]}{of} in row {row}")
    return clean


def class_codes(name: str, values: Any, n: int, c: int, wanted: str = "", kinds: str = "iu") -> Integers:
    """Return (n,) class codes from 0 to c - 1, of dtypes of these kinds, or say what is wrong with them."""
    array = array_of(values)
    wanted = wanted or f"class codes from 0 to {c - 1}"
    integers = array.dtype.kind in kinds and not np.ma.isMaskedArray(values)
    if not integers and not (array.size == 0 and array.dtype.kind == "f"):
        raise TypeError(f"{name} must be {wanted}, got {array.dtype}: {values!r}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each row, got {array.shape}")
    wrong = (array < 0) | (array >= c)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name} must be {wanted}, got {array[i]} in row {i}")
    return array.astype(np.int64)
