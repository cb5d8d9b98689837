"""How much faster is an online step of kernel logistic regression than refitting?

    python benchmarks/logistic.py --data car --gamma 0.5 --C 10

Ours is timed over the whole replay, prediction on training scores and learning, compilation excluded; with
`--deleted`, on deleted scores. Against it

    refit    what a user would write with scipy: the kernel matrix kept, and each step the 2c problems solved by
             Newton's method from the last solution, a Cholesky factor of I + W^1/2 K W^1/2 for each Newton step,
             until a step moves no score by more than 1e-8.

`refit` is timed at `--samples` steps spread over the replay and integrated over the steps in between (trapezoid).
Times are of the processor, one thread. Prints one JSON line.
"""

from __future__ import annotations

import json
import time

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit
from threadpoolctl import threadpool_limits
from workload import options, rbf, replay, stream_of

import venn
from venn.machines.logistic import KernelLogisticRegression


def replayed(stream, gamma, C, deleted):
    """Return seconds of a whole replay, accuracy and mean bounds, and the residual."""
    machine = KernelLogisticRegression(venn.RBF(gamma), C, stream.classes)
    taxonomy = venn.Deleted(venn.Argmax()) if deleted else venn.Argmax()
    seconds, figures = replay(stream, venn.TransductiveVenn(machine, taxonomy), time.process_time)
    return seconds, figures, machine.residual


def solve(K, positive, C, f):
    """Return scores by Newton's method from a start."""
    n = len(f)
    for _ in range(100):
        p = expit(f)
        W = np.maximum(C * p * (1 - p), 1e-10 * C)
        root = np.sqrt(W)
        B = K * np.outer(root, root)
        B[np.diag_indices(n)] += 1
        z = f + C * (positive - p) / W
        both = cho_solve(
            (cholesky(B, lower=True, overwrite_a=True, check_finite=False), True), np.column_stack([root * z, root])
        )
        beta = root * (both[:, 0] - both[:, 1] * (root @ both[:, 0]) / (root @ both[:, 1]))
        moved = z - beta / W - f
        f = f + moved * min(1.0, 5 / abs(moved).max())
        if abs(moved).max() < 1e-8:
            break
    return f


def refit_step(X, y, c, gamma, C):
    """Return seconds of one step by refitting; the last example is the new one."""
    K = rbf(X, gamma)
    old = [solve(K[:-1, :-1], y[:-1] == k, C, np.zeros(len(y) - 1)) for k in range(c)]
    start = time.process_time()
    for k in range(c):
        for side in (False, True):
            solve(K, np.append(y[:-1] == k, side), C, np.append(old[k], 0.0))
    return time.process_time() - start


def main():
    parser = options(__doc__, gamma=0.5)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--deleted", action="store_true")
    args = parser.parse_args()
    stream = stream_of(args)
    n, c = len(stream), len(stream.classes)
    with threadpool_limits(1):
        replayed(stream.take(min(n, 80)), args.gamma, args.C, args.deleted)  # compilation
        seconds, figures, residual = replayed(stream, args.gamma, args.C, args.deleted)
        X, y = stream.X, stream.y
        # Earlier all classes need not be there.
        sizes = np.unique(np.linspace(min(n, 100), n, args.samples).astype(int))
        refit = [refit_step(X[:m], y[:m], c, args.gamma, args.C) for m in sizes]
    refitted = float(trapezoid(refit, sizes))
    line = {
        "data": args.data, "n": n, "classes": c, "gamma": args.gamma, "C": args.C, "deleted": args.deleted,
        "ours_seconds": round(seconds, 2), "step_ms": round(1e3 * seconds / n, 2), "residual": residual,
        "accuracy_lower_upper": [round(value, 3) for value in figures],
        "refit_seconds": round(refitted, 1), "ratio_refit": round(refitted / seconds, 1),
    }  # fmt: skip
    print(json.dumps(line))


if __name__ == "__main__":
    main()
