"""Predictors of numbers by a machine: distributions, nested intervals, Venn-Abers of means and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.distribution import NestedIntervals, NormalDistribution, PredictiveDistribution
from venn.labels import Real
from venn.machines.digests import digest_of
from venn.machines.kernel_ridge import Lines
from venn.machines.machine import checked_machine
from venn.machines.objects import object_of
from venn.machines.window import inside
from venn.parameters import integer, optional
from venn.predictors.learning import OnMachine
from venn.saved import base, component, param
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
