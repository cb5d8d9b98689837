"""Tables: a CSV file read by its schema into numbers, every error with file, row and column."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

from streams.checks import MANY, Floats, Integers, Label, are_numbers, classes_found, distinct_names, label_set
from streams.opened import check_size, opened
from streams.schema import (
    DECIMAL_COMMA,
    Kind,
    Nominal,
    Numeric,
    Refused,
    check_decimal,
    checked_schema,
    is_number,
    merging,
    missing_texts,
    with_point,
)
from streams.texts import Doubtful, doubt_names, lacks_label, means_missing, merged, plain, warn

SHOWN = 8  # bad columns that a message describes
FEWEST = 10  # rows of a column that may be called an identifier
FURTHER = 5_000_000  # fields still read after the first trouble, to find that of other columns: some 5 s
SEPARATORS = (",", ";", "\t", "|")  # or else a blank
UNNAMED = ""  # a column of a file that has no name


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
    unlabelled: bool = False  #: of the label: whether nothing is wrong with it but that it is missing in rows


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


class OtherDelimiter(Refused):
    """A header of one column that looks like several: `delimiter` may separate them."""

    def __init__(self, path: Path | str, header: str, delimiter: str) -> None:
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
    missing: Sequence[str] = (),
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
) -> Table:
    """Return the encoded table of a CSV file; parameters as in `from_csv`."""
    check_decimal(decimal)
    declared = None if classes is None or are_numbers(classes) else label_set(classes)
    for k in declared or ():
        if not isinstance(k, str):
            raise TypeError(f"classes must be str, as a CSV file holds text, got {k!r}")
    of_label: Any = _Number(drop_unlabelled) if are_numbers(classes) else _Label(declared, drop_unlabelled, merge_alike)
    gaps = distinct_names("missing", missing)
    kinds = merging(checked_schema(schema), merge_alike)
    delimiter, names = layout(path, delimiter)

    def read(fast: bool) -> tuple[list[_Column], Floats]:
        with opened(path) as lines:
            rows = csv.reader(lines, delimiter=delimiter)
            _header(path, rows, delimiter)
            columns = _columns(path, names, label, kinds, of_label, decimal, gaps)
            return columns, _parse(lines, columns, delimiter) if fast else _parse_rows(path, rows, columns, delimiter)

    try:
        columns, values = read(fast=True)
    except _NotParsed:
        # Numpy's reader is fast but cannot say where in the file it failed.
        columns, values = read(fast=False)
    if not len(values):
        raise ValueError(f"{path} holds a header and no examples")
    for column in columns:
        if isinstance(column.kind, _RowName):
            _check_row_names(path, column, len(values))
    labels = values[:, [isinstance(column.kind, _Label | _Number) for column in columns]]
    labelled = ~np.isnan(labels[:, 0])
    if not labelled.all():
        values = values[labelled]
        if not len(values):
            raise ValueError(f"{path} has no row with a label in column {label!r}")

    features: list[str] = []
    blocks: list[Floats] = []
    codes: Any
    known: tuple[Label, ...] = ()
    for column, numbers in zip(columns, values.T, strict=True):
        if isinstance(column.kind, _Number):
            codes = numbers.copy()
            continue
        if isinstance(column.kind, _Label):
            codes, known = _labels(path, column, numbers)
            continue
        if isinstance(column.kind, Nominal) and column.kind.values is None and not column.kind.merge_alike:
            # What a kind takes as missing, it was told of.
            counted = {t: k for t, k in _counts(column, numbers).items() if t not in missing_texts(column.kind)}
            doubt_names(f"{path}, column {column.name!r}", counted, "values")
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


def _labels(path: Path, column: _Column, numbers: Floats) -> tuple[Integers, tuple[Label, ...]]:
    """Return the positions of the labels in the classes, and the classes."""
    kind: Any = column.kind
    home = merged(column.found) if kind.merge_alike and kind.classes is None else {}
    known = kind.classes
    if known is None:
        known = classes_found(
            {home.get(text, text) for text in column.found}, len(numbers), f"{path}, column {column.name!r}"
        )
        if not kind.merge_alike:
            doubt_names(f"{path}, column {column.name!r}", _counts(column, numbers), "labels")
    place = {k: i for i, k in enumerate(known)}
    order = np.array([place[home.get(text, text)] for text in column.found], dtype=np.int64)
    return order[numbers.astype(np.int64)], known


def _counts(column: _Column, codes: Floats) -> dict[str, int]:
    """Return the number of rows of each text of a column, without those that only stand in rows that were dropped."""
    counts = np.bincount(codes.astype(np.int64), minlength=len(column.found))
    return {text: count for text, count in zip(column.found, counts.tolist(), strict=True) if count}


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
        rows = csv.reader(lines, delimiter=delimiter)
        names = _header(path, rows, delimiter)
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
        rows = csv.reader(lines, delimiter=delimiter)
        _header(path, rows, delimiter)
        try:
            yield from (row[place] if place < len(row) else "" for row in rows if row)
        except csv.Error as error:
            raise ValueError(f"{path}, row {rows.line_num}: {error}") from None


def check_delimiter(delimiter: Any) -> None:
    """Raise ValueError unless it can separate fields."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f'delimiter must be one character, neither " nor a line end, got {delimiter!r}')


class _NotParsed(Exception):
    """The fast reader met something it cannot read."""


@dataclass(frozen=True)
class _Label:
    classes: tuple[Label, ...] | None
    drop: bool
    merge_alike: bool

    def read(self, text: str, found: dict[str, int]) -> float:
        code = found.get(text)
        if code is None:
            if self.classes is not None and text not in self.classes:
                if means_missing(text):
                    return _unlabelled(text, self.drop)
                like = [k for k in self.classes if plain(k) == plain(text)] if self.merge_alike else []
                if len(like) != 1:
                    raise Refused(f"must be a label of classes {self.classes!r}, got {text!r}")
                (text,) = map(str, like)
            if self.classes is None and means_missing(text, names=True):
                return _unlabelled(text, self.drop, "; or declare classes")
            code = found.setdefault(text, len(found))
        return code


@dataclass(frozen=True)
class _Number:
    """The label where it is a number."""

    drop: bool

    def read(self, text: str, found: dict[str, int]) -> float:
        if means_missing(text):
            return _unlabelled(text, self.drop)
        if not is_number(text):
            comma = ", or give decimal=',' where it stands before decimals" if DECIMAL_COMMA.fullmatch(text) else ""
            raise Refused(f"is the label and must be a finite number, got {text!r}", f"; drop the row{comma}")
        return float(text)


def _unlabelled(text: str, drop: bool, further: str = "") -> float:
    """Return what stands for the label of a row that is dropped, or refuse it."""
    if drop:
        return nan
    raise Refused(f"is the label and is missing, got {text!r}", f"; drop_unlabelled=True drops such rows{further}")


@dataclass(frozen=True)
class _RowName:
    """A first column without a name: R's and pandas' names of the rows."""

    def read(self, text: str, found: dict[str, int]) -> float:
        return found.setdefault(text, len(found))

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> tuple[list[str], Floats]:
        return [], np.empty((len(column), 0))


@dataclass(frozen=True)
class _Nothing:
    """What follows a delimiter at the end of a row."""

    def read(self, text: str, found: dict[str, int]) -> float:
        if text.strip():
            raise Refused(f"has no name and must be empty, got {text!r}", ": give it a name in the header")
        return 0.0

    def encode(self, name: str, column: Floats, found: dict[str, int]) -> tuple[list[str], Floats]:
        return [], np.empty((len(column), 0))


@dataclass
class _Column:
    name: str
    kind: Kind | _Label | _Number | _RowName | _Nothing
    found: dict[str, int]
    comma: bool  #: whether decimals stand after a comma
    gaps: tuple[str, ...]  #: further texts that mean a missing value

    def read(self, text: str) -> float:
        if self.gaps and text.strip() in self.gaps:
            try:
                return self.kind.read("", self.found)
            except Refused as error:
                raise Refused(f"{error.what.partition(', got ')[0]}, got {text!r}", error.remedy) from None
        return self.kind.read(with_point(text, self.kind) if self.comma else text, self.found)

    def unlabelled(self, text: str) -> bool:
        """Whether a field of the label's column holds no label."""
        classes = self.kind.classes if isinstance(self.kind, _Label) else ()
        return text.strip() in self.gaps or lacks_label(text, classes or (), names=classes is None)


def _check_row_names(path: Path, column: _Column, rows: int) -> None:
    """Refuse a column without a name unless it names its rows; say that it is left out."""
    strange = "the same text comes twice in it" if len(column.found) < rows else ""
    if any(map(_fraction, column.found)):  # a measurement; perhaps the last name is lacking, and all would be shifted
        strange = "it holds fractions"
    if strange:
        raise ValueError(
            f"{path}: the rows have one field more than the header has names; the first is taken for the name of its "
            f"row, but {strange}: give every column a name"
        )
    said = f"{path}: the first column has no name and another text in each row, as names of rows have: it is left out"
    warn(Doubtful(said, "; name it in the header to use it", "identifier", UNNAMED))


def _doubt_identifier(path: Path, column: _Column, values: Floats) -> None:
    """Warn of a feature that looks like the number or the name of its row."""
    n = len(values)
    if n < FEWEST:
        return
    if isinstance(column.kind, Nominal):
        what = "another text" if len(column.found) >= n and len(np.unique(values)) == n else ""
    elif isinstance(column.kind, Numeric) and (np.diff(values[:FEWEST]) > 0).all():
        what = "a larger integer" if (np.diff(values) > 0).all() and (values == np.floor(values)).all() else ""
    else:
        return
    if what:
        said = f"{path}, column {column.name!r} has {what} in each row, as an identifier has: it is used as a feature"
        warn(Doubtful(said, "; declare Skip() to leave it out", "identifier", column.name))


def _header(path: Path, rows: Rows, delimiter: str) -> list[str]:
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
            raise ValueError(f"{where}: column names must be distinct, got {column!r} twice")
        if _fraction(column):
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
    gaps: tuple[str, ...],
) -> list[_Column]:
    named = [name for name in names if name != UNNAMED]
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise TypeError(f"label must be a column name or position, got {label!r}")
    if isinstance(label, int):
        if not -len(named) <= label < len(named):
            raise ValueError(f"label must be a position among the {len(named)} columns of {path}, got {label}")
        label = named[label]
    if label not in named:
        raise ValueError(f"label must be a column of {path}, got {label!r}; it has {some_of(named)}")
    for column in schema:
        if column not in named:
            raise ValueError(f"schema names a column {column!r} that {path} lacks; it has {some_of(named)}")
        if column == label:
            raise ValueError(f"schema must not name the label's column {label!r}; declare classes instead")
    kinds: list[Any] = [of_label if n == label else schema.get(n, Numeric()) for n in names]
    for j, name in enumerate(names):
        if name == UNNAMED:
            kinds[j] = _Nothing() if j else _RowName()
    return [
        _Column(n, kind, {}, decimal == "," and isinstance(kind, Numeric | _Number), gaps)
        for n, kind in zip(names, kinds, strict=True)
    ]


def some_of(names: list[str]) -> str:
    """Return the first ten names for a message, and how many more there are."""
    shown = ", ".join(map(repr, names[:10]))
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _parse(lines: TextIO, columns: list[_Column], delimiter: str) -> Floats:
    """Return (n, columns) numbers by numpy's reader: 7 s for the 75 MB of covtype, 39 s row by row."""
    plain = np.array([column.kind == Numeric() and not column.comma and not column.gaps for column in columns])
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
    unlabelled: list[int] = []  # if the first trouble of the label is that it is missing, the rows where it is
    (at,) = (j for j, column in enumerate(columns) if isinstance(column.kind, _Label | _Number))
    missing_label = at in bad and " is missing" in bad[at][1].what
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter)
        _header(path, rows, delimiter)
        with suppress(ValueError):  # a row of another length: the rows before it suffice
            for row, fields in _numbered(path, rows, len(columns)):
                count += 1
                if missing_label and columns[at].unlabelled(fields[at]):
                    unlabelled.append(row)
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
        kind: Any = columns[j].kind
        declared = None if isinstance(kind, _Label | _Number) else kind
        known = len(values[j]), tuple(sorted(strange[j]))
        gaps = unlabelled if isinstance(kind, _Label | _Number) else []
        what = error.what + also_in(gaps[1:])
        only_gaps = bool(gaps) and (isinstance(kind, _Label) or all(map(columns[j].unlabelled, strange[j])))
        troubles.append(Trouble(columns[j].name, row, what, error.remedy, declared, *known, only_gaps))
    return BadColumns(path, count, troubles)


def also_in(rows: Sequence[int]) -> str:
    """Return for a message in which further rows the same is so: nothing without any."""
    if not rows:
        return ""
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f", as in {'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:5]))}{more}"
