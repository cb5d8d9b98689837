"""All answers of the study, and what follows from them: losses, ranks, bounds."""

import numpy as np
from scipy import stats

from benitez_pena.sets import ASIDE

ROUNDING = 1e-12  # sums of weights closer to one half count as one half
CLIP = 1e-3  # half the share of one of 500 resamples: shares of resamples are often 0 or 1
LOSSES = ("MSE", "MSE of positives", "MSE of negatives", "log loss", "error")
MSE, POSITIVES, NEGATIVES, LOG, ERROR = range(5)


def losses(p, y):
    """Return mean squared error, the same for label 1 and label 0, clipped log loss (nats), share of errors."""
    squares = (y - p) ** 2
    inside = np.clip(p, CLIP, 1 - CLIP)
    log = -np.log(np.where(y == 1, inside, 1 - inside)).mean()
    return np.array([squares.mean(), _mean(squares[y == 1]), _mean(squares[y == 0]), log, ((p >= 0.5) != y).mean()])


def _mean(values):
    return values.mean() if len(values) else np.nan


class Answers:
    """Answers by task, as returned by `study.run`, with several summaries.

    Parameters
    ----------
    study : Study
    found : dict
        (set, "fold" or "control", number) to answers.

    Attributes
    ----------
    study : Study
    data : tuple of str
        Sets of the paper.
    aside : tuple of str
        Other readings of two of them.
    """

    def __init__(self, study, found):
        self.study = study
        self.data = tuple(name for name in study.data if name not in ASIDE)
        self.aside = tuple(name for name in study.data if name in ASIDE)
        self._found = found

    def folds(self, name):
        """Return the answers of all folds of a set."""
        return [self._found[name, "fold", k] for k in range(self.study.folds_of(name))]

    def controls(self, name):
        """Return the answers of constrained machines on all splits of a set."""
        return [self._found[name, "control", k] for k in range(self.study.plan.splits)]

    def loss(self, name, method, loss):
        """Return the mean over folds of one loss of a method on a set."""
        each = [losses(fold["methods"][method]["p"], fold["y"])[loss] for fold in self.folds(name)]
        return float(np.nanmean(each))

    def infinite(self, name, method):
        """Return in how many folds a method gives probability 0 to a label that occurs."""
        return sum(
            bool((np.where(fold["y"] == 1, p, 1 - p) == 0).any())
            for fold in self.folds(name)
            for p in [fold["methods"][method]["p"]]
        )

    def ranks(self, loss, among, names=None):
        """Return the mean over sets of each method's rank, 1 the best; ties share their mean rank."""
        values = [[self.loss(name, method, loss) for method in among] for name in names or self.data]
        return dict(zip(among, mean_ranks(values).tolist(), strict=True))

    def controlled(self, name, way, share):
        """Return (sensitivity, MSE of positives, MSE of negatives) under Ctrl1, over all new objects of a set.

        `way` is 0 for thresholds by out-of-bag votes and 1 for thresholds by the new objects' own labels; `share` is
        the position in `control.SHARES`.
        """
        p = np.concatenate([fold["resampled"]["controlled"][way, share] for fold in self.folds(name)])
        y = np.concatenate([fold["y"] for fold in self.folds(name)])
        return reached(p, y)


def reached(p, y):
    """Return the share of label 1 with a probability above one half, and the MSE of label 1 and of label 0."""
    squares = (y - p) ** 2
    return _mean((p > 0.5 + ROUNDING)[y == 1]), _mean(squares[y == 1]), _mean(squares[y == 0])


def mean_ranks(values):
    """Return the mean rank (methods,) over rows of (sets, methods) losses, 1 the best; ties share their mean rank."""
    return stats.rankdata(np.round(values, 12), axis=1).mean(axis=0)
