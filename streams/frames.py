"""Streams of data frames, whole or in batches: rows become numbers in blocks, all names and types are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from streams.batches import BLOCK as BLOCK
from streams.batches import columns_of as columns_of
from streams.batches import eager, source
from streams.checks import (
    Floats,
    Integers,
    Label,
    are_numbers,
    distinct_names,
    flag,
    is_missing,
    label_key,
    label_set,
    python_label,
)
from streams.example import Scaling
from streams.form import Form, finite_label
from streams.schema import Kind, Nominal, Numeric, Refused, Skip, encoded_names, kinds_of, missing_texts
from streams.texts import lacks_label


def read_numbers(frame: Any, schema: Mapping[str, Kind]) -> tuple[Floats, tuple[str, ...]]:
    """Return (n, d) finite numbers of a narwhals frame and their names, or say which column and row holds another."""
    reader = _Reader(tuple(map(str, frame.columns)), schema)
    reader.check(frame, "X")
    return next(reader.read(frame, "X", 0, len(frame))), reader.encoded


class FrameStream:
    """Labelled rows of data frames that need not fit into memory together; made by `from_frames`.

    Attributes
    ----------
    classes : tuple of labels
    features : tuple of str
        Of the encoded objects.
    name : str

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"width": [0.5, 1.5], "kind": ["a", "b"]})
    >>> stream = from_frames([frame, frame], "kind", classes=["a", "b"])
    >>> [(x.tolist(), y) for x, y in stream]
    [([0.5], 'a'), ([1.5], 'b'), ([0.5], 'a'), ([1.5], 'b')]
    """

    def __init__(
        self,
        open: Callable[[Sequence[str]], Iterator[Any]],
        columns: Sequence[str],
        label: str,
        form: Form,
        name: str,
        once: bool,
        drop_unlabelled: bool = False,
    ) -> None:
        self._open = open
        self._drop_unlabelled = drop_unlabelled
        self._form = form
        self._once = once
        self._columns = tuple(columns)
        self._label = label
        declared = form.features
        self._features = tuple(column for column in columns if column != label) if declared is None else tuple(declared)
        for parameter, column in (("label", label), *(("features", feature) for feature in self._features)):
            if column not in columns:
                raise ValueError(f"{parameter} must name columns of the frames, {list(columns)!r}, got {column!r}")
        if label in self._features:
            raise ValueError(f"features must not hold the label {label!r}")
        self._reader = _Reader(self._features, form.schema or {})
        self.classes: tuple[Label, ...] = () if are_numbers(form.classes) else tuple(form.classes or ())
        self.features = self._reader.encoded
        self.name = name
        if form.scaling is not None and len(form.scaling.mean) != len(self.features):
            raise ValueError(
                f"scaling must have {len(self.features)} features, as the objects have, got {len(form.scaling.mean)}"
            )

    def __repr__(self) -> str:
        labels = f"{len(self.classes)} classes" if self.classes else "numbers"
        return f"<FrameStream {self.name!r}: {len(self.features)} features, {labels}>"

    def __iter__(self) -> Iterator[tuple[Floats, Label]]:
        for X, codes in self.blocks():
            for x, code in zip(X, codes.tolist(), strict=True):
                yield x, self.classes[code] if self.classes else code

    def blocks(self) -> Iterator[tuple[Floats, Any]]:
        """Yield the rows in blocks, for models that learn many rows at once.

        Yields
        ------
        X : (b, d) float64, read-only, b from 1 to 4096
        codes : (b,) int64 or float64
            Positions of the labels in `classes`, or the labels that are numbers.

        Raises
        ------
        ValueError, TypeError
            Columns, types, values or labels of a batch are not as declared; earlier blocks have been yielded.
        RuntimeError
            The frames can be read only once, and this stream has read them (ValueError if something else has).
        """
        if self._once and self._open is _spent:
            raise RuntimeError(f"{self.name} could be read only once and was: pass a list, a file or a whole frame")
        frames = self._open(self._columns if self._form.features is None else (*self._features, self._label))
        if self._once:
            self._open = _spent
        row, number = 0, -1
        for number, native in enumerate(frames):
            where = f"{self.name}, batch {number}" if number else self.name
            distinct_names(f"{where}, columns", map(str, columns_of(native) or ()))  # clearer than narwhals' message
            frame = eager(native, where)
            columns = [str(column) for column in frame.columns]
            self._check(columns, where)
            self._reader.check(frame, where)
            labels, start = frame[:, columns.index(self._label)], row
            for numbers in self._reader.read(frame, self.name, row, BLOCK):
                X = self._scaled(numbers, row)
                told = labels[row - start : row - start + len(X)].to_list()
                rows = np.arange(row, row + len(X))
                row += len(X)
                if self._drop_unlabelled:
                    known = self._labelled(told)
                    X, rows, told = X[known], rows[known], [told[i] for i in known]
                if len(rows):
                    codes = self._codes(told, rows)
                    X.setflags(write=False)
                    yield X, codes
        if number < 0 and self._once:
            raise ValueError(f"{self.name} must hold at least one batch, got none: was it read elsewhere?")

    def _check(self, columns: list[str], where: str) -> None:
        if self._form.features is None:
            if tuple(columns) != self._columns:
                raise ValueError(
                    f"{where} must have the columns of the first one, {list(self._columns)!r} in "
                    f"this order, got {columns!r}: name the features to take them by name"
                )
            return
        lost = [column for column in (*self._features, self._label) if column not in columns]
        if lost:
            raise ValueError(f"{where} must have a column {lost[0]!r}, got {columns!r}")

    def _scaled(self, X: Floats, row: int) -> Floats:
        if self._form.scaling is None:
            return X
        with np.errstate(over="ignore"):
            scaled: Floats = self._form.scaling(X)
        if not np.isfinite(scaled).all():
            i, j = np.argwhere(~np.isfinite(scaled))[0].tolist()
            raise ValueError(
                f"{self.name}, row {row + i}, column {self.features[j]!r} must stay finite when scaled, got {X[i, j]}"
            )
        return scaled

    def _labelled(self, labels: list[Any]) -> list[int]:
        """Return the positions of the labels that are not missing."""
        return [i for i, label in enumerate(labels) if not lacks_label(label, self.classes, names=False)]

    def _codes(self, labels: list[Any], rows: Integers) -> Integers | Floats:
        if not self.classes:
            return self._numbers(labels, rows)
        known = {label_key(label): code for code, label in enumerate(self.classes)}
        try:
            if {bool, np.bool_} & {*map(type, labels), *map(type, self.classes)}:
                return np.array([known[label_key(label)] for label in labels], np.int64)
            plain = {label: code for (_, label), code in known.items()}  # five times as fast
            return np.array([plain[label] for label in labels], np.int64)
        except (KeyError, TypeError):
            for i, label in zip(rows, labels, strict=True):
                if not _hashed(label) or label_key(label) not in known:
                    gap = "; drop_unlabelled=True drops rows without a label" if lacks_label(label, (), False) else ""
                    raise ValueError(
                        f"{self.name}, row {i}, column {self._label!r} must be one of the classes {self.classes!r}, "
                        f"got {label!r}{gap}"
                    ) from None
            raise

    def _numbers(self, labels: list[Any], rows: Integers) -> Floats:
        for i, label in zip(rows, labels, strict=True):
            try:
                finite_label(label, python_label)
            except ValueError as error:
                raise ValueError(f"{self.name}, row {i}, column {self._label!r}: {error}") from None
        return np.array(labels, np.float64)


def from_frames(
    frames: Any,
    label: str,
    *,
    classes: Sequence[Label] | Literal["numbers"],
    features: Sequence[str] | None = None,
    schema: Mapping[str, Kind] | None = None,
    scaling: Scaling | None = None,
    name: str = "frames",
    drop_unlabelled: bool = False,
) -> FrameStream:
    """Return a stream over the rows of data frames that come in batches, in bounded memory.

    Columns become numbers in blocks of 4096 rows, whose rows are then yielded one by one: tens of times faster than
    asking a frame for each row. Every batch is checked: names and order of its columns, their types, every value.
    Text, truth values, dates, categories and missing values are refused, and the message says what to do.

    Everything is declared beforehand: rows that are still to come have no known labels, median or mean (see `Form`).
    For a frame in memory, whose labels can be looked up, there is `from_arrays(frame[features], frame[label])`.

    Parameters
    ----------
    frames : frame, file or batches
        A data frame (pandas, polars, Arrow table or record batch, whatever narwhals knows); a path of a .parquet,
        .arrow or .feather file, of which only the columns needed are read; a polars `LazyFrame`; a pyarrow
        `RecordBatchReader` or anything else with an Arrow stream; or any iterable of frames and record batches. An
        iterator or reader can be read once, the others start anew at every loop. The small batches of a file, table
        or Arrow stream are joined; frames of an iterable are not, so their rows come without delay.
    label : str
        Name of the label's column. Names that are not text, as pandas allows, become text.
    classes : sequence of distinct labels, or "numbers"
        The label set, in class order; or labels are finite numbers.
    features : sequence of distinct str, optional
        The columns to read, by name: batches may then have further columns, in any order. By default all but the
        label; every batch must then have the same columns in the same order.
    schema : mapping from column to Numeric, Nominal, Ordinal or Skip, optional
        As in `Form`: a Nominal needs its values. Null, None, NaN, NaT and pandas.NA count as the kind's `missing`
        text: a Numeric fills them, a Nominal takes them as a value. Kinds without `missing` refuse them.
    scaling : Scaling, optional
        Applied to the encoded objects.
    name : str
        For messages and records.
    drop_unlabelled : bool, default False
        Whether to leave out rows whose label is missing: null, None, NaN, or text such as "", "?", nan, unless it is
        a class. False: they are an error.

    Returns
    -------
    FrameStream

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. While iterating: a batch is not as declared; rows count from 0 over all
        batches.
    ImportError
        A file or Arrow stream needs pyarrow, which is not installed.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"width": [0.5, 1.5], "colour": ["red", "blue"], "y": [0, 1]})
    >>> from streams import Nominal
    >>> stream = from_frames(frame, "y", classes=[0, 1], schema={"colour": Nominal(("blue", "red"))})
    >>> stream.features
    ('width', 'colour=blue', 'colour=red')
    >>> [(x.tolist(), y) for x, y in stream]
    [([0.5, 0.0, 1.0], 0), ([1.5, 1.0, 0.0], 1)]
    >>> list(from_frames(frame, "y", classes=[0, 1]))
    Traceback (most recent call last):
    TypeError: frames, column 'colour' must hold numbers, got String: declare it in a schema as Nominal(values),
    Ordinal(values) or Skip(), or drop it
    """
    if not isinstance(label, str):
        raise TypeError(f"label must be the name of a column, got {label!r}: names are taken as text")
    form = Form(features, classes if are_numbers(classes) else label_set(classes), schema, scaling)
    open_, columns, once = source(frames)
    return FrameStream(
        open_,
        distinct_names("columns", map(str, columns)),
        label,
        form,
        name,
        once,
        flag("drop_unlabelled", drop_unlabelled),
    )


class _Reader:
    """Turns the columns of frames into numbers by the kinds of a schema."""

    def __init__(self, features: tuple[str, ...], schema: Mapping[str, Kind]) -> None:
        kinds = kinds_of(features, schema)
        self._columns = [(name, kind, dict[str, int]()) for name, kind in kinds.items() if not isinstance(kind, Skip)]
        self._plain = not schema
        self.encoded = distinct_names("features", encoded_names(kinds))
        if not self.encoded:
            raise ValueError("features must leave at least one column, got none")

    def check(self, frame: Any, where: str) -> None:
        """Refuse a narwhals frame whose columns are of other types than declared; the error names all of them."""
        place, types = _places(frame), list(frame.schema.values())
        numeric = [(feature, place[feature]) for feature, kind, _ in self._columns if isinstance(kind, Numeric)]
        strange = [(feature, _no_number(types[j], frame, j)) for feature, j in numeric]
        wrong = [f"{where}, column {feature!r} must hold numbers, got {found}" for feature, found in strange if found]
        if wrong:
            raise TypeError("\n".join(wrong))

    def read(self, frame: Any, name: str, row: int, size: int) -> Iterator[Floats]:
        """Yield the encoded rows of a checked frame, `size` at a time; its first row has the number `row`."""
        place = _places(frame)
        frame = frame[:, [place[feature] for feature, _, _ in self._columns]]
        for start in range(0, len(frame), size):
            part = frame[start : start + size]
            values = part.to_numpy() if self._plain else None
            if values is None or values.dtype.kind not in "iuf":
                X = self._each(part, name, row + start)
            else:
                X = np.array(values, np.float64, order="C")
            if not np.isfinite(X).all():
                self._refuse(X, name, row + start, part, place)
            yield X

    def _each(self, frame: Any, name: str, row: int) -> Floats:
        """Return the encoded rows, column by column."""
        blocks: list[Floats] = []
        for j, (feature, kind, found) in enumerate(self._columns):
            series = frame[:, j]
            if isinstance(kind, Numeric):
                column = np.asarray(series.to_numpy(), np.float64)
            else:
                cells = enumerate(series.to_list(), row)
                codes = [_code(cell, kind, found, f"{name}, row {i}, column {feature!r}") for i, cell in cells]
                column = np.array(codes, np.float64)
            try:
                blocks.append(kind.encode(feature, column, found)[1])
            except Refused as error:
                raise ValueError(f"{name}, column {feature!r} {error}") from None
        return np.hstack(blocks)

    def _refuse(self, X: Floats, name: str, row: int, frame: Any, place: Mapping[str, int]) -> None:
        i, j = np.argwhere(~np.isfinite(X))[0].tolist()
        feature = self.encoded[j]  # numeric, so it has its column's name
        k = [name for name, _, _ in self._columns].index(feature)
        shown = "a missing value" if frame[:, k].is_null()[i] else f"{X[i, j]}"
        raise ValueError(
            f"{name} must be finite, got {shown} at row {row + i}, column {place[feature]} ({feature!r}): "
            f"drop the row, or fill it by a fixed rule, as schema={{{feature!r}: Numeric('?', fill=NUMBER)}} does"
        )


def _places(frame: Any) -> dict[str, int]:
    return {str(column): j for j, column in enumerate(frame.columns)}


def _code(cell: Any, kind: Kind, found: dict[str, int], where: str) -> float:
    """Return the code of a cell in a column of text."""
    if is_missing(cell):
        if not isinstance(kind, Nominal):
            raise ValueError(f"{where} is missing, got {cell!r}: drop the row")
        if kind.missing is None:
            raise ValueError(f"{where} is missing, got {cell!r}: drop the row, or declare Nominal(values, missing='?')")
        cell = missing_texts(kind)[0]
    if not isinstance(cell, str):
        raise ValueError(f"{where} must be text, got {cell!r}: cast the column to str")
    try:
        return kind.read(cell, found)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None


def _no_number(dtype: Any, frame: Any, j: int) -> str:
    """Return what column j of a frame holds, of this type, and what to do about it; empty if it holds numbers."""
    kind = str(dtype).split("(")[0]
    if dtype.is_float() or (dtype.is_integer() and "128" not in kind):
        return ""
    series = frame[:, j]
    kinds = "declare it in a schema as Nominal(values), Ordinal(values) or Skip()"
    known = series.drop_nulls().head(1).to_list()
    if not known and len(series):
        advice = "it holds missing values only: drop it"
    elif kind == "Boolean":
        advice = "cast it to float, where 0 and 1 are meant"
    elif dtype.is_temporal():
        advice = "turn it into a number that means something, such as seconds since a fixed moment, or drop it"
    elif dtype.is_decimal() or dtype.is_integer():
        advice = "cast it to float, where rounding does no harm"
    elif kind in ("Categorical", "Enum") and known and not isinstance(known[0], str):
        advice = f"cast it to a type of numbers; or, where they are names, cast it to str and {kinds}"
    elif kind in ("String", "Categorical", "Enum"):
        advice = f"{kinds}, or drop it"
    else:
        advice = "cast it to a type of numbers, or drop it"
    return f"{kind}: {advice}"


def _spent(columns: Sequence[str]) -> Iterator[Any]:
    """Stand for a source that can be read only once and has been read."""
    return iter(())


def _hashed(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
