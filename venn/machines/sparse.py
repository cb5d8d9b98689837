"""Sparse objects: rows of which only the nonzeros are kept, in one form whatever the input format."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.rows import Rows
from venn.prediction import Floats, Integers
from venn.saved import Saved, checked_keys, restored_array, restored_int, restored_rows, saved

INDEX, VALUE, COUNT = np.dtype("<i4"), np.dtype("<f8"), np.dtype("<i8")
MOST = np.iinfo(np.int32).max  # features: indices take 4 bytes
MARK = b"s"


@saved
class SparseRows(Saved):
    """Rows of numbers, most of them 0: indices ascend within a row, and no entry is zero.

    Rows chosen by a slice, a mask or numbers share the entries; nothing is copied.

    Parameters
    ----------
    arrays : Rows
    features : int
    """

    __slots__ = ("arrays", "features")
    ndim = 2

    def __init__(self, arrays: Rows, features: int) -> None:
        self.arrays = arrays
        self.features = features

    @property
    def parameters(self) -> dict[str, Any]:
        """Where each row's entries end, their indices and values, one after the other, and the number of features."""
        _, stops, indices, values = self.packed().arrays
        return {"stops": stops, "indices": indices, "values": values, "features": self.features}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> SparseRows:
        """Return the rows; compiled code, which checks nothing, will read them."""
        checked_keys("parameters", parameters, ("stops", "indices", "values", "features"))
        n, entries = restored_rows("stops", parameters["stops"]), restored_rows("indices", parameters["indices"])
        stops = restored_array("stops", parameters["stops"], (n,), np.int64)
        indices = restored_array("indices", parameters["indices"], (entries,), np.int32)
        values = restored_array("values", parameters["values"], (entries,))
        starts = np.append(0, stops)[:-1]
        rows = cls(Rows(starts, stops, indices, values), restored_int("features", parameters["features"], 1))
        check_rows(rows)
        return rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return len(self), self.features

    def __len__(self) -> int:
        return len(self.arrays.starts)

    def __getitem__(self, which: Any) -> SparseRows:
        """Return some of the rows; one of them for an integer."""
        if isinstance(which, int | np.integer):
            i = range(len(self))[which]
            which = slice(i, i + 1)
        starts, stops, indices, values = self.arrays
        return SparseRows(Rows(starts[which], stops[which], indices, values), self.features)

    def __repr__(self) -> str:
        return f"<{len(self)} sparse rows of {self.features} features, {int(self.lengths.sum())} of them not 0>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Refuse: numpy would treat rows as nested sequences."""
        raise TypeError(f"sparse rows are made dense by toarray() only, got {self!r}")

    @property
    def lengths(self) -> Integers:
        """(n,) number of entries of each row."""
        return self.arrays.stops - self.arrays.starts

    def packed(self) -> SparseRows:
        """Return the same rows with their entries, and no others, one after the other."""
        starts, stops, indices, values = self.arrays
        if len(starts) == 1:  # for speed
            entries: Any = slice(starts[0], stops[0])
            ends = stops - starts
        else:
            ends = self.lengths.cumsum()
            entries = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + self.lengths, self.lengths)
        return SparseRows(Rows(ends - self.lengths, ends, indices[entries], values[entries]), self.features)

    def tobytes(self) -> bytes:
        """Return the content: only equal rows have equal bytes. `read_row` restores a single row.

        The number of bytes is odd, so that they are never mistaken for a dense object's.
        """
        _, stops, indices, values = self.packed().arrays
        # The number of bytes tells the number of entries of one row.
        ends = b"" if len(stops) == 1 else stops.astype(COUNT).tobytes()
        entries = indices.astype(INDEX).tobytes() + values.astype(VALUE).tobytes()
        return entries + ends + self.features.to_bytes(COUNT.itemsize, "little") + MARK

    def tocsr(self) -> Any:
        """Return the rows as a `scipy.sparse.csr_array` (n, d) of its own."""
        from scipy.sparse import csr_array

        _, stops, indices, values = self.packed().arrays
        # Index arrays of one type: scipy would convert them.
        csr = csr_array((values.copy(), indices.copy(), np.append(0, stops).astype(np.int32)), shape=self.shape)
        csr.has_canonical_format = True
        return csr

    def toarray(self) -> Floats:
        """Return the rows as a dense (n, d) array."""
        dense = np.zeros(self.shape)
        _, _, indices, values = self.packed().arrays
        dense[np.repeat(np.arange(len(self)), self.lengths), indices] = values
        return dense


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array or matrix; scipy need not be imported to know, and a row may have such a field."""
    return not isinstance(x, np.ndarray | tuple) and callable(getattr(type(x), "tocsr", None))


def rows_of(dense: Floats) -> SparseRows:
    """Return finite dense (n, d) rows as sparse ones."""
    row, column = dense.nonzero()
    ends = np.bincount(row, minlength=len(dense)).cumsum()
    starts = np.append(0, ends[:-1]) if len(ends) else ends
    return SparseRows(Rows(starts, ends, column.astype(np.int32), dense[row, column]), dense.shape[1])


def read_row(content: bytes) -> SparseRows:
    """Return the row with these bytes as content.

    Raises
    ------
    ValueError
        The bytes are not the content of a row.
    """
    entries, tail = content[: -COUNT.itemsize - 1], content[-COUNT.itemsize - 1 :]
    count, rest = divmod(len(entries), INDEX.itemsize + VALUE.itemsize)
    if rest or len(tail) != COUNT.itemsize + 1 or not tail.endswith(MARK):
        raise ValueError(f"a sparse object must be indices, values and a number of features, got {len(content)} bytes")
    indices = np.frombuffer(entries, INDEX, count).astype(np.int32)
    values = np.frombuffer(entries, VALUE, count, count * INDEX.itemsize).astype(np.float64)
    row = SparseRows(
        Rows(np.zeros(1, np.int64), np.array([count]), indices, values), int.from_bytes(tail[:-1], "little")
    )
    check_rows(row)
    return row


def read_object(content: bytes) -> Floats | SparseRows:
    """Return the object, dense or sparse, with these bytes as content, or raise ValueError."""
    if len(content) % VALUE.itemsize:
        return read_row(content)
    return np.frombuffer(content, VALUE)


def check_rows(rows: SparseRows) -> None:
    """Refuse packed rows from a file or a message that `clean_sparse` would not have made."""
    starts, stops, indices, values = rows.arrays
    packed = np.array_equal(starts, np.append(0, stops)[:-1]) and (stops >= starts).all()
    if not packed or (stops[-1] if len(stops) else 0) != len(indices) or len(values) != len(indices):
        raise ValueError("sparse rows must be one after the other, an index for each value")
    if not 1 <= rows.features <= MOST:
        raise ValueError(f"sparse rows must have from 1 to {MOST} features, got {rows.features}")
    if indices.size and not (indices.min() >= 0 and indices.max() < rows.features):
        raise ValueError(f"indices must be from 0 to {rows.features - 1}, got {indices.min()} to {indices.max()}")
    if not ascending(starts, stops, indices):
        raise ValueError("indices must ascend within a row")
    if not (np.isfinite(values).all() and (values != 0).all()):
        raise ValueError("the values of sparse rows must be finite and not 0")


def ascending(starts: Any, stops: Any, indices: Any) -> bool:
    """Whether the indices of packed rows ascend within each row."""
    rises = indices[1:] > indices[:-1]
    if rises.all():
        return True
    new = np.zeros(len(indices) + 1, np.bool_)
    new[starts], new[stops] = True, True  # where a row begins
    return bool((rises | new[1 : len(indices)]).all())


def clean_sparse(name: str, X: Any, features: int | None) -> SparseRows:
    """Return sparse rows in the one form, or say what is wrong with them.

    Indices are sorted, duplicates added, zeros left out; what was given stays as it is.

    Parameters
    ----------
    name : str
        "x" for one object, (1, d) or (d,), "X" for many, (n, d).
    X : sparse array or matrix, in any format, or SparseRows
    features : int, optional
        How many there must be.
    """
    one = name == "x"
    shape = tuple(X.shape)
    if one and len(shape) == 1:
        X, shape = X.reshape((1, -1)), (1, *shape)
    if len(shape) != 2 or shape[1] == 0 or (one and shape[0] != 1):
        wanted = "be one object, of shape (1, d) or (d,)" if one else "be two-dimensional (n, d)"
        raise ValueError(f"{name} must {wanted}, with at least one feature, got a sparse one of shape {shape}")
    if features is not None and shape[1] != features:
        raise ValueError(f"{name} must have {features} features as the first object had, got {shape[1]}")
    if isinstance(X, SparseRows):
        return X
    if shape[1] > MOST:
        raise ValueError(f"{name} must have at most {MOST} features where it is sparse, got {shape[1]}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be rows of numbers, got a sparse one of dtype {X.dtype}")
    csr = X.tocsr()
    if np.ma.isMaskedArray(csr.data):
        raise TypeError(f"{name} must have no masked values, got a sparse one with masked data")
    ends = np.array(csr.indptr, np.int64)
    starts, stops, indices = ends[:-1], ends[1:], csr.indices
    # scipy does not check: indices beyond the row, which a user may set, would be read as they are.
    if starts[:1].any() or (stops < starts).any() or ends[-1] > len(indices) or len(csr.data) < ends[-1]:
        raise ValueError(f"{name} must have an indptr that ascends from 0 to the number of entries, got another")
    indices = indices[: ends[-1]]
    if indices.size and not (indices.min() >= 0 and indices.max() < shape[1]):
        raise ValueError(f"{name} must have indices from 0 to {shape[1] - 1}, got {indices.min()} to {indices.max()}")
    if not ascending(starts, stops, indices):
        csr = csr.copy()
        csr.has_canonical_format = csr.has_sorted_indices = False  # whatever it remembers
        csr.sum_duplicates()
        starts, stops = csr.indptr[:-1].astype(np.int64), csr.indptr[1:].astype(np.int64)
        indices = csr.indices
    values = csr.data[: len(indices)].astype(np.float64)
    if not np.isfinite(values).all():
        entry = int(np.flatnonzero(~np.isfinite(values))[0])
        row = int(np.searchsorted(stops, entry, "right"))
        place = f"feature {indices[entry]}" if one else f"row {row}, feature {indices[entry]}"
        raise ValueError(f"{name} must be finite, got {values[entry]} at {place}")
    some = values != 0
    if not some.all():
        before = np.append(0, some.cumsum())
        starts, stops, indices, values = before[starts], before[stops], indices[some], values[some]
    return SparseRows(Rows(starts, stops, indices.astype(np.int32), values), shape[1])
