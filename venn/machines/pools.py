"""The log-linear pool of several forecasts, fitted to labels."""

from __future__ import annotations

import numpy as np

from venn._compiled.mixture import pool_loss
from venn.prediction import Floats, Integers

ROUNDS = 40  # of L-BFGS


def fitted_pool(
    logs: Floats, codes: Integers, first: Floats, ridge: float, begin: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Floats]:
    """Return the powers >= 0 and the factors of classes with the lowest log loss; the problem is convex.

    Parameters
    ----------
    logs : (n, k, c) float64
        Logarithms of the forecasts of n examples by k experts.
    codes : (n,) int64
        Class codes of their labels.
    first : (k,) float64
        Powers that are preferred: `ridge` times the squared distance is added to the loss, also for the factors from 0.
    begin : (k,) and (c,) float64, optional
        Where the search begins, by default at `first` and 0.

    Returns
    -------
    (k,) powers, (c,) logarithms of factors
    """
    from scipy.optimize import minimize  # it takes longer to import than to run

    _, k, c = logs.shape
    start = np.concatenate([first, np.zeros(c)])
    by_power, by_factor = np.empty(k), np.empty(c)

    def loss(place: Floats) -> tuple[float, Floats]:
        off = place - start
        total = pool_loss(logs, codes, place[:k], place[k:], by_power, by_factor)
        return total + ridge * float(off @ off), np.concatenate([by_power, by_factor]) + 2 * ridge * off

    bounds = [(0.0, None)] * k + [(None, None)] * c
    at = start if begin is None else np.concatenate(begin)
    found = minimize(loss, at, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ROUNDS}).x
    if not np.isfinite(found).all():
        found = at
    return found[:k].copy(), found[k:].copy()
