"""What does a step of the forecaster cost, from the first to the hundred thousandth, and how long does it ever stop?

    python benchmarks/forecaster_cost.py [--tables 20x2 20xfloat] [--steps 2500]

Each table, features times classes, is made in a process of its own: Gaussian clouds, every second column in units of a
thousand. Each object is predicted, its label is learned, one at a time, one thread, loops compiled before.
`seconds_2000` has the first 2000 steps, all fits included; beside it stands a practitioner who fits a random forest
anew every 150 examples, and asks it for each object (`forest_seconds_2000`). `us_a_step`: the median over 100 steps
that end at n. These are processor time. `longest_ms` is the slowest step of all, a training, and `trainings_s` the sum
of the steps above 50 ms: how long the loop stops, by the clock. `megabytes`: resident memory at n, less that at the
start. Prints one JSON line for each table.
"""

import gc
import subprocess
import sys
import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from workload import command, command_options, resident

import venn

SIZES = (100, 1000, 1900, 2100, 10_000, 30_000, 100_000)
FIRST, OFTEN = 2000, 150


def table(features, classes, n):
    """Return objects of clouds, or of a noisy sum, and their labels."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(features) % 2, 1000.0, 1.0)
    if classes is None:
        X = rng.normal(size=(n, features))
        return X * scale, (X[:, :3].sum(1) + np.sin(2 * X[:, 0]) + rng.normal(size=n) * (0.3 + X[:, 1] ** 2)).tolist()
    centres = rng.normal(size=(classes, features)) * 3 / np.sqrt(features)
    codes = rng.integers(0, classes, n)
    return (centres[codes] + rng.normal(size=(n, features))) * scale, codes.tolist()


def steps(model, X, y):
    """Return (n, 2) seconds of each step, of the processor and by the clock."""
    times = np.empty((len(y) + 1, 2))
    times[0] = time.process_time(), time.perf_counter()
    for i, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        model.predict_one(x)
        model.learn_one(x, label)
        times[i] = time.process_time(), time.perf_counter()
    return np.diff(times, axis=0)


def refitted(make, ask, X, y):
    """Return the processor seconds of a forest that is fitted anew every 150 examples, and asked for each object."""
    model, start = None, time.process_time()
    for i in range(len(y)):
        if model is not None:
            getattr(model, ask)(X[i : i + 1])
        if (i + 1) % OFTEN == 0:
            model = make(random_state=0).fit(X[: i + 1], y[: i + 1])
    return time.process_time() - start


def measured(name, n):
    """Return the figures of one table."""
    features, kind = name.split("x")
    classes = None if kind == "float" else int(kind)
    make, ask = (RandomForestRegressor, "predict") if classes is None else (RandomForestClassifier, "predict_proba")
    labels = float if classes is None else list(range(classes))
    X, y = table(int(features), classes, n)
    steps(venn.Forecaster(labels), X[:150], y[:150])  # compilation
    gc.collect()
    gc.freeze()
    model, before = venn.Forecaster(labels), resident()
    taken, done, memory = [], 0, {}
    at = [m for m in SIZES if m < n] + [n]
    for m in at:
        taken.append(steps(model, X[done:m], y[done:m]))
        memory[str(m)] = round((resident() - before) / 2**20)
        done = m
    processor, clock = np.concatenate(taken).T
    return {
        "benchmark": "forecaster_cost", "table": name, "steps": n,
        "seconds_2000": round(float(processor[:FIRST].sum()), 1),
        "forest_seconds_2000": round(refitted(make, ask, X[:FIRST], y[:FIRST]), 1),
        "us_a_step": {str(m): round(1e6 * float(np.median(one[-100:, 0]))) for m, one in zip(at, taken, strict=True)},
        "longest_ms": round(1e3 * float(clock.max())), "trainings_s": round(float(clock[clock > 0.05].sum()), 1),
        "megabytes": memory,
    }  # fmt: skip


@command()
def main():
    args = command_options(__doc__, tables=["20x2", "20xfloat"], steps=2500, one=str)
    if args.one:
        yield measured(args.one, args.steps)
        return
    for name in args.tables:
        subprocess.run([sys.executable, __file__, "--one", name, "--steps", str(args.steps)], check=True)
