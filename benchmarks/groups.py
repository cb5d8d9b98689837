"""What do groups cost a step?

    python benchmarks/groups.py

Predict and learn, one by one, in microseconds of processor time of one thread, the fastest of three rounds of 300 steps
after n examples, compilation excluded; the scorer is a linear one, included. Prints one JSON line for
each of the conformal and Venn-Abers predictors, inductive (n = 10 000) and transductive (n = 500): without groups, in
one group and in 100.
"""

from __future__ import annotations

import json
import time

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import venn
from venn.predictors import by_group

STEPS, ROUNDS = 300, 3


def data(n):
    """Return objects, labels: 5 features, 20 columns of 0 and 1, a group of 1 and a group of 100."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=(n, 5)), rng.random((n, 20)) < 0.4, np.zeros(n), rng.integers(0, 100, n)]
    ).astype(float)
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int).tolist()


def microseconds(model, X, y, n):
    """Return microseconds a step after n examples."""
    if hasattr(model, "learn_many"):
        model.learn_many(X[:n], y[:n])
    else:
        for x, label in zip(X[:n], y, strict=False):
            model.learn_one(x, label)
    model.predict_one(X[n])
    best = np.inf
    for turn in range(ROUNDS):
        start = n + turn * STEPS
        begin = time.process_time()
        for i in range(start, start + STEPS):
            model.predict_one(X[i])
            model.learn_one(X[i], y[i])
        best = min(best, (time.process_time() - begin) / STEPS * 1e6)
    return round(best, 1)


def main():
    X, y = data(12_000)
    scorer = venn.FrozenScorer(LinearSVC().fit(X[-1000:], y[-1000:]))

    def squares():
        return venn.LeastSquaresSVM(venn.RBF("auto"), C=1, classes=[0, 1])

    for name, n, make in (
        ("InductiveConformal", 10_000, lambda: venn.InductiveConformal(scorer)),
        ("InductiveVennAbers", 10_000, lambda: venn.InductiveVennAbers(scorer)),
        ("Conformal", 500, lambda: venn.Conformal(squares())),
        ("TransductiveVennAbers", 500, lambda: venn.TransductiveVennAbers(squares())),
    ):
        plain, one, hundred = make(), by_group(make(), 25), by_group(make(), 26)
        took = [microseconds(model, X, y, n) for model in (plain, one, hundred)]
        print(json.dumps({"predictor": name, "n": n, "us": dict(zip(("no groups", "1", "100"), took, strict=True))}))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
