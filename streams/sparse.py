"""Sparse tables of scipy: their checks, and iteration over rows that stay sparse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy's, known without importing scipy."""
    return hasattr(X, "tocsr")


def freeze(X: Any) -> None:
    """Make the arrays of a csr_array read-only."""
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)


def checked(X: Any) -> Any:
    """Return a float64 copy of X as csr_array (n, d): columns in order, nothing twice, no zeros kept.

    Raises ValueError or TypeError for another shape or type; whether the numbers are finite is not checked.
    """
    from scipy.sparse import csr_array

    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must hold at least one example and one feature (examples, features), got shape {X.shape}")
    if X.dtype.kind not in "iuf":
        raise TypeError(f"X must hold numbers, got {X.dtype}: X.astype(float) makes booleans 0 and 1, if that is meant")
    clean = csr_array(X, dtype=np.float64, copy=True)
    clean.sum_duplicates()  # sorts the columns of each row too
    clean.eliminate_zeros()
    return clean


def not_finite(X: Any) -> NDArray[np.int64]:
    """Return row and column (m, 2) of each value of a csr_array that is not finite."""
    bad = np.flatnonzero(~np.isfinite(X.data))
    return np.stack([np.searchsorted(X.indptr, bad, side="right") - 1, X.indices[bad]], axis=1)


def stacked(first: Any, then: Any) -> Any:
    """Return the rows of one table above those of another, in an array of the first one's kind."""
    if not is_sparse(first):
        return np.concatenate([first, then.toarray() if is_sparse(then) else then])
    from scipy.sparse import csr_array, vstack

    return vstack([first, csr_array(then)], format="csr")


def rows(X: Any) -> Iterator[Any]:
    """Yield the rows of a csr_array as read-only csr_array (1, d): made anew, a third faster than slices of it."""
    make, shape = type(X), (1, X.shape[1])
    ends = X.indptr.tolist()
    for start, end in pairwise(ends):
        bounds = np.array([0, end - start], X.indptr.dtype)
        row = make((X.data[start:end], X.indices[start:end], bounds), shape=shape)
        freeze(row)
        yield row


def scaled(X: Any, mean: Floats, deviation: Floats) -> Any:
    """Return (X - mean) / deviation, a csr_array; refuse a mean other than 0."""
    shifted = np.flatnonzero(mean)
    if shifted.size:
        raise ValueError(
            f"mean must be 0 for sparse objects, which would not stay sparse, got {mean[shifted[0]]} for feature "
            f"{int(shifted[0])}: Scaling(mean=np.zeros(d), deviation=...), or pass X.toarray()"
        )
    divided = X.tocsr().copy()
    divided.data = divided.data / deviation[divided.indices]
    return divided
