"""The figure: MSE of every method on every set, ours next to the paper's, and the curves under both controls."""

import numpy as np

from benitez_pena import published
from benitez_pena.answers import MSE
from benitez_pena.control import SHARES
from benitez_pena.methods import CONSTANT, OTHERS, PAPER
from benitez_pena.tables import number

INK = "#333333"
HOLLOW = {"facecolor": "white", "edgecolor": "#b8862b", "linewidth": 1.6}
FILLED = {"color": "#1f5fa8"}
BESIDE = ("bootstrap", "best C, one machine", "Sollich", "Platt", "PPSVM 0")
MOST = 0.1  # MSE above the best of its set, at the dark end of the colours


def _cells(axes, answers):
    from matplotlib import colormaps

    order = (*PAPER, *OTHERS, CONSTANT)
    values = np.array([[answers.loss(name, method, MSE) for name in answers.data] for method in order])
    lost = values - values.min(axis=0)
    image = axes.imshow(lost, cmap=colormaps["YlOrBr"], vmin=0, vmax=MOST, aspect="auto")
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            best = round(value, 3) == round(values[:, c].min(), 3)
            colour, weight = ("white" if lost[r, c] > 0.7 * MOST else INK), ("bold" if best else "normal")
            axes.text(c, r, number(value), ha="center", va="center", fontsize=7.5, color=colour, weight=weight)
    axes.set_xticks(range(len(answers.data)), answers.data, rotation=30, ha="right")
    axes.set_yticks(range(len(order)), [m if m in PAPER else f"{m} +" for m in order])
    axes.axhline(len(PAPER) - 0.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    axes.set_title("mean squared error here (bold: least of the set; + not in the paper)", fontsize=10)
    return image


def _beside(axes, answers):
    height = 0.0
    ticks, names = [], []
    for method in BESIDE:
        for name in answers.data:
            ours, theirs = answers.loss(name, method, MSE), published.mse(name, method)
            axes.plot([theirs, ours], [height, height], color="0.8", linewidth=1.6, zorder=1)
            axes.scatter([theirs], [height], s=22, **HOLLOW)
            axes.scatter([ours], [height], s=22, zorder=3, **FILLED)
            ticks.append(height)
            names.append(name)
            height += 1
        axes.text(0.305, height - 1 - (len(answers.data) - 1) / 2, method, fontsize=9, ha="right", va="center",
                  color=INK, weight="bold")  # fmt: skip
        height += 1.2
    axes.set_yticks(ticks, names, fontsize=6)
    axes.set(xlim=(-0.008, 0.31), ylim=(height, -1))
    axes.set_title("MSE here and in the paper", fontsize=10)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)


def _curves(axes, answers, at, curve, title, colours):
    for name, colour in zip(answers.data, colours, strict=True):
        axes.plot(at, [curve(name, s) for s in range(len(at))], color=colour, linewidth=1.4, marker="o", markersize=2.5)
    axes.plot(at, [np.mean([curve(name, s) for name in answers.data]) for s in range(len(at))], color="black",
              linewidth=2.4, linestyle="--")  # fmt: skip
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="wanted sensitivity")
    axes.grid(color="0.93")
    axes.set_axisbelow(True)


def draw(answers, path):
    """Draw the figure; needs matplotlib."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    plan = answers.study.plan
    figure = Figure(figsize=(15, 12.5), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.45, 1))
    left, right = top.subplots(1, 2, width_ratios=(2.1, 1))
    image = _cells(left, answers)
    bar = top.colorbar(image, ax=left, location="bottom", extend="max", shrink=0.4, aspect=40)
    bar.set_label("MSE above the least of the set")
    _beside(right, answers)
    marks = [
        right.scatter([], [], s=28, label=who, **style) for who, style in (("the paper", HOLLOW), ("here", FILLED))
    ]
    right.legend(handles=marks, loc="lower center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    panels = bottom.subplots(1, 4 if plan.splits else 2, sharey=True)
    colours = [*colormaps["tab10"].colors, "#9ccc3c"][: len(answers.data)]

    def first(which):
        return lambda name, s: answers.controlled(name, 0, s)[which]

    def second(which):
        return lambda name, s: np.mean([split["Ctrl2"][s][which] for split in answers.controls(name)])

    _curves(panels[0], answers, SHARES, first(1), "Ctrl1, MSE of positives (figure 6)", colours)
    _curves(panels[1], answers, SHARES, first(2), "Ctrl1, MSE of negatives (figure 8)", colours)
    if plan.splits:
        small = f"Ctrl2 on ≤ {plan.largest} examples"
        _curves(panels[2], answers, plan.levels, second(1), f"{small}, positives (figure 7)", colours)
        _curves(panels[3], answers, plan.levels, second(2), f"{small}, negatives (figure 9)", colours)
    lines = [
        panels[0].plot([], [], color=colour, label=name)[0] for name, colour in zip(answers.data, colours, strict=True)
    ]
    lines.append(panels[0].plot([], [], color="black", linestyle="--", linewidth=2.4, label="mean")[0])
    bottom.legend(handles=lines, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    for axes in (left, right, *panels):
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
