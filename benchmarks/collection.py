"""How fast is a predictor calibrated and scored over 20 million rows that are never in memory, on 1 and 2 processes?

    STREAMS_DATA=folder python benchmarks/collection.py [--rows 20000000] [--block 100000]

Covertype, 581 012 rows of 54 features and 7 classes, repeated: block i begins where block i - 1 ended, in a cycle,
with different noise on the 10 measured features in every block. Blocks are made where they are used, by
functions. Scorer: LinearSVC, trained on 5000 rows. An `InductiveVenn` is calibrated on the first half of the rows and
scored on the second, in this process and on clusters of 1 and 2 processes; counts must be equal, and scorecards but
for rounding. For comparison, code that a user would write by hand for one process: decision_function, argmax, counts,
means of losses.

Seconds are wall time; `cpu` are seconds of processor time of the processes that work, which say more on a machine that
has other work to do. Memory: the peak of each worker after a tenth of the rows and after all. Compilation excluded.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from distributed import Client
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

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


def peak_mb():
    """The largest resident memory of this process so far."""
    # Not ru_maxrss, which a process inherits from its parent.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def timed(work, cpu):
    """The result of `work`, its wall time and processor time, in seconds."""
    wall, before = time.perf_counter(), cpu()
    result = work()
    return result, time.perf_counter() - wall, cpu() - before


def measured(model, first, second, client=None):
    """Calibrate on some blocks and score on others; return the model, the scorecard and figures."""
    cpu = time.process_time if client is None else lambda: sum(client.run(time.process_time).values())
    model, *of_first = timed(lambda: calibrate(model, first, client=client, progress=False), cpu)
    card, *of_second = timed(lambda: score(model, second, client=client, progress=False), cpu)
    return model, card, np.array([of_first, of_second])


def said(model, make):
    """All predictions of a model for a block."""
    return model.n, model.predict_many(make()[0]).counts.tobytes()


def by_hand(estimator, first, second):
    """A user's own code: counts by predicted class, then mean losses, block by block."""
    c = len(estimator.classes_)
    counts = np.zeros((c, c))
    for make in first:
        X, y = make()
        codes = np.searchsorted(estimator.classes_, y)
        best = estimator.decision_function(X).argmax(axis=1)
        counts += np.bincount(best * c + codes, minlength=c * c).reshape(c, c)
    losses, briers, hits, n = 0.0, 0.0, 0, 0
    for make in second:
        X, y = make()
        codes = np.searchsorted(estimator.classes_, y)
        best = estimator.decision_function(X).argmax(axis=1)
        p = ((counts + 1 / c) / (counts.sum(axis=1, keepdims=True) + 1))[best]
        own = p[np.arange(len(y)), codes]
        losses += -np.log(np.maximum(own, 1e-15)).sum()
        briers += ((p * p).sum(axis=1) - 2 * own + 1).sum()
        hits += (best == codes).sum()
        n += len(y)
    return losses / n, briers / n, hits / n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--block", type=int, default=100_000)
    given = parser.parse_args()
    half = given.rows // given.block // 2
    stream = streams.load("covtype", shuffle=0)
    X, y = np.array(stream.X, np.float32), np.array([int(label) for _, label in stream], np.int16)
    X = (X - X[:TRAINED].mean(axis=0)) / np.where(X[:TRAINED].std(axis=0) > 0, X[:TRAINED].std(axis=0), 1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X[TRAINED:].astype(np.float32))
        np.save(Path(folder) / "y.npy", y[TRAINED:])
        estimator = LinearSVC(random_state=0, max_iter=10_000, dual=False).fit(
            X[:TRAINED].astype(np.float64), y[:TRAINED]
        )
        del X, y
        model = venn.InductiveVenn(venn.FrozenScorer(estimator))
        first, second = ([partial(block, folder, i, given.block) for i in range(at, at + half)] for at in (0, half))
        for make in (first[:1], second[:1]):
            score(calibrate(model, make), make)  # loops compile
        _, _, making_cpu = timed(lambda: [make() for make in first[:10]], time.process_time)
        sample = max(1, half // 10)
        hand, _, hand_cpu = timed(lambda: by_hand(estimator, first[:sample], second[:sample]), time.process_time)
        _, own, of_sample = measured(model, first[:sample], second[:sample])
        alone, card, seconds = measured(model, first, second)
        runs = {"here": {"seconds": seconds[:, 0], "cpu": seconds[:, 1]}}
        equal = True
        for workers in (1, 2):
            with Client(n_workers=workers, threads_per_worker=1) as client:
                for _ in range(2):  # loops are read from the cache, files are opened
                    measured(model, first[: 4 * workers], second[: 4 * workers], client)
                measured(model, first[:sample], second[:sample], client)
                early = [round(mb) for mb in client.run(peak_mb).values()]
                there, other, seconds = measured(model, first, second, client)
                late = [round(mb) for mb in client.run(peak_mb).values()]
                runs[f"{workers} workers"] = {"seconds": seconds[:, 0], "cpu": seconds[:, 1], "peak_mb": [early, late]}
                equal &= all(map(np.allclose, other.table.values(), card.table.values()))
                equal &= said(alone, second[0]) == said(there, second[0])
        rows = 2 * half * given.block
        for run in runs.values():
            run["rows_per_second"] = int(rows / run["seconds"].sum())
            run["rows_per_cpu_second"] = int(rows / run["cpu"].sum())
            run["seconds"], run["cpu"] = run["seconds"].round(1).tolist(), run["cpu"].round(1).tolist()
        print(
            json.dumps({
                "benchmark": "collection",
                "rows": rows,
                "runs": runs,
                "two_workers_to_one": round(
                    sum(runs["1 workers"]["seconds"]) / sum(runs["2 workers"]["seconds"]), 2
                ),
                "equal": bool(equal),
                "making_cpu_ns_a_row": round(making_cpu / (10 * given.block) * 1e9),
                "by_hand_cpu_to_ours": round(hand_cpu / of_sample[:, 1].sum(), 2),
                "by_hand": [round(float(value), 6) for value in hand],
                "ours_on_the_same_rows": [round(own.log_loss.value, 6), round(own.brier, 6), round(own.accuracy, 6)],
                "load": [round(one, 1) for one in os.getloadavg()],
                "scorecard": str(card),
            })
        )  # fmt: skip


if __name__ == "__main__":
    main()
