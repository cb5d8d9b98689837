"""Linear machines on one fold: the choice of C by accuracy, and the scores that several methods share."""

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from benitez_pena import published
from benitez_pena.bootstrap import TOLERANCE
from benitez_pena.linear_svm import Design, svm

CS = tuple(C / 2 for C in published.CS)  # usual ones: 1/2 w'w + C sum xi
HELD_OUT = 1 / 3


def path(X, signs, Cs=CS):
    """Return a fitted linear machine for each C; each solution starts from the one before."""
    design, fits = Design(X), []
    for C in Cs:
        fits.append(svm(design, signs, C, TOLERANCE, start=fits[-1] if fits else None))
    return fits


def stratified(y, folds, seed):
    """Return (training rows, rows left out) of at most `folds` folds, each with examples of both labels if possible."""
    fewest = int(np.bincount(y, minlength=2).min())
    cut = StratifiedKFold(max(2, min(folds, fewest)), shuffle=True, random_state=seed)
    return list(cut.split(np.zeros((len(y), 1)), y))


def svm_scores(fold, inner, seed):
    """Return all scores that the methods read, by machines on one training part.

    `accuracies` (11,) of each C by inner cross-validation, `C` the smallest of the most accurate. With that C: `new`
    (m,) scores of the new objects by the machine of the whole part; `cross` (n,) scores of its own examples by machines
    trained without their `part` (n,), and `new_by_part` (parts, m) scores of the new objects by these; `held` (k,) rows
    that one more machine was trained without, `held_scores` and `held_new` its scores.
    """
    X, y, new = fold.X, fold.y, fold.new
    signs = 2.0 * y - 1
    part, cross, new_by_part = np.empty(len(y), np.int64), np.empty((len(CS), len(y))), []
    for k, (rest, out) in enumerate(stratified(y, inner, seed)):
        fits = path(X[rest], signs[rest])
        part[out] = k
        cross[:, out] = [fit.scores(X[out]) for fit in fits]
        new_by_part.append([fit.scores(new) for fit in fits])
    accuracies = ((cross >= 0) == (y == 1)).mean(axis=1)
    best = int(accuracies.argmax())
    whole = path(X, signs, CS[: best + 1])[-1]
    ((proper, held),) = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed).split(X, y)
    without = path(X[proper], signs[proper], CS[: best + 1])[-1]
    return {
        "accuracies": accuracies, "C": np.float64(CS[best]), "new": whole.scores(new),
        "cross": cross[best], "part": part, "new_by_part": np.array(new_by_part)[:, best],
        "held": held, "held_scores": without.scores(X[held]), "held_new": without.scores(new),
    }  # fmt: skip
