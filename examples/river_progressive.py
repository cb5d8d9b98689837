"""
Do river's evaluation and our own loop see the same predictor?
==============================================================

One stream, one predictor: by ``evaluate.progressive_val_score`` and by ``venn.replay``. Then late labels, a scaler of
river in front of it, a classifier of river next to ours in one panel, and undeclared classes::

    python examples/river_progressive.py
"""

from river import datasets, evaluate, linear_model, metrics, preprocessing

import streams
import venn

N = 300
rows = list(datasets.Phishing().take(N))


def predictor(classes):
    """Return a predictor that has learned nothing."""
    return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=classes))


stream = streams.from_river(rows, name="Phishing")
panel = venn.Panel(
    venn=predictor(stream.classes),
    logistic=venn.adapters.FromRiver(
        preprocessing.StandardScaler() | linear_model.LogisticRegression(), stream.classes
    ),
)
record = venn.replay(stream, panel, progress=False)
ours, theirs = record["venn"], record["logistic"]

model = venn.RiverClassifier(predictor([False, True]), features=stream.features)
log_loss, accuracy = metrics.LogLoss(), metrics.Accuracy()
for metric in (log_loss, accuracy):
    evaluate.progressive_val_score(rows, model.clone(), metric)

print(f"{N} examples        accuracy  log loss")
print(f"venn.replay          {ours.accuracy[-1]:.4f}    {ours.log_loss[-1]:.4f}")
print(f"river's evaluation   {accuracy.get():.4f}    {log_loss.get():.4f}")
print(f"river's own model    {theirs.accuracy[-1]:.4f}    {theirs.log_loss[-1]:.4f}  no guarantee")

late, slow = metrics.LogLoss(), model.clone()
evaluate.progressive_val_score(rows, slow, late, delay=50)
print(f"labels 50 steps late           {late.get():.4f}")

scaled, inside = metrics.LogLoss(), preprocessing.StandardScaler() | model.clone()
evaluate.progressive_val_score(rows, inside, scaled)
print(f"behind a scaler that learns    {scaled.get():.4f}  no guarantee: it treats old and new examples differently")

# Classes need not be declared: when a new label comes, the function makes the predictor again.
growing, known = venn.RiverClassifier(predictor), 0
segments = streams.from_river(datasets.ImageSegments(), scale=True).take(200)
for n, (values, y) in enumerate(segments, 1):
    x = dict(zip(segments.features, values.tolist(), strict=True))
    label, intervals = growing.predict_one(x), growing.predict_interval_one(x)
    growing.learn_one(x, y)
    if len(intervals) > known:
        known = len(intervals)
        print(f"step {n:3d}: {known} classes known")
print(
    f"step {n:3d}: {label}, with a probability from {intervals[label][0]:.2f} to {intervals[label][1]:.2f}; it was {y}"
)

same = accuracy.get() == ours.accuracy[-1] and abs(log_loss.get() - ours.log_loss[-1]) < 1e-9
print("the same figures" if same else "OTHER FIGURES")
