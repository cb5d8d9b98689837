"""How much faster are pairs of classes scored together than each by scikit-learn's SVC?

    STREAMS_DATA=folder python benchmarks/pairs.py

Forest Cover Type, the published protocol: 1620 training examples of each of seven classes, ten columns standardised;
21 pairs with gamma and C of their own, fixed here (each of the values in turn). `PairwiseSVC` against 21 `SVC`s of
the same parameters and `decision_function` of each, on rows of the test part drawn at random. Both are fitted to a
tolerance of 1e-7, so that decision values can be compared. Then the parameters of one pair chosen from a grid: shared
distances and kernels against a loop over `SVC(kernel="rbf")`.
Processor time of one thread, the fastest of three, compilation excluded. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import streams
from venn.batch.pairwise import PairwiseSVC, machines, pair_signs, squared_distances, votes_and_margins

TRAIN, TEST = 11_340, 15_120  # the file's rows that train, and where those that are tested begin
GAMMAS, CS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2), (1.0, 10.0, 100.0)
TOL = 1e-7


def fastest(compute, rounds=3):
    """Return what is computed, and the least seconds of the processor."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        found = compute()
        seconds.append(time.process_time() - start)
    return found, min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=4000, help="rows scored")
    args = parser.parse_args()
    stream = streams.load("covtype", scale=False)
    X, y = stream.X.copy(), stream.y
    mean, deviation = X[:TRAIN, :10].mean(axis=0), X[:TRAIN, :10].std(axis=0)
    X[:, :10] = (X[:, :10] - mean) / deviation
    rows = np.random.default_rng(0).choice(np.arange(TEST, len(y)), args.sample, replace=False)
    new = X[rows]
    with threadpool_limits(1):
        theirs, pairs = [], []
        for i, (a, b) in enumerate(combinations(range(7), 2)):
            own = np.flatnonzero((y[:TRAIN] == a) | (y[:TRAIN] == b))
            gamma, C = GAMMAS[i % len(GAMMAS)], CS[i % len(CS)]
            signs = np.where(y[own] == a, 1, -1)
            (one,) = machines((X[own], signs, np.ones(len(own))), None, (C,), (gamma,), TOL)
            pairs.append(one._replace(support=own[one.support]))
            theirs.append(SVC(gamma=gamma, C=C, tol=TOL, cache_size=500).fit(X[own], signs))
        model = PairwiseSVC()
        model.n_features_in_, model.classes_ = X.shape[1], np.arange(7)
        model._take(X[:TRAIN], pair_signs(7), pairs)
        model.pair_decisions(new[:9])  # compilation
        ours, spent = fastest(lambda: model.pair_decisions(new))
        each, slow = fastest(lambda: np.column_stack([svc.decision_function(new) for svc in theirs]))
        votes, other = (votes_and_margins(pair_signs(7), values.T).argmax(axis=0) for values in (ours, each))
        # The same coefficients by definition: what blocks, inner products and our exponentials add of error.
        exact = np.column_stack(
            [np.exp(-p.gamma * squared_distances(new, X[p.support])) @ p.coefficients + p.bias for p in pairs]
        )
        own = np.flatnonzero(y[:TRAIN] <= 1)
        signs = np.where(y[own] == 0, 1, -1)
        held = TRAIN + np.flatnonzero(y[TRAIN:TEST] <= 1)
        test = X[held], np.where(y[held] == 0, 1, -1), (1.0, 1.0)
        grid, shared = fastest(lambda: list(machines((X[own], signs, np.ones(len(own))), test, CS, GAMMAS, 1e-3)), 1)

        def loop():
            errors = []
            for gamma in GAMMAS:
                for C in CS:
                    svc = SVC(gamma=gamma, C=C, cache_size=500).fit(X[own], signs)
                    errors.append(float((svc.predict(test[0]) != test[1]).mean()))
            return errors

        errors, alone = fastest(loop, 1)
    line = {
        "benchmark": "pairs",
        "rows": args.sample,
        "support_vectors_of_any": len(model._support),
        "support_vectors_of_all": int(model.n_support_.sum()),
        "us_a_row": round(1e6 * spent / args.sample, 1),
        "us_a_row_svc": round(1e6 * slow / args.sample, 1),
        "ratio_svc": round(slow / spent, 1),
        "largest_difference_svc": float(f"{np.abs(ours - each).max():.2g}"),
        "largest_difference_definition": float(f"{np.abs(ours - exact).max():.2g}"),
        "labels_differ": int((votes != other).sum()),
        "grid_s": round(shared, 2),
        "grid_s_svc": round(alone, 2),
        "ratio_grid": round(alone / shared, 1),
        "errors_differ_by": float(f"{np.abs(np.array(errors) - [one.error for one in grid]).max():.2g}"),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
