"""What pickle would keep of an object, told in JSON: the same of each copy of it, wherever that has been."""

from __future__ import annotations

import copyreg
import hashlib
import json
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.lib import format as npy

PROTOCOL = 4  # of pickle: the last that has all content in one piece


class Description:
    """Describes values as JSON, of which equal ones are told of values of the same content.

    Pickles themselves will not do, nor hashes of them: they tell how an array lies in memory, what is between the
    fields of a record, and which equal objects are one. Functions and classes are described by identity, which holds
    in one process; a subclass may know more.
    """

    def __init__(self) -> None:
        self._above: list[int] = []  # what is being described, from the outermost inwards

    def of(self, value: Any) -> Any:
        """Return the description of a value.

        Raises
        ------
        Exception
            Whatever an object raises that pickle cannot take apart.
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
            return {"bytes": _hash(value)}
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
        if kind is CodeType:
            return {"code": [self.of(part) for part in (value.co_code, value.co_consts, value.co_names)]}
        if kind is ModuleType:
            return {"module": value.__name__}
        owner = getattr(value, "__self__", None) if isinstance(value, MethodType | BuiltinFunctionType) else None
        if owner is not None and not isinstance(owner, ModuleType):
            return {"method": [self.of(owner), value.__qualname__]}
        if isinstance(value, FunctionType | BuiltinFunctionType | type):
            return self.named(value)
        return self.instance(value)

    def _entries(self, array: Any) -> Any:
        if array.dtype.hasobject:
            return self.of(array.tolist())
        if array.dtype.names is not None:  # what lies between the fields is chance
            return [self._entries(array[name]) for name in array.dtype.names]
        return _hash(np.ascontiguousarray(array).tobytes())

    def named(self, thing: Any) -> Any:
        """Describe a function or class."""
        return id(thing)

    def instance(self, value: Any) -> Any:
        """Describe an object by what pickle would keep of it: how it is made again, and its state."""
        about = self.named(type(value))
        if isinstance(value, np.ma.MaskedArray):  # not its filler, which it makes when it is first needed
            return {"object": [about, self.of(value.data), self.of(np.ma.getmaskarray(value))]}
        parts = self.taken_apart(value)
        if isinstance(parts, str):  # known by this name
            inside = getattr(value, "__wrapped__", None)  # in one with a cache, the function
            return {"global": [about, getattr(value, "__module__", None), parts, self.of(inside)]}
        make, arguments, *rest = parts
        state, *items = [*rest, None, None, None][:3]
        if hasattr(value, "get_tree_stats"):
            # scikit-learn's neighbour trees count how often they were asked. What else is whole in their state, the
            # numbers of nodes and levels, is that of their arrays.
            state = [part for part in state if not isinstance(part, int)]
        return {"object": [about, *map(self.of, (make, arguments, state, *map(list, filter(None, items))))]}

    def taken_apart(self, value: Any) -> Any:
        """Return what pickle asks of an object."""
        reducer = copyreg.dispatch_table.get(type(value))
        return value.__reduce_ex__(PROTOCOL) if reducer is None else reducer(value)


def same_content(one: Any, other: Any) -> bool:
    """Whether two objects of this process are of the same content, such as an object and a copy of it.

    Examples
    --------
    >>> same_content({"a": [1.0, float("nan")]}, {"a": [1.0, float("nan")]}), same_content([1], [1.0])
    (True, False)
    """
    return one is other or bool(Description().of(one) == Description().of(other))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
