"""Linear support vector machines with hinge loss, fitted at once: weights and levels by example, large data."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from venn._compiled.linear_svm import Room, Rows, fit
from venn.machines.machine import NotConverged
from venn.parameters import fraction, positive
from venn.prediction import Floats, Integers

WIDTH = 2.0  # of the first zone without a start, in units of the largest level
WARM = 1.0  # the same, with a start
SHRINK = 0.5
SPARSE = 0.25  # share of entries that differ from their column's middle, below which rows are compressed


class Start(NamedTuple):
    """Where a solver begins and ends, in the coordinates of a `Design`."""

    u: Floats  #: coefficients, the bias last
    shares: Floats  #: (n,) as in `LinearFit`


class Solution(NamedTuple):
    """A solution in the coordinates of a `Design`, with objective and gap as in `LinearFit`."""

    start: Start
    objective: float
    gap: float


class LinearFit(NamedTuple):
    """A linear scorer, w . x + b, and how good it is; called, it gives its scores."""

    coef: Floats  #: (d,)
    bias: float
    objective: float  #: 1/2 |w|^2 + C sum of the weighted losses
    gap: float  #: bound on how much the objective exceeds its least value; proved up to rounding
    shares: Floats  #: (n,) multipliers as shares of C weight, in [0, 1]; 0 for examples of weight 0

    def scores(self, X: ArrayLike) -> Floats:
        """Return (m,) scores of (m, d) objects."""
        return np.asarray(X, np.float64) @ self.coef + self.bias

    def __call__(self, X: ArrayLike) -> Floats:
        """Return (m,) scores of (m, d) objects."""
        return self.scores(X)


class Design:
    """Objects in the solver's form; made once for all fits to the same objects.

    A rotation does not change a linear machine, nor, as its bias is free, does a shift: if there are more features than
    objects, the rest is rotated away, and columns with mostly equal entries, such as dummies, are shifted so that these
    are 0.

    Parameters
    ----------
    X : (n, d) array of finite numbers

    Raises
    ------
    ValueError
        X is not as described.
    """

    def __init__(self, X: ArrayLike) -> None:
        objects = np.ascontiguousarray(X, np.float64)
        if objects.ndim != 2 or objects.shape[0] == 0:
            raise ValueError(f"X must have shape (n, d) with n >= 1, got {objects.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.einsum("ij,ij->", objects, objects))
        if not finite:
            raise ValueError("X must hold finite numbers with a finite sum of squares")
        n, d = objects.shape
        self.n, self.features = n, d
        self.basis: Floats | None = None  # (d, n) orthonormal columns, where rotated
        nothing = np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0)
        if d > n:
            self.shift = objects.mean(axis=0)
            self.basis, triangle = np.linalg.qr((objects - self.shift).T)
            self.rows = Rows(np.ascontiguousarray(triangle.T), *nothing)
            return
        middle = np.partition(objects, n // 2, axis=0)[n // 2]
        apart = objects != middle
        if np.count_nonzero(apart) < SPARSE * n * d:
            self.shift = middle
            starts = np.append(0, apart.sum(axis=1).cumsum())
            columns = apart.nonzero()[1].astype(np.uint32)
            self.rows = Rows(np.zeros((0, d)), starts, columns, (objects - middle)[apart])
        else:
            self.shift = objects.mean(axis=0)
            self.rows = Rows(objects - self.shift, *nothing)

    @property
    def size(self) -> int:
        """Unknowns, the bias among them."""
        return int(self.rows.dense.shape[1]) + 1

    def inside(self, coef: Floats, bias: float) -> Floats:
        """Return a scorer in the solver's coordinates."""
        own = coef if self.basis is None else coef @ self.basis
        return np.append(own, bias + self.shift @ coef)

    def outside(self, u: Floats) -> tuple[Floats, float]:
        """Return coefficients and bias."""
        coef = u[:-1].copy() if self.basis is None else self.basis @ u[:-1]
        return coef, float(u[-1] - self.shift @ coef)

    def moved(self, X: Floats) -> Floats:
        """Return other objects in the solver's coordinates."""
        shifted: Floats = X - self.shift
        return shifted if self.basis is None else shifted @ self.basis

    def forget(self) -> None:
        """Release the objects: `inside`, `outside` and `moved` still work, but nothing can be fitted any more."""
        self.n = 0
        self.rows = Rows(self.rows.dense[:0].copy(), np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0))

    def room(self) -> Room:
        """Return memory for one solver."""
        n, p = self.n, self.size
        return Room(
            np.empty(n),
            np.empty(n),
            np.empty(n),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty((p, p)),
            np.empty(p),
            np.empty(p),
            np.empty(p),
            np.empty(p),
        )


def _column(name: str, values: Any, n: int) -> Floats:
    """Return (n,) finite numbers, or say what is wrong with them."""
    column: Floats = np.asarray(values, np.float64, order="C")  # else loops are compiled once more
    if column.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one number for each example, got {column.shape}")
    if not np.isfinite(column).all():
        i = int((~np.isfinite(column)).argmax())
        raise ValueError(f"{name} must be finite, got {column[i]} at {i}")
    return column


class LinearSVM:
    """Linear support vector machine with weights and levels.

    Minimises 1/2 |w|^2 + C sum_i weight_i max(0, level_i - sign_i (w . x_i + b)), the bias b free. The coefficients are
    unique; if the bias is not, it is the middle of its interval. The solution depends only on the examples, their
    weights and levels, not on the start, up to the tolerance.

    For examples of one sign only, w = 0 and every bias beyond some bound is optimal. The bias is that bound: the
    largest level for sign +1, minus that for -1, a score of +1 or -1 for levels 1.

    Parameters
    ----------
    C : float > 0
    tolerance : float in (0, 1), default 1e-12
        Largest gap between the objective and a proved lower bound of the least one, relative to the objective. A
        gap of 1e-14 of C sum_i weight_i |level_i|, which is rounding, is always enough. If almost all examples have
        no loss and C is large, the second is larger: see `LinearFit.gap`.

    Notes
    -----
    The hinge is smoothed in a zone around its kink, and multipliers correct for this: the proximal method on the
    dual, each round by Newton's method, whose matrix depends only on the examples in the zone. Near the solution a
    round is one step. A step costs d^3 / 6 and one pass over the examples near their kinks, d^2 for those in the zone.

    References
    ----------
    Rockafellar (1976), "Monotone operators and the proximal point algorithm"; Mangasarian (2002), "A finite Newton
    method for classification".

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = LinearSVM(C=10.0).fit(X, [-1, -1, 1, 1])
    >>> fit.coef.round(6), round(fit.bias, 6)
    (array([2.]), -3.0)
    """

    def __init__(self, C: float = 1.0, tolerance: float = 1e-12) -> None:
        self.C = positive("C", C)
        self.tolerance = fraction("tolerance", tolerance)

    def fit(
        self,
        X: ArrayLike | Design,
        signs: ArrayLike,
        weights: ArrayLike | None = None,
        levels: ArrayLike | None = None,
        start: LinearFit | None = None,
    ) -> LinearFit:
        """Return the fit.

        Parameters
        ----------
        X : (n, d) array of finite numbers, or a Design
        signs : (n,) +1 or -1
        weights : (n,) finite numbers >= 0, optional
            By default 1 each. An example of weight 0 does not count.
        levels : (n,) finite numbers, optional
            By default 1 each.
        start : LinearFit, optional
            A fit to similar examples; it helps if there are equally many.

        Raises
        ------
        TypeError, ValueError
            An argument is not as described, or all weights are 0.
        NotConverged
            Rounding does not allow the tolerance, as with features, weights or levels of very different scale.
        """
        design = X if isinstance(X, Design) else Design(X)
        n = design.n
        sign = _column("signs", signs, n)
        if not (abs(sign) == 1).all():
            i = int((abs(sign) != 1).argmax())
            raise ValueError(f"signs must be +1 or -1, got {sign[i]} at {i}")
        weight = None if weights is None else _column("weights", weights, n)
        if weight is not None and (weight < 0).any():
            i = int((weight < 0).argmax())
            raise ValueError(f"weights must be >= 0, got {weight[i]} at {i}")
        if weight is not None and not weight.any():
            raise ValueError(f"weights must be > 0 for some example, got zero for all {n}")
        level = None if levels is None else _column("levels", levels, n)
        begin = None
        if start is not None:
            if start.coef.shape != (design.features,):
                raise ValueError(f"start must have {design.features} coefficients, got {start.coef.shape}")
            shares = start.shares if start.shares.shape == (n,) else np.zeros(n)
            begin = Start(design.inside(start.coef, start.bias), shares)
        solution = self.solved(design, sign, weight, level, begin, design.room())
        coef, bias = design.outside(solution.start.u)
        return LinearFit(coef, bias, solution.objective, solution.gap, solution.start.shares)

    def solved(
        self,
        design: Design,
        signs: Floats,
        weights: Floats | None,
        levels: Floats | None,
        start: Start | None,
        room: Room,
    ) -> Solution:
        """Return the solution in the design's own coordinates, for checked arguments."""
        n = design.n
        weight = np.ones(n) if weights is None else weights
        level = np.ones(n) if levels is None else levels
        chosen: Integers = np.flatnonzero(weight)
        shares, u = np.zeros(n), np.zeros(design.size)
        if abs(signs[chosen].sum()) == len(chosen):
            u[-1] = signs[chosen[0]] * level[chosen].max()
            return Solution(Start(u, shares), 0.0, 0.0)
        if start is not None:
            u[:] = start.u
            shares[chosen] = start.shares[chosen]
        width = (WIDTH if start is None else WARM) * (float(abs(level[chosen]).max()) or 1.0)
        objective, gap, *_ = fit(
            design.rows, chosen, signs, self.C * weight, level, u, shares, width, SHRINK, self.tolerance, room
        )
        if not math.isfinite(gap) and start is not None:  # the start is too far away
            return self.solved(design, signs, weights, levels, None, room)
        if not math.isfinite(gap):
            raise NotConverged(
                f"gap must be at most {self.tolerance:g} of the objective with C = {self.C:g}, which was not reached; "
                "are features, weights or levels of very different scale?"
            )
        return Solution(Start(u, shares), objective, gap)
