"""Digests of objects by their content, for random numbers that belong to an object."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.ranks import dense_digests, sparse_digests
from venn.machines.objects import ObjectRows
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse
from venn.machines.tables import TableRows, is_number


def digests_of(rows: ObjectRows) -> NDArray[np.uint64]:
    """Return (n,) 64 bits for each row of clean numbers: equal rows have equal bits, other rows almost never.

    The same in every process and on every platform, whatever the sign of a zero and whether rows are sparse or dense.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.machines.objects import clean_rows
    >>> one, same, other = digests_of(clean_rows([[0.5, 0.0], [0.5, -0.0], [0.0, 0.5]], None)).tolist()
    >>> one == same, one == other
    (True, False)
    """
    if isinstance(rows, TableRows):
        cells = np.array([[_without_type(cell) for cell in row] for row in rows.cells], object)
        alike = TableRows(cells.reshape(rows.shape), rows.names)
        each = [blake2b(alike[i].tobytes(), digest_size=8).digest() for i in range(len(rows))]
        found = np.frombuffer(b"".join(each), "<u8").astype(np.uint64)
        numbers = [all(map(is_number, row)) for row in rows.cells]  # alone such a row is an array
        if any(numbers):
            found[numbers] = digests_of(rows.cells[numbers].astype(np.float64))
        return found
    out = np.empty(len(rows), np.uint64)
    with np.errstate(over="ignore"):  # 64 bits are meant to wrap around; compiled code does not look
        if isinstance(rows, SparseRows):
            starts, stops, indices, values = rows.arrays
            sparse_digests(starts, stops, indices, values.view(np.uint64), out)
        else:
            dense_digests(rows.view(np.uint64), out)
    return out


def _without_type(cell: Any) -> Any:
    """Return a number as a float that equals it: 2 is 2.0, and 0 has no sign; any other cell as it is."""
    return float(cell) + 0.0 if is_number(cell) and float(cell) == cell else cell


def digest_of(x: Any) -> int:
    """Return the digest of one object that a machine has accepted: that of its row, or 0 where it holds no numbers."""
    try:
        if is_sparse(x):
            return int(digests_of(clean_sparse("x", x, None))[0])
        row = np.asarray(x)
    except (TypeError, ValueError):
        return 0
    if row.dtype.kind not in "fiub" or row.ndim != 1:
        return 0
    return int(digests_of(np.ascontiguousarray(row, np.float64)[None])[0])
