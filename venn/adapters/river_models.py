"""From river: its classifiers and regressors as our predictors, and our predictors of numbers as its regressors."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from venn.adapters.river import Points, base, checked_names, finite, like, untaught
from venn.distribution import NormalDistribution, NumberPrediction
from venn.labels import Classes, HasLabels, Real, space_of
from venn.machines.objects import clean_object
from venn.parameters import fraction, has_methods
from venn.prediction import Forecast, Label
from venn.predictors.learning import Predictor, checked_predictor
from venn.turns import asks, changes

# ---------------------------------------------------------------------------------------------------------- river model
# From river: its classifiers as our predictors.

NUMBER = int, float, np.number


class FromRiver(HasLabels, Predictor):
    """A classifier of river as a predictor, for use in a `Panel` or an `ExpertMixture`, or with a `Monitor`.

    Its predictions are `Forecast`s: nothing is proved about them.

    Parameters
    ----------
    model : river.base.Classifier
        May be a pipeline that ends in a classifier. It learns and is not copied. `save` cannot store it, but pickle
        can.
    classes : sequence of two or more labels
        In class order. A model for two classes only receives False for the first and True for the second, as river's
        binary models take any other label for one of these.
    features : sequence of distinct names, optional
        Names of the values of an object, for the dicts that river needs. By default x0, x1, ... Objects that are
        dicts go to the model unchanged, after a check that their numbers are finite.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. When learning or predicting: the label is not one of the classes, an object
        has another number of values, or the model returns no distribution over the classes.

    Notes
    -----
    While a model knows no class, or gives each the probability 0, the forecast is uniform. Classes that it has not
    seen have probability 0: log loss is infinite when one of them comes, as for the model itself.

    A dict may hold text or None, which some models of river accept. When a feature has a value of a new kind (text
    after numbers, say), a copy of the model learns the example first: if that fails, it is refused, and nothing is
    learned.

    Examples
    --------
    >>> import venn
    >>> from river import linear_model, preprocessing
    >>> model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> predictor = FromRiver(model, classes=["no", "yes"])
    >>> for x in (0.0, 0.1, 0.2, 0.3):
    ...     predictor.learn_one([x], "no")
    ...     predictor.learn_one([1 + x], "yes")
    >>> predictor.predict_one([1.15]).label
    'yes'
    >>> venn.predictors.ExpertMixture([predictor]).predict_one([1.15]).label
    'yes'
    """

    def __init__(self, model: Any, classes: Sequence[Label], features: Sequence[Hashable] | None = None) -> None:
        if isinstance(model, type) or not isinstance(model, base.Classifier):
            raise TypeError(f"model must be a classifier of river, got {model!r}")
        from river.active.base import ActiveLearningClassifier  # here: without river only the check above runs
        from river.compose import Pipeline

        # A pipeline hides what it ends in.
        last = list(model.steps.values())[-1] if isinstance(model, Pipeline) else model
        if isinstance(last, ActiveLearningClassifier):
            raise TypeError(
                f"model must give probabilities only, got {type(last).__name__}, which also asks for labels: give the "
                "classifier in it, and learn the labels that you ask for"
            )
        if isinstance(model, base.MultiLabelClassifier):
            raise TypeError(f"model must predict one label, not several at once, got {model}")
        self.space = Classes(classes)
        self.model = model
        self.features = features
        self._read: set[tuple[Hashable, type]] = set()
        self._names = None if features is None else checked_names(features)
        multiclass = bool(getattr(model, "_multiclass", False))
        if not multiclass and len(self.classes) > 2:
            raise ValueError(
                f"model must take more than two classes, got {model} for {list(self.classes)!r}: "
                "river.multiclass.OneVsRestClassifier(model) does"
            )
        self._keys: tuple[Label, ...] = self.classes if multiclass else (False, True)

    def __repr__(self) -> str:
        shown = "" if self.features is None else f", features={self.features!r}"
        return f"FromRiver({self.model}, classes={list(self.classes)!r}{shown})"

    def _row(self, x: Any) -> dict[Any, Any]:
        if isinstance(x, Mapping):
            for name, value in x.items():
                if isinstance(value, NUMBER) and not finite(value):
                    raise ValueError(f"x must be finite, got {value!r} for feature {name!r}")
            return dict(x)
        values = np.asarray(x)
        if values.ndim != 1 or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"x must be a sequence of finite numbers or a dict, got {x!r}")
        names = tuple(f"x{j}" for j in range(len(values))) if self._names is None else self._names
        if len(names) != len(values):
            raise ValueError(f"x must have {len(names)} features, got {len(values)}")
        return dict(zip(names, values.tolist(), strict=True))

    def predict_one(self, x: Any) -> Forecast:
        """Return the model's forecast; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or dict

        Raises
        ------
        TypeError
            The model predicts labels only.
        ValueError
            Its probabilities do not sum to 1 over the classes.
        """
        try:
            said = self.model.predict_proba_one(self._row(x))
        except NotImplementedError:
            raise TypeError(f"model must give probabilities, got {self.model}, which predicts labels only") from None
        if not any(said.values()):  # it knows nothing yet, and says so in one of two ways
            return Forecast(np.full(len(self.classes), 1 / len(self.classes)), self.classes)
        proba = np.array([said.get(key, 0.0) for key in self._keys], np.float64)
        total = float(proba.sum())
        # Written so that NaN fails. A sum differs from 1 by rounding only, or by a label outside the classes.
        if not abs(total - 1) <= 1e-6:
            raise ValueError(f"model must give a distribution over {list(self._keys)!r}, got {said!r}")
        return Forecast(proba / total, self.classes)

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what the model will learn, or raise what learning would raise."""
        return self._checked(x, y)

    def _checked(self, x: Any, y: Label) -> tuple[dict[Any, Any], Label, set[tuple[Hashable, type]]]:
        """Return the model's input, its label, and the kinds of value that are new to the model."""
        row, key = self._row(x), self._keys[self.space.encode(y)]
        new = {(name, float if isinstance(value, NUMBER) else type(value)) for name, value in row.items()} - self._read
        # A pipeline that fails at one value has already learned earlier ones; numbers alone cause no failure.
        if new and any(kind is not float for _, kind in new | self._read):
            try:
                copy.deepcopy(self.model).learn_one(row, key)
            except Exception as error:
                raise ValueError(f"x must be such as the model can learn, got {x!r}: {error}") from error
        return row, key, new

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example."""
        row, key, new = prepared or self._checked(x, y)
        self.model.learn_one(row, key)
        self._read |= new
        if self._names is None and not isinstance(x, Mapping):
            self._names = tuple(row)


# ------------------------------------------------------------------------------------------------------ river regressor
# For river: our predictors of numbers as river regressors, and river's regressors as predictors of ours.

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

    @changes
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

    @asks
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

    @changes
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

    @asks
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

    @asks
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

    def prepare(self, x: Any, y: Any) -> tuple[dict[Any, float], float, float]:
        """Return the row, the label and the error of the forecast; raise what learning would raise."""
        row, label = self._row(x), self.space.encode(y)
        return row, label, label - self._forecast(row)

    def commit(self, x: Any, y: Any, prepared: Any = None) -> None:
        """Learn one example."""
        row, label, error = prepared or self.prepare(x, y)
        self.model.learn_one(row, label)
        self._squares += error * error
        self.n += 1
        self._width = len(row)
