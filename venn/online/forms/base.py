"""How objects of each class are taken apart for a checkpoint and made again: the classes that one may hold."""

from __future__ import annotations

import dataclasses
import inspect
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from venn.monitors.running import Running
from venn.online.forms.checks import checked_names


class Model(NamedTuple):
    """An estimator of the user's own: a checkpoint says which, and does not hold it."""

    estimator: Any


class Form:
    """Of most classes: all that an object is are the parameters of its constructor.

    Parameters
    ----------
    kind : class
    **attributes : str
        Where an object keeps a parameter, if not under its name.
    """

    #: Arrays are handed over as views that are only to be read; else as arrays of the object's own.
    views = False

    def __init__(self, kind: type, **attributes: str) -> None:
        self.kind = kind
        self.name = kind.__name__
        names = list(inspect.signature(kind).parameters)
        self._attributes = {name: attrgetter(attributes.get(name, name)) for name in names}

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {name: get(thing) for name, get in self._attributes.items()}

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what the object has learned."""
        return {}

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return an object that has learned nothing; whatever its constructor raises says that it cannot be."""
        checked_names("parameters", parameters, self._attributes)
        return self.kind(**parameters)

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a new object have learned what `state` says, or raise a ValueError where it says nothing possible."""
        checked_names("state", state, self.state(thing))


class DataForm(Form):
    """Of frozen dataclasses, whose constructors check nothing."""

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return the object; numbers and arrays must be what its fields say."""
        thing = super().make(parameters)
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            kinds = {"float": float, "int": int, "str": str, "Floats": np.ndarray}
            if field.type in kinds and type(value) is not kinds[field.type]:
                raise ValueError(f"{field.name} must be of type {field.type}, got {value!r}")
        return thing


class RunningForm(Form):
    """Of what is brought up to date step by step: it has a state of plain data, and checks it."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.name = kind.__name__

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return what the constructor takes; of patterns only what they are, not what they have seen."""
        named = {name: _pattern(value) for name, value in thing._parameters.items()}
        return {"patterns": [_pattern(one) for one in thing._patterns], "named": named}

    def state(self, thing: Any) -> dict[str, Any]:
        """Return all that was learned, as plain data."""
        return {"state": thing.state}

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return one that has seen nothing."""
        checked_names("parameters", parameters, ("patterns", "named"))
        return self.kind(*parameters["patterns"], **parameters["named"])

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it go on from a state."""
        checked_names("state", state, ("state",))
        thing.restore(state["state"])


def _pattern(value: Any) -> Any:
    return value.fresh() if isinstance(value, Running) else value


class GeneratorForm(Form):
    """Of numpy's generators: the state of the bit generator. What `spawn` would give is not kept."""

    KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
    #: Positions in their buffers: numpy does not check them.
    POSITIONS: ClassVar = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}

    def __init__(self) -> None:
        self.kind = np.random.Generator
        self.name = "Generator"

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return the kind of bit generator."""
        return {"bits": type(thing.bit_generator).__name__}

    def state(self, thing: Any) -> dict[str, Any]:
        """Return the state of the bit generator."""
        return {"state": thing.bit_generator.state}

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return a generator of that kind."""
        checked_names("parameters", parameters, ("bits",))
        if parameters["bits"] not in self.KINDS:
            raise ValueError(f"bits must be one of {', '.join(self.KINDS)}, got {parameters['bits']!r}")
        return np.random.Generator(getattr(np.random, parameters["bits"])(0))

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it go on from a state."""
        checked_names("state", state, ("state",))
        bits = thing.bit_generator
        wanted, own = state["state"], bits.state
        name, most = self.POSITIONS.get(own["bit_generator"], ("has_uint32", 1))
        if not _alike(wanted, own) or not 0 <= _found(wanted, name) <= most:
            raise ValueError(f"state must be that of a {own['bit_generator']}, got {wanted!r}")
        bits.state = wanted
        if not _equal(bits.state, wanted):
            raise ValueError(f"state must be that of a {own['bit_generator']}, got {wanted!r}")


def _found(state: dict[str, Any], name: str) -> int:
    """Return a number of the state of a bit generator, or of the state within."""
    found: int = state[name] if name in state else state["state"][name]
    return found


def _alike(first: Any, second: Any) -> bool:
    """Whether both have the same keys, types and shapes throughout."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_alike(first[key], second[key]) for key in second)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return bool(first.shape == second.shape and first.dtype == second.dtype)
    return type(first) is type(second)


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return all(_equal(first[key], second[key]) for key in first)
    return bool(np.array_equal(first, second))


# ------------------------------------------------------------------------------------ the table

_FORMS: dict[type, Form] = {}
_NAMED: dict[str, Form] = {}


def register(*forms: Form) -> None:
    """Enter forms in the table."""
    for form in forms:
        if form.name in _NAMED:
            raise ValueError(f"two classes must not have one name, got {form.name}")
        _FORMS[form.kind] = _NAMED[form.name] = form


def form_of(thing: Any) -> Form | None:
    """Return how to take an object apart; None where its very class is not in the table."""
    return _FORMS.get(type(thing))


def form_named(name: Any) -> Form | None:
    """Return how to make an object of the class that a checkpoint names; None where there is none."""
    return _NAMED.get(name) if isinstance(name, str) else None
