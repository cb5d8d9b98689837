"""Do the hinge-loss machines keep their promise on every table: solved to their stated tolerance, or refused?

    python benchmarks/certificates.py --streams 20000 --processes 2

Streams of up to 150 examples: kernels, C, scales of the features, offsets, lattices, duplicates, weights, and labels
from noise to a rule without any. Every few steps, and at the end, the violation of the optimality conditions is
computed only from the objects, labels, weights and the machine's coefficients and scores: kernel and sums in
long double, equal objects as one. A stream ends at the first refused step; then the machine must be unchanged, to the
last bit of its scores.

Prints one JSON line: streams, steps, the worst violation in units of the stated tolerance, how streams ended, and every
violation above the tolerance with what is needed to reproduce it.
"""

import collections
import json
import multiprocessing
import sys
import time

import numpy as np
from workload import command, command_options

import venn

OBJECTS = ("normal", "lattice", "binary", "line", "repeats", "one-hot")
SCALES = ("plain", "flat", "wide", "offset", "constant", "mixed")
LABELS = ("noise", "rule", "noisy rule", "late")


def table(objects, scales, n, rng):
    """Return (n, d) objects of one kind, with scales of another kind for their features."""
    d = int(rng.integers(1, 5))
    if objects == "normal":
        X = rng.normal(size=(n, d))
    elif objects == "lattice":
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    elif objects == "binary":
        X = rng.integers(0, 2, size=(n, d + 4)).astype(float)
    elif objects == "line":
        X = rng.normal(size=(n, 1)) * rng.normal(size=d) + rng.normal(size=d)
    elif objects == "repeats":
        X = rng.normal(size=(max(1, n // 3), d))[rng.integers(0, max(1, n // 3), n)]
    else:
        X = np.concatenate([np.eye(3)[rng.integers(0, 3, n)] for _ in range(d + 1)], axis=1)
    if scales == "flat":
        X = X * 10.0 ** rng.uniform(-6, -1)
    elif scales == "wide":
        X = X * 10.0 ** rng.uniform(-2, 6, X.shape[1])
    elif scales == "offset":
        X = X + 10.0 ** rng.uniform(0, 9)
    elif scales == "constant":
        X = np.column_stack([X, np.full(n, 10.0 ** rng.uniform(0, 9))])
    elif scales == "mixed":
        X = X * 10.0 ** rng.uniform(-3, 3, X.shape[1]) + 10.0 ** rng.uniform(-3, 6, X.shape[1])
    return X


def labels(kind, X, c, n, rng):
    """Return (n,) class codes."""
    noise = rng.integers(0, c, n)
    if kind == "noise":
        return noise
    if kind == "late":
        return np.where(np.arange(n) < n // 2, 0, noise)
    order = X @ rng.normal(size=X.shape[1])
    rule = np.searchsorted(np.quantile(order, np.arange(1, c) / c), order)
    return np.where(rng.random(n) < 0.2, noise, rule) if kind == "noisy rule" else rule


def exact_kernel(kernel, X):
    """Return the kernel matrix in long double, except for the part that the bias absorbs."""
    X = X.astype(np.longdouble)
    if isinstance(kernel, venn.machines.Polynomial):
        return (np.longdouble(kernel.gamma) * (X @ X.T) + np.longdouble(kernel.coef0)) ** kernel.degree
    squares = np.zeros((len(X), len(X)), np.longdouble)
    for column in X.T:
        squares += (column[:, None] - column) ** 2
    return -squares / 2 if isinstance(kernel, venn.Linear) else np.expm1(-np.longdouble(kernel.gamma) * squares)


def max_of(*parts):
    """Return the largest of several arrays at each place."""
    return np.maximum.reduce([np.broadcast_to(part, parts[0].shape) for part in parts])


def violation(machine, K, X, where, y, weights):
    """Return the worst violation of the optimality conditions by the machine's coefficients and scores.

    `K` is the exact kernel of distinct objects, `where` the position of each example's object among them.
    """
    there, first, where = np.unique(where, return_index=True, return_inverse=True)
    K = K[np.ix_(there, there)]
    duals, worst = machine.duals, 0.0
    scores = np.array([machine.scores(x) for x in X[first]])
    C = machine.C
    for k in range(duals.shape[1]):
        own = y == k
        if own.all() or not own.any():
            continue
        beta, positive, negative = (np.zeros(len(there), np.longdouble) for _ in range(3))
        np.add.at(beta, where, duals[:, k])
        np.add.at(positive, where, np.where(own, weights, 0.0))
        np.add.at(negative, where, np.where(own, 0.0, weights))
        fresh = K @ beta
        f = fresh + np.median(scores[:, k] - fresh)
        ends = -C * negative, C * (positive - negative), C * positive
        # At an optimum the points (coefficient, score) lie on a falling staircase; this is their distance from it.
        steps = [
            max_of((low - beta) / C, (beta - high) / C, abs(f - level))
            for low, high, level in ((*ends[:2], 1), (*ends[1:], -1))
        ]
        steps += [
            max_of(abs(beta - end) / C, least - f, f - most)
            for end, least, most in zip(ends, (1, -1, -np.inf), (np.inf, 1, -1), strict=True)
        ]
        off = np.min(steps, axis=0).max()
        worst = max(worst, *map(float, (off, np.abs(f - scores[:, k]).max(), abs(beta.sum()) / C)))
    return worst


def standing(machine, X):
    """Return the scores of objects by the machine in its present state."""
    return [machine.scores(x) for x in X]


def trial(seed):
    """Return (settings, steps, worst violation over tolerance, why it ended)."""
    rng = np.random.default_rng(seed)
    objects, scales, kind = rng.choice(OBJECTS), rng.choice(SCALES), rng.choice(LABELS)
    n, c = int(rng.integers(5, 151)), int(rng.integers(2, 4))
    X = table(objects, scales, n, rng)
    y = labels(kind, X, c, n, rng)
    gamma = 10.0 ** rng.uniform(-4, 1)
    kernels = (
        venn.RBF(gamma), venn.RBF(gamma / max(1e-12, float(X.var()))), venn.Linear(), venn.machines.Polynomial(2),
    )  # fmt: skip
    kernel = kernels[int(rng.choice(4, p=[0.4, 0.25, 0.25, 0.1]))]
    C = float(10.0 ** rng.integers(-2, 4))
    machine = venn.OneVsAllSVM(kernel, C, list(range(c)))
    what = {
        "seed": seed, "objects": str(objects), "scales": str(scales), "labels": str(kind), "n": n, "classes": c,
        "kernel": type(kernel).__name__, "C": C,
    }  # fmt: skip
    weighted = rng.random() < 0.2
    distinct, where = np.unique(X, axis=0, return_inverse=True)
    K, where = exact_kernel(kernel, distinct), where.ravel()
    kept, weights, worst, steps = [], np.zeros(n), 0.0, 0
    check = int(rng.integers(1, 8))  # the certificate is expensive: every so many steps, and at the end
    for i in range(n):
        weight = float(2.0 ** rng.integers(-3, 4)) if weighted else 1.0
        before = standing(machine, X[kept[-3:]])
        try:
            machine.learn_one(X[i], int(y[i]), weight)
        except (venn.machines.NotConverged, ValueError) as error:
            n_kept = machine.n
            same = n_kept != len(kept) or all(
                np.array_equal(a, b) for a, b in zip(before, standing(machine, X[kept[-3:]]), strict=True)
            )
            end = type(error).__name__ + ("" if same else ": not as before")
            return {**what, "error": str(error)[:200], "at": i}, steps, worst, end
        kept.append(i)
        weights[i] = weight
        steps += 1
        if steps % check == 0 or i == n - 1:
            effective = weights[kept]
            worst = max(worst, violation(machine, K, X[kept], where[kept], y[kept], effective) / machine.tolerance)
    return what, steps, worst, "done"


@command(threads=None)
def main():
    args = command_options(__doc__, streams=20_000, first=0, processes=2)
    start, worst, steps = time.time(), 0.0, 0
    ends, above = collections.Counter(), []
    with multiprocessing.Pool(args.processes) as pool:
        for what, done, reached, end in pool.imap_unordered(
            trial, range(args.first, args.first + args.streams), chunksize=20
        ):
            steps += done
            worst = max(worst, reached)
            ends[end] += 1
            if reached > 1.0 or "not as before" in end:
                above.append({**what, "worst": reached, "end": end})
                print(json.dumps(above[-1]), file=sys.stderr, flush=True)
    line = {
        "benchmark": "certificates", "streams": args.streams, "steps": steps, "worst_over_tolerance": round(worst, 3),
        "ends": dict(ends), "above": above[:50], "seconds": round(time.time() - start),
    }  # fmt: skip
    return line
