"""Any fitted scikit-learn classifier as a scorer that learns no more."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from venn._compiled.tally import linear_scores
from venn.machines.machine import class_codes, clean_object
from venn.prediction import Floats, Integers, Label

METHODS = ("decision_function", "predict_proba")


def clean_rows(X: Any, features: int | None) -> Floats:
    """Return `X` as finite (n, d) float64 rows, not copied where it is that, or say what is wrong with it."""
    if np.ma.isMaskedArray(X):
        raise TypeError(f"X must have no masked values, got {X!r}")
    try:
        rows = np.asarray(X)
        if rows.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"X must be rows of numbers (n, d), got {X!r}") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"X must be two-dimensional (n, d), got shape {rows.shape}: one object x is X = [x]")
    if features is not None and rows.shape[1] != features:
        raise ValueError(f"X must have {features} features as the first object had, got {rows.shape[1]}")
    clean: Floats = np.ascontiguousarray(rows, np.float64)
    if not np.isfinite(clean).all():
        i, f = np.argwhere(~np.isfinite(clean))[0].tolist()
        raise ValueError(f"X must be finite, got {clean[i, f]} at row {i}, feature {f}")
    return clean


class FrozenScorer:
    """A fitted scikit-learn classifier whose scores a predictor calibrates.

    The estimator is copied and never changes: fitting the original again does not show here. Scores are
    those of `decision_function` where there is one, of `predict_proba` otherwise, as they are; of two classes a
    single decision value f becomes the two scores -f and f.

    What it was fitted to must be disjoint from the examples that will calibrate it. That is the whole
    assumption about it: any estimator whatever gives valid predictions, a better one sharper ones.

    Parameters
    ----------
    estimator : fitted classifier
        With `classes_` and `decision_function` or `predict_proba`; pipelines and searches too.
    classes : sequence of distinct labels, optional
        Class order, by default that of the estimator. Classes that the estimator has not seen may be
        among them: they get the smallest score of each row by `decision_function`, 0 by `predict_proba`.

    Attributes
    ----------
    classes : tuple of labels
    features : int or None
        Number of features; None where the estimator does not say.

    Raises
    ------
    TypeError
        The estimator is a class, or has neither method.
    ValueError
        It is not fitted, gives one-against-one decisions, or `classes` lacks one of its classes.

    Notes
    -----
    scikit-learn's own linear classifiers are scored from their coefficients by compiled code: one example
    costs microseconds, and a row in a block has the very score it has alone. Other estimators are asked
    themselves, and a row in a block has the score it has alone as far as their last bits do.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> X, y = [[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]
    >>> scorer = FrozenScorer(LinearSVC().fit(X, y))
    >>> scorer.classes
    ('no', 'yes')
    >>> bool(scorer.scores([1.1])[1] > 0)
    True
    """

    def __init__(self, estimator: Any, classes: Sequence[Label] | None = None) -> None:
        self._method = "" if isinstance(estimator, type) else next((m for m in METHODS if _has(estimator, m)), "")
        found = getattr(estimator, "classes_", None)
        if isinstance(estimator, type) or (not self._method and (found is not None or not hasattr(estimator, "fit"))):
            raise TypeError(f"estimator must have decision_function or predict_proba, got {estimator!r}")
        if found is None:
            raise ValueError(f"estimator must be a fitted classifier, with classes_, got {estimator!r}")
        if not isinstance(found, np.ndarray) or found.ndim != 1:
            raise ValueError(f"estimator must predict one label, got classes_ = {found!r}")
        shapes = [v for k, v in _parameters(estimator).items() if k.endswith("decision_function_shape")]
        if self._method == "decision_function" and len(found) > 2 and "ovo" in shapes:
            raise ValueError(
                f"estimator must have one decision value for each class, got one-against-one {estimator!r}"
            )
        own = found.tolist()
        codes = class_codes(own if classes is None else classes)
        for label in own:
            if label not in codes:
                raise ValueError(f"classes must hold all classes of the estimator, {own!r}, got {list(codes)!r}")
        self.classes = tuple(codes)
        self._columns: Integers = np.array([codes[label] for label in own])
        self._estimator = copy.deepcopy(estimator)
        # Rows come as arrays: an estimator that remembers column names would warn at each of them.
        vars(self._estimator).pop("feature_names_in_", None)
        self.features: int | None = getattr(estimator, "n_features_in_", None)
        self._linear = self._linear_map()

    def __repr__(self) -> str:
        return f"FrozenScorer({self._estimator!r}, classes={list(self.classes)!r})"

    def _linear_map(self) -> tuple[Floats, Floats] | None:
        """Return weights (c, d) and bias (c,) where scores are exactly theirs."""
        estimator, c = self._estimator, len(self.classes)
        weights = getattr(estimator, "coef_", None)
        if self._method != "decision_function" or not isinstance(weights, np.ndarray) or len(self._columns) < c:
            return None
        # Having coefficients is not enough: the decision function must be scikit-learn's own linear one.
        owner = next(kind for kind in type(estimator).__mro__ if "decision_function" in vars(kind))
        if owner.__name__ != "LinearClassifierMixin" or not owner.__module__.startswith("sklearn."):
            return None
        weights = np.atleast_2d(weights)
        bias = np.broadcast_to(estimator.intercept_, len(weights))
        if len(weights) == 1:
            weights, bias = np.vstack([-weights, weights]), np.append(-bias, bias)
        order = np.argsort(self._columns)
        return np.ascontiguousarray(weights[order], np.float64), np.ascontiguousarray(bias[order], np.float64)

    def scores(self, x: Any) -> Floats:
        """Return the (c,) scores of an object.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        row: Floats = self._score(clean_object(x, self.features)[None])[0]
        return row

    def score_many(self, X: Any) -> Floats:
        """Return the (n, c) scores of n objects.

        Parameters
        ----------
        X : (n, d) finite numbers

        Raises
        ------
        ValueError, TypeError
            X is not that, or a score is not finite.
        """
        return self._score(clean_rows(X, self.features))

    def _score(self, rows: Floats) -> Floats:
        scores = np.empty((len(rows), len(self.classes)))
        if self._linear is not None:
            linear_scores(rows, *self._linear, scores)
        elif len(rows):
            values = np.asarray(getattr(self._estimator, self._method)(rows), np.float64)
            if values.ndim == 1:
                values = np.column_stack([-values, values])
            if len(self._columns) < scores.shape[1]:
                proba = self._method == "predict_proba"
                scores[:] = 0.0 if proba else values.min(axis=1, keepdims=True)
            scores[:, self._columns] = values
        if not np.isfinite(scores).all():
            i, k = np.argwhere(~np.isfinite(scores))[0].tolist()
            raise ValueError(f"scores must be finite, got {scores[i, k]} for class {self.classes[k]!r} at row {i}")
        return scores


def _has(estimator: Any, method: str) -> bool:
    return callable(getattr(estimator, method, None))


def _parameters(estimator: Any) -> dict[str, Any]:
    known: dict[str, Any] = estimator.get_params() if _has(estimator, "get_params") else {}
    return known
