"""From river: its classifiers as our predictors."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from venn.adapters.river import base, checked_names, finite
from venn.labels import Classes, HasLabels
from venn.prediction import Forecast, Label
from venn.predictors.learning import Predictor

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

    def note(self, x: Any, y: Label) -> Any:
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

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example."""
        row, key, new = noted or self._checked(x, y)
        self.model.learn_one(row, key)
        self._read |= new
        if self._names is None and not isinstance(x, Mapping):
            self._names = tuple(row)
