"""Figures of distributions: reliability diagrams, histograms of p-values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import ceil, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn.monitors.bounds import binomial_limits
from venn.show.plot.panels import BAND, CLAIM, GREY, INK, Floats, blank, dress, finish, grid, label

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Path = str | os.PathLike[str]

LARGEST_POINT = 70.0  # area in square points
MOST_BINS = 20
BAND_LEVEL = 0.99
BAR = "#b5b5b5"


BESIDE = "* of point forecasts, which are not claimed: the verdict judges their intervals, or sets"


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
    #: Whether the forecasts are what is claimed; else they only stand for an interval around them, which is.
    claimed: bool = True


def reliability(diagrams: Mapping[str, Diagram], title: str, path: Path | None = None) -> Figure:
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
    some, ece = diagram.counts > 0, float(diagram.ece)
    return Diagram(*(getattr(diagram, field)[some] for field in Diagram._fields[:5]), ece, diagram.claimed)


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


def p_values(panels: Mapping[str, Floats], title: str, path: Path | None = None) -> Figure:
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
