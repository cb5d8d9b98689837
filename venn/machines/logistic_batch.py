"""Kernel logistic regression of one machine from scratch: Newton's method on the primal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit

from venn._compiled.logistic import LOWEST
from venn.machines.machine import NotConverged
from venn.prediction import Floats, Integers

STEPS = 200


class LogisticProblem(NamedTuple):
    """One machine over distinct objects: min 1/2 |w|^2 + C sum ln(1 + exp(-y f)), f = <w, phi(x)> + b, y = +1 or -1."""

    kernel: Floats  #: (m, m)
    positive: Integers  #: (m,) examples with y = +1
    total: Integers  #: (m,) examples, at least 1 each; both labels must be there
    C: float

    def pull(self, score: Floats) -> Floats:
        """Return the (m,) coefficients C (P - n p) implied by the scores: equal to them at the optimum."""
        return self.C * (self.positive * expit(-score) - (self.total - self.positive) * expit(score))


class LogisticFit(NamedTuple):
    """A solution.

    An example of label y at object i has the multiplier C / (1 + exp(y f_i)).
    """

    beta: Floats  #: (m,) sums of the multipliers times labels, by object; their sum is 0
    bias: float
    score: Floats  #: (m,) kernel @ beta + bias
    residual: float  #: largest error of a probability: |C (P - n p) - beta| / (C n)


def fitted(problem: LogisticProblem, beta: Floats, score: Floats) -> LogisticFit:
    """Return the fit with these coefficients and with the bias of the scores."""
    outputs = problem.kernel @ beta
    bias = float((score - outputs).mean())
    score = outputs + bias
    residual = np.abs(problem.pull(score) - beta) / (problem.C * problem.total)
    return LogisticFit(beta, bias, score, float(residual.max()))


@np.errstate(invalid="ignore", over="ignore")  # NaN misses the tolerance
def newton(problem: LogisticProblem, tolerance: float = 1e-12) -> LogisticFit:
    """Solve by damped Newton steps on the primal, each with a Cholesky factor of I + W^1/2 K W^1/2.

    Parameters
    ----------
    problem : LogisticProblem
    tolerance : float
        Residual at which to stop; the returned one may be larger where rounding allows no less.

    Returns
    -------
    LogisticFit

    Raises
    ------
    NotConverged
        The kernel is not positive semidefinite, or the residual is above 1e-9 after the steps allowed.

    References
    ----------
    Green & Silverman (1994), "Nonparametric regression and generalized linear models"; Rasmussen & Williams (2006),
    "Gaussian processes for machine learning", algorithm 3.1, for the matrix that is factored.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> fit = newton(LogisticProblem(K, np.array([1, 0]), np.array([1, 1]), C=2.0))
    >>> bool(np.allclose(fit.beta, 2 / (1 + np.exp(fit.score * [1, -1])) * [1, -1]))
    True
    """
    K, positive, total, C = problem
    m = len(total)
    beta = np.zeros(m)
    score = np.full(m, np.log(positive.sum() / (total - positive).sum()))
    floor = 0.25 * 2.0**LOWEST
    best = fitted(problem, beta, score)
    for _ in range(STEPS):
        beta, score = best.beta, best.score
        p = expit(-np.abs(score))
        W = C * total * np.maximum(p * (1 - p), floor)
        root = np.sqrt(W)
        r = problem.pull(score) - beta
        B = K * np.outer(root, root)
        B[np.diag_indices(m)] += 1.0
        try:
            factor = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            raise NotConverged(f"kernel must be positive semidefinite with C = {C:g}: {error}") from error
        both = root[:, None] * cho_solve((factor, True), np.column_stack([r / root, root]), check_finite=False)
        shift = (both[:, 0].sum() + beta.sum()) / both[:, 1].sum()
        delta = both[:, 0] - shift * both[:, 1]
        motion = (r - delta) / W
        # A step this short cannot be too long; coefficients that affect no score may still move.
        short = best.residual < 1e-6 or np.abs(motion).max() < 1e-6
        share = 1.0
        while share > 1e-10:
            ahead = problem.pull(score + share * motion) - beta - share * delta
            # The objective is convex: the step is not too long unless the slope has turned steeply upwards.
            if short or ahead @ motion >= -0.5 * (r @ motion):
                break
            share *= 0.5
        trial = fitted(problem, beta + share * delta, score + share * motion)
        if best.residual < 1e-9 and trial.residual >= best.residual:
            break
        best = trial
        if best.residual <= tolerance:
            break
    if not best.residual <= 1e-9:
        raise NotConverged(f"residual must be at most 1e-09, got {best.residual:.3g} with C = {C:g}")
    return best
