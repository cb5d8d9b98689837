"""Checks of the input of monitors: p-values, deviations, forecasts, and the true labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.parameters import TRUTH, array_of, is_number
from venn.prediction import Floats, Integers

SUM = 1e-9  # how far from 1 a distribution may sum


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
    p = np.ascontiguousarray(values, np.float64)
    # Written so that NaN fails.
    wrong = ~((p >= 0.0) & (p <= 1.0))
    if wrong.any():
        raise ValueError(f"{name} must lie in [0, 1], got {p[wrong][0]} in row {int(np.argwhere(wrong)[0][0])}")
    if p.ndim == 2:
        short = np.abs(p.sum(axis=1) - 1.0) > SUM
        if short.any():
            row = int(short.argmax())
            raise ValueError(f"{name} must have rows of sum 1, got {p[row].sum()} in row {row}")
    return p


def forecasts(proba: Any, truth: Any, names: tuple[str, str] = ("proba", "truth")) -> tuple[Floats, Integers]:
    """Return both arrays, or say what is wrong with them."""
    p = probabilities(proba, names[0])
    y = array_of(truth)
    wanted = "0 or 1, False or True" if p.ndim == 1 else f"class codes from 0 to {p.shape[1] - 1}"
    if y.dtype.kind not in "iub" or np.ma.isMaskedArray(truth):
        raise TypeError(f"{names[1]} must be {wanted}, got {y.dtype}: {truth!r}")
    if y.shape != (len(p),):
        raise ValueError(f"{names[1]} must have shape ({len(p)},) as {names[0]} has rows, got {y.shape}")
    wrong = (y < 0) | (y > (1 if p.ndim == 1 else p.shape[1] - 1))
    if wrong.any():
        raise ValueError(f"{names[1]} must be {wanted}, got {y[wrong][0]} at {int(wrong.argmax())}")
    return p, y.astype(np.int64)


def p_value_rows(name: str, values: Any) -> Floats:
    """Return (n, c) p-values, or say what is wrong with them."""
    array = array_of(values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an (n, c) array of numbers, got {values!r}")
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(f"{name} must have shape (n, c) with c at least 2, got {array.shape}")
    # Contiguous rows: numpy's sum of a row depends on that, and parts must give the rows of the whole.
    clean: Floats = np.ascontiguousarray(array, np.float64)
    # Written so that NaN fails.
    if not ((clean >= 0) & (clean <= 1)).all():
        i, k = np.argwhere(~((clean >= 0) & (clean <= 1)))[0].tolist()
        raise ValueError(f"{name} must lie in [0, 1], got {clean[i, k]} of label {k} at step {i}")
    return clean


def class_codes(name: str, values: Any, n: int, c: int) -> Integers:
    """Return (n,) class codes from 0 to c - 1, or say what is wrong with them."""
    array = array_of(values)
    if array.dtype.kind not in "iu" and not (array.size == 0 and array.dtype.kind == "f"):
        raise TypeError(f"{name} must be class codes, integers from 0 to {c - 1}, got {values!r}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), a class code for each step, got {array.shape}")
    wrong = (array < 0) | (array >= c)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name} must be class codes from 0 to {c - 1}, got {array[i]} at step {i}")
    return array.astype(np.int64)
