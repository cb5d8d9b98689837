"""How fast is the hinge-loss machine on tables of nominal features, where everything ties?

    python benchmarks/lattice.py

Learning only: 900 rows of `streams.categorical`, eight nominal features as 27 columns of 0 and 1, four classes. For
each gamma and C: processor seconds of the whole, the worst step over the median one (steps in which buffers grow
apart), batch solves, branches solved by block pivoting, and the largest margin. `against` are as many steps on
Gaussians of 10 features with a margin at least as large, by a sharper kernel. Compilation is excluded, and of BLAS
one thread is used. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.machines import hinge
from venn.machines import other_masses as masses

GAMMAS, BOUNDS = (0.0044, 0.037, 0.1, 0.5), (1.0, 10.0, 100.0)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *given):
        self.calls += 1
        return self.function(*given)


def replay(X, y, gamma, C, classes):
    """Return (seconds of each step, steps whose buffers grew, machine, batch solves, block pivots)."""
    batch, pivots = Counted(masses.batch_solve), Counted(hinge.exchanged)
    masses.batch_solve, hinge.exchanged = batch, pivots
    machine = venn.OneVsAllSVM(venn.RBF(gamma), C, classes)
    seconds, grew = np.zeros(len(y)), np.zeros(len(y), bool)
    try:
        for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            room = machine._buffers.room, machine._buffers.margin_room
            start = time.process_time()
            machine.learn_one(x, label)
            seconds[i] = time.process_time() - start
            grew[i] = room != (machine._buffers.room, machine._buffers.margin_room)
    finally:
        masses.batch_solve, hinge.exchanged = batch.function, pivots.function
    return seconds, grew, machine, batch.calls, pivots.calls


def largest_margin(machine):
    """Return the number of members of the largest margin."""
    m = machine.duals
    return int(((np.abs(m) > 1e-9 * machine.C) & (np.abs(m) < machine.C * (1 - 1e-9))).sum(axis=0).max())


def gaussian_seconds(n, margin):
    """Return (seconds, margin) of n steps on Gaussians with at least this margin."""
    stream = streams.gaussians(n, classes=4, features=10, spread=0.7, seed=1)
    for gamma in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        seconds, _, machine, _, _ = replay(stream.X, stream.y, gamma, 10.0, stream.classes)
        if largest_margin(machine) >= margin:
            break
    return float(seconds.sum()), largest_margin(machine)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=900)
    args = parser.parse_args()
    stream = streams.categorical(args.rows)
    with threadpool_limits(1):
        for gamma, C in ((0.037, 10.0), (0.0044, 1.0), (0.0044, 100.0)):  # compilation: between them, of every way
            replay(stream.X, stream.y, gamma, C, stream.classes)
        cases, worst_ratio = [], 0.0
        for C in BOUNDS:
            for gamma in GAMMAS:
                seconds, grew, machine, batch, pivots = replay(stream.X, stream.y, gamma, C, stream.classes)
                margin = largest_margin(machine)
                against, their_margin = gaussian_seconds(args.rows, margin)
                spread = seconds[~grew].max() / np.median(seconds)
                ratio = seconds.sum() / against
                worst_ratio = max(worst_ratio, ratio)
                case = {
                    "gamma": gamma, "C": C, "seconds": round(float(seconds.sum()), 2), "against": round(against, 2),
                    "ratio": round(float(ratio), 2), "worst_over_median": round(float(spread), 1),
                    "batch_solves": batch, "block_pivots": pivots, "margin": margin, "their_margin": their_margin,
                    "residual": float(f"{machine.residual:.1e}"),
                }  # fmt: skip
                cases.append(case)
    line = {
        "benchmark": "lattice", "rows": args.rows, "worst_ratio": round(float(worst_ratio), 2),
        "worst_over_median": max(case["worst_over_median"] for case in cases),
        "batch_solves": sum(case["batch_solves"] for case in cases), "cases": cases,
    }  # fmt: skip
    print(json.dumps(line))


if __name__ == "__main__":
    main()
