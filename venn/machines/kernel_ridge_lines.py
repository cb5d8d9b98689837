"""What kernel ridge regression would look like if a new object had any label: lines."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from venn._compiled.distribution import both_ends, critical_points
from venn.machines.ridge import Bordered, Linear
from venn.prediction import Floats

STEP = 2.0**-36  # labels closer than this, in units of the largest difference of labels, are equal


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
        self, key: bytes, weight: float, linear: Linear, ridge: Floats, objects: Floats, origin: float, unit: float,
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

    def tables(self, deleted: bool) -> NoReturn:
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

    def deleted(self, y: float) -> Floats:
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
