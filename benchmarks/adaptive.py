"""What does `Adaptive` cost over its predictor? Microseconds a step, predicting and learning.

    python benchmarks/adaptive.py

Prints one JSON line for each predictor: microseconds a step (least over rounds of the process's time, one thread,
compilation excluded) of the predictor alone, of the predictor inside `Adaptive`, and the difference: `over`; `read` is
what it costs besides to read a set at one level, alone and inside. "given" hands out p-values that were made
beforehand, so that nothing else is measured; "inductive" is `InductiveConformal` on a linear scorer. `unit` is the time
of one small numpy addition in the same rounds: where other processes keep the processor busy, compare with that.
"""

import gc
import json
from time import process_time

import numpy as np

import venn
from venn.prediction import PredictionSet
from venn.predictors import Adaptive, Predictor
from venn.schedules import NoTraining

ROUNDS, STEPS = 15, 2000


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


def timed(model, examples, level=None) -> float:
    """Return microseconds a step."""
    gc.collect()
    start = process_time()
    if level is None:
        for x, y in examples:
            model.predict_one(x)
            model.learn_one(x, y)
    else:
        for x, y in examples:
            model.predict_one(x).set(level)
            model.learn_one(x, y)
    return (process_time() - start) / len(examples) * 1e6


def unit() -> float:
    """Return microseconds of adding two arrays of ten numbers."""
    a = np.ones(10)
    start = process_time()
    for _ in range(STEPS):
        a + a
    return (process_time() - start) / STEPS * 1e6


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
            found = {}
            for _ in range(ROUNDS):  # in turns, so that all meet the same moods of the machine
                for key, seconds in {
                    "alone": timed(make(), examples),
                    "inside": timed(Adaptive(make()), examples),
                    "alone, read": timed(make(), examples, 0.05),
                    "inside, read": timed(Adaptive(make()), examples, 0.05),
                    "unit": unit(),
                }.items():
                    found[key] = min(seconds, found.get(key, seconds))
            found["over"] = found["inside"] - found["alone"]
            found["over, read"] = found["inside, read"] - found["alone, read"]
            print(json.dumps({"predictor": name, "classes": c, **{key: round(v, 2) for key, v in found.items()}}))


if __name__ == "__main__":
    main()
