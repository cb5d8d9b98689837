"""
Which alarm rings when a stream changes, and after how many examples?
=====================================================================

And does a harmless stream stay silent? Three classes on the plane. At example 1000 (400 with ``--quick``) the stream
breaks in one of three ways, or not at all:

- change point: the concept turns by 60 degrees;
- label flip: each label becomes the next one;
- label shift: one class comes ten times as often as each of the others, and P(x | y) does not change.

Each predictor continues to learn, so it may recover; the alarm says that examples after the change are not like those
before. An alarm needs a change that shows in what is watched. Label shift hardly shows in how well labels fit their
objects, but at once in how often each label comes, and a Venn predictor with one category watches that.

The last predictor of each block is none: ``objects`` watches x alone. It needs no label, and sees nothing where only
labels change.
"""

import sys

import numpy as np

import streams
import venn
from venn.monitors import Drift, OneClass
from venn.taxonomies import ByScores

QUICK = "--quick" in sys.argv
AT = AFTER = 400 if QUICK else 1000  # examples before the change, and after it
SEEDS = range(1 if QUICK else 10)


class OneCategory(ByScores):
    """All examples in one category: the prediction is the frequency of each label."""

    pointwise = True

    def categories(self, scores):
        return np.zeros(len(scores), int)


def broken(name: str, seed: int) -> streams.Stream:
    stream = streams.gaussians(AT + AFTER, spread=0.6, seed=seed)
    if name == "change point":
        return streams.change_point(stream, streams.gaussians(AFTER, spread=0.6, turn=60, seed=1000 + seed), AT)
    if name == "label flip":
        return streams.flip_labels(stream, AT)
    if name == "label shift":
        return streams.label_shift(streams.gaussians(5 * AFTER, spread=0.6, seed=seed), AT, (10, 1, 1), seed=seed)
    return stream


def watch(stream: streams.Stream) -> dict[str, venn.Monitor | Drift]:
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=stream.classes)
    panel = venn.Panel(
        venn=venn.TransductiveVenn(machine),
        abers=venn.TransductiveVennAbers(machine),
        conformal=venn.Conformal(machine),
        by_class=venn.Conformal(machine, label_conditional=True),
        labels=venn.TransductiveVenn(machine, OneCategory()),
        platt=venn.ScoreCalibrator(machine, venn.maps.Platt(), venn.predictors.LeaveOneOutScores()),
    )
    monitors = {name: venn.Monitor(stream.classes) for name in panel}
    by_label = [OneClass(label, code) for code, label in enumerate(stream.classes)]
    monitors["labels"] = venn.Monitor(stream.classes, sources=by_label)
    venn.replay(stream, panel, monitors=monitors, progress=False)
    drift = Drift()  # it needs no label
    for x, _ in stream:
        drift.update(x)
    return monitors | {"objects": drift}


print(
    f"The change comes at example {AT}; medians over {len(SEEDS)} streams of the number of examples from there to the"
)
print("first alarm of each detector, where it rings. Alarms before the change, or without one, are false.\n")
print(f"{'stream':14}{'predictor':12}{'detector':18}{'rings':>10}{'after':>8}{'false':>8}")
for name in ("change point", "label flip", "label shift", "harmless"):
    first: dict[tuple[str, str], list[int]] = {}
    false: dict[tuple[str, str], int] = {}
    for seed in SEEDS:
        for predictor, monitor in watch(broken(name, seed)).items():
            detectors = {entry["detector"] for entry in monitor.snapshot()["evidence"]}
            for key in ((predictor, detector) for detector in sorted(detectors)):
                assert monitor.count == len(monitor.alarms), "a monitor keeps the latest 100 alarms: the first are lost"
                steps = [alarm.step for alarm in monitor.alarms if alarm.detector == key[1]]
                early = [step for step in steps if name == "harmless" or step <= AT]
                late = [step - AT for step in steps if step not in early]
                false[key] = false.get(key, 0) + len(early)
                first.setdefault(key, []).extend(late[:1])
    for key, found in first.items():
        after = sorted(found)[len(found) // 2] if found else "-"
        print(f"{name:14}{key[0]:12}{key[1]:18}{len(found):>4} of {len(SEEDS):<3}{after:>7}{false[key]:>8}")
    print()
