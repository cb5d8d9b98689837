"""
Which of the usual scalings of SVM scores keeps its claims, next to the Venn predictor?
=======================================================================================

Four predictors share one machine, so its problems are solved once a step::

    python examples/compare.py    # draws runs/compare.png if matplotlib is installed
"""

import streams
import venn

stream = streams.load("car", shuffle=1).take(600)
machine = venn.OneVsAllSVM(venn.RBF(0.1), C=10, classes=stream.classes)
panel = venn.Panel(
    venn=venn.TransductiveVenn(machine, venn.Argmax()),
    platt=venn.ScoreCalibrator(machine, venn.maps.Platt()),
    binning=venn.ScoreCalibrator(machine, venn.maps.Binning(bins=10)),
    isotonic=venn.ScoreCalibrator(machine, venn.maps.Isotonic()),
)
record = venn.replay(stream, panel)
print(record.table())
for name, mean in record.means().items():
    gap = max(mean["lower"] - mean["accuracy"], mean["accuracy"] - mean["upper"], 0.0)
    print(f"{name}: accuracy {'inside what was claimed' if gap == 0 else f'{gap:.3f} away from what was claimed'}")
try:
    record.plot("runs/compare.png")
    print("figure: runs/compare.png")
except ImportError as error:
    print(error)
