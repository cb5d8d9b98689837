"""Classifiers of other kinds beside kernel machines: a forest, boosted trees, a logistic regression, as arrays."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from venn._compiled.tally import linear_scores
from venn.machines.columns import ColumnScale, held_scale, middle
from venn.machines.sparse import SparseRows
from venn.machines.trees import FlatTrees
from venn.prediction import Floats, Integers
from venn.saved import Saved, component, held_codes, held_finite, held_int, held_rows, own, param

TREES = 100  # of the forest
LEAVES = 400  # rounds of boosting times classes: with many classes there are fewer rounds
FARTHEST = 10.0  # deviations from the centre, for the logistic regression
KINDS = 3


K = own(lambda learners: len(learners.present))  # classes among the examples


def _held_present(name: str, present: Any, c: int) -> Any:
    held_codes(name, present, (held_rows(name, present),), 0, c)
    if not len(present) or not (np.diff(present) > 0).all():
        raise ValueError(f"{name} must be ascending class codes, got {present!r}")
    return present


def _held_trees(name: str, trees: Any, k: int) -> Any:
    # Where only the others are tried there is no forest.
    if not isinstance(trees, FlatTrees | None) or (trees is not None and k == 1):
        raise ValueError(f"{name} must be trees, or None where there is one class, got {trees!r}")
    return trees


@component
class Learners(Saved):
    """A random forest, boosted trees and a logistic regression, fitted to the same examples with nothing to choose.

    They are scikit-learn's; what is kept are plain arrays, so that one object takes microseconds, and files need no
    pickle. `Learners.fitted` makes them.

    Parameters
    ----------
    c : int >= 2
        Number of classes.
    present : (k,) int64
        Codes of those among the examples, ascending; the others have probability 0.
    forest, boosted : FlatTrees or None
        None if k is 1.
    scale : (3, d) float64
        See `ColumnScale.state`.
    coefficients : (1 or k, d + 1) float64
        Of the logistic regression on scaled columns, the constant last.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> learners = Learners.fitted(X, (X[:, 0] > 0).astype(int), 2)
    >>> learners.probas(np.array([[2.0, 0.0]])).argmax(axis=2).ravel().tolist()
    [1, 1, 1]
    """

    c: int = param(held_int, 1)
    present: Integers = param(_held_present, own(lambda learners: learners.c))
    forest: FlatTrees | None = param(_held_trees, K)
    boosted: FlatTrees | None = param(_held_trees, K)
    scale: Floats = param()
    coefficients: Floats = param(held_finite, own(lambda m: (1 if K.of(m) == 2 else K.of(m), m.scale.shape[-1] + 1)))

    def derive(self) -> None:
        """Take the arrays apart."""
        self._scale: ColumnScale = held_scale(self.scale)
        self._weights = np.ascontiguousarray(self.coefficients[:, :-1])
        self._constants = self.coefficients[:, -1].copy()

    @classmethod
    def fitted(cls, X: Any, codes: Integers, c: int) -> Self:
        """Return learners fitted to (n, d) objects and (n,) class codes, n >= 1."""
        return cls._fitted(X, codes, c)[0]

    @classmethod
    def fitted_and_tried(cls, X: Any, codes: Integers, c: int, tried: Integers) -> tuple[Self, Floats]:
        """Return learners, and what such learners say of some of the examples that they have not seen.

        Parameters
        ----------
        tried : (m,) int64
            Which examples. Boosted trees and a logistic regression are fitted to all others as well; of the forest's
            trees each leaves a third of the examples out anyway.

        Returns
        -------
        Learners, (3, m, c) probabilities; NaN where there are none
        """
        learners, unseen = cls._fitted(X, codes, c)
        said = np.full((KINDS, len(tried), c), np.nan)
        if learners.forest is None:
            return learners, said
        said[0] = learners.of_all(unseen[tried])
        others = np.ones(len(codes), np.bool_)
        others[tried] = False
        if len(np.unique(codes[others])) > 1:
            said[1:] = cls._fitted(X[others], codes[others], c, forest=False)[0].probas(X[tried])[1:]
        return learners, said

    @classmethod
    def _fitted(cls, X: Any, codes: Integers, c: int, forest: bool = True) -> tuple[Self, Floats]:
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression

        X, present = dense(X), np.unique(codes)
        k, scale = len(present), middle(X)
        if k == 1:
            nothing = np.zeros((1, X.shape[1] + 1))
            return cls(c, present, None, None, scale.state, nothing), np.ones((len(X), 1))
        rounds = int(np.clip(LEAVES // (k if k > 2 else 1), 20, 100))
        woods = RandomForestClassifier(TREES, oob_score=True, random_state=0)
        boosting = HistGradientBoostingClassifier(max_iter=rounds, random_state=0)
        linear = LogisticRegression(max_iter=300)
        placed = scale.place(X, FARTHEST)  # to trees the same, but for numbers that 32 bits do not hold
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few examples: some in no tree's rest, a search that has not ended
            if forest:
                woods.fit(placed, codes)
            boosting.fit(placed, codes)
            linear.fit(placed, codes)
        weights = np.column_stack([linear.coef_, linear.intercept_])
        trees, unseen = (FlatTrees.of(woods), woods.oob_decision_function_) if forest else (None, np.empty(0))
        return cls(c, present, trees, FlatTrees.of(boosting), scale.state, weights), unseen

    def place(self, rows: Any) -> Floats:
        """Return (n, d) objects on the scale of the examples."""
        return self._scale.place(dense(rows), FARTHEST)

    def of_all(self, shares: Floats) -> Floats:
        """Return (n, c) probabilities of all classes, given those (n, k) of the classes present."""
        if len(self.present) == self.c:
            return shares
        full = np.zeros((len(shares), self.c))
        full[:, self.present] = shares
        return full

    def probas(self, rows: Any) -> Floats:
        """Return the (3, n, c) probabilities of n objects by the forest, the boosted trees and the regression."""
        return self.probas_of(self.place(rows))

    def probas_of(self, placed: Floats) -> Floats:
        """Return the same for (n, d) objects on the scale of the examples; of a row as if it were alone."""
        n, k = len(placed), len(self.present)
        if k == 1:
            return np.tile(np.eye(self.c)[self.present[0]], (KINDS, n, 1))
        found, scores = np.empty((n, len(self._constants))), np.zeros((n, k))
        linear_scores(np.ascontiguousarray(placed), self._weights, self._constants, found)
        scores[:, k - len(self._constants) :] = found  # of two classes the first has 0
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        trees = [np.full((n, k), np.nan) if one is None else one.proba(placed) for one in (self.forest, self.boosted)]
        return np.array([self.of_all(shares) for shares in (*trees, scores)])


def dense(rows: Any) -> Floats:
    """Return objects as an array."""
    return rows.toarray() if isinstance(rows, SparseRows) else np.asarray(rows)
