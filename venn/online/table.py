"""Tables of what a run said and what came true: for data frames, CSV and Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from venn.labels import read_labels
from venn.monitors.kind import Recalled
from venn.monitors.kinds import kind_of
from venn.online.chain import JournalError, QuestionRow, decode, decode_object, open_to_read, read_header, whole
from venn.parameters import path_of

MISSING = "needs the package {0}: pip install {0}"
BACKENDS = ("pandas", "polars", "pyarrow")
Columns = dict[str, list[Any]]


def of_record(record: Any) -> Columns:
    """Return one row for each step of a `Record`: the step, the true label, and what each predictor said."""
    space, n = record.space, len(record)
    columns: Columns = {"step": [*range(1, n + 1)], "y": [space.decode(code) for code in record.truth.tolist()]}
    for name in record.names:
        steps, kind, guaranteed = record.outcomes(name), record.kind(name), record.guaranteed[name]
        for step in range(n):
            said = kind.recalled(steps, step, record.classes, guaranteed)
            plain = said._asdict() if isinstance(said, Recalled) else kind.plain(said)
            plain = {key: value for key, value in plain.items() if key not in ("kind", "guaranteed")}
            if "log_loss" in kind.means:
                plain["probability_of_y"] = float(steps.probability[step])
            _put(columns, step, name, plain)
    return columns


def of_journal(path: Path) -> Columns:
    """Return one row for each question of a journal, in their order; all of it is compared with its checksums."""
    with closing(open_to_read(path)) as db:
        header = read_header(db, path)
        space, names = read_labels(header), tuple(header["names"])
        columns: Columns = {name: [] for name in ("id", "event", "time", "y", "y_event", "y_time", "expired")}
        rows: dict[int, int] = {}
        for event in whole(db, path):
            if isinstance(event, QuestionRow):
                row = rows[event.event] = len(columns["id"])
                first = (event.id, event.event, event.time, None, None, None, False)
                for column, value in zip(columns.values(), first, strict=False):
                    column.append(value)
                x = decode_object(event.x)
                values = (x.toarray() if hasattr(x, "toarray") else x).ravel().tolist()
                _put(columns, row, "x", {str(place): value for place, value in enumerate(values)})
                for name, prediction in decode(event.predictions, names, space).items():
                    _put(columns, row, name, kind_of(prediction, name).plain(prediction))
            else:
                row = rows[event.question]
                columns["y_event"][row], columns["y_time"][row] = event.event, event.time
                columns["expired"][row] = event.truth is None
                columns["y"][row] = None if event.truth is None else space.decode(event.truth)
    if len({type(one) for one in columns["id"]}) > 1:  # a column has one type
        columns["id"] = [str(one) for one in columns["id"]]
    return _filled(columns, len(columns["id"]))


def _put(columns: Columns, row: int, name: str, values: Mapping[str, Any]) -> None:
    """Put nested values into a row: each in the column of its names, joined by dots."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _put(columns, row, f"{name}.{key}", value)
        elif isinstance(value, list | tuple):
            _put(columns, row, f"{name}.{key}", dict(zip(("lower", "upper"), value, strict=True)))
        else:
            column = columns.setdefault(f"{name}.{key}", [])
            column += [None] * (row - len(column))
            column.append(value)


def _filled(columns: Columns, n: int) -> Columns:
    return {name: column + [None] * (n - len(column)) for name, column in columns.items()}


def frame(columns: Columns, backend: str) -> Any:
    """Return a data frame of a package that is installed.

    Raises
    ------
    ValueError
        The package is none of those known.
    ImportError
        It is not installed.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    import narwhals

    try:
        return narwhals.from_dict(columns, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(f"a table of {backend} {MISSING.format(backend)}") from error


def write(columns: Columns, path: Path) -> None:
    """Write a .csv file, or a .parquet file, which needs pyarrow."""
    if path.suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(columns)
            out.writerows(zip(*columns.values(), strict=True))
        return
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"a .parquet file {MISSING.format('pyarrow')}; a .csv file needs nothing") from error
    parquet.write_table(pyarrow.table(columns), path)


def export(journal: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write a journal's questions, predictions and labels as a table, one row for each question; a run may go on.

    Columns: `id`, `event`, `time` (seconds since 1970) of the question; its label `y`, with `y_event` and `y_time`,
    empty where none has come; `expired`, whether it was given up; `x.0`, `x.1`, ... the object; and all that each
    predictor said, such as `forecast.label`, `forecast.probabilities.no`, `intervals.intervals.no.lower`.

    Parameters
    ----------
    journal, out : str or path
        `out` ends in .csv or .parquet, and must not exist.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    JournalError
        There is no journal, or it is damaged.
    ValueError, FileExistsError
        `out` is not as described.
    ImportError
        A .parquet file without the package pyarrow.

    Examples
    --------
    >>> import tempfile, venn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, ["no", "yes"]))
    ...     with venn.Online(model, journal=f"{folder}/run.db") as online:
    ...         said = online.ask([0.5], id="first")
    ...         alarms = online.answer("first", "yes")
    ...     rows = export(f"{folder}/run.db", f"{folder}/run.csv")
    ...     print(Path(folder, "run.csv").read_text().splitlines()[0])
    id,event,time,y,y_event,y_time,expired,x.0,Conformal.label,Conformal.p_values.no,Conformal.p_values.yes,Conformal.guaranteed
    """
    source, target = path_of("journal", journal), path_of("out", out)
    if target.suffix not in (".csv", ".parquet"):
        raise ValueError(f"out must end in .csv or .parquet, got {str(target)!r}")
    if target.exists():
        raise FileExistsError(f"out must be a new file, and {target} exists")
    try:
        columns = of_journal(source)
    except (TypeError, LookupError) as error:
        raise JournalError(f"{source} cannot be read: {error}") from error
    write(columns, target)
    return len(columns["id"])
