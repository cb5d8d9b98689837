"""What does a journal cost, how long does a question take, and does memory stay flat for months?

    python benchmarks/online.py
    python benchmarks/online.py --soak 5000000 --folder /var/tmp

An inductive Venn predictor and its monitor on Gaussian data: a frozen linear scorer, the cheapest step and so the
hardest case for a journal, and a least-squares machine trained on its first 512 examples. Each question is answered
at once. Blocks of steps run in turn without a journal, with one (a transaction for each question and each answer, as
in a service), in transactions of 64 steps (as in `venn run`), and with transactions that reach the disk; the ratio
is that of the medians over blocks. Compilation is excluded, and nobody else should use the machine. Prints one JSON
line for each scorer.

The soak: as many examples through a journaled run in transactions, resident memory along the way.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from workload import resident_mb

import venn
from venn.online.checkpoint import pack

CLASSES = (0, 1)
FEATURES = 10
TOGETHER = 64  # steps of a transaction


def draw(rng, n):
    X = rng.normal(size=(n, FEATURES))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int).tolist()


def frozen(rng):
    return venn.InductiveVenn(venn.FrozenScorer(LogisticRegression().fit(*draw(rng, 1000))))


def trained(rng):
    machine = venn.LeastSquaresSVM(venn.RBF(0.1), 1.0, CLASSES)
    return venn.InductiveVenn(machine, schedule=venn.schedules.PrefixRestart(first=64, last=512))


def one_by_one(online, X, y, delays=None):
    """Ask and answer each example; record how long each question took."""
    for x, label in zip(X, y, strict=True):
        start = time.perf_counter()
        online.ask(x)
        if delays is not None:
            delays.append(time.perf_counter() - start)
        online.answer(online.asked, label)


def together(online, X, y, delays=None):
    """The same in transactions."""
    for start in range(0, len(X), TOGETHER):
        with online.transaction():
            one_by_one(online, X[start : start + TOGETHER], y[start : start + TOGETHER])


def compare(name, make, folder, blocks, steps):
    """Time the ways in turn; return one JSON object."""
    ways = {
        "memory": (None, one_by_one),
        "journal": (venn.online.Journal(folder / f"{name}.db"), one_by_one),
        "transactions": (venn.online.Journal(folder / f"{name}-64.db"), together),
        "durable": (venn.online.Journal(folder / f"{name}-full.db", durable=True), one_by_one),
    }
    runs = {
        way: venn.Online(make(np.random.default_rng(0)), venn.Monitor(CLASSES), journal)
        for way, (journal, _) in ways.items()
    }
    rng = np.random.default_rng(1)
    seconds = {way: [] for way in ways}
    delays = {way: [] for way in ways}
    for block in range(blocks + 1):
        X, y = draw(rng, steps)
        for way, (_, drive) in ways.items():
            n = steps if way != "durable" else steps // 10
            start = time.perf_counter()
            drive(runs[way], X[:n], y[:n], delays[way] if block else None)
            if block:  # the first one warms up
                seconds[way].append((time.perf_counter() - start) / n)
    median = {way: float(np.median(times)) for way, times in seconds.items()}
    asked = {way: np.percentile(found, (50, 99)) * 1e6 for way, found in delays.items() if found}
    found = {
        "benchmark": "online",
        "predictor": name,
        "steps_a_second": {way: round(1 / value) for way, value in median.items()},
        "slower_than_memory": {way: round(median[way] / median["memory"], 2) for way in ways if way != "memory"},
        "ask_us_p50_p99": {way: [round(value, 1) for value in pair] for way, pair in asked.items()},
        "bytes_a_step": round((folder / f"{name}.db").stat().st_size / runs["journal"].answered),
    }
    assert pack(runs["memory"].monitors["InductiveVenn"]) == pack(runs["transactions"].monitors["InductiveVenn"])
    for online in runs.values():
        online.close()
    return found


def soak(examples, folder):
    """Run for long; return one JSON object."""
    path = folder / "soak.db"
    online = venn.Online(frozen(np.random.default_rng(0)), venn.Monitor(CLASSES), path, patience=1000)
    rng = np.random.default_rng(2)
    memory, start, marks = [], time.perf_counter(), max(1, examples // 10)
    while online.answered < examples:
        together(online, *draw(rng, min(50_000, examples - online.answered)))
        if online.answered >= marks * (len(memory) + 1):
            memory.append(round(resident_mb(), 1))
            print(f"{online.answered} examples, {memory[-1]} MB", flush=True)
    seconds = time.perf_counter() - start
    online.close()
    start = time.perf_counter()
    again = venn.Online(frozen(np.random.default_rng(0)), venn.Monitor(CLASSES), path, patience=1000)
    restart = time.perf_counter() - start
    assert again.answered == examples
    again.close()
    return {
        "benchmark": "online soak", "examples": examples, "seconds": round(seconds, 1), "memory_mb": memory,
        "steps_a_second": round(examples / seconds), "restart_seconds": round(restart, 2),
        "journal_mb": round(path.stat().st_size / 2**20),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--soak", type=int, default=0, metavar="EXAMPLES")
    parser.add_argument("--folder", type=Path, help="where the journals are written; by default a temporary one")
    options = parser.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        if options.soak:
            print(json.dumps(soak(options.soak, folder)))
            return
        for name, make in (("frozen", frozen), ("trained", trained)):
            print(json.dumps(compare(name, make, folder, options.blocks, options.steps)))


if __name__ == "__main__":
    main()
