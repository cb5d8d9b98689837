"""Objects and predictions as bytes, and back, bit for bit: the form in which a journal keeps them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from venn.labels import LabelSpace
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, read_object
from venn.machines.tables import MARK, named_object, object_bytes, object_of
from venn.monitors.kinds import ALL, kind_of
from venn.prediction import Prediction

NUMBER = np.dtype("<f8")


def copy_object(x: Any) -> Any:
    """Return a copy of an object in the form that `decode_object` returns.

    That is an array, a sparse row (1, d), or, of an object with text, a dict of values by name or a list of them.

    Raises
    ------
    TypeError, ValueError
        It is none of these.
    """
    if is_sparse(x):
        return clean_sparse("x", x, None).tocsr()
    named = named_object(x)
    return np.array(x, NUMBER) if named is None else named


def encode_object(x: Any) -> bytes:
    """Return the bytes of an object that `copy_object` has made."""
    if isinstance(x, dict | list):
        return object_bytes(x)
    return clean_sparse("x", x, None).tobytes() if is_sparse(x) else np.ascontiguousarray(x, NUMBER).tobytes()


def decode_object(content: bytes) -> Any:
    """Return the object that `encode_object` wrote: as `copy_object` returns it.

    Raises
    ------
    ValueError
        The bytes are not those of an object.
    """
    if len(content) % NUMBER.itemsize and content.endswith(MARK):
        return object_of(content)
    x = read_object(content)
    return x.tocsr() if isinstance(x, SparseRows) else x


def encode(predictions: Mapping[str, Prediction]) -> bytes:
    """Return the predictions, in order, as bytes; equal predictions make equal bytes.

    Raises
    ------
    TypeError
        One is not a prediction.
    """
    parts: list[bytes] = []
    for name, prediction in predictions.items():
        kind = kind_of(prediction, name)
        parts += (bytes([ALL.index(kind)]), kind.encode(prediction))
    return b"".join(parts)


def decode(content: bytes, names: Sequence[str], space: LabelSpace) -> dict[str, Prediction]:
    """Return the predictions that `encode` wrote, by name.

    Raises
    ------
    ValueError
        The bytes are not those of predictions.
    """
    predictions: dict[str, Prediction] = {}
    start = 0
    try:
        for name in names:
            predictions[name], start = ALL[content[start]].decode(content, start + 1, space)
        if start != len(content):
            raise ValueError(f"{len(content)} bytes where {start} belong")
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise ValueError(f"predictions must be those of {', '.join(names)}, got damaged ones: {error}") from error
    return predictions
