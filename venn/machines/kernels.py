"""Mercer kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

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
    known: Kernel = kernel
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
    gamma : float > 0

    Raises
    ------
    ValueError, TypeError
        When `gamma` is not a finite positive number.

    Examples
    --------
    >>> RBF(0.5)
    RBF(gamma=0.5)
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = positive("gamma", gamma)

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        rbf_row(columns, n, x, self.gamma, out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_rbf_row(rows.arrays, n, x.arrays, self.gamma, work, out)

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of `x` with the objects `columns[:, :n]`."""
        rbf_proximity_row(columns, n, x, self.gamma, out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of the sparse `x` with the first n rows."""
        sparse_rbf_proximity_row(rows.arrays, n, x.arrays, self.gamma, work, out)


@saved
class MultiscaleRBF(Parameters):
    """Kernel for when no width is known: the mean of exp(-w gamma |x - z|^2) over several widths w.

    A mean of Mercer kernels is one. It is one machine with one kernel row, whose squared distances serve all widths:
    what is guaranteed stays as it is. Features should have similar spreads.

    Parameters
    ----------
    gamma : float > 0, optional
        By default 1 / d for objects of d features, the usual choice for features of unit variance.
    widths : sequence of float > 0, default (1/16, 1/4, 1, 4)
        Multiples of `gamma`.

    Raises
    ------
    ValueError, TypeError
        When they are not as described.

    Examples
    --------
    >>> MultiscaleRBF()
    MultiscaleRBF(gamma=None, widths=(0.0625, 0.25, 1.0, 4.0))
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(MultiscaleRBF(), C=3, classes=["no", "yes"])
    """

    def __init__(self, gamma: float | None = None, widths: Sequence[float] = (1 / 16, 1 / 4, 1.0, 4.0)) -> None:
        self.gamma = None if gamma is None else positive("gamma", gamma)
        if isinstance(widths, str | bytes) or not isinstance(widths, Sequence | np.ndarray) or not len(widths):
            raise TypeError(f"widths must be a sequence of numbers > 0, got {widths!r}")
        self.widths = tuple(positive("widths", width) for width in widths)

    def _rates(self, d: int) -> Floats:
        rates: Floats = np.array(self.widths) * (1 / d if self.gamma is None else self.gamma)
        return rates

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        multiscale_row(columns, n, x, self._rates(len(x)), out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_multiscale_row(rows.arrays, n, x.arrays, self._rates(x.features), work, out)

    def proximity_row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of `x` with the objects `columns[:, :n]`."""
        multiscale_proximity_row(columns, n, x, self._rates(len(x)), out)

    def sparse_proximity_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to K - 1 of the sparse `x` with the first n rows."""
        sparse_multiscale_proximity_row(rows.arrays, n, x.arrays, self._rates(x.features), work, out)


@saved
class Linear(Parameters):
    """Linear kernel K(x, z) = <x, z>.

    Examples
    --------
    >>> Linear()
    Linear()
    """

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
    gamma : float > 0, default 1
    coef0 : float >= 0, default 1
        A negative value would not be a Mercer kernel.

    Examples
    --------
    >>> Polynomial(2)
    Polynomial(degree=2, gamma=1.0, coef0=1.0)
    """

    def __init__(self, degree: int, gamma: float = 1.0, coef0: float = 1.0) -> None:
        if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
            raise ValueError(f"degree must be an integer >= 1, got {degree!r}")
        self.degree = int(degree)
        self.gamma = positive("gamma", gamma)
        self.coef0 = positive("coef0", coef0, zero=True)

    def row(self, columns: Floats, n: int, x: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of `x` with the objects `columns[:, :n]`."""
        power_row(columns, n, x, self.degree, self.gamma, self.coef0, out)

    def sparse_row(self, rows: SparseRows, n: int, x: SparseRows, work: Floats, out: Floats) -> None:
        """Set `out[:n]` to the kernel of the sparse `x` with the first n rows."""
        sparse_power_row(rows.arrays, n, x.arrays, self.degree, self.gamma, self.coef0, work, out)
