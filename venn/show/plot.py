"""Figures of cumulative curves; matplotlib, an extra, is imported when a figure is drawn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Okabe and Ito's palette keeps apart for colour-blind readers; the accuracy also differs by weight.
INK, GREY, BAND, CLAIM = "#1a1a1a", "#6b6b6b", "#0072B2", "#D55E00"
MOST_POINTS = 4000


class Curve(NamedTuple):
    """Cumulative means of one predictor, each (n,)."""

    accuracy: Floats
    lower: Floats
    upper: Floats
    interval: bool
    """False for a point forecaster, whose lower and upper curves are one."""


def curves(panels: Mapping[str, Curve], title: str, path: str | os.PathLike[str] | None = None) -> Figure:
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
    The vertical range fits the last 90 % of the steps and the first 1 % is not drawn: the first few means
    swing over all of [0, 1].
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "vennstream[plot]"') from error

    n_columns = ceil(sqrt(len(panels)))
    n_rows = ceil(len(panels) / n_columns)
    # Figure itself, not pyplot: no window system and no global state.
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
    figure = Figure(figsize=(max(6.5, 5.0 * n_columns), 1.0 + 3.0 * n_rows), dpi=150, layout=layout)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    n = len(next(iter(panels.values())).accuracy)
    shown = _shown(n)
    for axis, (name, curve) in zip(axes, panels.items(), strict=False):
        _draw(axis, name, curve, shown)
    for axis in axes[len(panels) :]:
        axis.remove()
    # The axis above a removed one is the last of its column and gets the numbers back.
    for axis in axes[len(panels) - n_columns : len(panels)] if n_rows > 1 else axes[: len(panels)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("examples", color=GREY)
    for row in grid:
        row[0].set_ylabel("mean so far", color=GREY)
    axes[0].set_xlim(0, n)
    axes[0].set_ylim(*_range(panels.values(), n))
    figure.suptitle(title, x=0.02, ha="left", fontsize=14, fontweight="bold", color=INK)
    handles: dict[str, Artist] = {}
    for axis in axes[: len(panels)]:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize=10,
    )
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return figure


def _draw(axis: Axes, name: str, curve: Curve, shown: NDArray[np.int64]) -> None:
    x = shown + 1
    marker = "o" if len(x) == 1 else None  # a line through one point would not show
    accuracy, lower, upper = (values[shown] for values in (curve.accuracy, curve.lower, curve.upper))
    if curve.interval:
        axis.fill_between(
            x,
            lower,
            upper,
            color=BAND,
            alpha=0.22,
            linewidth=0,
            label="between mean lower and mean upper probability",
        )
        for bound in (lower, upper):
            axis.plot(x, bound, color=BAND, linewidth=0.9, marker=marker)
        claim = f" in [{curve.lower[-1]:.3f}, {curve.upper[-1]:.3f}]"
    else:
        axis.plot(
            x,
            lower,
            color=CLAIM,
            linewidth=1.6,
            dashes=(4, 1.6),
            marker=marker,
            label="mean claimed probability",
        )
        claim = f", claimed {curve.lower[-1]:.3f}"
    axis.plot(x, accuracy, color=INK, linewidth=1.6, marker=marker, label="accuracy")
    axis.set_title(name, loc="left", fontsize=12, fontweight="bold", color=INK)
    axis.set_title(f"accuracy {curve.accuracy[-1]:.3f}{claim}", loc="right", fontsize=10, color=GREY)
    axis.grid(axis="y", color="#e4e4e4", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.spines["bottom"].set_color("#b5b5b5")
    axis.tick_params(colors=GREY, length=0, labelsize=10)


def _shown(n: int) -> NDArray[np.int64]:
    """Return the steps to draw: all, or enough of them, dense where the means still move."""
    first = n // 100
    if n <= MOST_POINTS:
        return np.arange(first, n)
    half = MOST_POINTS // 2
    steps = np.concatenate([np.geomspace(first + 1, n, half), np.linspace(first + 1, n, half)])
    return np.unique(steps.round().astype(np.int64)) - 1


def _range(panels: Iterable[Curve], n: int) -> tuple[float, float]:
    late = slice(n // 10, None)
    values = [v[late] for curve in panels for v in (curve.accuracy, curve.lower, curve.upper)]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    margin = 0.06 * max(high - low, 0.02)
    return float(low - margin), float(high + margin)
