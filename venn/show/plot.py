"""Figures of arrays; matplotlib, an extra, is imported when a figure is drawn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn.monitors.bounds import binomial_limits
from venn.monitors.notebook import png

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Target = str | os.PathLike[str]

# Okabe and Ito's palette keeps apart for colour-blind readers; lines that matter also differ by weight or dashes.
INK, GREY, PALE, BAND, CLAIM = "#1a1a1a", "#6b6b6b", "#e4e4e4", "#0072B2", "#D55E00"
SERIES = (INK, BAND, CLAIM, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LETTER = 0.077  # approximate width of a letter of 10 points, in inches
LARGEST_POINT = 70.0  # area in square points
MOST_BINS = 20
BAND_LEVEL = 0.99
BAR = "#b5b5b5"
BESIDE = "* of point forecasts, which are not claimed: the verdict judges their intervals, or sets"
MOST_POINTS = 4000
RINGS = "an alarm rings here: falsely ever in at most one of so many runs"
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.6), (1.2, 1.2))


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install matplotlib") from error
    # Figure itself, not pyplot: no window system and no global state. A notebook then needs to be told how to show it.
    figure = Figure(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    figure._repr_png_ = partial(png, figure)  # type: ignore[attr-defined]
    return figure


def grid(n_panels: int) -> tuple[Figure, list[Axes], int]:
    """Return a figure, its axes in reading order, and the number of columns, about as many as rows."""
    n_columns = ceil(sqrt(n_panels))
    n_rows = ceil(n_panels / n_columns)
    figure = blank(max(6.5, 5.0 * n_columns), 1.0 + 3.0 * n_rows)
    cells = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    axes = list(cells.flat)
    for axis in axes[n_panels:]:
        axis.remove()
    return figure, axes[:n_panels], n_columns


def label(axes: Sequence[Axes], n_columns: int, below: str, beside: str) -> None:
    """Name the axes: below the last panel of each column, beside the first of each row."""
    # The panel above a removed one is the last of its column and gets the numbers back.
    for axis in axes[-n_columns:]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel(below, color=GREY)
    for axis in axes[::n_columns]:
        axis.set_ylabel(beside, color=GREY)


def dress(axis: Axes, name: str, note: str) -> None:
    """Give a panel its name, a note with its numbers, and quiet lines."""
    figure, cell = axis.get_figure(root=True), axis.get_subplotspec()
    width = (figure.get_figwidth() if figure else 0.0) / (cell.get_gridspec().ncols if cell else 1) - 0.9
    # A title is one line: if both do not fit, the note goes below the name.
    together = LETTER * (1.4 * len(name) + len(note)) <= width
    axis.set_title(name if together else f"{name}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    axis.set_title(note, loc="right", fontsize=10, color=GREY)
    axis.grid(axis="y", color=PALE, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.spines["bottom"].set_color("#b5b5b5")
    axis.tick_params(colors=GREY, length=0, labelsize=10)


def handles_of(axes: Sequence[Axes]) -> dict[str, Artist]:
    """Return the entries of the common legend, by their text."""
    handles: dict[str, Artist] = {}
    for axis in axes:
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    return handles


def finish(figure: Figure, handles: Mapping[str, Artist], title: str, path: Target | None) -> Figure:
    """Add the title and one legend for all panels; write the file, making its folder."""
    size = min(14.0, max(8.0, 14.0 * figure.get_figwidth() / (2.1 * LETTER * len(title) + 0.5)))
    figure.suptitle(title, x=0.02, ha="left", fontsize=size, fontweight="bold", color=INK)
    # As many columns as fit: a legend does not wrap by itself.
    widths = [LETTER * len(text) + 0.75 for text in handles]
    fits = figure.get_figwidth() - 0.2
    n_columns = len(widths) if sum(widths) <= fits else max(1, int(fits / max(widths)))
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=n_columns, frameon=False, fontsize=10
    )
    texts: list[Any] = figure.findobj(lambda artist: hasattr(artist, "set_parse_math"))
    for text in texts:
        text.set_parse_math(False)  # dollars in a name are dollars: as a formula they may be an error
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        layout: Any = figure.get_layout_engine()
        layout.execute(figure)  # here, for `savefig` would draw everything once more before it does so
        figure.set_layout_engine(None)
        figure.savefig(path)
        figure.set_layout_engine(layout)
    return figure


# ---------------------------------------- against the number of examples


class Curve(NamedTuple):
    """Cumulative means of one predictor, each (n,)."""

    accuracy: Floats
    lower: Floats
    upper: Floats
    #: False for a point forecaster, whose lower and upper curves are equal.
    interval: bool
    #: Ends of a band around the accuracy that holds at all steps together, such as a confidence sequence.
    band: tuple[Floats, Floats] | None = None


def curves(panels: Mapping[str, Curve], title: str, path: Target | None = None) -> Figure:
    """Draw accuracy against claimed probability, one panel per predictor, all on the same axes.

    Parameters
    ----------
    panels : mapping of name to Curve
        At least one; all with the same number n >= 1 of steps.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    The vertical range fits the last 90 % of the steps, and the first 1 % is not drawn: the first few means vary over
    all of [0, 1]. For a band it fits the end.
    """
    n = len(next(iter(panels.values())).accuracy)
    figure, axes, n_columns = grid(len(panels))
    shown = _shown(n)
    for axis, (name, curve) in zip(axes, panels.items(), strict=True):
        _draw(axis, name, curve, shown)
    label(axes, n_columns, "examples", "mean so far")
    _across(axes[0], n)
    axes[0].set_ylim(*_range(panels.values(), n))
    return finish(figure, handles_of(axes), title, path)


def _draw(axis: Axes, name: str, curve: Curve, shown: NDArray[np.int64]) -> None:
    x = shown + 1
    marker = "o" if len(x) == 1 else None  # a line through one point would be invisible
    accuracy, lower, upper = (values[shown] for values in (curve.accuracy, curve.lower, curve.upper))
    if curve.band is not None:
        low, high = (values[shown] for values in curve.band)
        axis.fill_between(x, low, high, color=GREY, alpha=0.12, linewidth=0, label="time-uniform band")
        for end in (low, high):
            axis.plot(x, end, color=GREY, linewidth=0.6, alpha=0.6, marker="_" if marker else None)
    if curve.interval:
        axis.fill_between(
            x, lower, upper, color=BAND, alpha=0.22, linewidth=0, label="between mean lower and mean upper probability"
        )
        for bound in (lower, upper):
            axis.plot(x, bound, color=BAND, linewidth=0.9, marker=marker)
        claim = f" in [{curve.lower[-1]:.3f}, {curve.upper[-1]:.3f}]"
    else:
        axis.plot(
            x, lower, color=CLAIM, linewidth=1.6, dashes=(4, 1.6), marker=marker, label="mean claimed probability"
        )
        claim = f", claimed {curve.lower[-1]:.3f}"
    axis.plot(x, accuracy, color=INK, linewidth=1.6, marker=marker, label="accuracy")
    dress(axis, name, f"accuracy {curve.accuracy[-1]:.3f}{claim}")


def _across(axis: Axes, n: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_xlim(0, max(n, 2))  # so that a single step is not on the edge
    axis.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def _shown(n: int) -> NDArray[np.int64]:
    """Return the steps to draw: all, or enough of them, dense where the means still move."""
    first = n // 100
    if n <= MOST_POINTS:
        return np.arange(first, n)
    half = MOST_POINTS // 2
    steps = np.concatenate([np.geomspace(first + 1, n, half), np.linspace(first + 1, n, half)])
    return np.unique(steps.round().astype(np.int64)) - 1


def _range(panels: Iterable[Curve], n: int) -> tuple[float, float]:
    panels = list(panels)
    late = slice(n // 10, None)
    values = [v[late] for curve in panels for v in (curve.accuracy, curve.lower, curve.upper)]
    values += [end[-1:].clip(0, 1) for curve in panels for end in curve.band or ()]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    margin = 0.06 * max(high - low, 0.02)
    return float(low - margin), float(high + margin)


def martingales(
    paths: Mapping[str, Floats],
    thresholds: Mapping[str, float],
    alarms: Mapping[str, Sequence[int]],
    title: str,
    path: Target | None = None,
) -> Figure:
    """Draw the logarithms of test martingales, or of other evidence, with thresholds and alarms.

    Parameters
    ----------
    paths : mapping of name to (n,) float64
        log10 of the evidence after each step, n >= 1; infinite values are allowed, NaN is not.
    thresholds : mapping of label to float
        log10 of the evidence at which an alarm rings; may be empty.
    alarms : mapping of name to sequence of int in 1..n
        Steps at which the alarm of a path rang; names without alarms may be absent.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    A martingale that bets on exchangeable data loses without end, and its fall would flatten the other curves; so
    values far below the rest, and infinite ones, are drawn at the edge, and the figure says so.
    """
    n = len(next(iter(paths.values())))
    figure = blank(8.5, 4.2 + 0.2 * (len(paths) // 2))
    axis = figure.subplots()
    low, high = _window(paths.values(), thresholds.values())
    edges = []
    for i, (name, values) in enumerate(paths.items()):
        drawn = values.clip(low, high)
        at = _extremes(drawn)
        colour = SERIES[i % len(SERIES)]
        rung = np.asarray(alarms.get(name, ()), np.int64)
        rang = f", {len(rung)} alarm{'s' * (len(rung) > 1)} from step {rung.min()}" if len(rung) else ""
        axis.plot(
            np.append(0, at + 1),
            np.append(0.0, drawn[at]),  # before the first step the capital is 1
            color=colour,
            linewidth=1.4,
            dashes=DASHES[i // len(SERIES) % len(DASHES)] or (None, None),
            label=f"{name}: {values[-1]:.4g}{rang}",
        )
        if len(rung):  # an empty line of marks that may pass the frame would still take room in the layout
            (marks,) = axis.plot(rung, drawn[rung - 1], "v", color=colour, markersize=8, clip_on=False, zorder=4)
            marks.set_markeredgecolor("white")
        if values.min() < low:
            edges.append(f"{name} falls to {values.min():.4g}")
        if values.max() > high:
            edges.append(f"{name} is infinite from step {int((values > high).argmax()) + 1}")
    _levels(axis, thresholds, high - low)
    dress(axis, "log10 of the evidence", "")
    more = f" and {len(edges) - 2} more" if len(edges) > 2 else ""
    label([axis], 1, f"examples\n(drawn at the edge: {', '.join(edges[:2])}{more})" if edges else "examples", "")
    margin = 0.04 * (high - low)
    _across(axis, n)
    axis.set_ylim(low - margin, high + margin)
    handles = handles_of([axis])
    if thresholds:
        (line,) = axis.plot([], [], color=GREY, linewidth=0.9, dashes=(5, 3))
        handles = {**handles, RINGS: line}
    return finish(figure, handles, title, path)


def _window(paths: Iterable[Floats], thresholds: Iterable[float]) -> tuple[float, float]:
    """Return the vertical range: all finite values, except the far depths of paths that only fall."""
    paths = list(paths)
    finite = np.concatenate([values[np.isfinite(values)] for values in paths] + [[*thresholds], [0.0]])
    # Infinite values are drawn above all finite ones.
    high = max(float(finite.max()), 0.5) * (1.15 if any(np.isposinf(values).any() for values in paths) else 1.0)
    return max(float(finite.min()), -2 * high - 2), high


def _levels(axis: Axes, thresholds: Mapping[str, float], height: float) -> None:
    at = -np.inf
    for text, level in sorted(thresholds.items(), key=lambda item: item[1]):
        axis.axhline(level, color=GREY, linewidth=0.9, dashes=(5, 3), zorder=1)
        at = max(level, at + 0.065 * height)  # names of lines close together are moved apart
        axis.text(
            1.01, at, f"{level:.3g}  {text}", transform=axis.get_yaxis_transform(), va="center", fontsize=9, color=GREY
        )


def _extremes(values: Floats) -> NDArray[np.int64]:
    """Return positions to draw, with the lowest and highest of every stretch: no peak is lost."""
    n = len(values)
    if n <= MOST_POINTS:
        return np.arange(n)
    starts = np.linspace(0, n, MOST_POINTS // 4 + 1).astype(np.int64)
    stretches = list(pairwise(starts))
    lowest = [a + values[a:b].argmin() for a, b in stretches]
    highest = [a + values[a:b].argmax() for a, b in stretches]
    return np.unique(np.concatenate([starts[:-1], starts[1:] - 1, lowest, highest]))


def errors(panels: Mapping[str, Mapping[float, Floats]], title: str, path: Target | None = None) -> Figure:
    """Draw cumulative errors of prediction sets at several levels against the lines they should follow.

    Parameters
    ----------
    panels : mapping of name to (mapping of epsilon to (n,) array)
        Number of errors after each step, n >= 1, for significance levels epsilon in [0, 1]; at least one level
        in all.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    Errors of smoothed conformal predictors at level epsilon follow the dashed line epsilon n up to chance;
    errors of plain ones stay at or below it.
    """
    levels = sorted({epsilon for counts in panels.values() for epsilon in counts})
    n = len(next(values for counts in panels.values() for values in counts.values()))
    figure, axes, n_columns = grid(len(panels))
    at = np.arange(n) if n <= MOST_POINTS else np.unique(np.linspace(0, n - 1, MOST_POINTS).astype(np.int64))
    for axis, (name, counts) in zip(axes, panels.items(), strict=True):
        for epsilon in sorted(counts, reverse=True):
            values, i = np.asarray(counts[epsilon]), levels.index(epsilon)
            colour = SERIES[i % len(SERIES)]
            axis.plot([0, n], [0, epsilon * n], color=colour, linewidth=1.0, dashes=(5, 3))
            axis.plot(
                np.append(0, at + 1), np.append(0, values[at]), color=colour, linewidth=1.6, label=f"at {epsilon:g}"
            )
        rates = ", ".join(f"{counts[epsilon][-1] / n:.3f} at {epsilon:g}" for epsilon in sorted(counts))
        dress(axis, name, f"errors {rates}")
    label(axes, n_columns, "examples", "errors so far (dashed: epsilon n)")
    _across(axes[0], n)
    axes[0].set_ylim(0, None)
    return finish(figure, handles_of(axes), title, path)


# ---------------------------------------- distributions


class Diagram(NamedTuple):
    """Forecasts in b bins, each array (b,); in a bin of count 0 the other values are not read."""

    #: Mean forecast probability of the bin.
    confidence: Floats
    #: Share of the bin in which the event came true.
    frequency: Floats
    counts: NDArray[np.int64]
    #: Ends of the consistency bar: where the frequency of calibrated forecasts would lie.
    low: Floats
    high: Floats
    #: Expected calibration error.
    ece: float
    #: Whether the forecasts themselves are claimed; if not, the interval around each of them is.
    claimed: bool = True


def reliability(diagrams: Mapping[str, Diagram], title: str, path: Target | None = None) -> Figure:
    """Draw how often events happened against their forecast probability, one panel per predictor.

    Points stand for bins, their areas for the number of forecasts; a point beyond its consistency bar is drawn
    in the colour of a warning and as a diamond. Below each panel: the counts of its bins.

    Parameters
    ----------
    diagrams : mapping of name to Diagram
        At least one; the numbers of bins may differ.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    filled = {name: _filled(diagram) for name, diagram in diagrams.items()}
    n_columns = ceil(sqrt(len(diagrams)))
    n_rows = ceil(len(diagrams) / n_columns)
    figure = blank(max(6.5, 4.2 * n_columns), 1.0 + 5.0 * n_rows)
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    cells = figure.subplots(
        2 * n_rows, n_columns, sharex=True, squeeze=False, gridspec_kw={"height_ratios": [5, 1] * n_rows}
    )
    lowest = [np.concatenate([d.confidence, d.frequency, d.low]).min(initial=1.0) for d in filled.values()]
    # Forecasts of the predicted class may all lie near 1: the square begins where they do.
    start = min(0.9, float(np.floor(10 * min(lowest)) / 10)) if any(len(d.counts) for d in filled.values()) else 0.0
    for i, (name, diagram) in enumerate(filled.items()):
        row, column = divmod(i, n_columns)
        axis, histogram = cells[2 * row, column], cells[2 * row + 1, column]
        _diagram(axis, name, diagram, start)
        _counts(histogram, diagram)
        if column == 0:
            axis.set_ylabel("how often it came true", color=GREY)
            histogram.set_ylabel("count", color=GREY)
    for i in range(len(filled), n_rows * n_columns):
        row, column = divmod(i, n_columns)
        cells[2 * row, column].remove()
        cells[2 * row + 1, column].remove()
    margin = 0.03 * (1 - start)
    cells[0, 0].set_xlim(start - margin, 1 + margin)
    cells[0, 0].xaxis.set_major_locator(MaxNLocator(5))
    for axis in cells[::2].flat:
        axis.yaxis.set_major_locator(MaxNLocator(5))
    handles: dict[str, Artist] = {
        "where calibrated forecasts would be": Patch(color=BAND, alpha=0.25, linewidth=0),
        "bin": Line2D([], [], color=INK, marker="o", linestyle=""),
        "bin beyond its bar": Line2D([], [], color=CLAIM, marker="D", linestyle=""),
    }
    if not all(diagram.claimed for diagram in diagrams.values()):
        handles[BESIDE] = Line2D([], [], linestyle="")
    return finish(figure, handles, title, path)


def _filled(diagram: Diagram) -> Diagram:
    """Return the bins that hold a forecast."""
    kept = {field: getattr(diagram, field)[diagram.counts > 0] for field in Diagram._fields[:5]}
    return diagram._replace(**kept)


def _diagram(axis: Axes, name: str, diagram: Diagram, start: float) -> None:
    axis.plot([start, 1], [start, 1], color=GREY, linewidth=0.9, dashes=(5, 3), zorder=1)
    n_bins = len(diagram.counts)
    outside = (diagram.frequency < diagram.low) | (diagram.frequency > diagram.high)
    axis.vlines(diagram.confidence, diagram.low, diagram.high, color=BAND, alpha=0.25, linewidth=7)
    areas = 14 + LARGEST_POINT * diagram.counts / max(1, diagram.counts.max(initial=1))
    for chosen, marker, colour in ((~outside, "o", INK), (outside, "D", CLAIM)):
        axis.scatter(
            diagram.confidence[chosen],
            diagram.frequency[chosen],
            s=areas[chosen],
            marker=marker,
            color=colour,
            edgecolor="white",
            linewidth=0.8,
            zorder=3,
            clip_on=False,
        )
    margin = 0.03 * (1 - start)
    axis.set_ylim(start - margin, 1 + margin)
    beyond = f", {outside.sum()} of {n_bins} bins beyond" if n_bins else ", no forecast"
    dress(axis, name, f"{'' if diagram.claimed else '* '}ECE {diagram.ece:.3f}{beyond}")
    axis.tick_params(labelbottom=False)


def _counts(axis: Axes, diagram: Diagram) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.vlines(diagram.confidence, 0, diagram.counts, color=GREY, linewidth=7)
    dress(axis, "", "")
    axis.set_ylim(0, 1.15 * diagram.counts.max(initial=1))
    axis.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    axis.tick_params(labelbottom=True)
    axis.set_xlabel("forecast probability", color=GREY)


def p_values(panels: Mapping[str, Floats], title: str, path: Target | None = None) -> Figure:
    """Draw histograms of p-values against the uniform distribution, one panel per predictor.

    Parameters
    ----------
    panels : mapping of name to (n,) float64 in [0, 1]
        At least one; the numbers n >= 1 may differ.
    title : str
    path : str or path, optional
        Where to write the figure, at 150 dots per inch; the suffix chooses the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not installed.

    Notes
    -----
    The band holds the count of each single bin with probability at least 99 % if the p-values are independent and
    uniform: of 20 bins one is occasionally outside by chance.
    """
    figure, axes, n_columns = grid(len(panels))
    highest = max(_histogram(axis, name, values) for axis, (name, values) in zip(axes, panels.items(), strict=True))
    label(axes, n_columns, "p-value", "share, against uniform")
    axes[0].set_xlim(0, 1)
    axes[0].set_ylim(0, 1.06 * highest)
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: dict[str, Artist] = {
        "uniform": Line2D([], [], color=INK, linewidth=1.2),
        "99 % of uniform bins": Patch(facecolor=(0, 0.447, 0.698, 0.15), edgecolor=BAND),
        "bin": Patch(facecolor=BAR),
        "bin beyond the band": Patch(facecolor=CLAIM, hatch="///", edgecolor="white"),
    }
    return finish(figure, handles, title, path)


def _histogram(axis: Axes, name: str, values: Floats) -> float:
    """Draw one panel; return its height."""
    n = len(values)
    n_bins = min(MOST_BINS, max(5, n // 10))
    counts, edges = np.histogram(values, bins=n_bins, range=(0.0, 1.0))
    low, high = binomial_limits(BAND_LEVEL, n, 1 / n_bins)
    unit = n_bins / n  # a count in units of the expected count
    outside = (counts < low) | (counts > high)
    axis.axhspan(low * unit, high * unit, color=BAND, alpha=0.15, linewidth=0, zorder=0)
    for end in (low, high):
        axis.axhline(end * unit, color=BAND, linewidth=0.9, zorder=2.5)
    for chosen, colour, hatch in ((~outside, BAR, None), (outside, CLAIM, "///")):
        axis.bar(
            edges[:-1][chosen],
            counts[chosen] * unit,
            width=1 / n_bins,
            align="edge",
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.8,
            zorder=2,
        )
    axis.axhline(1.0, color=INK, linewidth=1.2, zorder=3)
    dress(axis, name, f"{n} p-value{'s' * (n > 1)}, {outside.sum()} of {n_bins} bins beyond")
    return float(max(counts.max() * unit, high * unit))
