"""What a run shows, whoever draws it: claims, errors, evidence, verdicts, made of snapshots of monitors.

A snapshot is `Monitor.snapshot` as JSON. Terminal, page, report and metrics read what is here and compute nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from venn.monitors.kind import Kind
from venn.monitors.kinds import FORECAST, KINDS
from venn.monitors.verdict import Verdict, came, worst
from venn.prediction import LOG_LOSS, NOTHING

Snapshot = Mapping[str, Any]

#: What is shown of a predictor before its first prediction has met its label.
UNSEEN: Snapshot = {
    "told": {"step": 0, "curves": {}, "window": {}, "predictions": None, "guaranteed": None},
    "monitor": None,
}


class SeenCounts(NamedTuple):
    """Progress of a run."""

    asked: int
    answered: int
    expired: int
    pending: int
    rate: float  #: answers a second over the latest ones; 0 where there are fewer than two
    time: float  #: time of the last event, in seconds since 1970; 0 before the first


def figures_of(told: Snapshot, monitor: Snapshot | None) -> dict[str, Any]:
    """Return the numbers of one point of the curves.

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


class Bar(NamedTuple):
    """A part of the values of a column, or a class: its share before a change and after it."""

    to: str
    before: float
    after: float


class Picture(NamedTuple):
    """What has changed: a column, the shares of the classes, or objects within classes, which have no bars."""

    words: str
    since: str
    bars: Sequence[Bar]


def pictures(snapshots: Mapping[str, Snapshot]) -> list[Picture]:
    """Return the kinds of change, and the columns that are named, of what watches examples.

    Examples
    --------
    >>> bars = [{"to": "1", "before": 0.25, "after": 1.0}]
    >>> column = {"name": "heat", "words": "'heat' (middle 1 to 2)", "since": "about 7", "bars": bars}
    >>> pictures({"objects": {"told": None, "monitor": {"columns": [column]}}})[0].words
    "column 'heat' (middle 1 to 2)"
    """

    def picture(one: Snapshot, what: str, counted: str) -> Picture:
        since = one["since"].replace("about", f"about {counted}")
        return Picture(f"{what}{one['words']}", since, [Bar(**bar) for bar in one["bars"]])

    seen = [judged(one) for one in snapshots.values()]
    kinds = [picture(kind, "", "answer") for one in seen for kind in one.get("kinds", ())]
    return kinds + [picture(column, "column ", "question") for one in seen for column in one.get("columns", ())]


def floors(snapshots: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
    """Return how the floors stand that were set, by name: see `FloorWatch.snapshot`."""
    seen = {name: judged(one) for name, one in snapshots.items()}
    return {name: one["floor"] for name, one in seen.items() if "floor" in one}


class ShownEvidence(NamedTuple):
    """What one detector has gathered against one claim: base 10 logarithms."""

    detector: str
    about: str  #: the source of p-values
    log10: float
    threshold: float  #: where it rings

    @property
    def key(self) -> str:
        """Its name in the points of the curves."""
        return f"{self.detector}: {self.about}"


class Standing(NamedTuple):
    """How a predictor stands: what it claimed, what came true, what speaks against it.

    Examples
    --------
    >>> found = standing({"step": 40, "curves": {"accuracy": 0.9, "lower": 0.85, "upper": 0.95, "error_0.05": 0.04}})
    >>> found.means["accuracy"], found.claim, found.errors, found.closest
    (0.9, (0.85, 0.95), {'0.05': 0.04}, None)
    """

    step: int
    kind: Kind
    guaranteed: str | None
    means: Mapping[str, float]  #: over all steps: accuracy, lower, upper, log_loss, ...
    lately: Mapping[str, float]  #: over the latest ones, and their number `size`
    ece: float | None  #: expected calibration error
    bins: Sequence[Snapshot]  #: of a reliability diagram, those that hold predictions
    evidence: Sequence[ShownEvidence]
    alarms: int
    rang: Sequence[Snapshot]  #: the last alarms
    verdict: Verdict | None
    watched: bool  #: whether it has a monitor

    @property
    def claim(self) -> tuple[float, float] | None:
        """Mean lower and upper probability of the predicted label; None where none is claimed."""
        return (self.means["lower"], self.means["upper"]) if "lower" in self.means else None

    @property
    def errors(self) -> dict[str, float]:
        """Shares of sets or intervals that missed the label, by significance level."""
        return self.by_level("error_")

    @property
    def spreads(self) -> dict[str, float]:
        """Mean sizes of sets, or widths of intervals, by significance level."""
        return self.by_level(self.kind.spread[0])

    @property
    def of_numbers(self) -> bool:
        """Whether labels are numbers: then intervals have widths, and to be right is to lie inside."""
        return any(key.startswith("width_") for key in self.means)

    def by_level(self, what: str, lately: bool = False) -> dict[str, float]:
        """Return the means whose names begin so, by level, in order."""
        found = {key.removeprefix(what): value for key, value in (self.lately if lately else self.means).items()
                 if key.startswith(what)}  # fmt: skip
        return dict(sorted(found.items(), key=lambda one: float(one[0])))

    @property
    def closest(self) -> ShownEvidence | None:
        """The evidence that is closest to its threshold."""
        return max(self.evidence, key=lambda one: one.log10 - one.threshold, default=None)


def standing(snapshot: Snapshot) -> Standing:
    """Return how a predictor stands, of a snapshot of its monitor or of a pair `told` and `monitor` of them."""
    told, monitor = snapshot, snapshot if "evidence" in snapshot or "alarms" in snapshot else None
    if "told" in snapshot:
        told, monitor = snapshot["told"] or {}, snapshot["monitor"]
    seen, calibration, found = monitor or {}, told.get("calibration", {}), judged(snapshot).get("verdict")
    rung = seen.get("alarms", {})
    means = told.get("curves", {})
    kind = KINDS.get(told.get("predictions") or "", FORECAST)
    return Standing(
        told.get("step", 0), kind, told.get("guaranteed"), means, told.get("window", {}), calibration.get("ece"),
        [one for one in calibration.get("bins", ()) if one["count"]],
        [
            # JSON has no infinities: the logarithm of 0 is None.
            ShownEvidence(
                one["detector"], one["name"], -inf if one["log10"] is None else one["log10"], one["threshold"]
            )
            for one in seen.get("evidence", ())
            if "log10" in one and "threshold" in one
        ],
        rung.get("count", 0), rung.get("last", ()), None if found is None else Verdict.of(found), monitor is not None,
    )  # fmt: skip


def judged(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a monitor; of a pair `told` and `monitor` the monitor's, or `told` if there is none."""
    return (snapshot["monitor"] or snapshot["told"]) if "told" in snapshot else snapshot


def verdicts(snapshots: Mapping[str, Snapshot]) -> dict[str, Verdict]:
    """Return the verdicts by predictor, of snapshots of monitors or of pairs `told` and `monitor` of them."""
    found = {name: standing(snapshot).verdict for name, snapshot in snapshots.items()}
    return {name: one for name, one in found.items() if one is not None}


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


class Claimed(NamedTuple):
    """What is claimed on average for questions whose label has not come."""

    questions: int
    lower: float
    upper: float


def unlabelled(snapshot: Snapshot) -> Claimed | None:
    """Return what is claimed for the questions that wait, of a pair `told` and `monitor`; None where there are none."""
    found = (snapshot.get("told") or {}).get("unlabelled")
    return None if found is None else Claimed(**found)


def answers(snapshot: Snapshot) -> tuple[str, str]:
    """Return how a promise of answers stands, and why it is silent, of a pair `told` and `monitor`; empty without one.

    Examples
    --------
    >>> answers({"told": {"answers": {"sentence": "answered .62 of 4000", "silence": ""}}})
    ('answered .62 of 4000', '')
    """
    found = (snapshot.get("told") or {}).get("answers") or {}
    return found.get("sentence", ""), found.get("silence", "")


def ripening(snapshot: Snapshot) -> str:
    """Return how labels ripen, of a pair `told` and `monitor`; empty where they do not.

    Examples
    --------
    >>> ripening({"told": {"ripening": {"waiting": 40, "reported": 3, "late": 2, "ripe": "90 days"}}})
    '40 questions wait until they are ripe, after 90 days: 3 have a label. 2 labels came too late, and are not learned'
    """
    found = (snapshot.get("told") or {}).get("ripening")
    if found is None:
        return ""
    late = f". {found['late']:,} labels came too late, and are not learned" if found["late"] else ""
    return (
        f"{found['waiting']:,} questions wait until they are ripe, after {found['ripe']}: "
        f"{found['reported']:,} have a label{late}"
    )


def recent(snapshot: Snapshot) -> Recent | None:
    """Return what came true over the steps of the verdict; of a pair `told` and `monitor`, the monitor's.

    None before the first step, and where nothing is claimed. Snapshots without such steps have their window instead.
    """
    one = judged(snapshot)
    means, guaranteed = one.get("recent") or one.get("window", {}), one.get("guaranteed")
    found = came(means, guaranteed, means.get("size", 0))
    return None if found is None else Recent(*found, one["step"], guaranteed not in (NOTHING, LOG_LOSS))
