"""Tables: a CSV file read by its schema into numbers, every error with file, row and column."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

from streams.checks import MANY, Floats, Integers, Label, are_numbers, classes_found, distinct_names, label_set
from streams.schema import (
    DECIMAL_COMMA,
    MISSING,
    Kind,
    Nominal,
    Numeric,
    Refused,
    check_decimal,
    checked_schema,
    is_number,
    with_point,
)

SHOWN = 8  # bad columns that a message describes
FEWEST = 10  # rows of a column that may be called an identifier
FURTHER = 5_000_000  # fields still read after the first trouble, to find that of other columns: some 5 s
SEPARATORS = (",", ";", "\t", "|")


class Rows(Protocol):
    """What csv.reader returns."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the fields of each row."""


@dataclass
class Table:
    """Checked data, not yet scaled: X (n, d), codes y (n,) into classes or numbers, names of the d features."""

    X: Floats
    y: Integers | Floats
    classes: tuple[Label, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class Trouble:
    """The first trouble of a column, and a summary of all its values."""

    column: str
    row: int  #: line of the file, from 1
    what: str
    remedy: str  #: for a program, after `what`; may be empty
    kind: Kind | None  #: None for the label
    values: int  #: distinct texts, those beyond `MANY` not counted further
    strange: tuple[str, ...]  #: those that are not finite numbers


class BadColumns(ValueError):
    """Columns with values that their kinds do not accept: the first trouble of each.

    Attributes
    ----------
    path : Path
    rows : int
        Rows of the file, without the header.
    troubles : tuple of Trouble
        In the order of their rows.
    """

    def __init__(self, path: Path, rows: int, troubles: Sequence[Trouble]) -> None:
        super().__init__(path, rows, troubles)
        self.path, self.rows, self.troubles = path, rows, tuple(troubles)

    def __str__(self) -> str:
        lines = [f"{self.path}, row {t.row}, column {t.column!r} {t.what}{t.remedy}" for t in self.troubles[:SHOWN]]
        more = [trouble.column for trouble in self.troubles[SHOWN:]]
        return "\n".join(lines + ([f"and {len(more)} more columns: {some_of(more)}"] if more else []))


class Doubtful(UserWarning):
    """What a file holds and hardly means: `what` it is, and the `remedy` in a program.

    Attributes
    ----------
    skip : str or None
        The column that might be left out.
    """

    def __init__(self, what: str, remedy: str, skip: str | None = None) -> None:
        super().__init__(what, remedy, skip)
        self.what, self.remedy, self.skip = what, remedy, skip

    def __str__(self) -> str:
        return self.what + self.remedy


class OtherDelimiter(Refused):
    """A header of one column that looks like several: `delimiter` may separate them."""

    def __init__(self, path: Path, header: str, delimiter: str) -> None:
        shown = header if len(header) <= 60 else f"{header[:57]}..."
        super().__init__(
            f"{path} must have more columns than one, got the header {shown!r}", f": try delimiter={delimiter!r}"
        )
        self.args = path, header, delimiter
        self.delimiter = delimiter


def read_csv(
    path: Path,
    label: str | int,
    schema: Mapping[str, Kind] | None,
    classes: Sequence[str] | str | None,
    delimiter: str,
    decimal: str = ".",
) -> Table:
    """Return the encoded table of a CSV file; parameters as in `from_csv`."""
    check_delimiter(delimiter)
    check_decimal(decimal)
    declared = None if classes is None or are_numbers(classes) else label_set(classes)
    of_label: Any = _Number() if are_numbers(classes) else _Label(declared)
    for k in declared or ():
        if not isinstance(k, str):
            raise TypeError(f"classes must be str, as a CSV file holds text, got {k!r}")

    def read(fast: bool) -> tuple[list[_Column], Floats]:
        with opened(path) as lines:
            rows = csv.reader(lines, delimiter=delimiter)
            names = _header(path, rows, delimiter)
            columns = _columns(path, names, label, checked_schema(schema), of_label, decimal)
            return columns, _parse(lines, columns, delimiter) if fast else _parse_rows(path, rows, columns, delimiter)

    try:
        columns, values = read(fast=True)
    except _NotParsed:
        # Numpy's reader is fast but cannot say where in the file it failed.
        columns, values = read(fast=False)
    if not len(values):
        raise ValueError(f"{path} holds a header and no examples")

    features: list[str] = []
    blocks: list[Floats] = []
    codes: Any
    known: tuple[Label, ...] = ()
    for column, numbers in zip(columns, values.T, strict=True):
        if isinstance(column.kind, _Number):
            codes = numbers.copy()
            continue
        if isinstance(column.kind, _Label):
            known = declared or classes_found(set(column.found), len(values), f"{path}, column {label!r}")
            place = {k: i for i, k in enumerate(known)}
            order = np.array([place[text] for text in column.found], dtype=np.int64)
            if declared is None:
                _doubt_labels(path, column, numbers)
            codes = order[numbers.astype(np.int64)]
            continue
        _doubt_identifier(path, column, numbers)
        try:
            named, block = column.kind.encode(column.name, numbers, column.found)
        except ValueError as error:
            said = _refused(error)
            raise Refused(f"{path}, column {column.name!r} {said.what}", said.remedy) from None
        features += named
        blocks.append(block)
    if not features:
        raise ValueError(f"{path} has no feature: every column but the label is skipped")
    return Table(np.hstack(blocks), codes, known, distinct_names("features", features))


def read_header(path: Path, delimiter: str) -> list[str]:
    """Return the names of the columns of a CSV file."""
    check_delimiter(delimiter)
    with opened(path) as lines:
        return _header(path, csv.reader(lines, delimiter=delimiter), delimiter)


def check_delimiter(delimiter: Any) -> None:
    """Raise ValueError unless it can separate fields."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f'delimiter must be one character, neither " nor a line end, got {delimiter!r}')


class _NotParsed(Exception):
    """The fast reader met something it cannot read."""


@dataclass(frozen=True)
class _Label:
    classes: tuple[Label, ...] | None

    def read(self, text: str, found: dict[str, int]) -> float:
        code = found.get(text)
        if code is None:
            if self.classes is not None and text not in self.classes:
                raise Refused(f"must be a label of classes {self.classes!r}, got {text!r}")
            if self.classes is None and text in MISSING:
                raise Refused(f"is the label and is missing, got {text!r}", "; drop the row or declare classes")
            code = found[text] = len(found)
        return code


@dataclass(frozen=True)
class _Number:
    """The label where it is a number."""

    def read(self, text: str, found: dict[str, int]) -> float:
        if not is_number(text):
            comma = ", or give decimal=',' where it stands before decimals" if DECIMAL_COMMA.fullmatch(text) else ""
            raise Refused(f"is the label and must be a finite number, got {text!r}", f"; drop the row{comma}")
        return float(text)


@dataclass
class _Column:
    name: str
    kind: Kind | _Label | _Number
    found: dict[str, int]
    comma: bool  #: whether decimals stand after a comma

    def read(self, text: str) -> float:
        return self.kind.read(with_point(text, self.kind) if self.comma else text, self.found)


def _doubt_labels(path: Path, column: _Column, codes: Floats) -> None:
    """Warn of labels that differ in blanks or capitals only, and count as several classes."""
    counts = np.bincount(codes.astype(np.int64))
    alike: dict[str, list[str]] = {}
    for text in column.found:
        alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
    for texts in alike.values():
        if len(texts) > 1:
            told = " and ".join(f"{text!r} ({counts[column.found[text]]:,} of {len(codes):,} rows)" for text in texts)
            _doubt(Doubtful(
                f"{path}, column {column.name!r}: the labels {told} differ in blanks or capitals only, and count as "
                f"{len(texts)} classes; mend the file if they are one",
                "",
            ))  # fmt: skip


def _doubt_identifier(path: Path, column: _Column, values: Floats) -> None:
    """Warn of a feature that looks like the number or the name of its row."""
    n = len(values)
    if n < FEWEST:
        return
    if isinstance(column.kind, Nominal):
        what = "another text" if len(column.found) == n else ""
    elif isinstance(column.kind, Numeric) and (np.diff(values[:FEWEST]) > 0).all():
        what = "a larger integer" if (np.diff(values) > 0).all() and (values == np.floor(values)).all() else ""
    else:
        return
    if what:
        said = f"{path}, column {column.name!r} has {what} in each row, as an identifier has: it is used as a feature"
        _doubt(Doubtful(said, "; declare Skip() to leave it out", column.name))


def _doubt(doubtful: Doubtful) -> None:
    warnings.warn(doubtful, stacklevel=5)  # at the call of from_csv


def _instead(path: Path) -> str:
    """Return what to do with a file that is no UTF-8 text."""
    with path.open("rb") as raw:
        start = raw.read(4)
    if start == b"PAR1":
        return "this is a Parquet file: write it as CSV, or read it in Python by streams.from_frames"
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
    return f"perhaps it becomes so by iconv -f {encoding} -t utf-8 {path} > new.csv"


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file of text, plain or gzip; errors of its form say what to do."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            binary: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            with binary, io.TextIOWrapper(binary, encoding="utf-8-sig") as lines:
                yield lines
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}; {_instead(path)}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file: {error}") from None


def _header(path: Path, rows: Rows, delimiter: str) -> list[str]:
    try:
        names = next((row for row in rows if row), None)
    except csv.Error as error:
        raise ValueError(f"{path}, row {rows.line_num}: {error}") from None
    if names is None:
        raise ValueError(f"{path} is empty: it must start with a row of column names")
    where = f"{path}, row {rows.line_num}"
    seen: set[str] = set()
    for j, column in enumerate(names):
        if not column.strip():
            raise ValueError(
                f"{where}: column {j + 1} has no name; name it, or drop it if it is an index: to_csv(..., index=False)"
            )
        if column in seen:
            raise ValueError(f"{where}: column names must be distinct, got {column!r} twice")
        if _fraction(column):
            raise ValueError(f"{where} must hold column names, got the number {column!r}: add a header")
        seen.add(column)
    if len(names) == 1:
        parts = {other: names[0].count(other) for other in SEPARATORS if other in names[0] and other != delimiter}
        if parts:
            raise OtherDelimiter(path, names[0], max(parts, key=lambda other: parts[other]))
    return names


def _fraction(text: str) -> bool:
    """Whether the text is a number but not a plain integer, which may well name a column."""
    try:
        return isfinite(float(text)) and not text.strip().isdigit()
    except ValueError:
        return False


def _columns(
    path: Path,
    names: list[str],
    label: str | int,
    schema: Mapping[str, Kind],
    of_label: _Label | _Number,
    decimal: str,
) -> list[_Column]:
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise TypeError(f"label must be a column name or position, got {label!r}")
    if isinstance(label, int):
        if not -len(names) <= label < len(names):
            raise ValueError(f"label must be a position among the {len(names)} columns of {path}, got {label}")
        label = names[label]
    if label not in names:
        raise ValueError(f"label must be a column of {path}, got {label!r}; it has {some_of(names)}")
    for column in schema:
        if column not in names:
            raise ValueError(f"schema names a column {column!r} that {path} lacks; it has {some_of(names)}")
        if column == label:
            raise ValueError(f"schema must not name the label's column {label!r}; declare classes instead")
    kinds = [of_label if n == label else schema.get(n, Numeric()) for n in names]
    return [
        _Column(n, kind, {}, decimal == "," and isinstance(kind, Numeric | _Number))
        for n, kind in zip(names, kinds, strict=True)
    ]


def some_of(names: list[str]) -> str:
    """Return the first ten names for a message, and how many more there are."""
    shown = ", ".join(map(repr, names[:10]))
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _parse(lines: TextIO, columns: list[_Column], delimiter: str) -> Floats:
    """Return (n, columns) numbers by numpy's reader: 7 s for the 75 MB of covtype, 39 s row by row."""
    plain = np.array([column.kind == Numeric() and not column.comma for column in columns])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no rows: said by the caller
            values: Floats = np.loadtxt(
                lines,
                delimiter=delimiter,
                quotechar='"',
                comments=None,
                ndmin=2,
                encoding="utf-8",
                converters={j: column.read for j, column in enumerate(columns) if not plain[j]},
            )
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise _NotParsed from error
    if not len(values):
        return values.reshape(0, len(columns))
    if values.shape[1] != len(columns) or not (np.isfinite(values).all(axis=0) | ~plain).all():
        raise _NotParsed
    return values


def _parse_rows(path: Path, rows: Rows, columns: list[_Column], delimiter: str) -> Floats:
    """Return what `_parse` returns, field by field, or raise the error that says where."""
    values: list[list[float]] = []
    bad: dict[int, tuple[int, Refused]] = {}  # of a column: row and reason of its first trouble
    further = FURTHER
    try:
        for row, fields in _numbered(path, rows, len(columns)):
            numbers = []
            for j, (column, text) in enumerate(zip(columns, fields, strict=True)):
                if j in bad:
                    continue
                try:
                    numbers.append(column.read(text))
                except ValueError as error:
                    bad[j] = row, _refused(error)
            if not bad:
                values.append(numbers)
                continue
            further -= len(columns)
            if further < 0:
                break
    except ValueError:
        if not bad:  # the first error of the file is reported
            raise
    if bad:
        raise _troubles(path, columns, bad, delimiter)
    return np.array(values, dtype=np.float64).reshape(-1, len(columns))


def _refused(error: ValueError) -> Refused:
    """Return the error as Refused: a user's own kind may raise another ValueError."""
    return error if isinstance(error, Refused) else Refused(str(error))


def _numbered(path: Path, rows: Rows, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not empty with its number."""
    row = rows.line_num + 1
    try:
        for fields in rows:
            if fields and len(fields) != width:
                raise ValueError(f"{path}, row {row} must have {width} fields, got {len(fields)}")
            if fields:
                yield row, fields
            row = rows.line_num + 1  # a quoted field may run over several lines: name the first
    except csv.Error as error:
        raise ValueError(f"{path}, row {row}: {error}") from None


def _troubles(path: Path, columns: list[_Column], bad: dict[int, tuple[int, Refused]], delimiter: str) -> BadColumns:
    """Return the troubles, with summaries of the bad columns, which are read once more, alone and whole."""
    values: dict[int, set[str]] = {j: set() for j in bad}
    strange: dict[int, set[str]] = {j: set() for j in bad}
    count = 0
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter)
        _header(path, rows, delimiter)
        with suppress(ValueError):  # a row of another length: the rows before it suffice
            for _, fields in _numbered(path, rows, len(columns)):
                count += 1
                for j in bad:
                    text = fields[j]
                    if text in values[j] or text in strange[j]:
                        continue
                    if len(values[j]) <= MANY:
                        values[j].add(text)
                    if len(strange[j]) <= MANY and not is_number(text, columns[j].comma):
                        strange[j].add(text)
    troubles = []
    for j, (row, error) in sorted(bad.items(), key=lambda one: (one[1][0], one[0])):
        kind = columns[j].kind
        declared = None if isinstance(kind, _Label | _Number) else kind
        known = len(values[j]), tuple(sorted(strange[j]))
        troubles.append(Trouble(columns[j].name, row, error.what, error.remedy, declared, *known))
    return BadColumns(path, count, troubles)
