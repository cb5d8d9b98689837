"""Checks of the examples that a calibrator or a map is fitted to: scores, labels, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.prediction import Floats, Integers


def finite_array(name: str, values: Any, dimensions: int = 1) -> Floats:
    """Return finite numbers as a new contiguous float64 array, -0.0 as 0.0, or say what is wrong with them."""
    shape = "a sequence" if dimensions == 1 else "rows"
    if np.ma.isMaskedArray(values):
        raise TypeError(f"{name} must have no masked values, got {values!r}")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu" and array.size > 0:
            raise TypeError
        clean = np.array(array, np.float64, order="C") + 0.0
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {shape} of numbers, got {values!r}") from None
    if clean.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimension{'s'[: dimensions > 1]}, got shape {clean.shape}")
    finite = np.isfinite(clean)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {clean[where]} at {where[0] if dimensions == 1 else where}")
    return clean


def binary_labels(name: str, labels: Any, n: int) -> Integers:
    """Return (n,) labels 0 and 1, or say what is wrong with them."""
    return _labels(name, labels, (n, 2), "biuf", "score", "0, 1, False or True")


def _labels(name: str, labels: Any, shape: tuple[int, int], kinds: str, each: str, wanted: str) -> Integers:
    """Return n labels, whole numbers below c of certain kinds of arrays, or say what is wrong with them."""
    n, c = shape
    if np.ma.isMaskedArray(labels):
        raise TypeError(f"{name} must have no masked values, got {labels!r}")
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(f"{name} must be {wanted}, got {labels!r}") from None
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"{name} must have shape ({n},), one label for each {each}, got {array.shape}")
    with np.errstate(invalid="ignore"):  # NaN
        codes = array.astype(np.int64) if array.dtype.kind in kinds else np.full(n, -1)
    wrong = (codes != array) | (codes < 0) | (codes >= c)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name} must be {wanted}, got {array[i]!r} at {i}")
    return codes


def weighed(weights: Any, n: int) -> Floats:
    """Return (n,) weights, 1 each by default, or say what is wrong with them."""
    clean = np.ones(n) if weights is None else finite_array("weights", weights)
    if len(clean) != n:
        raise ValueError(f"weights must have shape ({n},), one weight for each score, got {clean.shape}")
    if (clean < 0).any():
        i = int((clean < 0).argmax())
        raise ValueError(f"weights must be >= 0, got {clean[i]} at {i}")
    with np.errstate(over="ignore"):
        total = clean.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"weights must have a finite sum > 0, got {total} of {n} examples")
    return clean


def binary_examples(scores: Any, labels: Any, weights: Any) -> tuple[Floats, Integers, Floats]:
    """Return (n,) scores, labels and weights of the examples with weight > 0."""
    f = finite_array("scores", scores)
    y = binary_labels("labels", labels, len(f))
    w = weighed(weights, len(f))
    present = w > 0
    return f[present], y[present], w[present]


def class_examples(scores: Any, labels: Any, weights: Any) -> tuple[Floats, Integers, Floats]:
    """Return (n, c) scores, (n,) labels and weights of the examples with weight > 0."""
    f = finite_array("scores", scores, dimensions=2)
    n, c = f.shape
    if c < 2:
        raise ValueError(f"scores must have at least 2 columns, one for each class, got {c}")
    y = _labels("labels", labels, (n, c), "iu", "row of scores", f"integers from 0 to {c - 1}, positions of columns")
    w = weighed(weights, n)
    present = w > 0
    return f[present], y[present], w[present]


def class_scores(scores: Any, c: int) -> Floats:
    """Return (n, c) new scores, or say what is wrong with them."""
    f = finite_array("scores", scores, dimensions=2)
    if f.shape[1] != c:
        raise ValueError(f"scores must have {c} columns, one for each class, got {f.shape[1]}")
    return f
