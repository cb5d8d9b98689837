"""For river: our predictors of numbers as river regressors, and river's regressors as predictors of ours."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from venn.adapters.river import Points, base, checked_names, like, untaught
from venn.distribution import NormalDistribution, NumberPrediction
from venn.labels import Real, space_of
from venn.machines.checks import clean_object
from venn.parameters import fraction, has_methods
from venn.predictors.learning import Predictor, checked_predictor

WIDE = 1e6  # the deviation while nothing is known of it


class RiverRegressor(Points, base.MiniBatchRegressor):  # type: ignore[misc]
    """One of our predictors of numbers as a regressor of river.

    It passes river's estimator checks and works in its pipelines and evaluations. Guarantees hold exactly as in
    `replay`; a step before it that learns from the stream, such as river's `StandardScaler`, voids them.

    Parameters
    ----------
    predictor : Predictor
        One of numbers, such as `ConformalDistribution`. It is copied with what it has learned; the original is not
        taught, and a clone starts from it again.
    features : sequence of names, optional
        The features that make the object, in this order. By default those of the table that the predictor's scorer was
        fitted to; without such a scorer those of the first example learned, sorted by name.
    missing : finite number, optional
        Value of features that an example lacks, or has as None or NaN. None: such an example is refused, but that NaN
        is let pass before the first example is learned.
    ignore_unknown : bool, default False
        Whether features that are not among those above are ignored. False: such an example is refused.
    confidence_level : float in (0, 1), default 0.95
        That of the intervals of ``predict_one(x, with_interval=True)``.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. When learning or predicting: `x` is not a dict of finite numbers, features are
        missing or unknown, the label is not a finite number. Nothing is learned then.

    Examples
    --------
    >>> import venn
    >>> from river import datasets, evaluate, metrics
    >>> model = RiverRegressor(venn.predictors.ConformalDistribution(venn.machines.KernelRidge(venn.RBF(1e-4), C=10)))
    >>> for x, y in datasets.TrumpApproval().take(60):
    ...     model.learn_one(x, y)
    >>> lower, upper = model.predict_interval_one(x, 0.1)
    >>> lower < y < upper
    True
    """

    def __init__(
        self,
        predictor: Predictor,
        features: Sequence[Hashable] | None = None,
        *,
        missing: float | None = None,
        ignore_unknown: bool = False,
        confidence_level: float = 0.95,
    ) -> None:
        if not isinstance(space_of(checked_predictor("predictor", predictor)), Real):
            raise TypeError(f"predictor must be one of numbers, such as ConformalDistribution, got {predictor!r}")
        self.predictor = predictor
        self.confidence_level = fraction("confidence_level", confidence_level)
        Points.__init__(self, features, missing, ignore_unknown)
        self._model = copy.deepcopy(predictor)
        self._names = self._names_from(self._model, self._names)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from venn.machines.kernel_ridge import KernelRidge
        from venn.machines.kernels import RBF
        from venn.predictors.distribution import ConformalDistribution

        machine = KernelRidge(RBF("auto"), C=1, scale=True)
        yield {"predictor": ConformalDistribution(machine), "missing": 0.0, "ignore_unknown": True}

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn one example.

        Parameters
        ----------
        x : dict from feature to finite number
        y : finite number
        """
        names = self._names_for(x)
        self._model.learn_one(self._point(x, names), y)
        self._names = names

    def predict_one(self, x: Mapping[Any, Any], with_interval: bool = False) -> Any:
        """Return the point forecast, 0 before the first example; or the interval, as river's own conformal wrappers.

        Parameters
        ----------
        x : dict from feature to finite number
        with_interval : bool, default False
            Whether to return the interval that misses the label with probability at most 1 - `confidence_level`, a
            `river.conf.Interval`.
        """
        prediction = self.prediction_one(x)
        if not with_interval:
            return prediction.label
        from river.conf.interval import Interval

        return Interval(*prediction.interval(1 - self.confidence_level))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order, as `learn_one` does.

        Parameters
        ----------
        X : (b, d) data frame of finite numbers
        y : (b,) finite numbers
        """
        examples = self._examples_of(X, y)
        space = space_of(self._model)
        for _, label in examples:
            space.check(label)
        for x, label in examples:
            self.learn_one(x, label)

    def predict_many(self, X: Any) -> Any:
        """Return the point forecast for each row of a data frame, as `predict_one` does.

        Parameters
        ----------
        X : (b, d) data frame of finite numbers

        Returns
        -------
        (b,) series of the frame's kind
        """
        return like(X, {"forecast": [self.predict_one(x) for x in self._table(X)]})["forecast"]

    def prediction_one(self, x: Mapping[Any, Any]) -> NumberPrediction:
        """Return the prediction, for a `Monitor` or to look at.

        Parameters
        ----------
        x : dict from feature to finite number
        """
        return self._model.predict_one(self._point(x, self._names_for(x), untaught(self._model)))

    def predict_interval_one(self, x: Mapping[Any, Any], epsilon: float) -> tuple[float, float]:
        """Return the interval that misses the label with probability at most `epsilon`; it may be infinite.

        Parameters
        ----------
        x : dict from feature to finite number
        epsilon : float in [0, 1]
        """
        return self.prediction_one(x).interval(epsilon)


class RegressorFromRiver(Predictor):
    """A regressor of river as a predictor of numbers, for comparisons: nothing is guaranteed about it.

    It says a normal distribution: the model's forecast, and the root mean square of its errors so far, each made before
    the label was learned.

    Parameters
    ----------
    model : regressor of river
        It is copied with what it has learned, and taught here.
    features : sequence of names, optional
        Keys of the dicts that the model gets, one for each number of an object; by default 0, 1, ...

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described, or the model forecasts no finite number.

    Examples
    --------
    >>> from river import linear_model
    >>> model = RegressorFromRiver(linear_model.LinearRegression())
    >>> for i in range(20):
    ...     model.learn_one([i / 10], i / 5)
    >>> model.predict_one([1.0]).guaranteed
    'nothing'
    """

    classes = ()
    space = Real()

    def __init__(self, model: Any, features: Sequence[Hashable] | None = None) -> None:
        if not isinstance(model, base.Regressor) or not has_methods(model, "predict_one", "learn_one"):
            raise TypeError(f"model must be a regressor of river, got {model!r}")
        self.features = None if features is None else checked_names(features)
        self.model = copy.deepcopy(model)
        self.n = 0
        self._squares = 0.0
        self._width: int | None = None if features is None else len(checked_names(features))

    def __repr__(self) -> str:
        return f"RegressorFromRiver({self.model!r}, {self.features!r})"

    def _row(self, x: Any) -> dict[Any, float]:
        clean = clean_object(x, self._width).tolist()
        return dict(zip(range(len(clean)) if self.features is None else self.features, clean, strict=True))

    def _forecast(self, row: dict[Any, float]) -> float:
        forecast = self.model.predict_one(row)
        try:
            return self.space.encode(0.0 if forecast is None else forecast)
        except ValueError:
            raise ValueError(f"model must forecast a finite number, got {forecast!r}") from None

    def predict_one(self, x: Any) -> NormalDistribution:
        """Return the normal distribution for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        deviation = math.sqrt(self._squares / self.n) if self.n else WIDE
        return NormalDistribution(self._forecast(self._row(x)), deviation)

    def note(self, x: Any, y: Any) -> tuple[dict[Any, float], float, float]:
        """Return the row, the label and the error of the forecast; raise what learning would raise."""
        row, label = self._row(x), self.space.encode(y)
        return row, label, label - self._forecast(row)

    def after_learning(self, x: Any, y: Any, noted: Any = None) -> None:
        """Learn one example."""
        row, label, error = noted or self.note(x, y)
        self.model.learn_one(row, label)
        self._squares += error * error
        self.n += 1
        self._width = len(row)
