"""Tables: a CSV file read by its schema into numbers, every error with file, row and column."""

from __future__ import annotations

import csv
import re
import warnings
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, TextIO

import numpy as np

from streams import odd_rows
from streams.checks import (
    MANY,
    MISSING,
    MOST_NAMES,
    Doubtful,
    Floats,
    Integers,
    Label,
    distinct_names,
    means_missing,
    warn,
)
from streams.encoder import Column, Encoder, Labels, also_in, filled
from streams.files import check_size, opened
from streams.schema import (
    PLAIN,
    ColumnKind,
    Nominal,
    Numeric,
    Refused,
    Skip,
    checked_schema,
    is_number,
    merging,
    way_to_write,
    written,
)

SHOWN = 8  # bad columns that a message describes
CRUSHED = 0.01  # deviations of a column: if its middle half lies within so few, the extremes hide it
FEWEST = 10  # rows of a column that may be called an identifier
SEPARATORS = (",", ";", "\t", "|")  # or else a blank
UNNAMED = ""  # a column of a file that has no name
FEW = 3  # words in a column of numbers that may mean a missing value
DATE = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]\s*\d{1,2}:\d{2}.*)?\s*", re.ASCII)
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
ONE_GROUP = re.compile(r"\d{1,3}[,.]\d{3}")  # 1,234: thousands, or decimals?


class TableLines(Protocol):
    """What csv.reader returns."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the fields of each row."""


@dataclass
class CsvTable:
    """Checked data, not yet scaled: X (n, d), codes y (n,) into classes or numbers, names of the d features."""

    X: Floats
    y: Integers | Floats
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    encoder: Encoder | None = None  #: of later rows


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
        TableLines of the file, without the header.
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
    return [f"{'left out: ' if skip else ''}{some_of(names)}: {known}" for (skip, known), names in of.items()]


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
    if how.thousands not in (",", ".") or not all(map(ONE_GROUP.fullmatch, map(_bare, texts))):
        return ""
    return f"where {how.thousands!r} stands before decimals, and not between thousands, say decimal={how.thousands!r}"


def _bare(text: str) -> str:
    return "".join(one for one in text if one in "0123456789.,")


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
    schema: Mapping[str, ColumnKind] | None,
    classes: Sequence[str] | str | None,
    delimiter: str,
    decimal: str = ".",
    missing: Sequence[str] = (),
    drop_unlabelled: bool = False,
    merge_alike: bool = False,
    thousands: str | None = None,
) -> CsvTable:
    """Return the encoded table of a CSV file; parameters as in `from_csv`."""
    of_label = Labels.of(classes, drop_unlabelled, merge_alike, Numeric(decimal=decimal, thousands=thousands))
    for k in of_label.classes or ():
        if not isinstance(k, str):
            raise TypeError(f"classes must be str, as a CSV file holds text, got {k!r}")
    gaps = distinct_names("missing", missing)
    kinds = merging(checked_schema(schema), merge_alike)
    delimiter, names = layout(path, delimiter)
    columns = _columns(path, names, label, kinds, of_label, gaps)
    read = _read(path, columns, delimiter, _parse)
    if read is None or read.bad:
        # Numpy's reader is fast but cannot say where in the file it failed.
        read = _read(path, columns, delimiter, _parse_rows)
    if read is None or not len(read.values):
        raise ValueError(f"{path} holds a header and no examples")
    for row in _odd_rows(path, read, read.lines or partial(_lines, path, delimiter)):
        warn(Doubtful(row, "", "row", UNNAMED))
    (at,) = (j for j, column in enumerate(columns) if isinstance(column.kind, Labels))
    rows, labelled = len(read.values), ~np.isnan(read.numbers(at))
    if not labelled.any():
        raise ValueError(f"{path} has no row with a label in column {label!r}")
    read.values = read.values[labelled]
    features: list[str] = []
    blocks: list[Floats] = []
    final: list[Column] = []
    codes: Any
    for j, column in enumerate(columns):
        if isinstance(column.kind, _RowName):
            _check_row_names(path, column, read.texts[j] or {}, rows)
        column, numbers = read.settled(j, f"{path}, column {column.name!r}")
        if j == at:
            codes, of_label = numbers, column.kind
            continue
        _doubt_identifier(path, column, numbers)
        _doubt_extreme(path, column, numbers, delimiter)
        try:
            blocks.append(column.kind.encode(numbers))
        except ValueError as error:
            said = Refused.of(error)
            raise Refused(f"{path}, column {column.name!r} {said.what}", said.remedy) from None
        features += column.kind.names(column.name)
        if not isinstance(column.kind, _RowName | _Nothing):
            final.append(filled(column, numbers))
    if not features:
        raise ValueError(f"{path} has no feature: every column but the label is skipped")
    y = codes.copy() if of_label.numbers else codes.astype(np.int64)
    named = distinct_names("features", features)
    return CsvTable(np.hstack(blocks), y, of_label.classes or (), named, Encoder(final))


class _Texts(dict[str, float]):
    """The distinct texts of a column, numbered as they appear: only these are looked at, not every field."""

    def __missing__(self, text: str) -> float:
        code = self[text] = float(len(self))
        return code


class _ReadCells:
    """A file: for each field a number, or the number of its text among `texts`, None for a column of numbers.

    `bad` has the first text that a column cannot hold, by its number, and why.
    """

    def __init__(
        self, columns: Sequence[Column], values: Floats, texts: Sequence[_Texts | None], lines: Integers | None = None
    ) -> None:
        self.columns, self.values, self.texts = columns, values, texts
        self.lines = (lambda: lines) if lines is not None else None  #: the line of each row, if it is known
        self.bad: dict[int, tuple[int, Refused]] = {}
        self._tables: list[Floats | None] = [None] * len(columns)
        for j, (column, distinct) in enumerate(zip(columns, texts, strict=True)):
            if distinct is not None:
                self._tables[j] = self._table(j, column, distinct)

    def _table(self, j: int, column: Column, texts: _Texts) -> Floats:
        table = np.empty(len(texts))
        for k, text in enumerate(texts):
            try:
                table[k] = column.read(text)
            except ValueError as error:
                self.bad[j] = k, Refused.of(error)
                break
        return table

    def numbers(self, j: int) -> Floats:
        """Return the numbers of a column."""
        table = self._tables[j]
        return self.values[:, j] if table is None else table[self.values[:, j].astype(np.int64)]

    def settled(self, j: int, where: str) -> tuple[Column, Floats]:
        """Return a column whose kind its content settles, and its numbers."""
        column, texts = self.columns[j], self.texts[j]
        if texts is not None and isinstance(column.kind, Labels | Nominal):
            counts = np.bincount(self.values[:, j].astype(np.int64), minlength=len(texts)).tolist()
            final = column.settled(where, dict(zip(texts, counts, strict=True)))
            if final.kind != column.kind:
                column, self._tables[j] = final, self._table(j, final, texts)
        return column, self.numbers(j)


def _read(
    path: Path, columns: list[Column], delimiter: str, parse: Callable[..., _ReadCells | None]
) -> _ReadCells | None:
    """Return what stands in a file below its header."""
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        _header(path, rows, delimiter)
        return parse(path, lines, rows, columns, delimiter)


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
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        _header(path, rows, delimiter)
        try:
            yield from (row[place] if place < len(row) else "" for row in rows if row)
        except csv.Error as error:
            raise ValueError(f"{path}, row {rows.line_num}: {error}") from None


def check_delimiter(delimiter: Any) -> None:
    """Raise ValueError unless it can separate fields."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f'delimiter must be one character, neither " nor a line end, got {delimiter!r}')


class _RowName(Skip):
    """A first column without a name: R's and pandas' names of the rows."""


class _Nothing(Skip):
    """What follows a delimiter at the end of a row."""

    def read(self, text: str) -> float:
        """Return 0, or refuse a text."""
        if text.strip():
            raise Refused(f"has no name and must be empty, got {text!r}", ": give it a name in the header")
        return 0.0


def _check_row_names(path: Path, column: Column, texts: Collection[str], rows: int) -> None:
    """Refuse a column without a name unless it names its rows; say that it is left out."""
    strange = "the same text comes twice in it" if len(texts) < rows else ""
    if any(map(_fraction, texts)):  # a measurement; perhaps the last name is lacking, and all would be shifted
        strange = "it holds fractions"
    if strange:
        raise ValueError(
            f"{path}: the rows have one field more than the header has names; the first is taken for the name of its "
            f"row, but {strange}: give every column a name"
        )
    said = f"{path}: the first column has no name and another text in each row, as names of rows have: it is left out"
    warn(Doubtful(said, "; name it in the header to use it", "identifier", UNNAMED))


def _doubt_identifier(path: Path, column: Column, values: Floats) -> None:
    """Warn of a feature that looks like the number or the name of its row."""
    n = len(values)
    if n < FEWEST:
        return
    if isinstance(column.kind, Nominal):
        what = "another text" if len(np.unique(values)) == n else ""
    elif isinstance(column.kind, Numeric) and (np.diff(values[:FEWEST]) > 0).all():
        what = "a larger integer" if (np.diff(values) > 0).all() and (values == np.floor(values)).all() else ""
    else:
        return
    if what:
        said = f"{path}, column {column.name!r} has {what} in each row, as an identifier has: it is used as a feature"
        warn(Doubtful(said, "; declare Skip() to leave it out", "identifier", column.name))


def _doubt_extreme(path: Path, column: Column, values: Floats, delimiter: str) -> None:
    """Warn of a number so far from the others that they are as good as equal once the column has deviation 1."""
    known = values[np.isfinite(values)]
    if not isinstance(column.kind, Numeric) or len(known) < FEWEST:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # of 1e308; what overflows is refused by whoever scales
        deviation, away = float(known.std()), np.abs(known - np.median(known))
        low, high = np.percentile(known, (25, 75))
    if 0 < high - low < CRUSHED * deviation:
        extreme, texts = known[away.argmax()], column_texts(path, column.name, delimiter)
        value = next(text.strip() for text in texts if column.read(text) == extreme)
        said = (
            f"{path}, column {column.name!r}: {value} is so far from the other values that these are as good as equal "
            f"where the column is standardised: half of them lie within {(high - low) / deviation:.2g} deviations"
        )
        remedy = f"; mend it, or, if it means a missing value, declare Numeric(missing={value!r}, fill='median')"
        warn(Doubtful(said, remedy, "missing", value))


def _header(path: Path, rows: TableLines, delimiter: str) -> list[str]:
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
    schema: Mapping[str, ColumnKind],
    of_label: Labels,
    gaps: tuple[str, ...],
) -> list[Column]:
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
    kinds: list[Any] = [of_label if n == label else schema.get(n, PLAIN) for n in names]
    for j, name in enumerate(names):
        if name == UNNAMED:
            kinds[j] = _Nothing() if j else _RowName()
    how = of_label.written
    return [
        Column(name, written(kind, how.decimal, how.thousands), True, gaps)
        for name, kind in zip(names, kinds, strict=True)
    ]


def some_of(names: list[str]) -> str:
    """Return the first ten names for a message, and how many more there are."""
    shown = ", ".join(map(repr, names[:10]))
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _well_quoted(lines: TextIO, delimiter: str) -> Iterator[str]:
    """Yield lines, or raise where numpy's reader would take for one field what stands after a quote without an end."""
    for line in lines:
        if '"' in line:
            next(csv.reader([line], delimiter=delimiter, strict=True))
        yield line


def _parse(path: Path, lines: TextIO, rows: TableLines, columns: list[Column], delimiter: str) -> _ReadCells | None:
    """Return what stands in a file by numpy's reader: 7 s for the 75 MB of covtype; None if it fails."""
    plain = np.array([column == Column(column.name, PLAIN, True) for column in columns])
    texts = [None if one else _Texts() for one in plain]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no rows: said by the caller
            values: Floats = np.loadtxt(
                _well_quoted(lines, delimiter),
                delimiter=delimiter,
                quotechar='"',
                comments=None,
                ndmin=2,
                encoding="utf-8",
                converters={j: found.__getitem__ for j, found in enumerate(texts) if found is not None},
            )
    except UnicodeDecodeError:
        raise
    except (ValueError, csv.Error):
        return None
    values = values if len(values) else values.reshape(0, len(columns))
    if values.shape[1] != len(columns) or not (np.isfinite(values).all(axis=0) | ~plain).all():
        return None
    return _ReadCells(columns, values, texts)


def _parse_rows(path: Path, lines: TextIO, rows: TableLines, columns: list[Column], delimiter: str) -> _ReadCells:
    """Return what `_parse` returns, field by field, or raise the error that says where."""
    texts = [_Texts() for _ in columns]
    codes, at = array("d"), array("q")  # of each field; the line of each row
    row, stopped = rows.line_num + 1, None
    try:
        for fields in rows:
            if fields and len(fields) != len(columns):
                raise ValueError(f"{path}, row {row} must have {len(columns)} fields, got {len(fields)}")
            if fields:
                codes.extend([found[text] for found, text in zip(texts, fields, strict=True)])
                at.append(row)
            row = rows.line_num + 1  # a quoted field may run over several lines: name the first
    except csv.Error as error:
        stopped = ValueError(f"{path}, row {row}: {error}")
    except ValueError as error:
        stopped = error
    read = _ReadCells(columns, np.array(codes).reshape(-1, len(columns)), texts, np.array(at))
    if read.bad:
        raise _troubles(path, read, np.array(at))
    if stopped is not None:  # the first error of the file is reported
        raise stopped
    return read


def _troubles(path: Path, read: _ReadCells, lines: Integers) -> BadColumns:
    """Return the troubles, with summaries of the bad columns."""
    troubles = []
    for j, (first, error) in read.bad.items():
        column, texts, codes = read.columns[j], list(read.texts[j] or ()), read.values[:, j]
        kind, row = column.kind, int(lines[np.argmax(codes == first)])
        how = kind if isinstance(kind, Numeric) else kind.written if isinstance(kind, Labels) else PLAIN
        bare = replace(how, missing=None, fill=None)
        strange = tuple(islice((text for text in texts if not is_number(text, bare)), MOST_NAMES + 1))
        further, unlabelled = "", False
        if isinstance(kind, Labels) and " is missing" in error.what:
            gaps = [k for k, text in enumerate(texts) if column.gap(text) or kind.lacks(text)]
            further = also_in(lines[np.isin(codes, gaps)][1:].tolist())
            unlabelled = not kind.numbers or all(column.gap(text) or kind.lacks(text) for text in strange)
        declared = None if isinstance(kind, Labels) else kind
        strange = tuple(sorted({"" if column.gap(text) else text for text in strange}))
        known = min(len(texts), MOST_NAMES + 1), strange
        troubles.append(Trouble(column.name, row, error.what + further, error.remedy, declared, *known, unlabelled))
    ordered = sorted(troubles, key=lambda trouble: trouble.row)
    return BadColumns(path, len(lines), ordered, _odd_rows(path, read, lambda: lines))


def _lines(path: Path, delimiter: str) -> Integers:
    """Return the line of each row of a file."""
    with opened(path) as lines:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        _header(path, rows, delimiter)
        at, row = array("q"), rows.line_num + 1
        for fields in rows:
            if fields:
                at.append(row)
            row = rows.line_num + 1
    return np.array(at)


def _odd_rows(path: Path, read: _ReadCells, lines: Callable[[], Integers]) -> list[str]:
    """Return words for each row that may be no example; raise ValueError for the header that comes again."""
    names, kinds = [column.name for column in read.columns], [column.kind for column in read.columns]
    texts = [None if own is None else list(own) for own in read.texts]
    again = odd_rows.headers(names, texts, read.values)
    if len(again):
        rows = lines()[again].tolist()
        raise ValueError(
            f"{path}, row {rows[0]} has the names of the columns again{also_in(rows[1:])}, as where one file comes "
            f"after another: leave such rows out, as awk 'NR == 1 {{h = $0}} NR == 1 || $0 != h' {quote(str(path))} "
            "> new.csv does"
        )
    said = []
    if odd_rows.is_lost(names, texts, kinds):
        said.append(
            f"{path}, row 1 may be an example, and is taken for the names of the columns, {some_of(names)}: give the "
            "file a header if it has none"
        )
    found = odd_rows.odd(texts, read.values, kinds, lambda j, text: read.columns[j].gap(text))
    return said + [
        f"{path}, row {lines()[row]} may be no example: it {words}; leave it out of the file if it is none"
        for row, words in found.items()
    ]
