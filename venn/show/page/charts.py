"""The curves of a run as plain data: what is drawn, where, in which words; `page.js` draws it on page and report."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import Any

from venn.monitors.alarms import PER_DECADE
from venn.prediction import NOTHING
from venn.show.page.feed import Run
from venn.show.page.words import short

Chart = dict[str, Any]
Columns = dict[str, list[Any]]

SHARE, HEADROOM = 0.1, 0.08  # share of first steps ignored for the range; extra range above and below
LOWEST = -12.0  # a martingale that only loses would flatten the other curves; it is drawn here
SHARES, ANY = (0.0, 1.0), (-inf, inf)
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


def table(run: Run, name: str) -> Columns:
    """Return `step` and all that is drawn of a predictor over the steps, NaN where not known.

    These are `accuracy`, `window`, `lower` and `upper`; for each level the `error_...` and the `size_...` of sets or
    the `width_...` of intervals; for each detector the base 10 logarithms of its evidence.
    """
    one = run.standing(name)
    curves, window, paths = ([figures.get(name, {}).get(part, {}) for _, figures in run.points]
                             for part in ("curves", "window", "evidence"))  # fmt: skip
    of_levels = [f"{what}{level}" for what in ("error_", one.kind.spread[0]) for level in one.errors]
    means = {key: [point.get(key, nan) for point in curves] for key in ("accuracy", "lower", "upper", *of_levels)}
    found = steps(run) | means | {"window": [point.get("accuracy", nan) for point in window]}
    for path in one.evidence:
        values = [point.get(path.key) for point in paths]
        found[path.key] = [nan if value is None else max(value, LOWEST) for value in values]
    return found


def compared(run: Run) -> Columns:
    """Return `step` and the accuracy of every predictor, named by its position."""
    return steps(run) | {str(place): run.once(table, name)["accuracy"] for place, name in enumerate(run.names)}


def steps(run: Run) -> Columns:
    """Return the steps of the points."""
    return {"step": [step for step, _ in run.points]}


def rows(columns: Columns, after: int) -> Columns:
    """Return the rows after so many as JSON takes them, with six digits."""
    return {key: [value if isinstance(value, int) else float(f"{value:.6g}") if isfinite(value) else None
                  for value in values[after:]] for key, values in columns.items()}  # fmt: skip


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


# ------------------------------------------------------------------------- charts


def _chart(beside: str, y: tuple[float, float], items: Sequence[Any], of: str, height: int = HEIGHT) -> Chart:
    """Return a chart of columns of the table `of` over the steps."""
    return {"below": "answers", "beside": beside, "y": y, "items": items, "of": of, "height": height}


def _line(column: str, colour: str, say: str, width: float = 2.0, dash: str = "") -> Chart:
    return {"draw": "line", "column": column, "c": colour, "say": say, "width": width, "dash": dash}


def _colour(place: int) -> str:
    return f"c{place % COLOURS}"


def of_predictor(run: Run, name: str, of: str) -> dict[str, Any]:
    """Return the charts of a predictor by place, "accuracy", "evidence" and "calibration"; a text where there is none.

    Parameters
    ----------
    run : Run
    name : str
    of : str
        What its table is called.
    """
    one, columns = run.standing(name), run.once(table, name)
    colour = _colour(run.names.index(name))
    rung = list(run.alarms.get(name, ()))
    at = [alarm["step"] for alarm in rung]
    items = [_line("window", "grey", f"{run.right} in the window", 1.2), _line("accuracy", colour, run.right, 2.6),
             {"draw": "rung", "x": at, "c": "alarm", "say": "alarm"}]  # fmt: skip
    drawn = ["accuracy", "window"]
    if not one.errors:
        band = {"draw": "band", "column": "lower", "to": "upper", "c": colour, "say": "claimed, lower to upper"}
        items, drawn = [band, *items], [*drawn, "lower", "upper"]
    accuracy = _chart(run.right, span(columns["step"], [columns[key] for key in drawn], SHARES), items, of)
    return {
        "accuracy": [accuracy],
        "evidence": [_evidence(run, name, of)] if one.evidence else NO_EVIDENCE,
        "calibration": _levels(run, name, of) if one.errors else _reliability(run, name, colour),
    }


def _evidence(run: Run, name: str, of: str) -> Chart:
    """Return martingales and other evidence, with the thresholds at which alarms ring."""
    paths, columns = run.standing(name).evidence, run.once(table, name)
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
    low, high = span(columns["step"], [columns[path.key] for path in paths], ANY)
    if low > high:  # nothing seen
        low = high = 0.0
    top = max([high, *(path.threshold for path in paths), *heights])
    y = min(low, -0.5), top + HEADROOM * max(top - low, 1.0)
    return _chart("log10 of the evidence", y, items, of)


def _levels(run: Run, name: str, of: str) -> list[Chart]:
    """Return error rates of prediction sets at each level, and the sizes of the sets."""
    one, columns = run.standing(name), run.once(table, name)
    spread, title = one.kind.spread
    levels = {level: _colour(place) for place, level in enumerate(one.errors)}
    own = [{"draw": "across", "at": float(level), "c": colour, "dash": DASHED} for level, colour in levels.items()]
    grey = {"draw": "across", "at": None, "c": "grey", "dash": DASHED, "say": "the level itself"}

    def lines(what: str) -> list[Chart]:
        return [_line(what + level, colour, f"at level {level}") for level, colour in levels.items()]

    _, high = span(columns["step"], [columns[f"error_{level}"] for level in levels], SHARES)
    errors = 0.0, max(high, max(map(float, levels)) * (1 + HEADROOM))
    _, large = span(
        columns["step"], [columns[spread + level] for level in levels], (0.0, float(len(run.space.labels) or inf))
    )
    return [
        _chart("error rate so far", errors, [*lines("error_"), *own, grey], of, HEIGHT - 70),
        _chart(title, (0.0, large if isfinite(large) else 1.0), lines(spread), of, HEIGHT - 110),
    ]


def _reliability(run: Run, name: str, colour: str) -> list[Chart]:
    """Return how often labels of each probability were right, and the numbers of predictions."""
    one = run.standing(name)
    bins = {key: [each[key] for each in one.bins] for key in ("confidence", "accuracy", "count", "lower", "upper")}
    most = max(bins["count"], default=1)
    dots = {"draw": "dots", **bins, "c": colour, "say": "predictions of a bin, larger where there are more"}
    x, below = (-0.03, 1.05), "probability of the predicted label"
    even = {"draw": "even", "c": "grey", "dash": DASHED, "say": "as often right as said"}
    found = [
        {
            "below": below,
            "beside": "share that was right",
            "x": x,
            "y": (-0.05, 1.07),
            "items": [even, dots],
            "height": HEIGHT - 30,
        },
        {
            "below": "",
            "beside": "steps",
            "x": x,
            "y": (0, most * (1 + HEADROOM)),
            "items": [{"draw": "bars", **bins, "c": colour}],
            "height": 110,
        },
    ]
    return found if one.guaranteed == NOTHING else [*found, {"note": BESIDE}]


def of_all(run: Run, of: str) -> Any:
    """Return the accuracies of all predictors in one chart; a text where there is one only."""
    if len(run.names) == 1:
        return "One predictor: see below."
    columns = run.once(compared)
    items = [
        _line(str(place), _colour(place), short(name), 2.2, "" if place < COLOURS else "2 4")
        for place, name in enumerate(run.names)
    ]
    y = span(columns["step"], [columns[str(place)] for place in range(len(run.names))], SHARES)
    return [_chart(run.right, y, items, of)]
