"""How fast is a predictor calibrated and scored over 20 million rows that are never in memory, on 1 and 2 processes?

    STREAMS_DATA=folder python benchmarks/collection.py [--rows 20000000] [--block 100000]

Covertype, 581 012 rows of 54 features and 7 classes, repeated: block i begins where block i - 1 ended, in a cycle,
with different noise on the 10 measured features in every block. Blocks are made where they are used, by functions.
Scorer: LinearSVC, trained on 5000 rows. An `InductiveVenn` is calibrated on the first half of the rows and scored on
the second, in this process and on a cluster of 2; counts must be equal, and scorecards but for rounding. Wall time,
compilation excluded. Prints one JSON line.
"""

import tempfile
import time
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from distributed import Client
from sklearn.svm import LinearSVC
from workload import command, command_options

import streams
import venn
from venn.scale import calibrate, score

MEASURED = 10
TRAINED = 5000


@lru_cache(maxsize=1)
def data(folder):
    """The rows that are repeated, read from disk as needed, and noise."""
    X, y = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in "Xy")
    noise = np.random.default_rng(0).normal(0, 0.05, (1 << 18, MEASURED))
    return X, y, noise


def block(folder, i, size):
    """Block i: (size, 54) rows and their labels."""
    X, y, noise = data(folder)
    which = np.arange(i * size, (i + 1) * size) % len(X)
    # Slices, as gathering rows from a file costs ten times as much.
    parts = np.split(which, np.flatnonzero(np.diff(which) < 0) + 1)
    rows = np.concatenate([X[part[0] : part[-1] + 1] for part in parts]).astype(np.float64)
    start = i * 7919 % (len(noise) - size)
    rows[:, :MEASURED] += noise[start : start + size]
    return rows, np.concatenate([y[part[0] : part[-1] + 1] for part in parts])


def measured(model, first, second, client=None):
    """Calibrate on some blocks and score on others; return the model, the scorecard and seconds."""
    start = time.perf_counter()
    model = calibrate(model, first, client=client, progress=False)
    card = score(model, second, client=client, progress=False)
    return model, card, time.perf_counter() - start


def said(model, make):
    """All predictions of a model for a block."""
    return model.n, model.predict_many(make()[0]).counts.tobytes()


@command()
def main():
    given = command_options(__doc__, rows=20_000_000, block=100_000)
    half = given.rows // given.block // 2
    stream = streams.load("covtype", shuffle=0)
    X, y = np.array(stream.X, np.float32), np.array([int(label) for _, label in stream], np.int16)
    X = (X - X[:TRAINED].mean(axis=0)) / np.where(X[:TRAINED].std(axis=0) > 0, X[:TRAINED].std(axis=0), 1)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X[TRAINED:])
        np.save(Path(folder) / "y.npy", y[TRAINED:])
        estimator = LinearSVC(random_state=0, max_iter=10_000, dual=False)
        model = venn.InductiveVenn(venn.FrozenScorer(estimator.fit(X[:TRAINED].astype(np.float64), y[:TRAINED])))
        del X, y
        first, second = ([partial(block, folder, i, given.block) for i in range(at, at + half)] for at in (0, half))
        measured(model, first[:1], second[:1])  # loops compile
        alone, card, here = measured(model, first, second)
        with Client(n_workers=2, threads_per_worker=1) as client:
            for _ in range(2):  # loops are read from the cache, files are opened
                measured(model, first[:8], second[:8], client)
            there, other, two = measured(model, first, second, client)
        assert all(map(np.allclose, other.table.values(), card.table.values()))
        assert said(alone, second[0]) == said(there, second[0])
    rows = 2 * half * given.block
    rates = {name: int(rows / seconds) for name, seconds in {"here": here, "2 workers": two}.items()}
    return {"benchmark": "collection", "rows": rows, "rows_per_second": rates}
