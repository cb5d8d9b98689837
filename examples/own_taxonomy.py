"""
Does a taxonomy of my own stay valid, and does it say more than the usual one?
==============================================================================

The idea: an object that one machine claims is surer than one that none or several claim. Any function of
the scores will do, as long as it treats all examples alike; the probabilities are calibrated whether the
idea is good or not::

    python examples/own_taxonomy.py
"""

import numpy as np

import streams
import venn
from venn.taxonomies import ByScores


class Claims(ByScores):
    """The class of the largest score, and whether exactly one machine gives a score above 0."""

    pointwise = True  # a category depends on the example's own scores alone

    def categories(self, scores):
        scores = scores.round(6)  # so that no category depends on the last bits
        return scores.argmax(axis=1) + scores.shape[1] * ((scores > 0).sum(axis=1) == 1)

    def class_of(self, category, c):
        return category % c


stream = streams.load("car", shuffle=0).take(800)
machine = venn.LeastSquaresSVM(venn.RBF(0.1), C=10, classes=stream.classes)
panel = venn.Panel(
    usual=venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())),
    own=venn.TransductiveVenn(machine, venn.LeaveOneOut(Claims())),
)
record = venn.replay(stream, panel)
print(record.table())
for name, mean in record.means().items():
    gap = max(mean["lower"] - mean["accuracy"], mean["accuracy"] - mean["upper"], 0.0)
    error = np.sqrt(mean["accuracy"] * (1 - mean["accuracy"]) / len(record))
    print(f"{name}: accuracy {'is what was claimed' if gap <= 2 * error else 'departs from what was claimed'}")
own, usual = (record.means()[name]["log_loss"] for name in ("own", "usual"))
print(f"my own says {'more' if own < usual else 'less'}: log loss {own:.3f} against {usual:.3f}")
