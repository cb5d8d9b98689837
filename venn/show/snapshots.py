"""Snapshots of monitors, as views and journals have them: `Monitor.snapshot` as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venn.monitors.verdict import Verdict, worst

Snapshot = Mapping[str, Any]


def figures_of(told: Snapshot, monitor: Snapshot | None) -> dict[str, Any]:
    """Return the data of a point of the curves.

    Parameters
    ----------
    told : mapping
        From the predictions as first made.
    monitor : mapping, optional
        From the monitor whose evidence it is.
    """
    evidence = [] if monitor is None else monitor["evidence"]
    return {
        "curves": told["curves"],
        "window": told["window"],
        "evidence": {f"{one['detector']}: {one['name']}": one.get("log10") for one in evidence},
    }


def verdicts(snapshots: Mapping[str, Snapshot]) -> dict[str, Verdict]:
    """Return the verdicts by predictor, of snapshots of monitors or of pairs `told` and `monitor` of them.

    Of a pair the monitor's counts; without a monitor that of the predictions as first made, on which nothing bets.
    """
    found = {}
    for name, snapshot in snapshots.items():
        one = (snapshot["monitor"] or snapshot["told"]) if "told" in snapshot else snapshot
        if one.get("verdict") is not None:
            found[name] = Verdict.of(one["verdict"])
    return found


def overall(snapshots: Mapping[str, Snapshot]) -> Verdict | None:
    """Return the worst of these verdicts; None if there is none. If some predictors have a monitor, only they count."""
    watched = {name: one for name, one in snapshots.items() if one.get("monitor") is not None}
    found = verdicts(watched or snapshots)
    return worst(found) if found else None
