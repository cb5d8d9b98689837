"""What a step of predictive distributions costs: beside its machine, against refitting, and against other ways.

`python benchmarks/regression.py` prints one JSON line for each figure; `--quality` compares scores instead.
"""

from __future__ import annotations

import argparse
import json
from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import QuantileRegressor

import streams
import venn
from venn.distribution import interval_score
from venn.machines import KernelRidge, MultiscaleRBF

LEVELS = (0.05, 0.1, 0.2)


def seconds(run, times):
    """Return the median time of a call."""
    found = []
    for _ in range(times):
        start = perf_counter()
        run()
        found.append(perf_counter() - start)
    return float(np.median(found))


def step(n=1000, d=10, seed=0):
    """Time a question at n examples: the machine's answer alone, the distribution, and a ridge refitted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + rng.normal(size=n)
    model = venn.predictors.ConformalDistribution(KernelRidge(venn.RBF("auto"), 10.0))
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    objects = iter(rng.normal(size=(2000, d)))
    machine = seconds(lambda: model.machine.hypotheses(next(objects)), 100)
    whole = seconds(lambda: model.predict_one(next(objects)), 100)
    two = venn.predictors.ConformalIntervals(model.machine)
    both = seconds(lambda: two.predict_one(next(objects)), 100)

    def learned():
        model.learn_one(next(objects), 0.3)
        model.machine.unlearn_one(model.machine.n - 1)

    learn = seconds(learned, 50)

    def refit():  # what a loop without the factor does at every step, for one label of one object
        Z = np.vstack([X, next(objects)])
        squares = (Z**2).sum(axis=1)
        K = np.exp(-(squares[:, None] + squares - 2 * Z @ Z.T) / d)
        cho_solve(cho_factor(K + np.eye(n + 1) / 10.0), np.column_stack([np.append(y, 0.0), np.ones(n + 1)]))

    again = seconds(refit, 5)
    return {
        "n": n, "machine_us": machine * 1e6, "distribution_us": whole * 1e6, "intervals_us": both * 1e6,
        "learn_us": learn * 1e6, "beside_the_machine_us": (whole - machine) * 1e6, "refit_us": again * 1e6,
        "times_faster_than_refitting": again / whole,
    }  # fmt: skip


class Quantiles:
    """Linear quantile regression, refitted every 20 examples, each level on its own."""

    def __init__(self):
        self.X, self.y, self.models = [], [], {}

    def interval(self, x, level):
        """Return the ends, infinite before the first fit."""
        if not self.models:
            return -np.inf, np.inf
        return tuple(float(self.models[q].predict(x[None])[0]) for q in (level / 2, 1 - level / 2))

    def learn_one(self, x, y):
        """Learn it."""
        self.X.append(x)
        self.y.append(y)
        if len(self.y) % 20 == 0 and len(self.y) >= 40:
            for level in LEVELS:
                for q in (level / 2, 1 - level / 2):
                    self.models[q] = QuantileRegressor(quantile=q, alpha=0.0).fit(self.X, self.y)


def sets():
    """Yield name and stream of numbers."""
    yield streams.load("diabetes", shuffle=0)
    yield streams.load("linnerud", shuffle=0)
    yield streams.waves(500, seed=1)


def quality(stream):
    """Yield the scores of each way on one stream, over the steps after the first 40, or 10 of a short one."""
    start = 40 if len(stream) > 80 else 10
    ridge = lambda: KernelRidge(MultiscaleRBF(), 3.0)  # noqa: E731
    ways = {
        "ConformalDistribution": venn.predictors.ConformalDistribution(ridge()),
        "InductiveDistribution": venn.predictors.InductiveDistribution(ridge()),
        "GaussianProcess": venn.predictors.GaussianProcess(ridge()),
    }
    quantiles = Quantiles()
    scores = {name: {"crps": [], **{level: [] for level in LEVELS}} for name in (*ways, "quantile regression")}
    for n, (x, y) in enumerate(stream):
        for name, model in ways.items():
            prediction = model.predict_one(x)
            if n >= start:
                scores[name]["crps"].append(prediction.crps(y))
                for level in LEVELS:
                    scores[name][level].append(prediction.interval(level))
            model.learn_one(x, y)
        for level in LEVELS if n >= start else ():
            scores["quantile regression"][level].append(quantiles.interval(x, level))
        quantiles.learn_one(x, y)
    truth = np.array([y for _, y in stream])[start:]
    for name, found in scores.items():
        row = {"stream": stream.name, "n": len(truth), "predictor": name}
        row["crps"] = float(np.mean(found["crps"])) if found["crps"] else None
        for level in LEVELS:
            ends = np.array(found[level])
            finite = np.isfinite(ends).all(axis=1)
            row[f"misses_{level}"] = float(((truth < ends[:, 0]) | (truth > ends[:, 1])).mean())
            row[f"finite_{level}"] = float(finite.mean())
            row[f"width_{level}"] = float(np.diff(ends[finite]).mean()) if finite.any() else None
            kept = [interval_score(a, b, v, level) for (a, b), v, f in zip(ends, truth, finite, strict=True) if f]
            row[f"score_{level}"] = float(np.mean(kept)) if kept else None
        yield row


def main():
    """Print one JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quality", action="store_true", help="compare scores instead of times")
    parser.add_argument("--n", type=int, default=1000)
    chosen = parser.parse_args()
    if chosen.quality:
        for stream in sets():
            for row in quality(stream):
                print(json.dumps(row), flush=True)
    else:
        print(json.dumps(step(chosen.n)))


if __name__ == "__main__":
    main()
