"""How many examples a second does an inductive Venn predictor replay on Covertype, and does memory stay flat?

    STREAMS_DATA=folder python benchmarks/inductive.py

581 012 examples, 54 features, 7 classes, shuffled; a frozen linear scorer (LinearSVC, 5000 rows) and a frozen RBF
scorer (SVC, 1000 rows), each predicting and then counting all other rows in turn: in blocks by
`replay_many`, at some of them one by one. Beside them what a user would write: a loop over
scikit-learn's decision_function and a dict of counts, timed on a sample; and the same with all scores computed
in one call. The lower bounds of both ways are compared. Processor time of one thread, the fastest of three
replays of the linear scorer, compilation excluded. Prints one JSON line.

A second line: the inductive conformal predictor by the same linear scorer, p-values of all labels by the margin; for
comparison a loop with all scores computed in one call and a sorted list of nonconformity, by `bisect`.
"""

from __future__ import annotations

import argparse
import bisect
import json
import time

import numpy as np
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits
from workload import resident_mb

import streams
from venn.machines.frozen import FrozenScorer
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_conformal import InductiveConformal


def replayed(model, X, labels, block):
    """Replay in blocks; return seconds, lower bounds, hits, and resident memory at 0, 10, 50, 100 % and at most."""
    lower, hits, seconds = np.empty(len(X)), 0, 0.0
    memory, marks, most = [], [0.0, 0.1, 0.5], resident_mb()
    for start in range(0, len(X), block):
        if marks and start >= marks[0] * len(X):
            memory.append(resident_mb())
            marks.pop(0)
        rows = slice(start, start + block)
        begin = time.process_time()
        said = model.replay_many(X[rows], labels[rows])
        lower[rows] = said.lower
        seconds += time.process_time() - begin
        hits += sum(map(str.__eq__, said.labels, labels[rows]))
        most = max(most, resident_mb())
    return seconds, lower, hits / len(X), [round(m, 1) for m in [*memory, resident_mb(), most]]


def one_by_one(model, X, labels):
    """Seconds of the loop over predict_one and learn_one."""
    seconds = time.process_time()
    for x, y in zip(X, labels, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    return time.process_time() - seconds


def by_hand(estimator, X, labels, scored_first):
    """Seconds and lower bounds of a user's own code."""
    counts, lower = {}, []
    seconds = time.process_time()
    scores = estimator.decision_function(X) if scored_first else None
    for i, (x, y) in enumerate(zip(X, labels, strict=True)):
        row = scores[i] if scored_first else estimator.decision_function(x[None])[0]
        category = estimator.classes_[row.argmax()]
        beside = counts.setdefault(category, dict.fromkeys(estimator.classes_, 0))
        size = sum(beside.values()) + 1
        interval = beside[category] / size, (beside[category] + 1) / size
        lower.append(interval[0])
        beside[y] += 1
    return time.process_time() - seconds, np.array(lower)


def set_line(stream, labels, train, sample, block):
    """The line of the conformal predictor."""
    estimator = LinearSVC(random_state=0).fit(stream.X[:train], labels[:train])
    scorer = FrozenScorer(estimator, stream.classes)
    X, own = stream.X[train:], labels[train:]
    codes = stream.y[train:]
    InductiveConformal(scorer).replay_many(X[:9], own[:9])  # compilation
    line = {"benchmark": "inductive conformal", "examples": len(X), "block": block}
    runs = []
    for _ in range(3):
        model, p_values, seconds, memory = InductiveConformal(scorer), [], 0.0, [resident_mb()]
        for start in range(0, len(X), block):
            rows = slice(start, start + block)
            begin = time.process_time()
            said = model.replay_many(X[rows], own[rows])
            seconds += time.process_time() - begin
            p_values.append(said.p_values[np.arange(len(said)), codes[rows]])
        memory.append(resident_mb())
        runs.append((seconds, np.concatenate(p_values), memory))
    seconds, p, memory = min(runs, key=lambda run: run[0])
    line["examples_a_second"] = round(len(X) / seconds)
    line["all_runs_a_second"] = [round(len(X) / run[0]) for run in runs]
    line["one_by_one_a_second"] = round(sample / one_by_one(InductiveConformal(scorer), X[:sample], own[:sample]))
    first = min(100_000, len(X))  # by hand each insertion moves half of all
    hand, theirs = ranked_by_hand(estimator, X[:first], codes[:first])
    plain = InductiveConformal(scorer, smoothed=False).replay_many(X[:first], own[:first]).p_values
    line["by_hand_scored_first_a_second"] = round(first / hand)
    line["ratio_scored_first"] = round(len(X) / seconds * hand / first, 1)
    line["plain_p_values_differ_from_by_hand"] = int((abs(plain - theirs) > 1e-12).any(axis=1).sum())
    line["error_rates"] = {str(level): round(float((p <= level).mean()), 5) for level in (0.01, 0.05, 0.1, 0.2)}
    line["resident_mb_before_after"] = [round(m, 1) for m in memory]
    return line


def ranked_by_hand(estimator, X, codes):
    """Seconds and plain p-values of a user's own code."""
    known, p_values = [], []
    seconds = time.process_time()
    scores = estimator.decision_function(X)
    others = np.stack([np.delete(scores, k, axis=1).max(axis=1) for k in range(scores.shape[1])], axis=1)
    nonconformity = np.rint((others - scores) * 1e6 + 0.2718281828)
    for row, y in zip(nonconformity.tolist(), codes.tolist(), strict=True):
        p_values.append([(len(known) - bisect.bisect_left(known, a) + 1) / (len(known) + 1) for a in row])
        bisect.insort(known, row[y])
    return time.process_time() - seconds, np.array(p_values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--block", type=int, default=4096, help="examples in a block")
    parser.add_argument("--sample", type=int, default=5000, help="examples of the loops by hand and one by one")
    parser.add_argument("--rbf", type=int, default=581_012, help="examples that the RBF scorer replays, at most")
    args = parser.parse_args()
    seconds = time.perf_counter()
    stream = streams.load("covtype", shuffle=0)
    labels = [stream.classes[k] for k in stream.y]
    line = {"benchmark": "inductive", "n": len(stream), "d": stream.X.shape[1], "reading_s": None, "block": args.block}
    line["reading_s"] = round(time.perf_counter() - seconds, 1)
    scorers = {
        "linear": (LinearSVC(random_state=0), 5000, len(stream)),
        "rbf": (SVC(gamma=0.02, C=10), 1000, args.rbf),
    }
    with threadpool_limits(1):
        for name, (estimator, train, total) in scorers.items():
            estimator.fit(stream.X[:train], labels[:train])
            rows = slice(train, min(len(stream), train + total))
            X, own = stream.X[rows], labels[rows]
            InductiveVenn(FrozenScorer(estimator, stream.classes)).replay_many(X[:9], own[:9])  # compilation
            runs = [
                replayed(InductiveVenn(FrozenScorer(estimator, stream.classes)), X, own, args.block)
                for _ in range(3 if name == "linear" else 1)
            ]
            spent, lower, accuracy, memory = min(runs, key=lambda run: run[0])
            sample = min(args.sample, len(X))
            single = one_by_one(InductiveVenn(FrozenScorer(estimator, stream.classes)), X[:sample], own[:sample])
            hand, theirs = by_hand(estimator, X[:sample], own[:sample], scored_first=False)
            batch, _ = by_hand(estimator, X[:sample], own[:sample], scored_first=True)
            line[name] = {
                "examples": len(X),
                "examples_a_second": round(len(X) / spent),
                "all_runs_a_second": [round(len(X) / run[0]) for run in runs],
                "one_by_one_a_second": round(sample / single),
                "by_hand_a_second": round(sample / hand),
                "by_hand_scored_first_a_second": round(sample / batch),
                "ratio_by_hand": round(len(X) / spent * hand / sample, 1),
                "ratio_scored_first": round(len(X) / spent * batch / sample, 1),
                "accuracy": round(accuracy, 4),
                "mean_lower": round(float(lower.mean()), 4),
                "lower_differs_from_by_hand": int((abs(lower[:sample] - theirs) > 1e-12).sum()),
                "resident_mb_0_10_50_100_most": memory,
            }
        print(json.dumps(line))
        print(json.dumps(set_line(stream, labels, 5000, min(args.sample, len(labels) - 5000), args.block)))


if __name__ == "__main__":
    main()
