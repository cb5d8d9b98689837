"""Numbers in one pass: the forecaster beside what other libraries make of the same learners.

    python benchmarks/regression_rivals.py --shuffles 3      # ten public sets, half an hour on a busy machine
    python benchmarks/regression_rivals.py --sets wine pima --shuffles 3 --ways forecaster,MAPIE
    python benchmarks/regression_rivals.py --sets waves friedman1   # smooth functions
    python benchmarks/regression_rivals.py --rows 6000 --first 2000 --every 1000 --ways Forecaster,boosting,CV+,mean

Each set comes in random order, at most 600 rows. From row 150 on each label is predicted before it is learned. The
forecaster and river learn one example at a time; all others are fitted anew to all rows so far, every 150 rows, and
asked for the next 150 at once, which is the fastest way to ask them. A library that is not installed is left out, and
named. Learners are scikit-learn's with their usual parameters: forests of 100 trees, histogram trees. Quantile boosting
(scikit-learn's, LightGBM's, XGBoost's, CatBoost's with 300 rounds) learns all rows; how far its ends are moved is found
on five folds. Two more rivals are made of these and of MAPIE's CV+: the mean of their ends, and a mean weighed at each
fit by the greedy choice of 20 among them, with repeats, that would have scored best so far. A set may also be a CSV
file of numbers, the label last; sets with fewer rows than the first that counts are left out.

Prints a row for each set, order and way: interval score at .1, misses, those in the quarters of rows with the narrowest
to the widest intervals at .1, CRPS where there is a distribution, milliseconds of the processor for a step. Then a row
for each way over all: geometric means relative to the forecaster's, and on how many sets it is better.
"""

import importlib
import logging
import sys
import warnings
from importlib import metadata
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold
from workload import command, command_options

import streams
import venn
from venn.distribution import NormalDistribution, PredictiveDistribution, interval_score

READ, MOST, EVERY, LEVEL, FOLDS, CHOICES = 1500, 600, 150, 0.1, 5, 20
#: Columns of public sets that are predicted from the others; None: the class, where that is a number.
COLUMNS = (
    ("wine_red", None), ("wine_red", "alcohol"), ("liver", "drinks"), ("pima", "plas"), ("pima", "mass"),
    ("elec2", "nswdemand"), ("covtype", "Elevation"), ("german", "credit_amount"), ("adult", "age"),
)  # fmt: skip
SMOOTH = ("waves", "friedman1")  # made ones, only if asked for
OURS, FORECAST = "`Forecaster(float)`", "its forecast"
PERCENTILES = np.arange(1, 100)


def sets(words, most):
    """Yield names, objects and labels of the sets whose names hold one of these words, and of files that they name.

    Without words all public sets, but not what is smooth.
    """
    for word in words:
        if word.endswith(".csv"):
            stream = streams.from_csv(word, -1, classes="numbers", scale=False)
            yield Path(word).stem, np.array(stream.X, float), np.array(stream.y)

    def wanted(name):
        return any(word in name for word in words) if words else name not in SMOOTH

    if wanted("diabetes"):
        stream = streams.load("diabetes", shuffle=0, scale=False)
        yield "diabetes", np.array(stream.X), np.array(stream.y)
    for name, label in COLUMNS:
        if wanted(full := name if label is None else f"{name}, {label}"):
            stream = streams.load(name, shuffle=0, scale=False)
            stream = stream.take(min(most, len(stream)))
            X, y = np.array(stream.X, np.float64), stream.y
            if label is None:
                yield full, X, np.array([float(stream.classes[code]) for code in y])
            else:
                place = list(stream.features).index(label)
                yield full, np.delete(X, place, axis=1), X[:, place]
    if wanted("waves"):
        waves = streams.waves(most, seed=1)
        yield "waves", np.array([x for x, _ in waves]), np.array([y for _, y in waves])
    if wanted("friedman1"):
        X, mean = make_friedman1(most, noise=0.0, random_state=1)
        yield "friedman1", X, mean + np.random.default_rng(1).normal(size=most)


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


def forecaster(X, y, first):
    """Yield the ends and the CRPS of both of its predictors, one example at a time."""
    model = venn.Forecaster(float)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i >= first:
            outlook = model.predict_one(x)
            yield [(*outlook[name].interval(LEVEL), outlook[name].crps(label)) for name in ("distribution", "forecast")]
        model.learn_one(x, label)


def river(X, y, first):
    """Yield the ends of river's conformal intervals around a linear regression and an adaptive forest."""
    from river.conf import RegressionJackknife
    from river.forest import ARFRegressor
    from river.linear_model import LinearRegression
    from river.preprocessing import StandardScaler

    learners = [StandardScaler() | one for one in (LinearRegression(intercept_lr=0.1), ARFRegressor(seed=0))]
    models = [RegressionJackknife(learner, confidence_level=1 - LEVEL) for learner in learners]
    for i, (x, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        row = dict(enumerate(x))
        if i >= first:
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


def quantile_boosting(package, kind, how):
    """Return a way: two quantiles by boosted trees of all rows, moved by what is found out of fold."""

    def ends(X, y, Z):
        make = getattr(importlib.import_module(package), kind)
        each = [make(random_state=0, **how(q)).fit(X, y).predict(Z) for q in (LEVEL / 2, 1 - LEVEL / 2)]
        return np.column_stack(each)

    def answer(X, y, Z, labels):
        off = np.empty(len(y))
        for others, part in KFold(FOLDS, shuffle=True, random_state=0).split(X):
            lower, upper = ends(X[others], y[others], X[part]).T
            off[part] = np.maximum(lower - y[part], y[part] - upper)
        more = np.sort(off)[min(int(np.ceil((1 - LEVEL) * (len(y) + 1))), len(y)) - 1]
        return np.column_stack([ends(X, y, Z) + np.array([-more, more]), np.full(len(Z), np.nan)])

    return answer


def weighed(each, labels, every):
    """Return (n, 2) means of k rivals' (k, n, 2) ends, by weights that have scored best before each fit."""
    found = each.mean(axis=0)
    for n in range(every, len(labels), every):
        total, chosen = np.zeros((n, 2)), np.zeros(len(each))
        for count in range(1, CHOICES + 1):
            scores = [interval_scores((total + one[:n]) / count, labels[:n]).mean() for one in each]
            chosen[np.argmin(scores)] += 1
            total += each[np.argmin(scores), :n]
        found[n : n + every] = np.einsum("k,kne->ne", chosen / CHOICES, each[:, n : n + every])
    return found


def interval_scores(ends, labels):
    """Return the interval scores of (n, 2) ends."""
    lower, upper = ends.T
    return upper - lower + 2 / LEVEL * (np.maximum(lower - labels, 0) + np.maximum(labels - upper, 0))


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


CV, BOOSTING = "MAPIE, CV+ on a forest", "quantile boosting"
#: Library, titles of what it says, and how: one at a time, or fitted anew for each block of rows.
WAYS = (
    (None, (OURS, FORECAST), forecaster, None), ("mapie", (CV,), None, cv_plus(woods)),
    ("mapie", ("MAPIE, CV+ on histogram trees",), None, cv_plus(lambda: HistGradientBoostingRegressor(random_state=0))),
    ("mapie", ("MAPIE, jackknife+ after bootstrap",), None, bootstrap), ("mapie", ("MAPIE, CQR",), None, quantiles),
    ("crepes", ("crepes, difficulty by neighbours' residuals",), None, crepes(False)),
    ("crepes", ("crepes, difficulty by the trees' variance",), None, crepes(True)),
    ("river", ("river, jackknife on a linear regression", "river, the same on an adaptive forest"), river, None),
    (None, ("Gaussian process, nothing proved",), None, process),
    *(
        (package, (f"{package}, {BOOSTING}",), None, quantile_boosting(place, kind, how))
        for package, place, kind, how in (
            ("scikit-learn", "sklearn.ensemble", "HistGradientBoostingRegressor",
             lambda q: {"loss": "quantile", "quantile": q}),
            ("lightgbm", "lightgbm", "LGBMRegressor",
             lambda q: {"objective": "quantile", "alpha": q, "n_jobs": 1, "verbose": -1}),
            ("xgboost", "xgboost", "XGBRegressor",
             lambda q: {"objective": "reg:quantileerror", "quantile_alpha": q, "n_jobs": 1}),
            ("catboost", "catboost", "CatBoostRegressor",
             lambda q: {"loss_function": f"Quantile:alpha={q}", "iterations": 300, "thread_count": 1, "silent": True,
                        "allow_writing_files": False}),
        )
    ),
)  # fmt: skip
TOGETHER = "mean of boosting and CV+", "weighed mean of boosting and CV+"


def by_blocks(fit, every):
    """Return a way to go through a stream of what is fitted anew for each block of rows."""

    def through(X, y, first):
        for n in range(first, len(y), every):
            rows = slice(n, n + every)
            yield from [[tuple(one)] for one in np.asarray(fit(X[:n], y[:n], X[rows], y[rows])).tolist()]

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


def rows(words, shuffles, wanted, most, first, every):
    """Yield a row for each set, order and way."""
    for name, X, y in sets(words, max(READ, most)):
        for shuffle in range(shuffles if len(y) > first else 0):
            order, each = np.random.default_rng(shuffle).permutation(len(y))[:most], []
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
                told = list((one_by_one or by_blocks(fit, every))(rows, labels, first))
                ms = (process_time() - began) / len(labels) * 1e3
                for k, title in enumerate(titles):
                    said = scored([one[k] for one in told], labels[first:])
                    yield {"set": name, "shuffle": shuffle, "way": title, "version": version, "ms": ms} | said
                    if BOOSTING in title or title == CV:
                        each.append(np.array(told)[:, k, :2])
            if each and (not wanted or "mean" in wanted):
                for title, ends in zip(
                    TOGETHER, (np.mean(each, axis=0), weighed(np.array(each), labels[first:], every)), strict=True
                ):
                    said = scored(np.column_stack([ends, np.full(len(ends), np.nan)]), labels[first:])
                    yield {"set": name, "shuffle": shuffle, "way": title, "version": None, "ms": 0.0} | said


@command()
def main():
    """Print the rows, and what they come to."""
    args = command_options(__doc__, sets=[], shuffles=1, rows=MOST, first=EVERY, every=EVERY, ways="")
    found, ways = [], args.ways.split(",") if args.ways else []
    logging.disable(logging.INFO)  # MAPIE speaks of each crossing of quantiles
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows(args.sets, args.shuffles, ways, args.rows, args.first, args.every):
            found.append(row)
            yield row
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
        yield {"way": way, "streams": len(mine), **over, **rest, "quarters": quarters}
