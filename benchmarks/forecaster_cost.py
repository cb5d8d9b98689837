"""What does a step of the forecaster cost, from the first to the ten thousandth, and how long does it ever stop?

    python benchmarks/forecaster_cost.py [--tables 20x2 20x10 100x26 20xfloat] [--steps 10000] [--given]

Each table, features times classes, is made in a process of its own: Gaussian clouds, every second column in units of a
thousand. Each object is predicted, its label is learned, one at a time, one thread, loops compiled before.
`seconds_2000` has the first 2000 steps, all fits included; beside it stands a practitioner who fits a random forest
anew every 150 examples, and asks it for each object (`forest_seconds_2000`). `us_a_step`: the median over 100 steps
that end at n; `us_a_row`: the median over 8 blocks of 64 rows that come next, each in one call of `replay_many`. These
are processor time. `longest_ms` is the slowest step of all, a training, and `trainings_s` the sum
of the steps above 50 ms: how long the loop stops, by the clock. `megabytes`: resident memory at n, less that at the
start, and `megabytes_most` the largest so far. With `--given` the forecaster calibrates a random forest that was fitted
to 2000 other examples, and no forest is fitted beside it. Prints one JSON line for each table.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from threadpoolctl import threadpool_limits

import venn

SIZES = (100, 1000, 1900, 2100, 10_000, 30_000, 100_000)
OFTEN = 150
BLOCKS, ROWS = 8, 64
FEW = 2100  # from here on rows also come in blocks, where there are enough to the next size
GIVEN = 2000  # examples that a given forest is fitted to


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


def forecaster(classes: int | None, scorer):
    """Return the model with nothing chosen."""
    return venn.Forecaster(float if classes is None else list(range(classes)), scorer=scorer)


def resident() -> float:
    """Return the megabytes that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def steps(model, X, y):
    """Return (n, 2) seconds of each step, of the processor and by the clock."""
    times = np.empty((len(y) + 1, 2))
    times[0] = time.process_time(), time.perf_counter()
    for i, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        model.predict_one(x)
        model.learn_one(x, label)
        times[i] = time.process_time(), time.perf_counter()
    return np.diff(times, axis=0)


def blocks(model, X, y) -> float:
    """Return the median processor seconds of a row in blocks."""
    taken = []
    for first in range(0, len(y), ROWS):
        part, start = slice(first, first + ROWS), time.process_time()
        model.replay_many(X[part], y[part])
        taken.append((time.process_time() - start) / ROWS)
    return float(np.median(taken))


def refitted(make, ask, X, y):
    """Return the processor seconds of a forest that is fitted anew every 150 examples, and asked for each object."""
    model, start = None, time.process_time()
    for i in range(len(y)):
        if model is not None:
            getattr(model, ask)(X[i : i + 1])
        if (i + 1) % OFTEN == 0:
            model = make(random_state=0).fit(X[: i + 1], y[: i + 1])
    return time.process_time() - start


def measured(name: str, n: int, given: bool) -> dict[str, object]:
    """Return the figures of one table."""
    features, kind = name.split("x")
    classes = None if kind == "float" else int(kind)
    make, ask = (RandomForestRegressor, "predict") if classes is None else (RandomForestClassifier, "predict_proba")
    X, y = table(int(features), classes, GIVEN + n + BLOCKS * ROWS)
    scorer = make(random_state=0).fit(X[:GIVEN], y[:GIVEN]) if given else None
    X, y = X[GIVEN:], y[GIVEN:]
    warm = forecaster(classes, scorer)
    steps(warm, X[:150], y[:150])
    blocks(warm, X[:150], y[:150])
    del warm
    gc.collect()
    gc.freeze()
    model, before = forecaster(classes, scorer), resident()
    taken, done, row, memory = [], 0, {}, {}
    at = [m for m in SIZES if m < n] + [n]
    for m, following in zip(at, [*at[1:], np.inf], strict=True):
        taken.append(steps(model, X[done:m], y[done:m]))
        memory[str(m)] = round(resident() - before)
        done = m + BLOCKS * ROWS if m >= FEW and m + BLOCKS * ROWS + 100 <= following else m
        if done > m:
            row[str(m)] = round(1e6 * blocks(model, X[m:done], y[m:done]))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    first, clock = np.concatenate(taken[: SIZES.index(FEW) + 1])[:2000, 0], np.concatenate(taken)[:, 1]
    beside = {} if given else {"forest_seconds_2000": round(refitted(make, ask, X[:2000], y[:2000]), 1)}
    return {
        "benchmark": "forecaster_cost",
        "table": name,
        "given": given,
        "steps": n,
        "seconds_2000": round(float(first.sum()), 1),
        **beside,
        "us_a_step": {str(m): round(1e6 * float(np.median(one[-100:, 0]))) for m, one in zip(at, taken, strict=True)},
        "us_a_row": row,
        "longest_ms": round(1e3 * float(clock.max())),
        "trainings_s": round(float(clock[clock > 0.05].sum()), 1),
        "megabytes": memory,
        "megabytes_most": round(most),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["20x2", "20x10", "100x26", "20xfloat"])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--given", action="store_true", help="calibrate a fitted forest")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        with threadpool_limits(limits=1):
            print(json.dumps(measured(args.one, args.steps, args.given)))
        return
    for name in args.tables:
        given = ["--given"] if args.given else []
        subprocess.run([sys.executable, __file__, "--one", name, "--steps", str(args.steps), *given], check=True)


if __name__ == "__main__":
    main()
