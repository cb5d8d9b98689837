"""What does one step of online Venn-Abers cost, a query and an insertion, beside two isotonic regressions?

    python benchmarks/abers.py

At 10 000 examples, with normal scores and labels logistic in the score: microseconds of `query` and `insert` of our
structure, called from Python one example at a time; and of two refits of `sklearn.isotonic.IsotonicRegression` on the
set and the new example. Medians of processor time, compilation excluded. The answers of a few steps are compared.
Prints one JSON line.
"""

import time

import numpy as np
from sklearn.isotonic import IsotonicRegression
from workload import command

from venn.maps import VennAbers

N, ROUNDS, STEPS, ASKED = 10_000, 15, 100, 9


def examples(rng, n):
    scores = rng.normal(size=n)
    return scores, (rng.random(n) < 1 / (1 + np.exp(-1.5 * scores))).astype(np.int64)


def our_step(calibrator, rng):
    """Return the median seconds of a step; the set stays near its size."""
    medians = []
    for _ in range(ROUNDS):
        arrivals = list(zip(*(values.tolist() for values in examples(rng, STEPS)), strict=True))
        start = time.process_time()
        for score, y in arrivals:
            calibrator.query(score)
            calibrator.insert(score, y)
        medians.append((time.process_time() - start) / STEPS)
    return float(np.median(medians))


def two_refits(scores, labels, score):
    """Return p0 and p1 by two isotonic regressions."""
    bag = np.append(scores, score)
    return [IsotonicRegression().fit(bag, np.append(labels, y)).predict([score])[0] for y in (0, 1)]


@command()
def main():
    rng, calibrator = np.random.default_rng(0), VennAbers()
    scores, labels = examples(rng, N)
    for score, y in zip(scores.tolist(), labels.tolist(), strict=True):
        calibrator.insert(score, y)
    asked, spent, off = rng.normal(size=ASKED).tolist(), [], 0.0
    two_refits(scores, labels, asked[0])
    for score in asked:
        start = time.process_time()
        theirs = two_refits(scores, labels, score)
        spent.append(time.process_time() - start)
        off = max(off, float(np.abs(np.array(theirs) - calibrator.query(score)).max()))
    ours = our_step(calibrator, rng)
    line = {"benchmark": "abers", "us_a_step": round(1e6 * ours, 2), "ratio": round(np.median(spent) / ours)}
    return line | {"largest_difference": off}
