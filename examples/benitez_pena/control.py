"""The resampled machines and both controls of their sensitivity."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from benitez_pena import published, sets
from benitez_pena.answers import reached
from benitez_pena.machines import CS
from venn.batch.bootstrap import BootstrapSVC, least_threshold
from venn.batch.constrained import ClassWeightScan, ConstrainedSVC, Scip

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


class Bootstrap(BootstrapSVC):
    """The estimator; it keeps what every positive example needs, so one fit serves all wanted sensitivities."""

    def _left_out(self, *given):
        self.medians_ = super()._left_out(*given)
        return self.medians_

    def moved(self, X, share):
        """Return the threshold for this share of the positive training examples, and probabilities with it."""
        threshold = least_threshold(self.medians_, share)
        return threshold, self.probabilities(X, threshold)[:, 1]


def bootstrap(plan, seed, **given):
    """Return a bootstrap estimator that has learned nothing."""
    # Sensitivity 0 moves no threshold, but needs the votes of machines that an example was left out of.
    settings = {"Cs": CS, "resamples": plan.resamples, "epsilon": plan.epsilon, "random_state": seed}
    return Bootstrap(**(settings | {"sensitivity": 0.0} | given))


def resampled(fold, y_new, plan, seed):
    """Return the answers of one fold's resampled machines.

    `p` and `best` (m,) are probabilities of label 1, by the ensemble and by its most accurate C alone; `accuracies`
    (11,) are those of each C out of bag, `Cs` are the C in the ensemble. Under Ctrl1, `controlled` (2, shares, m) are
    the probabilities and `thresholds` (2, shares) how far the threshold moved: by out-of-bag votes of the training
    part, and by the labels `y_new` of the new objects themselves, as the paper seems to do.
    """
    model = bootstrap(plan, seed).fit(fold.X, fold.y)
    C = CS[int(np.argmax(model.accuracies_))]
    best = bootstrap(plan, seed, Cs=(C,), sensitivity=None).fit(fold.X, fold.y)  # the same resamples
    moved = [model.moved(fold.new, share) for share in SHARES]
    own = [model.controlled(fold.new, y_new, share) for share in SHARES]
    return {
        "p": model.predict_proba(fold.new)[:, 1],
        "best": best.predict_proba(fold.new)[:, 1],
        "C": np.float64(C),
        "accuracies": model.accuracies_,
        "Cs": np.array(CS)[model.weights_ > 0],
        "controlled": np.array([[p for _, p in moved], [one.predict_proba(fold.new)[:, 1] for one in own]]),
        "thresholds": np.array([[a for a, _ in moved], [one.threshold_ for one in own]]),
    }


def solver(plan):
    """Return SCIP, or the heuristic if it is not installed."""
    try:
        Scip.module()
    except ImportError:
        return ClassWeightScan()
    return Scip(time_limit=plan.seconds)


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
    few = {"Cs": plan.Cs, "resamples": plan.few}
    plain = bootstrap(plan, seed, **few).fit(fold.X, fold.y)
    first, second, outcomes = [], [], []
    for level in plan.levels:
        first.append(reached(plain.moved(fold.new, level)[1], y))
        base = ConstrainedSVC(sensitivity=level, solver=solver(plan))
        model = bootstrap(plan, seed, base=base, sensitivity=None, **few).fit(fold.X, fold.y)
        second.append(reached(model.predict_proba(fold.new)[:, 1], y))
        outcomes.append([model.outcomes_.get(outcome, 0) for outcome in OUTCOMES])
    return {
        "Ctrl1": np.array(first), "Ctrl2": np.array(second), "outcomes": np.array(outcomes),
        "trained": np.int64(size), "new": np.int64(len(out)),
    }  # fmt: skip
