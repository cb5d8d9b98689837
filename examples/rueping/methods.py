"""Every method of the study: probabilities of the test objects of one fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

import venn
from rueping import machines
from rueping.beta import Beta2, BetaScaling
from rueping.maps import Sigma01, SigmaPP, Softmax

INNER_FOLDS, HELD_OUT = 5, 1 / 3

PAPER = ("KLR", "Platt", "Beta", "Beta-2", "Bin-10", "Bin-50", "Softmax", "01", "PP")
DEFAULT = "transductive Venn-Abers"  # of the engine
OTHERS = ("isotonic", "beta calibration", "temperature", "inductive Venn-Abers", "cross Venn-Abers", DEFAULT)
ASIDE = ("Bin-10, rates", "Bin-50, rates")  # in no ranking: only to count how often they are infinite
ALL = (*PAPER, *OTHERS, *ASIDE)


@dataclass(frozen=True)
class Fold:
    """What a method may read: the training part (n, d), its labels (n,), the new objects (m, d), parameters, scores."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    chosen: dict  # parameters by machine
    scores: dict  # as of `svm_scores`


@dataclass(frozen=True)
class Logistic:
    """Kernel logistic regression: its own probabilities."""

    machine = "klr"

    def probabilities(self, fold):
        """Return the probabilities (m,) of label 1."""
        return expit(machines.klr(fold.chosen["klr"], fold.X, fold.y)(fold.new))


@dataclass(frozen=True)
class Scaled:
    """A map fitted to scores of a support vector machine, `source` "cross" or "train" as in `svm_scores`.

    A map of several classes receives the columns -f and f, so that its memberships are those of softmax scaling.
    """

    map: Any
    source: str
    of_classes: bool = False
    machine = "svm"

    def probabilities(self, fold):
        """Return the probabilities (m,) of label 1."""
        f, new = fold.scores[self.source], fold.scores["new"]
        if self.of_classes:
            fitted = self.map.fit(np.column_stack([-f, f]), fold.y)
            return fitted(np.column_stack([-new, new]))[:, 1]
        return self.map.fit(f, fold.y)(new)


@dataclass(frozen=True)
class InductiveVennAbers:
    """Venn-Abers calibrated on a part that its machine was not trained on, each pair merged into one probability."""

    machine = "svm"

    def probabilities(self, fold):
        """Return the probabilities (m,) of label 1."""
        pairs = venn.maps.venn_abers(fold.scores["held_scores"], fold.y[fold.scores["held"]], fold.scores["held_new"])
        return venn.maps.LogMerge().merge(pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True)
class CrossVennAbers:
    """Venn-Abers on each inner fold by the machine trained without it, all pairs merged into one probability."""

    machine = "svm"

    def probabilities(self, fold):
        """Return the probabilities (m,) of label 1."""
        of = fold.scores["fold"]
        folds = [(fold.scores["cross"][of == k], fold.y[of == k]) for k in range(INNER_FOLDS)]
        return venn.maps.cross_venn_abers(folds, fold.scores["new_by_fold"])


@dataclass(frozen=True)
class TransductiveVennAbers:
    """Point forecasts of the engine's default: Venn-Abers on exact leave-one-out scores of a least-squares machine.

    Every new object is predicted alone, from the training part: none of them is learned.
    """

    machine = "squares"

    def probabilities(self, fold):
        """Return the probabilities (m,) of label 1."""
        model = venn.TransductiveVennAbers(machines.squares(fold.chosen["squares"]))
        for x, label in zip(fold.X, fold.y.tolist(), strict=True):
            model.learn_one(x, label)
        return np.array([model.predict_one(x).proba[1] for x in fold.new])


def methods(source):
    """Return all methods by name, in the order of `ALL`; maps are fitted to scores of the source."""
    maps = {
        "Platt": venn.maps.Platt(), "Beta": BetaScaling(tuned=True), "Beta-2": Beta2(),
        "Bin-10": venn.maps.Binning(10, laplace=True), "Bin-50": venn.maps.Binning(50, laplace=True),
        "Softmax": Softmax(), "01": Sigma01(), "PP": SigmaPP(),
        "isotonic": venn.maps.Isotonic(), "beta calibration": venn.maps.BetaCalibration(),
        "temperature": venn.maps.Temperature(),
        "Bin-10, rates": venn.maps.Binning(10), "Bin-50, rates": venn.maps.Binning(50),
    }  # fmt: skip
    of_classes = {"Beta", "temperature"}
    known = {name: Scaled(map_, source, name in of_classes) for name, map_ in maps.items()}
    known |= {"inductive Venn-Abers": InductiveVennAbers(), "cross Venn-Abers": CrossVennAbers()}
    known |= {"KLR": Logistic(), DEFAULT: TransductiveVennAbers()}
    return {name: known[name] for name in ALL}


def svm_scores(parameters, X, y, new, seed):
    """Return all scores that the methods read, by support vector machines on one training part.

    `new` (m,) are scores of the new objects by the machine of the whole part, `train` (n,) those of its own examples.
    `cross` (n,) are scores of the same examples by machines trained without their fold, `fold` (n,); `new_by_fold`
    (folds, m) scores of the new objects by these. `held` (k,) are rows that one more machine was trained without, and
    `held_scores` and `held_new` its scores.
    """
    whole = machines.svm(parameters, X, y)
    fold, cross, new_by_fold = np.empty(len(y), np.int64), np.empty(len(y)), []
    for k, (rest, out) in enumerate(StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed).split(X, y)):
        scores = machines.svm(parameters, X[rest], y[rest])
        fold[out], cross[out] = k, scores(X[out])
        new_by_fold.append(scores(new))
    ((proper, held),) = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed).split(X, y)
    scores = machines.svm(parameters, X[proper], y[proper])
    return {
        "new": whole(new), "train": whole(X), "cross": cross, "fold": fold, "new_by_fold": np.array(new_by_fold),
        "held": held, "held_scores": scores(X[held]), "held_new": scores(new),
    }  # fmt: skip
