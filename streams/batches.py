"""Data frames, opened wherever they come from: memory, files, Arrow streams, or an iterable of frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streams.checks import imported

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
