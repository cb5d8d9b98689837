"""What does `Adaptive` cost over its predictor? Microseconds a step, predicting and learning.

    python benchmarks/adaptive.py

Prints one JSON line for each predictor: microseconds a step (median over rounds of the process's time, one thread,
compilation excluded) of the predictor alone, of the predictor inside `Adaptive`, and the difference: `over`. "given"
hands out p-values that were made beforehand, so that nothing else is measured; "inductive" is `InductiveConformal` on a
linear scorer.
"""

import json
import statistics
from time import process_time

import numpy as np

import venn
from venn.prediction import PredictionSet
from venn.predictors import Adaptive, Predictor
from venn.schedules import NoTraining

ROUNDS, STEPS = 5, 4000


class Given(Predictor):
    """P-values made beforehand, by the first number of an object."""

    def __init__(self, classes, p_values):
        self.classes = classes
        self.said = [PredictionSet(p, classes) for p in p_values]

    def predict_one(self, x):
        return self.said[int(x[0])]


class Linear:
    """A scorer with nothing to compute."""

    def __init__(self, classes):
        self.classes = classes

    def scores(self, x):
        return x

    def score_many(self, X):
        return X


def timed(model, examples) -> float:
    """Return microseconds a step."""
    start = process_time()
    for x, y in examples:
        model.predict_one(x)
        model.learn_one(x, y)
    return (process_time() - start) / len(examples) * 1e6


def cases(c):
    """Return by name how to make a predictor of c classes, and examples for it."""
    rng, classes = np.random.default_rng(0), tuple(range(c))
    p, y = rng.random((STEPS, c)), rng.integers(0, c, STEPS).tolist()
    numbered = [(np.array([float(i)]), label) for i, label in enumerate(y)]
    rows = list(zip(rng.normal(size=(STEPS, c)), y, strict=True))
    return {
        "given": (lambda: Given(classes, p), numbered),
        "inductive": (lambda: venn.InductiveConformal(Linear(classes), schedule=NoTraining()), rows),
    }


def main() -> None:
    for c in (2, 10):
        for name, (make, examples) in cases(c).items():
            alone, inside = [], []
            for _ in range(ROUNDS):  # in turns, so that both meet the same moods of the machine
                alone.append(timed(make(), examples))
                inside.append(timed(Adaptive(make()), examples))
            over = statistics.median(b - a for a, b in zip(alone, inside, strict=True))
            found = {"alone": statistics.median(alone), "inside": statistics.median(inside), "over": over}
            print(json.dumps({"predictor": name, "classes": c, **{key: round(v, 2) for key, v in found.items()}}))


if __name__ == "__main__":
    main()
