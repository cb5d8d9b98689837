"""Kernel ridge regression, kept exact online: what its residuals would be under every label of a new object."""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any, NoReturn

import numpy as np

from venn._compiled.distribution import both_ends, critical_points
from venn.labels import LARGEST_LABEL, Real
from venn.machines.base import ExampleTable
from venn.machines.kernels import Kernel, checked_kernel
from venn.machines.least_squares import SMALLEST
from venn.machines.machine import Bag, checked_weight
from venn.machines.ridge import Bordered, LinearPart, RidgeSystem
from venn.machines.store import Content, Remembering
from venn.parameters import positive
from venn.prediction import Floats
from venn.saved import component, own, param, restored_float, restored_int, state
from venn.turns import asks, changes

LEAST = -1000  # exponent of the unit while all labels are equal
STEP = 2.0**-36  # labels closer than this, in units of the largest difference of labels, are equal
SPARE = 20  # binary digits that a forgotten label may have cost before the rest is computed with another unit


def _restored_label(name: str, value: Any) -> float:
    return Real().encode(restored_float(name, value))


@component
class KernelRidge(Remembering):
    """Kernel ridge regression with a bias, exact online: the machine under predictive distributions of numbers.

    It minimises 1/2 |w|^2 + C/2 sum_i (y_i - f(x_i))^2 with f(x) = <w, phi(x)> + b: Gaussian process regression with
    an unknown mean and noise 1 / C. All coefficients, and so all residuals, are linear in the label that a new object
    may have: `hypotheses(x)` gives these lines. Leave-one-out residuals are exact. A step costs n^2 multiplications in
    one pass over the n^2 / 2 numbers of the factor; memory is 4 n^2 bytes. Any example can be forgotten, for about
    the cost of a step, so a `SlidingWindow` can stand around it.

    Labels are kept as differences from one of them, in units of a power of two near the largest difference: labels of
    any size and offset are solved to the same relative accuracy, and multiplying all labels by a power of two changes
    no digit.

    Parameters
    ----------
    kernel : Kernel
        `MultiscaleLaplacian()`, `RBF(gamma)`, `Linear()`, `Polynomial(degree, gamma, coef0)`, or an object with the
        same method. Objects may be sparse.
    C : float > 0
        Weight of the squared errors; 1 / C is the ridge.
    scale : Scale, int or bool, optional
        How objects are scaled, see `Scale`: True by the first 30 examples. By default they are taken as they are, and a
        `ScaleWarning` says where columns are far apart; False keeps quiet.

    Attributes
    ----------
    n : int
        Number of examples learned.
    residual : float
        Worst error of the equations, in the units of labels, the kernel computed afresh.

    Raises
    ------
    ValueError, TypeError
        For a parameter, object or label out of range: labels are finite numbers of size at most 1e100. Nothing is
        learned then.
    NotConverged
        When an equation misses the tolerance, 1e-7 of the largest difference of labels: C times the largest K(x, x) is
        too large for double precision, or the kernel is not positive semidefinite. Nothing is learned, or forgotten.

    References
    ----------
    Saunders, Gammerman & Vovk (1998), "Ridge regression learning algorithm in dual variables"; Burnaev & Nazarov
    (2016), "Conformalized kernel ridge regression".

    Examples
    --------
    >>> import venn
    >>> machine = venn.machines.KernelRidge(venn.RBF(1.0), C=10)
    >>> for x, y in [([0.0], 1.0), ([1.0], 3.0), ([0.1], 1.2), ([1.2], 3.1)]:
    ...     machine.learn_one(x, y)
    >>> machine.scores([0.0]).round(3)
    array([1.115])
    >>> machine.leave_one_out_bag.scores.round(2)
    array([[1.25, 2.77, 1.25, 2.99]])
    """

    exact_leave_one_out = teaches = True
    classes = ()
    space = Real()

    kernel: Kernel = param(checked_kernel)
    C: float = param(positive)
    _system: RidgeSystem = state(start=own(methodcaller("_new_system")), within=True)
    _origin: float = state(_restored_label, start=0.0)
    _exponent: int = state(restored_int, LEAST, -LEAST, start=LEAST)

    def _new_system(self) -> RidgeSystem:
        return RidgeSystem(self._store, 1)

    def _new_examples(self) -> ExampleTable:
        return ExampleTable(self._store)

    def derive(self) -> None:
        """Compare the labels with what they may be."""
        super().derive()
        if not self.space.holds(self._labels):
            raise ValueError(f"labels must be of size at most {LARGEST_LABEL:g}, got {np.abs(self._labels).max():g}")

    # ------------------------------------------------------------------ reading

    @property
    def _labels(self) -> Floats:
        return self._examples.codes[: self.n]

    @property
    def _unit(self) -> float:
        return math.ldexp(1.0, self._exponent)

    @property
    @asks
    def residual(self) -> float:
        """Worst error of the equations over all examples, the kernel computed afresh."""
        return self._system.residual * self._unit

    @property
    def bag(self) -> Bag:
        """Forecasts (1, n) of the examples by the machine that has learned them; there are no classes to count."""
        return self._bag_of(self._system.training_scores())

    @property
    def leave_one_out_bag(self) -> Bag:
        """Forecast (1, n) of each example by the machine without it; where there is only one, its label."""
        return self._bag_of(self._system.leave_one_out_scores())

    @property
    def labels(self) -> Floats:
        """(n,) labels of the examples, in order of arrival."""
        return self._labels.copy()

    def _bag_of(self, scores: Floats) -> Bag:
        scores = self._in_labels(scores[:, self.aside :])
        return Bag(scores, np.zeros((scores.shape[1], 0), np.int64))

    def _in_labels(self, scores: Floats) -> Floats:
        return self._origin + self._unit * scores

    def _scores_now(self, x: Content, key: bytes) -> Floats:
        return self._in_labels(self._system.scores_of(x))

    def _solved_for(self, x: Content, key: bytes, weight: float) -> Lines:
        """Return the lines on which the residuals of all examples lie, for every label of a clean object."""
        if not self.C * weight >= SMALLEST:
            raise ValueError(f"weight must be 0, or C weight at least {SMALLEST:g}, got {weight!r}")
        self.forget()
        n = self.n
        (bordered,) = self._system.border(x, [1 / (self.C * weight)])
        nothing = np.zeros(0)
        linear = self._system.linear(bordered) if n else LinearPart(0.0, math.inf, nothing, nothing, nothing)
        ridge = np.append(self._system.ridge[:n], bordered.ridge)
        columns = self._store.columns[:, : n + 1]
        return Lines(key, weight, linear, ridge, columns, self._origin, self._unit, bordered, self.aside)

    # ----------------------------------------------------------------- learning

    def _check_label(self, y: Any) -> None:
        self.space.check(y)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> None:
        """Learn one example.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row
        y : finite number of size at most 1e100
        weight : float >= 0, default 1
            The example counts as that many equal ones; with weight 0 nothing is learned.
        """
        label, weight = self.space.encode(y), checked_weight(weight)
        if weight == 0:
            self._clean(x)
            return
        if self._begun(x, y, weight):
            return
        self._store.look(self.n)
        n, system = self.n, self._system
        bordered = self.answer(x, weight).bordered
        self.forget()
        if n == 0:
            self._origin, self._exponent = label, LEAST
        exponent = _exponent_of(label - self._origin)
        if exponent > self._exponent:
            factor = math.ldexp(1.0, self._exponent - exponent)
            system.rescale(factor)
            self._exponent = exponent
            bordered = bordered._replace(entries=bordered.entries * factor, biases=bordered.biases * factor)
        system.append(bordered, np.array([(label - self._origin) / self._unit]))
        self._examples.append(label, weight)

    @changes
    def unlearn_one(self, i: int = 0) -> None:
        """Forget one example: the machine is then the one that has learned the others.

        Forgetting the last learned example at once, and not in a copy, restores every bit.

        Parameters
        ----------
        i : int from 0 to n - 1, default 0
            Its place in order of arrival, 0 the oldest; later ones move up.

        Raises
        ------
        TypeError, ValueError
            For any other `i`.
        NotConverged
            When an equation misses the tolerance; then nothing is forgotten.

        Examples
        --------
        >>> import venn
        >>> machine = venn.machines.KernelRidge(venn.RBF(1.0), C=10)
        >>> for x, y in [([5.0], 9.0), ([0.0], 1.0), ([1.0], 3.0), ([0.1], 1.2), ([1.2], 3.1)]:
        ...     machine.learn_one(x, y)
        >>> machine.unlearn_one()
        >>> machine.n, machine.scores([0.0]).round(3)
        (4, array([1.115]))
        """
        i = self._leaving(i)
        restores = i == self.n - 1 and self._system.before is not None
        self.forget()
        self._system.remove(i)
        self._examples.remove(i)
        self._shrink(restores)

    def _shrink(self, restores: bool) -> None:
        """Take a smaller unit, and another origin, where a forgotten label was far from all others."""
        labels = self._labels
        if (_exponent_of(np.ptp(labels)) if self.n else LEAST) + SPARE >= self._exponent:
            return
        exponent = _widest(labels, self._origin)
        if restores and exponent + SPARE < self._exponent:
            exponent = max(exponent, self._exponent - 1000)  # what a factor can be
            self._system.rescale(math.ldexp(1.0, self._exponent - exponent))
            self._exponent = exponent
            return
        self._origin = float(np.median(labels)) if self.n else 0.0
        self._exponent = _widest(labels, self._origin)
        self._system.retarget(self._targets())

    def _targets(self) -> Floats:
        return ((self._labels - self._origin) / self._unit)[None]


def _exponent_of(difference: float) -> int:
    """Return the exponent of the power of two just above a difference of labels."""
    return max(LEAST, math.frexp(difference)[1]) if difference else LEAST


def _widest(labels: Floats, origin: float) -> int:
    """Return the exponent of the power of two just above the largest difference of labels from an origin."""
    return max(_exponent_of(labels.min() - origin), _exponent_of(labels.max() - origin)) if len(labels) else LEAST


class Lines:
    """A machine's answer about one object, for every number as its label.

    The coefficient of example i, with the new one of label y, is a_i - w_i (y - f) / D, and that of the new one
    (y - f) / D. Residuals are coefficients times ridge; leave-one-out residuals are coefficients over the diagonal of
    the matrix that gives the coefficients from the labels; studentised ones are coefficients over its root.

    It holds arrays of its machine, and is valid until the machine learns or answers about another object.

    Attributes
    ----------
    test_scores : (1,) float64
        Forecast for the object by the machine that has not seen it; 0 before the first example.
    n : int
        Number of examples.
    origin, grid : float
        Labels are compared on the numbers origin + k grid, k an integer: so ties survive rounding.
    unit : float
        What coefficients, and with them studentised residuals, are multiples of.
    aside : int
        Number of examples at the start that stand in no bag: they do not count.
    objects : (d, n + 1) float64
        Features by column, the new object last; empty where objects are sparse.

    Examples
    --------
    >>> from venn.machines import KernelRidge, Linear
    >>> machine = KernelRidge(Linear(), 1.0)
    >>> machine.hypotheses([1.0]).test_scores.tolist()
    [0.0]
    >>> machine.learn_one([1.0], 3.0)
    >>> lines = machine.hypotheses([1.0])
    >>> lines.n, lines.test_scores.round(9).tolist()
    (1, [3.0])
    """

    def __init__(
        self, key: bytes, weight: float, linear: LinearPart, ridge: Floats, objects: Floats, origin: float, unit: float,
        bordered: Bordered, aside: int = 0,
    ) -> None:  # fmt: skip
        self.key = key
        self.weight = weight
        self.objects = objects
        self.origin, self.grid = origin, unit * STEP
        self.bordered = bordered
        self.current = True
        self.aside = aside
        self.n = len(linear.shares)
        self.test_scores = np.array([origin + unit * linear.forecast])
        self._linear = linear
        self._ridge = ridge
        self.unit = unit

    def check_current(self) -> None:
        """Raise where the machine has changed since: its arrays hold something else now."""
        if not self.current:
            raise RuntimeError("these hypotheses are out of date: the machine has learned or was asked again")

    def tables(self, leave_one_out: bool) -> NoReturn:
        """Raise: there are no tables of scores where labels are numbers."""
        raise TypeError(
            "machine must have classes for this predictor, got one of numbers: use ConformalDistribution, or "
            "LeastSquaresSVM for classes"
        )

    # ---------------------------------------------------------------- residuals

    def _coefficients(self, y: float) -> tuple[Floats, Floats]:
        """Return (n + 1,) coefficients under a label, and the diagonal of the matrix that gives them."""
        self.check_current()
        _, pivot, shares, coefficients, diagonal = self._linear
        if self.n == 0:
            return np.zeros(1), np.zeros(1)
        new = ((y - self.origin) / self.unit - self._linear.forecast) / pivot
        return np.append(coefficients - shares * new, new), np.append(diagonal + shares**2 / pivot, 1 / pivot)

    def residuals(self, y: float) -> Floats:
        """Return (n + 1,) residuals y_i - f(x_i) when the new example, the last, has label y."""
        coefficients, _ = self._coefficients(y)
        return self._ridge * coefficients * self.unit

    def leave_one_out(self, y: float) -> Floats:
        """Return (n + 1,) leave-one-out residuals under label y: each example by the machine of all others."""
        coefficients, diagonal = self._coefficients(y)
        return coefficients / diagonal * self.unit if self.n else coefficients

    def studentised(self, y: float) -> Floats:
        """Return (n + 1,) studentised residuals under label y, all in one unknown unit."""
        coefficients, diagonal = self._coefficients(y)
        return coefficients / np.sqrt(diagonal) if self.n else coefficients

    # ---------------------------------------------------------- critical labels

    def critical_points(self, of: Any = slice(None)) -> Floats:
        """Return the label from which on the new example is at least as strange as example i, for some of the examples.

        By signed studentised residuals: with label y the new one's is at least that of example i exactly when y >= C_i.
        An (n,) array in order of arrival, rounded to the grid; shorter where `of` picks some.
        """
        self.check_current()
        forecast, pivot, *arrays = self._linear
        points = np.empty(self.n)
        critical_points(self.n, forecast, pivot, *arrays, STEP, points)
        return self.origin + self.unit * points[of]

    def both_ends(self, of: Any = slice(None)) -> tuple[Floats, Floats]:
        """Return the ends of the interval of labels where example i is at least as strange as the new one.

        By absolute studentised residuals. Two (n,) arrays in order of arrival, rounded to the grid; shorter where `of`
        picks some. The forecast is in all intervals.
        """
        self.check_current()
        forecast, pivot, *arrays = self._linear
        lower, upper = np.empty((2, self.n))
        both_ends(self.n, forecast, pivot, *arrays, STEP, lower, upper)
        return self.origin + self.unit * lower[of], self.origin + self.unit * upper[of]
