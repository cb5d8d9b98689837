"""Intervals for labels of many shapes: skewed, tied, heavy in the tails, and with one wild number among them.

    python benchmarks/label_shapes.py                           # nine kinds of labels, a quarter of an hour
    python benchmarks/label_shapes.py --kinds counts --seeds 3  # those whose names hold one of these words
    python benchmarks/label_shapes.py --ways forecaster         # without what is compared

900 rows of five columns come in turn. Each label is predicted before it is learned, and counts from row 200 on; a wild
label itself does not. Prints JSON for each kind, seed and way: the mean interval score at .1, the mean of that of the
forecast, misses, the median width, processor milliseconds a step. At the end a line for each kind with geometric means
over the seeds: the score over that of the rival, and, of kinds with a wild label, over that of the same labels without.

The rival is conformalized quantile regression: scikit-learn's gradient boosting of two quantiles on seven tenths of all
rows so far, conformal on the others, fitted anew every 150 rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from time import process_time

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from threadpoolctl import threadpool_limits

import venn
from venn.distribution import interval_score

N, D, START, EVERY, LEVEL, WILD = 900, 5, 200, 150, 0.1, 1e6
CLEAN = "gaussian"


def kinds():
    """Return what makes the labels of each kind, of (n, d) objects, what they follow from, and a generator."""

    def wild_at(row):
        def made(X, f, rng):
            y = f + rng.normal(size=len(f))
            y[row] = WILD
            return y

        return made

    def zeros(X, f, rng):
        rest = np.exp(f / 2 + 0.5 * rng.normal(size=len(f)))
        return np.where(rng.uniform(size=len(f)) < 0.6, 0.0, rest)

    return {
        CLEAN: lambda X, f, rng: f + rng.normal(size=len(f)),
        "t with 1.5 degrees": lambda X, f, rng: f + rng.standard_t(1.5, size=len(f)),
        "growing noise": lambda X, f, rng: f + np.exp(X[:, 0]) * rng.normal(size=len(f)),
        "counts": lambda X, f, rng: rng.poisson(np.exp(f / 2)).astype(float),
        "log-normal": lambda X, f, rng: np.exp(f + 0.7 * rng.normal(size=len(f))),
        "60 % zeros": zeros,
        "0 and 1": lambda X, f, rng: (rng.uniform(size=len(f)) < 1 / (1 + np.exp(-2 * f))).astype(float),
        "wild at 300": wild_at(300),
        "wild at 10": wild_at(10),
    }


def stream(make, seed):
    """Return (n, d) objects and (n,) labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    return X, make(X, 1.5 * np.sin(X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.5 * X[:, 3], rng)


def forecaster(X, y):
    """Yield the ends of the intervals, and of those of the forecast."""
    model = venn.Forecaster(float)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= START:
            outlook = model.predict_one(x)
            yield (*outlook.interval(LEVEL), *outlook["forecast"].interval(LEVEL))
        model.learn_one(x, label)


def cqr(X, y):
    """Yield the ends of conformalized quantile regression, fitted anew for each block of rows."""
    for first in range(EVERY, N, EVERY):
        m = int(0.7 * first)
        ends = [
            GradientBoostingRegressor(loss="quantile", alpha=q, random_state=0).fit(X[:m], y[:m])
            for q in (LEVEL / 2, 1 - LEVEL / 2)
        ]
        low, high = (one.predict(X[m:first]) for one in ends)
        off = np.sort(np.maximum(low - y[m:first], y[m:first] - high))
        more = off[min(int(np.ceil((1 - LEVEL) * (len(off) + 1))), len(off)) - 1]
        rows = X[max(first, START) : first + EVERY]
        yield from zip(ends[0].predict(rows) - more, ends[1].predict(rows) + more, strict=True) if len(rows) else ()


def scored(way, X, y):
    """Return the scores of a way on one stream."""
    began = process_time()
    ends = np.array(list(way(X, y)))
    ms = (process_time() - began) / N * 1e3
    labels = y[START:]
    counted = labels < WILD
    ends, labels = ends[counted], labels[counted]
    lower, upper = ends[:, 0], ends[:, 1]
    each = [
        [
            interval_score(*map(float, pair), label, LEVEL)
            for pair, label in zip(ends[:, k : k + 2], labels, strict=True)
        ]
        for k in range(0, ends.shape[1], 2)
    ]
    return {
        "score": float(np.mean(each[0])), "forecast": float(np.mean(each[-1])),
        "missed": float(((labels < lower) | (labels > upper)).mean()), "width": float(np.median(upper - lower)),
        "ms": ms,
    }  # fmt: skip


def mean(values):
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def main():
    """Print a row for each kind, seed and way, and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["forecaster", "CQR"])
    args = parser.parse_args()
    ways = {name: way for name, way in (("forecaster", forecaster), ("CQR", cqr)) if name in args.ways}
    found = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, make in kinds().items():
            if args.kinds and not any(word in kind for word in args.kinds):
                continue
            for seed in range(args.seeds):
                for name, way in ways.items():
                    found[kind, name, seed] = row = scored(way, *stream(make, seed))
                    print(json.dumps({"kind": kind, "seed": seed, "way": name} | row), flush=True)
    for kind in dict.fromkeys(kind for kind, _, _ in found):
        seeds, told = range(args.seeds), {}
        ours = [found[kind, "forecaster", seed]["score"] for seed in seeds if "forecaster" in ways]
        if ours and "CQR" in ways:
            told["over_CQR"] = mean(
                [a / found[kind, "CQR", seed]["score"] for a, seed in zip(ours, seeds, strict=True)]
            )
        if ours and kind.startswith("wild") and (CLEAN, "forecaster", 0) in found:
            clean = [found[CLEAN, "forecaster", seed]["score"] for seed in seeds]
            told["over_the_same_without"] = mean([a / b for a, b in zip(ours, clean, strict=True)])
        print(json.dumps({"kind": kind} | told), flush=True)


if __name__ == "__main__":
    main()
