"""The scorers of the study, and the choice of their parameters by accuracy."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import venn
from rueping.logistic import fitted

LARGEST_CHOICE, CHOICE_FOLDS = 1000, 5
# A step of ten in C, of four in the width; widths in units of 1 / d, 2 d being the mean squared distance.
PENALTIES = {"linear": (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2), "rbf": (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)}
WIDTHS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
KERNELS = tuple(PENALTIES)


@dataclass(frozen=True)
class Parameters:
    """A kernel, "linear" or "rbf", with gamma (0 if linear), and C."""

    kernel: str
    C: float
    gamma: float = 0.0


def svm(parameters, X, y):
    """Return the scores of a support vector machine, as a function of objects."""
    machine = SVC(C=parameters.C, kernel=parameters.kernel, gamma=parameters.gamma or "scale", cache_size=500)
    return machine.fit(X, y).decision_function


def klr(parameters, X, y):
    """Return the scores of kernel logistic regression: the logits of its probabilities.

    With a linear kernel there are as many unknowns as features: scikit-learn's Newton method on these solves the same.
    """
    if parameters.kernel == "linear":
        machine = LogisticRegression(C=parameters.C, solver="newton-cholesky", tol=1e-8, max_iter=1000)
        return machine.fit(X, y).decision_function
    K = rbf_kernel(X, gamma=parameters.gamma)
    beta, bias = fitted(K, y, parameters.C)
    return lambda new: rbf_kernel(new, X, gamma=parameters.gamma) @ beta + bias


def squares(parameters):
    """Return a least-squares machine that has learned nothing, for the engine's default predictor."""
    kernel = venn.RBF(parameters.gamma) if parameters.gamma else venn.Linear()
    return venn.LeastSquaresSVM(kernel, parameters.C, (0, 1))


def grid(kernel, d):
    """Return all parameters to try, C changing most slowly."""
    widths = [width / d for width in WIDTHS] if kernel == "rbf" else [0.0]
    return [Parameters(kernel, C, gamma) for C in PENALTIES[kernel] for gamma in widths]


def part(y, seed):
    """Return the rows that parameters are chosen on: at most `LARGEST_CHOICE`, drawn at random."""
    return np.random.default_rng(seed).permutation(len(y))[:LARGEST_CHOICE]


def _cross_validated(train, tried, X, y, seed):
    wrong = np.zeros(len(tried))
    folds = list(StratifiedKFold(CHOICE_FOLDS, shuffle=True, random_state=seed).split(X, y))
    for t, parameters in enumerate(tried):
        for rest, out in folds:
            wrong[t] += ((train(parameters, X[rest], y[rest])(X[out]) > 0) != y[out]).sum()
    return wrong / len(y)


def _left_out(tried, X, y):
    kernels = list(dict.fromkeys(squares(parameters).kernel for parameters in tried))
    penalties = list(dict.fromkeys(parameters.C for parameters in tried))
    tuning = venn.tune(zip(X, y.tolist(), strict=True), (0, 1), kernels=kernels, penalties=penalties)
    errors = {(trial.kernel, trial.C): trial.error for trial in tuning.trials}
    return np.array([errors[squares(parameters).kernel, parameters.C] for parameters in tried])


def choose(machine, kernel, data, seed, store):
    """Return the most accurate parameters, their accuracy, and the seconds of the choice.

    By cross-validation for "svm" and "klr", by leave-one-out in closed form for "squares". On a tie the first:
    the smallest C, then the smallest gamma.
    """
    tried = grid(kernel, data.X.shape[1])
    rows = part(data.y, seed)
    X, y = np.ascontiguousarray(data.X[rows]), data.y[rows]

    def errors():
        if machine == "squares":
            return {"errors": _left_out(tried, X, y)}
        return {"errors": _cross_validated({"svm": svm, "klr": klr}[machine], tried, X, y, seed)}

    key = {"stage": "choice", "machine": machine, "data": data.fingerprint, "tried": tried, "seed": seed}
    key |= {"folds": CHOICE_FOLDS, "rows": LARGEST_CHOICE}
    kept = store.of(f"{data.name}-{kernel}-choice-{machine}", key, errors)
    best = tried[int(kept["errors"].argmin())]
    return best, 1 - float(kept["errors"].min()), float(kept["seconds"])
