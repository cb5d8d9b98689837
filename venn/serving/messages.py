"""Reads requests from bytes into events, and words the refusal of bad ones."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple, Protocol

from venn.online.journal import checked_id
from venn.serving.owner import ANSWER, ASK, ModelEvent

LONGEST_ID = 1000  # characters
LARGEST_INT = int(sys.float_info.max)
WRONG = (ValueError, TypeError, ArithmeticError, RecursionError)  # errors that bad content of a request raises
GAP = type(None)  # JSON has no NaN
FINE = {float, str, GAP}  # values of a list that need no closer look
KEYS = {ASK: ("id", "x"), ANSWER: ("id", "y")}
#: Finds in an error sentence of the library the place in the message: x[3], or x, feature 'age'.
PLACE = re.compile(r"(id|x|y)\b(?:\[(\d+)\]|, feature (?:'([^']*)'|\"([^\"]*)\"))?")


class Readers(Protocol):
    """Make objects and labels of what JSON holds, or raise ValueError: `streams`' decoder does."""

    def point(self, x: Any) -> Any:
        """Return the object of a list of values, or of values by name."""

    def label(self, y: Any) -> Any:
        """Return the label."""


def has_values(readers: Readers) -> bool:
    """Whether labels are the values of a series, which may be missing, and come without a question."""
    return bool(getattr(readers, "of_series", False))


class PlainReaders:
    """Take objects and labels as JSON holds them: the model says what it takes."""

    def point(self, x: Any) -> Any:
        """Return the object; beside numbers alone null is a gap, NaN."""
        if not isinstance(x, list | dict) or not x:
            raise ValueError(f"x must be a list of values, or an object from name to value, got {_short(x)}")
        if isinstance(x, list) and not (kinds := set(map(type, x))) - FINE:
            return x if str in kinds or GAP not in kinds else [nan if value is None else value for value in x]
        for name, value in x.items() if isinstance(x, dict) else enumerate(x):
            place = f"x, feature {name!r}" if isinstance(name, str) else f"x[{name}]"
            if isinstance(value, list | dict | bool):
                raise ValueError(f"{place} must be a number, text or null, got {_short(value)}")
            if isinstance(value, int) and abs(value) > LARGEST_INT:
                raise ValueError(f"{place} must be a number of at most {sys.float_info.max:g}, got {_short(value)}")
        return x

    def label(self, y: Any) -> Any:
        """Return the label."""
        if not isinstance(y, str | int | float):
            raise ValueError(f"y must be text, a number or a truth value, got {_short(y)}")
        return y


class ValueReaders(PlainReaders):
    """Take the values of a series, and covariates: numbers, or a list of those of several steps."""

    of_series = True

    def point(self, x: Any) -> Any:
        """Return the covariates of all steps, one after another."""
        if isinstance(x, list) and x and isinstance(x[0], list):
            return [one for row in x for one in self.point(row)]
        super().point(x)
        for place, one in enumerate(x):
            if not isinstance(one, int | float):
                raise ValueError(f"x[{place}] must be a number, got {_short(one)}: covariates are lists of numbers")
        return x

    def label(self, y: Any) -> Any:
        """Return the value."""
        if isinstance(y, bool) or not isinstance(y, int | float):
            raise ValueError(f"y must be a number, or null for a gap, got {_short(y)}")
        return y


class Wrong(NamedTuple):
    """Why a message, or a request, is refused, and where it is wrong."""

    status: int
    error: str
    at: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The body of the reply."""
        return {"error": self.error, "at": self.at} if self.at else {"error": self.error}


def read_json(content: bytes, name: str = "the body") -> Any:
    """Return the value of JSON, or raise ValueError: also where a name comes twice, or a number is none."""
    try:
        return DECODER.decode(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} must be JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{name} must be JSON that is not nested this deeply") from None


def read_event(what: str, message: Any, readers: Readers) -> ModelEvent | Wrong:
    """Return the event of a message, or what is wrong with it."""
    keys = KEYS[what]
    if not isinstance(message, dict):
        return Wrong(422, f"the message must be an object with {' and '.join(keys)}, got {_short(message)}")
    strange = next((key for key in message if key not in keys), None)
    if strange is not None:
        return Wrong(
            422, f"the message must have {' and '.join(keys)} only, got {_short(strange)}", str(strange)[:LONGEST_ID]
        )
    try:
        id = message.get("id")
        if id is not None:
            id = checked_id(id)
            if id == "" or (isinstance(id, str) and len(id) > LONGEST_ID):
                raise ValueError(f"id must have from 1 to {LONGEST_ID} characters, got {len(id)}")
        elif what == ANSWER and not has_values(readers):
            raise ValueError("id must say which question is answered, got none")
        key = keys[1]
        if has_values(readers) and message.get(key) is None and (what == ASK or key in message):
            return ModelEvent(what, id, x=() if what == ASK else None, y=None if what == ASK else nan)
        if message.get(key) is None:
            raise ValueError(f"{key} must be given, got none")
        if what == ASK:
            return ModelEvent(ASK, id, x=readers.point(message["x"]))
        return ModelEvent(ANSWER, id, y=readers.label(message["y"]))
    except WRONG as error:
        # A reader adds what whoever declares the columns can do; a client cannot.
        return refused(str(error).removesuffix(getattr(error, "remedy", "")) or type(error).__name__)


def refused(error: str, status: int = 422) -> Wrong:
    """Return what is wrong, and where, from an error sentence of the library.

    Examples
    --------
    >>> refused("x, feature 'age' must be a number, got 'old'").at, refused("x[3] must be finite, got nan").at
    ('x.age', 'x[3]')
    """
    found = PLACE.match(error)
    if found is None:
        return Wrong(status, error)
    name, place, *names = found.groups()
    feature = next((one for one in names if one is not None), None)
    return Wrong(status, error, name + (f"[{place}]" if place else "" if feature is None else f".{feature}"))


def within(place: str, wrong: Wrong) -> Wrong:
    """Return the same refusal for a message inside a request of many."""
    return wrong._replace(at=f"{place}.{wrong.at}" if wrong.at else place)


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"must name nothing twice, got two of {_short(next(n for n in names if names.count(n) > 1))}")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"must hold finite numbers only, got {text}")


def _short(value: Any) -> str:
    """Return a value as an error shows it; what is nested only by its kind."""
    if isinstance(value, list | Mapping):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    return shortened(repr(value), 60)


def shortened(text: str, most: int = 120) -> str:
    """Return a text cut to a number of letters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


DECODER = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_distinct)
