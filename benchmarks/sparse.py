"""How much faster, and in how much less memory, are sparse objects learned sparse than dense?

    python benchmarks/sparse.py --machine LeastSquaresSVM --n 600

Rows like those of texts: `--d` features of which `--share` are not 0, drawn with frequencies 1 / (rank + 10), values
like tf-idf weights, scaled to length 1, of two classes that prefer different words. A machine, by the linear kernel
and by the Gaussian one, predicts with leave-one-out scores and learns, step by step: once the rows as they are,
`csr_array`s of shape (1, d), and once what a user would do otherwise, each row made dense as it comes.

`ms` is the median step among the last quarter, `first_ms` among steps 50 to 150; `mb` what is held after the last step,
`peak_mb` the most that was held at a time (tracemalloc). `rows_mb` is what the objects alone take, and `kernel_ms` a
kernel row of a new object with all others. `differ` is the largest difference of scores of the two machines for one
object. Times are of the processor, compilation excluded; each run is a separate process. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import venn

KERNELS = {"linear": venn.Linear(), "rbf": venn.RBF(1.0)}


def texts(n, d, share, seed=0):
    """Return n rows (n, d), csr, and labels."""
    rng = np.random.default_rng(seed)
    words = max(1, round(share * d))
    rates = 1 / (np.arange(d) + 10.0)
    rates = [rates, rates * np.exp(rng.normal(size=d))]
    y = rng.integers(0, 2, n)
    rows, columns, values = [], [], []
    for i, label in enumerate(y):
        # The most likely by an exponential race: without replacement, each with its rate.
        columns.append(np.argpartition(rng.exponential(size=d) / rates[label], words)[:words])
        value = rng.exponential(size=words) / np.sqrt(rates[0][columns[-1]])
        values.append(value / np.linalg.norm(value))
        rows.append(np.full(words, i))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(entries, shape=(n, d)), y.tolist()


def taught(machine, rows, y):
    """Return seconds of each step: leave-one-out scores under both hypotheses, then the label."""
    stamps = [time.process_time()]
    for x, label in zip(rows, y, strict=True):
        machine.hypotheses(x).tables(True)
        machine.learn_one(x, label)
        stamps.append(time.process_time())
    return np.diff(stamps)


def run(options, kernel, sparse):
    """Return the figures of one run."""
    X, y = texts(options.n + 1, options.d, options.share)
    # Rows come from elsewhere, one at a time: count only what the machine keeps.
    given = (X[i : i + 1] if sparse else X[i : i + 1].toarray()[0] for i in range(options.n))
    make = getattr(venn.machines, options.machine)
    warm = texts(4, 50, 0.1)
    taught(make(KERNELS[kernel], 1.0, (0, 1)), [warm[0][i : i + 1] for i in range(4)], warm[1])
    taught(make(KERNELS[kernel], 1.0, (0, 1)), warm[0].toarray(), warm[1])
    if options.memory:
        tracemalloc.start()
    machine = make(KERNELS[kernel], 1.0, (0, 1))
    seconds = taught(machine, given, y[:-1])
    if options.memory:
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"mb": now / 1e6, "peak_mb": peak / 1e6}
    x, out = machine._store.clean(X[-1:] if sparse else X[-1:].toarray()[0]), np.empty(options.n)
    times = []
    for _ in range(5):
        start = time.process_time()
        machine._store.row(options.n - 1, x, out[:-1])
        times.append(time.process_time() - start)
    return {
        "ms": 1e3 * float(np.median(seconds[-options.n // 4 :])),
        "first_ms": 1e3 * float(np.median(seconds[50:150])),
        "kernel_ms": 1e3 * min(times),
        "rows_mb": options.n * (12 * round(options.share * options.d) + 16 if sparse else 8 * options.d) / 1e6,
        "scores": machine.scores(X[-1:] if sparse else X[-1:].toarray()[0]).tolist(),
        "residual": machine.residual,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="LeastSquaresSVM")
    parser.add_argument("--n", type=int, default=600)
    parser.add_argument("--d", type=int, default=20000)
    parser.add_argument("--share", type=float, default=0.005)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kernel, kind = options.one.split(",")
        with threadpool_limits(1):
            print(json.dumps(run(options, kernel, kind == "sparse")))
        return
    line = {"machine": options.machine, "n": options.n, "d": options.d, "share": options.share}
    for kernel in KERNELS:
        both = {}
        for kind in ("sparse", "dense"):
            both[kind] = {}
            for more in ([], ["--memory"]):
                command = [sys.executable, __file__, *sys.argv[1:], "--one", f"{kernel},{kind}", *more]
                both[kind] |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        scores = [np.array(found.pop("scores")) for found in both.values()]
        line[kernel] = {kind: {name: round(v, 10) if name == "residual" else round(v, 3) for name, v in found.items()}
                        for kind, found in both.items()}  # fmt: skip
        line[kernel] |= {
            "differ": float(np.abs(scores[0] - scores[1]).max()),
            "times_faster": round(both["dense"]["ms"] / both["sparse"]["ms"], 1),
            "times_less_memory": round(both["dense"]["mb"] / both["sparse"]["mb"], 1),
        }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
