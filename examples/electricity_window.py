"""
Prices in a market that keeps changing: slide a window, or start again when an alarm rings?
===========================================================================================

The stream ``elec2``: will the price of electricity rise in the next half-hour? A window of the latest 500 half-hours
keeps memory and time bounded. One predictor slides it along. The other uses a monitor, which checks at every step
whether the p-values still look like those of exchangeable examples, and restarts the window when the odds against
that reach 10,000 to 1. In order of time this must happen often; in shuffled order it is not expected::

    STREAMS_DATA=folder python examples/electricity_window.py          # the first 12 000 half-hours, a minute
    STREAMS_DATA=folder python examples/electricity_window.py --all    # all 45 312
"""

import math
import sys
import warnings
from time import perf_counter

import numpy as np

import streams
import venn
from venn.machines.window import SlidingWindow
from venn.predictors.restarting import Restarting
from venn.show import plot

STEPS = 1600 if "--quick" in sys.argv else 45312 if "--all" in sys.argv else 12000
SIZE, LEVEL, RUN_LENGTH = 500, 1e-4, 1e7
RECENT = min(1000, STEPS // 4)  # half-hours over which accuracy is averaged
# The columns are scaled over the whole stream beforehand; that of dates hardly moves in the first 30 half-hours.
warnings.filterwarnings("ignore", category=venn.machines.ScaleWarning)
CLOSE = min(3000, STEPS)  # half-hours at the start that are shown enlarged


def on_a_window(stream: streams.Stream) -> venn.Conformal:
    """Return a conformal predictor on a window of its own."""
    machine = venn.LeastSquaresSVM(venn.RBF(1 / 8), C=10, classes=stream.classes)
    return venn.Conformal(SlidingWindow(machine, SIZE))


def replayed(order: str, stream: streams.Stream) -> tuple[dict[str, np.ndarray], np.ndarray, tuple[int, ...]]:
    """Return who was right at each step, log10 of the evidence since the last start, and the restarts."""
    sliding = on_a_window(stream)
    watch = venn.Monitor(stream.classes, level=LEVEL, run_length=RUN_LENGTH)
    restarting = Restarting(on_a_window(stream), watch)
    right = {name: np.zeros(len(stream)) for name in ("sliding", "restarting")}
    evidence, start = np.zeros(len(stream)), perf_counter()
    for step, (x, y) in enumerate(stream):
        for name, model in (("sliding", sliding), ("restarting", restarting)):
            right[name][step] = model.predict_one(x).label == y
            model.learn_one(x, y)
        if restarting.restarts[-1:] == (step + 1,):
            evidence[step] = restarting.alarms[-1][0].log_evidence / math.log(10)
        else:
            evidence[step] = restarting.watching.snapshot()["evidence"][0]["log10"]
    restarts = restarting.restarts
    accuracy = ", ".join(f"{name} {hits.mean():.3f}" for name, hits in right.items())
    print(f"{order}: {len(restarts)} restarts; accuracy {accuracy}; {perf_counter() - start:.0f} s")
    if restarts:
        starts = np.diff([0, *restarts])
        print(f"  a start lasted {np.median(starts):.0f} half-hours (median), at most {starts.max()}")
        print(f"  the first alarm: {restarting.alarms[0][0].sentence}")
    return right, evidence, restarts


def recent(hits: np.ndarray) -> np.ndarray:
    """Return means over the latest `RECENT` steps, from the first step on that has so many."""
    total = np.append(0.0, hits.cumsum())
    return (total[RECENT:] - total[:-RECENT]) / RECENT


right, evidence, restarts = replayed("in order of time", streams.load("elec2").take(STEPS))
replayed("shuffled", streams.load("elec2", shuffle=0).take(STEPS))
try:
    figure = plot.blank(9.0, 6.4)
    above, below = figure.subplots(2, 1)
    at = np.arange(RECENT, STEPS + 1)
    shown = slice(None, None, max(1, STEPS // 4000))
    for (name, hits), colour in zip(right.items(), (plot.GREY, plot.BAND), strict=True):
        above.plot(
            at[shown], recent(hits)[shown], color=colour, linewidth=1.4, label=f"{name}: {hits.mean():.1%} right"
        )
    foot = above.get_ylim()[0]
    above.plot(restarts, np.full(len(restarts), foot), "|", color=plot.CLAIM, markersize=7)
    plot.dress(above, f"Accuracy over the latest {RECENT} half-hours", f"{len(restarts)} restarts")
    above.set_xlim(0, STEPS)
    begins = [0, *(step for step in restarts if step <= CLOSE)]
    for first, last in zip(begins, [*begins[1:], CLOSE], strict=True):
        below.plot(np.arange(first, last + 1), np.append(0.0, evidence[first:last]), color=plot.INK, linewidth=1.2)
    rung = np.array(begins[1:], int)
    below.plot(
        rung,
        evidence[rung - 1],
        "v",
        color=plot.CLAIM,
        markersize=8,
        markeredgecolor="white",
        label="alarm and restart",
    )
    below.axhline(-math.log10(LEVEL), color=plot.GREY, linewidth=0.8, dashes=(4, 3), label="10,000 to 1")
    plot.dress(below, f"log10 of the odds since the last start, first {CLOSE} half-hours", "")
    below.set_xlim(0, CLOSE)
    plot.label([above, below], 1, "half-hours", "")
    title = "elec2: a window that slides, and one that starts anew when an alarm rings"
    plot.finish(figure, plot.handles_of([above, below]), title, "runs/electricity_window.png")
    print("figure: runs/electricity_window.png")
except ImportError as error:
    print(f"no figure: {error}")
# %%
# On the first 12 000 half-hours, not run here:
#
# .. image:: /electricity_window.png
#    :alt: Accuracy of a window that slides and of one that restarts at each alarm, and the odds that ring it
#
# sphinx_gallery_thumbnail_path = '../docs/electricity_window.png'
