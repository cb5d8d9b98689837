"""How many examples a second does an inductive Venn predictor replay on Covertype, beside counting by hand?

    STREAMS_DATA=folder python benchmarks/inductive.py [--rows 581012]

581 012 examples, 54 features, 7 classes, shuffled; a frozen linear scorer (LinearSVC, 5000 rows), predicting and then
counting all other rows in turn, in blocks by `replay_many`. Beside it what a user would write: all scores computed in
one call, a loop and a dict of counts, timed on 5000 rows. The lower bounds of both ways are compared. Processor time of
one thread, the fastest of three replays, compilation excluded. Prints one JSON line.
"""

import time

import numpy as np
from sklearn.svm import LinearSVC
from workload import command, command_options

import streams
import venn

TRAINED, BLOCK, SAMPLE = 5000, 4096, 5000


def replayed(model, X, labels):
    """Replay in blocks; return seconds and lower bounds."""
    lower, seconds = np.empty(len(X)), time.process_time()
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        lower[rows] = model.replay_many(X[rows], labels[rows]).lower
    return time.process_time() - seconds, lower


def by_hand(estimator, X, labels):
    """Return seconds and lower bounds of a user's own code."""
    counts, lower = {}, []
    seconds = time.process_time()
    scores = estimator.decision_function(X)
    for row, y in zip(scores, labels, strict=True):
        category = estimator.classes_[row.argmax()]
        beside = counts.setdefault(category, dict.fromkeys(estimator.classes_, 0))
        size = sum(beside.values()) + 1
        interval = beside[category] / size, (beside[category] + 1) / size
        lower.append(interval[0])
        beside[y] += 1
    return time.process_time() - seconds, np.array(lower)


@command()
def main():
    args = command_options(__doc__, rows=581_012)
    stream = streams.load("covtype", shuffle=0).take(args.rows)
    labels = [stream.classes[k] for k in stream.y]
    estimator = LinearSVC(random_state=0).fit(stream.X[:TRAINED], labels[:TRAINED])
    scorer, X, own = venn.FrozenScorer(estimator, stream.classes), stream.X[TRAINED:], labels[TRAINED:]
    venn.InductiveVenn(scorer).replay_many(X[:9], own[:9])  # compilation
    seconds, lower = min((replayed(venn.InductiveVenn(scorer), X, own) for _ in range(3)), key=lambda run: run[0])
    sample = min(SAMPLE, len(X))
    hand, theirs = by_hand(estimator, X[:sample], own[:sample])
    assert np.allclose(lower[:sample], theirs, atol=1e-12)
    ratio = round(len(X) / seconds * hand / sample, 1)
    return {"benchmark": "inductive", "examples_a_second": round(len(X) / seconds), "ratio": ratio}
