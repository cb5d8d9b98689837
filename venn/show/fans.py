"""Figures of series: forecasts of the next values, as fans of intervals, beside the values that came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from venn.show.plot import BAND, INK, blank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.05, 0.2)  # of the two shades


def fans(values: Any, paths: Sequence[tuple[int, Any]], name: str = "") -> Figure:
    """Return a figure of values, and of some of the paths that were forecast on the way.

    Parameters
    ----------
    values : (n,) numbers
        NaN where one is missing.
    paths : sequence of (int, Path)
        Where the last value stands that was known, and the path that was forecast then.
    name : str
        Of the series.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    figure = blank(9.0, 3.8)
    axes = figure.subplots()
    values = np.asarray(values, np.float64)
    first = min((place for place, _ in paths), default=0)
    last = max((place + len(path) for place, path in paths), default=len(values) - 1)
    begin = max(0, first - (last - first) // 10 - 1)
    steps = np.arange(begin, min(last + 1, len(values)))
    for place, path in paths:
        ahead = np.arange(place + 1, place + 1 + len(path))
        for level, shade in zip(LEVELS, (0.18, 0.35), strict=True):
            ends = path.intervals(level)
            shown = np.isfinite(ends).all(axis=1)
            lower, upper = np.where(shown[:, None], ends, np.nan).T
            axes.fill_between(ahead, lower, upper, color=BAND, alpha=shade, linewidth=0)
        axes.plot(ahead, path.medians, color=BAND, linewidth=1.2)
    axes.plot(steps, values[steps], color=INK, linewidth=0.9)
    axes.set_xlabel("value")
    axes.set_title(
        f"{name}{': ' if name else ''}medians, and intervals that miss 1 in 5 and 1 in 20 in the long run", fontsize=10
    )
    return figure
