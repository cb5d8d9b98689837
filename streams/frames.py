"""Data frames of every kind, whole or in batches: blocks of rows as numbers, every column checked by name and type."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from streams.example import Floats, Integers, Kind, Label, Numeric, Scaling, Skip
from streams.form import Form
from streams.tables import distinct_names, label_set

BLOCK = 4096
"""Rows turned into numbers at a time: so many share the overhead of a frame, which makes half the time at 1024."""
FILES = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}


def columns_of(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any kind, None for anything else; nothing is imported for it."""
    if not hasattr(type(X), "columns"):  # of the class, as a lazy frame of polars warns when it is asked itself
        return None
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names())
    return list(X.column_names if hasattr(X, "column_names") else X.columns)  # those of Arrow's `columns` are data


def eager(X: Any) -> Any:
    """Return the frame as a narwhals DataFrame, or say what is wrong with it."""
    narwhals = _narwhals()
    if type(X).__name__ == "RecordBatch":
        import pyarrow

        X = pyarrow.Table.from_batches([X])
    try:
        frame = narwhals.from_native(X)
    except TypeError:
        raise TypeError(f"X must be a data frame known to narwhals (pandas, polars, Arrow, ...), got {X!r}") from None
    if not isinstance(frame, narwhals.DataFrame):
        raise TypeError(
            f"X must be a data frame in memory, got a {type(X).__name__}: collect it, or give its parts, one after the "
            "other, to streams.from_frames"
        )
    return frame


def read_numbers(frame: Any, features: Sequence[str]) -> Floats:
    """Return (n, d) finite numbers of a narwhals frame, or say which column and row holds something else."""
    return next(_Reader(tuple(features), {}, "X").read(frame, 0, len(frame)))


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
    ) -> None:
        self._open = open
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
        self._reader = _Reader(self._features, form.schema or {}, name)
        self.classes: tuple[Label, ...] = tuple(form.classes or ())
        self.features = self._reader.encoded
        self.name = name
        if form.scaling is not None and len(form.scaling.mean) != len(self.features):
            raise ValueError(
                f"scaling must have {len(self.features)} features, as the objects have, got {len(form.scaling.mean)}"
            )

    def __repr__(self) -> str:
        return f"<FrameStream {self.name!r}: {len(self.features)} features, {len(self.classes)} classes>"

    def __iter__(self) -> Iterator[tuple[Floats, Label]]:
        for X, codes in self.blocks():
            for x, code in zip(X, codes.tolist(), strict=True):
                yield x, self.classes[code]

    def blocks(self) -> Iterator[tuple[Floats, Integers]]:
        """Yield the rows a block at a time, for what learns many at once.

        Yields
        ------
        X : (b, d) float64, read-only, b from 1 to 4096
        codes : (b,) int64
            Positions of the labels in `classes`.

        Raises
        ------
        ValueError, TypeError
            By a batch whose columns, types, values or labels are not as declared; rows before its block have come.
        RuntimeError
            The frames could be read only once, and were.
        """
        if self._once and self._open is _spent:
            raise RuntimeError(f"{self.name} could be read only once and was: pass a list, a file or a whole frame")
        frames = self._open(self._columns if self._form.features is None else (*self._features, self._label))
        if self._once:
            self._open = _spent
        known = {label: code for code, label in enumerate(self.classes)}
        row = 0
        for number, native in enumerate(frames):
            frame = eager(native)
            self._check(list(frame.columns), number)
            labels, start = frame[self._label], row
            for numbers in self._reader.read(frame, row, BLOCK):
                X = self._scaled(numbers, row)
                codes = self._codes(labels[row - start : row - start + len(X)].to_list(), known, row)
                X.setflags(write=False)
                yield X, codes
                row += len(X)

    def _check(self, columns: list[str], number: int) -> None:
        if self._form.features is None:
            if tuple(columns) != self._columns:
                raise ValueError(
                    f"{self.name}, batch {number} must have the columns of the first one, {list(self._columns)!r} in "
                    f"this order, got {columns!r}: name the features to take them by name"
                )
            return
        lost = [column for column in (*self._features, self._label) if column not in columns]
        if lost:
            raise ValueError(f"{self.name}, batch {number} must have a column {lost[0]!r}, got {columns!r}")

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

    def _codes(self, labels: list[Any], known: dict[Label, int], row: int) -> Integers:
        try:
            return np.array([known[label] for label in labels], np.int64)
        except (KeyError, TypeError):
            for i, label in enumerate(labels):
                if not _hashed(label) or label not in known:
                    raise ValueError(
                        f"{self.name}, row {row + i}, column {self._label!r} must be one of the classes "
                        f"{self.classes!r}, got {label!r}"
                    ) from None
            raise


def from_frames(
    frames: Any,
    label: str,
    *,
    classes: Sequence[Label],
    features: Sequence[str] | None = None,
    schema: Mapping[str, Kind] | None = None,
    scaling: Scaling | None = None,
    name: str = "frames",
) -> FrameStream:
    """Return a stream over the rows of data frames that come in batches, in bounded memory.

    Columns become numbers in blocks of 4096 rows, then the rows of a block are handed out: tens of times faster than
    to ask a frame for one row after the other. Every batch is checked: names and order of its columns, their types,
    every value. Text, truth values, dates, categories and missing values are refused, with what to do about them.

    All is declared beforehand, as rows that have not come yet have no set of labels, no median and no mean: see
    `Form`. For a frame in memory whose labels may be looked up, there is `from_arrays(frame[features], frame[label])`.

    Parameters
    ----------
    frames : frame, file or batches
        A data frame (pandas, polars, Arrow table or record batch, whatever narwhals knows); a path of a .parquet,
        .arrow or .feather file, of which only the columns needed are read; a polars `LazyFrame`; a pyarrow
        `RecordBatchReader` or anything else with an Arrow stream; or any iterable of frames and record batches. An
        iterator or reader can be read once, the others start anew at every loop.
    label : str
        Name of the label's column.
    classes : sequence of distinct labels
        The label set, in class order.
    features : sequence of distinct str, optional
        The columns to read, by name: batches may then have others and any order. By default all but the label, and
        every batch must have the same in the same order.
    schema : mapping from column to Numeric, Nominal, Ordinal or Skip, optional
        As in `Form`: a Nominal needs its values. A Numeric with a `fill` takes null and NaN for missing.
    scaling : Scaling, optional
        Applied to the encoded objects.
    name : str
        For messages and records.

    Returns
    -------
    FrameStream

    Raises
    ------
    TypeError, ValueError
        A parameter is not that. While iterating: a batch is not as declared; rows are counted from 0 over all batches.
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
        raise TypeError(f"label must be the name of a column, got {label!r}")
    form = Form(features, label_set(classes), schema, scaling)
    open_, columns, once = _source(frames)
    return FrameStream(open_, distinct_names("columns", columns), label, form, name, once)


class _Reader:
    """Turns the columns of frames into numbers by the kinds of a schema."""

    def __init__(self, features: tuple[str, ...], schema: Mapping[str, Kind], name: str) -> None:
        for feature in schema:
            if feature not in features:
                raise ValueError(f"schema must name features of {features!r}, got {feature!r}")
        self._name = name
        kinds = {feature: schema.get(feature, Numeric()) for feature in features}
        self._columns = [(name, kind, dict[str, int]()) for name, kind in kinds.items() if not isinstance(kind, Skip)]
        self._plain = not schema
        names = [kind.encode(feature, np.zeros(1), {})[0] for feature, kind, _ in self._columns]
        self.encoded = distinct_names("features", chain.from_iterable(names))
        if not self.encoded:
            raise ValueError("features must leave at least one column, got none")

    def read(self, frame: Any, row: int, size: int) -> Iterator[Floats]:
        """Yield the encoded rows of a narwhals frame, `size` at a time; its first row has the number `row`."""
        place = {str(column): j for j, column in enumerate(frame.columns)}
        used = [place[feature] for feature, _, _ in self._columns]
        frame = frame[:, used]
        columns = [frame[:, j] for j in range(len(used))]
        for (feature, kind, _), series in zip(self._columns, columns, strict=True):
            if isinstance(kind, Numeric):
                _check_number(series, f"{self._name}, column {feature!r}")
        for start in range(0, len(frame), size):
            part = slice(start, start + size)
            values = frame[part].to_numpy() if self._plain else None
            if values is None or values.dtype.kind not in "iuf":
                X = self._each([series[part] for series in columns], row + start)
            else:
                X = np.array(values, np.float64, order="C")
            if not np.isfinite(X).all():
                self._refuse(X, row + start, [series[part] for series in columns])
            yield X

    def _each(self, columns: list[Any], row: int) -> Floats:
        """Return the encoded rows, column by column."""
        blocks: list[Floats] = []
        for (feature, kind, found), series in zip(self._columns, columns, strict=True):
            if isinstance(kind, Numeric):
                column = np.asarray(series.to_numpy(), np.float64)
            else:
                where = f"column {feature!r}"
                texts = enumerate(series.to_list(), row)
                column = np.array([self._code(text, kind, found, i, where) for i, text in texts], np.float64)
            blocks.append(kind.encode(feature, column, found)[1])
        return np.hstack(blocks)

    def _refuse(self, X: Floats, row: int, columns: list[Any]) -> None:
        i, j = np.argwhere(~np.isfinite(X))[0].tolist()
        feature = self.encoded[j]  # numeric, so it has its column's name
        place = [name for name, _, _ in self._columns].index(feature)
        shown = "a missing value" if columns[place].is_null()[i] else f"{X[i, j]}"
        raise ValueError(
            f"{self._name} must be finite, got {shown} at row {row + i}, column {j} ({feature!r}): "
            "drop the row, or fill it by a fixed rule"
        )

    def _code(self, text: Any, kind: Kind, found: dict[str, int], row: int, where: str) -> float:
        if not isinstance(text, str):
            raise ValueError(f"{self._name}, row {row}, {where} must be text, got {text!r}")
        try:
            return kind.read(text, found)
        except ValueError as error:
            raise ValueError(f"{self._name}, row {row}, {where} {error}") from None


def _check_number(series: Any, where: str) -> None:
    dtype = series.dtype
    if dtype.is_float() or dtype.is_integer():
        return
    kind = str(dtype).split("(")[0]
    if kind == "Boolean":
        advice = "cast it to float, where 0 and 1 are meant"
    elif dtype.is_temporal():
        advice = "turn it into a number that means something, such as seconds since a fixed moment, or drop it"
    elif dtype.is_decimal():
        advice = "cast it to float, where rounding does no harm"
    elif kind in ("String", "Categorical", "Enum"):
        advice = "declare it in a schema as Nominal(values), Ordinal(values) or Skip(), or drop it"
    elif series.null_count() == len(series):
        advice = "it holds missing values only: drop it"
    else:
        advice = "cast it to a type of numbers, or drop it"
    raise TypeError(f"{where} must hold numbers, got {kind}: {advice}")


Opened = tuple[Callable[[Sequence[str]], Iterator[Any]], list[Any], bool]


def _spent(columns: Sequence[str]) -> Iterator[Any]:
    """Mark a source that could be read once and was."""
    return iter(())


def _source(frames: Any) -> Opened:
    """Return what starts reading, given the columns needed; the names of all columns; whether it can start but once."""
    if isinstance(frames, str | os.PathLike):
        return _file(Path(frames))
    if isinstance(frames, str | bytes | Mapping | np.ndarray):
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got a {type(frames).__name__}")
    if hasattr(frames, "collect_batches"):  # polars
        names = list(frames.collect_schema().names())
        return lambda wanted: iter(frames.select(wanted).collect_batches(maintain_order=True)), names, False
    if hasattr(frames, "read_next_batch"):  # a reader of Arrow's
        return lambda wanted: iter(frames), list(frames.schema.names), True
    columns = columns_of(frames)
    if columns is not None and (hasattr(frames, "to_numpy") or not hasattr(frames, "__arrow_c_stream__")):
        return lambda wanted: iter((frames,)), list(eager(frames).columns), False
    if hasattr(frames, "__arrow_c_stream__"):
        if columns is not None:  # a table or record batch of Arrow's, or a query
            return lambda wanted: iter(_pyarrow().RecordBatchReader.from_stream(frames)), columns, False
        reader = _pyarrow().RecordBatchReader.from_stream(frames)
        return lambda wanted: iter(reader), list(reader.schema.names), True
    if not isinstance(frames, Iterable):
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got {frames!r}")
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise ValueError("frames must hold at least one frame, got none")
    columns = columns_of(first)
    if columns is None:
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got a batch {first!r}")
    if isinstance(frames, Iterator):
        return lambda wanted: chain((first,), iterator), columns, True
    return lambda wanted: iter(frames), columns, False


def _file(path: Path) -> Opened:
    form = FILES.get(path.suffix)
    if form is None:
        raise ValueError(f"frames must be a file of {', '.join(FILES)}, got {path}: from_csv reads CSV files")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    _pyarrow()
    from pyarrow import dataset

    table = dataset.dataset(path, format=form)
    # Nothing is read ahead: what is not asked for is not held.
    return (
        lambda wanted: table.to_batches(columns=list(wanted), batch_readahead=1, fragment_readahead=1),
        list(table.schema.names),
        False,
    )


def _narwhals() -> Any:
    try:
        import narwhals
    except ImportError:
        raise ImportError("data frames need narwhals: pip install 'vennstream[frames]'") from None
    return narwhals


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError("Arrow and Parquet need pyarrow: pip install 'vennstream[frames]'") from None
    return pyarrow


def _hashed(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
