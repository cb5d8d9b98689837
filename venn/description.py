"""Descriptions of objects in JSON, made from what pickle would keep: copies of an object have the same description."""

from __future__ import annotations

import copyreg
import hashlib
import json
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.lib import format as npy

PROTOCOL = 4  # of pickle: the last protocol with all content in one piece


class Description:
    """Describes values as JSON: equal content gives equal JSON.

    Pickles, or hashes of them, do not serve: they depend on the memory layout of an array, on the bytes between the
    fields of a record, and on which equal objects are identical. Functions and classes are described by identity, which
    holds in one process.
    """

    def __init__(self) -> None:
        self._above: list[int] = []  # the objects being described, from the outermost inwards

    def of(self, value: Any) -> Any:
        """Return the description of a value.

        Raises
        ------
        Exception
            Raised by an object that pickle cannot take apart.
        """
        if value is None or type(value) in (bool, int, str):
            return value
        if id(value) in self._above:  # an object that holds itself
            return {"above": len(self._above) - self._above.index(id(value))}
        self._above.append(id(value))
        try:
            return self._inside(value)
        finally:
            self._above.pop()

    def _inside(self, value: Any) -> Any:
        kind = type(value)
        if kind is float:
            return {"float": value.hex()}
        if kind is np.ndarray or isinstance(value, np.generic):
            return {"array": [npy.dtype_to_descr(value.dtype), list(value.shape), self._entries(value)]}
        if kind is bytes:
            return {"bytes": _digest(value)}
        if isinstance(value, PurePath):
            return {kind.__name__: str(value)}
        if kind is list:
            return [self.of(one) for one in value]
        if kind is tuple:
            return {"tuple": [self.of(one) for one in value]}
        if kind in (set, frozenset):
            return {"set": sorted(json.dumps(self.of(one), sort_keys=True) for one in value)}
        if kind is dict:
            pairs = [[self.of(key), self.of(one)] for key, one in value.items()]
            return {"mapping": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))}
        if kind is partial:
            return {"partial": [self.of(part) for part in (value.func, value.args, value.keywords)]}
        if kind is ModuleType:
            return {"module": value.__name__}
        owner = getattr(value, "__self__", None) if isinstance(value, MethodType | BuiltinFunctionType) else None
        if owner is not None and not isinstance(owner, ModuleType):
            return {"method": [self.of(owner), value.__qualname__]}
        if isinstance(value, FunctionType | BuiltinFunctionType | type):
            return id(value)
        return self._instance(value)

    def _entries(self, array: Any) -> Any:
        if array.dtype.hasobject:
            return self.of(array.tolist())
        if array.dtype.names is not None:  # the bytes between the fields are arbitrary
            return [self._entries(array[name]) for name in array.dtype.names]
        return _digest(np.ascontiguousarray(array).tobytes())

    def _instance(self, value: Any) -> Any:
        """Describe an object by what pickle would keep of it: how to make it again, and its state."""
        about = id(type(value))
        if isinstance(value, np.ma.MaskedArray):  # without its filler, which is made when first needed
            return {"object": [about, self.of(value.data), self.of(np.ma.getmaskarray(value))]}
        reducer = copyreg.dispatch_table.get(type(value))
        parts = value.__reduce_ex__(PROTOCOL) if reducer is None else reducer(value)
        if isinstance(parts, str):  # known by this name
            inside = getattr(value, "__wrapped__", None)  # in one with a cache, the function
            return {"global": [about, getattr(value, "__module__", None), parts, self.of(inside)]}
        make, arguments, *rest = parts
        state, *items = [*rest, None, None, None][:3]
        if hasattr(value, "get_tree_stats"):
            # scikit-learn's neighbour trees count their queries. All other whole numbers in their state, the numbers of
            # nodes and levels, follow from their arrays.
            state = [part for part in state if not isinstance(part, int)]
        return {"object": [about, *map(self.of, (make, arguments, state, *map(list, filter(None, items))))]}


def same_content(one: Any, other: Any) -> bool:
    """Whether two objects of this process have the same content, such as an object and a copy of it.

    Examples
    --------
    >>> same_content({"a": [1.0, float("nan")]}, {"a": [1.0, float("nan")]}), same_content([1], [1.0])
    (True, False)
    """
    return one is other or bool(Description().of(one) == Description().of(other))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
