"""How long does the slowest step take where the cores are busy?

    python benchmarks/busy.py [--steps 160] [--neighbours 2] [--numbers]

A forecaster learns Gaussian classes, or numbers with --numbers, step by step: a prediction and a label. That is done
twice: alone, and beside neighbours, processes that compute without end on the same cores. Libraries may begin as many
threads as they like. Where a fit waits for threads that have no core, a step of .3 s takes seconds. Compilation is
excluded. Prints one JSON line: the slowest steps in seconds, their number, and the median of all steps in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

import streams
import venn

TOLD = 5  # slowest steps
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def steps(examples, classes):
    """Return the seconds of each step."""
    model = venn.Forecaster(classes)
    seconds = []
    for x, y in examples:
        start = time.perf_counter()
        model.predict_one(x)
        model.learn_one(x, y)
        seconds.append(time.perf_counter() - start)
    return np.array(seconds)


def slowest(seconds):
    """Return the figures of a run."""
    order = np.argsort(seconds)[::-1][:TOLD]
    return {
        "slowest_s": seconds[order].round(2).tolist(), "at": (1 + order).tolist(),
        "median_ms": round(1e3 * float(np.median(seconds)), 2), "all_s": round(float(seconds.sum()), 1),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--numbers", action="store_true")
    args = parser.parse_args()
    if any(name in os.environ for name in THREADS):  # they are read when a library is loaded
        free = {name: value for name, value in os.environ.items() if name not in THREADS}
        raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=free).returncode)
    stream = streams.gaussians(args.steps, classes=3, features=6, spread=0.7, seed=0)
    examples = [(x, float(x[0]) if args.numbers else y) for x, y in stream]
    classes = float if args.numbers else stream.classes
    steps(examples[:80], classes)  # compilation
    alone = slowest(steps(examples, classes))
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.neighbours)]
    try:
        busy = slowest(steps(examples, classes))
    finally:
        for one in beside:
            one.kill()
            one.wait()
    print(json.dumps({"benchmark": "busy", "steps": args.steps, "neighbours": args.neighbours,
                      "cores": os.cpu_count(), "alone": alone, "busy": busy}))  # fmt: skip


if __name__ == "__main__":
    main()
