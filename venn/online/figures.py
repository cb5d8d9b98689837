"""The tables and figures of a record, and the curves of several records together; `venn.show.plot` draws them."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venn.labels import read_labels
from venn.monitors.bounds import DeviationBand
from venn.monitors.calibration import reliability
from venn.monitors.martingales import CompositeJumper
from venn.monitors.sources import level_shares, usual_sources
from venn.online.chain import (
    FEATURES,
    JournalError,
    QuestionRow,
    decode,
    decode_object,
    open_to_read,
    read_header,
    whole,
)
from venn.online.forecaster import watched
from venn.parameters import fraction, path_of
from venn.prediction import ERROR_RATE, LEVELS, LOG_LOSS, NOTHING, PREDICTED_LABEL, Floats, plain
from venn.show import plot

# ---------------------------------------------------------------------------------------------------------------- table
# Tables of what a run said and what came true: for data frames, CSV and Parquet.

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
            row = {key: value for key, value in plain(said).items() if key != "guaranteed"}
            if "log_loss" in kind.means:
                row["probability_of_y"] = float(steps.probability[step])
            _put(columns, step, name, row)
    return columns


def of_journal(path: Path) -> Columns:
    """Return one row for each question of a journal, in their order; all of it is compared with its checksums."""
    with closing(open_to_read(path)) as db:
        header = read_header(db, path)
        space, names = read_labels(header), tuple(header["names"])
        columns: Columns = {name: [] for name in ("id", "event", "time", "y", "y_event", "y_time", "expired")}
        rows: dict[int, int] = {}
        named = _features(db, path)
        for event in whole(db, path):
            if isinstance(event, QuestionRow):
                row = rows[event.event] = len(columns["id"])
                first = (event.id, event.event, event.time, None, None, None, False)
                for column, value in zip(columns.values(), first, strict=False):
                    column.append(value)
                _put(columns, row, "x", _cells(decode_object(event.x), named))
                for name, prediction in decode(event.predictions, names, space).items():
                    _put(columns, row, name, plain(prediction))
            else:
                row = rows[event.question]
                columns["y_event"][row], columns["y_time"][row] = event.event, event.time
                columns["expired"][row] = event.truth is None
                columns["y"][row] = None if event.truth is None else space.decode(event.truth)
    return _filled(columns, len(columns["id"]))


def _cells(x: Any, named: dict[int, list[str]]) -> dict[str, Any]:
    """Return the values of an object by name, or by place where no name is known."""
    if isinstance(x, dict):
        return x
    values = x if isinstance(x, list) else (x.toarray() if hasattr(x, "toarray") else x).ravel().tolist()
    return dict(zip(named.get(len(values)) or map(str, range(len(values))), values, strict=True))


def _features(db: sqlite3.Connection, path: Path) -> dict[int, list[str]]:
    """Return the names of objects' values that a journal holds, by their number; of several sources the last one's."""
    try:
        found = db.execute("SELECT position FROM positions WHERE source LIKE ?", (f"{FEATURES}%",))
        return {len(names): names for names in (json.loads(text) for (text,) in found)}
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise JournalError(f"{path} cannot be read: {error}") from error


def _typed(columns: Columns) -> Columns:
    """Return columns of one type each: text where values are numbers and text, as labels and ids may be."""
    typed = {}
    for name, column in columns.items():
        kinds = {type(one) for one in column if one is not None}
        text = len(kinds) > 1 and not kinds <= {int, float}
        typed[name] = [None if one is None else str(one) for one in column] if text else column
    return typed


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
    """Return a data frame of a package that is installed; in those of polars and pyarrow mixed labels are text.

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
        columns = columns if backend == "pandas" else _typed(columns)
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
    parquet.write_table(pyarrow.table(_typed(columns)), path)


def export(journal: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write a journal's questions, predictions and labels as a table, one row for each question; a run may go on.

    Columns: `id`, `event`, `time` (seconds since 1970) of the question; its label `y`, with `y_event` and `y_time`,
    empty where none has come; `expired`, whether it was given up; the object, as `x.age`, `x.city`, ... where the names
    of its values are known, and `x.0`, `x.1`, ... elsewhere; and all that each predictor said, such as
    `forecast.label`, `forecast.probabilities.no`, `intervals.intervals.no.lower`. In a .parquet file ids and labels of
    two types are text.

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


# -------------------------------------------------------------------------------------------------------------- figures
# The figures of a record: which numbers of which predictors are drawn; `venn.show.plot` draws them.

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Target = str | os.PathLike[str] | None
LEVEL = 0.01  # chance that any path of evidence ever rings falsely
BAND = 0.05  # chance that an accuracy ever leaves the band drawn about its bounds


def draw_curves(record: Any, path: Target = None) -> Figure:
    """Draw accuracy, claimed bounds and, where the predicted label is guaranteed, a band about them."""
    curves: dict[str, Any] = {name: record[name] for name in _showing(record, "curves")}
    _drawable(record, curves, "probabilities")
    steps = np.arange(1, len(record) + 1)
    allowed = DeviationBand(BAND).update_many(np.zeros(len(record)))[:, 1] / steps
    panels = {}
    for name, c in curves.items():
        known = record.guaranteed[name] == PREDICTED_LABEL
        band = (c.lower - allowed, c.upper + allowed) if known else None
        panels[name] = plot.Curve(c.accuracy, c.lower, c.upper, c.interval, band)
    return plot.curves(panels, title=record.title, path=path)


def draw_errors(record: Any, path: Target = None) -> Figure:
    """Draw how many prediction sets missed the true label."""
    sets: dict[str, Any] = {name: record[name] for name in _showing(record, "errors")}
    _drawable(record, sets, "prediction sets")
    errors = {name: {level: c.errors(level).astype(float) for level in LEVELS} for name, c in sets.items()}
    return plot.errors(errors, title=record.title, path=path)


def draw_martingales(record: Any, path: Target = None, level: float = LEVEL, seed: int = 0) -> Figure:
    """Draw test martingales of all p-values and, for point forecasts, e-processes.

    The thresholds and alarms are those of `Ville` and `ForwardEProcess` in a `Monitor` of this level and seed.
    """
    level = fraction("level", level)
    logs: dict[str, Floats] = {}
    levels: dict[str, float] = {}
    for name in record:
        of = _by_source(record, name, seed)
        # A monitor divides its level among the sources, and for an event between this martingale and a band.
        restarts = record.restarts.get(name, ())
        guaranteed = str(record.guaranteed.get(name))
        each = level / (1 if guaranteed == ERROR_RATE else 2) / (len(restarts) + 1)
        shares = level_shares(usual_sources(guaranteed, record.classes))
        for (full, p), share in zip(of.items(), shares, strict=True):
            periods = np.split(p, [step for step in restarts if step < len(p)])
            logs[full] = np.concatenate([CompositeJumper().update_many(one) for one in periods])
            levels[full] = share * each
    of_label = level * level_shares(usual_sources(PREDICTED_LABEL, record.classes))[0]
    for name in _showing(record, "martingales"):
        logs[name], levels[name] = record.kind(name).evidence_path(record.outcomes(name)), of_label
    _drawable(record, logs, "something to bet against")
    paths = {name: values / np.log(10) for name, values in logs.items()}
    first = {name: (values >= -np.log(levels[name])).argmax() for name, values in logs.items()}
    rung = {name: [int(step) + 1] for name, step in first.items() if logs[name][step] >= -np.log(levels[name])}
    thresholds = {f"{1 / one:,.0f} to 1": -float(np.log10(one)) for one in sorted(set(levels.values()), reverse=True)}
    return plot.martingales(paths, thresholds, rung, title=record.title, path=path)


def draw_p_values(record: Any, path: Target = None, seed: int = 0) -> Figure:
    """Draw histograms of the p-values that a monitor would bet on."""
    panels = _all_p_values(record, seed)
    _drawable(record, panels, "p-values")
    return plot.p_values(panels, title=record.title, path=path)


def draw_reliability(record: Any, path: Target = None) -> Figure:
    """Draw the share of correct predicted labels against their probability by the point forecasts."""
    diagrams = {}
    for name in _showing(record, "reliability"):
        o = record.outcomes(name)
        d = reliability(np.clip(o.confidence, 0.0, 1.0), o.predicted == o.truth)
        claimed = record.guaranteed[name] in (NOTHING, LOG_LOSS)
        diagrams[name] = plot.Diagram(d.confidence, d.frequency, d.counts, d.low, d.high, d.ece, claimed)
    _drawable(record, diagrams, "probabilities")
    return plot.reliability(diagrams, title=record.title, path=path)


#: By the names that kinds of prediction use for their figures.
FIGURES: dict[str, Callable[[Any, Target], Figure]] = {
    "curves": draw_curves, "errors": draw_errors, "martingales": draw_martingales, "p_values": draw_p_values,
    "reliability": draw_reliability,
}  # fmt: skip


def applicable(record: Any) -> list[str]:
    """Return the names of all figures that apply."""
    _drawable(record, True, "")
    wanted = {figure for name in record for figure in record.kind(name).figures}
    if _all_p_values(record, 0):
        wanted |= {"martingales", "p_values"}
    return [figure for figure in FIGURES if figure in wanted]


def draw_all(record: Any, folder: str | os.PathLike[str], names: Sequence[str] | None = None) -> list[Path]:
    """Draw figures, by default all that apply, into a folder; return the files. Predictors share one level."""
    written = []
    for figure in applicable(record) if names is None else names:
        written.append(Path(folder, f"{figure}.png"))
        if figure == "martingales":
            draw_martingales(record, written[-1], LEVEL / (len(watched(record.names)) + 1))
        else:
            FIGURES[figure](record, written[-1])
    return written


def _showing(record: Any, figure: str) -> list[str]:
    """Return the predictors that a figure shows, which their kind of prediction decides."""
    return [name for name in record if len(record) and figure in record.kind(name).figures]


def _all_p_values(record: Any, seed: int) -> dict[str, Floats]:
    """Return the p-values of all predictors, by name; where one has several sources, by name and source."""
    return {full: p for name in record for full, p in _by_source(record, name, seed).items()}


def _by_source(record: Any, name: str, seed: int) -> dict[str, Floats]:
    """Return the p-values of one predictor, by its name; where it has several sources, by name and source."""
    found = record.p_values(name, seed)
    return {f"{name}: {source}" if len(found) > 1 else name: p for source, p in found.items()}


def _drawable(record: Any, found: Any, wanted: str) -> None:
    if not len(record):
        raise ValueError("a record without steps has nothing to draw")
    if not found:
        raise ValueError(f"the figure needs a predictor that gives {wanted}, got {', '.join(record.names)}")
