"""How many rows a second pass through a fitted classifier in a stream, and through fitted trees alone?

    python benchmarks/given_scorers.py

Made rows of 20 features and two classes with noise, so that forests grow deep: about 700 leaves a tree. For boosted
trees (`HistGradientBoostingClassifier`), a forest of 100 trees and a linear classifier: rows a second of
`InductiveVennAbers` one by one, by `predict_one` then `learn_one`; in the loop of `venn run`, `Online` on a journal
with a monitor, transactions of as many messages as `venn run` takes; and in blocks by `replay_many`. For both kinds of
trees also those of `FlatTrees.proba_one`, another row each time, and how many times as fast as the estimator's
`predict_proba` it is, for one row and for a block of 1000. Processor time, the fastest of three runs, compilation
excluded. Prints one JSON line.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from workload import command, command_options, one_by_one, rate

import streams
import venn
from venn.cli.options import RunTable
from venn.machines.trees import FlatTrees

CLASSES, FITTED = ("no", "yes"), 5000
KINDS = {
    "trees": HistGradientBoostingClassifier(random_state=0),
    "forest": RandomForestClassifier(random_state=0),
    "linear": LogisticRegression(),
}


def served(scorer, X, y):
    """The loop of `venn run`: questions with their labels, so many messages in a transaction."""
    some = RunTable().batch // 2
    with tempfile.TemporaryDirectory() as folder:
        monitor = venn.Monitor(CLASSES)
        with venn.Online(venn.InductiveVennAbers(scorer), monitor, Path(folder, "run.db")) as online:
            for start in range(0, len(y), some):
                questions = [streams.labels.Question(start + i, x) for i, x in enumerate(X[start : start + some])]
                with online.transaction():
                    for question, label in zip(questions, y[start : start + some], strict=True):
                        online.ask(question.x, question.id)
                        online.answer(question.id, label)


def walked(estimator, X, alone):
    """Return rows a second of trees by themselves, and how many times as fast as their estimator they are."""
    trees, block = FlatTrees.of(estimator), X[:1000]
    trees.proba_one(X[0])
    one = rate(len(X), lambda: [trees.proba_one(x) for x in X])
    theirs = rate(alone, lambda: [estimator.predict_proba(x[None]) for x in X[:alone]])
    many, all_theirs = rate(1000, lambda: trees.proba(block), 5), rate(1000, lambda: estimator.predict_proba(block), 5)
    assert np.array_equal(trees.proba(block), estimator.predict_proba(block))
    return {"one": one, "ratio_one": round(one / theirs, 2), "ratio_block": round(many / all_theirs, 2)}


@command(threads=None)
def main():
    args = command_options(__doc__, rows=20_000, alone=100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FITTED + args.rows, 20))
    y = np.array(CLASSES)[(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)]
    rows, labels = X[FITTED:], y[FITTED:].tolist()
    line = {"benchmark": "given scorers", "rows": args.rows}
    for name, classifier in KINDS.items():
        scorer = venn.FrozenScorer(classifier.fit(X[:FITTED], y[:FITTED]))
        ways = {
            "one by one": lambda n, scorer=scorer: one_by_one(venn.InductiveVennAbers(scorer), rows[:n], labels[:n]),
            "run": lambda n, scorer=scorer: served(scorer, rows[:n], labels[:n]),
            "blocks": lambda n, scorer=scorer: venn.InductiveVennAbers(scorer).replay_many(rows[:n], labels[:n]),
        }
        for way, work in ways.items():
            work(50)  # compilation
            line[f"{name}, {way}"] = rate(args.rows, lambda work=work: work(args.rows))
        if name != "linear":
            line[name] = walked(classifier, rows, args.alone)
    return line
