"""How do hinge-loss machines handle a typical raw table: raw scales, gaps filled with 0, a rare class?

    python benchmarks/raw_table.py [--rows 400]

A salary (6e4, and 0 in a twentieth of the rows), a concentration (1e-3), a pressure (1016) and a city as four columns
of 0 and 1; labels yes, no and, in 2 of 100 rows, rare. For kernels with such columns as they are and scaled: rows
learned before one is refused, seconds, the worst step, the residual over the tolerance at the end. Processor seconds;
compilation is excluded, and of BLAS one thread is used. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from threadpoolctl import threadpool_limits

import venn

CLASSES = ("yes", "no", "rare")


def table(rows, seed=3):
    """Return (n, 7) objects and their labels."""
    rng = np.random.default_rng(seed)
    salary, city = rng.normal(6e4, 2e4, rows).round(2), rng.integers(0, 4, rows)
    pressure = rng.normal(1016, 6, rows).round(1)
    rule = (salary - 6e4) / 2e4 + 1.5 * (city == 2) - (pressure - 1016) / 6 * 0.7 + 0.7 * rng.normal(size=rows)
    salary[rng.random(rows) < 0.05] = 0.0
    y = np.where(rng.random(rows) < 0.02, "rare", np.where(rule > 0, "yes", "no"))
    return np.column_stack([salary, rng.lognormal(-7, 1, rows).round(6), pressure, np.eye(4)[city]]), y.tolist()


def learned(kernel, C, X, y):
    """Return the results of a machine that learns the table."""
    machine, steps, refused = venn.OneVsAllSVM(kernel, C, CLASSES), [], ""
    for x, label in zip(X, y, strict=True):
        start = time.process_time()
        try:
            machine.learn_one(x, label)
        except venn.machines.NotConverged as error:
            refused = str(error)
            break
        finally:
            steps.append(time.process_time() - start)
    return {
        "kernel": repr(kernel), "C": C, "rows": machine.n, "seconds": round(sum(steps), 2),
        "worst_step": round(max(steps), 3), "over_tolerance": round(machine.residual / machine.tolerance, 4),
        "refused": refused,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400)
    args = parser.parse_args()
    X, y = table(args.rows)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    with threadpool_limits(1):
        learned(venn.Linear(), 1.0, X[:40], y[:40])  # compilation
        raw = [learned(kernel, C, X, y) for kernel in (venn.RBF(1e-9), venn.Linear()) for C in (0.1, 1.0, 10.0)]
        cases = [learned(kernel, C, scaled, y) for kernel in (venn.RBF(0.1), venn.Linear()) for C in (0.1, 1.0, 10.0)]
    print(json.dumps({"benchmark": "raw_table", "rows": args.rows, "raw": raw, "scaled": cases}))


if __name__ == "__main__":
    main()
