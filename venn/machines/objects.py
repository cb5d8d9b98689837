"""Objects as users give them, made clean: one, many, and the question that is asked about one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from reprlib import repr as short
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venn._compiled.ranks import all_finite
from venn.machines.machine import check_columns, check_index, fields_in, is_table, names_in
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, rows_of
from venn.machines.tables import TableRows, by_name, rows_by_name, with_text
from venn.parameters import REAL, TRUTH
from venn.prediction import Bools, Floats

ObjectRows: TypeAlias = Floats | SparseRows | TableRows  #: n objects: rows (n, d)


def clean_rows(X: Any, features: int | None, names: tuple[str, ...] | None = None, missing: bool = False) -> ObjectRows:
    """Return `X` as finite (n, d) float64 rows, without a copy where possible, or say what is wrong with it.

    NaN may stand in them if `missing`, and with `names` also text: such rows stay as they are. Columns of an array go
    by position; a sparse one stays sparse. A table must have the columns `names`, in their order; without names it is
    refused.
    """
    if isinstance(X, TableRows):
        if missing and X.names == names:
            return X
        X = X.cells
    if is_sparse(X):
        return clean_sparse("X", X, features)
    if names is not None:
        check_columns(X, names)
        X = rows_by_name(X, names)
    elif is_table(X):
        raise TypeError(
            f"X must be an array, for no column names are known here to compare with, got a {type(X).__name__}: "
            "X.to_numpy() goes by position"
        )
    if np.ma.isMaskedArray(X):
        raise TypeError(f"X must have no masked values, got {X!r}")
    try:
        rows = np.asarray(X)
        if rows.dtype.kind not in "fiub" and not all_real(rows):
            raise TypeError
    except (TypeError, ValueError):
        cells = X if isinstance(X, list | tuple) else np.asarray(X, object)
        table = None if names is None or not missing else with_text("X", cells, names)
        if table is not None:
            return table
        raise TypeError(f"X must be rows of numbers (n, d), got {strange_rows(X)}") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"X must be two-dimensional (n, d), got shape {rows.shape}: one object x is X = [x]")
    if features is not None and rows.shape[1] != features:
        raise ValueError(f"X must have {features} features as the first object had, got {rows.shape[1]}")
    clean: Floats = np.ascontiguousarray(rows, np.float64)
    if not np.isfinite(clean).all():
        where = np.argwhere(~known(clean, missing))
        if len(where):
            i, f = where[0].tolist()
            raise ValueError(f"X must be finite, got {clean[i, f]} at row {i}, feature {f}")
        clean = np.where(np.isnan(clean), np.nan, clean)  # of the same bits in every row
    return clean


class Query:
    """One object that a panel asks its predictors about, or teaches them: it is cleaned once, however many read it.

    Attributes
    ----------
    x : object
        What the user gave, for those who are not ours.
    key : object
        What tells it from other objects; None if nothing does.
    said : dict
        What was said of it since the last example, by the predictor's identity; its clean form by what a machine is.
    answered : object
        A mark that a panel leaves when all its predictors have answered.
    """

    __slots__ = ("_row", "_taken", "answered", "key", "said", "x")

    def __init__(self, x: Any, key: Any = None) -> None:
        self.x, self.key = x, key
        self.said: dict[Any, Any] = {}
        self.answered: Any = None
        self._row: ObjectRows
        self._taken: tuple[Any, ...] | None = None  # how the row was made: names, and whether NaN may stand in it

    def __reduce__(self) -> Any:
        return Query, (None,)  # a copy of a predictor that keeps a question has been asked nothing

    def row(self, features: int | None, names: tuple[str, ...] | None, missing: bool) -> ObjectRows:
        """Return it as a row (1, d), or say what is wrong with it."""
        if self._taken != (names, missing) or self._row.shape[1] != features is not None:
            self._taken = None
            self._row = clean_row(self.x, features, names, missing)
            self._taken = names, missing
        return self._row


def object_of(x: Any) -> Any:
    """Return the object that a question is about, or the object itself."""
    return x.x if type(x) is Query else x


def clean_row(x: Any, features: int | None, names: tuple[str, ...] | None = None, missing: bool = False) -> ObjectRows:
    """Return one object as a row (1, d), or say what is wrong with it; a sparse one stays sparse.

    NaN may stand in it if `missing`, and with `names` also text. If it carries names, as a dict, a row of a table or a
    named tuple does, they must be `names`.
    """
    if type(x) is Query:
        return x.row(features, names, missing)
    if type(x) is not np.ndarray and is_sparse(x):
        return clean_sparse("x", x, features)
    if isinstance(x, TableRows):
        if missing and x.names == names:
            return x
        x = x.cells[0]
    if names is None:
        return clean_object(x, features, missing)[None]
    x = by_name(x, names)
    try:
        return clean_object(x, features, missing)[None]
    except TypeError:
        table = with_text("x", [x], names) if missing else None
        if table is None:
            raise
        return table


FILL = "put a fixed number in the place of each gap, as streams.Numeric(fill=0) does for a table"
ENCODE = "encode text first, or give a fitted pipeline that does so: FrozenScorer(pipe) takes rows of its table"


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
            value, j = clean[where[0]], where[0]
            raise ValueError(f"x must be finite, got {value} at feature {j}{f': {FILL}' if np.isnan(value) else ''}")
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
    return ~np.isinf(values) if missing else np.isfinite(values)


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
    names = None if isinstance(x, Mapping) else names_in(x)
    if names is not None:
        check_index(x)
        series = "x.to_numpy()" if fields_in(x) is None else "a list of its values"
        values = "list(x)" if isinstance(x, tuple) else series
        raise TypeError(
            f"x must be a sequence of numbers, for no names are known here to compare with, got a {type(x).__name__} "
            f"with the names {names!r}: {values} goes by position"
        )
    if np.ma.isMaskedArray(x):
        raise TypeError(f"x must have no masked values, got {x!r}")
    try:
        clean = np.asarray(x)
        if clean.dtype.kind not in "fiub" and not all_real(clean):
            raise TypeError
        converted: Floats = clean.astype(np.float64) + 0.0
    except (TypeError, ValueError):
        for j, value in enumerate(x if isinstance(x, list | tuple) else ()):
            if isinstance(value, int) and abs(value) > sys.float_info.max:  # it may have too many digits to be shown
                bits = value.bit_length()
                raise ValueError(f"x must be finite, got an integer of {bits} bits at feature {j}") from None
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
            if isinstance(value, str) or value is None:
                return f"{value!r} at feature {j}: {FILL if value is None else ENCODE}"
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
