"""Of more than two classes, which scores should Venn-Abers read: decision values or probabilities?

    STREAMS_DATA=folder python benchmarks/several_classes.py

A classifier is fitted to the first examples of a shuffled set, the next ones calibrate, and the last are predicted in
one block: 2000, 2000 and at most 5000 of them, a third each of smaller sets. Mean log losses of the classifier itself
and of the merged forecast of `InductiveVennAbers` by decision values and by probabilities. One shuffle. Prints a JSON
line for each set and classifier.
"""

from __future__ import annotations

import json

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streams
import venn

SETS = ("car", "digits", "optdigits", "wine_red", "covtype")
CLASSIFIERS = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
}


def calibrated(kind, scorer, X, y, Z):
    """Return the (n, c) forecasts of a predictor that the examples (X, y) calibrate."""
    model = kind(scorer)
    model.learn_many(X, y)
    return np.asarray(model.predict_many(Z).proba)


def main():
    for name in SETS:
        stream = streams.load(name, shuffle=0)
        stream = stream.take(min(len(stream), 9000))
        first = min(2000, len(stream) // 3)
        X, y = np.asarray(stream.X), np.array([str(label) for label in stream.y])
        Z, truth = X[2 * first :], y[2 * first :]
        for title, make in CLASSIFIERS.items():
            fitted = make().fit(X[:first], y[:first])
            classes = fitted.classes_.tolist()
            seen = np.isin(truth, classes)
            codes = np.array([classes.index(label) for label in truth[seen]])
            here = np.isin(y[first : 2 * first], classes)
            bag, labels = X[first : 2 * first][here], y[first : 2 * first][here].tolist()
            by = {method: venn.FrozenScorer(fitted, method=method) for method in ("decision_function", "predict_proba")}
            said = {
                "itself": fitted.predict_proba(Z[seen]),
                "decision values": calibrated(venn.InductiveVennAbers, by["decision_function"], bag, labels, Z[seen]),
                "probabilities": calibrated(venn.InductiveVennAbers, by["predict_proba"], bag, labels, Z[seen]),
            }
            losses = {
                which: round(float(-np.log(np.maximum(p[np.arange(len(codes)), codes], 1e-15)).mean()), 3)
                for which, p in said.items()
            }
            print(json.dumps({"benchmark": "several classes", "data": name, "classifier": title, "log_loss": losses}))


if __name__ == "__main__":
    main()
