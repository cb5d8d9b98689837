"""The curves of a run as plain data: what is drawn, where, in which words; `page.js` draws it on page and report."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from venn.monitors.alarms import PER_DECADE
from venn.prediction import NOTHING
from venn.show.page.feed import FollowedRun
from venn.show.page.words import short

Chart = dict[str, Any]
Columns = dict[str, list[Any]]

HEADROOM = 0.08  # above what must be seen
LOWEST = -12.0  # a martingale that only loses would flatten the other curves; it is drawn here
HEIGHT = 300  # pixels
COLOURS = 8  # of the style sheet, from c0 on
DASHES = {"Ville": "", "ForwardEProcess": "", "ShiryaevRoberts": "2 4"}
DASHED, OTHER = "7 5", "7 4 2 4"
#: How seldom each rings while nothing has changed, by its threshold.
FALSELY = {
    "Ville": ", falsely ever in at most one of {:,.0f} runs",
    "ForwardEProcess": ", falsely ever in at most one of {:,.0f} runs",
    "ShiryaevRoberts": ", falsely at least {:,.0f} steps apart on average",
}
BESIDE = "Drawn are point forecasts, of which nothing is claimed: the verdict judges the interval around them."
NO_EVIDENCE = "No evidence is gathered here: there is no monitor, or nothing it could bet against."


# ------------------------------------------------------------------------ columns


def table(run: FollowedRun, name: str, after: int = 0) -> Columns:
    """Return `step`, its `time` and all that is drawn of a predictor at the points after so many, as JSON takes it.

    These are `accuracy`, `window`, `lower` and `upper`; for each level the `error_...` and the `size_...` of sets or
    the `width_...` of intervals; for each detector the base 10 logarithms of its evidence. What is not known is None.
    """
    one = run.standing(name)
    of_levels = [f"{what}{level}" for what in ("error_", one.kind.spread[0]) for level in one.errors]
    means = ("accuracy", "lower", "upper", *of_levels)
    found = _steps(run, after) | {key: _column(run, name, "curves", key, after) for key in means}
    found["window"] = _column(run, name, "window", "accuracy", after)
    for key in (path.key for path in one.evidence):
        values = _column(run, name, "evidence", key, after)
        found[key] = [None if value is None else max(value, LOWEST) for value in values]
    return found


def compared(run: FollowedRun, after: int = 0) -> Columns:
    """Return `step` and the accuracy of every predictor, named by its position."""
    accuracies = (_column(run, name, "curves", "accuracy", after) for name in run.names)
    return _steps(run, after) | {str(place): values for place, values in enumerate(accuracies)}


def _steps(run: FollowedRun, after: int) -> Columns:
    points = run.points[after:]
    timed = {"time": [round(one.time) for one in points]} if run.created else {}
    return {"step": [one.step for one in points]} | timed


def _column(run: FollowedRun, name: str, part: str, key: str, after: int) -> list[float | None]:
    found = (figures.get(name, {}).get(part, {}).get(key) for _, figures, _ in run.points[after:])
    # A width is infinite while an interval is: it is not drawn.
    return [None if value is None or not isfinite(value) else float(f"{value:.6g}") for value in found]


# ------------------------------------------------------------------------- charts


def _chart(
    beside: str, items: Sequence[Any], of: str, within: tuple[float, float | None] | None = (0.0, 1.0),
    also: Sequence[float] = (), height: int = HEIGHT,
) -> Chart:  # fmt: skip
    """Return a chart of columns of the table `of` over the steps; its range fits them, `within` limits, and `also`."""
    return {"below": "answers", "beside": beside, "items": items, "of": of, "within": within or (None, None),
            "also": also, "height": height}  # fmt: skip


def _line(column: str, colour: str, say: str, width: float = 2.0, dash: str = "") -> Chart:
    return {"draw": "line", "column": column, "c": colour, "say": say, "width": width, "dash": dash}


def _colour(place: int) -> str:
    return f"c{place % COLOURS}"


def of_predictor(run: FollowedRun, name: str, of: str, ahead: str) -> dict[str, Any]:
    """Return the charts of a predictor by place, "accuracy", "evidence" and "calibration"; a text where there is none.

    Parameters
    ----------
    run : FollowedRun
    name : str
    of, ahead : str
        What its tables are called: that of the steps, and that of `path`.
    """
    one, colour = run.standing(name), _colour(run.names.index(name))
    at = [alarm["step"] for alarm in run.alarms.get(name, ())]
    items = [_line("window", "grey", f"{run.right} in the window", 1.2), _line("accuracy", colour, run.right, 2.6),
             {"draw": "rung", "x": at, "c": "alarm", "say": "alarm"}]  # fmt: skip
    if not one.errors:
        band = {"draw": "band", "column": "lower", "to": "upper", "c": colour, "say": "claimed, lower to upper"}
        items = [band, *items]
    return {
        "accuracy": [*_path(run, name, ahead), _chart(run.right, items, of)],
        "evidence": [_evidence(run, name, of)] if one.evidence else NO_EVIDENCE,
        "calibration": _levels(run, name, of) if one.errors else _reliability(run, name, colour),
    }


def path(run: FollowedRun, name: str) -> Columns:
    """Return the path of a series that is said now, and that before with what came; nothing of other predictors."""
    ahead = _ahead(run, name)
    return {} if ahead is None else ahead["columns"]


def _ahead(run: FollowedRun, name: str) -> Any:
    return (run.snapshot(name)["told"] or {}).get("ahead")


def _path(run: FollowedRun, name: str, of: str) -> list[Chart]:
    """Return the fans of a series."""
    ahead = _ahead(run, name)
    if ahead is None:
        return []
    steps, colour = ahead["columns"]["step"], _colour(run.names.index(name))
    items: list[Chart] = []
    for before, c, when in (("before_", "grey", ", as said before"), ("", colour, "")):
        if f"{before}median" in ahead["columns"]:
            for level in ahead["levels"]:
                say = f"interval that misses {level:.3g} of the values in the long run{when}"
                ends = {"column": f"{before}lower{level:g}", "to": f"{before}upper{level:g}"}
                items.append({"draw": "band", **ends, "c": c, "say": say})
            items.append(_line(f"{before}median", c, f"median{when}", 1.6, "2 4"))
    items.append(_line("came", "ink", "what came", 1.8))
    return [_chart("value", items, of, None) | {"below": "values", "x": (steps[0], max(steps[-1], steps[0] + 1))}]


def _evidence(run: FollowedRun, name: str, of: str) -> Chart:
    """Return martingales and other evidence, with the thresholds at which alarms ring."""
    paths = run.standing(name).evidence
    sources = list(dict.fromkeys(path.about for path in paths))
    items: list[Chart] = []
    for path in paths:
        dash = DASHES.get(path.detector, OTHER)
        items.append(
            _line(path.key, _colour(sources.index(path.about)), short(f"{path.detector}, {path.about}"), 2, dash)
        )
    for detector, threshold in dict.fromkeys((path.detector, path.threshold) for path in paths):
        falsely = FALSELY.get(detector, "").format(10**threshold)
        items.append({
            "draw": "across", "at": threshold, "c": "alarm", "dash": DASHES.get(detector, OTHER) or DASHED,
            "say": f"{detector} rings at 10^{threshold:.3g}{falsely}",
        })  # fmt: skip
    rung = list(run.alarms.get(name, ()))
    heights = [one["log_evidence"] / PER_DECADE for one in rung]
    what = [short(f"{one['detector']}{', ' if one['about'] else ''}{one['about']}") for one in rung]
    marks = {"draw": "marks", "x": [one["step"] for one in rung], "y": heights, "what": what}
    items.append(marks | {"c": "alarm", "say": "alarm"})
    top = max([*(path.threshold for path in paths), *heights])
    return _chart("log10 of the evidence", items, of, None, (-0.5, top + HEADROOM * max(top, 1.0)))


def _levels(run: FollowedRun, name: str, of: str) -> list[Chart]:
    """Return error rates of prediction sets at each level, and the sizes of the sets."""
    one, most = run.standing(name), float(len(run.space.labels)) or None
    spread, title = one.kind.spread
    levels = {level: _colour(place) for place, level in enumerate(one.errors)}
    own = [{"draw": "across", "at": float(level), "c": colour, "dash": DASHED} for level, colour in levels.items()]
    grey = {"draw": "across", "at": None, "c": "grey", "dash": DASHED, "say": "the level itself"}

    def lines(what: str) -> list[Chart]:
        return [_line(what + level, colour, f"at level {level}") for level, colour in levels.items()]

    largest = max(map(float, levels)) * (1 + HEADROOM)
    return [
        _chart("error rate so far", [*lines("error_"), *own, grey], of, also=(0, largest), height=HEIGHT - 70),
        _chart(title, lines(spread), of, (0.0, most), (0,), HEIGHT - 110),
    ]


def _reliability(run: FollowedRun, name: str, colour: str) -> list[Chart]:
    """Return how often labels of each probability were right, and the numbers of predictions."""
    one = run.standing(name)
    bins = {key: [each[key] for each in one.bins] for key in ("confidence", "accuracy", "count", "lower", "upper")}
    most = max(bins["count"], default=1)
    dots = {"draw": "dots", **bins, "c": colour, "say": "predictions of a bin, larger where there are more"}
    x, below = (-0.03, 1.05), "probability of the predicted label"
    even = {"draw": "even", "c": "grey", "dash": DASHED, "say": "as often right as said"}
    large = {"below": below, "beside": "share that was right", "x": x, "y": (-0.05, 1.07), "items": [even, dots],
             "height": HEIGHT - 30}  # fmt: skip
    small = {"below": "", "beside": "steps", "x": x, "y": (0, most * (1 + HEADROOM)), "height": 110,
             "items": [{"draw": "bars", **bins, "c": colour}]}  # fmt: skip
    found: list[Chart] = [large, small]
    return found if one.guaranteed == NOTHING else [*found, {"note": BESIDE}]


def of_all(run: FollowedRun, of: str) -> Any:
    """Return the accuracies of all predictors in one chart; a text where there is one only."""
    if len(run.names) == 1:
        return "One predictor: see below."
    items = [
        _line(str(place), _colour(place), short(name), 2.2, "" if place < COLOURS else "2 4")
        for place, name in enumerate(run.names)
    ]
    return [_chart(run.right, items, of)]
