"""How many rows a second does a forecaster take in blocks, and to the last bit as one by one?

    python benchmarks/blocks.py [--only linear forest own numbers regressor]

Made rows of 10 columns and two classes, with a linear classifier and a forest of 100 trees, fitted to 2000 other rows.
First the same 6000 rows, whose labels are exchanged after 3000, one by one and in blocks of 1, 7, 64 and 1000, and from
a file in between: outlooks, alarms, verdicts and the bytes of a checkpoint must be the same, across fits of the pool
and alarms at which it begins anew. Then rows a second after 2500 rows: `predict_one` and `learn_one`, `replay_many` in
blocks of 1000, what a practitioner does (`predict_proba` of a block, then isotonic regression of the latest 5000 rows
every 1000), and the parts of a block alone, without what holds them together. Seconds of processor time (other programs
may run), the fastest of some runs in turn, compilation excluded. "own" is a forecaster with machines of its own, late:
trained at 300, 420, ... examples, the last time at 1613; "numbers" is the same of numbers, "regressor" one around a
forest of regression trees. Prints one JSON line; exits with 1 if bits differ.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from workload import command_options
from workload import one_by_one as alone

import venn
from venn.online import checkpoint

D, FITTED, BEFORE, SIZE, RUNS = 10, 2000, 2500, 1000, 5
PARTS = ("proba", "intervals", "p_values")
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


def one_by_one(model, X, y):
    """What is said of each row before it is learned."""
    said = []
    for x, label in zip(X, y, strict=True):
        said.append(model.predict_one(x))
        model.learn_one(x, label)
    return parts_of(said)


def in_blocks(model, X, y, size):
    """The same in blocks."""
    said = [model.replay_many(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]
    if "distribution" in said[0]:
        return parts_of([each.one(i) for each in said for i in range(len(each["distribution"]))])
    return [np.concatenate([getattr(one, part) for one in said]) for part in PARTS]


def parts_of(said):
    """What outlooks say, in arrays; of numbers intervals at .1, medians and means."""
    if said and "distribution" in said[0]:
        return [np.array([(*one.interval(0.1), one.median, one.mean) for one in said])]
    return [np.array([getattr(one, part) for one in said]) for part in PARTS]


def left(model):
    """What a model leaves: its file, alarms, verdict, and when it began anew."""
    return checkpoint.pack(model), [one.alarms for one in model.monitors.values()], str(model.verdict()), model._before


def same(make, known, rows, n, sizes):
    """Whether blocks of several sizes, from a file in between, say and leave the same; and whether it began anew."""
    X, y = rows(n, 2, n // 2)
    alone = make()
    said, found = one_by_one(alone, X, y), []
    for size in sizes:
        model = make()
        parts = in_blocks(model, X[: n // 3], y[: n // 3], size)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.save(Path(folder, "model"), model)
            model = checkpoint.load(Path(folder, "model"), known)
        further = in_blocks(model, X[n // 3 :], y[n // 3 :], size)
        each = [np.concatenate(pair) for pair in zip(parts, further, strict=True)]
        found.append(all(map(np.array_equal, said, each)) and left(alone) == left(model))
    return all(found), alone._before > 0


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
            "one by one": lambda: alone(models["one by one"], X[:300], y[:300]),  # noqa: B023 - called below
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


def measured(make, known, rows, n, sizes, estimator=None):
    """Whether bits are the same, whether it began anew, rows a second, and how many times as fast blocks are."""
    bits, anew = same(make, known, rows, n, sizes)
    found = rates(make, rows, known, estimator)
    times = round(found["blocks"] / found["one by one"], 1)
    return {"same bits": bits, "began anew": anew, "rows a second": found, "over one by one": times}


def case(name):
    """The figures of a case."""
    if name in ("own", "numbers"):
        labels, data = (float, numbers) if name == "numbers" else (["no", "yes"], rows)
        late = {"transductive": 300, "last": 1700}
        return measured(lambda: venn.Forecaster(labels, **late), [], data, 1000, (7, 64, 1000))
    if name == "regressor":
        scorer = RandomForestRegressor(100, random_state=0).fit(*numbers(FITTED, 1))
        return measured(lambda: venn.Forecaster(scorer=scorer), [scorer], numbers, 2000, (1, 7, 64, 1000))
    linear = LogisticRegression() if name == "linear" else RandomForestClassifier(100, random_state=0)
    scorer = linear.fit(*rows(FITTED, 1))
    return measured(lambda: venn.Forecaster(scorer=scorer), [scorer], rows, 6000, (1, 7, 64, 1000), scorer)


def main():
    found = {name: case(name) for name in command_options(__doc__, only=CASES).only}
    print(json.dumps({"blocks": found}))
    return 0 if all(one["same bits"] and one["began anew"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
