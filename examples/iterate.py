"""
What does the predictor claim before each label, and how often is it right?
===========================================================================

The loop by hand: predict, look, learn::

    python examples/iterate.py
"""

import streams
import venn

stream = streams.load("car", shuffle=0).take(400)
machine = venn.OneVsAllSVM(venn.RBF(0.1), C=10, classes=stream.classes)
model = venn.TransductiveVenn(machine, venn.Argmax())

right = lower = upper = 0.0
for n, (x, y) in enumerate(stream, start=1):
    prediction = model.predict_one(x)
    right += prediction.label == y
    lower += prediction.lower
    upper += prediction.upper
    if n % 50 == 0:
        print(
            f"{n:4d} examples: accuracy {right / n:.3f} claimed between {lower / n:.3f} and {upper / n:.3f}; "
            f"now {prediction.label} [{prediction.lower:.2f}, {prediction.upper:.2f}], truth {y}"
        )
    model.learn_one(x, y)
