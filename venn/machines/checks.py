"""Checks of what a machine is given: an object, a label, a place, weights; all say what is wrong."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.ranks import all_finite
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, rows_of
from venn.parameters import REAL, TRUTH, positive
from venn.prediction import Bools, Floats, Label

ENCODE = "encode text first, or give a fitted pipeline that does so: FrozenScorer(pipe) takes rows of its table"


def code_of(y: Any, codes: dict[Label, int]) -> int:
    """Return the class code of label `y`, or say what it must be."""
    try:
        return codes[y]
    except (KeyError, TypeError):
        raise ValueError(f"y must be one of the classes {list(codes)!r}, got {y!r}") from None


def check_code(j: Any, c: int) -> None:
    """Raise when `j` is not a class code."""
    if isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < c:
        raise ValueError(f"j must be a class code from 0 to {c - 1}, got {j!r}")


def checked_place(i: Any, n: int) -> int:
    """Return the place of one of `n` examples in order of arrival, or say what is wrong with it."""
    requirement = f"i must be an integer from 0 to n - 1, of n = {n} examples, got {i!r}"
    if isinstance(i, bool | np.bool_) or not isinstance(i, int | np.integer):
        raise TypeError(requirement)
    if not 0 <= i < n:
        raise ValueError(requirement)
    return int(i)


def checked_weight(weight: Any) -> float:
    """Return the weight of an example, or say what is wrong with it."""
    return positive("weight", weight, zero=True)


def checked_class_weights(name: str, weights: Any, classes: Sequence[Label]) -> Floats:
    """Return (c,) weights of the classes, 1 each by default, or say what is wrong with them."""
    c = len(classes)
    if weights is None:
        return np.ones(c)
    wanted = f"{name} must be {c} finite numbers > 0, one for each class in order"
    try:
        clean = np.array([checked_weight(weight) for weight in weights])
    except (TypeError, ValueError):
        raise TypeError(f"{wanted}, got {weights!r}") from None
    if clean.shape != (c,) or not (clean > 0).all():
        raise ValueError(f"{wanted}, got {weights!r}: leave out the examples of a class that shall weigh nothing")
    clean.setflags(write=False)
    return clean


def check_names(required: str, own: Iterable[Any], names: tuple[str, ...]) -> None:
    """Raise unless columns or features have these names, in this order; `required` begins the error.

    Examples
    --------
    >>> check_names("X must have the columns", ["age", "weight"], ("weight", "age"))
    Traceback (most recent call last):
    ValueError: X must have the columns ['weight', 'age'] in this order, got ['age', 'weight']
    """
    found = list(own)
    if tuple(found) != names:
        raise ValueError(f"{required} {list(names)!r} in this order, got {found!r}")


def check_columns(X: Any, names: tuple[str, ...]) -> None:
    """Raise if X is a table with other columns than `names`, in their order; arrays go by position."""
    if is_table(X):
        check_names("X must have the columns", X.columns, names)


def is_table(X: Any) -> bool:
    """Whether X has columns with names, as a data frame does."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns")


def check_row(x: Any, names: tuple[str, ...]) -> None:
    """Raise if x carries other names than these, as a row of a table or a named tuple does; others go by position."""
    if type(x) is np.ndarray:
        return
    fields, index = getattr(x, "_fields", None), getattr(x, "index", None)  # index is a method of lists
    own: list[Any] | None = None
    if isinstance(fields, tuple):
        # In a named tuple a name that is no identifier has given way to its place.
        if fields != fields_of(names) and any(field != f"_{j}" for j, field in enumerate(fields)):
            own = list(fields)
    elif index is not None and not callable(index) and any(isinstance(name, str) for name in index):
        own = list(index)
    if own is not None:
        check_names("x must have the features", own, names)


@cache
def fields_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of a named tuple, as a loop over the rows of a table gives, whose columns have these names."""
    row: Any = namedtuple("row", names, rename=True)  # type: ignore[misc]
    return row._fields


def clean_object(x: Any, features: int | None, missing: bool = False) -> Floats:
    """Return `x` as a finite (d,) float64 array, or say what is wrong with it; NaN may stand in it if `missing`."""
    # A copy; -0.0 and 0.0 become one value, because equal objects must have equal bytes.
    clean = x + 0.0 if type(x) is np.ndarray and x.dtype.char == "d" else _converted(x)
    if clean.ndim != 1 or clean.size == 0:
        raise ValueError(f"x must have one dimension and at least one feature, got shape {clean.shape}")
    if features is not None and clean.size != features:
        raise ValueError(f"x must have {features} features as the first object had, got {clean.size}")
    if not all_finite(clean):
        where = np.flatnonzero(~known(clean, missing))
        if len(where):
            raise ValueError(f"x must be finite, got {clean[where[0]]} at feature {where[0]}")
        clean[np.isnan(clean)] = np.nan  # those of other bits too
    return clean


def in_form(x: Any, features: int | None, sparse: bool) -> Floats | SparseRows:
    """Return `x` clean, as a sparse row or as an array, whatever it is, or say what is wrong with it."""
    if is_sparse(x):
        row = clean_sparse("x", x, features)
        return row if sparse else row.toarray()[0]
    dense = clean_object(x, features)
    return rows_of(dense[None]) if sparse else dense


def known(values: Floats, missing: bool) -> Bools:
    """Return which values may stand in an object: finite ones, and NaN if `missing`."""
    fine: Bools = ~np.isinf(values) if missing else np.isfinite(values)
    return fine


def _converted(x: Any) -> Floats:
    """Return a copy of `x` as float64, of any shape, or say what is wrong with it."""
    if is_table(x):
        raise TypeError(
            f"x must be one object, a sequence of numbers, got a {type(x).__name__}: a loop over "
            "streams.from_arrays(X, y) gives its rows, and predict_many, where a predictor has it, takes all at once"
        )
    if is_sparse(x):
        raise TypeError(
            f"x must be dense here, got a sparse {type(x).__name__}: pass x.toarray().ravel(), or use a machine with a "
            "kernel, such as LeastSquaresSVM"
        )
    if np.ma.isMaskedArray(x):
        raise TypeError(f"x must have no masked values, got {x!r}")
    try:
        clean = np.asarray(x)
        if clean.dtype.kind not in "fiub" and not all_real(clean):
            raise TypeError
        converted: Floats = clean.astype(np.float64) + 0.0
    except (TypeError, ValueError):
        raise TypeError(f"x must be a sequence of numbers, got {_strange(x)}") from None
    return converted


def _strange(x: Any) -> str:
    """Return what is no sequence of numbers, and what to give instead."""
    if isinstance(x, str):
        return f"{x!r}: a loop over a data frame gives names of columns, one over streams.from_arrays(X, y) gives rows"
    if isinstance(x, Mapping):
        return f"the mapping {x!r}: give the values alone, list(x.values()), always in the same order"
    if isinstance(x, Iterable) and not (isinstance(x, np.ndarray) and not x.ndim):
        for j, value in enumerate(x):
            if isinstance(value, str):
                return f"{value!r} at feature {j}: {ENCODE}"
    return repr(x)


def all_real(cells: NDArray[Any]) -> bool:
    """Whether an array of objects holds numbers and truth values only, as a table does that has columns of both."""
    if cells.dtype.kind != "O" or not all(isinstance(value, (*REAL, *TRUTH)) for value in cells.flat):
        return False
    try:
        cells.astype(np.float64)
    except OverflowError:  # an integer that no float holds
        return False
    return True


def strange_rows(X: Any) -> str:
    """Return what is no row of numbers among the rows X, and what to give instead if it is text."""
    try:
        cells = np.asarray(X, object)  # the cells as they were: numpy turns numbers beside text into text
    except ValueError:
        cells = np.empty(0, object)
    for place, value in np.ndenumerate(cells) if cells.ndim == 2 else ():
        if not isinstance(value, (*REAL, *TRUTH)):
            i, j = place
            return f"{value!r} at row {i}, feature {j}" + (f": {ENCODE}" if isinstance(value, str) else "")
    return short(X)
