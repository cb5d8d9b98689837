"""How sharp the forecaster for numbers is, beside what a practitioner would fit anew again and again.

    python benchmarks/number_sharpness.py             # public sets, the first 1500 rows of each, some minutes
    python benchmarks/number_sharpness.py waves pima  # those whose names hold one of these words

Prints a row for each set and way, JSON beside it, and geometric means over the sets: the interval score at .1 and the
CRPS from example 100 on, relative to what stood on numbers before (kernel ridge with C = 10). Smaller is better.
Ways beside the forecaster, fitted at 50, 70, 98, ... examples (a factor of 1.4) and asked until the next fit:

- forest: 300 trees on seven tenths, a second forest fitted to the out-of-bag absolute residuals as the spread,
  conformal on the other three tenths and on all that come later;
- CQR: conformalised quantile regression on histogram trees, the same shares, for the interval only;
- GP: scikit-learn's Gaussian process with noise, widths for all columns by marginal likelihood, on all examples; its
  normal distribution as it is, with no theorem.
"""

from __future__ import annotations

import json
import sys
import warnings
from time import process_time

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import streams
import venn
from venn.distribution import NormalDistribution, interval_score
from venn.machines import KernelRidge, MultiscaleLaplacian

MOST, START, FIRST, GROWTH, LEVEL = 1500, 100, 50, 1.4, 0.1
PARTS = "forecast_score", "distribution_crps"  # of a forecaster, besides
RIVALS = ("forest", "CQR", "GP")
#: Columns of public sets that are predicted from the others; None: the class, where that is a number.
COLUMNS = (
    ("wine_red", None), ("wine_red", "alcohol"), ("liver", "drinks"), ("pima", "plas"), ("pima", "mass"),
    ("heart", "thalach"), ("elec2", "nswdemand"), ("covtype", "Elevation"), ("german", "credit_amount"),
    ("banknote", "variance"), ("adult", "age"),
)  # fmt: skip


def sets(words=(), most=MOST):
    """Yield names, objects and labels of the sets whose names hold one of these words; all without any."""

    def wanted(name):
        return not words or any(word in name for word in words)

    if wanted("diabetes"):
        stream = streams.load("diabetes", shuffle=0, scale=False)
        yield "diabetes", np.array(stream.X), np.array(stream.y)
    for name, label in COLUMNS:
        full = name if label is None else f"{name}, {label}"
        if not wanted(full):
            continue
        stream = streams.load(name, shuffle=0, scale=False)
        stream = stream.take(min(most, len(stream)))
        X = np.array(stream.X, np.float64)
        if label is None:
            yield full, X, np.array([float(stream.classes[code]) for code in stream.y])
        else:
            place = list(stream.features).index(label)
            yield full, np.delete(X, place, axis=1), X[:, place]
    if wanted("waves"):
        waves = streams.waves(most, seed=1)
        yield "waves", np.array([x for x, _ in waves]), np.array([y for _, y in waves])
    if wanted("friedman1"):
        X, mean = make_friedman1(most, noise=0.0, random_state=1)
        yield "friedman1", X, mean + np.random.default_rng(1).normal(size=most)


class Refitted:
    """What is fitted anew to all examples at growing numbers of them, and otherwise only learns."""

    def __init__(self, fit):
        self.fit, self.X, self.y, self.model, self.next = fit, [], [], None, FIRST

    def predict_one(self, x):
        """Return what the model last fitted says."""
        return self.model.predict_one(x)

    def learn_one(self, x, y):
        """Learn one example; fit where it is time."""
        self.X.append(x)
        self.y.append(y)
        if self.model is not None:
            self.model.learn_one(x, y)
        if len(self.y) == self.next:
            self.next = int(self.next * GROWTH)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model = self.fit(np.array(self.X), np.array(self.y))


def forest(X, y):
    """Return a forest with a spread, calibrated."""
    m = int(0.7 * len(y))
    woods = RandomForestRegressor(300, oob_score=True, random_state=0).fit(X[:m], y[:m])
    off = np.abs(y[:m] - woods.oob_prediction_) + 1e-6 * np.std(y)
    spread = RandomForestRegressor(300, min_samples_leaf=5, random_state=0).fit(X[:m], off)
    model = venn.predictors.InductiveDistribution(venn.machines.FrozenRegressor(woods, spread))
    model.learn_many(X[m:], y[m:])
    return model


class CQR:
    """Conformalised quantile regression at one level, by histogram trees."""

    def __init__(self, X, y):
        m = int(0.7 * len(y))
        self.ends = [
            HistGradientBoostingRegressor(
                loss="quantile", quantile=q, max_iter=100, min_samples_leaf=min(20, 1 + m // 10), random_state=0
            ).fit(X[:m], y[:m])
            for q in (LEVEL / 2, 1 - LEVEL / 2)
        ]
        self.off = []
        lower, upper = (one.predict(X[m:]) for one in self.ends)
        self.off = np.maximum(lower - y[m:], y[m:] - upper).tolist()

    def predict_one(self, x):
        """Return the ends of the interval."""
        k = int(np.ceil((1 - LEVEL) * (len(self.off) + 1)))
        more = np.sort(self.off)[k - 1] if k <= len(self.off) else np.inf
        lower, upper = (float(one.predict(x[None])[0]) for one in self.ends)
        return lower - more, upper + more

    def learn_one(self, x, y):
        """Calibrate on one more example."""
        lower, upper = (float(one.predict(x[None])[0]) for one in self.ends)
        self.off.append(max(lower - y, y - upper))


class Process:
    """A Gaussian process with widths, a noise and a height chosen by marginal likelihood."""

    def __init__(self, X, y):
        self.center, self.size = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], 3.0) if X.shape[1] <= 15 else 5.0) + WhiteKernel(0.5)
        self.process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        # Widths by the latest 400: cubic in their number, many times.
        self.process.fit(self._placed(X[-400:]), y[-400:])
        self.process.set_params(kernel=self.process.kernel_, optimizer=None)
        self.process.fit(self._placed(X), y)

    def _placed(self, X):
        return (X - self.center) / self.size

    def predict_one(self, x):
        """Return the normal distribution of the label."""
        mean, deviation = self.process.predict(self._placed(x[None]), return_std=True)
        return NormalDistribution(float(mean[0]), float(deviation[0]))

    def learn_one(self, x, y):
        """Wait for the next fit."""


def ways():
    """Return what is compared: the first is what the others are relative to."""
    ridge = KernelRidge(MultiscaleLaplacian(), 10.0, scale=venn.Scale(teach=True))
    return {
        "kernel ridge": venn.predictors.ConformalDistribution(ridge),
        "forecaster": venn.Forecaster(float),
        "forest": Refitted(forest),
        "CQR": Refitted(CQR),
        "GP": Refitted(Process),
    }


def scored(model, X, y):
    """Return the mean interval score, the mean CRPS or None, the share of misses, and processor ms for a step.

    Of a forecaster also the interval score of its forecast, and the CRPS of its distribution.
    """
    lost, crps, missed, others, began = [], [], 0, [], process_time()
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= START:
            said = model.predict_one(x)
            lower, upper = said if isinstance(said, tuple) else said.interval(LEVEL)
            lost.append(interval_score(lower, upper, label, LEVEL))
            missed += not lower <= label <= upper
            if not isinstance(said, tuple):
                crps.append(said.crps(label))
            if isinstance(said, venn.online.NumberOutlook):
                forecast, distribution = said["forecast"], said["distribution"]
                others.append((interval_score(*forecast.interval(LEVEL), label, LEVEL), distribution.crps(label)))
        model.learn_one(x, label)
    each = (process_time() - began) / len(y) * 1e3
    return {
        "score": float(np.mean(lost)), "crps": float(np.mean(crps)) if crps else None, "missed": missed / len(lost),
        "ms": each,
    } | (dict(zip(PARTS, np.mean(others, axis=0).tolist(), strict=True)) if others else {})  # fmt: skip


def mean(values):
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def main(words):
    """Print a row for each set and way, and the means."""
    rows = []
    for name, X, y in sets(words):
        base = None
        for way, model in ways().items():
            row = {"set": name, "n": len(y), "d": X.shape[1], "way": way} | scored(model, X, y)
            base = base or row
            row |= {f"relative_{key}": row[key] / base[key] if row[key] else None for key in ("score", "crps")}
            rows.append(row)
            print(json.dumps(row), flush=True)
    print()
    print("| interval score at .1, CRPS | " + " | ".join(dict.fromkeys(row["way"] for row in rows)) + " |")
    for name in dict.fromkeys(row["set"] for row in rows):
        told = (
            f"{row['relative_score']:.3f}, {row['relative_crps'] or np.nan:.3f}" for row in rows if row["set"] == name
        )
        print(f"| {name} | " + " | ".join(told) + " |")
    names = dict.fromkeys(row["set"] for row in rows)
    rivals = [row for row in rows if row["way"] in RIVALS]
    best = {name: min(row["score"] for row in rivals if row["set"] == name) for name in names}
    for way in dict.fromkeys(row["way"] for row in rows):
        of = [row for row in rows if row["way"] == way]
        told = {"way": way, "sets": len(of)}
        for key in ("relative_score", "relative_crps"):
            told[key] = mean([row[key] for row in of]) if of[0][key] else None
        told["beside_the_best_rival_of_each_set"] = mean([row["score"] / best[row["set"]] for row in of])
        print(json.dumps(told | {"ms": float(np.mean([row["ms"] for row in of]))}))


if __name__ == "__main__":
    main(sys.argv[1:])
