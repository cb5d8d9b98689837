"""How many rows a second go through fitted trees, one at a time and in blocks, walked and by scikit-learn itself?

    python benchmarks/trees.py

Made rows of 20 features and two classes with noise, so that forests grow deep: about 700 leaves a tree. Each kind of
trees: rows a second by `FlatTrees.proba_one`, another row each time, and by the estimator's `predict_proba` for one
row; the same in a block of 1000 rows. Then a forest and boosted trees of 100 in `InductiveVennAbers`: `predict_one` and
`learn_one` in turn; and in the loop of `venn run`, on a journal with a monitor. Seconds of processor time (other
programs may run), the fastest of some runs, compilation excluded. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from given_scorers import one_by_one, rate, served
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from venn.cli.options import RunTable
from venn.machines.frozen import FrozenScorer
from venn.machines.trees import FlatTrees
from venn.predictors.inductive_abers import InductiveVennAbers

CLASSES = ("no", "yes")
FITTED = 5000
KINDS = {
    "forest": RandomForestClassifier(100, random_state=0),
    "forest of 300": RandomForestClassifier(300, random_state=0),
    "extra trees": ExtraTreesClassifier(100, random_state=0),
    "gradient boosting": GradientBoostingClassifier(random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(random_state=0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the fast ways")
    parser.add_argument("--alone", type=int, default=100, help="rows that scikit-learn is asked about one by one")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FITTED + args.rows, 20))
    labels = np.array(CLASSES)[(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)]
    rows, block = X[FITTED:], X[FITTED : FITTED + 1000]
    examples = list(zip(list(rows), labels[FITTED:].tolist(), strict=True))
    line = {"benchmark": "trees", "kinds": {}}
    for name, estimator in KINDS.items():
        estimator.fit(X[:FITTED], labels[:FITTED])
        trees = FlatTrees.of(estimator)
        line["kinds"][name] = {
            "one": rate(len(rows), lambda trees=trees: [trees.proba_one(x) for x in rows], 3),
            "one_scikit_learn": rate(
                args.alone, lambda of=estimator: [of.predict_proba(x[None]) for x in rows[: args.alone]], 3
            ),
            "block": rate(len(block), lambda trees=trees: trees.proba(block), 5),
            "block_scikit_learn": rate(len(block), lambda of=estimator: of.predict_proba(block), 5),
            "largest_difference": float(np.abs(trees.proba(rows) - estimator.predict_proba(rows)).max()),
        }
        for way in ("one", "block"):
            kind = line["kinds"][name]
            kind[f"ratio_{way}"] = round(kind[way] / kind[f"{way}_scikit_learn"], 2)
    batch = RunTable().batch
    for name in ("forest", "histogram boosting"):
        scorer = FrozenScorer(KINDS[name])
        one_by_one(InductiveVennAbers(scorer), examples[:50])
        line[f"{name}_one_by_one"] = rate(
            len(examples), lambda scorer=scorer: one_by_one(InductiveVennAbers(scorer), examples), 3
        )
        served(scorer, examples[:50], batch)
        line[f"{name}_run"] = rate(len(examples), lambda scorer=scorer: served(scorer, examples, batch), 2)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
