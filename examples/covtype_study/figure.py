"""The figure: claims and results, along the stream and by predicted class."""

import numpy as np

from covtype_study.published import NAMES
from covtype_study.stream import WAYS

COLOURS = {"weights": "#1f5fa8", "no weights": "#c2571a"}
INK = "#222222"
POINTS = 600  # of a curve


def draw(replayed, y, path):
    """Draw the figure; needs matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    along, by_class = figure.subplots(1, 2, width_ratios=(1.25, 1))
    n = np.arange(1, len(y) + 1)
    at = np.unique(np.geomspace(min(1000, len(y)), len(y), POINTS).astype(int)) - 1
    hits = replayed.index == y
    for way, name in enumerate(WAYS):
        lower, upper = (np.cumsum(one[way])[at] / n[at] for one in (replayed.lower, replayed.upper))
        along.fill_between(n[at], lower, upper, color=COLOURS[name], alpha=0.35, linewidth=0)
        for edge in (lower, upper):
            along.plot(n[at], edge, color=COLOURS[name], linewidth=0.9)
    accuracy = np.cumsum(hits)[at] / n[at]
    along.plot(n[at], accuracy, color=INK, linewidth=1.6)
    along.set(
        xscale="log", xlabel="examples of the stream (logarithmic)", ylabel="mean so far",
        title="The predicted class: claimed, and right", xlim=(n[at[0]], n[-1]),
    )  # fmt: skip
    shown = [k for k in range(len(NAMES)) if (replayed.index == k).any()]
    shown.sort(key=lambda k: hits[replayed.index == k].mean())
    for height, k in enumerate(shown):
        own = replayed.index == k
        for way, name in enumerate(WAYS):
            low, high = replayed.lower[way, own].mean(), replayed.upper[way, own].mean()
            place = height + (0.14 if way else -0.14)
            by_class.plot([low, high], [place, place], color=COLOURS[name], linewidth=6, solid_capstyle="butt")
            by_class.plot([low, high], [place, place], color=COLOURS[name], linestyle="", marker="|", markersize=9)
        by_class.plot(2 * [hits[own].mean()], [height - 0.33, height + 0.33], color=INK, linewidth=1.6)
    labels = [f"{NAMES[k]}\n{(replayed.index == k).sum():,} rows" for k in shown]
    by_class.set_yticks(range(len(shown)), labels, fontsize=8.5)
    by_class.set(xlim=(0, 1), xlabel="probability of the predicted class", title="By predicted class, whole stream")
    marks = [by_class.plot([], [], color=INK, linewidth=1.6, label="share that was right")[0]]
    for name in WAYS:
        marks += by_class.plot([], [], color=COLOURS[name], linewidth=6, label=f"mean bounds claimed, {name}")
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    for axes in (along, by_class):
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
