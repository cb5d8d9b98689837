"""Predictors of numbers by a machine: distributions, nested intervals, Venn-Abers of means and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from venn.distribution import NestedIntervals, NormalDistribution, PredictiveDistribution
from venn.labels import Real
from venn.machines.digests import digest_of
from venn.machines.kernel_ridge import Lines
from venn.machines.machine import checked_machine
from venn.machines.objects import object_of
from venn.machines.window import inside
from venn.parameters import fraction, integer, number, optional
from venn.prediction import ClassIntervals, Floats, Integers
from venn.predictors.distribution_inductive import scorer_of_numbers
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule
from venn.predictors.learning import OnMachine
from venn.predictors.merging import Mergeable, MergingReader
from venn.saved import array, base, component, param
from venn.schedules import Schedule
from venn.smoothing import Smoothing

# --------------------------------------------------------------------------------------------------------- distribution
# The transductive conformal predictors of numbers: distributions and nested intervals by one ridge machine.

FEWEST, WIDE = 3, 1e6  # number of examples from which on deviations are estimated, and the deviation assumed before


def checked_numbers(name: str, machine: Any) -> Any:
    """Return a machine of numbers, or say what is wrong with it."""
    space = getattr(inside(checked_machine(name, machine)), "space", None)
    if not isinstance(space, Real):
        raise TypeError(f"{name} must be one of numbers, such as KernelRidge(RBF('auto'), C=10), got {machine!r}")
    return machine


def checked_places(name: str, group: Any) -> int | tuple[int, ...]:
    """Return a feature's position, or several, or say what is wrong with them."""
    if isinstance(group, str | bytes) or not isinstance(group, Sequence):
        return integer(name, group, 0)
    places = tuple(integer(name, place, 0) for place in group)
    if not places or len(set(places)) < len(places):
        raise ValueError(f"{name} must hold distinct positions of features, at least one, got {group!r}")
    return places


@base
class _OnLines(OnMachine):
    """Base of predictors that read a machine's answer about numbers."""

    machine: Any = param(checked_numbers)

    def derive(self) -> None:
        """Labels are numbers."""
        self.space = Real()


@base
class _OfGroup(_OnLines):
    """Base of predictors that rank examples, among all or within a group, and break ties at random."""

    group: int | tuple[int, ...] | None = param(optional, checked_places, default=None)
    seed: int = param(integer, 0, default=0)

    def derive(self) -> None:
        """Set up the draws that break ties."""
        super().derive()
        self._smoothing = Smoothing(self.seed)

    def _asked(self, x: Any) -> tuple[Lines, Any, float]:
        """Return the machine's answer, a mask of the examples that count, and the random number for ties."""
        lines = self.of_machine(x)
        tau = self._smoothing.at(self.machine.learned, digest_of(object_of(x)))
        return lines, self._counted(lines), tau

    def _counted(self, lines: Lines) -> Any:
        if self.group is None:
            return slice(lines.aside, None)
        places = [self.group] if isinstance(self.group, int) else list(self.group)
        if not max(places) < len(lines.objects):
            raise ValueError(
                f"group must hold positions of {len(lines.objects)} features of dense objects, got {self.group}"
            )
        of_group = lines.objects[places]
        beside = (of_group[:, :-1] == of_group[:, -1:]).all(axis=0)
        beside[: lines.aside] = False
        return beside


@component
class ConformalDistribution(_OfGroup):
    """A predictive distribution for a number, calibrated on every exchangeable stream.

    For each label y the new object may have, the machine is the one that has learned it too, and the rank of its
    studentised residual among all is the distribution function at y. The ranks change at n critical points only, which
    follow in closed form; a prediction costs O(n log n) beside the machine.

    Under exchangeability `prediction.p_value(y)` of the true labels is uniform on [0, 1] and independent over the
    steps, however wrong the model is: a theorem. So the interval at epsilon misses with probability at most epsilon,
    and by at most 2 / (n + 1) less. How narrow intervals are is no theorem: if the model is right they are as narrow,
    to first order, as those that know it. On a `SlidingWindow` that has forgotten an example each p-value is uniform,
    but successive ones depend on each other.

    Leave-one-out residuals without their root would not do: their ranks need not grow with y.

    Parameters
    ----------
    machine : KernelRidge, or SlidingWindow around one
        Shared with other predictors when they stand in one `Panel`.
    group : int or sequence of int, optional
        Position of a feature: examples are compared with those of the same value only, so that the theorem holds in
        every group (Mondrian). Of several features, such as those that encode one column, all values must be equal.
        Objects must be dense.
    seed : int >= 0, default 0
        Of the random numbers that break ties, one for each step and object.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Petej, Nouretdinov, Manokhin & Gammerman (2020), "Computationally efficient versions of conformal predictive
    distributions"; Burnaev & Nazarov (2016), "Conformalized kernel ridge regression".

    Examples
    --------
    >>> import venn
    >>> model = ConformalDistribution(venn.machines.KernelRidge(venn.RBF(0.5), C=10))
    >>> for i in range(40):
    ...     model.learn_one([i / 10], 2 * i / 10 + (-1) ** i / 4)
    >>> prediction = model.predict_one([2.05])
    >>> bool(abs(prediction.label - 4.1) < 0.2), bool(prediction.interval(0.1)[0] < 4.1 < prediction.interval(0.1)[1])
    (True, True)
    """

    def predict_one(self, x: Any) -> PredictiveDistribution:
        """Return the predictive distribution for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        """
        lines, counted, tau = self._asked(x)
        points = np.sort(lines.critical_points(counted))
        if not len(points):
            return PredictiveDistribution([], tau, origin=float(lines.test_scores[0]))
        return PredictiveDistribution(points, tau, origin=lines.origin, grid=lines.grid)


@component
class ConformalIntervals(_OfGroup):
    """Prediction intervals for a number at every level: two-sided, by absolute studentised residuals.

    The ridge regression confidence machine. Under exchangeability the smoothed p-values of the true labels are uniform
    and independent over the steps, and the interval at epsilon misses with probability at most epsilon: a theorem. Its
    misses may lie on one side; `ConformalDistribution` balances both sides.

    Parameters
    ----------
    machine, group, seed
        As for `ConformalDistribution`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Nouretdinov, Melluish & Vovk (2001), "Ridge regression confidence machine"; Burnaev & Vovk (2014).

    Examples
    --------
    >>> import venn
    >>> model = ConformalIntervals(venn.machines.KernelRidge(venn.RBF(0.5), C=10))
    >>> for i in range(40):
    ...     model.learn_one([i / 10], 2 * i / 10 + (-1) ** i / 4)
    >>> lower, upper = model.predict_one([2.05]).interval(0.1)
    >>> lower < 4.1 < upper
    True
    """

    def predict_one(self, x: Any) -> NestedIntervals:
        """Return nested intervals for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        """
        lines, counted, tau = self._asked(x)
        ends = np.concatenate([np.sort(values) for values in lines.both_ends(counted)])
        return NestedIntervals(ends, float(lines.test_scores[0]), tau, origin=lines.origin, grid=lines.grid)


@component
class GaussianProcess(_OnLines):
    """The normal distribution of Gaussian process regression, for comparisons: nothing is guaranteed about it.

    Mean and relative deviation are those of the process with the machine's kernel, noise 1 / C and an unknown mean; one
    factor for all deviations is fitted to the studentised residuals of the examples.

    Parameters
    ----------
    machine : KernelRidge, or SlidingWindow around one
        Shared with other predictors when they stand in one `Panel`.

    Raises
    ------
    TypeError
        The machine is not one of numbers, such as `KernelRidge`.

    References
    ----------
    Rasmussen & Williams (2006), "Gaussian processes for machine learning", section 2.7.

    Examples
    --------
    >>> import venn
    >>> model = GaussianProcess(venn.machines.KernelRidge(venn.RBF(0.5), C=10))
    >>> for i in range(40):
    ...     model.learn_one([i / 10], 2 * i / 10 + (-1) ** i / 4)
    >>> prediction = model.predict_one([2.05])
    >>> bool(abs(prediction.label - 4.1) < 0.1), prediction.guaranteed
    (True, 'nothing')
    """

    def predict_one(self, x: Any) -> NormalDistribution:
        """Return the normal distribution for `x`; a very wide one before the third example. Leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        """
        lines = self.of_machine(x)
        forecast = float(lines.test_scores[0])
        if lines.n < FEWEST:
            return NormalDistribution(forecast, WIDE)
        size = float(np.sqrt(np.mean(lines.studentised(forecast)[:-1] ** 2)))
        if not size:  # all labels are equal, so there is no deviation to scale by
            return NormalDistribution(forecast, 0.0)
        one = lines.studentised(forecast + lines.unit)[-1]  # of the new example, one unit above its forecast
        return NormalDistribution(forecast, float(size / one * lines.unit))


# --------------------------------------------------------------------------------------------------- distribution abers
# Venn-Abers prediction of numbers: calibrated intervals for a mean, and calibrated probabilities of thresholds.


class Forecasts(Mergeable):
    """Reader of forecasts: keeps pairs of forecast and label of calibration examples, sorted."""

    holds: ClassVar = {"pairs": array(None, 2)}

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
        """Return the predictions for n objects before there is a regressor."""
        return ManyCalibratedForecasts([CalibratedForecast(np.zeros((0, 2)), 0.0)] * n)

    @property
    def state(self) -> dict[str, Any]:
        """The pairs of forecast and label."""
        return {"pairs": self._pairs}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        self.add(state["pairs"][:, :1], state["pairs"][:, 1])


def isotonic_at(scores: Floats, labels: Floats, score: float, label: float) -> float:
    """Return the value of the isotonic fit of labels to scores at a new example, which joins the fit.

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
    """A Venn-Abers prediction of a number: intervals for a calibrated mean, probabilities of exceeding thresholds.

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
    """Predictions for n objects: a list with the methods of a block."""

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return one block of the predictions of all, in order."""
        return cls(one for block in blocks for one in block)

    def taken(self, order: Integers) -> Self:
        """Return the predictions in another order."""
        return type(self)(self[i] for i in order.tolist())


@component
class VennAbersRegressor(Inductive[Any]):
    """Venn-Abers prediction of numbers by any regressor: calibrates the mean that a forecast stands for.

    `prediction.interval(epsilon)` is an interval for the calibrated *mean* at the object's forecast, not for the label:
    it gets narrower with more examples. `prediction.above(u)` has calibrated probabilities that the label exceeds u.
    Its predictions are not distributions, so records and monitors do not take them.

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
