"""What a checkpoint keeps of objects themselves, dense or sparse, and what must hold of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.machines.sparse import SparseRows
from venn.saved import held_finite


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
    return distinct_columns(held_finite("objects", objects, (d, m)))
