"""Streams of data frames of any library, whole or in batches; rows become numbers in blocks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from streams.checks import (
    MOST_NAMES,
    Floats,
    Label,
    are_numbers,
    distinct_names,
    flag,
    imported,
    is_missing,
    label_set,
    means_missing,
)
from streams.encoder import Column, Encoder, Labels, described, encoded, places_in
from streams.example import Scaling
from streams.form import Form
from streams.schema import PLAIN, WRITTEN, ColumnKind, Nominal, Numeric, Skip, is_number
from streams.troubles import Trouble, schema_to_add, to_know

#: Rows turned into numbers at a time, so that they share a frame's overhead: at 1024 rows it is half the time.
BLOCK = 4096
FILES = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}

Opened = tuple[Callable[[Sequence[str]], Iterator[Any]], list[Any], bool]


def columns_of(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any kind, None for anything else; imports nothing."""
    if not hasattr(type(X), "columns"):  # the class is asked: a lazy polars frame itself would warn
        return None
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names())
    return list(X.column_names if hasattr(X, "column_names") else X.columns)  # Arrow's `columns` holds data


def eager(X: Any, where: str) -> Any:
    """Return the frame as a narwhals DataFrame, or say what is wrong with it."""
    import narwhals

    if type(X).__name__ == "RecordBatch":
        X = _pyarrow().Table.from_batches([X])
    try:
        frame = narwhals.from_native(X)
    except TypeError:
        raise TypeError(
            f"{where} must be a data frame known to narwhals (pandas, polars, Arrow, ...), got {X!r}"
        ) from None
    if not isinstance(frame, narwhals.DataFrame):
        raise TypeError(
            f"{where} must be a data frame in memory, got a {type(X).__name__}: collect it, or give its parts, one "
            "after the other, to streams.from_frames"
        )
    return frame


def source(frames: Any) -> Opened:
    """Return a function that opens the columns it is given, all column names, and whether it can open only once."""
    if isinstance(frames, str | os.PathLike):
        return _file(Path(frames))
    if isinstance(frames, str | bytes | Mapping | np.ndarray):
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got a {type(frames).__name__}")
    if hasattr(frames, "collect_batches"):  # polars
        names = list(frames.collect_schema().names())
        return lambda wanted: iter(frames.select(wanted).collect_batches(maintain_order=True)), names, False
    if hasattr(frames, "read_next_batch"):  # a reader of Arrow's
        return lambda wanted: _gathered(frames), list(frames.schema.names), True
    columns = columns_of(frames)
    if columns is not None and hasattr(frames, "to_reader"):  # a table of Arrow's
        return lambda wanted: _gathered(frames.select(list(wanted)).to_reader()), columns, False
    if columns is not None and (hasattr(frames, "to_numpy") or not hasattr(frames, "__arrow_c_stream__")):
        return lambda wanted: iter((frames,)), columns, False
    if hasattr(frames, "__arrow_c_stream__"):
        if columns is not None:  # a query
            return lambda wanted: _gathered(_reader(frames)), columns, False
        reader = _reader(frames)
        return lambda wanted: _gathered(reader), list(reader.schema.names), True
    return _iterable(frames)


def _iterable(frames: Any) -> Opened:
    """Open an iterable of frames; the first frame shows the columns."""
    if not isinstance(frames, Iterable):
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got {frames!r}")
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise ValueError("frames must hold at least one frame, got none")
    columns = columns_of(first)
    if columns is None:
        raise TypeError(f"frames must be a data frame, a file, or batches of frames, got a batch {first!r}")
    # The first loop continues with the iterator opened here: opening again may be slow, or cut a file short.
    opened = [_resumed([first], iterator)]
    again = iter if iterator is not frames else None
    return lambda wanted: opened.pop() if opened or again is None else again(frames), columns, again is None


def _resumed(held: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    """Yield the held frame, release it, then yield the rest."""
    yield held.pop()
    yield from rest


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield record batches of one schema as tables, joining small ones: a batch of one row costs as much as a block.

    Frames that a program gives one after the other are not joined: it may want the rows of each at once.
    """
    table = _pyarrow().Table
    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows >= BLOCK:
            yield table.from_batches(held).combine_chunks()
            held, rows = [], 0
    if held:
        yield table.from_batches(held).combine_chunks()


def _file(path: Path) -> Opened:
    form = FILES.get(path.suffix)
    if form is None:
        raise ValueError(f"frames must be a file of {', '.join(FILES)}, got {path}: from_csv reads CSV files")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    _pyarrow()
    from pyarrow import dataset

    table = dataset.dataset(path, format=form)
    # Nothing is read ahead, so nothing unused is held in memory.
    return (
        lambda wanted: _gathered(table.to_batches(columns=list(wanted), batch_readahead=1, fragment_readahead=1)),
        list(table.schema.names),
        False,
    )


def _reader(frames: Any) -> Any:
    """Return the reader of an Arrow stream; refuse a stream of a single column."""
    pyarrow = _pyarrow()
    try:
        return pyarrow.RecordBatchReader.from_stream(frames)
    except pyarrow.ArrowInvalid:
        raise TypeError(
            f"frames must be a data frame, a file, or batches of frames, got a {type(frames).__name__} of one column"
        ) from None


def _pyarrow() -> Any:
    return imported("pyarrow", "Arrow and Parquet need pyarrow")


def whole_frame(X: Any, names: Sequence[str], schema: Mapping[str, ColumnKind]) -> tuple[Floats, Encoder]:
    """Return the numbers of a frame in memory (n, d) and their encoder; `names` are those of its columns."""
    frame = eager(X, "X")
    if 0 in frame.shape:
        raise ValueError(f"X must hold at least one example and one feature, got shape {frame.shape}")
    frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    columns = described(names, schema)
    check_types(frame, columns, "X", whole=True)
    return encoded(columns, cells_of(frame, columns), places_in("X", names))


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
        self._encoder = Encoder(described(self._features, form.schema))
        self._labels = Labels.of(form.classes, drop_unlabelled)
        self.classes = self._labels.classes or ()
        self.features = self._encoder.names
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

    def encode(self, row: Any) -> Floats:
        """Return a new row, a mapping from column to value or a sequence of values, as an object x: see `Stream`."""
        return self._encoder.object(row, self._form.scaling)

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
            check_types(frame, self._encoder.columns, where)
            for start in range(0, len(frame), BLOCK):
                X, codes = self._encoded(frame[start : start + BLOCK], row)
                row += len(X)
                known = ~np.isnan(codes)
                if not known.all():
                    X, codes = X[known], codes[known]
                if len(codes):
                    X.setflags(write=False)
                    yield X, codes if self._labels.numbers else codes.astype(np.int64)
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

    def _encoded(self, frame: Any, first: int) -> tuple[Floats, Floats]:
        """Return the rows of a part of a frame, whose first row has a number, and the codes of their labels."""
        where = places_in(self.name, self._features, first)
        X = self._encoder.encode(cells_of(frame, self._encoder.columns), where)
        if self._form.scaling is not None:
            with np.errstate(over="ignore"):
                scaled: Floats = self._form.scaling(X)
            for i, j in np.argwhere(~np.isfinite(scaled))[:1].tolist():
                at = f"{self.name}, row {first + i}, column {self.features[j]!r}"
                raise ValueError(f"{at} must stay finite when scaled, got {X[i, j]}")
            X = scaled
        labels = frame[:, _places(frame)[self._label]].to_list()
        rows = range(first, first + len(labels))
        return X, self._labels.encode(labels, lambda row: f"{self.name}, row {row}, column {self._label!r}", rows)


def from_frames(
    frames: Any,
    label: str,
    *,
    classes: Sequence[Label] | Literal["numbers"],
    features: Sequence[str] | None = None,
    schema: Mapping[str, ColumnKind] | None = None,
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
    skip 'colour': it has another text in each row, as an identifier has
    add to schema: {'colour': streams.Skip()}
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


def check_types(frame: Any, columns: Sequence[Column], where: str, whole: bool = False) -> None:
    """Refuse a narwhals frame whose columns are of other types than declared; the error names all of them.

    Its last line has what to add to a schema, as the texts of this frame show it; `whole`, if no others come.
    """
    places, types = _places(frame), list(frame.schema.values())
    numeric = [column.name for column in columns if isinstance(column.kind, Numeric) and not _is_written(column.kind)]
    strange = [(name, _no_number(types[places[name]], frame, places[name])) for name in numeric]
    wrong = {name: found for name, found in strange if found}
    if wrong:
        kinds = {name: _kind_for(frame[:, places[name]], name, found, whole) for name, found in wrong.items()}
        lines = [f"{where}, column {name!r} must hold numbers, got {found}" for name, found in wrong.items()]
        schema = schema_to_add({name: kind for name, (kind, _) in kinds.items()})
        raise TypeError("\n".join([*lines, *to_know(kinds), schema]))


def _is_written(kind: Numeric) -> bool:
    """Whether numbers are declared to be written in another way than Python's: their column may hold text."""
    return any(getattr(kind, key) != getattr(Numeric, key) for key in WRITTEN)


def _kind_for(series: Any, name: str, found: str, whole: bool) -> tuple[ColumnKind, str]:
    """Return the kind that would read a column, by its texts, and what to know of it."""
    cells = series.to_list()
    if not all(isinstance(cell, str) or is_missing(cell) for cell in cells) or all(map(is_missing, cells)):
        return Skip(), found.partition(": ")[2]
    texts = Counter(cells)
    known = {"" if is_missing(text) else text for text in texts}
    strange = tuple(sorted(text for text in known if not is_number(text)))[: MOST_NAMES + 1]
    kind, words = Trouble(name, 0, "", "", PLAIN, min(len(known), MOST_NAMES + 1), strange).reading(len(series))
    if isinstance(kind, Numeric) and not _is_written(kind):
        return Skip(), "it holds numbers as text: cast it to float to keep it"
    if isinstance(kind, Numeric) and kind.fill is not None and not whole:
        values = [kind.value(text) for text in texts.elements() if not is_missing(text)]
        return replace(kind, fill=float(f"{np.nanmedian(values):.6g}")), words
    if isinstance(kind, Nominal) and not whole:
        gaps = tuple(text for text in known if means_missing(text))
        return Nominal(tuple(sorted(known - {*gaps})), missing=gaps or None), words
    return kind, words


def cells_of(frame: Any, columns: Sequence[Column]) -> list[Any]:
    """Return the cells of columns of a narwhals frame: an array where they are numbers."""
    places = _places(frame)
    cells: list[Any] = []
    for column in columns:
        if isinstance(column.kind, Skip):
            cells.append(range(len(frame)))
            continue
        series = frame[:, places[column.name]]
        numeric = isinstance(column.kind, Numeric) and (series.dtype.is_numeric() or not _is_written(column.kind))
        cells.append(np.asarray(series.to_numpy(), np.float64) if numeric else series.to_list())
    return cells


def _places(frame: Any) -> dict[str, int]:
    return {str(column): j for j, column in enumerate(frame.columns)}


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
    """Return an empty source: the real one can be read only once and has been read."""
    return iter(())
