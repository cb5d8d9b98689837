"""How much faster is changing the weights of the classes by path following than solving anew?

    python benchmarks/reweigh.py --data car --gamma 0.5 --C 10 --factor 2

A one-against-all machine learns the whole stream; then the weight of one class in turn goes up by `--factor`, and back
to 1. Timed is each change, compilation excluded. Against it

    relearn  a fresh machine with the new weights learns the stream again;
    batch    the batch solve that stands in for a failed path, from the old coefficients, machine by machine;
    refit    what a user would write: scikit-learn's SVC fitted to the signs of each machine, weights by example, for
             machines of several classes have several; its tolerance is 1e-3, ours 1e-8.

Times are of the processor, one thread, medians over the changes; `relearn` is timed once. Prints one JSON line.
"""

from __future__ import annotations

import json
import time

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from workload import options, stream_of

import venn
from venn.machines import hinge, masses
from venn.machines.batch import batch_solve
from venn.machines.exchange import Problem


def learned(kernel, C, weights, stream):
    """Return a machine that has learned the stream."""
    machine = venn.OneVsAllSVM(kernel, C, stream.classes, weights)
    for x, y in stream:
        machine.learn_one(x, y)
    return machine


def timed(action):
    """Return (seconds, result)."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def batch(machine, old, weights, stream):
    """Return seconds of batch solves of all machines for new weights, from the coefficients for the old ones."""
    count, K, C = machine._count, machine._objects.kernel, machine.C
    objects, codes = machine._history[:, : machine.n]
    both = np.zeros((2, len(weights), count))
    for into, of in zip(both, (old, weights), strict=True):
        np.add.at(into, (codes, objects), of[codes])
    seconds = 0.0
    for k in range(len(weights)):
        before, after = (np.array([mass[k], mass.sum(axis=0) - mass[k]]) for mass in both)
        problem = Problem(K[:count], after[0], after.sum(axis=0), C, machine._scale, machine.tolerance)
        start = masses.feasible(C, machine._solved.beta[k, :count], before, after)
        seconds += timed(lambda problem=problem, start=start: next(batch_solve(problem, start)))[0]
    return seconds


def refit(X, y, weights, gamma, C):
    """Return seconds of fitting every machine with scikit-learn."""
    seconds = 0.0
    for k in range(len(weights)):
        model = SVC(C=C, gamma=gamma, cache_size=1000)
        seconds += timed(lambda model=model, k=k: model.fit(X, y == k, sample_weight=weights[y]))[0]
    return seconds


def main():
    parser = options(__doc__, gamma=0.5)
    parser.add_argument("--factor", type=float, default=2.0)
    args = parser.parse_args()
    stream = stream_of(args)
    n, c, kernel = len(stream), len(stream.classes), venn.RBF(args.gamma)
    paths = []
    follow = hinge.move_masses

    def counted(*arguments):
        moved = follow(*arguments)
        paths.extend(moved.events)
        return moved

    with threadpool_limits(1):
        small = stream.take(min(n, 80))
        learned(kernel, args.C, None, small).reweigh(np.arange(1.0, c + 1))  # compilation
        hinge.move_masses = counted
        machine = learned(kernel, args.C, None, stream)
        X, y = np.asarray(stream.X, float), np.asarray(stream.y)
        ours, solves, fits, residual = [], [], [], 0.0
        old = np.ones(c)
        for k in range(c):
            for weights in (np.where(np.arange(c) == k, args.factor, 1.0), np.ones(c)):
                solves.append(batch(machine, old, weights, stream))
                ours.append(timed(lambda weights=weights: machine.reweigh(weights))[0])
                fits.append(refit(X, y, weights, args.gamma, args.C))
                residual, old = max(residual, machine.residual), weights
        relearn, fresh = timed(lambda: learned(kernel, args.C, weights, stream))
    ours_s, batch_s, refit_s = (float(np.median(values)) for values in (ours, solves, fits))
    line = {
        "data": args.data, "n": n, "classes": c, "gamma": args.gamma, "C": args.C, "factor": args.factor,
        "reweigh_seconds": round(ours_s, 3), "residual": residual,
        "events_per_path": round(float(np.mean([e for e in paths if e >= 0])), 1),
        "failed_paths": sum(e < 0 for e in paths), "paths": len(paths),
        "differs_from_relearned": float(abs(machine.bag.scores - fresh.bag.scores).max()),
        "relearn_seconds": round(relearn, 2), "ratio_relearn": round(relearn / ours_s, 1),
        "batch_seconds": round(batch_s, 3), "ratio_batch": round(batch_s / ours_s, 1),
        "refit_seconds": round(refit_s, 3), "ratio_refit": round(refit_s / ours_s, 2),
    }  # fmt: skip
    print(json.dumps(line))


if __name__ == "__main__":
    main()
