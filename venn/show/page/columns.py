"""The data of each figure, as columns of plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

from venn.labels import Real
from venn.monitors.kind import LEVEL
from venn.monitors.kinds import FORECAST, KINDS
from venn.show.page.feed import Run

Snapshot = Mapping[str, Any]
Columns = dict[str, list[Any]]

LN10 = 2.302585092994046
SHARE, HEADROOM = 0.1, 0.08  # share of first steps ignored for the range; extra range above and below
LOWEST = -12.0  # a martingale that only loses would flatten the other curves; it is drawn here
ERROR = "error_"


def accuracy(run: Run, name: str) -> Columns:
    """Return `step`, `accuracy`, `window`, `lower` and `upper`, NaN where not known."""
    columns: Columns = {key: [] for key in ("step", "accuracy", "window", "lower", "upper")}
    for step, figures in run.points:
        one = figures.get(name, {})
        curves = one.get("curves", {})
        columns["step"].append(step)
        for key in ("accuracy", "lower", "upper"):
            columns[key].append(curves.get(key, nan))
        columns["window"].append(one.get("window", {}).get("accuracy", nan))
    return columns


def levels(snapshot: Snapshot | None) -> list[str]:
    """Return the significance levels of prediction sets, as named by the curves; none for probabilities."""
    curves = {} if snapshot is None else snapshot["told"]["curves"]
    return sorted((key.removeprefix(ERROR) for key in curves if key.startswith(ERROR)), key=float)


def right(run: Run) -> str:
    """Return what it is to be right, as axes say it: of numbers, the label lies inside the interval."""
    return f"inside at {LEVEL}" if isinstance(run.space, Real) else "accuracy"


def spread(snapshot: Snapshot | None) -> tuple[str, str]:
    """Return how the columns of sizes or widths begin, and what they are."""
    kind = None if snapshot is None else KINDS.get(snapshot["told"]["predictions"])
    return FORECAST.spread if kind is None else kind.spread


def sets(run: Run, name: str) -> Columns:
    """Return `step` and, for each level, `error_...` and the `size_...` of sets or the `width_...` of intervals."""
    snapshot = run.snapshots.get(name)
    keys = [f"{what}{level}" for what in (ERROR, spread(snapshot)[0]) for level in levels(snapshot)]
    columns: Columns = {"step": [step for step, _ in run.points]}
    for key in keys:
        columns[key] = [figures.get(name, {}).get("curves", {}).get(key, nan) for _, figures in run.points]
    return columns


class Detector(NamedTuple):
    """One path of evidence."""

    key: str  #: of the column
    detector: str
    about: str  #: the source of p-values
    threshold: float  #: log10


def detectors(snapshot: Snapshot | None) -> list[Detector]:
    """Return the detectors whose evidence is drawn."""
    monitor = None if snapshot is None else snapshot["monitor"]
    return [
        Detector(f"{one['detector']}: {one['name']}", one["detector"], one["name"], one["threshold"])
        for one in (monitor or {}).get("evidence", ())
        if "log10" in one
    ]


def evidence(run: Run, name: str) -> Columns:
    """Return `step` and one column of base 10 logarithms for each detector."""
    columns: Columns = {"step": [step for step, _ in run.points]}
    for detector in detectors(run.snapshots.get(name)):
        values = [figures.get(name, {}).get("evidence", {}).get(detector.key) for _, figures in run.points]
        columns[detector.key] = [nan if value is None else max(value, LOWEST) for value in values]
    return columns


def compared(run: Run) -> Columns:
    """Return `step` and the accuracy of every predictor, named by its position."""
    columns: Columns = {"step": [step for step, _ in run.points]}
    for place, name in enumerate(run.names):
        columns[str(place)] = run.once(accuracy, name)["accuracy"]
    return columns


def alarms(of: Sequence[Snapshot]) -> Columns:
    """Return `step`, `log10` and `what` of alarms."""
    return {
        "step": [one["step"] for one in of],
        "log10": [one["log_evidence"] / LN10 for one in of],
        "what": [f"{one['detector']}{', ' if one['about'] else ''}{one['about']}" for one in of],
    }


def reliability(snapshot: Snapshot | None) -> Columns:
    """Return `confidence`, `accuracy`, `count`, `lower` and `upper` of the bins that hold predictions."""
    calibration = {} if snapshot is None else snapshot["told"].get("calibration", {})
    bins = [one for one in calibration.get("bins", ()) if one["count"]]
    return {key: [one[key] for one in bins] for key in ("confidence", "accuracy", "count", "lower", "upper")}


def after(columns: Columns, done: int) -> Columns:
    """Return the rows after the first `done`."""
    return {key: values[done:] for key, values in columns.items()}


def span(steps: Sequence[int], columns: Sequence[Sequence[float]], within: tuple[float, float]) -> tuple[float, float]:
    """Return a range that holds the columns except their first tenth, which varies widely, with some margin.

    Examples
    --------
    >>> span([1, 50, 100], [[1.0, 0.4, 0.6]], (0.0, 1.0))
    (0.384, 0.616)
    """
    start = SHARE * steps[-1] if steps else 0.0
    seen = [v for values in columns for step, v in zip(steps, values, strict=True) if step >= start and isfinite(v)]
    if not seen:
        return within
    low, high = min(seen), max(seen)
    room = max(HEADROOM * (high - low), 0.005)
    return max(low - room, within[0]), min(high + room, within[1])
