"""Cross-fitted SVM probabilities, written as loops over scikit-learn's own parts."""

from collections import Counter

import numpy as np
from sklearn.svm import SVC

from naive.abers import refitted


def scores(X, y, classes, new, weights=None, decimals=6, **parameters):
    """Return (n, c) scores at `new` of one SVM for each class against all others; two classes have one SVM."""

    def one(label):
        own = np.array([1 if other == label else -1 for other in y])
        if len(set(own)) == 1:
            return np.full(len(new), float(own[0]))
        return SVC(**parameters).fit(X, own, weights).decision_function(new).round(decimals)

    if len(classes) == 2:
        f = one(classes[1])
        return np.column_stack([-f, f])
    return np.column_stack([one(label) for label in classes])


def held_out(X, y, classes, splits, weights=None, **parameters):
    """Return pooled held-out scores, labels and weights."""
    f, labels, w = [], [], []
    for training, calibration in splits:
        own = None if weights is None else weights[training]
        f.append(scores(X[training], y[training], classes, X[calibration], own, **parameters))
        labels.append(y[calibration])
        w.append(np.ones(len(calibration)) if weights is None else weights[calibration])
    return np.concatenate(f), np.concatenate(labels), np.concatenate(w)


def pairs(X, y, classes, splits, new, **parameters):
    """Return (folds, n, c, 2) p0 and p1 of each fold, object and class, by two isotonic fits."""
    answer = []
    for training, calibration in splits:
        both = np.concatenate([X[calibration], new])
        f = scores(X[training], y[training], classes, both, **parameters)
        k = len(calibration)
        answer.append(
            [[refitted(f[:k, j], y[calibration] == label, row[j]) for j, label in enumerate(classes)] for row in f[k:]]
        )
    return np.array(answer)


def log_merged(folds):
    """Return GM(p1) / (GM(1 - p0) + GM(p1)) over the first axis of (folds, ..., 2) pairs."""
    one = np.prod(folds[..., 1], axis=0) ** (1 / len(folds))
    other = np.prod(1 - folds[..., 0], axis=0) ** (1 / len(folds))
    return one / (other + one)


def category_counts(X, y, classes, splits, new, **parameters):
    """Return (n, c) numbers of calibration examples of each class in the new object's category, mean of folds."""
    total = np.zeros((len(new), len(classes)))
    for training, calibration in splits:
        f = scores(X[training], y[training], classes, np.concatenate([X[calibration], new]), **parameters)
        best = [max(range(len(classes)), key=lambda j: (row[j], -j)) for row in f]
        k = len(calibration)
        for i, own in enumerate(best[k:]):
            beside = Counter(label for label, other in zip(y[calibration], best[:k], strict=True) if other == own)
            total[i] += [beside[label] for label in classes]
    return total / len(splits)
