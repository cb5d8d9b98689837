"""
How good are the probabilities of naive Bayes, and how does Venn-Abers improve them as labels come in?
======================================================================================================

Naive Bayes is trained on 200 tumours and never again. Its scores are then calibrated by later examples, 10 at a time:
each batch is predicted before its labels are learned. With `pip install 'vennstream[plot]'`::

    python examples/calibration_display.py    # draws runs/calibration_display.png
"""

from pathlib import Path

import matplotlib
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

import venn

matplotlib.use("Agg")
from matplotlib import pyplot as plt

X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(1).permutation(len(y))
X, y = X[order], y[order]
bayes = GaussianNB().fit(X[:200], y[:200])
model = venn.VennAbersCalibrator(bayes, cv="prefit").partial_fit(X[200:201], y[200:201])  # one label is enough to begin
before, after, widths = [], [], []
for start in range(201, len(y), 10):
    part = slice(start, start + 10)
    before.extend(bayes.predict_proba(X[part])[:, 1])
    after.extend(model.predict_proba(X[part])[:, 1])
    widths.extend(np.ptp(model.predict_interval(X[part])[:, 1], axis=1))
    model.partial_fit(X[part], y[part])
labels = y[201:]

figure, axes = plt.subplots(figsize=(5, 5))
for name, p in (("naive Bayes", before), ("Venn-Abers", after)):
    sure = np.maximum(p, 1 - np.array(p))
    right = (np.array(p) > 0.5) == labels
    print(
        f"{name:<12} log loss {log_loss(labels, p):.3f}, right {right.mean():.3f}, claimed {sure.mean():.3f}; "
        f"surer than .999 in {(sure > 0.999).sum()}, and wrong in {(~right & (sure > 0.999)).sum()} of these"
    )
    CalibrationDisplay.from_predictions(labels, p, n_bins=5, strategy="quantile", name=name, ax=axes)
print(f"mean width of the interval: first 50 objects {np.mean(widths[:50]):.3f}, last 50 {np.mean(widths[-50:]):.3f}")
Path("runs").mkdir(exist_ok=True)
figure.savefig("runs/calibration_display.png", dpi=120)
print("figure: runs/calibration_display.png")
