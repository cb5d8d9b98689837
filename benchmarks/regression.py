"""What a step of predictive distributions costs, and how often their intervals miss.

    python benchmarks/regression.py              # a step at 1000 examples
    python benchmarks/regression.py --quality    # misses, some minutes

Prints one JSON line for each figure: the time beside the machine's own, against a ridge refitted at every step.
`--quality`: six public sets and two made ones, in random order; misses of
the intervals beside the limits of chance.
"""

from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import binom
from sklearn.datasets import make_friedman1
from workload import command, command_options

import streams
import venn
from venn.machines import KernelRidge, MultiscaleRBF

LEVELS = (0.05, 0.1, 0.2)
MOST, START = 540, 40  # examples of a stream, and those before anything counts
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

    def refit():  # what a loop without the factor does at every step, for one label of one object
        Z = np.vstack([X, next(objects)])
        squares = (Z**2).sum(axis=1)
        K = np.exp(-(squares[:, None] + squares - 2 * Z @ Z.T) / d)
        cho_solve(cho_factor(K + np.eye(n + 1) / 10.0), np.column_stack([np.append(y, 0.0), np.ones(n + 1)]))

    again = seconds(refit, 5)
    return {
        "benchmark": "regression", "n": n, "beside_the_machine_us": (whole - machine) * 1e6,
        "times_faster_than_refitting": again / whole,
    }  # fmt: skip


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
    """Yield streams."""
    yield streams.load("diabetes", shuffle=0)
    yield column("wine_red", None)
    for name, label in COLUMNS:
        yield column(name, label)
    yield streams.waves(MOST, seed=1)
    X, mean = make_friedman1(MOST, noise=0.0, random_state=1)
    y = mean + np.random.default_rng(1).normal(size=MOST)
    yield streams.from_arrays(X, y, classes="numbers", name="friedman1")


def quality(stream):
    """Return how often the intervals of each miss on one stream, after the first 40, and the limits of chance."""
    ways = {kind.__name__: kind(KernelRidge(MultiscaleRBF(), 3.0))
            for kind in (venn.predictors.ConformalDistribution, venn.predictors.ConformalIntervals)}  # fmt: skip
    missed = {name: np.zeros(len(LEVELS), int) for name in ways}
    for n, (x, y) in enumerate(stream):
        for name, model in ways.items():
            if n >= START:
                ends = np.array([model.predict_one(x).interval(level) for level in LEVELS])
                missed[name] += (y < ends[:, 0]) | (y > ends[:, 1])
            model.learn_one(x, y)
    steps = len(stream) - START
    limits = [list(map(int, binom.interval(0.99, steps, level))) for level in LEVELS]
    return {"stream": stream.name, "n": steps, "limits": limits} | {name: one.tolist() for name, one in missed.items()}


@command(threads=None)
def main():
    """Print one JSON line for each figure."""
    chosen = command_options(__doc__, quality=False, n=1000)
    if not chosen.quality:
        yield step(chosen.n)
        return
    for stream in sets():
        yield quality(stream)
