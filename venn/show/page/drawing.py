"""The figures of the page, each with its legend: a `model` to place, and `feed`, which shows the run's state."""

from __future__ import annotations

from math import inf
from typing import Any, Protocol

from bokeh.layouts import column
from bokeh.models import ColumnDataSource

from venn.prediction import NOTHING
from venn.show.page import columns, words
from venn.show.page.axes import HEIGHT, Axes, phrase
from venn.show.page.columns import ERROR, Columns, Detector
from venn.show.page.feed import Run
from venn.show.page.words import SERIES

SHARES, ANY = (0.0, 1.0), (float("-inf"), float("inf"))
ALARM, GREY = "#c8372d", "#8a8a8a"
STEPS = ("answers", "@step{0,0}")
DASHES = {"Ville": "solid", "ForwardEProcess": "solid", "ShiryaevRoberts": "dotted"}
OTHER = "dashdot"
SWATCHES = {"solid": "line", "dotted": "dots", OTHER: "dash"}  # in the legend
#: How seldom each rings while nothing has changed, by its threshold.
FALSELY = {
    "Ville": ", falsely ever in at most one of {:,.0f} runs",
    "ForwardEProcess": ", falsely ever in at most one of {:,.0f} runs",
    "ShiryaevRoberts": ", falsely at least {:,.0f} steps apart on average",
}
BESIDE = "Drawn are point forecasts, of which nothing is claimed: the verdict judges the interval around them."
NO_EVIDENCE = "<p>No evidence is gathered here: there is no monitor, or nothing it could bet against.</p>"


class Drawn(Protocol):
    """One figure, or several that belong together."""

    model: Any

    def feed(self, run: Run) -> None:
        """Show the run's present state."""


class Predictor:
    """The figures of one predictor.

    Attributes
    ----------
    known : bool
        Whether the kind of the predictions is known, on which the figures depend.
    models : dict of str to model
        To be placed: "numbers", "accuracy", "evidence" and "calibration".
    """

    def __init__(self, run: Run, name: str) -> None:
        self.name = name
        snapshot = run.snapshot(name)
        self.known = snapshot["told"]["step"] > 0
        levels, detectors = columns.levels(snapshot), columns.detectors(snapshot)
        colour = SERIES[run.names.index(name) % len(SERIES)]
        rung = ColumnDataSource({"step": [], "log10": [], "what": []})
        accuracy = Accuracy(name, colour, rung, claims=not levels, what=columns.right(run))
        calibration: Drawn = (
            Sets(name, levels, columns.spread(snapshot))
            if levels
            else Reliability(name, colour, snapshot["told"]["guaranteed"] == NOTHING)
        )
        self._drawn: list[Drawn] = [accuracy, calibration]
        self._rung, self._numbers = rung, phrase()
        self.models = {
            "numbers": self._numbers, "accuracy": accuracy.model, "evidence": phrase(NO_EVIDENCE),
            "calibration": calibration.model,
        }  # fmt: skip
        if detectors:
            evidence = Evidence(name, detectors, rung)
            self._drawn.append(evidence)
            self.models["evidence"] = evidence.model
        self.feed(run)

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        self._numbers.text = words.numbers(run, self.name)
        rung = columns.alarms(run.alarms.get(self.name, ()))
        if rung["step"] != list(self._rung.data["step"]):
            self._rung.data = rung
        for drawn in self._drawn:
            drawn.feed(run)


class Accuracy:
    """The accuracy within its claimed band, over all steps and in the window; alarms as vertical lines."""

    def __init__(self, name: str, colour: str, rung: Any, claims: bool, what: str) -> None:
        self._name = name
        axes = self._axes = Axes("answers", what, ("step", "accuracy", "window", "lower", "upper"))
        entries = [(colour, "line", f"{what} so far"), (GREY, "thin", f"{what} in the window")]
        tooltips = [STEPS, (what, "@accuracy{0.0000}"), ("in the window", "@window{0.0000}")]
        if claims:
            axes.figure.varea("step", "lower", "upper", source=axes.source, fill_color=colour, fill_alpha=0.18)
            for end in ("lower", "upper"):
                axes.line(end, colour, 1.0, alpha=0.55)
            entries.append((colour, "band", "claimed: lower to upper, means so far"))
            tooltips.append(("claimed", "@lower{0.0000} to @upper{0.0000}"))
        axes.line("window", GREY, 1.2)
        axes.tell(axes.line("accuracy", colour, 2.6), tooltips)
        axes.figure.vspan(x="step", source=rung, line_color=ALARM, line_width=1.2, line_alpha=0.7)
        legend = words.legend([*entries, (ALARM, "thin", "alarm")])
        self.model = column(axes.figure, phrase(legend), sizing_mode="stretch_width")

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        data = run.once(columns.accuracy, self._name)
        self._axes.feed(data, run.thinned)
        shown = [data[key] for key in ("accuracy", "window", "lower", "upper")]
        self._axes.y.fit(*columns.span(data["step"], shown, SHARES))


class Evidence:
    """Martingales and other evidence, with the thresholds at which alarms ring."""

    def __init__(self, name: str, detectors: list[Detector], rung: Any) -> None:
        self._name, self._detectors, self._rung = name, detectors, rung
        axes = self._axes = Axes("answers", "log10 of the evidence", ("step", *(one.key for one in detectors)))
        sources = list(dict.fromkeys(one.about for one in detectors))
        entries = []
        for one in detectors:
            colour, dash = SERIES[sources.index(one.about) % len(SERIES)], DASHES.get(one.detector, OTHER)
            said = f"{one.detector}, {one.about}"
            axes.tell(axes.line(one.key, colour, 2.0, dash), [STEPS, (said, f"@{{{one.key}}}{{0.00}}")])
            entries.append((colour, SWATCHES[dash], words.text(said)))
        for detector, threshold in {(one.detector, one.threshold): None for one in detectors}:
            dash = "dashed" if DASHES.get(detector, OTHER) == "solid" else "dotted"
            axes.mark(threshold, ALARM, dash)
            rings = f"{detector} rings at 10<sup>{threshold:.3g}</sup>{FALSELY.get(detector, '').format(10**threshold)}"
            entries.append((ALARM, SWATCHES.get(dash, "dash"), rings))
        marks = axes.figure.scatter(
            "step", "log10", source=rung, marker="inverted_triangle", size=12, color=ALARM, level="overlay"
        )
        axes.tell(marks, [STEPS, ("alarm", "@what")], "mouse")
        legend = words.legend([*entries, (ALARM, "mark", "alarm")])
        self.model = column(axes.figure, phrase(legend), sizing_mode="stretch_width")

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        data = run.once(columns.evidence, self._name)
        self._axes.feed(data, run.thinned)
        low, high = columns.span(data["step"], [data[one.key] for one in self._detectors], ANY)
        if low > high:  # nothing seen
            low = high = 0.0
        top = max([high, *(one.threshold for one in self._detectors), *self._rung.data["log10"]])
        self._axes.y.fit(min(low, -0.5), top + columns.HEADROOM * max(top - low, 1.0))


class Sets:
    """Error rates of prediction sets at each level, and the sizes of the sets."""

    def __init__(self, name: str, levels: list[str], spread: tuple[str, str]) -> None:
        self._name, self._levels = name, levels
        self._spread, title = spread
        keys = ("step", *(what + level for what in (ERROR, self._spread) for level in levels))
        self._errors = Axes("answers", "error rate so far", keys, HEIGHT - 70)
        self._sizes = Axes("answers", title, keys, HEIGHT - 110, self._errors.x)
        self._sizes.source = self._errors.source
        entries = []
        for place, level in enumerate(levels):
            colour = SERIES[place % len(SERIES)]
            for axes, what in ((self._errors, ERROR), (self._sizes, self._spread)):
                axes.tell(axes.line(what + level, colour), [STEPS, (f"at {level}", f"@{{{what}{level}}}{{0.0000}}")])
            self._errors.mark(float(level), colour)
            entries.append((colour, "line", f"at level {words.text(level)}"))
        legend = words.legend([*entries, (GREY, "dash", "the level itself")])
        figures = (self._errors.figure, self._sizes.figure)
        self.model = column(*figures, phrase(legend), sizing_mode="stretch_width")

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        data = run.once(columns.sets, self._name)
        self._errors.feed(data, run.thinned)
        steps, most = data["step"], float(len(run.space.labels) or inf)
        _, high = columns.span(steps, [data[ERROR + level] for level in self._levels], SHARES)
        largest = max(float(level) for level in self._levels)
        self._errors.y.fit(0, max(high, largest * (1 + columns.HEADROOM)))
        _, high = columns.span(steps, [data[self._spread + level] for level in self._levels], (0.0, most))
        self._sizes.y.fit(0, high)


class Reliability:
    """How often labels of each probability were right, and the numbers of predictions."""

    def __init__(self, name: str, colour: str, claimed: bool) -> None:
        self._name = name
        keys = ("confidence", "accuracy", "count", "lower", "upper", "size")
        self._bins = ColumnDataSource({key: [] for key in keys})
        self._seen: Columns = {}
        axes = Axes("probability of the predicted label", "share that was right", height=HEIGHT - 30)
        counts = self._counts = Axes("", "steps", height=120, x=axes.x)
        axes.x.fit(-0.03, 1.05)
        axes.y.fit(-0.05, 1.07)
        tooltips = [("probability", "@confidence{0.000}"), ("right", "@accuracy{0.000}"), ("steps", "@count{0,0}")]
        axes.figure.line([0, 1], [0, 1], line_color=GREY, line_dash="dashed")
        axes.figure.line("confidence", "accuracy", source=self._bins, line_color=colour, line_alpha=0.5)
        dots = axes.figure.scatter("confidence", "accuracy", source=self._bins, size="size", color=colour)
        bars = counts.figure.quad("lower", "upper", "count", 0, source=self._bins, fill_color=colour, fill_alpha=0.5,
                                  line_color=None)  # fmt: skip
        axes.tell(dots, tooltips, "mouse")
        counts.tell(bars, tooltips, "mouse")
        counts.figure.update(toolbar_location=None)
        counts.figure.yaxis.ticker.desired_num_ticks = 2
        entries = [(colour, "line", "predictions of a bin, larger where there are more"),
                   (GREY, "dash", "as often right as said")]  # fmt: skip
        parts = [axes.figure, counts.figure, phrase(words.legend(entries))]
        if not claimed:
            parts.append(phrase(f"<p class='fine'>{BESIDE}</p>"))
        self.model = column(*parts, sizing_mode="stretch_width")

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        bins = columns.reliability(run.snapshot(self._name))
        if bins != self._seen:
            most = max(bins["count"], default=1)
            self._seen, self._bins.data = bins, bins | {"size": [5 + 13 * (n / most) ** 0.5 for n in bins["count"]]}
            self._counts.y.fit(0, most * (1 + columns.HEADROOM))


class Comparison:
    """The accuracies of all predictors in one figure."""

    def __init__(self, run: Run) -> None:
        keys = ("step", *(str(place) for place in range(len(run.names))))
        axes = self._axes = Axes("answers", columns.right(run), keys)
        entries = []
        for place, name in enumerate(run.names):
            colour = SERIES[place % len(SERIES)]
            dash = "solid" if place < len(SERIES) else "dotted"
            axes.tell(axes.line(str(place), colour, 2.2, dash), [STEPS, (name, f"@{{{place}}}{{0.0000}}")])
            entries.append((colour, SWATCHES[dash], words.text(name)))
        self.model = column(axes.figure, phrase(words.legend(entries)), sizing_mode="stretch_width")
        self.feed(run)

    def feed(self, run: Run) -> None:
        """Show the run's present state."""
        data = run.once(columns.compared)
        self._axes.feed(data, run.thinned)
        values = [data[str(place)] for place in range(len(run.names))]
        self._axes.y.fit(*columns.span(data["step"], values, SHARES))
