"""
Is the inductive Venn predictor valid online?
=============================================

Any single prediction is, whatever the schedule. Over a stream the departures 1{y = 1} - P(1), P the row of the
true label, are added up, and their sum should spread like that of a fair game: deviation sqrt(sum of P (1 - P)),
called nominal here. Whether it does depends on when the scorer is trained and which examples calibrate it::

    A  PrefixRestart       calibration starts empty at every training
    B  Prefix              train on the first 70 %, calibrate on the rest and what follows
    C  FreshSplit          a new random split at every step
    D  RandomAssignment    every example calibrates or trains for good
    E  FixedCalibration    one calibration set for ever

Each schedule replays many streams of exchangeable examples. Measured are the mean departure a step, which should be
0, and the spread of the sum as a multiple of the nominal one, next to the theory for a single category (for D,
sqrt(2 / 0.3 - 1) = 2.38 in the limit)::

    python examples/inductive_validity.py            # draws runs/inductive_validity.png when matplotlib is there
    python examples/inductive_validity.py --large    # long streams, many of them: some minutes
"""

import argparse
import math
import pathlib

import numpy as np

import venn
from venn.predictors.inductive import InductiveVenn
from venn.schedules import FixedCalibration, FreshSplit, Prefix, PrefixRestart, RandomAssignment
from venn.taxonomies import Argmax, ByScores

CLASSES, FIRST, Q = (0, 1), 16, 0.3


class OneCategory(ByScores):
    """All examples in one category: the scorer does not matter, and theory is exact."""

    pointwise = True

    def categories(self, scores):
        return np.zeros(len(scores), np.int64)


class Centroids:
    """A short machine: the score of a class is minus the squared distance to the mean of its examples."""

    classes = CLASSES

    def __init__(self):
        self.n = 0
        self.sums, self.sizes = [np.zeros(2), np.zeros(2)], [0, 0]

    def fresh(self):
        return Centroids()

    def learn_one(self, x, y):
        self.sums[y] += x
        self.sizes[y] += 1
        self.n += 1

    def score_many(self, X):
        means = [total / max(size, 1) for total, size in zip(self.sums, self.sizes, strict=True)]
        return np.column_stack([-((X - mean) ** 2).sum(axis=1) for mean in means])

    def scores(self, x):
        return self.score_many(np.asarray(x)[None])[0]


def sample(rng, n):
    """Return n examples in the plane whose labels are uncertain everywhere."""
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + rng.normal(size=n) > 0.7).astype(np.int64)


def schedules(size, seed):
    """Return the five schedules; E with a calibration set of `size`."""
    return {
        "A": PrefixRestart(FIRST),
        "B": Prefix(0.7, FIRST),
        "C": FreshSplit(Q, seed),
        "D": RandomAssignment(Q, seed, FIRST),
        "E": FixedCalibration(size, train=FIRST),
    }


def departures(machine, taxonomy, name, runs, steps, size):
    """Return (runs, steps) departures of class 1 in the row of the true label, and nominal variances P (1 - P)."""
    rng = np.random.default_rng(0)
    D, V = np.empty((runs, steps)), np.empty((runs, steps))
    for run in range(runs):
        model = InductiveVenn(machine, taxonomy, schedule=schedules(size, run)[name])
        if name == "E":  # from the step at which the calibration set is full
            model.learn_many(*sample(rng, FIRST + size))
        X, y = sample(rng, steps)
        block = model.replay_many(X, y)
        P = (block.counts[:, 1] + y) / (block.sizes + 1)
        D[run], V[run] = y - P, P * (1 - P)
    return D, V


def spread(S, V):
    """Return sqrt(mean S^2 / mean V) and its standard error, from sums S and nominal variances V of the runs."""
    ratio = (S**2).mean() / V.mean()
    error = (S**2 - ratio * V).std(ddof=1) / math.sqrt(len(S)) / V.mean()
    return math.sqrt(ratio), error / (2 * math.sqrt(ratio))


def by_period(D, V):
    """Return, for each run, the root of the summed squares of the periods' sums, and the summed nominal variances."""
    starts, time = [0], FIRST
    while time < D.shape[1]:
        starts.append(time)
        time *= 2
    return np.sqrt((np.add.reduceat(D, starts, axis=1) ** 2).sum(axis=1)), V.sum(axis=1)


def theory(name, steps, size, draws=50):
    """Return the expected ratio of spread to nominal spread for a single category.

    There the sum of departures is a sum over examples of weight times (label - rate): an example has weight 1 when it
    is predicted, minus its share in the frequencies that it helps to form later.
    """
    if name in ("A", "B by period", "C"):
        return 1.0  # theorems; for C about the variance only
    if name == "E":
        return math.sqrt(1 + (steps - 1) / (size + 1))
    squares, nominal, rng = [], 0.0, np.random.default_rng(1)
    for _ in range(draws if name == "D" else 1):
        weight, assigned = np.zeros(steps), rng.random(steps) < Q
        start, time = 0, 2 * FIRST
        for n in range(FIRST, steps):
            if n in (FIRST, time):
                start, time = math.floor(0.7 * n), 2 * n
            calibrates = np.flatnonzero(assigned[:n]) if name == "D" else np.arange(start, n)
            m = len(calibrates)
            weight[n] += m / (m + 1)
            weight[calibrates] -= 1 / (m + 1)
            nominal += m / (m + 1)
        squares.append((weight**2).sum())
    return math.sqrt(sum(squares) / nominal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="streams of 2000 steps, 2000 of them")
    parser.add_argument("--figure", default="runs/inductive_validity.png")
    args = parser.parse_args()
    # C trains from nothing at every step, so its streams are shorter.
    runs, steps, short_runs, short_steps, size = (2000, 2000, 1500, 200, 200) if args.large else (150, 300, 100, 50, 30)
    expected = {row: theory(row, steps, size) for row in ("A", "B by period", "B", "C", "D", "E")}
    settings = {
        "one category": (Centroids(), OneCategory(), "ABCDE"),
        "nearest centroid": (Centroids(), Argmax(), "ABCDE"),
        "least-squares SVM": (venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES), Argmax(), "C"),
    }
    curves = {}
    print("setting            schedule     streams  steps  mean departure  z      spread / nominal  expected")
    for setting, (machine, taxonomy, names) in settings.items():
        for name in names:
            n, N = (short_runs, short_steps) if name == "C" else (runs, steps)
            if setting == "least-squares SVM":
                n, N = n // 3, N // 2
            D, V = departures(machine, taxonomy, name, n, N, size)
            means = D.mean(axis=1)
            z = means.mean() / (means.std(ddof=1) / math.sqrt(n))
            found = {name: spread(D.sum(axis=1), V.sum(axis=1))}
            if name == "B":
                found = {"B by period": spread(*by_period(D, V)), "B": found["B"]}
            for row, (value, error) in found.items():
                away = abs(value - expected[row]) / error
                print(
                    f"{setting:<18} {row:<12} {n:>7} {N:>6}  {means.mean():+.5f}       {z:+5.2f}  "
                    f"{value:.3f} +- {error:.3f}    {expected[row]:.3f}: {away:.1f} errors away"
                )
            nominal = V.cumsum(axis=1).mean(axis=0)
            nominal[nominal < 0.5] = np.nan  # too early to say anything
            curves[setting, name] = np.sqrt((D.cumsum(axis=1) ** 2).mean(axis=0) / nominal)
    draw(curves, args.figure)


def draw(curves, path):
    """Draw the spread against the number of steps."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        print(error)
        return
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, setting in zip(panels, ("one category", "nearest centroid"), strict=True):
        axes.axhline(1, color="0.6", linewidth=0.8)
        for colour, name in zip(("C0", "C2", "C4", "C1", "C3"), "ABCDE", strict=True):
            curve = curves[setting, name]
            n = np.arange(1, len(curve) + 1)
            axes.plot(n, curve, color=colour, label=f"{name}  {type(schedules(1, 0)[name]).__name__}")
        axes.set(title=setting, xlabel="steps", xscale="log", yscale="log")
        axes.set_yticks([0.5, 1, 2, 3, 4], ["0.5", "1", "2", "3", "4"])
        axes.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1000"])
        axes.set_xlim(8, max(len(curve) for curve in curves.values()))
        axes.minorticks_off()
    panels[0].set_ylabel("spread of the sum of departures / nominal")
    panels[0].legend(frameon=False)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
