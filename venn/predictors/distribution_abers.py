"""Venn-Abers prediction of numbers: calibrated intervals for a mean, and calibrated probabilities of thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn.parameters import fraction, number
from venn.prediction import ClassIntervals, Floats, Integers
from venn.predictors.distribution_inductive import scorer_of_numbers
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule
from venn.predictors.learning import Mergeable, MergingReader
from venn.saved import component, held_finite, held_rows, param
from venn.schedules import Schedule


class Forecasts(Mergeable):
    """Reader of forecasts: keeps those of calibration examples, with their labels, sorted by both."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._pairs = np.zeros((0, 2))

    def add(self, scores: Floats, codes: Any) -> None:
        """Take in calibration examples of forecasts (n, >= 1), and (n,) labels."""
        pairs = np.concatenate([self._pairs, np.column_stack([scores[:, 0], codes])])
        self._pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    def predict(self, scores: Floats) -> ManyCalibratedForecasts:
        """Return the predictions for n objects, each as if it were alone; leaves no trace."""
        return ManyCalibratedForecasts(CalibratedForecast(self._pairs, float(score)) for score in scores[:, 0])

    def nothing(self, n: int) -> ManyCalibratedForecasts:
        """Return what is said of n objects before there is a regressor."""
        return ManyCalibratedForecasts([CalibratedForecast(np.zeros((0, 2)), 0.0)] * n)

    @property
    def state(self) -> dict[str, Any]:
        """The pairs of forecast and label."""
        return {"pairs": self._pairs}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        self.add(state["pairs"][:, :1], state["pairs"][:, 1])

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError for what is no `state`."""
        super().refuse(state)
        held_finite("pairs", state["pairs"], (held_rows("pairs", state["pairs"]), 2))


def isotonic_at(scores: Floats, labels: Floats, score: float, label: float) -> float:
    """Return the isotonic regression of labels on scores, with one example more, at that example's score.

    Equal scores stay together.

    Examples
    --------
    >>> isotonic_at(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 3.0]), 1.5, 2.0)
    2.0
    """
    from sklearn.isotonic import isotonic_regression

    all_scores, all_labels = np.append(scores, score), np.append(labels, label)
    values, groups, counts = np.unique(all_scores, return_inverse=True, return_counts=True)
    means = np.bincount(groups, all_labels) / counts
    fitted = isotonic_regression(means, sample_weight=counts.astype(float))
    return float(fitted[np.searchsorted(values, score)])


class CalibratedForecast:
    """What Venn-Abers prediction says of a number: intervals for a calibrated mean, probabilities of thresholds.

    Parameters
    ----------
    pairs : (k, 2) float64
        Forecasts and labels of calibration examples.
    score : float
        Forecast for the object.

    Attributes
    ----------
    score : float
    """

    def __init__(self, pairs: Floats, score: float) -> None:
        self._pairs, self.score = pairs, score

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the interval of the isotonic mean at a level in (0, 1); infinite where k + 1 < 2 / epsilon.

        With m = floor(epsilon (k + 1) / 2): the lower end by labels clipped to [y_(m), y_(k-m)], the new one joining as
        y_(m); the upper by labels clipped to [y_(m+1), y_(k-m+1)], the new one joining as y_(k-m+1).

        Raises
        ------
        TypeError, ValueError
            `epsilon` is not as described.
        """
        scores, labels = self._pairs.T
        k = len(labels)
        m = int(np.floor(fraction("epsilon", epsilon) * (k + 1) / 2 + 1e-9))
        if m < 1 or k - m < 1:
            return -np.inf, np.inf
        y = np.sort(labels)
        low, high = y[m - 1], y[k - m]
        lower = isotonic_at(scores, np.clip(labels, low, max(low, y[k - m - 1])), self.score, low)
        upper = isotonic_at(scores, np.clip(labels, min(y[m], high), high), self.score, high)
        return min(lower, upper), max(lower, upper)

    def above(self, threshold: float) -> ClassIntervals:
        """Return calibrated probabilities that the label exceeds a threshold, by Venn-Abers: a prediction of classes.

        The classes are False and True. Of each pair, one probability is by the hypothesis that the label exceeds the
        threshold, the other that it does not; under exchangeability that of the true one is calibrated.

        Raises
        ------
        TypeError, ValueError
            `threshold` is not a finite number.
        """
        level = number("threshold", threshold)
        scores, labels = self._pairs.T
        if not len(labels):
            return ClassIntervals(np.array([[0.0, 1.0], [0.0, 1.0]]), (False, True))
        low, high = (isotonic_at(scores, (labels > level).astype(float), self.score, new) for new in (0.0, 1.0))
        return ClassIntervals(np.array([[1 - high, 1 - low], [low, high]]), (False, True))

    def __repr__(self) -> str:
        lower, upper = self.interval(0.1)
        return f"CalibratedForecast({self.score:.4g}: [{lower:.4g}, {upper:.4g}] at 0.1)"


class ManyCalibratedForecasts(list[CalibratedForecast]):
    """Predictions for n objects: a list that is joined and put in order as blocks of arrays are."""

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return one block of the predictions of all, in order."""
        return cls(one for block in blocks for one in block)

    def taken(self, order: Integers) -> Self:
        """Return the predictions in another order."""
        return type(self)(self[i] for i in order.tolist())


@component
class VennAbersRegressor(Inductive[Any]):
    """Venn-Abers prediction of numbers by any regressor: what its forecast means, by the examples that calibrate it.

    `prediction.interval(epsilon)` is an interval for the calibrated *mean* at the object's forecast, not for the label:
    it gets narrower with more examples. `prediction.above(u)` has calibrated probabilities that the label exceeds u.
    Its predictions are no distributions: they stand in no record and no monitor.

    Parameters
    ----------
    machine : FrozenRegressor or KernelRidge
        A regressor fitted elsewhere, on other examples; or a machine that has learned nothing, to be trained as the
        schedule says.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenRegressor`.

    Raises
    ------
    TypeError, ValueError
        The machine is not one of numbers, has learned, or the schedule does not suit it.

    References
    ----------
    Petej & Vovk (2026), arXiv:2605.06646; for thresholds Vovk & Petej (2014), "Venn-Abers predictors".

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from venn.machines import FrozenRegressor
    >>> model = VennAbersRegressor(FrozenRegressor(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])))
    >>> model.learn_many([[i / 40] for i in range(40)], [2 * i / 40 + (-1) ** i / 4 for i in range(40)])
    >>> lower, upper = model.predict_one([0.5]).interval(0.2)
    >>> lower <= 1.0 <= upper
    True
    >>> model.predict_one([0.9]).above(0.5)
    ClassIntervals(True: [0.955, 1.000])
    """

    machine: Any = param(scorer_of_numbers, kept_as="given")
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return what keeps forecasts with their labels."""
        return Forecasts()
