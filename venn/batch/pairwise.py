"""A support vector machine for each pair of classes, with its own parameters and weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from venn._compiled.pairs import rbf_values
from venn.adapters.checks import example_weights, validate_data, whole
from venn.parameters import positive
from venn.prediction import Floats, Integers
from venn.priors import PriorShift

LEAST = 5e-7  # smallest decision value that counts as a vote
CACHE_MB = 500  # of the solver: kernel rows of a pair of 8000 examples
NUMBERS = 1 << 20  # kernel values of a block of rows: 8 MB


def pair_signs(c: int) -> NDArray[np.int8]:
    """Return (pairs, c): for each pair of classes, in order, +1 at the first, -1 at the second, 0 elsewhere."""
    signs = np.zeros((c * (c - 1) // 2, c), np.int8)
    for row, (a, b) in zip(signs, combinations(range(c), 2), strict=True):
        row[a], row[b] = 1, -1
    return signs


def votes_and_margins(signs: NDArray[np.int8], scores: Floats) -> Floats:
    """Return (c, m) votes, and parts of summed margins for ties, from (pairs, m) scores; 0 is no vote.

    The part is s / (3 (|s| + 1)) of a sum s, which is less than 1/3.
    """
    to = signs.T.astype(np.float64)
    votes = (to > 0).astype(np.float64) @ (scores > LEAST) + (to < 0).astype(np.float64) @ (scores < -LEAST)
    margins = to @ scores
    return votes + margins / (3 * (np.abs(margins) + 1))


class Pair(NamedTuple):
    """The machine of two classes."""

    gamma: float
    C: float
    error: float  #: weighted share of wrong validation examples; NaN without validation
    support: Integers  #: rows of X
    coefficients: Floats
    bias: float


class Group(NamedTuple):
    """Machines with one gamma: they share the kernel values at the support vectors of any of them."""

    gamma: float
    columns: Any  #: (u,) uint64, which of all support vectors
    pairs: Integers  #: (p,)
    coefficients: Floats  #: (u, p)


def squared_distances(A: Floats, B: Floats) -> Floats:
    """Return (n, m) squared Euclidean distances of rows, never below 0."""
    distances: Floats = A @ B.T
    distances *= -2
    distances += (A * A).sum(axis=1)[:, None]
    distances += (B * B).sum(axis=1)
    np.maximum(distances, 0, out=distances)
    return distances


def candidates(name: str, values: Any) -> tuple[float, ...]:
    """Return the numbers > 0 to choose from, ascending, or say what is wrong with them."""
    if isinstance(values, list | tuple | np.ndarray) and np.ndim(values) == 1 and len(values) > 0:
        return tuple(sorted({positive(name, value) for value in values}))
    return (positive(name, values),)


class PairwiseSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One-against-one RBF support vector classifier whose pairs have their own parameters and weights.

    For each two classes, one machine learns their examples alone. If `gamma` or `C` have several values, each pair
    takes the values with fewest errors on the validation examples of its two classes; on a tie the smaller C, then the
    smaller gamma: the smoother function. scikit-learn's `SVC` has one gamma and one C for all pairs, and one weight for
    a class in all of them; with one value of each and no shift the two are the same machine.

    With a `shift`, an example of class a counts as `shift.pair(a, b)[0]` examples in the machine of a and b, and in its
    validation errors. The mean is 1 over the pair's training examples, so that C means the same in all pairs.

    The predicted class has the most votes; ties go to the larger sum of margins, then to the first class.

    Parameters
    ----------
    C : float > 0, or a sequence of such, default 1
        Bound on the coefficient of an example of weight 1.
    gamma : "scale", float > 0, or a sequence of such, default "scale"
        k(x, x') = exp(-gamma |x - x'|^2). "scale" is 1 / (d * variance of all numbers in X).
    shift : PriorShift, optional
        From the class frequencies of training to those in use, with any costs; in the order of `classes_`.
    tol : float > 0, default 1e-3
        Of the solver, as in `SVC`.
    n_jobs : int, optional
        Threads that fit pairs or score blocks of rows, counted as in joblib; 1 by default.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order.
    pairs_ : (m, 2) int64
        Positions of the two classes of each machine, m = c (c - 1) / 2.
    C_, gamma_ : (m,) float64
        Of each machine.
    errors_ : (m,) float64
        Weighted share of wrong validation examples of each machine; NaN without validation.
    n_support_ : (m,) int64
        Number of support vectors of each machine.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    ValueError
        By `fit`: a parameter outside its range, one class only, or objects that are not finite.
    NotFittedError
        By `predict` and `decision_function`, before `fit`.

    Notes
    -----
    The solver is scikit-learn's, on kernel values that the candidates of a pair share: (n_a + n_b)^2 numbers in memory
    for each thread. Objects are scored in blocks: inner products with all support vectors once, kernel values once for
    all machines of a gamma, sums by one matrix product. A row in a block has the same decision values as alone, up to
    the last bits.

    No gain in accuracy by weights is proved; that a weight acts as so many copies is: see `PriorShift`.

    References
    ----------
    Cawley & Talbot, "Manipulation of prior probabilities in support vector classification"; Kressel (1999), "Pairwise
    classification and support vector machines".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PairwiseSVC(C=(1, 10), gamma=(0.1, 1.0)).fit(X[::2], y[::2], validation=(X[1::2], y[1::2]))
    >>> model.pairs_.tolist(), model.C_, model.gamma_
    ([[0, 1], [0, 2], [1, 2]], array([1., 1., 1.]), array([0.1, 0.1, 1. ]))
    >>> model.decision_function(X[:1]).round(1)  # votes: the first class wins both its pairs, the second one
    array([[ 2.2,  0.8, -0.2]])
    """

    def __init__(
        self,
        *,
        C: Any = 1.0,
        gamma: Any = "scale",
        shift: PriorShift | None = None,
        tol: float = 1e-3,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.shift = shift
        self.tol = tol
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ fitting

    @whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None) -> PairwiseSVC:
        """Choose the parameters of each pair, and train it.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        y : (n,) labels of at least two classes
        sample_weight : (n,) numbers >= 0, optional
            An example of weight w counts as w examples, times its weight by class; one of weight 0 does not count.
        validation : pair (X, y), optional
            Examples of every class, not used for training. Needed if there is something to choose.

        Returns
        -------
        PairwiseSVC
            The object itself.

        Raises
        ------
        TypeError, ValueError
            A parameter or argument is not as described. What was fitted before stays.
        """
        Cs = candidates("C", self.C)
        gammas = () if isinstance(self.gamma, str) and self.gamma == "scale" else candidates("gamma", self.gamma)
        tol = positive("tol", self.tol)
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        weights = example_weights(sample_weight, len(X))
        present = np.flatnonzero(weights > 0)
        X, y, weights = X[present], y[present], weights[present]
        classes, codes = np.unique(y, return_inverse=True)
        c = len(classes)
        if c < 2:
            raise ValueError(f"y must hold at least 2 classes of examples with weight > 0, got {c} class")
        signs = pair_signs(c)
        by_class = self._class_weights(c)
        if validation is None and (len(Cs) > 1 or len(gammas) > 1):
            raise ValueError(f"validation must be given to choose from C {Cs} and gamma {gammas}, got None")
        held = None if validation is None else self._validation(validation, classes)
        if not gammas:
            mean = np.average(X, axis=0, weights=weights).mean()
            variance = float(np.average((X - mean) ** 2, axis=0, weights=weights).mean())
            gammas = (1 / (X.shape[1] * variance) if variance > 0 else 1.0,)

        def solved(a: int, b: int) -> Pair:
            rows = np.flatnonzero((codes == a) | (codes == b))
            of_class = np.zeros(c)
            of_class[[a, b]] = by_class[a, b]
            own = np.where(codes[rows] == a, 1, -1)
            problem = X[rows], own, weights[rows] * of_class[codes[rows]]
            test = None
            if held is not None:
                beside = np.flatnonzero((held[1] == a) | (held[1] == b))
                test = held[0][beside], np.where(held[1][beside] == a, 1, -1), by_class[a, b]
            best = min(
                machines(problem, test, Cs, gammas, tol), key=lambda one: (np.nan_to_num(one.error), one.C, one.gamma)
            )
            return best._replace(support=rows[best.support])

        self._take(X, signs, self._parallel(solved, list(combinations(range(c), 2))))
        self.classes_ = classes
        return self

    def _class_weights(self, c: int) -> dict[tuple[int, int], tuple[float, float]]:
        """Return the weights of both classes of each pair."""
        pairs = list(combinations(range(c), 2))
        if self.shift is None:
            return dict.fromkeys(pairs, (1.0, 1.0))
        if not isinstance(self.shift, PriorShift):
            raise TypeError(f"shift must be a PriorShift, got {self.shift!r}")
        if len(self.shift.train) != c or min(self.shift.operational) == 0:
            raise ValueError(f"shift must be of {c} classes, all with operational priors > 0, got {self.shift!r}")
        return {(a, b): self.shift.pair(a, b) for a, b in pairs}

    def _validation(self, validation: Any, classes: Any) -> tuple[Floats, Integers]:
        requirement = "validation must be a pair (X, y)"
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise TypeError(f"{requirement}, got {type(validation).__name__}")
        X = validate_data(self, validation[0], dtype=np.float64, order="C", reset=False)
        y = np.asarray(validation[1])
        if y.shape != (len(X),):
            raise ValueError(f"{requirement} with a label for each of {len(X)} rows, got labels of shape {y.shape}")
        for label in classes.tolist():
            if not (y == label).any():
                raise ValueError(f"{requirement} with examples of each class of y, got none of {label!r}")
        known = np.isin(y, classes)
        if not known.all():
            raise ValueError(f"{requirement} of the classes of y, {classes.tolist()!r}, got {y[~known].tolist()[0]!r}")
        return X, classes.searchsorted(y)

    def _take(self, X: Floats, signs: Any, pairs: list[Pair]) -> None:
        """Keep the machines: all their support vectors, and the coefficients by gamma."""
        support = np.unique(np.concatenate([pair.support for pair in pairs]))
        self._support = X[support]
        self._norms = (self._support * self._support).sum(axis=1)
        self._signs = signs
        self._bias = np.array([pair.bias for pair in pairs])
        self._groups = []
        for gamma in sorted({pair.gamma for pair in pairs}):
            own = [i for i, pair in enumerate(pairs) if pair.gamma == gamma]
            rows = np.unique(np.concatenate([pairs[i].support for i in own]))
            coefficients = np.zeros((len(rows), len(own)))
            for p, i in enumerate(own):
                coefficients[rows.searchsorted(pairs[i].support), p] = pairs[i].coefficients
            columns = support.searchsorted(rows).astype(np.uint64)
            self._groups.append(Group(gamma, columns, np.array(own), coefficients))
        self.pairs_ = np.array(list(combinations(range(signs.shape[1]), 2)))
        self.C_, self.gamma_ = (np.array([getattr(pair, name) for pair in pairs]) for name in ("C", "gamma"))
        self.errors_ = np.array([pair.error for pair in pairs])
        self.n_support_ = np.array([len(pair.support) for pair in pairs])

    def _parallel(self, work: Any, tasks: list[Any]) -> list[Any]:
        """Return the results of the work on each task, in order, in threads if wanted."""
        if effective_n_jobs(self.n_jobs) == 1 or len(tasks) == 1:
            return [work(*task) for task in tasks]
        with threadpool_limits(1):  # we have threads already; those of a matrix product would wait for each other
            done: list[Any] = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(work)(*task) for task in tasks)
        return done

    # ------------------------------------------------------------------ scoring

    def pair_decisions(self, X: Any) -> Floats:
        """Return (n, m) decision values of the machines for n objects: > 0 for the first class of the pair.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        values = np.empty((len(X), len(self._bias)))
        widest = max(len(self._support), max(len(group.columns) for group in self._groups))
        size = max(16, NUMBERS // widest)
        jobs = effective_n_jobs(self.n_jobs)
        share = -(-len(X) // jobs)  # one part for each thread, which then allocates once
        parts = [(X[i : i + share], values[i : i + share], size) for i in range(0, len(X), share)]
        self._parallel(self._decide, parts)
        return values

    def _decide(self, X: Floats, out: Floats, size: int) -> None:
        """Fill (n, m) decision values, `size` rows at a time."""
        size = min(size, len(X))
        products = np.empty((size, len(self._support)))
        kernels = [np.empty((size, len(group.columns))) for group in self._groups]
        for start in range(0, len(X), size):
            rows, values = X[start : start + size], out[start : start + size]
            n = len(rows)
            np.dot(rows, self._support.T, out=products[:n])
            norms = (rows * rows).sum(axis=1)
            for group, kernel in zip(self._groups, kernels, strict=True):
                rbf_values(products, norms, self._norms, group.columns, group.gamma, kernel)
                values[:, group.pairs] = kernel[:n] @ group.coefficients
            values += self._bias

    def decision_function(self, X: Any) -> Floats:
        """Return (n, c) votes for n objects, plus a part below 1/3 from the summed margins s: s / (3 (|s| + 1)).

        For two classes (n,): the decision value, > 0 for the second class.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        values = self.pair_decisions(X)
        if len(self.classes_) == 2:
            return -values[:, 0]
        return votes_and_margins(self._signs, values.T).T

    def predict(self, X: Any) -> Any:
        """Return (n,) labels: the class of most votes; on a tie that of larger summed margins, then the first.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        decided = self.decision_function(X)
        return self.classes_[(decided > 0).astype(int) if decided.ndim == 1 else decided.argmax(axis=1)]


def machines(problem: Any, test: Any, Cs: tuple[float, ...], gammas: tuple[float, ...], tol: float) -> Iterator[Pair]:
    """Yield the machine of a pair for each gamma and C, with shared squared distances and kernels."""
    X, signs, weights = problem
    distances = squared_distances(X, X)
    np.fill_diagonal(distances, 0.0)
    beside = None if test is None else squared_distances(test[0], X)
    kernel = np.empty_like(distances)
    for gamma in gammas:
        np.exp(np.multiply(distances, -gamma, out=kernel), out=kernel)
        across = None if beside is None else np.exp(-gamma * beside)
        for C in Cs:
            svm = SVC(C=C, kernel="precomputed", tol=tol, cache_size=CACHE_MB).fit(kernel, signs, weights)
            support, coefficients, bias = svm.support_.astype(np.int64), svm.dual_coef_[0], float(svm.intercept_[0])
            error = np.nan
            if across is not None:
                # Whole counts first, so that equal counts are equal errors to the last bit. No vote is an error.
                wrong = test[1] * (across[:, support] @ coefficients + bias) <= LEAST
                sizes = np.array([(test[1] == sign).sum() for sign in (1, -1)])
                counts = np.array([(wrong & (test[1] == sign)).sum() for sign in (1, -1)])
                error = float(counts @ test[2] / (sizes @ test[2]))
            yield Pair(gamma, C, error, support, coefficients, bias)
