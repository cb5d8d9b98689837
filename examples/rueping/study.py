"""The study: every fold of every set through every method, each result computed once."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.model_selection import StratifiedKFold
from studies.script import results

from rueping import machines, sets
from rueping.methods import HELD_OUT, INNER_FOLDS, Fold, methods, svm_scores

MACHINES = ("svm", "klr", "squares")
CLIP = 1e-15  # for the cross-entropy that is called clipped


@dataclass(frozen=True)
class Study:
    """The settings of the study.

    Parameters
    ----------
    data : tuple of str
        Names of sets.
    folds : int
        Of the outer cross-validation.
    source : {"cross", "train"}
        Scores that the maps are fitted to: cross-fitted ones, or scores of the machine's own training examples.
    """

    data: tuple = tuple(sets.PUBLISHED)
    folds: int = 10
    source: str = "cross"

    def tasks(self):
        """Return all (set, kernel, fold), those of one set together."""
        return [(name, kernel, k) for name in self.data for kernel in machines.KERNELS for k in range(self.folds)]


def losses(p, y):
    """Return mean squared error, cross-entropy (natural logarithm), the same clipped, and the share of errors."""
    of_label, clipped = (np.where(y == 1, q, 1 - q) for q in (p, np.clip(p, CLIP, 1 - CLIP)))
    with np.errstate(divide="ignore"):
        entropy = -np.log(of_label)
    return ((y - p) ** 2).mean(), entropy.mean(), -np.log(clipped).mean(), ((p > 0.5) != y).mean()


def choices(data, kernel, store):
    """Return parameters, accuracy and seconds of each machine's choice."""
    return {machine: machines.choose(machine, kernel, data, sets.SEED, store) for machine in MACHINES}


def one_fold(study, data, kernel, k, store):
    """Return (*losses, seconds) of every method on fold k, and under "SVM" the seconds of its scores alone."""
    # Folds have equal shares of both labels: the paper does not say how.
    rest, out = list(StratifiedKFold(study.folds, shuffle=True, random_state=sets.SEED).split(data.X, data.y))[k]
    chosen = {machine: parameters for machine, (parameters, *_) in choices(data, kernel, store).items()}
    X, y, new, seed = data.X[rest], data.y[rest], data.X[out], sets.SEED + k
    where = {"data": data.fingerprint, "folds": study.folds, "fold": k, "seed": seed}
    depends = {machine: where | {"parameters": parameters} for machine, parameters in chosen.items()}
    depends["svm"] |= {"inner": INNER_FOLDS, "held": HELD_OUT}
    title = f"{data.name}-{kernel}-{k}"
    scores = store.of(
        f"{title}-scores", depends["svm"] | {"stage": "scores"}, lambda: svm_scores(chosen["svm"], X, y, new, seed)
    )
    fold = Fold(X, y, new, chosen, scores)
    found = {"SVM": (scores["seconds"],)}
    for name, method in methods(study.source).items():
        kept = store.of(
            f"{title}-{name.replace(', ', '-').replace(' ', '-')}",
            depends[method.machine] | {"stage": repr(method)},
            lambda method=method: {"p": method.probabilities(fold)},
        )
        found[name] = (*losses(kept["p"], data.y[out]), kept["seconds"])
    return found


def _work(study, task, store):
    name, kernel, k = task
    return one_fold(study, sets.load(name, store), kernel, k, store)


def run(study, folder, jobs=1, done=lambda task: None):
    """Compute what is missing; return the losses of each fold, and how many results were computed.

    Parameters
    ----------
    study : Study
    folder : path
        Where results are kept.
    jobs : int
        Processes.
    done : callable
        Called with (set, kernel, fold) after each.

    Returns
    -------
    dict, int
        (set, kernel, method) to (folds, 5): the losses of `losses`, and seconds; for the method "SVM" (folds, 1).
    """
    tasks = study.tasks()
    # The choices first, one process for each set and kernel: all folds need them.
    firsts, rest = ([task for task in tasks if (task[2] == 0) is first] for first in (True, False))
    found, computed = results(partial(_work, study), (firsts, rest), folder, jobs, done)
    table = {}
    for name, kernel, k in tasks:
        for method, value in found[name, kernel, k].items():
            table.setdefault((name, kernel, method), []).append(value)
    return {key: np.array(values, float) for key, values in table.items()}, computed
