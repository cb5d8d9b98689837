"""What does a step of the forecaster cost, from the first to the ten thousandth, and how long does it ever stop?

    python benchmarks/forecaster_cost.py [--tables 20x2 20x10 100x26 20xfloat] [--steps 10000] [--memory 100000]

Each table, features times classes, is made in a process of its own: Gaussian clouds, every second column in units of a
thousand. Each object is predicted, its label is learned, one at a time, one thread, loops compiled before.
`seconds_2000` has the first 2000 steps, all fits included; beside it stands a practitioner who fits a random forest
anew every 150 examples, and asks it for each object (`forest_seconds_2000`). `us_a_step`: the median over 100 steps
that end at n. These are processor time. `longest_ms` is the slowest step of all, a training, and `trainings_s` the sum
of the steps above 50 ms: how long the loop stops, by the clock. `megabytes`: the largest resident memory, less that at
the start. With `--memory N` the first table goes on to N steps. Prints one JSON line for each table.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from threadpoolctl import threadpool_limits

import venn

SIZES = (100, 1000, 1900, 2100, 10_000, 100_000)
OFTEN = 150


def table(features: int, classes: int | None, n: int):
    """Return objects of clouds, or of a noisy sum, and their labels."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(features) % 2, 1000.0, 1.0)
    if classes is None:
        X = rng.normal(size=(n, features))
        return X * scale, (X[:, :3].sum(1) + np.sin(2 * X[:, 0]) + rng.normal(size=n) * (0.3 + X[:, 1] ** 2)).tolist()
    centres = rng.normal(size=(classes, features)) * 3 / np.sqrt(features)
    codes = rng.integers(0, classes, n)
    return (centres[codes] + rng.normal(size=(n, features))) * scale, codes.tolist()


def forecaster(classes: int | None):
    """Return the model with nothing chosen."""
    return venn.Forecaster(float) if classes is None else venn.Forecaster(list(range(classes)))


def steps(model, X, y):
    """Return (n, 2) seconds of each step: of the processor, by the clock."""
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


def measured(name: str, n: int) -> dict[str, object]:
    """Return the figures of one table."""
    features, kind = name.split("x")
    classes = None if kind == "float" else int(kind)
    X, y = table(int(features), classes, n)
    warm = forecaster(classes)
    steps(warm, X[:150], y[:150])
    del warm
    gc.collect()
    gc.freeze()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken, clock = steps(forecaster(classes), X, y).T
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    make, ask = (RandomForestRegressor, "predict") if classes is None else (RandomForestClassifier, "predict_proba")
    return {
        "benchmark": "forecaster_cost",
        "table": name,
        "steps": n,
        "seconds_2000": round(float(taken[:2000].sum()), 1),
        "forest_seconds_2000": round(refitted(make, ask, X[:2000], y[:2000]), 1),
        "us_a_step": {str(m): round(1e6 * float(np.median(taken[m - 100 : m]))) for m in SIZES if m <= n},
        "longest_ms": round(1e3 * float(clock.max())),
        "longest_at": int(clock.argmax()) + 1,
        "trainings_s": round(float(clock[clock > 0.05].sum()), 1),
        "megabytes": round(memory),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["20x2", "20x10", "100x26", "20xfloat"])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--memory", type=int, help="the steps of the first table, such as 100000")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        with threadpool_limits(limits=1):
            print(json.dumps(measured(args.one, args.steps)))
        return
    for i, name in enumerate(args.tables):
        n = args.memory if args.memory and i == 0 else args.steps
        subprocess.run([sys.executable, __file__, "--one", name, "--steps", str(n)], check=True)


if __name__ == "__main__":
    main()
