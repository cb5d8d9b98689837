"""Support vector machines for pairs of classes, each with its own parameters and weights, as in the paper."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import SVC

CACHE_MB = 500  # of the solver: kernel rows of a pair of 8000 examples
NUMBERS = 1 << 20  # kernel values of a block of rows: 8 MB
LEAST = 5e-7  # smallest decision value that counts as a vote


class Pair(NamedTuple):
    """The machine of two classes; its decision value is > 0 for the first."""

    gamma: float
    C: float
    error: float  #: weighted share of wrong validation examples
    support: Any  #: rows of X
    coefficients: Any
    bias: float


def squared_distances(A, B):
    """Return (n, m) squared Euclidean distances of rows, never below 0."""
    distances = A @ B.T
    distances *= -2
    distances += (A * A).sum(axis=1)[:, None]
    distances += (B * B).sum(axis=1)
    return np.maximum(distances, 0, out=distances)


def machines(X, signs, weights, test, Cs, gammas, tol):
    """Yield the machine of a pair for each gamma and C; they share distances and kernels.

    `test` has objects, their signs, and the weights of sign 1 and of sign -1.
    """
    held, actual, of_sign = test
    distances, beside = squared_distances(X, X), squared_distances(held, X)
    np.fill_diagonal(distances, 0.0)
    sizes = np.array([(actual == sign).sum() for sign in (1, -1)])
    for gamma in gammas:
        kernel, across = np.exp(-gamma * distances), np.exp(-gamma * beside)
        for C in Cs:
            svm = SVC(C=C, kernel="precomputed", tol=tol, cache_size=CACHE_MB).fit(kernel, signs, weights)
            coefficients, bias = svm.dual_coef_[0], float(svm.intercept_[0])
            # Whole counts first, so that equal counts are equal errors to the last bit. No vote is an error.
            wrong = actual * (across[:, svm.support_] @ coefficients + bias) <= LEAST
            counts = np.array([(wrong & (actual == sign)).sum() for sign in (1, -1)])
            yield Pair(gamma, C, float(counts @ of_sign / (sizes @ of_sign)), svm.support_, coefficients, bias)


class Pairs:
    """One-against-one RBF machines: for each two classes, one learns their examples alone.

    Each pair takes the gamma and C with fewest errors on the validation examples of its two classes; on a tie the
    smaller C, then the smaller gamma: the smoother function. With a shift, an example of class a counts as
    `weights_of(shift, a, b)[0]` examples in the machine of a and b, and in its validation errors.

    Parameters
    ----------
    X, y : (n, d) floats and (n,) classes 0, ..., c - 1
    validation : pair of such arrays
    Cs, gammas : sequences of floats
    shift : PriorShift or None
    jobs : int
        Threads that train, or score.
    tol : float
        Of the solver, scikit-learn's.

    Attributes
    ----------
    C, gamma, errors, support : (c (c - 1) / 2,) arrays
        Of each pair in order: parameters, weighted share of wrong validation examples, number of support vectors.
    """

    def __init__(self, X, y, validation, Cs, gammas, shift=None, jobs=1, tol=1e-3):
        self.jobs, self._pairs = jobs, list(combinations(range(int(y.max()) + 1), 2))

        def best(pair):
            of_class = np.ones(2) if shift is None else weights_of(shift, *pair)
            (rows, signs), (held, actual) = (_of(pair, labels) for labels in (y, validation[1]))
            weights, test = np.where(signs > 0, *of_class), (validation[0][held], actual, of_class)
            found = machines(X[rows], signs, weights, test, Cs, gammas, tol)
            one = min(found, key=lambda one: (one.error, one.C, one.gamma))
            return one._replace(support=rows[one.support])

        with ThreadPoolExecutor(jobs) as pool:
            own = list(pool.map(best, self._pairs))
        self.gamma, self.C, self.errors, self._bias = (
            np.array([getattr(one, name) for one in own]) for name in ("gamma", "C", "error", "bias")
        )
        self.support = np.array([len(one.support) for one in own])
        every = np.unique(np.concatenate([one.support for one in own]))
        self._vectors, self._groups = X[every], []
        for gamma in np.unique(self.gamma):  # machines with one gamma share kernel values
            pairs = np.flatnonzero(self.gamma == gamma)
            rows = np.unique(np.concatenate([own[i].support for i in pairs]))
            coefficients = np.zeros((len(rows), len(pairs)))
            for p, i in enumerate(pairs):
                coefficients[rows.searchsorted(own[i].support), p] = own[i].coefficients
            self._groups.append((gamma, every.searchsorted(rows), pairs, coefficients))

    def decisions(self, X):
        """Return (n, pairs) decision values of the machines: > 0 for the first class of the pair."""
        values = np.empty((len(X), len(self._bias)))

        def fill(rows):
            distances = squared_distances(X[rows], self._vectors)
            for gamma, columns, pairs, coefficients in self._groups:
                kernel = distances[:, columns]
                kernel *= -gamma
                values[rows, pairs] = np.exp(kernel, out=kernel) @ coefficients

        blocks = np.array_split(np.arange(len(X)), 1 + len(X) * len(self._vectors) // NUMBERS)
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(fill, [slice(block[0], block[-1] + 1) for block in blocks if len(block)]))
        return values + self._bias

    def scores(self, X):
        """Return (n, c) votes, plus a part below 1/3 from the summed margins s: s / (3 (|s| + 1)); ties go by it."""
        return votes_and_margins(self._pairs, self.decisions(X))


def weights_of(shift, a, b):
    """Return the weights (2,) of two classes, with mean 1 over the training examples of their machine.

    So C means the same in all pairs. After balanced training they are 2 p_a / (p_a + p_b) and 2 p_b / (p_a + p_b),
    p the operational priors.
    """
    own, train = shift.weights[[a, b]], np.array(shift.train)[[a, b]]
    return own / ((train[0] * own[0] + train[1] * own[1]) / (train[0] + train[1]))


def _of(pair, y):
    """Return the rows of the examples of two classes, and +1 for those of the first, -1 for the second."""
    rows = np.flatnonzero(np.isin(y, pair))
    return rows, np.where(y[rows] == pair[0], 1, -1)


def votes_and_margins(pairs, decisions):
    """Return (n, c) votes and parts of margins from (n, pairs) decisions."""
    to = np.zeros((len(pairs), max(max(pairs)) + 1))
    for row, (a, b) in zip(to, pairs, strict=True):
        row[a], row[b] = 1, -1
    votes = (decisions > LEAST) @ np.maximum(to, 0) + (decisions < -LEAST) @ np.maximum(-to, 0)
    margins = decisions @ to
    return votes + margins / (3 * (np.abs(margins) + 1))
