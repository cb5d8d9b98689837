"""Mercer kernels."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from venn._compiled.rows import (
    average,
    average_less_one,
    differences_row,
    dot_row,
    gaussians,
    gaussians_less_one,
    powers,
    sparse_differences_row,
    sparse_dot_row,
    sparse_squares_row,
    squares_row,
)  # fmt: skip
from venn.machines.sparse import SparseRows, is_sparse
from venn.parameters import Parameters, integer, not_negative, positive, several_positive, with_methods
from venn.prediction import Floats
from venn.saved import component, param

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


def checked_kernel(name: str, kernel: Any) -> Kernel:
    """Return a kernel, or say what is wrong with it."""
    return with_methods(name, kernel, "a kernel object such as RBF(0.1)", "row")


def checked_gamma(name: str, gamma: Any) -> float | str:
    """Return a number > 0, "auto" or "scale", or say what is wrong with the value."""
    if isinstance(gamma, str):
        if gamma not in NAMED:
            raise ValueError(f'{name} must be a finite number > 0, "auto" or "scale", got {gamma!r}')
        return str(gamma)
    return positive(name, gamma)


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
    if is_sparse(X):
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


class Pairing(NamedTuple):
    """One object and the first n stored ones, dense or sparse: what a kernel is made of."""

    stored: Any
    n: int
    x: Any
    d: int  #: features
    work: Floats | None = None  #: (d,) zeros, for sparse objects

    def squares(self, out: Floats) -> None:
        """Set `out[:n]` to the squared distances of x."""
        if self.work is None:
            squares_row(self.stored, self.n, self.x, out)
        else:
            sparse_squares_row(self.stored, self.n, self.x, self.work, out)

    def differences(self, out: Floats) -> None:
        """Set `out[:n]` to the sums of the absolute differences from x."""
        if self.work is None:
            differences_row(self.stored, self.n, self.x, out)
        else:
            sparse_differences_row(self.stored, self.n, self.x, self.work, out)

    def products(self, out: Floats) -> None:
        """Set `out[:n]` to the inner products with x."""
        if self.work is None:
            dot_row(self.stored, self.n, self.x, out)
        else:
            sparse_dot_row(self.stored, self.n, self.x, self.work, out)


class RowKernel(Parameters):
    """Base of kernels of distances or inner products: said once for dense and for sparse objects."""

    def fill(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the kernel."""
        raise NotImplementedError

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        self.fill(Pairing(columns, n, x, len(x)), out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        self.fill(Pairing(rows.arrays, n, x.arrays, x.features, work), out)


class WithProximities(RowKernel):
    """Base of those that also give K less the mean of K(x, x) and K(z, z), to full precision."""

    of_distances: ClassVar = True
    strictly_positive: ClassVar[bool] = True  #: definite, so that distinct objects are linearly independent

    def fill_near(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the kernel less that mean."""
        raise NotImplementedError

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to K less the mean of K(x, x) and K(z, z), for the objects `columns[:, :n]`."""
        self.fill_near(Pairing(columns, n, x, len(x)), out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the same for the sparse `x` and the first n rows."""
        self.fill_near(Pairing(rows.arrays, n, x.arrays, x.features, work), out)


@component
class RBF(WithProximities):
    """Gaussian kernel K(x, z) = exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma : float > 0, "auto" or "scale"
        "auto" is 1 / d for objects of d features, the usual choice for columns of variance 1. "scale" is
        1 / (d variance), as in scikit-learn, where something knows the variance: in a machine with a `Scale` it is 1;
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

    gamma: float | Literal["auto", "scale"] = param(checked_gamma)

    def fill(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the (n,) values K(x_i, x)."""
        pairing.squares(out)
        gaussians(rate_of(self.gamma, pairing.d), pairing.n, out)

    def fill_near(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to K - 1."""
        pairing.squares(out)
        gaussians_less_one(rate_of(self.gamma, pairing.d), pairing.n, out)


class Multiscale(WithProximities):
    """Base of kernels of several widths: the mean of exp(-w gamma D) over widths w, for a distance D of two objects.

    Parameters
    ----------
    gamma, widths, linear
        As described in the subclasses.
    """

    gamma: float | Literal["auto", "scale"]
    widths: Sequence[float]
    linear: float

    def derive(self) -> None:
        """Refuse a linear part of all."""
        if not self.linear < 1:
            raise ValueError(f"linear must be below 1, got {self.linear!r}")

    def _distances(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the distances D of x."""
        raise NotImplementedError

    def _mix(self, part: Floats, d: int, out: Floats) -> None:
        """Mix `out[:n]`, the mean over the widths, with the linear part."""
        mixed = out[: len(part)]
        mixed *= 1 - self.linear
        part *= self.linear * rate_of(self.gamma, d)
        mixed += part

    def fill(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the (n,) values K(x_i, x)."""
        self._distances(pairing, out)
        average(np.array(self.widths) * rate_of(self.gamma, pairing.d), pairing.n, out)
        if self.linear:
            part = np.empty(pairing.n)
            pairing.products(part)
            self._mix(part, pairing.d, out)

    def fill_near(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to K less the mean of K(x, x) and K(z, z)."""
        self._distances(pairing, out)
        average_less_one(np.array(self.widths) * rate_of(self.gamma, pairing.d), pairing.n, out)
        if self.linear:
            part = np.empty(pairing.n)
            pairing.squares(part)
            part *= -0.5
            self._mix(part, pairing.d, out)


@component
class MultiscaleRBF(Multiscale):
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

    gamma: float | Literal["auto", "scale"] = param(checked_gamma, default="auto")
    widths: Sequence[float] = param(several_positive, default=(1 / 16, 1 / 4, 1.0, 4.0))
    linear: float = param(not_negative, default=0.0)

    def _distances(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the squared distances of x."""
        pairing.squares(out)


@component
class MultiscaleLaplacian(Multiscale):
    """Kernel of the recommended predictors: the mean of exp(-w gamma |x - z|_1) over several widths w.

    |x - z|_1 is the sum of the absolute differences. Beside Gaussians of the same widths it is sharper where single
    columns decide, and where some values lie far out. Features should have similar spreads.

    Parameters
    ----------
    gamma : float > 0, "auto" or "scale", default "auto"
        As for `RBF`; "auto" is 1 / d, so that the kernel reads the mean difference of a column.
    widths : sequence of float > 0, default (1/4, 1, 4)
        Multiples of `gamma`.
    linear : float, 0 <= linear < 1, default 0.06
        Share of a linear part, gamma <x, z>: for data whose classes a plane nearly separates.

    Raises
    ------
    ValueError, TypeError
        When they are not as described.

    Examples
    --------
    >>> out = np.empty(1)
    >>> MultiscaleLaplacian(widths=(1.0,), linear=0).row(np.zeros((4, 1)), 1, np.ones(4), out)  # exp(-4 / 4)
    >>> out
    array([0.36787944])
    """

    gamma: float | Literal["auto", "scale"] = param(checked_gamma, default="auto")
    widths: Sequence[float] = param(several_positive, default=(1 / 4, 1.0, 4.0))
    linear: float = param(not_negative, default=0.06)

    def _distances(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the sums of the absolute differences."""
        pairing.differences(out)


@component
class Linear(WithProximities):
    """Linear kernel K(x, z) = <x, z>.

    Examples
    --------
    >>> Linear()
    Linear()
    """

    strictly_positive = False

    def fill(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to the (n,) inner products <x_i, x>."""
        pairing.products(out)

    def fill_near(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to -|x_i - x|^2 / 2."""
        pairing.squares(out)
        out[: pairing.n] *= -0.5


@component
class Polynomial(RowKernel):
    """Polynomial kernel K(x, z) = (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    gamma : float > 0, "auto" or "scale", default 1
        As for `RBF`.
    coef0 : float >= 0, default 1
        A negative value would not be a Mercer kernel.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> Polynomial(2)
    Polynomial(degree=2, gamma=1.0, coef0=1.0)
    """

    strictly_positive = False

    degree: int = param(integer, 1)
    gamma: float | Literal["auto", "scale"] = param(checked_gamma, default=1.0)
    coef0: float = param(not_negative, default=1.0)

    def fill(self, pairing: Pairing, out: Floats) -> None:
        """Set `out[:n]` to (gamma <x_i, x> + coef0)^degree."""
        pairing.products(out)
        powers(pairing.n, self.degree, rate_of(self.gamma, pairing.d), self.coef0, out)
