"""An expert that repeats the forecast of a shared model, so that many models can use it."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.labels import HasLabels, label_space
from venn.prediction import Label
from venn.predictors.distribution_mixture import QUANTILES
from venn.predictors.learning import Predictor
from venn.saved import component, param


def _class_labels(name: str, value: Any) -> Any:
    """Return the labels of a space of classes, another space itself; or say what is wrong with them."""
    space = label_space(value)
    return space.labels or space


@component
class SharedForecast(HasLabels, Predictor):
    """The forecast of a shared model as one more expert; the forecast is handed to it with each object.

    A `Fleet` with a `prior` gives one to each key. It learns nothing by itself, and remembers nothing.

    Parameters
    ----------
    of : sequence of labels, or LabelSpace

    Attributes
    ----------
    said : (1, c) float64 or None
        What the shared model says of the object that is asked about next: probabilities, or 100 quantiles of a number.

    Examples
    --------
    >>> expert = SharedForecast(("no", "yes"))
    >>> expert.predict_one([0.5])  # nothing is said yet
    array([[nan, nan]])
    >>> expert.said = np.array([[0.2, 0.8]])
    >>> expert.predict_one([0.5])
    array([[0.2, 0.8]])
    """

    exponent = 1.0  # in the pool at first: until other experts have learned something, it alone counts

    of: Any = param(_class_labels)

    def derive(self) -> None:
        """Start without a forecast."""
        self.space = label_space(self.of)
        self.said: Any = None

    def predict_one(self, x: Any) -> Any:
        """Return the shared model's forecast."""
        return np.full((1, len(self.classes) or QUANTILES), np.nan) if self.said is None else self.said

    def prepare(self, x: Any, y: Label) -> None:
        """Refuse a label that is no class; prepare nothing."""
        self.space.check(y)

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn nothing."""
