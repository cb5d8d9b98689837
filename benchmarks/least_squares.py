"""How much faster is the least-squares step than refitting, and than the hinge-loss machine?

    python benchmarks/least_squares.py --data car --gamma 0.5 --C 10

Ours is timed over the whole replay, prediction with leave-one-out scores and learning, compilation excluded.
Against it

    refit    what a user would write with scipy: the kernel matrix kept and grown by a row each step, one
             Cholesky factor and inverse of K + I / C from nothing (LAPACK's potrf and potri), leave-one-out scores
             of all examples and classes under every hypothesis in numpy, argmax counts;
    hinge    the replay by `venn.OneVsAllSVM` with the same kernel and C, training scores, whole as well.

`machine` is the time of the machine alone, and `abers` that of a replay by `venn.TransductiveVennAbers`.

`refit` is timed at `--samples` steps spread over the replay and integrated over the steps in between
(trapezoid). `floor` is the time to read the factor once a step, as numpy sums that many numbers.
Prints one JSON line.
"""

from __future__ import annotations

import json
import time

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits
from workload import options, rbf, replay, stream_of

import venn


def alone(stream, gamma, C):
    """Return seconds of the machine with no predictor."""
    machine = venn.LeastSquaresSVM(venn.RBF(gamma), C, stream.classes)
    start = time.perf_counter()
    for x, y in stream:
        machine.learn_one(x, y)
    return time.perf_counter() - start


def abers(stream, gamma, C):
    """Return seconds of the replay by Venn-Abers."""
    machine = venn.LeastSquaresSVM(venn.RBF(gamma), C, stream.classes)
    return replay(stream, venn.TransductiveVennAbers(machine))[0]


def squares(stream, gamma, C):
    """Return seconds, figures and residual of our replay."""
    machine = venn.LeastSquaresSVM(venn.RBF(gamma), C, stream.classes)
    seconds, figures = replay(stream, venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())))
    return seconds, figures, machine.residual


def hinge(stream, gamma, C):
    """Return seconds of the hinge-loss machine's replay."""
    machine = venn.OneVsAllSVM(venn.RBF(gamma), C, stream.classes)
    return replay(stream, venn.TransductiveVenn(machine, venn.Argmax()))[0]


def refit_step(X, y, c, gamma, C):
    """Return seconds and the multiprobability of one step by refitting; the last example is the new one."""
    n = len(y)
    K = rbf(X, gamma)
    start = time.perf_counter()
    K[-1] = K[:, -1] = np.exp(-gamma * ((X - X[-1]) ** 2).sum(1))  # the user keeps the rest
    M = K.copy()
    M[np.diag_indices(n)] += 1 / C
    inverse, _ = dpotri(dpotrf(M, lower=1, overwrite_a=1)[0], lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    sums = inverse.sum(axis=0)
    H = inverse - np.outer(sums, sums) / sums.sum()
    counts = np.zeros((c, c))
    for j in range(c):
        labels = np.append(y[:-1], j)
        T = np.where(labels[:, None] == np.arange(c), 1.0, -1.0)
        top = (T - (H @ T) / np.diag(H)[:, None]).argmax(axis=1)
        counts[j] = np.bincount(labels[top == top[-1]], minlength=c)
    return time.perf_counter() - start, counts / counts.sum(axis=1, keepdims=True)


def main():
    parser = options(__doc__, gamma=0.5)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3, help="our replays; the fastest counts")
    parser.add_argument("--no-hinge", action="store_true")
    args = parser.parse_args()
    stream = stream_of(args)
    n, c = len(stream), len(stream.classes)
    with threadpool_limits(1):
        for work in (squares, abers):
            work(stream.take(min(n, 80)), args.gamma, args.C)  # compilation
        runs = [squares(stream, args.gamma, args.C) for _ in range(args.repeat)]
        ours, figures, residual = min(runs)
        machine_seconds, abers_seconds = (
            min(work(stream, args.gamma, args.C) for _ in range(args.repeat)) for work in (alone, abers)
        )
        sizes = np.unique(np.linspace(10, n, args.samples).astype(int))
        X, y = stream.X, stream.y
        refit = [min(refit_step(X[:m], y[:m], c, args.gamma, args.C)[0] for _ in range(2)) for m in sizes]
        packed = np.zeros(n * (n + 1) // 2)
        floor = [min(timed(packed[: m * (m + 1) // 2].sum) for _ in range(3)) for m in sizes]
        line = {
            "data": args.data, "n": n, "classes": c, "gamma": args.gamma, "C": args.C,
            "ours_seconds": round(ours, 3), "ours_all": [round(run[0], 3) for run in runs],
            "accuracy_lower_upper": [round(value, 3) for value in figures], "residual": residual,
            "refit_seconds": round(float(trapezoid(refit, sizes)), 1),
            "ratio_refit": round(float(trapezoid(refit, sizes)) / ours, 1),
            "machine_seconds": round(machine_seconds, 3), "abers_seconds": round(abers_seconds, 3),
            "abers_over_machine": round(abers_seconds / machine_seconds, 2),
            "floor_seconds": round(float(trapezoid(floor, sizes)), 3),
            "ours_over_floor": round(ours / float(trapezoid(floor, sizes)), 2),
        }  # fmt: skip
        if not args.no_hinge:
            hinge(stream.take(min(n, 80)), args.gamma, args.C)
            line["hinge_seconds"] = round(hinge(stream, args.gamma, args.C), 3)
            line["ratio_hinge"] = round(line["hinge_seconds"] / ours, 2)
    print(json.dumps(line))


def timed(work):
    """Return seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
