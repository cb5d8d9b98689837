"""Digests of everything that a result depends on: the same in every process, and different when something changes."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import textwrap
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

from venn.online import checkpoint
from venn.pickled import Description

OWN = ("venn", "streams")  # the name of their functions is enough


def digest(name: str, value: Any) -> str:
    """Return a short digest of a description.

    Parameters
    ----------
    name : str
        What an error calls the value.
    value : object
        None, numbers, text, bytes, paths, arrays; lists, tuples, sets and dicts; classes, functions with a name and
        `functools.partial` of these, by name and source text; any other object by its class and its pickled state, so
        that an estimator fitted to other data has another digest.

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
    TypeError: task must name functions that can be identified by name, got a lambda: write it with def at the top
    of a module, and what it depends on as arguments, with functools.partial
    """
    try:
        described = _Lasting(name).of(value)
    except RecursionError:
        raise TypeError(f"{name} must not be nested so deeply: give a function that makes it") from None
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]


class _Lasting(Description):
    """A description that is the same in other processes: functions and classes by name and source text.

    An error calls the value `name`.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def instance(self, value: Any) -> Any:
        """Describe what `venn.save` can write by its bytes: without spare room, which differs by chance."""
        if type(value).__module__.partition(".")[0] == "venn":
            try:
                saved = [hashlib.sha256(checkpoint.pack(value)).hexdigest(), *checkpoint.models(value)]
            except (TypeError, ValueError):  # holds something that is not ours
                return super().instance(value)
            return {"saved": [self.of(one) for one in saved]}
        return super().instance(value)

    def taken_apart(self, value: Any) -> Any:
        """Return what pickle would take from an object, or say what to do if pickle cannot take it apart."""
        try:
            return super().taken_apart(value)
        except RecursionError:
            raise
        except Exception as error:
            raise TypeError(
                f"{self.name} must hold objects that pickle can take apart, got a {type(value).__qualname__}: {error}; "
                "give a function that makes it, as an argument or with functools.partial"
            ) from error

    def named(self, thing: Any) -> Any:
        """Return name and source text of a function or class."""
        qualified = thing.__qualname__
        if "<" in qualified or (isinstance(thing, FunctionType) and thing.__closure__):
            what = "a lambda" if "<lambda>" in qualified else f"{qualified}, which is defined inside a function"
            raise TypeError(
                f"{self.name} must name functions that can be identified by name, got {what}: write it with def at "
                "the top of a module, and what it depends on as arguments, with functools.partial"
            )
        module = thing.__module__ or ""
        main = module in ("__main__", "__mp_main__")
        if main:  # a script, whichever process reads it
            module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
        elif module.partition(".")[0] in OWN and hasattr(sys.modules.get(module), qualified.partition(".")[0]):
            return [module, qualified]
        text = _text(thing)
        if not text and isinstance(thing, FunctionType):  # typed at a prompt
            return [module, qualified, *map(self.of, (thing.__code__, thing.__defaults__, thing.__kwdefaults__))]
        if not text and main:
            raise TypeError(f"{self.name} must name classes of a file, whose text can be read, got {qualified}")
        return [module, qualified, text]


@lru_cache(maxsize=1024)  # reading a class parses its whole module
def _text(thing: Any) -> str:
    """Return the source text of a function or class, empty if there is none: compiled, or typed at a prompt."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""
