"""What is wrong with columns of a table, and the kinds that would read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streams.checks import MANY, MISSING, MOST_NAMES, means_missing
from streams.schema import ColumnKind, Nominal, Numeric, Skip, way_to_write

SHOWN = 8  # bad columns that a message describes
FEW = 3  # words in a column of numbers that may mean a missing value
DATE = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]\s*\d{1,2}:\d{2}.*)?\s*", re.ASCII)
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
ONE_GROUP = re.compile(r"\d{1,3}[,.]\d{3}")  # 1,234: thousands, or decimals?


@dataclass(frozen=True)
class Trouble:
    """The first trouble of a column, and a summary of all its values."""

    column: str
    row: int  #: line of the file, from 1
    what: str
    remedy: str  #: for a program, after `what`; may be empty
    kind: ColumnKind | None  #: None for the label
    values: int  #: distinct texts, those beyond `MOST_NAMES` not counted further
    strange: tuple[str, ...]  #: those that are not finite numbers
    unlabelled: bool = False  #: of the label: whether nothing is wrong with it but that it is missing in rows

    def reading(self, rows: int, decimal: str = ".") -> tuple[ColumnKind, str]:
        """Return the kind that would read the column of a file of so many rows, and what to know of it.

        Nothing is left out but where that says why. Numbers are read as they are written, see `way_to_write`.
        """
        said = [text for text in self.strange if not means_missing(text)]
        gaps = tuple(text for text in self.strange if means_missing(text))
        fill: dict[str, Any] = {"fill": "median"} if gaps else {}
        if not said:
            return (Numeric(decimal=decimal, **fill), "") if self.values > len(gaps) else (Skip(), "it holds no value")
        numbers = self.values - len(self.strange)
        words = {text: None for text in said if way_to_write([text], decimal) is None}
        others = [text for text in said if text not in words]
        if words and all(map(INFINITE.fullmatch, words)):
            return Skip(), "it holds numbers that are not finite"
        if all(map(DATE.fullmatch, said)):
            return Skip(), "it holds dates: make a number of them that means something, such as days since a fixed one"
        how = way_to_write(others, decimal) if others else Numeric(decimal=decimal)
        # A few words may mean missing numbers, and so may one sign such as -, among any. One 5more has no unit.
        one_sign = len({*map(str.strip, words)}) == 1 and not any(map(str.isalnum, "".join(words)))
        few = not words or one_sign or (len(words) <= FEW and numbers + len(others) > MANY)
        if how is not None and few and numbers + len(others) and (how.unit is None or len(others) >= numbers):
            if words:
                fill = {"missing": tuple(dict.fromkeys((*gaps, *map(str.strip, words)))), "fill": "median"}
            known = f"it holds numbers but for {', '.join(map(repr, words))}, taken as missing values there"
            return replace(how, **fill), known if words and not one_sign else _ambiguous(how, others)
        if not words and len(said) >= numbers:
            return Skip(), "its numbers are written in several ways: mend the file"
        if self.values <= min(MOST_NAMES, rows // 2):
            many = f"one feature for each of its {self.values} values" if self.values > MANY else ""
            return Nominal(missing=gaps or None), many
        if self.values == rows:
            return Skip(), "it has another text in each row, as an identifier has"
        number = f"more than {MOST_NAMES}" if self.values > MOST_NAMES else str(self.values)
        return Skip(), f"it has {number} different texts in {rows} rows, as names and comments have"


class BadColumns(ValueError):
    """Columns with values that their kinds do not accept: the first trouble of each.

    Attributes
    ----------
    path : Path
    rows : int
        Rows of the file, without the header.
    troubles : tuple of Trouble
        In the order of their rows.
    odd : tuple of str
        What is said of rows that may be no examples.
    """

    def __init__(self, path: Path, rows: int, troubles: Sequence[Trouble], odd: Sequence[str] = ()) -> None:
        super().__init__(path, rows, troubles, odd)
        self.path, self.rows, self.troubles, self.odd = path, rows, tuple(troubles), tuple(odd)

    def lines(self, remedy: Callable[[Trouble], str]) -> list[str]:
        """Return what is wrong, a line for each column, ended by what a function says of it."""
        lines = [f"{self.path}, row {t.row}, column {t.column!r} {t.what}{remedy(t)}" for t in self.troubles[:SHOWN]]
        more = [trouble.column for trouble in self.troubles[SHOWN:]]
        return [*self.odd, *lines] + ([f"and {len(more)} more columns: {some_of(more)}"] if more else [])

    def __str__(self) -> str:
        lines = self.lines(lambda trouble: trouble.remedy)
        if all(type(one.kind) is Numeric and ": declare" in one.remedy.replace(", or", ":") for one in self.troubles):
            kinds = {one.column: one.reading(self.rows) for one in self.troubles}
            lines += to_know(kinds)
            lines.append(schema_to_add({column: kind for column, (kind, _) in kinds.items()}))
        return "\n".join(lines)


def to_know(kinds: Mapping[str, tuple[ColumnKind, str]]) -> list[str]:
    """Return what to know of kinds that are advised, a line for all columns of which it is the same."""
    of: dict[tuple[bool, str], list[str]] = {}
    for column, (kind, known) in kinds.items():
        if known:
            of.setdefault((isinstance(kind, Skip), known), []).append(column)
    return [f"{'skip ' if skip else ''}{some_of(names)}: {known}" for (skip, known), names in of.items()]


def schema_to_add(kinds: Mapping[str, ColumnKind]) -> str:
    """Return the line of an error that says what to add to a schema, as a program writes it."""
    return f"add to schema: {{{', '.join(f'{column!r}: {_in_program(kind)}' for column, kind in kinds.items())}}}"


def _in_program(kind: ColumnKind) -> str:
    """Return what a program writes for a kind: without what is so by default."""
    fields = vars(type(kind))["__dataclass_fields__"]
    given = {key: getattr(kind, key) for key in fields if getattr(kind, key) != fields[key].default}
    if given.get("missing") == MISSING:  # as it is with `fill`
        del given["missing"]
    return f"streams.{type(kind).__name__}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _ambiguous(how: Numeric, texts: Sequence[str]) -> str:
    """Return what to know of a way to write numbers in which another sign might be meant."""
    bare = ("".join(one for one in text if one in "0123456789.,") for text in texts)
    if how.thousands not in (",", ".") or not all(map(ONE_GROUP.fullmatch, bare)):
        return ""
    return f"where {how.thousands!r} stands before decimals, and not between thousands, say decimal={how.thousands!r}"


def some_of(names: list[str]) -> str:
    """Return the first ten names for a message, and how many more there are."""
    shown = ", ".join(map(repr, names[:10]))
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
