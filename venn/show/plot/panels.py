"""The common parts of the figures: palette, panels, legend, the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Okabe and Ito's palette keeps apart for colour-blind readers; lines that matter also differ by weight or dashes.
INK, GREY, PALE, BAND, CLAIM = "#1a1a1a", "#6b6b6b", "#e4e4e4", "#0072B2", "#D55E00"
SERIES = (INK, BAND, CLAIM, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LETTER = 0.077  # approximate width of a letter of 10 points, in inches


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install matplotlib") from error
    # Figure itself, not pyplot: no window system and no global state.
    return Figure(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))


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


def finish(figure: Figure, handles: Mapping[str, Artist], title: str, path: str | os.PathLike[str] | None) -> Figure:
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
        figure.savefig(path)
    return figure
