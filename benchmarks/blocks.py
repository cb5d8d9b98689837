"""How many rows a second does a forecaster take in blocks? That it says the same to the last bit is tested.

    python benchmarks/blocks.py [--only linear forest own numbers regressor]

Made rows of 10 columns and two classes, with a linear classifier and a forest of 100 trees, fitted to 2000 other rows.
Rows a second after 2500 rows: `predict_one` and `learn_one`, `replay_many` in blocks of 1000, what a practitioner does
(`predict_proba` of a block, then isotonic regression of the latest 5000 rows every 1000), and the parts of a block
alone, without what holds them together. Seconds of processor time (other programs may run), the fastest of some runs in
turn, compilation excluded. "own" is a forecaster with machines of its own, late: trained at 300, 420, ... examples, the
last time at 1613; "numbers" is the same of numbers, "regressor" one around a forest of regression trees. Prints one
JSON line.
"""

import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from workload import command, command_options, one_by_one

import venn
from venn.online import checkpoint

D, FITTED, BEFORE, SIZE, RUNS = 10, 2000, 2500, 1000, 5
CASES = ("linear", "forest", "own", "numbers", "regressor")


def numbers(n, seed, change=10**9):
    """Rows of D columns, and numbers that are larger from some row on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, (3 * X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=n) + 4 * (np.arange(n) >= change)).tolist()


def rows(n, seed, change=10**9):
    """Rows of D columns, and labels that are exchanged from some row on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    yes = (X[:, 0] + X[:, 1] / 2 + rng.normal(size=n) > 0) != (np.arange(n) >= change)
    return X, np.where(yes, "yes", "no").tolist()


def practitioner(estimator, blocks, scores, labels):
    """Probabilities of each block by isotonic regression of the latest rows."""
    for X, y in blocks:
        new = estimator.predict_proba(X)[:, 1]
        calibrated = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
        calibrated.predict(new)
        scores, labels = np.append(scores, new)[-5000:], np.append(labels, np.array(y) == "yes")[-5000:]


def parts_alone(model, X, y):
    """The work in a block, part by part."""
    intervals, sets, mixture = model["intervals"], model["sets"], model["forecast"]
    codes = model.space.encode_many(y)
    scores = intervals.scores_alone(X)
    said = intervals.replay_scored(X, codes, scores), sets.replay_scored(X, codes, scores)
    mixture.weigh_many(codes, mixture.heard_many([said[0], *(one.of_scores(scores) for one in mixture.experts[1:])]))
    for name, block in zip(("intervals", "sets"), said, strict=True):
        model.monitors[name].update_many(block, y)


def rates(make, rows, known, estimator=None):
    """Rows a second by each way, the largest of some runs in turn; without a given classifier by two ways."""
    models = {way: make() for way in ("one by one", "blocks", "parts")}
    models["one by one"].learn_many(*rows(BEFORE, 3))
    packed = checkpoint.pack(models["one by one"])
    models |= {way: checkpoint.unpack(packed, known) for way in ("blocks", "parts")}
    if estimator is not None:
        old = rows(5000, 4)
        kept = estimator.predict_proba(old[0])[:, 1], np.array(old[1]) == "yes"
    best = {}
    for run in range(RUNS):
        X, y = rows(SIZE, 5 + run)
        ways = {
            "one by one": lambda: one_by_one(models["one by one"], X[:300], y[:300]),  # noqa: B023 - called below
            "blocks": lambda: models["blocks"].replay_many(X, y),  # noqa: B023
        }
        if estimator is not None:
            ways |= {
                "practitioner": lambda: practitioner(estimator, [(X, y)], *kept),  # noqa: B023
                "parts": lambda: parts_alone(models["parts"], X, y),  # noqa: B023
            }
        for way, work in ways.items():
            start = time.process_time()
            work()
            seconds = (time.process_time() - start) / (300 if way == "one by one" else SIZE)
            best[way] = min(best.get(way, np.inf), seconds)
    return {way: round(1 / seconds) for way, seconds in best.items()}


def case(name):
    """Rows a second of a case, and how many times as fast blocks are."""
    if name in ("own", "numbers"):
        labels, data = (float, numbers) if name == "numbers" else (["no", "yes"], rows)
        found = rates(lambda: venn.Forecaster(labels, transductive=300, last=1700), data, [])
    elif name == "regressor":
        scorer = RandomForestRegressor(100, random_state=0).fit(*numbers(FITTED, 1))
        found = rates(lambda: venn.Forecaster(scorer=scorer), numbers, [scorer])
    else:
        scorer = LogisticRegression() if name == "linear" else RandomForestClassifier(100, random_state=0)
        scorer.fit(*rows(FITTED, 1))
        found = rates(lambda: venn.Forecaster(scorer=scorer), rows, [scorer], scorer)
    return {"rows a second": found, "over one by one": round(found["blocks"] / found["one by one"], 1)}


@command(threads=None)
def main():
    return {"blocks": {name: case(name) for name in command_options(__doc__, only=CASES).only}}
