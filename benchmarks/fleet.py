"""What thousands of keys cost: seconds, bytes and files; beside them as many river pipelines, and one model of all.

    python benchmarks/fleet.py [keys] [rows]

By default 100 keys; 5000 on request. Each key has a law of its own; the rows come in blocks of one row of each key.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import venn

D = 5
CLASSES = ("no", "yes")
TOGETHER = 500  # models by themselves, at most: they take memory


def data(keys: int, rows: int) -> tuple[Any, Any]:
    """Return (keys, rows, D) objects, and whether the label is "yes", by a direction of each key's own."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(keys, rows, D)), rng.normal(size=(keys, D))
    return X, (np.einsum("krd,kd->kr", X, w) + 0.5 * rng.normal(size=(keys, rows)) > 0).astype(int)


def make(_: str) -> Any:
    """Return the model of a key."""
    return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 10, CLASSES))


def alone(X: Any, y: Any) -> float:
    """Return the seconds of a step of the keys' models by themselves, in the same order: a row of each at a time."""
    models = [make("") for _ in range(min(len(y), TOGETHER))]
    start = process_time()
    for row in range(y.shape[1]):
        for key, model in enumerate(models):
            model.predict_one(X[key, row])
            model.learn_one(X[key, row], CLASSES[y[key, row]])
    return (process_time() - start) / (len(models) * y.shape[1])


def memory() -> int:
    """Return the most bytes that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def by_fleet(X: Any, y: Any, folder: Path) -> dict[str, Any]:
    """Learn all by a fleet in a folder, a row of each key at a time where they are open, else all of each key."""
    keys, rows = y.shape
    names = [f"key {k}" for k in range(keys)]
    seconds, size = 0.0, 1000
    with venn.Fleet(make, folder, open=size) as fleet:
        for at in range(0, keys, size):  # those that are open together
            for row in range(rows):
                block = slice(at, min(at + size, keys))
                said = process_time()
                fleet.predict_many(names[block], X[block, row])
                fleet.learn_many(names[block], X[block, row], [CLASSES[one] for one in y[block, row]])
                seconds += process_time() - said
        start = process_time()
    closing = process_time() - start
    files = [one for one in folder.iterdir() if one.is_file()]
    disk = sum(one.stat().st_size for one in files) / keys
    start, before = process_time(), memory()
    fleet = venn.Fleet(make, folder)
    opening = process_time() - start
    start = process_time()
    verdict = fleet.verdict()
    judged = process_time() - start
    start = process_time()
    for key in names[:20]:
        fleet.model(key)
    first = (process_time() - start) / min(20, keys)
    fleet.close()
    return {
        "step_us": round(seconds / (keys * rows) * 1e6), "seconds": round(seconds + closing, 1),
        "disk_bytes_a_key": round(disk), "files": len(files),
        "memory_bytes_a_closed_key": round(max(memory() - before, 0) / keys), "begin_seconds": round(opening, 3),
        "open_ms_a_key": round(first * 1e3, 2), "verdict_ms": round(judged * 1e3, 2), "named": len(verdict.names),
    }  # fmt: skip


def by_river(X: Any, y: Any) -> dict[str, Any]:
    """Learn all by a pipeline of river for each key."""
    from river import linear_model, preprocessing

    keys, rows = y.shape
    models = [preprocessing.StandardScaler() | linear_model.LogisticRegression() for _ in range(keys)]
    start = process_time()
    for row in range(rows):
        for key, model in enumerate(models):
            x = dict(enumerate(X[key, row].tolist()))
            model.predict_proba_one(x)
            model.learn_one(x, bool(y[key, row]))
    seconds = process_time() - start
    return {
        "step_us": round(seconds / (keys * rows) * 1e6), "seconds": round(seconds, 1),
        "pickle_bytes_a_key": len(pickle.dumps(models[0])),
    }  # fmt: skip


def by_one(X: Any, y: Any) -> dict[str, Any]:
    """Learn all by one pipeline of river for all keys together: its accuracy is that of guessing."""
    from river import linear_model, preprocessing

    model, right = preprocessing.StandardScaler() | linear_model.LogisticRegression(), 0
    keys, rows = y.shape
    start = process_time()
    for row in range(rows):
        for key in range(keys):
            x = dict(enumerate(X[key, row].tolist()))
            right += model.predict_one(x) == bool(y[key, row])
            model.learn_one(x, bool(y[key, row]))
    seconds = process_time() - start
    return {"step_us": round(seconds / (keys * rows) * 1e6), "accuracy": round(right / (keys * rows), 3)}


def main(keys: int = 100, rows: int = 200) -> None:
    """Print one line of JSON."""
    X, y = data(keys, rows)
    alone(X[:2], y[:2])  # compiled once
    step = alone(X, y)
    with tempfile.TemporaryDirectory() as folder:
        fleet = by_fleet(X, y, Path(folder))
    found = {
        "benchmark": "fleet", "keys": keys, "rows": rows, "model_alone_step_us": round(step * 1e6),
        "ratio": round(fleet["step_us"] / (step * 1e6), 2), "fleet": fleet, "river": by_river(X, y),
        "one_model": by_one(X, y),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
