"""Any fitted scikit-learn regressor as a scorer that no longer learns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from venn.labels import Real
from venn.machines.checks import check_names
from venn.machines.frozen import Answers, KeptEstimator, ObjectRows, clean_row, clean_rows, copied
from venn.machines.tables import columns_of
from venn.parameters import has_methods, optional
from venn.prediction import Floats
from venn.saved import Saved, component, param


def _fitted(name: str, given: Any) -> Any:
    """Return a copy of a fitted regressor, or say what it must be."""
    one = given.estimator if isinstance(given, KeptEstimator) else given
    if not has_methods(one, "predict"):
        raise TypeError(f"{name} must be a fitted regressor, with a method 'predict', got {one!r}")
    if hasattr(one, "classes_"):
        raise TypeError(f"{name} must be a regressor, got the classifier {one!r}: use FrozenScorer")
    return copied(given)


@component
class FrozenRegressor(Saved):
    """A fitted scikit-learn regressor whose forecasts a predictor calibrates.

    The estimators are copied and never change. The examples they were fitted to must be disjoint from those that will
    calibrate them: that is the only assumption about them.

    Parameters
    ----------
    estimator : fitted regressor
        With a method `predict` that returns one number for each row; pipelines and searches too. Columns go by name
        and place as those of a `FrozenScorer`.
    spread : fitted regressor, optional
        Predicts how far labels lie from the forecast, as one fitted to absolute residuals: numbers > 0. Intervals are
        then wide where it is large.

    Attributes
    ----------
    features : int or None
        Number of features; None where the estimator does not say.
    feature_names : tuple of str or None
        Columns of the table that the estimator was fitted to.

    Raises
    ------
    TypeError
        An estimator is a class, or has no method `predict`.
    ValueError
        Both were fitted to tables, with other columns or in another order.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> scorer = FrozenRegressor(LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]))
    >>> scorer.scores([4.0]).round(3)
    array([9.])
    """

    classes = ()
    space = Real()
    missing = True  # NaN in objects is the estimators' to take or to refuse
    __eq__, __hash__ = object.__eq__, object.__hash__  # whatever an estimator says of its own

    estimator: Any = param(_fitted, foreign=True)
    spread: Any = param(optional, _fitted, default=None, foreign=True)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a scorer by these estimators, which are not copied."""
        return super().made_of({name: None if one is None else KeptEstimator(one) for name, one in parameters.items()})

    def derive(self) -> None:
        """Compare the columns of the estimators."""
        self.features, self.feature_names = columns_of(self.estimator)
        names = columns_of(self.spread)[1]
        if self.feature_names is not None and names is not None:
            check_names("spread must have been fitted to the columns", names, self.feature_names)
        self._forecasts, self._spreads = Answers(self.estimator), Answers(self.spread)

    def scores(self, x: Any) -> Floats:
        """Return the (1,) forecast for an object, or with a spread the (2,) forecast and spread.

        Raises
        ------
        ValueError, TypeError
            x is not a row of numbers that the estimator takes, or what is predicted for it is not finite, or a spread
            not > 0.
        """
        return self.score_rows(clean_row(x, self.features, self.feature_names, True))[0]

    def score_many(self, X: Any) -> Floats:
        """Return the (n, 1) forecasts, or (n, 2) forecasts and spreads, for n objects."""
        return self.score_rows(clean_rows(X, self.features, self.feature_names, True))

    def score_rows(self, rows: ObjectRows) -> Floats:
        """Return the forecasts for rows that `clean_rows` has checked.

        Raises
        ------
        ValueError
            The estimator predicts something that is not finite, or a spread that is not > 0.
        """
        columns = [self._asked(self._forecasts, rows, "forecasts")]
        if self.spread is not None:
            columns.append(self._asked(self._spreads, rows, "spreads"))
            if len(rows) and not columns[1].min() > 0:
                raise ValueError(f"spreads must be > 0, got {columns[1].min()}")
        return np.column_stack(columns)

    def _asked(self, answers: Answers, rows: ObjectRows, what: str) -> Floats:
        if not len(rows):
            return np.zeros(0)
        values = answers.of("predict", rows)
        if values.size != len(rows):
            raise ValueError(f"{what} must be {len(rows)} numbers, one for each row, got shape {values.shape}")
        values = values.reshape(-1)
        if not self.space.holds(values):
            raise ValueError(f"{what} must be finite and of size at most 1e100, got {values[np.abs(values).argmax()]}")
        return values
