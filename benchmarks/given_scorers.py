"""How many rows a second pass through a fitted classifier in a stream, predicted and learned one after the other?

    python benchmarks/given_scorers.py

Made rows of 20 features and two classes, `InductiveVennAbers` on boosted trees (`HistGradientBoostingClassifier`, 100
trees), on a forest of 100 trees and on a linear classifier: one by one by `predict_one` then `learn_one`; in the loop
of `venn run`, `Online` on a journal with a monitor, transactions of as many messages as `venn run` takes; and in blocks
by `replay_many`. Seconds of processor time (other programs may run), the fastest of some runs, compilation excluded.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import streams
import venn
from venn.cli.options import RunTable
from venn.machines.frozen import FrozenScorer
from venn.predictors.inductive_abers import InductiveVennAbers

CLASSES = ("no", "yes")
FITTED = 5000


def rate(n, work, runs=1):
    """Rows a second, the largest of some runs."""
    best = np.inf
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return round(n / best)


def served(scorer, examples, batch):
    """The loop of `venn run`: questions with their labels, so many messages in a transaction."""
    with tempfile.TemporaryDirectory() as folder:
        monitor = venn.Monitor(CLASSES)
        with venn.Online(InductiveVennAbers(scorer), monitor, Path(folder, "run.db")) as online:
            for start in range(0, len(examples), batch // 2):
                part = examples[start : start + batch // 2]
                questions = [streams.labels.Question(start + i, x) for i, (x, _) in enumerate(part)]
                with online.transaction():
                    for question, (_, y) in zip(questions, part, strict=True):
                        online.ask(question.x, question.id)
                        online.answer(question.id, y)


def one_by_one(model, examples):
    """Predict, then learn."""
    for x, y in examples:
        model.predict_one(x)
        model.learn_one(x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FITTED + args.rows, 20))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)
    labels = np.array(CLASSES)[y]
    stream = streams.from_arrays(X[FITTED:], labels[FITTED:], classes=CLASSES)
    examples, batch = list(stream), RunTable().batch
    line = {"benchmark": "given scorers", "rows": args.rows, "batch": batch}
    for name, classifier in (
        ("trees", HistGradientBoostingClassifier(random_state=0)),
        ("forest", RandomForestClassifier(random_state=0)),
        ("linear", LogisticRegression()),
    ):
        scorer = FrozenScorer(classifier.fit(X[:FITTED], labels[:FITTED]))
        ways = {
            "one by one": lambda rows, scorer=scorer: one_by_one(InductiveVennAbers(scorer), examples[:rows]),
            "run": lambda rows, scorer=scorer: served(scorer, examples[:rows], batch),
            "blocks": lambda rows, scorer=scorer: InductiveVennAbers(scorer).replay_many(
                stream.X[:rows], labels[FITTED : FITTED + rows]
            ),
        }
        for way, work in ways.items():
            work(50)  # compilation
            line[f"{name}, {way}"] = rate(args.rows, lambda work=work: work(args.rows), 3)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
