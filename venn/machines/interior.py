"""A primal-dual interior point: slow beside a path, but it needs no regular margin and no good start."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from venn.prediction import Floats

ROUNDS, IDLE = 150, 25  # most of them, and most that do not halve the mean product: rounding then decides


def inside(u: Floats, t: Floats, balance: float) -> Floats | None:
    """Return a point strictly between 0 and u with t'a = balance, far from the ends; None where there is none."""
    up, down = float(u[t > 0].sum()), float(u[t < 0].sum())
    least, most = max(0.0, -balance), min(down, up - balance)
    if not least < most:
        return None
    middle = 0.5 * (least + most)
    return u * np.where(t > 0, (middle + balance) / up, middle / down)


def minimum(Q: Floats, gain: Floats, t: Floats, u: Floats, balance: float, enough: float, firm: float) -> Floats | None:
    """Minimise 1/2 a'Qa - gain'a over 0 <= a <= u, t'a = balance, by Mehrotra's predictor and corrector.

    Parameters
    ----------
    Q : (n, n) float64
        Positive semidefinite, up to rounding.
    gain : (n,) float64
    t : (n,) float64
        +1 or -1.
    u : (n,) float64 > 0
    balance : float
    enough : float
        The mean product of a slack and its multiplier at which to end.
    firm : float
        Share of Q's largest diagonal entry that each step adds to the diagonal, as rounding may leave Q no definite
        matrix. Steps then become shorter; where they end is the same.

    Returns
    -------
    (n,) float64, or None where no point lies strictly inside
        A variable whose slack is far below its multiplier is at its end.
    """
    a = inside(u, t, balance)
    if a is None:
        return None
    n = u.size
    s, z, w, b = u - a, np.ones(n), np.ones(n), 0.0
    least, idle, ridge = np.inf, 0, firm * float(Q.diagonal().max())
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            dual = Q @ a - gain + b * t - z + w
            mu = float(a @ z + s @ w) / (2 * n)
            least, idle = (mu, 0) if mu < 0.5 * least else (least, idle + 1)
            if mu < enough or idle > IDLE:
                break
            matrix = Q.copy()
            matrix.flat[:: n + 1] += z / a + w / s + ridge
            lu, pivots, singular = dgetrf(matrix.T, overwrite_a=1)  # symmetric: the transpose is the same matrix
            if singular:
                break
            step_t = dgetrs(lu, pivots, t)[0]
            target, cross_a, cross_s = 0.0, np.zeros(n), np.zeros(n)
            for corrector in (False, True):
                comp_a, comp_s = (target - cross_a) / a - z, (target - cross_s) / s - w
                step_r = dgetrs(lu, pivots, comp_a - comp_s - dual)[0]
                db = (t @ step_r + t @ a - balance) / (t @ step_t)
                da = step_r - db * step_t
                dz, dw = comp_a - z / a * da, comp_s + w / s * da
                longest = 1.0
                for value, change in ((a, da), (s, -da), (z, dz), (w, dw)):
                    falling = change < 0
                    longest = min(longest, float((-value[falling] / change[falling]).min(initial=1.0)))
                if not corrector:
                    after = ((a + longest * da) @ (z + longest * dz) + (s - longest * da) @ (w + longest * dw)) / (
                        2 * n
                    )
                    target, cross_a, cross_s = mu * (after / mu) ** 3, da * dz, -da * dw
            longest *= 0.995
            ahead = (a + longest * da, s - longest * da, z + longest * dz, w + longest * dw)
            if longest < 1e-12 or not all(np.isfinite(v).all() and (v > 0).all() for v in ahead):
                break
            (a, s, z, w), b = ahead, b + longest * db
    # A variable is free when both its slacks outweigh their multipliers; the others go to their end.
    a = np.where((a < s) & (a < 1e-3 * u) & (z > a), 0.0, a)
    return np.where((s < a) & (s < 1e-3 * u) & (w > s), u, a)
