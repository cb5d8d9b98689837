"""For scikit-learn: scores of intervals and distributions, as `cross_val_score` and searches take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.distribution import interval_score
from venn.parameters import fraction


class _Scorer:
    """A function of (fitted estimator, X, y): greater is better, as everywhere in scikit-learn."""

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples."""
        raise NotImplementedError

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"


class _OfIntervals(_Scorer):
    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = fraction("alpha", alpha)

    def _ends(self, estimator: Any, X: Any) -> Any:
        return np.asarray(estimator.predict_interval(X, self.alpha)).T


class IntervalScorer(_OfIntervals):
    """Minus the mean interval score: width, and 2 / alpha times how far outside the label is.

    For `scoring=` of `GridSearchCV`, `cross_val_score` and the like, with a regressor that has
    `predict_interval(X, alpha)`, as `ConformalRegressor`.

    Parameters
    ----------
    alpha : float in (0, 1), default 0.1
        The level of the intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(
    ...     ConformalRegressor(Ridge(), cv=3), {"estimator__alpha": [0.01, 100.0]}, scoring=IntervalScorer(0.1), cv=2
    ... )
    >>> search.fit(X[:150], y[:150]).best_params_
    {'estimator__alpha': 0.01}
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples; minus infinity where an interval is infinite."""
        ends = zip(*self._ends(estimator, X).tolist(), np.asarray(y, np.float64).tolist(), strict=True)
        return -float(np.mean([interval_score(lower, upper, label, self.alpha) for lower, upper, label in ends]))


class CoverageScorer(_OfIntervals):
    """The share of labels inside their intervals, to be looked at beside another score: alone it rewards wide ones.

    Parameters
    ----------
    alpha : float in (0, 1), default 0.1
        The level of the intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CoverageScorer(0.5)(ConformalRegressor().fit(X[:100], y[:100]), X[100:200], y[100:200]) > 0.35
    True
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the share on the examples."""
        lower, upper = self._ends(estimator, X)
        labels = np.asarray(y, np.float64)
        return float(np.mean((lower <= labels) & (labels <= upper)))


class CRPSScorer(_Scorer):
    """Minus the mean continuous ranked probability score, of a regressor that has `predict_distribution`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CRPSScorer()(ConformalRegressor().fit(X[:100], y[:100]), X[100:200], y[100:200]) > -45
    True
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples."""
        labels = np.asarray(y, np.float64).tolist()
        said = estimator.predict_distribution(X)
        return -float(np.mean([one.crps(label) for one, label in zip(said, labels, strict=True)]))
