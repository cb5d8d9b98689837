"""Mercer kernels."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from venn._compiled.rows import (
    dot_row,
    linear_proximity_row,
    multiscale_proximity_row,
    multiscale_row,
    power_row,
    rbf_proximity_row,
    rbf_row,
)
from venn._compiled.sparse import (
    sparse_dot_row,
    sparse_linear_proximity_row,
    sparse_multiscale_proximity_row,
    sparse_multiscale_row,
    sparse_power_row,
    sparse_rbf_proximity_row,
    sparse_rbf_row,
)
from venn.machines.sparse import SparseRows
from venn.parameters import Parameters, positive
from venn.prediction import Floats
from venn.saved import saved

NAMED = ("auto", "scale")  #: values of gamma that depend on the objects


class Kernel(Protocol):
    """What a machine needs from a kernel: it is symmetric, positive semidefinite and deterministic.

    For sparse objects there is also `sparse_row(rows, n, x, work, out)`, which sets `out[:n]` to the kernel of the
    sparse object `x`, a single row, with the first n of the sparse `rows`; `work` (d,) holds zeros, before and after.

    A kernel may also compute proximities, `proximity_row` and `sparse_proximity_row` with the same arguments:
    K(x, z) - K(x, x) / 2 - K(z, z) / 2, which is minus half the squared distance of the two objects' features.
    They are computed without cancellation, so that far from the origin, or where a kernel is flat, no digit is lost.
    """

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` (d,) with the objects `columns[:, :n]` (d, n)."""


def checked_kernel(kernel: Any) -> Kernel:
    """Return `kernel`, or say what is wrong with it."""
    if isinstance(kernel, type) or not callable(getattr(kernel, "row", None)):
        raise TypeError(f"kernel must be a kernel object such as RBF(0.1), got {kernel!r}")
    return kernel


def checked_gamma(gamma: Any) -> float | str:
    """Return a number > 0, "auto" or "scale", or say what is wrong with the value."""
    if isinstance(gamma, str):
        if gamma not in NAMED:
            raise ValueError(f'gamma must be a finite number > 0, "auto" or "scale", got {gamma!r}')
        return str(gamma)
    return positive("gamma", gamma)


def rate_of(gamma: float | str, d: int) -> float:
    """Return the number that gamma stands for at objects of d features; "scale" supposes columns of variance 1."""
    return 1 / d if isinstance(gamma, str) else gamma


def needs_scale(kernel: Any) -> bool:
    """Whether a kernel's gamma is "scale", which holds for columns of variance 1."""
    named = getattr(kernel, "gamma", None)
    return isinstance(named, str) and named == "scale"


def fitted_to(kernel: Kernel, X: Any) -> Kernel:
    """Return the kernel with the gamma that "scale" stands for on these objects; any other kernel as it is.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) array or sparse array of finite numbers, n >= 1

    Returns
    -------
    Kernel
        gamma = 1 / (d variance), the variance of all numbers in X together, as in scikit-learn; 1 where it is 0.

    Examples
    --------
    >>> fitted_to(RBF("scale"), np.array([[1.0, 3.0], [3.0, 1.0]]))
    RBF(gamma=0.5)
    """
    if not needs_scale(kernel):
        return kernel
    n, d = X.shape
    if hasattr(X, "tocsr"):
        values = X.tocsr().data
        mean = values.sum() / (n * d)
        variance = float((values**2).sum() / (n * d) - mean**2)
    else:
        variance = float(np.var(X))
    known = copy(kernel)
    known.gamma = positive("gamma", 1 / (d * variance) if variance > 0 else 1.0)  # type: ignore[attr-defined]
    return known


class Proximities:
    """The kernel of a machine with a bias, whose coefficients sum to 0: it depends on distances alone.

    With K(x, z) - K(x, x) / 2 - K(z, z) / 2 in place of K(x, z) only the bias changes. A kernel that does not compute
    proximities is used as it is.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.row = kernel.proximity_row
        self.sparse_row = kernel.sparse_proximity_row
        self.gamma = getattr(kernel, "gamma", None)
        self.of_distances = getattr(kernel, "of_distances", False)

    def __repr__(self) -> str:
        return repr(self._kernel)


def proximities(kernel: Any) -> Any:
    """Return what computes the proximities of a kernel where it can, else the kernel."""
    knows = hasattr(kernel, "proximity_row") and hasattr(kernel, "sparse_proximity_row")
    return Proximities(kernel) if knows else kernel


@saved
class RBF(Parameters):
    """Gaussian kernel K(x, z) = exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma : float > 0, "auto" or "scale"
        "auto" is 1 / d for objects of d features, the usual choice for columns of variance 1. "scale" is
        1 / (d variance), as in scikit-learn, where something knows the variance: in `Scaled(machine)` it is 1;
        `VennClassifier.fit` and its like, and `tune`, compute it from X. A machine without these refuses it.

    Raises
    ------
    ValueError, TypeError
        When `gamma` is none of these.

    Examples
    --------
    >>> RBF(0.5)
    RBF(gamma=0.5)
    >>> out = np.empty(1)
    >>> RBF("auto").row(np.zeros((4, 1)), 1, np.ones(4), out)  # exp(-4 / 4)
    >>> out
    array([0.36787944])
    """

    of_distances: ClassVar = True

    def __init__(self, gamma: float | Literal["auto", "scale"]) -> None:
        self.gamma = checked_gamma(gamma)

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        rbf_row(columns, n, x, rate_of(self.gamma, len(x)), out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_rbf_row(rows.arrays, n, x.arrays, rate_of(self.gamma, x.features), work, out)

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of `x` with the objects `columns[:, :n]`."""
        rbf_proximity_row(columns, n, x, rate_of(self.gamma, len(x)), out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of the sparse `x` with the first n rows."""
        sparse_rbf_proximity_row(rows.arrays, n, x.arrays, rate_of(self.gamma, x.features), work, out)


@saved
class MultiscaleRBF(Parameters):
    """Kernel for when no width is known: the mean of exp(-w gamma |x - z|^2) over several widths w.

    A mean of Mercer kernels is one. It is one machine with one kernel row, whose squared distances serve all widths:
    what is guaranteed stays as it is. Features should have similar spreads.

    Parameters
    ----------
    gamma : float > 0, "auto" or "scale", default "auto"
        As for `RBF`; None is "auto".
    widths : sequence of float > 0, default (1/16, 1/4, 1, 4)
        Multiples of `gamma`.
    linear : float, 0 <= linear < 1, default 0
        Share of a linear part, gamma <x, z>: for data whose classes a plane nearly separates. 0.06 costs little
        elsewhere.

    Raises
    ------
    ValueError, TypeError
        When they are not as described.

    Examples
    --------
    >>> MultiscaleRBF()
    MultiscaleRBF(gamma='auto', widths=(0.0625, 0.25, 1.0, 4.0), linear=0.0)
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(MultiscaleRBF(), C=3, classes=["no", "yes"])
    """

    of_distances: ClassVar = True

    def __init__(
        self,
        gamma: float | Literal["auto", "scale"] | None = "auto",
        widths: Sequence[float] = (1 / 16, 1 / 4, 1.0, 4.0),
        linear: float = 0.0,
    ) -> None:
        self.gamma = checked_gamma("auto" if gamma is None else gamma)
        if isinstance(widths, str | bytes) or not isinstance(widths, Sequence | np.ndarray) or not len(widths):
            raise TypeError(f"widths must be a sequence of numbers > 0, got {widths!r}")
        self.widths = tuple(positive("widths", width) for width in widths)
        self.linear = positive("linear", linear, zero=True)
        if not self.linear < 1:
            raise ValueError(f"linear must be below 1, got {linear!r}")

    def _rates(self, d: int) -> Floats:
        return np.array(self.widths) * rate_of(self.gamma, d)

    def _add_linear(self, part: Floats, factor: float, out: Floats) -> None:
        """Mix `out[:n]`, the mean over the widths, with the linear part times a factor."""
        mixed = out[: len(part)]
        mixed *= 1 - self.linear
        part *= self.linear * factor
        mixed += part

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        multiscale_row(columns, n, x, self._rates(len(x)), out)
        if self.linear:
            part = np.empty(n)
            dot_row(columns, n, x, part)
            self._add_linear(part, rate_of(self.gamma, len(x)), out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_multiscale_row(rows.arrays, n, x.arrays, self._rates(x.features), work, out)
        if self.linear:
            part = np.empty(n)
            sparse_dot_row(rows.arrays, n, x.arrays, work, part)
            self._add_linear(part, rate_of(self.gamma, x.features), out)

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to K less the mean of K(x, x) and K(z, z), for the objects `columns[:, :n]`."""
        multiscale_proximity_row(columns, n, x, self._rates(len(x)), out)
        if self.linear:
            part = np.empty(n)
            linear_proximity_row(columns, n, x, part)
            self._add_linear(part, rate_of(self.gamma, len(x)), out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the same for the sparse `x` and the first n rows."""
        sparse_multiscale_proximity_row(rows.arrays, n, x.arrays, self._rates(x.features), work, out)
        if self.linear:
            part = np.empty(n)
            sparse_linear_proximity_row(rows.arrays, n, x.arrays, work, part)
            self._add_linear(part, rate_of(self.gamma, x.features), out)


@saved
class Linear(Parameters):
    """Linear kernel K(x, z) = <x, z>.

    Examples
    --------
    >>> Linear()
    Linear()
    """

    of_distances: ClassVar = True

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        dot_row(columns, n, x, out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_dot_row(rows.arrays, n, x.arrays, work, out)

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to -|x_i - x|^2 / 2 for the objects `columns[:, :n]`."""
        linear_proximity_row(columns, n, x, out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to -|x_i - x|^2 / 2 for the first n rows."""
        sparse_linear_proximity_row(rows.arrays, n, x.arrays, work, out)


@saved
class Polynomial(Parameters):
    """Polynomial kernel K(x, z) = (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    gamma : float > 0, "auto" or "scale", default 1
        As for `RBF`.
    coef0 : float >= 0, default 1
        A negative value would not be a Mercer kernel.

    Examples
    --------
    >>> Polynomial(2)
    Polynomial(degree=2, gamma=1.0, coef0=1.0)
    """

    def __init__(self, degree: int, gamma: float | Literal["auto", "scale"] = 1.0, coef0: float = 1.0) -> None:
        if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
            raise ValueError(f"degree must be an integer >= 1, got {degree!r}")
        self.degree = int(degree)
        self.gamma = checked_gamma(gamma)
        self.coef0 = positive("coef0", coef0, zero=True)

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        power_row(columns, n, x, self.degree, rate_of(self.gamma, len(x)), self.coef0, out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        gamma = rate_of(self.gamma, x.features)
        sparse_power_row(rows.arrays, n, x.arrays, self.degree, gamma, self.coef0, work, out)
