"""Tables: a CSV file read by its schema into numbers, every error with file, row and column."""

from __future__ import annotations

import csv
import warnings
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

import numpy as np

from streams import odd_rows
from streams.checks import MOST_NAMES, Doubtful, Floats, Integers, Label, distinct_names, warn
from streams.encoder import Column, Encoder, Labels, also_in, filled
from streams.files import opened
from streams.header import UNNAMED, TableLines, column_texts, header_names, is_fraction, layout
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
    written,
)
from streams.troubles import BadColumns, Trouble, some_of

CRUSHED = 0.01  # deviations of a column: if its middle half lies within so few, the extremes hide it
FEWEST = 10  # rows of a column that may be called an identifier


@dataclass
class CsvTable:
    """Checked data, not yet scaled: X (n, d), codes y (n,) into classes or numbers, names of the d features."""

    X: Floats
    y: Integers | Floats
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    encoder: Encoder | None = None  #: of later rows


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
        header_names(path, rows, delimiter)
        return parse(path, lines, rows, columns, delimiter)


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
    if any(map(is_fraction, texts)):  # a measurement; perhaps the last name is lacking, and all would be shifted
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
        header_names(path, rows, delimiter)
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
