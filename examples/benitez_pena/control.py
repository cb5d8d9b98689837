"""The resampled machines and both controls of their sensitivity."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from benitez_pena import published, sets
from benitez_pena.answers import reached
from benitez_pena.bootstrap import Bootstrap, Plain, least_threshold
from benitez_pena.constrained import Constrained
from benitez_pena.machines import CS

SHARES = tuple(np.round(np.arange(0.5, 1.001, 0.05), 2).tolist())  # wanted sensitivities of Ctrl1
OUTCOMES = ("optimal", "time limit", "heuristic", "Infeasible", "NotConverged")


@dataclass(frozen=True)
class Plan:
    """The settings of the resampling, and of the constrained machines of Ctrl2.

    Parameters
    ----------
    resamples : int
        For each training part, for the bootstrap and Ctrl1.
    epsilon : float
        Loss of accuracy at which a C still counts: the paper does not state it.
    splits : int
        Random parts of each set for Ctrl2, 0 for none.
    largest, most_new : int
        Numbers of training examples and, apart from them, of new objects.
    few : int
        Resamples of Ctrl2.
    Cs : tuple of float
        Of Ctrl2.
    levels : tuple of float
        Wanted sensitivities of Ctrl2.
    seconds : float
        Time limit for one problem.
    """

    resamples: int = published.RESAMPLES
    epsilon: float = 0.02
    splits: int = 2
    largest: int = 60
    most_new: int = 500
    few: int = 10
    Cs: tuple = (1 / 64, 1.0)
    levels: tuple = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    seconds: float = 5.0

    def of_resampling(self):
        """Return the settings on which the resampled machines depend."""
        return {"resamples": self.resamples, "epsilon": self.epsilon, "Cs": CS, "shares": SHARES}


def resampled(fold, y_new, plan, seed):
    """Return the answers of one fold's resampled machines.

    `p` and `best` (m,) are probabilities of label 1, by the ensemble and by its most accurate C alone; `accuracies`
    (11,) are those of each C out of bag, `Cs` are the C in the ensemble. Under Ctrl1, `controlled` (2, shares, m) are
    the probabilities and `thresholds` (2, shares) how far the threshold moved: by out-of-bag votes of the training
    part, and by the labels `y_new` of the new objects themselves, as the paper seems to do.
    """

    def voted(Cs):
        return Bootstrap(Plain(fold.X, fold.y, Cs), fold.X, fold.y, plan.resamples, plan.epsilon, seed)

    model = voted(CS)
    C = CS[int(np.argmax(model.accuracies))]
    both = model.medians(), model.medians_of(fold.new[y_new == 1])
    thresholds = np.array([[least_threshold(medians, share) for share in SHARES] for medians in both])
    return {
        "p": model.probabilities(fold.new),
        "best": voted((C,)).probabilities(fold.new),  # the same resamples
        "C": np.float64(C),
        "accuracies": model.accuracies,
        "Cs": np.array(CS)[model.weights > 0],
        "controlled": np.array([[model.probabilities(fold.new, a) for a in each] for each in thresholds]),
        "thresholds": thresholds,
    }


def constrained(data, plan, seed):
    """Return the results of both controls on a random part of a set, for objects outside that part.

    `Ctrl1` and `Ctrl2` (levels, 3): share of new positives with a probability above one half, MSE of new positives and
    of new negatives. `outcomes` (levels, 5): number of Ctrl2's problems by outcome, as in `OUTCOMES`. `trained` and
    `new`: numbers of examples.
    """
    size = min(plan.largest, 2 * len(data.y) // 3)
    ((rest, out),) = StratifiedShuffleSplit(1, train_size=size, random_state=seed).split(data.X, data.y)
    out = out[: plan.most_new]
    fold, y = sets.prepared(data.X, data.y, rest, out), data.y[out]

    def voted(trainer):
        return Bootstrap(trainer, fold.X, fold.y, plan.few, plan.epsilon, seed)

    plain = voted(Plain(fold.X, fold.y, plan.Cs))
    medians = plain.medians()
    first, second, outcomes = [], [], []
    for level in plan.levels:
        first.append(reached(plain.probabilities(fold.new, least_threshold(medians, level)), y))
        model = voted(Constrained(fold.X, fold.y, plan.Cs, level, plan.seconds))
        second.append(reached(model.probabilities(fold.new), y))
        outcomes.append([model.outcomes[outcome] for outcome in OUTCOMES])
    return {
        "Ctrl1": np.array(first), "Ctrl2": np.array(second), "outcomes": np.array(outcomes),
        "trained": np.int64(size), "new": np.int64(len(out)),
    }  # fmt: skip
