"""Fitted regressors, and models that answer quantiles or distributions, as scorers that no longer learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from venn.labels import Real
from venn.machines.estimators import KeptEstimator, copied
from venn.machines.frozen import Answers, GivenScorer
from venn.machines.machine import check_names
from venn.machines.objects import ObjectRows
from venn.machines.rulers import FamilyScale, QuantileScale, Ruler, family_name
from venn.machines.tables import columns_of, has_classes
from venn.parameters import array_of, has_methods, not_negative, optional
from venn.prediction import Floats
from venn.saved import component, param, saved

# ----------------------------------------------------------------------------------------------------- frozen regressor
# Any fitted scikit-learn regressor as a scorer that no longer learns.


def _fitted(name: str, given: Any) -> Any:
    """Return a copy of a fitted regressor, or say what it must be."""
    one = given.estimator if isinstance(given, KeptEstimator) else given
    if not has_methods(one, "predict"):
        raise TypeError(f"{name} must be a fitted regressor, with a method 'predict', got {one!r}")
    if has_classes(one):
        raise TypeError(f"{name} must be a regressor, got the classifier {one!r}: use FrozenScorer")
    return copied(given)


class NumberScorer(GivenScorer):
    """Base of scorers of numbers."""

    missing = True  # NaN in objects is the estimators' to take or to refuse
    classes = ()
    space = Real()


@component
class FrozenRegressor(NumberScorer):
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
        super().derive()

    def _score(self, rows: ObjectRows) -> Floats:
        """Return the (n, 1) forecasts, or (n, 2) forecasts and spreads > 0."""
        columns = [self._asked(self._forecasts, rows, "forecasts")]
        if self.spread is not None:
            columns.append(self._asked(self._spreads, rows, "spreads"))
            if len(rows) and not columns[1].min() > 0:
                raise ValueError(f"spreads must be > 0, got {columns[1].min()}")
        return np.column_stack(columns)

    def score_alone(self, rows: ObjectRows) -> Floats:
        """Return the numbers that rows have one by one, to the last bit: of trees in one call."""
        asked = [self._forecasts] if self.spread is None else [self._forecasts, self._spreads]
        if isinstance(rows, np.ndarray) and all(one.trees is not None for one in asked):
            return self.score_rows(rows)
        return np.concatenate([self.score_rows(rows[i : i + 1]) for i in range(len(rows))])

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


# -------------------------------------------------------------------------------------------------- frozen distribution
# Fitted models that answer quantiles, or the parameters of a distribution, as scorers that no longer learn.


class Function:
    """A function of (n, d) rows as an estimator, so that it stands where these do."""

    def __init__(self, predict: Callable[[Any], Any]) -> None:
        self.predict = predict


class Together:
    """Several fitted regressors as one estimator, which answers a column for each."""

    def __init__(self, members: Sequence[Any]) -> None:
        self.members = tuple(members)
        for own, name in zip(columns_of(self.members[0]), ("n_features_in_", "feature_names_in_"), strict=True):
            if own is not None:
                setattr(self, name, own)

    def predict(self, X: Any) -> Floats:
        """Return the (n, m) answers."""
        return np.column_stack([member.predict(X) for member in self.members])


def _asked_of(name: str, estimator: Any) -> Any:
    """Return an estimator with a method `predict`, or say what is wrong with it."""
    if isinstance(estimator, list | tuple):
        if not estimator:
            raise ValueError(f"{name} must be at least one fitted regressor, got {estimator!r}")
        several = [_asked_of(name, one) for one in estimator]
        names = [columns_of(one)[1] for one in several]
        for other in names[1:]:
            if names[0] is not None and other is not None:
                check_names(f"{name} must all have been fitted to the columns", other, names[0])
        return Together(several)
    if has_methods(estimator, "predict"):
        if has_classes(estimator):
            raise TypeError(f"{name} must be a regressor, got the classifier {estimator!r}: use FrozenScorer")
        return estimator
    if callable(estimator) and not isinstance(estimator, type):
        return Function(estimator)
    raise TypeError(
        f"{name} must be a fitted regressor with a method 'predict', several of them, or a function of rows, "
        f"got {estimator!r}"
    )


class _FrozenNumbers(NumberScorer):
    """Base of scorers that ask fitted estimators for several numbers of each object."""

    held_as = (("estimator", "_given"),)
    foreign = frozenset({"estimator"})
    ruler: Ruler  #: how labels are measured by the scores

    def _hold(self, estimator: Any) -> None:
        self._given = copied(estimator)
        asked = _asked_of("estimator", self._given)
        self.features, self.feature_names = columns_of(asked)
        self._answers = [Answers(one) for one in getattr(asked, "members", (asked,))]
        super().derive()

    def _asked(self, rows: ObjectRows, what: str, m: int | None) -> Floats:
        """Return the (n, m) answers, or say what is wrong with them; any number of columns where m is None."""
        if not len(rows):
            return np.zeros((0, m or 1))
        parts = [np.asarray(one.of("predict", rows), np.float64) for one in self._answers]
        values: Floats = np.column_stack(parts) if len(parts) > 1 else parts[0]
        if values.ndim != 2 or len(values) != len(rows) or (m is not None and values.shape[1] != m):
            shape = f"({len(rows)}, {'m' if m is None else m})"
            raise ValueError(f"{what} must be {shape}, a row for each object, got shape {values.shape}")
        if not self.space.holds(values.ravel()):
            i = int(np.argmax(~(np.abs(values) <= 1e100).all(axis=1)))
            raise ValueError(f"{what} must be finite and of size at most 1e100, got {values[i].tolist()} at row {i}")
        return values


@saved
class FrozenQuantiles(_FrozenNumbers):
    """Fitted quantile regression whose quantiles a predictor calibrates.

    The estimators are copied and never change. The examples they were fitted to must be disjoint from those that will
    calibrate them: that is the only assumption about them.

    Quantiles that cross are sorted. The distribution function F of an object is straight between its quantiles, and
    goes on outside them with the slope 1 / (last - first); nowhere is it steeper than 1 / least.
    `InductiveDistribution` ranks the levels F(y), so that its predictions have the shape that the quantiles have at
    each object. `InductiveIntervals` moves the two outermost ones: conformalized quantile regression.

    Parameters
    ----------
    estimator : fitted regressor, sequence of fitted regressors, or function
        A regressor whose `predict` answers (n, m) quantiles, or m regressors, one for each level, as
        scikit-learn's with a quantile loss; or a function from (n, d) rows to (n, m) quantiles. Columns go by name and
        place as those of a `FrozenScorer`.
    levels : sequence of m >= 2 floats
        In (0, 1), in ascending order, such as (0.05, 0.5, 0.95).
    least : float >= 0, default 0
        In the unit of labels: some tenths of the width that the outermost quantiles usually have. Without it
        a label a little outside looks infinitely far where an object has next to no width. It must be chosen without
        the calibration examples.

    Attributes
    ----------
    features : int or None
        Number of features; None where the estimator does not say.
    feature_names : tuple of str or None
        Columns of the table that the estimator was fitted to.

    Raises
    ------
    TypeError
        An estimator is a class or a classifier, or has no method `predict`.
    ValueError
        Levels do not ascend in (0, 1), or there are not as many regressors as levels.

    Examples
    --------
    >>> from sklearn.linear_model import QuantileRegressor
    >>> X, y = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], [0.0, 1.0, 2.0, 0.0, 3.0, 6.0]
    >>> pair = [QuantileRegressor(quantile=q, alpha=0).fit(X, y) for q in (0.2, 0.8)]
    >>> FrozenQuantiles(pair, (0.2, 0.8)).scores([1.0]).round(6) + 0.0
    array([0., 6.])
    """

    def __init__(self, estimator: Any, levels: Sequence[float], least: float = 0.0) -> None:
        given = array_of(levels)
        rising = given.ndim == 1 and len(given) >= 2 and given.dtype.kind == "f" and (np.diff(given) > 0).all()
        if not (rising and given[0] > 0 and given[-1] < 1):
            raise ValueError(f"levels must be at least 2 numbers in (0, 1), in ascending order, got {levels!r}")
        self.levels: tuple[float, ...] = tuple(given.tolist())
        self._hold(estimator)
        if isinstance(estimator, list | tuple) and len(self._answers) != len(self.levels):
            raise ValueError(
                f"estimator must be a regressor for each of {len(self.levels)} levels, got {len(self._answers)} of them"
            )
        self.least = not_negative("least", least)
        self.ruler = QuantileScale(self.levels, self.least)

    def _score(self, rows: ObjectRows) -> Floats:
        return np.sort(self._asked(rows, "quantiles", len(self.levels)), axis=1)


@saved
class FrozenDistribution(_FrozenNumbers):
    """A fitted model of a whole distribution for each object, which a predictor calibrates.

    The model answers parameters, the family says what they mean. `InductiveDistribution` ranks the probabilities
    F(y) of calibration labels; with a family of location and scale its predictions are those of a `FrozenRegressor`
    with `spread`.

    Parameters
    ----------
    estimator : fitted model or function
        Its `predict`, or the function, answers (n, k) parameters for (n, d) rows.
    family : continuous distribution of scipy.stats, or the like
        With methods `cdf(y, *parameters)`, `sf`, `ppf(q, *parameters)` and `isf` for arrays; `cdf` must be strictly
        increasing between the quantiles at 1e-13 and 1 - 1e-13. Beyond these it is not asked: a straight line goes on.

    Attributes
    ----------
    features : int or None
    feature_names : tuple of str or None

    Raises
    ------
    TypeError
        The estimator or the family lacks a method.

    Examples
    --------
    A process that says how far off it may be, for each object:

    >>> from scipy.stats import norm
    >>> from sklearn.linear_model import BayesianRidge
    >>> from venn.predictors import InductiveDistribution
    >>> process = BayesianRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.5, 1.5, 3.0])
    >>> def mean_and_deviation(X):
    ...     return np.column_stack(process.predict(X, return_std=True))
    >>> model = InductiveDistribution(FrozenDistribution(mean_and_deviation, norm))
    >>> model.learn_many([[i / 10] for i in range(40)], [i / 10 + (-1) ** i / 4 for i in range(40)])
    >>> lower, upper = model.predict_one([2.0]).interval(0.1)
    >>> lower < 2.0 < upper
    True
    """

    foreign = frozenset({"estimator", "family"})

    def __init__(self, estimator: Any, family: Any) -> None:
        if not has_methods(family, "cdf", "sf", "ppf", "isf"):
            raise TypeError(
                f"family must have methods 'cdf', 'sf', 'ppf' and 'isf', as scipy.stats.norm, got {family!r}"
            )
        self._hold(estimator)
        self.family = family
        self.ruler = FamilyScale(family)

    def __repr__(self) -> str:  # that of scipy's distributions holds an address
        return f"FrozenDistribution({self._given!r}, {family_name(self.family)})"

    def _score(self, rows: ObjectRows) -> Floats:
        parameters = self._asked(rows, "parameters", None)
        if len(parameters):
            self.ruler.middle(parameters)
        return parameters
