"""The data of each figure, as columns of plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

from venn.labels import Real
from venn.monitors.alarms import PER_DECADE
from venn.monitors.kind import LEVEL
from venn.monitors.kinds import FORECAST, KINDS
from venn.show.page.feed import Run
from venn.show.snapshots import Snapshot

Columns = dict[str, list[Any]]

SHARE, HEADROOM = 0.1, 0.08  # share of first steps ignored for the range; extra range above and below
LOWEST = -12.0  # a martingale that only loses would flatten the other curves; it is drawn here
ERROR = "error_"


def _steps(run: Run) -> Columns:
    return {"step": [step for step, _ in run.points]}


def _parts(run: Run, name: str, part: str) -> list[Any]:
    """Return "curves", "window" or "evidence" of a predictor at each point; empty where nothing is known."""
    return [figures.get(name, {}).get(part, {}) for _, figures in run.points]


def accuracy(run: Run, name: str) -> Columns:
    """Return `step`, `accuracy`, `window`, `lower` and `upper`, NaN where not known."""
    curves, window = _parts(run, name, "curves"), _parts(run, name, "window")
    means = {key: [one.get(key, nan) for one in curves] for key in ("accuracy", "lower", "upper")}
    return _steps(run) | means | {"window": [one.get("accuracy", nan) for one in window]}


def levels(snapshot: Snapshot) -> list[str]:
    """Return the significance levels of prediction sets, as named by the curves; none for probabilities."""
    curves = snapshot["told"]["curves"]
    return sorted((key.removeprefix(ERROR) for key in curves if key.startswith(ERROR)), key=float)


def right(run: Run) -> str:
    """Return what it is to be right, as axes say it: of numbers, the label lies inside the interval."""
    return f"inside at {LEVEL}" if isinstance(run.space, Real) else "accuracy"


def spread(snapshot: Snapshot) -> tuple[str, str]:
    """Return how the columns of sizes or widths begin, and what they are."""
    return KINDS.get(snapshot["told"]["predictions"], FORECAST).spread


def sets(run: Run, name: str) -> Columns:
    """Return `step` and, for each level, `error_...` and the `size_...` of sets or the `width_...` of intervals."""
    snapshot, curves = run.snapshot(name), _parts(run, name, "curves")
    keys = [f"{what}{level}" for what in (ERROR, spread(snapshot)[0]) for level in levels(snapshot)]
    return _steps(run) | {key: [one.get(key, nan) for one in curves] for key in keys}


class Detector(NamedTuple):
    """One path of evidence."""

    key: str  #: of the column
    detector: str
    about: str  #: the source of p-values
    threshold: float  #: log10


def detectors(snapshot: Snapshot) -> list[Detector]:
    """Return the detectors whose evidence is drawn."""
    return [
        Detector(f"{one['detector']}: {one['name']}", one["detector"], one["name"], one["threshold"])
        for one in (snapshot["monitor"] or {}).get("evidence", ())
        if "log10" in one
    ]


def evidence(run: Run, name: str) -> Columns:
    """Return `step` and one column of base 10 logarithms for each detector."""
    columns, paths = _steps(run), _parts(run, name, "evidence")
    for detector in detectors(run.snapshot(name)):
        values = [one.get(detector.key) for one in paths]
        columns[detector.key] = [nan if value is None else max(value, LOWEST) for value in values]
    return columns


def compared(run: Run) -> Columns:
    """Return `step` and the accuracy of every predictor, named by its position."""
    return _steps(run) | {str(i): run.once(accuracy, name)["accuracy"] for i, name in enumerate(run.names)}


def alarms(of: Sequence[Snapshot]) -> Columns:
    """Return `step`, `log10` and `what` of alarms."""
    return {
        "step": [one["step"] for one in of],
        "log10": [one["log_evidence"] / PER_DECADE for one in of],
        "what": [f"{one['detector']}{', ' if one['about'] else ''}{one['about']}" for one in of],
    }


def reliability(snapshot: Snapshot) -> Columns:
    """Return `confidence`, `accuracy`, `count`, `lower` and `upper` of the bins that hold predictions."""
    bins = [one for one in snapshot["told"].get("calibration", {}).get("bins", ()) if one["count"]]
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
