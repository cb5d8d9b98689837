"""What does an online step of each scaler cost, against refitting its scikit-learn counterpart?

    python benchmarks/scalers.py --n 1000 10000

A step fits the maps to all examples learned, whose scores have all moved a little, and maps one new object's scores.
Ours is the `ScoreCalibrator` with each map; `--classes` machines, one map for each. Against it, what a user would do
with scikit-learn: fit a calibrator of each class anew on the same scores. Not every map has a counterpart there:

    Platt                       sklearn.calibration's sigmoid (the one in CalibratedClassifierCV)
    isotonic                    IsotonicRegression
    Bin-10, Bin-50              KBinsDiscretizer (uniform or quantile) and counts by numpy
    beta calibration            LogisticRegression without penalty on ln s and -ln(1 - s)
    temperature                 scipy's minimize_scalar over the log loss, which scikit-learn's uses

Scores are normal about the label, with `--move` of noise at each step. Each contender runs `--steps` steps after one
that is not counted (compilation); the median counts. Times are of the processor, one thread. Prints one JSON line for
each n, microseconds a step of all classes together.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import KBinsDiscretizer
from threadpoolctl import threadpool_limits

import venn
from venn.machines.machine import Bag


class Answer:
    """The machine's answer about a new object."""

    def __init__(self, test_scores):
        self.test_scores = test_scores


class MovingScores:
    """A machine with given scores: normal about the label, all moved at each step."""

    def __init__(self, n, classes, move, seed):
        self.classes = tuple(range(classes))
        self.rng = np.random.default_rng(seed)
        self.move = move
        self.y = self.rng.integers(0, classes, n)
        self.scores = self.rng.normal(size=(classes, n)) + 2 * (self.y == np.arange(classes)[:, None]) - 1
        self.at = self.rng.normal(size=classes)

    @property
    def n(self):
        return len(self.y)

    learned = n

    def expect_leave_one_out(self):
        """Do nothing: scores are given."""

    @property
    def bag(self):
        return Bag(self.scores, (self.y[:, None] == np.arange(len(self.classes))).astype(np.int64))

    def hypotheses(self, x):
        return Answer(self.at)

    def learn_one(self, x, y):
        new = self.rng.normal(size=(len(self.classes), 1))
        self.scores = np.append(self.scores, new, axis=1)
        self.scores += self.move * self.rng.normal(size=self.scores.shape)
        self.y = np.append(self.y, y)


def by_class(fit_and_map):
    """Return a function that fits and maps each class against all others."""

    def step(scores, y, at):
        return np.array([fit_and_map(f, y == k, at[k : k + 1])[0] for k, f in enumerate(scores)])

    return step


def sigmoid(f, positive, at):
    return _SigmoidCalibration().fit(f, positive).predict(at)


def isotonic(f, positive, at):
    return IsotonicRegression(out_of_bounds="clip").fit(f, positive).predict(at)


def bins(number, strategy):
    def count(f, positive, at):
        options = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" and NEW_BINS else {}
        bins = KBinsDiscretizer(number, encode="ordinal", strategy=strategy, subsample=None, **options)
        where = bins.fit_transform(f[:, None])[:, 0].astype(int)
        rates = np.bincount(where, positive, number) / np.maximum(np.bincount(where, minlength=number), 1)
        return rates[bins.transform(at[:, None])[:, 0].astype(int)]

    return count


NEW_BINS = "quantile_method" in KBinsDiscretizer().get_params()


def beta(f, positive, at):
    def features(f):
        return np.column_stack([-np.logaddexp(0, -2 * f), np.logaddexp(0, 2 * f)])

    return LogisticRegression(C=np.inf).fit(features(f), positive).predict_proba(features(at))[:, 1]


def temperature(scores, y, at):
    def loss(log_inverse):
        return -log_softmax(np.exp(log_inverse) * scores.T, axis=1)[np.arange(len(y)), y].mean()

    found = minimize_scalar(loss, bounds=(-10, 10), options={"xatol": 64 * np.finfo(float).eps})
    return np.exp(log_softmax(np.exp(found.x) * at))


SCALERS = {
    "Platt": (venn.maps.Platt(), by_class(sigmoid)),
    "isotonic": (venn.maps.Isotonic(), by_class(isotonic)),
    "Bin-10": (venn.maps.Binning(10), by_class(bins(10, "uniform"))),
    "Bin-50": (venn.maps.Binning(50), by_class(bins(50, "uniform"))),
    "Bin-10, equal frequency": (venn.maps.Binning(10, venn.maps.EqualFrequency()), by_class(bins(10, "quantile"))),
    "beta calibration": (venn.maps.BetaCalibration(), by_class(beta)),
    "temperature": (venn.maps.Temperature(), temperature),
}


def seconds_of(step, repeat):
    """Return the median processor seconds of a step, the first one not counted."""
    times = []
    for _ in range(repeat + 1):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return median(times[1:])


def measure(name, n, classes, move, steps):
    """Return seconds of our step and of theirs, and the distance of the two answers."""
    score_map, theirs = SCALERS[name]
    machine = MovingScores(n, classes, move, seed=0)
    scaler = venn.ScoreCalibrator(machine, score_map)
    spent = 0.0

    def ours():
        nonlocal spent
        machine.learn_one(None, 0)
        start = time.process_time()
        scaler.commit(None, 0)
        scaler.predict_one(None)
        spent = time.process_time() - start

    times = []
    for _ in range(steps + 1):
        ours()
        times.append(spent)
    mine = median(times[1:])
    found = None

    def refit():
        nonlocal found
        found = theirs(machine.scores, machine.y, machine.at)

    other = seconds_of(refit, max(3, min(steps, 15)))
    return mine, other, float(abs(found / found.sum() - scaler.predict_one(None).proba).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 10_000], help="examples learned")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--move", type=float, default=0.001, help="standard deviation of a score's move in a step")
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    with threadpool_limits(1):
        for n in args.n:
            line = {"n": n, "classes": args.classes, "move": args.move, "steps": args.steps}
            for name in SCALERS:
                mine, other, apart = measure(name, n, args.classes, args.move, args.steps)
                line[name] = {"microseconds": round(1e6 * mine, 1)}
                line[name] |= {
                    "refit_microseconds": round(1e6 * other, 1), "ratio": round(other / mine, 1),
                    "apart": float(f"{apart:.1e}"),
                }  # fmt: skip
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
