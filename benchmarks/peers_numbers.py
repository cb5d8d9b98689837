"""Labels that are numbers: other libraries and ours on the same streams, with the same settings and levels.

    pip install -e '.[peers]'
    python benchmarks/peers_numbers.py > rows.jsonl    # some minutes of one core

Two jobs. *Online*: predict, then learn, each example after the first 60, which all learn beforehand; kernel ridge with
one width and one ridge. *A model given*: one regressor fitted on a first part, the same for all; a second part
calibrates it, the rest is predicted at once. Prints one JSON line for each row: seconds of the processor, misses of the
intervals at .05, .1 and .2, mean width of the finite intervals at .1, CRPS where there is a
distribution. A library that is not installed gets a row that says so.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.distribution import PredictiveDistribution
from venn.machines import FrozenRegressor, KernelRidge
from venn.predictors import ConformalDistribution, ConformalIntervals, InductiveDistribution, VennAbersRegressor

LEVELS = (0.05, 0.1, 0.2)
WARM, C = 60, 10.0
OF_MEAN = "of the mean"


def data(name):
    """Return objects and labels in random order; columns are standardised over the whole set."""
    if name == "waves":
        stream = streams.waves(600, features=4, seed=1)
        return np.array(stream.X), np.array(stream.y)
    stream = streams.load(name, shuffle=0)
    y = np.array(stream.y, float)
    if stream.classes:  # qualities of wines are numbers
        y = np.array([float(stream.classes[code]) for code in stream.y])
    return np.array(stream.X, float)[:600], y[:600]


# Online -------------------------------------------------------------------------------------------------------------


class Ours:
    """Our predictor: its intervals and CRPS."""

    def __init__(self, X, kind, kernel=None):
        self.model = kind(KernelRidge(venn.RBF(1 / X.shape[1]) if kernel is None else kernel, C))

    def start(self, X, y):
        """Learn the first examples."""
        for x, label in zip(X, y.tolist(), strict=True):
            self.learn(x, label)

    def ask(self, x):
        """Return the prediction."""
        return self.model.predict_one(x)

    def read(self, prediction, y):
        """Return ends by level, and the score."""
        score = prediction.crps(y) if hasattr(prediction, "crps") else None
        return [prediction.interval(level) for level in LEVELS], score

    def learn(self, x, y):
        """Learn one example."""
        self.model.learn_one(x, float(y))


class OnlineCP(Ours):
    """online-cp's kernel machines: they have no bias, so labels are less the mean of the first ones."""

    def __init__(self, X, distribution):
        from online_cp import GaussianKernel, KernelConformalRidgeRegressor, KernelRidgePredictionMachine

        kernel = GaussianKernel(sigma=float(np.sqrt(X.shape[1] / 2)))
        self.distribution = distribution
        made = KernelRidgePredictionMachine(kernel, a=1 / C) if distribution else None
        self.model = made or KernelConformalRidgeRegressor(kernel, a=1 / C, studentised=True, warnings=False)

    def start(self, X, y):
        self.mean = y.mean()
        self.model.learn_initial_training_set(X, y - self.mean)

    def ask(self, x):
        if self.distribution:
            said, self.update = self.model.predict_cpd(x, return_update=True)
            return said
        said, self.update = self.model.predict(x, epsilon=np.array(LEVELS), bounds="both", return_update=True)
        return said

    def read(self, said, y):
        if self.distribution:
            prediction = PredictiveDistribution(np.sort(said.C[1:-1]) + self.mean)  # read as ours, with the same ranks
            return [prediction.interval(level) for level in LEVELS], prediction.crps(y)
        ends = [said[level] for level in LEVELS]
        return [(float(one.lower) + self.mean, float(one.upper) + self.mean) for one in ends], None

    def learn(self, x, y):
        self.model.learn_one(x, y - self.mean, self.update)


class Jackknife(Ours):
    """river's RegressionJackknife around its scaled linear model, one for each level."""

    def __init__(self, X):
        from river import conf, linear_model, preprocessing

        self.models = [
            conf.RegressionJackknife(
                preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1),
                confidence_level=1 - level,
            )
            for level in LEVELS
        ]

    def ask(self, x):
        row = dict(enumerate(x.tolist()))
        return [model.predict_one(row, with_interval=True) for model in self.models]

    def read(self, said, y):
        return [(one.lower, one.upper) for one in said], None

    def learn(self, x, y):
        for model in self.models:
            model.learn_one(dict(enumerate(x.tolist())), float(y))


ONLINE = [
    ("ours", "`ConformalDistribution`, RBF", lambda X: Ours(X, ConformalDistribution)),
    ("online-cp", "`KernelRidgePredictionMachine`", lambda X: OnlineCP(X, True)),
    ("ours", "`ConformalIntervals`, RBF", lambda X: Ours(X, ConformalIntervals)),
    ("online-cp", "`KernelConformalRidgeRegressor`, studentised", lambda X: OnlineCP(X, False)),
    ("ours", "`ConformalDistribution`, linear", lambda X: Ours(X, ConformalDistribution, venn.Linear())),
    ("river", "`RegressionJackknife`, linear", Jackknife),
]


def online(X, y, make):
    """Return seconds, ends (n, levels, 2) and scores of a run, after a short one that compiles."""
    for part in (WARM + 5, len(y)):
        one, seconds, ends, scores = make(X), 0.0, [], []
        one.start(X[:WARM], y[:WARM])
        for x, label in zip(X[WARM:part], y[WARM:part].tolist(), strict=True):
            start = time.process_time()
            said = one.ask(x)
            then = time.process_time()
            found, score = one.read(said, label)
            again = time.process_time()
            one.learn(x, label)
            seconds += time.process_time() - again + then - start
            ends.append(found)
            scores.append(score)
    return seconds, np.array(ends), scores


# A model given ------------------------------------------------------------------------------------------------------


def ours_given(model, X, y, Z, truth, abers=False):
    """Return seconds, ends and scores of ours."""
    kind = VennAbersRegressor if abers else InductiveDistribution
    start = time.process_time()
    one = kind(FrozenRegressor(model))
    one.learn_many(X, y)
    block = one.predict_many(Z)
    if abers:
        ends = [[block[i].interval(level) for level in LEVELS] for i in range(len(Z))]
    else:
        ends = np.stack([block.interval(level) for level in LEVELS], axis=1)
    seconds = time.process_time() - start
    return seconds, ends, None if abers else [block[i].crps(label) for i, label in enumerate(truth)]


def crepes_given(model, X, y, Z, truth, cps=True):
    """Return seconds, ends and scores of crepes, by its predictive systems or its regressors."""
    from crepes import WrapRegressor

    start = time.process_time()
    one = WrapRegressor(model)
    one.calibrate(X, y, cps=cps)
    ends = np.stack([one.predict_int(Z, confidence=1 - level) for level in LEVELS], axis=1)
    seconds = time.process_time() - start
    points = one.predict_cps(Z, return_cpds=True) if cps else None
    return (
        seconds,
        ends,
        cps and [PredictiveDistribution(np.sort(p)).crps(v) for p, v in zip(points, truth, strict=True)],
    )


def mapie_given(model, X, y, Z, truth):
    """Return seconds and ends of MAPIE."""
    from mapie.regression import SplitConformalRegressor

    start = time.process_time()
    one = SplitConformalRegressor(model, [1 - level for level in LEVELS], prefit=True).conformalize(X, y)
    _, ends = one.predict_interval(Z)
    return time.process_time() - start, ends.transpose(0, 2, 1), None


def abers_given(model, X, y, Z, truth):
    """Return seconds and ends of venn-abers: intervals for the mean, as ours of that name."""
    from sklearn.frozen import FrozenEstimator
    from venn_abers import VennAbersRegressor as Theirs

    start = time.process_time()
    ends = []
    for level in LEVELS:
        # It splits what it gets: one row, which its frozen model does not learn, and those that calibrate.
        one = Theirs(FrozenEstimator(model), inductive=True, cal_size=len(y), shuffle=False)
        one.fit(np.vstack([X[:1], X]), np.append(y[:1], y), epsilon=level)
        ends.append(one.predict(Z)[1])
    return time.process_time() - start, np.stack(ends, axis=1), None


GIVEN = [
    ("ours", "`InductiveDistribution`", ours_given),
    ("crepes", "`WrapRegressor`, predictive systems", crepes_given),
    ("crepes", "`WrapRegressor`, absolute residuals", lambda *given: crepes_given(*given, cps=False)),
    ("mapie", "`SplitConformalRegressor`", mapie_given),
    ("ours", f"`VennAbersRegressor`: {OF_MEAN}", lambda *given: ours_given(*given, abers=True)),
    ("venn-abers", f"`VennAbersRegressor`: {OF_MEAN}", abers_given),
]


def rows(names):
    """Yield a row for each way and stream."""
    for name in names:
        X, y = data(name)
        third = len(y) // 3
        parts = [(X[i * third : (i + 1) * third], y[i * third : (i + 1) * third]) for i in range(3)]
        model = GradientBoostingRegressor(random_state=0).fit(*parts[0])
        jobs = [("online", *one) for one in ONLINE] + [("given", *one) for one in GIVEN]
        for job, library, title, way in jobs:
            row = {"job": job, "data": name, "library": library, "title": title}
            try:
                if job == "online":
                    seconds, ends, scores = online(X, y, way)
                    truth = y[WARM:]
                else:
                    truth = parts[2][1]
                    way(model, parts[1][0][:50], parts[1][1][:50], parts[2][0][:5], truth[:5])  # compiles
                    seconds, ends, scores = way(model, *parts[1], parts[2][0], truth)
            except ImportError as error:
                yield row | {"failed": str(error)}
                continue
            ends = np.array(ends, float)
            finite = np.isfinite(ends[:, 1]).all(axis=1)
            row |= {"steps": len(truth), "seconds": seconds, "width": float(np.diff(ends[finite, 1]).mean())}
            misses = (truth[:, None] < ends[:, :, 0]) | (truth[:, None] > ends[:, :, 1])
            row["misses"] = misses.sum(axis=0).tolist()
            row["crps"] = float(np.mean(scores)) if scores and scores[0] is not None else None
            yield row


def main():
    """Print one JSON line for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="diabetes,wine_red,waves", metavar="NAMES")
    args = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows(args.data.split(",")):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
