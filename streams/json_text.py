"""JSON that is read: in UTF-8, of finite numbers, naming nothing twice, not nested too deep."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from streams.checks import shown


def utf8(raw: bytes) -> str:
    """Return the text, or raise ValueError."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"must be UTF-8: {error}") from None


def _no_constant(text: str) -> float:
    raise ValueError(f"must hold finite numbers only, got {text}")


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or raise ValueError for one that names something twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"must name nothing twice, got two of {shown(twice)}")
    return value


def _depth(text: str) -> int:
    """Return how deep lists and objects are nested in a text that may be JSON."""
    # A string that nothing ends reaches to the end: tried from each of its quotes, it would take quadratic time.
    outside = np.frombuffer(re.sub(r'(?s)"(?:[^"\\]|\\.)*"?', "", text).encode(errors="replace"), np.uint8)
    opened = (outside == ord("[")) | (outside == ord("{"))
    closed = (outside == ord("]")) | (outside == ord("}"))
    return int(np.cumsum(opened.astype(np.int64) - closed).max(initial=0))


def from_json(text: str, name: str = "") -> Any:
    """Return the value of a JSON text, or raise ValueError; `name` says what it is of, if not of a whole message.

    What is nested deeper than 100 is refused: much deeper values decode, and can then be neither shown nor compared.
    """
    wrong = f"{name} must be JSON".lstrip()
    if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
        raise ValueError(f"{wrong} nested at most {DEEPEST} deep, got {shown(text[:100])}")
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{wrong}: {error}, got {shown(text)}") from None


def whole_unicode(name: str, text: str) -> str:
    """Return the text, or raise ValueError."""
    # JSON's \ud800 is half a character, which no file and no database can hold.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} must be whole Unicode characters, got {shown(text)}")
    return text


DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=distinct_keys)
DEEPEST = 100  # lists and objects within each other
