"""The whole file as a stream: inductive Venn prediction from balanced calibration, with and without weights."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import chi2_contingency

from covtype_study.protocol import CLASSES
from covtype_study.published import COUNTS, TRAIN, VALIDATION
from venn.machines.frozen import FrozenScorer
from venn.monitors.bounds import BettingBound
from venn.predictors.inductive import InductiveVenn
from venn.shifts import PriorShift

KEEP = COUNTS.min() / COUNTS  # so that the kept examples are balanced, with all of the rarest class
BLOCK = 500  # rows whose labels come together
FEWEST = 20  # fewest calibration examples of a class for a statement about it
LEVEL = 0.01  # of all bounds on departures of one predictor together
WAYS = ("weights", "no weights")


class Scored:
    """An estimator whose objects are scores computed earlier."""

    classes_ = np.arange(CLASSES)

    def decision_function(self, X):
        """Return X."""
        return X


def predictor(shift=None):
    """Return an inductive Venn predictor of scores; the category is the class of the largest one."""
    return InductiveVenn(FrozenScorer(Scored()), shift=shift)


def coins(y, seed):
    """Return which of (n,) examples are kept; by random numbers not used for any order, whatever the seed."""
    return np.random.default_rng((seed, 1)).random(len(y)) < KEEP[y]


def replay(scores, y, kept, starts):
    """Yield (rows, [predictions with weights, without]) for each block, which is learned afterwards.

    Of a block's labels, those of `kept` examples are learned. Whether one is kept depends on its class and a coin:
    dropped ones never come back. The two predictors learn the same examples.
    """
    both = [predictor(PriorShift.of_keeping(KEEP)), predictor()]
    for start, stop in pairwise((*starts, len(y))):
        rows = slice(start, stop)
        yield rows, [model.predict_many(scores[rows]) for model in both]
        news = start + np.flatnonzero(kept[rows])
        for model in both:
            model.learn_many(scores[news], y[news])


def departures(block, y):
    """Return (n, c + 1): 1{y = k} - P[y, k] with the row P[y] of the true label; last, the same for the predicted k.

    Validity says that their expectation is 0. It holds for the predicted class because that depends on the object
    alone, see `venn.prediction.CategoryClass`; for a class picked from the rows of P nothing would follow.
    """
    each = np.arange(len(y))
    departed = np.eye(CLASSES)[y] - block.probabilities[each, y]
    return np.column_stack([departed, departed[each, block.index]])


@dataclass(frozen=True)
class Replayed:
    """The stream: (n,) predicted classes, and for both predictors (n,) lower and upper probabilities of them."""

    index: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kept: np.ndarray


def replayed(scores, y, seed):
    """Predict the stream in order."""
    kept = coins(y, seed)
    index, lower, upper = np.empty(len(y), np.int8), np.empty((2, len(y))), np.empty((2, len(y)))
    for rows, both in replay(scores, y, kept, range(0, len(y), BLOCK)):
        for way, said in enumerate(both):
            index[rows], lower[way, rows], upper[way, rows] = said.index, said.lower, said.upper
    return Replayed(index, lower, upper, kept)


def experiments(scores, y, seed, segment):
    """Return (2, segments, c + 1) mean departures of segments of the stream, each starting from no examples.

    Three quarters of a segment calibrate, as far as they are kept, and both predictors predict the last quarter.
    Given the segments before it, the rest of the stream is still in random order. So the mean departure of every
    segment has expectation 0 given the past, if each prediction is valid: any test for such a sequence is exact.
    """
    n, first = len(y) // segment, 3 * segment // 4
    kept = coins(y, seed)
    means = np.empty((2, n, CLASSES + 1))
    for i in range(n):
        own = slice(i * segment, (i + 1) * segment)
        (_, _), (asked, both) = replay(scores[own], y[own], kept[own], (0, first))
        means[:, i] = [departures(said, y[own][asked]).mean(axis=0) for said in both]
    return means


def bounds(means):
    """Return (c + 1, 3) of (segments, c + 1) mean departures: mean, and bounds of the expectation at any time."""
    found = []
    for one in means.T:
        bound = BettingBound(LEVEL / means.shape[1])
        bound.update_many((1 + one) / 2)
        found.append((one.mean(), 2 * bound.lower - 1, 2 * bound.upper - 1))
    return np.array(found)


def beginning(rows, scores, y):
    """Compare the first rows of the file, chosen by its makers, with the others, class by class.

    Returns (c, 3): share recognised among the first, among the others, p-value of a chi-squared test that x given the
    class is the same in both. And (2, 3), for calibration by either: accuracy, lower and upper probability of the
    predicted class, means over the second half of the others; None if a class has fewer than FEWEST to calibrate.
    """
    right = scores.argmax(axis=1) == y
    early = rows < CLASSES * (TRAIN + VALIDATION)
    table = []
    for k in range(CLASSES):
        cells = np.array(
            [[(right & (y == k) & (early == e)).sum(), (~right & (y == k) & (early == e)).sum()] for e in (1, 0)]
        )
        p = chi2_contingency(cells)[1] if (cells.sum(axis=0) > 0).all() and (cells.sum(axis=1) > 0).all() else 1.0
        table.append((*(cells[:, 0] / np.maximum(cells.sum(axis=1), 1)), p))
    others = np.flatnonzero(~early)  # in random order
    pool, asked = others[: len(others) // 2], others[len(others) // 2 :]
    sizes = np.bincount(y[early], minlength=CLASSES)
    # As many of each class from the others; half of its rows if there are too few.
    drawn = np.concatenate([pool[y[pool] == k][: sizes[k]] for k in range(CLASSES)])
    if min(sizes.min(), np.bincount(y[drawn], minlength=CLASSES).min()) < FEWEST:
        return np.array(table), None
    in_use = np.bincount(y[asked], minlength=CLASSES) / len(asked)
    claims = []
    for calibration in (np.flatnonzero(early), drawn):
        frequencies = np.bincount(y[calibration], minlength=CLASSES) / len(calibration)
        model = predictor(PriorShift(frequencies, in_use))
        model.learn_many(scores[calibration], y[calibration])
        said = model.predict_many(scores[asked])
        claims.append((right[asked].mean(), said.lower.mean(), said.upper.mean()))
    return np.array(table), np.array(claims)
