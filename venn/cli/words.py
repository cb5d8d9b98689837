"""A record summarised in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import bdtrc as binomial_tail

from venn.cli.predictors import BY_CLASS
from venn.monitors.change_point import MEMORY
from venn.monitors.class_drift import ClassDrift
from venn.monitors.curves import SetCurves
from venn.monitors.drift import Drift
from venn.monitors.floor import FLOOR, Floor, FloorWatch
from venn.monitors.monitor import WINDOW, Monitor
from venn.monitors.shared_level import together, watchers
from venn.monitors.verdict import CHANGED, Verdict, worst
from venn.online.forecaster import Forecaster, watched
from venn.online.outlook import INTERVALS
from venn.online.panel import Panel
from venn.online.record import Record
from venn.prediction import Label
from venn.predictors.restarting import Restarting
from venn.show.seldom import plain

SHARP, PUBLISHED = (INTERVALS, "abers"), "venn"
RISK, SURPRISE = 0.05, 0.001  # of sets; the chance at most that a class is named though it is missed no more often
MOST = 3  # classes that are named

Watching = dict[str, Monitor | Drift | ClassDrift | FloorWatch]


def plain_words(record: Record) -> list[str]:
    """Say in plain words how the accuracy of each predictor compares with what it claimed."""
    lines, claims = [], []
    for name in record:
        curves: Any = record[name]
        said = record.kind(name).conclusion(name, curves, record.guaranteed[name])
        if said is None:
            claims.append(f"{name} {curves.lower[-1] - curves.accuracy[-1]:+.3f}")
        else:
            lines.append(said)
        if isinstance(curves, SetCurves) and name not in BY_CLASS:
            lines += missed_classes(name, curves, record.classes)
    sharp = next((name for name in SHARP if name in record), None)
    if sharp is not None and PUBLISHED in record:
        means = record.means()
        pairs = (
            f"{field.replace('_', ' ')} {means[sharp][field]:.3f} against {means[PUBLISHED][field]:.3f}"
            for field in ("width", "log_loss")
        )
        lines.append(f"{sharp} beside the published {PUBLISHED}: {', '.join(pairs)}.")
    if claims:
        lines.append(f"Mean claim minus accuracy: {', '.join(claims)}.")
    return lines


def missed_classes(name: str, sets: SetCurves, classes: Sequence[Label]) -> list[str]:
    """Name the classes whose labels the sets miss more often than their risk, though all together may keep it."""
    of, missed = (np.bincount(sets.truth[rows], minlength=len(classes)) for rows in (..., sets.p_true <= RISK))
    if binomial_tail(missed.sum() - 1.0, len(sets), RISK) < SURPRISE:
        return []  # not even all together keep it: no choice among predictors of classes would mend that
    by_chance = binomial_tail(np.maximum(missed, 1) - 1.0, of, RISK)  # of so many misses or more
    named = [k for k in np.argsort(by_chance, kind="stable") if missed[k] and by_chance[k] < SURPRISE / len(classes)]
    if not named:
        return []
    worst = ", ".join(f"{classes[k]!r} ({missed[k]} of {of[k]})" for k in named[:MOST])
    more = f" and {len(named) - MOST} others" if len(named) > MOST else ""
    return [
        f"{name}: classes missed more often: {worst}{more}. The promise is one over all classes together; "
        f"the predictors {' and '.join(BY_CLASS)} keep it within each, while nothing changes."
    ]


def began_anew(panel: Panel) -> list[str]:
    """Say after which step predictors began anew the last time, because an alarm had rung; nothing if none did."""
    found = [(name, one.restarts[-1]) for name, one in panel.items() if isinstance(one, Restarting) and one.restarts]
    if isinstance(panel, Forecaster):
        found += [("the forecaster", _anew(panel))]
    return [
        f"{name} began anew after step {step}: what it learned before counts no more" for name, step in found if step
    ]


def _anew(model: Forecaster) -> int:
    """Return the step after which a forecaster began anew the last time; 0 if it never did."""
    intervals: Any = model[model.main]
    return int(model.n - intervals.n)


def conclude(verdict: Verdict | None, say: Callable[[str], object]) -> None:
    """Say the last line of a command: the worst verdict on its predictors; nothing without one."""
    if verdict is not None:
        say(plain(f"verdict: {verdict}"))  # a predictor's name may hold line ends and marks of direction


def with_floor(monitors: Watching, name: str, floor: float | None, window: int = WINDOW) -> Watching:
    """Return the monitors, and beside them what watches the floor of a predictor, if there is one."""
    watch = None if floor is None else FloorWatch(Floor(floor), min(window, MEMORY), predictor=name)
    return monitors if watch is None else monitors | {FLOOR: watch}


def monitors_of(
    record: Record, names: Iterable[str] | None = None, floor: float | None = None, **settings: Any
) -> Watching:
    """Return monitors for the predictors of a record that share one level, as in the run that made it.

    Objects, which a record does not hold, have their share there.
    """
    chosen = watched(record.names) if names is None else list(names)
    found: Watching = {**together(chosen, record.space, restarts=record.restarts, spare=1, **settings)}
    first = next(iter(record.names if names is None else chosen))
    return with_floor(found, first, floor, settings.get("window", WINDOW))


def monitors_on(
    panel: Panel, drift: bool, features: Sequence[str] | None, floor: float | None = None, **settings: Any
) -> Watching:
    """Return monitors for the predictors of a panel that share one level.

    With `drift` one of the objects and their columns, by the names of these where they are known, and one of the
    classes. The floor is that of the panel's first predictor.
    """
    parts = {name: panel[name] for name in watched(panel)}
    found = together(parts, panel.space, **(watchers(panel.classes, features) if drift else {}), **settings)
    return with_floor(found, next(iter(panel)), floor, settings.get("window", WINDOW))


def watch_record(record: Record, monitors: Mapping[str, Any], total: int, every: int) -> Iterator[int]:
    """Let monitors watch the first steps of a record; yield how many they have seen, after every few and at last."""
    of = {name: one.predictor if isinstance(one, FloorWatch) else name for name, one in monitors.items()}
    steps = {name: record.outcomes(name) for name in of.values()}
    for first in range(0, total, every):
        part = slice(first, min(first + every, total))
        for name, monitor in monitors.items():
            now, kind = steps[of[name]].part(part), record.kind(of[name])
            if isinstance(monitor, FloorWatch):
                monitor.follow(now, kind, record.space)
            else:
                monitor.follow(now, kind.name, record.guaranteed[name])
        yield part.stop


def verdicts_of(record: Record, floor: float | None = None) -> dict[str, Verdict]:
    """Return the verdicts of monitors that watch a record from its first step to its last, sharing one level."""
    monitors = monitors_of(record, floor=floor)
    for _ in watch_record(record, monitors, len(record), max(1, len(record))):
        pass
    return {name: monitor.verdict() for name, monitor in monitors.items()}


def verdict_on(panel: Panel, verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the worst of the verdicts; what stands beside a forecaster, to be compared with it, does not count.

    A change after which the forecaster began anew is told as such, as by its own monitors.
    """
    if not isinstance(panel, Forecaster):
        return worst(verdicts)
    found = worst({name: verdicts[name] for name in (*panel.claiming, FLOOR) if name in verdicts})
    anew = _anew(panel)
    if found.state != CHANGED or not anew:
        return found
    return replace(found, anew=anew, details=f"{found.details}; began anew after {anew}")
