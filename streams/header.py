"""The header of a CSV file: its delimiter, and a name for each field of its rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from streams.files import check_size, opened
from streams.schema import Refused, is_number

SEPARATORS = (",", ";", "\t", "|")  # or else a blank
UNNAMED = ""  # a column of a file that has no name


class TableLines(Protocol):
    """What csv.reader returns."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the fields of each row."""


class OtherDelimiter(Refused):
    """A header of one column that looks like several: `delimiter` may separate them."""

    def __init__(self, path: Path | str, header: str, delimiter: str) -> None:
        shown = header if len(header) <= 60 else f"{header[:57]}..."
        super().__init__(
            f"{path} must have more columns than one, got the header {shown!r}", f": try delimiter={delimiter!r}"
        )
        self.args = path, header, delimiter
        self.delimiter = delimiter


def read_header(path: Path, delimiter: str) -> list[str]:
    """Return the names of the columns of a CSV file."""
    return [name for name in layout(path, delimiter)[1] if name != UNNAMED]


def layout(path: Path, delimiter: str) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV file, and a name for each field of its rows.

    The file's own first line may declare another delimiter, as ``sep=;``. A field has no name where rows begin with
    their own name, as R and pandas write them, or end with a delimiter.
    """
    check_delimiter(delimiter)
    check_size(path)
    with opened(path) as lines:
        start = lines.readline().rstrip("\n")
    if start.startswith("sep=") and len(start) == 5:
        check_delimiter(delimiter := start[4])
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        names = header_names(path, rows, delimiter)
        with suppress(csv.Error):  # said with its row by whoever reads the rows
            first = next((row for row in rows if row), names)
            if len(first) == len(names) + 1:
                names = [*names, UNNAMED] if not first[-1].strip() else [UNNAMED, *names]
            elif len(first) == len(names) - 1 and names[-1] == UNNAMED:
                names = names[:-1]
    return delimiter, names


def column_texts(path: Path, name: str, delimiter: str) -> Iterator[str]:
    """Yield the fields of a column; "" where a row has none."""
    delimiter, names = layout(path, delimiter)
    place = names.index(name)
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        header_names(path, rows, delimiter)
        try:
            yield from (row[place] if place < len(row) else "" for row in rows if row)
        except csv.Error as error:
            raise ValueError(f"{path}, row {rows.line_num}: {error}") from None


def check_delimiter(delimiter: Any) -> None:
    """Raise ValueError unless it can separate fields."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f'delimiter must be one character, neither " nor a line end, got {delimiter!r}')


def header_names(path: Path, rows: TableLines, delimiter: str) -> list[str]:
    try:
        names = next((row for row in rows if row and row != ["sep=", ""]), None)
    except csv.Error as error:
        raise ValueError(f"{path}, row {rows.line_num}: {error}") from None
    if names is None:
        raise ValueError(f"{path} is empty: it must start with a row of column names")
    where = f"{path}, row {rows.line_num}"
    seen: set[str] = set()
    for j, column in enumerate(names):
        if not column.strip():
            if j in (0, len(names) - 1) and len(names) > 1:  # see `layout`
                names[j] = UNNAMED
                continue
            raise ValueError(f"{where}: column {j + 1} has no name; name it, or drop it")
        if column in seen:
            advice = ": add a header, if these are no names" if is_number(column) else ""
            raise ValueError(f"{where}: column names must be distinct, got {column!r} twice{advice}")
        if is_fraction(column):
            raise ValueError(f"{where} must hold column names, got the number {column!r}: add a header")
        seen.add(column)
    if len(names) == 1:
        check_one_name(path, names[0], delimiter)
    return names


def check_one_name(path: Path | str, header: str, delimiter: str) -> None:
    """Raise OtherDelimiter if the name of an only column looks like several."""
    parts = {other: header.count(other) for other in SEPARATORS if other in header and other != delimiter}
    if not parts and " " in header.strip() and delimiter != " ":
        parts = {" ": 1}
    if parts:
        raise OtherDelimiter(path, header, max(parts, key=lambda other: parts[other]))


def is_fraction(text: str) -> bool:
    """Whether the text is a number but not a plain integer, which may well name a column."""
    try:
        return isfinite(float(text)) and not text.strip().isdigit()
    except ValueError:
        return False
