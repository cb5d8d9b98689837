"""
Can the forecasts of an overconfident predictor be made better without trusting anything new?
=============================================================================================

Platt scaling fitted to an SVM's own training scores is too bold: on pima it claims more than it gets right. With
`Protected` around it, its cumulative loss can never be worse by more than ln 2 = 0.69, on any data; here it is far
better. Platt on deleted scores, which is not overconfident, shows what protection costs if there is nothing to gain::

    STREAMS_DATA=folder python examples/protected.py
"""

import math

import streams
import venn
from venn.monitors.calibration import ece
from venn.monitors.losses import log_loss
from venn.predictors.protected import BrierLoss, LogLoss, Protected

stream = streams.load("pima", shuffle=0)
machine = venn.LeastSquaresSVM(venn.RBF(1 / 8), C=1, classes=stream.classes)
bold = venn.Scaler(machine, venn.maps.Platt())
modest = venn.Scaler(machine, venn.maps.Platt(), venn.predictors.DeletedScores())
panel = venn.Panel(
    bold=bold,
    protected=Protected(bold, LogLoss()),
    brier=Protected(bold, BrierLoss()),
    modest=modest,
    modest_protected=Protected(modest, LogLoss()),
)

proba = {name: [] for name in panel}
truth = []
print("cumulative log loss of Platt on training scores, and of the same protected")
for n, (x, y) in enumerate(stream, start=1):
    for name, prediction in panel.predict_one(x).items():
        proba[name].append(prediction.proba)
    truth.append(stream.classes.index(y))
    panel.learn_one(x, y)
    if n % 128 == 0:
        base, own = (n * log_loss(proba[name], truth).value for name in ("bold", "protected"))
        print(f"{n:4d} examples: {base:6.1f} and {own:6.1f}")

print(f"\n{'':30} log loss   ECE  gain in all, at least {-math.log(2):.2f}")
for name, says in (
    ("bold", "Platt on training scores"),
    ("protected", "protected, by log loss"),
    ("brier", "protected, by Brier loss"),
    ("modest", "Platt on deleted scores"),
    ("modest_protected", "protected, by log loss"),
):
    gain = f"{panel[name].gain:+.2f}" if isinstance(panel[name], Protected) else ""
    print(f"{says:30} {log_loss(proba[name], truth).value:8.3f} {ece(proba[name], truth):5.3f}  {gain}")
