"""What a checkpoint keeps of objects themselves, dense or sparse, and what must hold of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.sparse import Rows
from venn.machines.sparse import SparseRows, check_rows
from venn.online.forms.base import Form, register
from venn.online.forms.checks import checked_names, finite, numbers, rows_of, whole


def distinct_columns(columns: Any) -> list[bytes]:
    """Return the content of each column as `clean_object` would know it, or say what it would not let through."""
    if np.signbit(columns[columns == 0]).any():
        raise ValueError("objects must hold 0.0 where they are zero, got -0.0")
    return [column.tobytes() for column in np.ascontiguousarray(columns.T)]


def checked_objects(objects: Any, d: int, m: int) -> list[bytes]:
    """Return the key of each of m objects of d features, dense by column or sparse by row, or say what is wrong."""
    if isinstance(objects, SparseRows):
        if objects.shape != (m, d):
            raise ValueError(f"objects must be {m} sparse rows of {d} features, got shape {objects.shape}")
        return [objects[i].tobytes() for i in range(m)]
    return distinct_columns(finite("objects", objects, (d, m)))


class RowsForm(Form):
    """Of sparse rows: their entries one after the other."""

    def __init__(self) -> None:
        self.kind = SparseRows
        self.name = "SparseRows"

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return where each row's entries end, their indices and values, and the number of features."""
        _, stops, indices, values = thing.packed().arrays
        return {"stops": stops, "indices": indices, "values": values, "features": thing.features}

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return the rows; compiled code, which checks nothing, will read them."""
        checked_names("parameters", parameters, ("stops", "indices", "values", "features"))
        n, entries = rows_of("stops", parameters["stops"]), rows_of("indices", parameters["indices"])
        stops = numbers("stops", parameters["stops"], (n,), np.int64)
        indices = numbers("indices", parameters["indices"], (entries,), np.int32)
        values = numbers("values", parameters["values"], (entries,))
        starts = np.append(0, stops)[:-1]
        rows = SparseRows(Rows(starts, stops, indices, values), whole("features", parameters["features"], 1))
        check_rows(rows)
        return rows


register(RowsForm())
