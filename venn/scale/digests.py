"""Names for what a result depends on: the same in every process, and another one when something has changed."""

from __future__ import annotations

import copyreg
import hashlib
import inspect
import json
import sys
import textwrap
from functools import lru_cache, partial
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.lib import format as npy

from venn.online import checkpoint

OWN = ("venn", "streams")  # of whose functions the name is enough
PROTOCOL = 4  # of pickle: the last that has all content in one piece


def digest(name: str, value: Any) -> str:
    """Return a short digest of a description.

    Parameters
    ----------
    name : str
        What an error calls it.
    value : object
        None, numbers, text, bytes, paths, arrays; lists, tuples, sets and dicts; classes, functions with a name and
        `functools.partial` of these, by name and text; any other object by its class and what pickle would keep of it,
        so that a fitted estimator is another one than the same fitted to other data.

    Raises
    ------
    TypeError
        It holds a lambda, a function defined inside another one, a class typed at a prompt, or an object that pickle
        cannot take apart.

    Examples
    --------
    >>> digest("task", {"C": 1, "kernel": "rbf"}) == digest("task", {"kernel": "rbf", "C": 1})
    True
    >>> digest("task", lambda: 1)
    Traceback (most recent call last):
    ...
    TypeError: task must name functions that are known again by their name, got a lambda: write it with def at the top
    of a module, and what it depends on as arguments, with functools.partial
    """
    try:
        described = _Description(name).of(value)
    except RecursionError:
        raise TypeError(f"{name} must hold nothing so deeply nested: give a function that makes it") from None
    return _hash(json.dumps(described, sort_keys=True).encode())[:20]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _Description:
    """JSON that tells a value from all others; an error calls the value `name`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._above: list[int] = []  # what is being described, from the outermost inwards

    def of(self, value: Any) -> Any:
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
        if (kind is np.ndarray or isinstance(value, np.generic)) and not value.dtype.hasobject:
            content = _hash(np.ascontiguousarray(value).tobytes())
            return {"array": [npy.dtype_to_descr(value.dtype), list(value.shape), content]}
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
        owner = getattr(value, "__self__", None) if isinstance(value, MethodType | BuiltinFunctionType) else None
        if owner is not None and not isinstance(owner, ModuleType):
            return {"method": [self.of(owner), value.__qualname__]}
        if isinstance(value, FunctionType | BuiltinFunctionType | type):
            return self._known(value)
        return self._ours(value) if kind.__module__.partition(".")[0] == "venn" else self._object(value)

    def _ours(self, value: Any) -> Any:
        """Describe what `venn.save` can write by what it writes: without room to spare, which differs by chance."""
        try:
            saved = [_hash(checkpoint.pack(value)), *checkpoint.models(value)]
        except (TypeError, ValueError):  # holds what is not ours
            return self._object(value)
        return {"saved": [self.of(one) for one in saved]}

    def _object(self, value: Any) -> Any:
        """Describe an object by what pickle would keep of it: how it is made again, and its state."""
        try:
            reducer = copyreg.dispatch_table.get(type(value))
            parts = value.__reduce_ex__(PROTOCOL) if reducer is None else reducer(value)
        except RecursionError:
            raise
        except Exception as error:
            raise TypeError(
                f"{self.name} must hold objects that pickle can take apart, got a {type(value).__qualname__}: {error}; "
                "give a function that makes it, as an argument or with functools.partial"
            ) from error
        about = self._known(type(value))
        if isinstance(parts, str):  # known by this name
            return {"global": [about, getattr(value, "__module__", None), parts, self.of(_unwrapped(value))]}
        make, arguments, *rest = parts
        state, *items = [*rest, None, None, None][:3]
        return {"object": [about, *map(self.of, (make, arguments, state, *map(list, filter(None, items))))]}

    def _known(self, thing: Any) -> Any:
        """Return name and text of a function or class."""
        qualified = thing.__qualname__
        if "<" in qualified or (isinstance(thing, FunctionType) and thing.__closure__):
            what = "a lambda" if "<lambda>" in qualified else f"{qualified}, which is defined inside a function"
            raise TypeError(
                f"{self.name} must name functions that are known again by their name, got {what}: write it with def at "
                "the top of a module, and what it depends on as arguments, with functools.partial"
            )
        module = thing.__module__ or ""
        main = module in ("__main__", "__mp_main__")
        if main:  # a script, by whatever process it is read
            module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
        elif module.partition(".")[0] in OWN and hasattr(sys.modules.get(module), qualified.partition(".")[0]):
            return [module, qualified]
        text = _text(thing)
        if not text and isinstance(thing, FunctionType):  # typed at a prompt
            return [module, qualified, *map(self.of, (thing.__code__, thing.__defaults__, thing.__kwdefaults__))]
        if not text and main:
            raise TypeError(f"{self.name} must name classes of a file, whose text can be read, got {qualified}")
        return [module, qualified, text]


@lru_cache(maxsize=1024)  # to read a class its whole module is parsed
def _text(thing: Any) -> str:
    """Return the text of a function or class, empty where there is none: it is compiled, or was typed at a prompt."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""


def _unwrapped(value: Any) -> Any:
    """Return the function inside one with a cache, whose text is what matters."""
    return getattr(value, "__wrapped__", None)
