"""Snapshots of monitors, as views and journals have them: `Monitor.snapshot` as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from venn.monitors.kind import LEVEL
from venn.monitors.verdict import Verdict, worst
from venn.prediction import ERROR_BOUND, LOG_LOSS, NOTHING, REALISED_ROW

Snapshot = Mapping[str, Any]

#: What is shown of a predictor before its first prediction has met its label.
UNSEEN: Snapshot = {
    "told": {"step": 0, "curves": {}, "window": {}, "predictions": None, "guaranteed": None},
    "monitor": None,
}


class Counts(NamedTuple):
    """Progress of a run."""

    asked: int
    answered: int
    expired: int
    pending: int
    rate: float  #: answers a second over the latest ones; 0 where there are fewer than two
    time: float  #: time of the last event, in seconds since 1970; 0 before the first


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


def judged(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a monitor; of a pair `told` and `monitor` the monitor's, or `told` if there is none."""
    return (snapshot["monitor"] or snapshot["told"]) if "told" in snapshot else snapshot


def verdicts(snapshots: Mapping[str, Snapshot]) -> dict[str, Verdict]:
    """Return the verdicts by predictor, of snapshots of monitors or of pairs `told` and `monitor` of them."""
    plain = {name: judged(snapshot).get("verdict") for name, snapshot in snapshots.items()}
    return {name: Verdict.of(one) for name, one in plain.items() if one is not None}


def counting(snapshots: Mapping[str, Snapshot]) -> dict[str, Verdict]:
    """Return those verdicts that count: if some predictors have a monitor, theirs and those on objects."""
    watched = {name: one for name, one in snapshots.items() if one.get("monitor") is not None}
    alone = any(one["told"] is not None for one in watched.values())  # else only objects are watched
    return verdicts(watched if alone else snapshots)


def overall(snapshots: Mapping[str, Snapshot]) -> Verdict | None:
    """Return the worst of the verdicts that count; None if there is none."""
    found = counting(snapshots)
    return worst(found) if found else None


class Recent(NamedTuple):
    """What came true lately, and what was claimed for it: the numbers of the verdict's sentence.

    Examples
    --------
    >>> window = {"size": 40, "accuracy": 0.9, "lower": 0.85, "upper": 0.95}
    >>> recent({"step": 100, "guaranteed": "predicted label", "window": window})
    Recent(what='right', share=0.9, lower=0.85, upper=0.95, size=40, step=100, guaranteed=True)
    """

    what: str  #: "right" or "wrong": of which the shares are
    share: float
    lower: float
    upper: float
    size: int  #: number of latest steps
    step: int  #: the last of them
    guaranteed: bool  #: whether a theorem stands behind the claim, while nothing has changed


def recent(snapshot: Snapshot) -> Recent | None:
    """Return what came true over the steps of the verdict; of a pair `told` and `monitor`, the monitor's.

    None before the first step, and where nothing is claimed. Snapshots without such steps have their window instead.
    """
    one = judged(snapshot)
    means, guaranteed = one.get("recent") or one.get("window", {}), one.get("guaranteed")
    if f"error_{LEVEL}" in means:
        lower = 0.0 if guaranteed == ERROR_BOUND else LEVEL
        found = "wrong", means[f"error_{LEVEL}"], lower, LEVEL
    elif guaranteed == REALISED_ROW and "realised" in means:
        found = "right", means["realised_accuracy"], means["realised"], means["realised"]
    elif "lower" in means:
        found = "right", means["accuracy"], means["lower"], means["upper"]
    else:
        return None
    return Recent(*found, means["size"], one["step"], guaranteed not in (NOTHING, LOG_LOSS))
