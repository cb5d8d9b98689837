"""What does one step of online Venn-Abers cost: a query and an insertion?

    python benchmarks/abers.py --sizes 1000 10000 100000 1000000

At each calibration size, with normal scores and labels logistic in the score, it measures microseconds for `query` and
`insert` of our structure, called from Python one example at a time, on a set that was filled one example at a
time; for two refits of `sklearn.isotonic.IsotonicRegression` on the set and the new example; and for a fit and one
prediction of the venn-abers package, if it is installed. Medians over rounds, of processor time, compilation
excluded. The answers of a few steps are compared. A baseline whose step would take longer than `--longest` seconds,
judged by the previous size, is skipped: null, with the reason. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import copy
import json
import time

import numpy as np
from sklearn.isotonic import IsotonicRegression
from threadpoolctl import threadpool_limits

from venn.maps import VennAbers

try:
    from venn_abers import VennAbers as Package
except ImportError:
    Package = None


def examples(rng, n, slope):
    """n scores and labels; slope 0 is noise, the hardest: few, long blocks."""
    scores = rng.normal(size=n)
    return scores, (rng.random(n) < 1 / (1 + np.exp(-slope * scores))).astype(np.int64)


def calibrated(scores, labels):
    """The structure after one insertion at a time."""
    calibrator = VennAbers()
    for score, y in zip(scores.tolist(), labels.tolist(), strict=True):
        calibrator.insert(score, y)
    return calibrator


def our_steps(calibrator, rng, slope, rounds, steps):
    """Median microseconds of a step over rounds; the set stays near its size."""
    medians = []
    for _ in range(rounds):
        subject = copy.deepcopy(calibrator) if len(calibrator) < 100 * steps else calibrator
        scores, labels = examples(rng, steps, slope)
        arrivals = list(zip(scores.tolist(), labels.tolist(), strict=True))
        start = time.process_time()
        for score, y in arrivals:
            subject.query(score)
            subject.insert(score, y)
        medians.append((time.process_time() - start) / steps)
    return float(np.median(medians))


def two_refits(scores, labels, score):
    """p0 and p1 by two isotonic regressions."""
    bag = np.append(scores, score)
    return [IsotonicRegression().fit(bag, np.append(labels, y)).predict([score])[0] for y in (0, 1)]


def by_package(scores, labels, score):
    """p0 and p1 by the venn-abers package, which takes probabilities."""
    p, new = 1 / (1 + np.exp(-scores)), 1 / (1 + np.exp(-score))
    model = Package().fit(np.column_stack([1 - p, p]), labels)
    return model.predict_proba(np.array([[1 - new, new]]))[1][0]


def seconds(step, scores, labels, asked, repeats):
    """Median seconds of a baseline's step, after one to warm up, and its answers."""
    step(scores, labels, asked[0])
    spent, answers = [], []
    for score in asked[:repeats]:
        start = time.process_time()
        answers.append(step(scores, labels, score))
        spent.append(time.process_time() - start)
    return float(np.median(spent)), answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--slope", type=float, default=1.5, help="of the labels' logit; 0 is noise")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--longest", type=float, default=10.0, help="seconds that a baseline's step may take")
    args = parser.parse_args()
    baselines = {"two_refits": two_refits, "package": by_package}
    before: dict[str, tuple[int, float]] = {}
    rows = []
    with threadpool_limits(1):
        warm = calibrated(*examples(np.random.default_rng(1), 500, args.slope))
        our_steps(warm, np.random.default_rng(2), args.slope, 2, 100)
        for n in map(int, args.sizes):
            rng = np.random.default_rng(0)
            scores, labels = examples(rng, n, args.slope)
            calibrator = calibrated(scores, labels)
            asked = rng.normal(size=9).tolist()
            answers = [calibrator.query(score) for score in asked]
            ours = our_steps(calibrator, rng, args.slope, args.rounds, max(100, min(1000, n // 100)))
            row = {"n": n, "us_a_step": round(1e6 * ours, 2)}
            for name, step in baselines.items():
                row[f"{name}_us"] = row[f"ratio_{name}"] = None
                if step is by_package and Package is None:
                    row[f"{name}_reason"] = "venn-abers is not installed"
                    continue
                size, spent = before.get(name, (n, 0.0))
                if spent * n / size > args.longest:
                    row[f"{name}_reason"] = f"a step would take about {spent * n / size:.0f} s"
                    continue
                spent, theirs = seconds(step, scores, labels, asked, 9 if n <= 100_000 else 3)
                before[name] = (n, spent)
                row[f"{name}_us"] = round(1e6 * spent, 1)
                row[f"ratio_{name}"] = round(spent / ours)
                row[f"differs_{name}"] = float(np.abs(np.array(theirs) - answers[: len(theirs)]).max())
            rows.append(row)
    line = {"benchmark": "abers", "slope": args.slope, "rows": rows}
    line["last_vs_first"] = round(rows[-1]["us_a_step"] / rows[0]["us_a_step"], 2)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
