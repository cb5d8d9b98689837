"""
May one read [lower, upper] as bounds on the chance that the predicted label is right?
======================================================================================

With exact leave-one-out scores, yes, if the label is the class of the category; not if it is
the class that looks best over all hypotheses. Thousands of single steps show it::

    python examples/predicted_label.py --runs 25000
"""

import argparse
import math

import numpy as np

import venn

SETTINGS = {  # classes, examples, features, shift of the first feature from class to class
    "3 classes, n 30, weak signal": (3, 30, 5, 1.0),
    "3 classes, n 12, weaker": (3, 12, 5, 0.8),
    "2 classes, n 16, pure noise": (2, 16, 40, 0.0),
    "4 classes, n 20, pure noise": (4, 20, 40, 0.0),
}
RULES = {"class of the category": venn.prediction.CategoryClass(), "best row mean": venn.prediction.RowMean()}


def single_steps(c, n, d, signal, runs):
    """Return, for each rule, (runs, 4): hit, lower, upper, hit minus the realised probability of the label."""
    rng = np.random.default_rng(0)
    rows = {name: np.empty((runs, 4)) for name in RULES}
    for run in range(runs):
        y = rng.integers(0, c, n)
        X = rng.normal(size=(n, d))
        X[:, 0] += signal * y
        machine = venn.LeastSquaresSVM(venn.RBF(1 / d), 1.0, range(c))
        for x, label in zip(X[:-1], y[:-1], strict=True):
            machine.learn_one(x, label)
        for name, rule in RULES.items():
            p = venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax()), rule).predict_one(X[-1])
            hit = float(p.label == y[-1])
            rows[name][run] = hit, p.lower, p.upper, hit - p.probabilities[y[-1], p.index]
    return rows


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=300)
runs = parser.parse_args().runs
for setting, parameters in SETTINGS.items():
    print(setting)
    for name, rows in single_steps(*parameters, runs).items():
        hit, lower, upper, departure = rows.mean(axis=0)
        error = rows[:, 3].std(ddof=1) / math.sqrt(runs)
        verdict = "inside" if lower <= hit <= upper else "outside"
        print(
            f"  {name:22} accuracy {hit:.3f} {verdict} [{lower:.3f}, {upper:.3f}]; "
            f"accuracy - realised probability {departure:+.4f} +- {error:.4f}"
        )
