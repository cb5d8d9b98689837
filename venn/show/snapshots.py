"""Snapshots of monitors, as views and journals have them: `Monitor.snapshot` as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
