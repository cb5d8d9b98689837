"""Linear support vector machines with hinge loss: weights and levels by example, many fits to the same objects."""

import math
from typing import Any, NamedTuple

import numpy as np

from benitez_pena.loops import Room, Rows, fit
from venn.machines import NotConverged

WIDTH = 2.0  # of the first zone without a start, in units of the largest level
WARM = 1.0  # the same, with a start
SHRINK = 0.5
SPARSE = 0.25  # share of entries that differ from their column's middle, below which rows are compressed
NOTHING = np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0)


class Design:
    """Objects (n, d) in the solver's form; made once for all fits to the same objects.

    A rotation does not change a linear machine, nor, as its bias is free, does a shift: if there are more features than
    objects, the rest is rotated away, and columns with mostly equal entries, such as dummies, are shifted so that these
    are 0.
    """

    def __init__(self, X):
        X = np.ascontiguousarray(X, np.float64)
        n, d = X.shape
        self.basis = None  # (d, n) orthonormal columns, where rotated
        self.shift = X.mean(axis=0)
        if d > n:
            self.basis, triangle = np.linalg.qr((X - self.shift).T)
            self.rows = Rows(np.ascontiguousarray(triangle.T), *NOTHING)
        else:
            middle = np.partition(X, n // 2, axis=0)[n // 2]
            apart = middle != X
            if np.count_nonzero(apart) < SPARSE * n * d:
                self.shift = middle
                starts = np.append(0, apart.sum(axis=1).cumsum())
                columns = apart.nonzero()[1].astype(np.uint32)
                self.rows = Rows(np.zeros((0, d)), starts, columns, (X - middle)[apart])
            else:
                self.rows = Rows(X - self.shift, *NOTHING)
        p = self.rows.dense.shape[1] + 1
        floats, places = [np.empty(n) for _ in range(3)], [np.empty(n, np.int64) for _ in range(2)]
        self.room = Room(*floats, *places, np.empty((p, p)), *(np.empty(p) for _ in range(4)))

    def moved(self, X):
        """Return objects in the solver's coordinates."""
        shifted = X - self.shift
        return shifted if self.basis is None else shifted @ self.basis


class Fit(NamedTuple):
    """A linear scorer, w . x + b, and how good it is."""

    design: Any
    u: Any  #: w in the coordinates of the design, then b
    shares: Any  #: (n,) multipliers as shares of C weight, in [0, 1]; 0 for examples of weight 0
    objective: float  #: 1/2 |w|^2 + C sum of the weighted losses
    gap: float  #: bound on how much the objective exceeds its least value; proved up to rounding

    @property
    def coef(self):
        """Coefficients (d,) of the objects as given."""
        return self.u[:-1] if self.design.basis is None else self.design.basis @ self.u[:-1]

    @property
    def bias(self):
        """The bias for the objects as given."""
        return float(self.u[-1] - self.design.shift @ self.coef)

    def scores(self, X):
        """Return (m,) scores of (m, d) objects."""
        return X @ self.coef + self.bias


def svm(design, signs, C=1.0, tolerance=1e-12, *, weights=None, levels=None, start=None):
    """Minimise 1/2 |w|^2 + C sum_i weight_i max(0, level_i - sign_i (w . x_i + b)), the bias b free.

    The coefficients are unique; if the bias is not, it is the middle of its interval. For examples of one sign, w = 0
    and the bias is the largest level for sign +1, minus that for -1.

    The hinge is smoothed in a zone around its kink, and multipliers correct for this: the proximal method on the
    dual, each round by Newton's method, whose matrix depends only on the examples in the zone. Near the solution a
    round is one step. A step costs d^3 / 6 and one pass over the examples near their kinks, d^2 for those in the zone.

    Parameters
    ----------
    design : Design
        Of (n, d) objects; for one thread at a time.
    signs : (n,) +1.0 or -1.0
    C : float > 0
    tolerance : float
        Largest gap between the objective and a proved lower bound of the least one, relative to the objective. A gap
        of 1e-14 of C sum_i weight_i |level_i|, which is rounding, is always enough.
    weights, levels : (n,) floats, optional
        By default 1 each. An example of weight 0 does not count.
    start : Fit, optional
        To similar examples of the same design: it saves time, and does not change the solution.

    Returns
    -------
    Fit

    Raises
    ------
    NotConverged
        Rounding does not allow the tolerance, as with features, weights or levels of very different scale.

    References
    ----------
    Rockafellar (1976), "Monotone operators and the proximal point algorithm"; Mangasarian (2002), "A finite Newton
    method for classification".
    """
    n = len(signs)
    weights = np.ones(n) if weights is None else weights
    levels = np.ones(n) if levels is None else levels
    chosen = np.flatnonzero(weights)
    shares, u = np.zeros(n), np.zeros(design.rows.dense.shape[1] + 1)
    if abs(signs[chosen].sum()) == len(chosen):
        u[-1] = signs[chosen[0]] * levels[chosen].max()
        return Fit(design, u, shares, 0.0, 0.0)
    if start is not None:
        u[:] = start.u
        shares[chosen] = start.shares[chosen]
    width = (WIDTH if start is None else WARM) * (float(abs(levels[chosen]).max()) or 1.0)
    objective, gap, *_ = fit(
        design.rows, chosen, signs, C * weights, levels, u, shares, width, SHRINK, tolerance, design.room
    )
    if not math.isfinite(gap) and start is not None:  # the start is too far away
        return svm(design, signs, C, tolerance, weights=weights, levels=levels)
    if not math.isfinite(gap):
        raise NotConverged(f"gap must be at most {tolerance:g} of the objective with C = {C:g}, which was not reached")
    return Fit(design, u, shares, objective, gap)
