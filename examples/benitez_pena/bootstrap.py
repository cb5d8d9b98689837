"""Algorithm 1 of the paper: probabilities of two classes by votes of linear machines on resamples; and Ctrl1."""

from collections import Counter

import numpy as np

from benitez_pena.linear_svm import Design, svm
from venn.machines import NotConverged

TOLERANCE = 1e-6  # of the objective: about 1 vote in 10 000 differs from an exact fit's
CHUNK = 2_000_000  # scores at a time
ROUNDING = 1e-12  # sums of votes closer to 1/2 count as 1/2; scores relatively closer to the threshold count as on it


def resampled(y, resamples, seed):
    """Yield (n,) multiplicities of the examples in resamples that contain both labels."""
    random = np.random.RandomState(seed)
    for _ in range(resamples):
        counts = np.zeros(len(y), np.int64)
        while not 0 < counts @ y < len(y):
            counts = np.bincount(random.randint(len(y), size=len(y)), minlength=len(y))
        yield counts


class Plain:
    """Trains plain machines with each C, on resamples of these examples."""

    def __init__(self, X, y, Cs):
        self.design, self.signs, self.Cs = Design(X), 2.0 * y - 1, Cs
        # Resamples differ little from the whole set: for each C their fits start from its fit.
        self.starts = []
        for C in Cs:
            last = self.starts[-1] if self.starts else None
            self.starts.append(svm(self.design, self.signs, C, TOLERANCE, start=last))

    def moved(self, X):
        """Return objects as the machines take them."""
        return self.design.moved(X)

    def trained(self, counts, r):
        """Return coefficients, the bias last, of the machine with the r-th C, and how its fit ended."""
        weights = counts.astype(np.float64)
        return svm(self.design, self.signs, self.Cs[r], TOLERANCE, weights=weights, start=self.starts[r]).u, "optimal"


class Bootstrap:
    """Votes of machines, trained with each C on each of the same resamples.

    Their accuracy is measured on the examples left out. For one C, the probability of label 0 is the share of machines
    with a score below 0. The values of C whose mean accuracy is within `epsilon` of the largest are combined: their
    probabilities are averaged with weights proportional to the squared accuracy.

    Parameters
    ----------
    trainer : Plain or Constrained
        A fit that raises `NotConverged` has no vote.
    X, y : (n, d) floats and (n,) labels, 0 or 1
    resamples : int
    epsilon : float
    seed : int

    Attributes
    ----------
    accuracies : (R,) array
        By C, on examples left out; NaN where all fits failed.
    weights : (R,) array
        Of the values of C; 0 for those left out.
    outcomes : Counter
        How fits ended.
    """

    def __init__(self, trainer, X, y, resamples, epsilon, seed):
        self._trainer, Cs, inside = trainer, trainer.Cs, trainer.moved(X)
        self.outcomes = Counter()
        machines, accuracies = [[] for _ in Cs], [[] for _ in Cs]  # a machine: (u, examples left out)
        for counts in resampled(y, resamples, seed):
            out = counts == 0
            objects, labels = inside[out], y[out]
            for r in range(len(Cs)):
                try:
                    u, outcome = trainer.trained(counts, r)
                except NotConverged:
                    self.outcomes["NotConverged"] += 1
                    continue
                self.outcomes[outcome] += 1
                machines[r].append((u, out))
                if len(labels) > 0:
                    accuracies[r].append(((objects @ u[:-1] + u[-1] >= 0) == (labels == 1)).mean())
        self.accuracies = np.array([np.mean(own) if own else np.nan for own in accuracies])
        self.weights = accuracy_weights(self.accuracies, epsilon)
        # Of each C that counts: its weight, (k, p + 1) machines, (k, positives) whether they were trained without them.
        self._groups = [
            (weight, np.array([u for u, _ in own]), np.array([out[y == 1] for _, out in own]))
            for weight, own in zip(self.weights, machines, strict=True)
            if weight > 0
        ]
        self._positive = inside[y == 1]

    def _scores(self, inside):
        """Yield parts of the objects, each with its (m, k) scores by each C that counts."""
        room = max(1, CHUNK // sum(len(u) for _, u, _ in self._groups))
        for first in range(0, len(inside), room):
            part = slice(first, first + room)
            yield part, [inside[part] @ u[:, :-1].T + u[:, -1] for _, u, _ in self._groups]

    def probabilities(self, X, a=0.0):
        """Return (m,) probabilities of label 1 if a score counts as negative below -a."""
        negative = [
            sum(weight * (own < -a).mean(axis=1) for (weight, *_), own in zip(self._groups, scores, strict=True))
            for _, scores in self._scores(self._trainer.moved(X))
        ]
        return 1 - np.minimum(np.concatenate(negative), 1.0)  # weights sum to 1 up to rounding

    def medians(self):
        """Return medians of the scores of positive training examples, by machines that they were left out of."""
        found = []
        for part, scores in self._scores(self._positive):
            out = [(weight, own.T[part]) for weight, _, own in self._groups]
            votes = [weight * own / np.maximum(own.sum(axis=1, keepdims=True), 1) for weight, own in out]
            found.append(lower_medians(np.hstack(scores), np.hstack(votes)))
        every = np.concatenate(found)
        return every[~np.isnan(every)]

    def medians_of(self, X):
        """Return (m,) medians of the scores of objects, by all machines."""
        votes = np.concatenate([np.full(len(u), weight / len(u)) for weight, u, _ in self._groups])[None]
        every = [np.hstack(scores) for _, scores in self._scores(self._trainer.moved(X))]
        return np.concatenate([lower_medians(own, np.repeat(votes, len(own), axis=0)) for own in every])


def accuracy_weights(accuracies, epsilon):
    """Return weights proportional to squared accuracies within `epsilon` of the largest; others, and NaN, get 0."""
    kept = np.nan_to_num(accuracies, nan=-np.inf) >= np.nanmax(accuracies) - epsilon
    squares = np.where(kept, accuracies, 0.0) ** 2 if np.nanmax(accuracies) > 0 else kept.astype(np.float64)
    return squares / squares.sum()


def lower_medians(scores, votes):
    """Return (m,) least scores, by row, that have at least half of the votes up to them; NaN without votes.

    The votes below t are less than half of all if t is at most that score, and only then.
    """
    order = scores.argsort(axis=1)
    total = np.take_along_axis(votes, order, axis=1).cumsum(axis=1)
    first = (total >= total[:, -1:] * (0.5 - ROUNDING)).argmax(axis=1)
    medians = np.take_along_axis(scores, order, axis=1)[np.arange(len(scores)), first]
    return np.where(total[:, -1] > 0, medians, np.nan)


def least_threshold(medians, wanted):
    """Return the least a >= 0 for which the share `wanted` of the medians is at least -a, and slightly more."""
    many = int(np.ceil(wanted * len(medians) - 1e-9))
    a = 0.0 if many == 0 else -float(np.sort(medians)[::-1][many - 1])
    return a + ROUNDING * (1.0 + a) if a > 0 else 0.0
