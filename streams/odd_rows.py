"""Rows of a table that may be no examples: a header that comes again, units, sums and notes; and a lost first row."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streams.checks import Integers, means_missing
from streams.schema import Skip, is_number

FIRST, LAST = 2, 3  # rows at the beginning and at the end that may hold units, and sums and notes
FEWEST = 10  # rows of a table in which a text that comes once means something
SAMPLE = 1000  # texts of a column that are looked at
SHOWN = 3  # cells of a row in a message
SUM = re.compile(
    r"\W*(grand[ -]?|sub[ -]?)?(totals?|sum|summe|gesamt|insgesamt|suma|somme|totale?|average|mean)\W*", re.I
)

#: Distinct texts of each column, None of numbers; and for each row the number of its text in each column.
Texts = Sequence[Sequence[str] | None]


def headers(names: Sequence[str], texts: Texts, codes: Any) -> Integers:
    """Return the rows that have the names of the columns as their cells: a file may come after another.

    In a table that has lost its first row into the names other rows have these texts, too: none is a header there.

    Examples
    --------
    >>> headers(["a", "b"], [["1", "a"], ["x", "b"]], np.array([[0, 0], [1, 1], [0, 1]]))
    array([1])
    """
    named = codes == [
        np.nan if own is None or name not in own else list(own).index(name)
        for name, own in zip(names, texts, strict=True)
    ]
    again = named.all(axis=1)
    return np.flatnonzero(again & (named.sum(axis=0) == again.sum()).any())


def is_lost(names: Sequence[str], texts: Texts, kinds: Sequence[Any]) -> bool:
    """Whether the first row, taken for the names of the columns, might well be an example.

    Names of columns of numbers are numbers then, but not 0, 1, 2, ... nor years in order, and those of text stand in
    their columns, too.

    Examples
    --------
    >>> is_lost(["39", "red"], [["5", "7"], ["blue", "red"]], [None, None])
    True
    >>> is_lost(["age", "red"], [["5", "7"], ["blue", "red"]], [None, None])
    False
    """
    told = [(name, own) for name, own, kind in zip(names, texts, kinds, strict=True) if not isinstance(kind, Skip)]
    if all(name.isdecimal() for name, _ in told) and len(set(np.diff([int(name) for name, _ in told]).tolist())) < 2:
        return False
    return bool(told) and all(is_number(name) if own is None or _numbers(own) else name in own for name, own in told)


def odd(texts: Texts, codes: Any, kinds: Sequence[Any], gap: Callable[[int, str], bool]) -> dict[int, str]:
    """Return the rows near an end whose texts stand in no other row, or that begin as a sum does; with words for each.

    A column says something if its texts come again: each tells a row from the others in a column of names. Missing
    cells say nothing. If a single cell is like those of other rows, the row is an example.
    """
    n = len(codes)
    if n < FEWEST:
        return {}
    counts = [None if own is None else np.bincount(codes[:, j].astype(np.int64), minlength=len(own))
              for j, own in enumerate(texts)]  # fmt: skip
    numeric = [
        own is None or sum(not _digits(text) for text in own[:SAMPLE]) <= FIRST + LAST < len(own) for own in texts
    ]
    found: dict[int, str] = {}
    for row in sorted({*range(FIRST), *range(n - LAST, n)}):
        strange: list[int] = []
        example = False
        for j, own in enumerate(texts):
            if isinstance(kinds[j], Skip):
                continue
            if own is None:
                example = example or not np.isnan(codes[row, j])
                continue
            text, count = own[int(codes[row, j])], counts[j]
            assert count is not None
            if gap(j, text) or means_missing(text):
                continue
            once = count[int(codes[row, j])] == 1
            if numeric[j]:
                strange += [] if _digits(text) or not once else [j]
                example = example or _digits(text)
            elif 2 * len(own) <= n:
                strange += [j] if once else []
                example = example or not once
            if row >= n - LAST and j == _first(kinds) and once and SUM.fullmatch(text):
                found[row] = f"begins with {text!r}, as a sum does"
        if len(strange) > 1 and not example:
            cells = ", ".join(repr((texts[j] or ())[int(codes[row, j])]) for j in strange[:SHOWN])
            found[row] = f"has texts that stand in no other row, {cells}, as units, sums and notes do"
    return found


def _first(kinds: Sequence[Any]) -> int:
    """Return the place of the first column that is read."""
    return next((j for j, kind in enumerate(kinds) if not isinstance(kind, Skip)), 0)


def _digits(text: str) -> bool:
    """Whether a text holds a digit, as numbers do, with a unit or without."""
    return any(map(str.isdigit, text))


def _numbers(texts: Sequence[str]) -> bool:
    """Whether distinct texts, or the first of them, are numbers, or missing."""
    known = [text for text in texts[:SAMPLE] if not means_missing(text)]
    return bool(known) and all(map(is_number, known))
