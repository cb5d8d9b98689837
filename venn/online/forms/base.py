"""How objects of each class are taken apart for a checkpoint and made again: the classes that one may hold."""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any

from venn.saved import checked_keys


class Form:
    """Of most classes: all that an object is are the parameters of its constructor.

    Parameters
    ----------
    kind : class
    **attributes : str
        Where an object keeps a parameter, if not under its name.
    """

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
        checked_keys("parameters", parameters, self._attributes)
        return self.kind(**parameters)

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let a new object have learned what `state` says, or raise a ValueError where it says nothing possible."""
        checked_keys("state", state, self.state(thing))


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
