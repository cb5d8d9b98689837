"""How much faster is the bootstrap of linear support vector machines than a loop over scikit-learn's?

    python benchmarks/bootstrap.py --data adult wisconsin colon

Ours is `BootstrapSVC` over the 11 values of C of Benitez-Pena et al. (2020) on one fold of their size, 9/10 of the
examples, standardised, nominal features as dummies: `--resamples` of them are fitted and scored on the examples left
out, and scaled to 500; the fits to all examples, from which they start, count once. Against it, one resample for each
of `--samples` values of C, from the smallest to the largest, interpolated over the grid and scaled likewise:

    svc        SVC(kernel="linear"), with the multiplicities as weights; where one fit of C = 1 / 64 takes longer than
               `--patience` seconds it is the only one, so that its time is a lower bound
    linear     LinearSVC(loss="hinge"), the same, which stops at 1000 iterations, with or without a solution

`gap_*` is how far the objective is above the best known one, relative to it, on average over these fits. `floor` is
one pass over the examples of a resample for each fit. Times are of the processor, one thread. Prints one JSON line for
each data set.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import streams
from venn._compiled.linear_svm import project
from venn.batch.bootstrap import CS, BootstrapSVC
from venn.batch.linear_svm import Design, LinearSVM

NAMES = {"wisconsin": "wdbc"}
RESAMPLES = 500


def seconds(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def examples(name):
    """Return one training fold."""
    stream = streams.load(NAMES.get(name, name), shuffle=0)
    n = len(stream) * 9 // 10
    X, y = np.array(stream.X[:n], float), np.asarray(stream.y)[:n]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == np.unique(y)[1], 1.0, -1.0)


def objective(w, b, X, y, weights, C):
    return w @ w / 2 + C * weights @ np.maximum(0, 1 - y * (X @ w + b))


def peers(X, y, weights, Cs, make, patience):
    """Return seconds of a fit by C, and mean excess of the objective; with fewer C if a fit takes too long."""
    took, gaps, some = [], [], weights > 0
    for C in Cs:
        spent, model = seconds(lambda C=C: make(C).fit(X[some], y[some], weights[some]))
        best = LinearSVM(C, 1e-9).fit(X, y, weights).objective
        took.append(spent)
        gaps.append(objective(model.coef_[0], model.intercept_[0], X, y, weights, C) / best - 1)
        if spent > patience:
            break
    return took, float(np.mean(gaps))


def whole_grid(took, Cs):
    """Return seconds of one resample over the grid from those of some values of C."""
    at = np.log2(Cs[: len(took)])
    return float(np.interp(np.log2(CS), at, took).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["adult", "wisconsin", "colon"])
    parser.add_argument("--resamples", type=int, default=6)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--patience", type=float, default=20.0)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*failed to converge.*")
    with threadpool_limits(1):
        X, y = examples("wisconsin")
        BootstrapSVC(resamples=1, random_state=0).fit(X, y)  # compilation
        for name in args.data:
            X, y = examples(name)
            alone, _ = seconds(lambda X=X, y=y: BootstrapSVC(resamples=1, random_state=0).fit(X, y))
            many, _ = seconds(lambda X=X, y=y: BootstrapSVC(resamples=1 + args.resamples, random_state=0).fit(X, y))
            resample = (many - alone) / args.resamples
            ours = alone + (RESAMPLES - 1) * resample
            weights = np.bincount(np.random.default_rng(0).integers(len(y), size=len(y)), minlength=len(y)).astype(
                float
            )
            design, some, out = Design(X), np.flatnonzero(weights), np.empty(len(y))
            one = np.ones(design.size)
            passes = [seconds(lambda d=design, s=some, v=one, o=out: project(d.rows, s, v, o))[0] for _ in range(20)]
            Cs = np.array(CS)[np.linspace(0, len(CS) - 1, args.samples).astype(int)]
            line = {
                "data": name, "n": len(y), "d": X.shape[1], "values_of_C": len(CS), "resamples": RESAMPLES,
                "ours_seconds": round(ours, 1), "measured_resamples": args.resamples,
                "ours_ms_a_fit": round(1e3 * resample / len(CS), 3),
                "floor_seconds": round(float(np.median(passes)) * len(CS) * RESAMPLES, 1),
            }  # fmt: skip
            for peer, make in (
                ("linear", lambda C: LinearSVC(C=C, loss="hinge", dual=True, random_state=0)),
                ("svc", lambda C: SVC(C=C, kernel="linear")),
            ):
                took, gap = peers(X, y, weights, Cs, make, args.patience)
                naive = RESAMPLES * whole_grid(took, Cs)
                line |= {
                    f"{peer}_seconds": round(naive, 1), f"{peer}_fits": len(took), f"gap_{peer}": float(f"{gap:.2g}"),
                    f"ratio_{peer}": round(naive / ours, 1),
                }  # fmt: skip
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
