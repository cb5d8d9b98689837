"""How much faster is the exact transductive step than refitting with scikit-learn?

    python benchmarks/transductive.py --data car --gamma 0.1 --C 10

Ours is timed over the whole replay, prediction and learning, compilation excluded. The baselines are
what a user would write with `sklearn.svm.SVC` at its default tolerance, for every step

    A  c x c fits: every class under every hypothesis, RBF kernel inside;
    B  2c fits: every class with the new example as positive and as negative;
    C  2c fits on a precomputed kernel matrix that grows by one row a step: the honest competitor;

each followed by the scores of the whole bag, which a category needs. They are timed at `--samples`
steps spread over the replay and integrated over the steps in between (trapezoid); timing every step
would take hours. Prints one JSON line.
"""

from __future__ import annotations

import json
import time

import numpy as np
from scipy.integrate import trapezoid
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from workload import options, rbf, stream_of

import venn


def replay(stream, gamma, C, steps=None):
    """Return (seconds, machine, seconds by step) of our whole replay."""
    machine = venn.OneVsAllSVM(venn.RBF(gamma), C, stream.classes)
    model = venn.TransductiveVenn(machine, venn.Argmax())
    stamps = [time.perf_counter()]
    for x, y in stream.take(steps) if steps else stream:
        model.predict_one(x)
        model.learn_one(x, y)
        stamps.append(time.perf_counter())
    return stamps[-1] - stamps[0], machine, np.diff(stamps)


def fit_and_score(X, t, C, gamma, kernel):
    """One fit and the scores of the bag; one class needs no fit."""
    if abs(t.sum()) == len(t):
        return
    if kernel is None:
        SVC(C=C, gamma=gamma).fit(X, t).decision_function(X)
    else:
        SVC(C=C, kernel="precomputed").fit(kernel, t).decision_function(kernel)


def baseline_step(name, X, y, c, gamma, C):
    """Seconds of one step of baseline A, B or C on the bag (X, y) whose last example is the new one."""
    kernel = None
    start = time.perf_counter()
    if name == "C":
        # The user keeps the matrix; a step adds a row.
        row = np.exp(-gamma * ((X - X[-1]) ** 2).sum(1))
        spent = time.perf_counter() - start
        kernel = rbf(X, gamma)
        kernel[-1] = kernel[:, -1] = row
        start = time.perf_counter() - spent
    for k in range(c):
        labels = (
            [np.append(y[:-1], j) for j in range(c)]
            if name == "A"
            else [np.append(y[:-1], k), np.append(y[:-1], (k + 1) % c)]
        )
        for supposed in labels:
            fit_and_score(X, np.where(supposed == k, 1, -1), C, gamma, kernel)
    return time.perf_counter() - start


def integrated(name, X, y, c, gamma, C, sizes):
    """Seconds of a whole replay: sampled steps, trapezoid in between."""
    spent = [min(baseline_step(name, X[:n], y[:n], c, gamma, C) for _ in range(2)) for n in sizes]
    return float(trapezoid(spent, sizes))


def main():
    parser = options(__doc__, gamma=0.1)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--baselines", default="ABC")
    parser.add_argument("--repeat", type=int, default=3, help="our replays; the fastest counts, all are printed")
    args = parser.parse_args()
    stream = stream_of(args)
    with threadpool_limits(1):
        replay(stream, args.gamma, args.C, min(60, len(stream)))  # compilation
        runs = [replay(stream, args.gamma, args.C) for _ in range(args.repeat)]
        ours, machine, by_step = min(runs, key=lambda run: run[0])
        n, c = len(stream), len(stream.classes)
        sizes = np.unique(np.linspace(10, n, args.samples).astype(int))
        line = {
            "data": args.data, "n": n, "classes": c, "gamma": args.gamma, "C": args.C,
            "ours_seconds": round(ours, 3), "ours_all": [round(run[0], 3) for run in runs],
            "last_100_ms_a_step": round(1e3 * float(by_step[-100:].mean()), 3), "residual": machine.residual,
        }  # fmt: skip
        for name in args.baselines:
            seconds = integrated(name, stream.X, stream.y, c, args.gamma, args.C, sizes)
            line[f"{name}_seconds"] = round(seconds, 1)
            line[f"ratio_{name}"] = round(seconds / ours, 1)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
