"""What a step of predictive distributions costs, and how good they are beside other ways.

    python benchmarks/regression.py                                      # a step at 1000 examples
    python benchmarks/regression.py --quality --markdown runs/regression.md    # misses and scores, some minutes

Prints one JSON line for each figure: times beside the machine's own, against a ridge refitted at every step and, where
it is installed, against online-cp's step. `--quality`: six public sets and two with known distributions, in random
order; misses of the intervals beside the limits of chance, widths, interval scores, CRPS (smaller is better).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import binom
from sklearn.datasets import make_friedman1
from sklearn.linear_model import QuantileRegressor

import streams
import venn
from venn.distribution import NormalDistribution, interval_score
from venn.machines import KernelRidge, MultiscaleRBF

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from studies.document import written

LEVELS = (0.05, 0.1, 0.2)
MOST, START = 540, 40  # examples of a stream, and those before anything counts
SPLIT = "split residuals, plain quantiles"
#: Columns of public sets that are predicted from the others.
COLUMNS = (("liver", "drinks"), ("pima", "plas"), ("heart", "thalach"), ("elec2", "nswdemand"))


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
    row = {
        "n": n, "machine_us": machine * 1e6, "distribution_us": whole * 1e6, "intervals_us": both * 1e6,
        "learn_us": learn * 1e6, "beside_the_machine_us": (whole - machine) * 1e6, "refit_us": again * 1e6,
        "times_faster_than_refitting": again / whole,
    }  # fmt: skip
    try:
        from online_cp import GaussianKernel, KernelConformalRidgeRegressor, KernelRidgePredictionMachine
    except ImportError:
        return row
    kinds = {"distribution": KernelRidgePredictionMachine, "intervals": KernelConformalRidgeRegressor}
    return row | {
        f"online_cp_{name}_{what}": time
        for name, kind in kinds.items()
        for what, time in theirs(kind(GaussianKernel(sigma=float(np.sqrt(d / 2))), a=0.1), X, y, objects).items()
    }


def theirs(model, X, y, objects):
    """Time online-cp's question, and its learning."""
    model.learn_initial_training_set(X, y)
    ask = getattr(model, "predict_cpd", None) or model.predict
    return {
        "us": seconds(lambda: ask(next(objects)), 10) * 1e6,
        "learn_us": seconds(lambda: model.learn_one(next(objects), 0.3), 10) * 1e6,
    }


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


def column(name, label):
    """Return a stream of a public set that predicts one of its columns of numbers, or its class if that is a number."""
    stream = streams.load(name, shuffle=0, scale=False)
    stream = stream.take(min(MOST, len(stream)))
    X = np.array(stream.X)
    if label is None:
        y = np.array([float(stream.classes[code]) for code in stream.y])
    else:
        place = stream.features.index(label)
        X, y = np.delete(X, place, axis=1), X[:, place]
    called = name if label is None else f"{name}, {label}"
    return streams.from_arrays(X, y, classes="numbers", scale=True, name=called)


def sets():
    """Yield streams, and the true distribution of each label where it is known."""
    yield streams.load("diabetes", shuffle=0), None
    yield column("wine_red", None), None
    for name, label in COLUMNS:
        yield column(name, label), None
    waves = streams.waves(MOST, seed=1)
    yield waves, [NormalDistribution(float(m), float(s)) for m, s in zip(waves.means, waves.deviations, strict=True)]
    X, mean = make_friedman1(MOST, noise=0.0, random_state=1)
    y = mean + np.random.default_rng(1).normal(size=MOST)
    yield (
        streams.from_arrays(X, y, classes="numbers", name="friedman1"),
        [NormalDistribution(float(m), 1.0) for m in mean],
    )


def of_split(prediction, level):
    """Return the plain quantiles of the residuals around the forecast, without what makes them conformal."""
    if not len(prediction.points):
        return -np.inf, np.inf
    return tuple(np.quantile(prediction.points, [level / 2, 1 - level / 2]).tolist())


def quality(stream, truths):
    """Yield the scores of each way on one stream, over the steps after the first 40."""
    ridge = lambda: KernelRidge(MultiscaleRBF(), 3.0)  # noqa: E731
    ways = {
        "ConformalDistribution": venn.predictors.ConformalDistribution(ridge()),
        "ConformalIntervals": venn.predictors.ConformalIntervals(ridge()),
        "InductiveDistribution": venn.predictors.InductiveDistribution(ridge()),
        "GaussianProcess": venn.predictors.GaussianProcess(ridge()),
    }
    quantiles = Quantiles()
    said = {name: [] for name in (*ways, SPLIT, "quantile regression", *(["the truth"] if truths else ()))}
    for n, (x, y) in enumerate(stream):
        for name, model in ways.items():
            prediction = model.predict_one(x)
            if n >= START:
                score = prediction.crps(y) if hasattr(prediction, "crps") else None
                said[name].append((score, [prediction.interval(level) for level in LEVELS]))
                if name == "InductiveDistribution":
                    said[SPLIT].append((score, [of_split(prediction, level) for level in LEVELS]))
            model.learn_one(x, y)
        if n >= START:
            said["quantile regression"].append((None, [quantiles.interval(x, level) for level in LEVELS]))
            if truths:
                said["the truth"].append((truths[n].crps(y), [truths[n].interval(level) for level in LEVELS]))
        quantiles.learn_one(x, y)
    truth = np.array([y for _, y in stream])[START:]
    for name, found in said.items():
        row = {"stream": stream.name, "n": len(truth), "predictor": name}
        row["crps"] = None if found[0][0] is None else float(np.mean([score for score, _ in found]))
        for k, level in enumerate(LEVELS):
            ends = np.array([intervals[k] for _, intervals in found])
            finite = np.isfinite(ends).all(axis=1)
            row[f"misses_{level}"] = int(((truth < ends[:, 0]) | (truth > ends[:, 1])).sum())
            row[f"width_{level}"] = float(np.diff(ends[finite]).mean()) if finite.any() else None
            kept = [interval_score(a, b, v, level) for (a, b), v, f in zip(ends, truth, finite, strict=True) if f]
            row[f"score_{level}"] = float(np.mean(kept)) if kept else None
        yield row


def page(rows):
    """Return the table as Markdown."""
    yield "| | missed at .05 | .1 | .2 | width at .1 | score at .1 | CRPS |"
    yield "|---|---|---|---|---|---|---|"
    stream = None
    for row in rows:
        if row["stream"] != stream:
            stream = row["stream"]
            limits = [binom.interval(0.99, row["n"], level) for level in LEVELS]
            chance = " | ".join(f"*({low:.0f} to {high:.0f})*" for low, high in limits)
            yield f"| *{stream}: {row['n']} steps* | {chance} | | | |"
        counts = [
            str(count) if low <= count <= high else f"**{count}**"
            for count, (low, high) in zip((row[f"misses_{level}"] for level in LEVELS), limits, strict=True)
        ]
        scores = ["-" if row[key] is None else f"{row[key]:.4g}" for key in ("width_0.1", "score_0.1", "crps")]
        yield f"| {row['predictor']} | {' | '.join([*counts, *scores])} |"


def main():
    """Print one JSON line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", action="store_true", help="compare scores instead of times")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table of --quality into this page")
    parser.add_argument("--n", type=int, default=1000)
    chosen = parser.parse_args()
    if not chosen.quality:
        print(json.dumps(step(chosen.n)))
        return
    rows = []
    for stream, truths in sets():
        for row in quality(stream, truths):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if chosen.markdown:
        written(chosen.markdown, list(page(rows)), "benchmarks/regression.py", "Numbers instead of classes")


if __name__ == "__main__":
    main()
