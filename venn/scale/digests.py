"""Names for what a result depends on: the same in every process, and another one when something has changed."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

OWN = ("venn", "streams")  # of whose functions the name is enough


def digest(name: str, value: Any) -> str:
    """Return a short digest of a description.

    Parameters
    ----------
    name : str
        What an error calls it.
    value : object
        None, numbers, text, bytes, paths, arrays; lists, tuples, sets and mappings; dataclasses; classes, functions
        with a name and `functools.partial` of these; other objects whose repr says all.

    Raises
    ------
    TypeError
        It holds a lambda, a function defined inside another one, or an object that does not say what it is.

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
    return hashlib.sha256(json.dumps(_described(name, value), sort_keys=True).encode()).hexdigest()[:20]


def _described(name: str, value: Any) -> Any:
    """Return JSON that tells a value from all others."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.dtype.str, list(value.shape), content]}
    if isinstance(value, bytes | PurePath):
        return {type(value).__name__: str(value)}
    if isinstance(value, list | tuple | range):
        return [_described(name, one) for one in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted(json.dumps(_described(name, one), sort_keys=True) for one in value)}
    if isinstance(value, Mapping):
        pairs = [[_described(name, key), _described(name, one)] for key, one in value.items()]
        return {"mapping": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))}
    if isinstance(value, partial):
        return {"partial": [_described(name, part) for part in (value.func, value.args, value.keywords)]}
    if isinstance(value, MethodType):
        return {"method": [_described(name, value.__self__), value.__func__.__qualname__]}
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        return _known(name, value)
    if is_dataclass(value):
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
        return {"object": [_known(name, type(value)), _described(name, parts)]}
    text = repr(value)
    if " at 0x" in text or "..." in text:
        raise TypeError(f"{name} must hold objects whose repr says all, got {text[:200]}")
    return {"object": [_known(name, type(value)), text]}


def _known(name: str, thing: Any) -> Any:
    """Return name and text of a function or class."""
    qualified = thing.__qualname__
    if "<" in qualified or getattr(thing, "__closure__", None):
        what = "a lambda" if "<lambda>" in qualified else f"{qualified}, which is defined inside a function"
        raise TypeError(
            f"{name} must name functions that are known again by their name, got {what}: write it with def at the top "
            "of a module, and what it depends on as arguments, with functools.partial"
        )
    module = thing.__module__ or ""
    if module in ("__main__", "__mp_main__"):  # a script, by whatever process it is read
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
    elif module.partition(".")[0] in OWN and sys.modules[module].__dict__.get(qualified.partition(".")[0]) is not None:
        return [module, qualified]
    try:
        text = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        text = ""  # compiled, or typed at a prompt
    return [module, qualified, text]
