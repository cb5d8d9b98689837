"""Every method of the study except the resampled ones: probabilities of the new objects of one fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from rueping.maps import Sollich

import venn
from benitez_pena import published
from benitez_pena.linear_svm import Design, svm

RESAMPLED = ("bootstrap", "best C, resampled")
PPSVM = tuple(f"PPSVM {radius}" for radius in published.RADII)
PAPER = (*RESAMPLED, "best C, one machine", "Sollich", "Platt", *PPSVM)
DEFAULT = "transductive Venn"  # of the engine
OTHERS = ("isotonic", "inductive Venn-Abers", "cross Venn-Abers", DEFAULT, "transductive Venn-Abers")
CONSTANT = "class frequency"  # ignores the objects: in no ranking
ALL = (*PAPER, *OTHERS, CONSTANT)
BOUNDED = (DEFAULT, "transductive Venn-Abers", "inductive Venn-Abers")
BLOCK = 1 << 22  # distances that are kept at a time
ROUNDING = 1e-12  # of squared distances, as a share of the squared norms they are made of
LARGEST_TRANSDUCTIVE = 5000  # training examples; with more, the inductive predictor is used


def _bounded(p, lower, upper):
    return {"p": p, "lower": lower, "upper": upper}


@dataclass(frozen=True)
class Frequency:
    """The share of label 1 in the training part, for all objects."""

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        return {"p": np.full(len(fold.new), fold.y.mean())}


@dataclass(frozen=True)
class Sign:
    """The label by the sign of one machine's score, as a probability of 0 or 1."""

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        return {"p": (scores["new"] >= 0).astype(np.float64)}


@dataclass(frozen=True)
class BySollich:
    """Sollich's probabilities, a function of one machine's score and of its C."""

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        return {"p": Sollich(float(scores["C"])).fit(scores["cross"], fold.y)(scores["new"])}


@dataclass(frozen=True)
class Scaled:
    """A map fitted to cross-fitted scores."""

    map: Any

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        return {"p": self.map.fit(scores["cross"], fold.y)(scores["new"])}


@dataclass(frozen=True)
class Posterior:
    """Tao's posterior probability machine with the C of the plain one.

    Labels are replaced by t_i = 2 P_i - 1, P_i the share of label 1 among the training examples within the radius of
    x_i. The machine minimises 1/2 |w|^2 + C sum_i xi_i so that t_i f(x_i) >= t_i^2 - xi_i and xi_i >= 0: example i has
    the label sign t_i, the weight |t_i| and the level |t_i|; one with t_i = 0 drops out. The probability of label 1 is
    (1 + f(x)) / 2, clipped. With radius 0 this is the plain machine.

    Only the abstract of Tao, Wu, Wang & Wang (2005) was at hand; the square, the window and (1 + f) / 2 follow
    accounts by others, as Gonen, Tanugur & Alpaydin (2008).
    """

    radius: float

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        targets = soft_labels(fold.X, 2.0 * fold.y - 1, self.radius)
        size, C = np.abs(targets), float(scores["C"])
        if not size.any():
            return {"p": np.full(len(fold.new), 0.5)}
        fit = svm(Design(fold.X), np.where(targets < 0, -1.0, 1.0), C, 1e-9, weights=size, levels=size)
        return {"p": np.clip(0.5 + 0.5 * fit.scores(fold.new), 0.0, 1.0)}


def soft_labels(X, signs, radius):
    """Return (n,) means of the signs of the examples within a radius of each, up to rounding."""
    if radius == 0:  # labels are hard, also of equal objects
        return signs
    centred = X - X.mean(axis=0)  # distances do not change, and lose fewer digits
    norms, means = np.einsum("ij,ij->i", centred, centred), []
    for part in np.array_split(np.arange(len(X)), 1 + len(X) ** 2 // BLOCK):
        sums = norms[part, None] + norms
        within = sums - 2 * (centred[part] @ centred.T) <= radius**2 + ROUNDING * sums
        means.append(within @ signs / within.sum(axis=1))
    return np.concatenate(means)


@dataclass(frozen=True)
class InductiveVennAbers:
    """Venn-Abers calibrated on a part that its machine was not trained on, each pair merged into one probability."""

    def probabilities(self, fold, scores):
        """Return "p", "lower" and "upper" (m,) of label 1."""
        pairs = venn.maps.venn_abers(scores["held_scores"], fold.y[scores["held"]], scores["held_new"])
        return _bounded(venn.maps.LogMerge().merge(pairs[:, 0], pairs[:, 1]), pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True)
class CrossVennAbers:
    """Venn-Abers on each inner part by the machine trained without it, all pairs merged into one probability."""

    def probabilities(self, fold, scores):
        """Return the probabilities (m,) of label 1 under "p"."""
        parts = [scores["part"] == k for k in range(len(scores["new_by_part"]))]
        folds = [(scores["cross"][part], fold.y[part]) for part in parts]
        return {"p": venn.maps.cross_venn_abers(folds, scores["new_by_part"])}


class _Scores:
    """A classifier whose decision value is its object's one feature: passes scores to `venn.FrozenScorer`."""

    classes_ = np.array([0, 1])
    n_features_in_ = 1

    def fit(self, X, y):
        """Nothing is learned."""
        return self

    def decision_function(self, X):
        """Return the feature itself (n,)."""
        return np.asarray(X)[:, 0]


@dataclass(frozen=True)
class TransductiveVenn:
    """The engine's default: Venn over quantile bins of exact leave-one-out margins of a least-squares machine.

    Its C is 1 / d, whatever the data: so nothing was chosen on the examples that are counted. Every new object is
    predicted alone, from the training part. For too large a part the inductive predictor with the same taxonomy is
    used, on the scores of the machine that was trained without the held-out part.
    """

    largest: int = LARGEST_TRANSDUCTIVE

    def probabilities(self, fold, scores):
        """Return "p", "lower" and "upper" (m,) of label 1."""
        if len(fold.y) > self.largest:
            model = venn.InductiveVenn(venn.FrozenScorer(_Scores()), venn.taxonomies.AdaptiveMarginBins())
            model.learn_many(scores["held_scores"][:, None], fold.y[scores["held"]])
            answers = model.predict_many(scores["held_new"][:, None])
        else:
            answers = _each_alone(venn.TransductiveVenn(_squares(fold)), fold)
        rows = np.array([one.probabilities[:, 1] for one in answers])
        return _bounded(np.array([one.proba[1] for one in answers]), rows.min(axis=1), rows.max(axis=1))


@dataclass(frozen=True)
class TransductiveVennAbers:
    """Venn-Abers on exact leave-one-out scores of the same least-squares SVM; inductive if the part is too large."""

    largest: int = LARGEST_TRANSDUCTIVE

    def probabilities(self, fold, scores):
        """Return "p", "lower" and "upper" (m,) of label 1."""
        if len(fold.y) > self.largest:
            return InductiveVennAbers().probabilities(fold, scores)
        answers = _each_alone(venn.TransductiveVennAbers(_squares(fold)), fold)
        pairs = np.array([one.pairs[1] for one in answers])
        return _bounded(np.array([one.proba[1] for one in answers]), pairs.min(axis=1), pairs.max(axis=1))


def _squares(fold):
    return venn.LeastSquaresSVM(venn.Linear(), 1 / fold.features, (0, 1))


def _each_alone(model, fold):
    for x, label in zip(fold.X, fold.y.tolist(), strict=True):
        model.learn_one(x, label)
    return [model.predict_one(x) for x in fold.new]


def methods():
    """Return all methods by name, except `RESAMPLED`."""
    known = {
        "best C, one machine": Sign(), "Sollich": BySollich(), "Platt": Scaled(venn.maps.Platt()),
        "isotonic": Scaled(venn.maps.Isotonic()), "inductive Venn-Abers": InductiveVennAbers(),
        "cross Venn-Abers": CrossVennAbers(), DEFAULT: TransductiveVenn(),
        "transductive Venn-Abers": TransductiveVennAbers(), CONSTANT: Frequency(),
    }  # fmt: skip
    known |= {name: Posterior(float(radius)) for name, radius in zip(PPSVM, published.RADII, strict=True)}
    return {name: known[name] for name in ALL if name not in RESAMPLED}
