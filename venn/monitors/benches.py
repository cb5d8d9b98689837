"""One bench for detectors of change, ours and others: how soon they ring, how often falsely, what they miss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from venn.parameters import has_methods, members

OBJECTS, EXAMPLES, PREDICTIONS, LOSSES = "objects", "examples", "predictions", "losses"  # what detectors see


class Scenario(NamedTuple):
    """A stream with the prediction for each example before its label came.

    Examples
    --------
    >>> from venn.monitors import FloorWatch
    >>> from venn.prediction import Forecast
    >>> said = Forecast([0.1, 0.9], ("no", "yes"))
    >>> Scenario("sudden", [([0.0], said, "yes")] * 50 + [([0.0], said, "no")] * 50, change=50).change
    50
    """

    name: str
    steps: Sequence[tuple[Any, Any, Any]]  #: (x, prediction, y); a prediction may be a mapping of names to several
    change: int | None = None  #: number of steps before the change; None: there is none


class BenchRow(NamedTuple):
    """How a detector did on the scenarios of one name.

    Examples
    --------
    >>> BenchRow("sudden", streams=3, calm=300, false=0, delays=(8, 12), missed=1).delay
    8
    """

    name: str
    streams: int
    calm: int  #: steps before the change, of all streams
    false: int  #: alarms in these
    delays: tuple[int, ...]  #: steps from the change to the first alarm after it, of the streams where there is one
    missed: int  #: streams with a change and no alarm after it

    @property
    def delay(self) -> int | None:
        """The median delay, of two the smaller; None where no alarm came."""
        return median_low(self.delays) if self.delays else None


def bench(detector: Callable[[], Any], scenarios: Iterable[Scenario]) -> list[BenchRow]:
    """Return how a detector does on streams whose change is known: false alarms, delays, misses, a row for each name.

    Parameters
    ----------
    detector : function
        Makes a fresh one for each stream. It may be ours, whose attribute `sees` says what its `update` takes: a
        `Monitor` sees "predictions" and labels, a `Drift` "objects", a `ClassDrift` "examples", objects and labels,
        a `FloorWatch` "losses", whether the predicted label was wrong, 1.0 or 0.0; a mapping of these, as `together`
        makes it, by the names of several predictions; any object with `update(x)` and `drift_detected`, such as
        river's, which sees the same 1.0 and 0.0; or one with `ring(x, prediction, y)`, which returns whether it rings.
        Of several predictions the first is the one whose label counts.
    scenarios : iterable of Scenario

    Raises
    ------
    TypeError
        A parameter is not as described.

    Examples
    --------
    >>> from venn.monitors import FloorWatch
    >>> from venn.prediction import Forecast
    >>> said = Forecast([0.1, 0.9], ("no", "yes"))
    >>> sudden = [([0.0], said, "yes")] * 100 + [([0.0], said, "no")] * 50
    >>> bench(lambda: FloorWatch(0.8), [Scenario("sudden", sudden, 100)])
    [BenchRow(name='sudden', streams=1, calm=100, false=0, delays=(12,), missed=0)]
    """
    if not callable(detector):
        raise TypeError(f"detector must be a function or a class that makes a detector, got {detector!r}")
    found: dict[str, list[tuple[int, int, int | None, bool]]] = {}
    for scenario in members("scenarios", scenarios, "scenarios"):
        if not isinstance(scenario, Scenario):
            raise TypeError(f"scenarios must be of Scenario, got {scenario!r}")
        one = detector()
        steps = [n for n, step in enumerate(scenario.steps, 1) if rings(one, *step)]
        calm = len(scenario.steps) if scenario.change is None else scenario.change
        after = next((step - calm for step in steps if step > calm), None)
        false = sum(step <= calm for step in steps)
        found.setdefault(scenario.name, []).append((calm, false, after, scenario.change is not None))
    return [
        BenchRow(
            name, len(each), sum(one[0] for one in each), sum(one[1] for one in each),
            tuple(sorted(one[2] for one in each if one[2] is not None)), sum(one[3] and one[2] is None for one in each),
        )
        for name, each in found.items()
    ]  # fmt: skip


def rings(detector: Any, x: Any, said: Any, y: Any) -> bool:
    """Give a detector one step; return whether it rings."""
    if isinstance(detector, Mapping):
        each = {name: said[name] if isinstance(said, Mapping) and name in said else said for name in detector}
        return any([rings(one, x, each[name], y) for name, one in detector.items()])
    if has_methods(detector, "ring"):
        return bool(detector.ring(x, said, y))
    theirs = hasattr(detector, "drift_detected")
    if not theirs and not hasattr(detector, "sees"):
        raise TypeError(f"detector must make a monitor, or what has update and drift_detected, got {detector!r}")
    rung = detector.update(*seen(LOSSES if theirs else detector.sees, x, said, y))
    return bool(detector.drift_detected if theirs else rung)


def seen(sees: str, x: Any, said: Any, y: Any) -> tuple[Any, ...]:
    """Return what a detector that `sees` this takes of one step."""
    if sees in (OBJECTS, EXAMPLES):
        return (x,) if sees == OBJECTS else (x, y)
    first = next(iter(said.values())) if isinstance(said, Mapping) else said
    return (first, y) if sees == PREDICTIONS else (float(first.label != y),)
