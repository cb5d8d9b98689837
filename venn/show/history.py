"""The history of a live view: enough for its charts, and bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan, nan
from typing import Any, NamedTuple

from venn.show.snapshots import Snapshot

MOST_ROWS = 511  # odd, so that dropping every second row keeps both ends
LEVEL = "0.05"
ERROR, SIZE, WIDTH = (f"{what}_{LEVEL}" for what in ("error", "size", "width"))


class Point(NamedTuple):
    """The state of one predictor at one time, for the charts."""

    accuracy: float
    lower: float
    upper: float
    #: log10 by name and detector.
    evidence: dict[tuple[str, str], float]


class History:
    """Points of all predictors by step; thinned out evenly when full, so its size is bounded."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._rows: list[tuple[int, dict[str, Point]]] = []
        self._every = 1
        self._seen = 0
        self._passing = False  # the last row stays only until the next one

    @property
    def step(self) -> int:
        """The last step."""
        return self._rows[-1][0] if self._rows else 0

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Store the present state; ValueError if it is earlier than the last one."""
        step = max((int(snapshot["step"]) for snapshot in snapshots.values()), default=self.step)
        if step < self.step:
            raise ValueError(f"snapshots must be of step {self.step} or later, got step {step}")
        row = (step, {name: _point(snapshot) for name, snapshot in snapshots.items()})
        if self._passing or (self._rows and step == self.step):
            self._rows.pop()
        self._rows.append(row)
        self._passing = self._seen % self._every != 0
        self._seen += 1
        if len(self._rows) >= MOST_ROWS:
            del self._rows[1::2]
            self._every *= 2

    def knows(self, name: str) -> bool:
        """Whether there is an accuracy to draw."""
        return any(name in row and not isnan(row[name].accuracy) for _, row in reversed(self._rows))

    def curve(self, name: str) -> tuple[list[int], list[float], list[float], list[float]]:
        """Return steps, accuracy, lower and upper, at steps where they were known."""
        points = [(step, row[name]) for step, row in self._rows if name in row]
        known = [(step, *point[:3]) for step, point in points if not isnan(point.accuracy)]
        if not known:
            return [], [], [], []
        steps, *means = zip(*known, strict=True)
        accuracy, lower, upper = map(list, means)
        return list(steps), accuracy, lower, upper

    def evidence(self, name: str, key: tuple[str, str]) -> tuple[list[int], list[float]]:
        """Return steps and log10 of one detector of one predictor; infinities are kept, NaN is not."""
        points = [(step, row[name].evidence.get(key, nan)) for step, row in self._rows if name in row]
        known = [(step, value) for step, value in points if not isnan(value)]
        return [step for step, _ in known], [value for _, value in known]


def _point(snapshot: Snapshot) -> Point:
    curves = snapshot.get("curves", {})
    evidence = {
        (str(entry["name"]), str(entry["detector"])): number(entry["log10"])
        for entry in snapshot.get("evidence", ())
        if "log10" in entry
    }
    if ERROR in curves:  # for sets, the accuracy is the share that holds the true label
        claim = 1 - float(LEVEL)
        return Point(1 - curves[ERROR], claim, claim, evidence)
    accuracy = curves.get("accuracy", nan)
    return Point(accuracy, curves.get("lower", nan), curves.get("upper", nan), evidence)


def number(value: Any) -> float:
    """Return a logarithm as a number; JSON, which has no infinities, has None for the logarithm of 0."""
    return -inf if value is None else float(value)
