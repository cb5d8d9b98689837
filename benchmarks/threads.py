"""How much faster are the steps of a machine when its classes are solved in parallel?

    python benchmarks/threads.py [--threads 2] [--steps 40] [--sizes 2000,5000] [--logistic 1000]

A machine learns Gaussian classes up to a size; then steps, a question about a new object and its label, are taken by
one thread and by several in turn, ten steps each: wall time, medians. Their answers are equal to the last bit, which is
checked on a copy. `serial` is the share of a step that threads do not touch, by Amdahl's law: with it a step on p cores
takes serial + (1 - serial) / p of the time on one. Compilation is excluded, and of BLAS one thread is used. Prints one
JSON line.
"""

from __future__ import annotations

import argparse
import copy
import json
import time

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn


def step(machine, x, y):
    """Return the wall seconds of a question and a label, and the scores in between."""
    start = time.perf_counter()
    answer = machine.hypotheses(x)
    scores = np.array([answer.scores(j) for j in range(len(machine.classes))])
    machine.learn_one(x, y)
    return time.perf_counter() - start, scores


def measured(make, n, classes, steps, threads):
    """Return the figures of one kind of machine."""
    stream = streams.gaussians(n + 2 * steps, classes=classes, features=10, spread=0.7, seed=classes)
    examples = list(stream)
    machine = make(stream.classes)
    for x, y in examples[:n]:
        machine.learn_one(x, y)
    twin = copy.deepcopy(machine)
    machine.threads, twin.threads = threads, 1
    equal = all(np.array_equal(step(machine, x, y)[1], step(twin, x, y)[1]) for x, y in examples[n : n + 4])
    seconds = {1: [], threads: []}
    for i, (x, y) in enumerate(examples[n + 4 :]):
        machine.threads = (1, threads)[i // 10 % 2]
        seconds[machine.threads].append(step(machine, x, y)[0])
    one, many = np.median(seconds[1]), np.median(seconds[threads])
    serial = (many / one - 1 / threads) / (1 - 1 / threads)
    return {
        "machine": type(machine).__name__, "n": n, "classes": classes, "one_ms": round(1e3 * float(one), 2),
        "threads_ms": round(1e3 * float(many), 2), "times_faster": round(float(one / many), 2),
        "serial": round(float(serial), 3), "equal_bits": equal,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40, help="by each number of threads")
    parser.add_argument("--sizes", default="2000,5000", help="examples of the hinge-loss machines")
    args = parser.parse_args()

    def hinge(classes):
        return venn.OneVsAllSVM(venn.RBF(0.05), 10.0, classes)

    rows = []
    with threadpool_limits(1):
        measured(hinge, 60, 4, 20, args.threads)  # compilation
        for n in map(int, args.sizes.split(",")):
            rows += [measured(hinge, n, classes, args.steps, args.threads) for classes in (4, 10)]
    print(json.dumps({"benchmark": "threads", "threads": args.threads, "rows": rows}))


if __name__ == "__main__":
    main()
