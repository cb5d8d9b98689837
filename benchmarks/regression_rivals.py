"""Numbers in one pass: the forecaster beside what other libraries make of the same learners.

    python benchmarks/regression_rivals.py --shuffles 3      # ten public sets, half an hour on a busy machine
    python benchmarks/regression_rivals.py --sets wine pima --shuffles 3 --ways forecaster,MAPIE
    python benchmarks/regression_rivals.py --sets waves friedman1   # smooth functions

Each set comes in random order, at most 600 rows. From row 150 on each label is predicted before it is learned. The
forecaster and river learn one example at a time; all others are fitted anew to all rows so far, every 150 rows, and
asked for the next 150 at once, which is the fastest way to ask them. A library that is not installed is left out, and
named. Learners are scikit-learn's with their usual parameters: forests of 100 trees, histogram trees.

Prints a row for each set, order and way: interval score at .1, misses, those in the quarters of rows with the narrowest
to the widest intervals at .1, CRPS where there is a distribution, milliseconds of the processor for a step. Then a row
for each way over all: geometric means relative to the forecaster's, and on how many sets it is better.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from importlib import metadata
from time import process_time

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.distribution import NormalDistribution, PredictiveDistribution, interval_score

READ, MOST, EVERY, LEVEL = 1500, 600, 150, 0.1
#: Columns of public sets that are predicted from the others; None: the class, where that is a number.
COLUMNS = (
    ("wine_red", None), ("wine_red", "alcohol"), ("liver", "drinks"), ("pima", "plas"), ("pima", "mass"),
    ("elec2", "nswdemand"), ("covtype", "Elevation"), ("german", "credit_amount"), ("adult", "age"),
)  # fmt: skip
SMOOTH = ("waves", "friedman1")  # made ones, only if asked for
OURS, FORECAST = "`Forecaster(float)`", "its forecast"
PERCENTILES = np.arange(1, 100)


def sets():
    """Yield names, objects and labels."""
    stream = streams.load("diabetes", shuffle=0, scale=False)
    yield "diabetes", np.array(stream.X), np.array(stream.y)
    for name, label in COLUMNS:
        stream = streams.load(name, shuffle=0, scale=False)
        stream = stream.take(min(READ, len(stream)))
        X = np.array(stream.X, np.float64)
        if label is None:
            yield name, X, np.array([float(stream.classes[code]) for code in stream.y])
        else:
            place = list(stream.features).index(label)
            yield f"{name}, {label}", np.delete(X, place, axis=1), X[:, place]
    waves = streams.waves(READ, seed=1)
    yield "waves", np.array([x for x, _ in waves]), np.array([y for _, y in waves])
    X, mean = make_friedman1(READ, noise=0.0, random_state=1)
    yield "friedman1", X, mean + np.random.default_rng(1).normal(size=READ)


def mean(values):
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


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


def forecaster(X, y):
    """Yield the ends and the CRPS of both of its predictors, one example at a time."""
    model = venn.Forecaster(float)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= EVERY:
            outlook = model.predict_one(x)
            yield [(*outlook[name].interval(LEVEL), outlook[name].crps(label)) for name in ("distribution", "forecast")]
        model.learn_one(x, label)


def river(X, y):
    """Yield the ends of river's conformal intervals around a linear regression and an adaptive forest."""
    from river.conf import RegressionJackknife
    from river.forest import ARFRegressor
    from river.linear_model import LinearRegression
    from river.preprocessing import StandardScaler

    learners = [StandardScaler() | one for one in (LinearRegression(intercept_lr=0.1), ARFRegressor(seed=0))]
    models = [RegressionJackknife(learner, confidence_level=1 - LEVEL) for learner in learners]
    for i, (x, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        row = dict(enumerate(x))
        if i >= EVERY:
            both = [model.predict_one(row, with_interval=True) for model in models]
            yield [(said.lower, said.upper, None) for said in both]
        for model in models:
            model.learn_one(row, label)


def woods(**more):
    """Return a forest."""
    return RandomForestRegressor(100, random_state=0, **more)


def of_two_ends(model, Z):
    """Return (n, 3) ends of MAPIE's intervals, and no CRPS."""
    ends = model.predict_interval(Z)[1][:, :, 0]
    return np.column_stack([ends, np.full(len(Z), np.nan)])


def cv_plus(learner):
    """Return a way: MAPIE's CV+."""

    def answer(X, y, Z, labels):
        from mapie.regression import CrossConformalRegressor

        return of_two_ends(CrossConformalRegressor(learner(), 1 - LEVEL, random_state=0).fit_conformalize(X, y), Z)

    return answer


def bootstrap(X, y, Z, labels):
    """Return ends by MAPIE's jackknife+ after bootstrap."""
    from mapie.regression import JackknifeAfterBootstrapRegressor

    learner = HistGradientBoostingRegressor(random_state=0)
    model = JackknifeAfterBootstrapRegressor(learner, 1 - LEVEL, resampling=30, random_state=0)
    return of_two_ends(model.fit_conformalize(X, y), Z)


def quantiles(X, y, Z, labels):
    """Return ends by MAPIE's CQR, on seven tenths of the rows."""
    from mapie.regression import ConformalizedQuantileRegressor

    m, learner = int(0.7 * len(y)), HistGradientBoostingRegressor(loss="quantile", quantile=0.5, random_state=0)
    model = ConformalizedQuantileRegressor(learner, 1 - LEVEL).fit(X[:m], y[:m])
    return of_two_ends(model.conformalize(X[m:], y[m:]), Z)


def crepes(by_variance):
    """Return a way: crepes' predictive system on out-of-bag residuals, divided by the difficulty."""

    def answer(X, y, Z, labels):
        from crepes import WrapRegressor
        from crepes.extras import DifficultyEstimator

        forest = woods(oob_score=True).fit(X, y)
        given = {"learner": forest} if by_variance else {"residuals": y - forest.oob_prediction_}
        estimator = DifficultyEstimator()
        estimator.fit(X=X, scaler=True, oob=True, **given)
        model = WrapRegressor(forest)
        model.calibrate(None, y, de=estimator, oob=True, cps=True, seed=0)  # each example without itself
        points = model.predict_cps(Z, lower_percentiles=[5], higher_percentiles=[95, *PERCENTILES], seed=0)
        crps = [
            PredictiveDistribution(np.sort(row[np.isfinite(row)])).crps(label)
            for row, label in zip(points[:, 2:], labels, strict=True)
        ]
        return np.column_stack([points[:, :2], crps])

    return answer


def process(X, y, Z, labels):
    """Return ends and CRPS of scikit-learn's Gaussian process, as it is."""
    model = Process(X, y)
    said = [model.predict_one(row) for row in Z]
    return np.array([(*one.interval(LEVEL), one.crps(label)) for one, label in zip(said, labels, strict=True)])


#: Library, titles of what it says, and how: one at a time, or fitted anew for each block of rows.
WAYS = (
    (None, (OURS, FORECAST), forecaster, None),
    ("mapie", ("MAPIE, CV+ on a forest",), None, cv_plus(woods)),
    ("mapie", ("MAPIE, CV+ on histogram trees",), None, cv_plus(lambda: HistGradientBoostingRegressor(random_state=0))),
    ("mapie", ("MAPIE, jackknife+ after bootstrap",), None, bootstrap),
    ("mapie", ("MAPIE, CQR",), None, quantiles),
    ("crepes", ("crepes, difficulty by neighbours' residuals",), None, crepes(False)),
    ("crepes", ("crepes, difficulty by the trees' variance",), None, crepes(True)),
    ("river", ("river, jackknife on a linear regression", "river, the same on an adaptive forest"), river, None),
    (None, ("Gaussian process, nothing proved",), None, process),
)


def by_blocks(fit):
    """Return a way to go through a stream of what is fitted anew for each block of rows."""

    def through(X, y):
        for first in range(EVERY, len(y), EVERY):
            rows = slice(first, first + EVERY)
            yield from [[tuple(one)] for one in np.asarray(fit(X[:first], y[:first], X[rows], y[rows])).tolist()]

    return through


def scored(told, labels):
    """Return the scores of (n, 3) ends and CRPS."""
    lower, upper, crps = np.array(told, float).T
    labels, low, high = np.asarray(labels), np.nan_to_num(lower, neginf=-1e300), np.nan_to_num(upper, posinf=1e300)
    missed = (labels < low) | (labels > high)
    finite = np.isfinite(lower) & np.isfinite(upper)
    found = zip(lower[finite], upper[finite], labels[finite], strict=True)
    score = [interval_score(*ends, label, LEVEL) for *ends, label in found]
    parts = np.array_split(np.argsort(high - low, kind="stable"), 4)
    return {
        "score": float(np.mean(score)), "infinite": int((~finite).sum()), "missed": float(missed.mean()),
        "quarters": [float(missed[part].mean()) for part in parts],
        "crps": None if np.isnan(crps).any() else float(crps.mean()),
    }  # fmt: skip


def rows(words, shuffles, wanted):
    """Yield a row for each set, order and way."""
    for name, X, y in sets():
        if (words and not any(word in name for word in words)) or (name in SMOOTH and name not in words):
            continue
        for shuffle in range(shuffles):
            order = np.random.default_rng(shuffle).permutation(len(y))[:MOST]
            rows, labels = X[order], y[order]
            for library, titles, one_by_one, fit in WAYS:
                if wanted and not any(word in title for word in wanted for title in titles):
                    continue
                try:
                    version = metadata.version(library) if library else None
                except metadata.PackageNotFoundError:
                    if not shuffle:
                        print(f"{library} is not installed: {', '.join(titles)} left out", file=sys.stderr)
                    continue
                began = process_time()
                told = list((one_by_one or by_blocks(fit))(rows, labels))
                ms = (process_time() - began) / len(labels) * 1e3
                for k, title in enumerate(titles):
                    said = scored([one[k] for one in told], labels[EVERY:])
                    yield {"set": name, "shuffle": shuffle, "way": title, "version": version, "ms": ms} | said


def main():
    """Print the rows, and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=[], help="those whose names hold one of these words")
    parser.add_argument("--shuffles", type=int, default=1)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=[], help="those whose titles hold one")
    args = parser.parse_args()
    found = []
    logging.disable(logging.INFO)  # MAPIE speaks of each crossing of quantiles
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows(args.sets, args.shuffles, args.ways):
            found.append(row)
            print(json.dumps(row), flush=True)
    by = {(row["way"], row["set"], row["shuffle"]): row for row in found}
    for way in dict.fromkeys(row["way"] for row in found):
        mine = [row for row in found if row["way"] == way]
        over = {}
        for key, base in (("score", OURS), ("crps", FORECAST)):
            ratios = [(row["set"], row[key] / by[base, row["set"], row["shuffle"]][key]) for row in mine if row[key]]
            if ratios:
                over[key] = mean([ratio for _, ratio in ratios])
                names = dict.fromkeys(name for name, _ in ratios)
                over[f"{key}_better"] = sum(mean([r for name, r in ratios if name == one]) < 1 for one in names)
        quarters = np.mean([row["quarters"] for row in mine], axis=0).round(3).tolist()
        rest = {key: float(np.mean([row[key] for row in mine])) for key in ("missed", "ms")}
        print(json.dumps({"way": way, "streams": len(mine), **over, **rest, "quarters": quarters}))


if __name__ == "__main__":
    main()
