"""What is said of streams that change in a known way, after how many rows, and whether it is true.

    python benchmarks/kinds.py

`Drift(columns=...)` sees each object, `ClassDrift` each example, at the level that they share in `venn run`: the .01 of
a forecaster's two predictors and what watches beside them. Prints a JSON line for each stream: its alarms' first steps,
which columns are named, and the kind at the first alarm about classes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from workload import command

import streams
from venn.monitors import AmongAll, ClassDrift, Drift

LEVEL, BAG, FIRST = 0.01 / 3 / 2, 5000, 30


def weather(change: str, rows: int = 4000, at: int = 2000) -> Iterator[tuple[Any, str]]:
    """Yield days of ten columns; from row `at` on one of them is in other units or stuck, or nothing is."""
    rng = np.random.default_rng(7)
    stuck = None
    for row in range(rows):
        x = rng.normal(size=10)
        x[3] = 12 + 8 * x[3]
        y = "rain" if rng.random() < 1 / (1 + np.exp(-x[0] - x[1])) else "dry"
        if row >= at and change == "fahrenheit":
            x[3] = 32 + 1.8 * x[3]
        if row >= at and change == "stuck":
            stuck = x[5] if stuck is None else stuck
            x[5] = stuck
        if row >= at and change == "shares" and y == "dry" and rng.random() < 0.6:
            continue
        yield x, y


def watched(name: str, rows: Iterator[Any], classes: Any, columns: Any) -> dict[str, Any]:
    """Return what is said of a stream."""
    drift = Drift(AmongAll(size=BAG), first=FIRST, level=LEVEL, run_length=600_000, columns=columns)
    examples = ClassDrift(classes, AmongAll(size=BAG), first=FIRST, level=LEVEL, run_length=600_000)
    found: dict[str, Any] = {"stream": name}
    named: dict[str, int] = {}
    for n, (x, y) in enumerate(rows, 1):
        for alarm in (*drift.update(x), *examples.update(x, y)):
            found.setdefault(f"{alarm.detector}, {alarm.about}", n)
            if alarm.detector == "Columns":
                new = [one["words"] for one in drift.snapshot()["columns"] if one["step"] == n]
                named |= dict.fromkeys(new, n)
            if alarm.about != "objects":
                found.setdefault("kind", examples.verdict().kind)
    return found | {"rows": n, "named": named}


@command(threads=None)
def main():
    """Print a line for each stream."""
    for change in ("nothing", "fahrenheit", "stuck", "shares"):
        names = [f"x{j}" for j in range(10)]
        yield watched(change, weather(change), ["dry", "rain"], names)
    stream = streams.load("elec2").take(3000)
    yield watched("elec2", iter(stream), stream.classes, list(stream.features))
