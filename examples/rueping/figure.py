"""The figure: mean ranks next to the paper's, and the cross-entropy of every method on every set."""

import numpy as np

from rueping import published
from rueping.methods import PAPER
from rueping.tables import ENTROPY, NAMES, RANKED

INK = "#333333"
HOLLOW = {"facecolor": "white", "edgecolor": "#b8862b", "linewidth": 1.8}
FILLED = {"color": "#1f5fa8"}
MOST = 0.25  # nats at the dark end of the colours


def _ranks(axes, losses, kernel, title):
    theirs = {method: row[3] for method, row in published.RESULTS[kernel].items()}
    ours = losses.mean_ranks(kernel, ENTROPY, PAPER)
    order = sorted(PAPER, key=theirs.__getitem__, reverse=True)
    for height, method in enumerate(order):
        axes.plot([theirs[method], ours[method]], [height, height], color="0.8", linewidth=2, zorder=1)
    heights = np.arange(len(order))
    axes.scatter([theirs[m] for m in order], heights, s=46, **HOLLOW)
    axes.scatter([ours[m] for m in order], heights, s=46, zorder=3, **FILLED)
    axes.set(title=title, xlim=(0.6, 9.4), xticks=range(1, 10), xlabel="rank by cross-entropy, 1 is best")
    axes.set_yticks(heights, order)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)


def _cells(axes, losses, kernel, title):
    from matplotlib import colormaps

    values = {method: losses.by_set(kernel, method, ENTROPY) for method in RANKED}
    ranks = losses.mean_ranks(kernel, ENTROPY, RANKED)
    order = sorted(RANKED, key=ranks.__getitem__)
    rows = np.array([values[method] for method in order])
    best = rows.min(axis=0)
    # Colour shows the loss itself; ratios would explode where losses are nearly 0.
    lost = np.where(np.isinf(rows), np.nan, rows - best)
    colours = colormaps["YlOrBr"].with_extremes(bad="#5b5b5b")
    image = axes.imshow(lost, cmap=colours, vmin=0, vmax=MOST, aspect="auto")
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            dark = np.isinf(value) or lost[r, c] > 0.7 * MOST
            text = "∞" if np.isinf(value) else f"{value:.3f}"
            weight = "bold" if value == best[c] else "normal"
            axes.text(c, r, text, ha="center", va="center", fontsize=7.5, color="white" if dark else INK, weight=weight)
    axes.set_xticks(range(len(losses.data)), losses.data, rotation=20)
    axes.set_yticks(range(len(order)), [method if method in PAPER else f"{method} +" for method in order])
    axes.tick_params(length=0)
    axes.set_title(title)
    return image


def draw(losses, path):
    """Draw the figure; needs matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(1, 1.5))
    for column, (kernel, name) in enumerate(NAMES.items()):
        _ranks(panels[0, column], losses, kernel, f"{name}: rank, mean over sets")
        image = _cells(panels[1, column], losses, kernel, f"{name}: cross-entropy by set, in nats")
    marks = [
        panels[0, 0].scatter([], [], s=46, label=f"{who}, mean over {number} sets", **style)
        for who, number, style in (("Rüping (2004)", published.SETS, HOLLOW), ("here", len(losses.data), FILLED))
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=2, frameon=False)
    bar = figure.colorbar(image, ax=panels[1, :], location="bottom", extend="max", shrink=0.4, aspect=40)
    bar.set_label(
        "cross-entropy above the best of the set (bold); ∞: a fold with probability 0 of what happened\n"
        "methods in order of mean rank; + not in the paper"
    )
    for axes in panels.flat:
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
