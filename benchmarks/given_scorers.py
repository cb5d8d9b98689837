"""How many rows a second pass through a fitted classifier in a stream, predicted and learned one after the other?

    python benchmarks/given_scorers.py

Made rows of 20 features and two classes. Boosted trees (`HistGradientBoostingClassifier`, 100 trees) in `venn.replay`
and in the loop of `venn run`: `Online` on a journal, transactions of as many messages as `venn run` takes. A linear
classifier one by one: `predict_one` then `learn_one`, in `venn.replay`, and in `Online` without a journal; and in
blocks by `replay_many`. A linear classifier of seven classes one by one, by its probabilities, by its decision values,
and by probabilities from scikit-learn itself, in a pipeline of one step. A forecaster on the one of two classes asked
about many objects at once, and one by one. Seconds of processor time (other programs may run), the fastest of some
runs, compilation excluded. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import streams
import venn
from venn.cli.options import RunTable
from venn.machines.frozen import FrozenScorer
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal

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


def online(model, examples):
    """Ask, then answer, without a journal."""
    served = venn.Online(model)
    for number, (x, y) in enumerate(examples):
        served.ask(x, number)
        served.answer(number, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000, help="rows of the fast ways")
    parser.add_argument("--alone", type=int, default=300, help="rows of boosted trees called row by row")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FITTED + args.rows, 20))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)
    labels = np.array(CLASSES)[y]
    stream = streams.from_arrays(X[FITTED:], labels[FITTED:], classes=CLASSES)
    examples = list(stream)
    few = examples[: args.alone]
    trees = FrozenScorer(HistGradientBoostingClassifier(random_state=0).fit(X[:FITTED], labels[:FITTED]))
    fitted = LogisticRegression().fit(X[:FITTED], labels[:FITTED])
    linear = FrozenScorer(fitted)
    batch = RunTable().batch
    for make in (InductiveVenn, InductiveConformal):  # compilation
        one_by_one(make(linear), few[:50])
    for scorer in (trees, linear):
        venn.replay(few[:50], InductiveVennAbers(scorer), progress=False)
        served(scorer, few[:50], batch)
        InductiveVennAbers(scorer).replay_many(X[:50], labels[:50])
        one_by_one(InductiveVenn(scorer), few[:50])
    line = {"benchmark": "given scorers", "rows": args.rows, "batch": batch}
    line["trees_replay"] = rate(len(stream), lambda: venn.replay(stream, InductiveVennAbers(trees), progress=False), 3)
    line["trees_run"] = rate(len(examples), lambda: served(trees, examples, batch), 2)
    line["linear_run"] = rate(len(examples), lambda: served(linear, examples, batch), 2)
    for name, scorer in (("trees", trees), ("linear", linear)):
        line[f"{name}_blocks"] = rate(
            args.rows, lambda scorer=scorer: InductiveVennAbers(scorer).replay_many(stream.X, labels[FITTED:]), 3
        )
    line["linear_one_by_one"] = rate(args.rows, lambda: one_by_one(InductiveVennAbers(linear), examples), 3)
    line["linear_one_by_one_venn"] = rate(args.rows, lambda: one_by_one(InductiveVenn(linear), examples), 3)
    line["linear_one_by_one_sets"] = rate(args.rows, lambda: one_by_one(InductiveConformal(linear), examples), 3)
    parts = np.digitize(X[:, 0] + rng.normal(size=len(X)), (-2, -1, -0.3, 0.3, 1, 2)).astype(str)
    seven = LogisticRegression().fit(X[:FITTED], parts[:FITTED])
    asked = list(streams.from_arrays(X[FITTED:], parts[FITTED:], classes=tuple("0123456")))[: args.rows // 10]
    for name, scorer in (
        ("probabilities", FrozenScorer(seven)),
        ("decisions", FrozenScorer(seven, method="decision_function")),
        ("scikit_learns", FrozenScorer(make_pipeline(seven))),
    ):
        one_by_one(InductiveVennAbers(scorer), asked[:50])
        line[f"seven_classes_{name}"] = rate(
            len(asked), lambda scorer=scorer: one_by_one(InductiveVennAbers(scorer), asked), 3
        )
    for name, make in (("abers", InductiveVennAbers), ("venn", InductiveVenn), ("sets", InductiveConformal)):
        line[f"linear_replay_{name}"] = rate(
            args.rows, lambda make=make: venn.replay(examples, make(linear), progress=False), 3
        )
        line[f"linear_online_{name}"] = rate(args.rows, lambda make=make: online(make(linear), examples), 3)
    forecaster = venn.Forecaster(scorer=fitted)
    for x, y in few:
        forecaster.learn_one(x, y)
    line["forecaster_many"] = rate(args.rows, lambda: forecaster.predict_many(stream.X), 3)
    line["forecaster_alone"] = rate(len(few), lambda: [forecaster.predict_one(x) for x, _ in few], 3)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
