"""Sollich's class probabilities: the support vector machine read as a Bayesian model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from venn.maps.checks import finite_array
from venn.maps.contract import OfCounts
from venn.maps.sigmoids import logistic
from venn.parameters import positive
from venn.prediction import Floats
from venn.saved import saved


@saved
@dataclass(frozen=True)
class FittedSollich:
    """p = e^(-C l(f)) / (e^(-C l(f)) + e^(-C l(-f))) with the hinge loss l(f) = max(0, 1 - f)."""

    C: float

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        f = finite_array("scores", scores)
        with np.errstate(over="ignore"):
            # l(-f) - l(f): 2 f within the margin, f + 1 beyond 1, f - 1 beyond -1.
            return logistic(self.C * (f + np.clip(f, -1.0, 1.0)))


@saved
class Sollich(OfCounts):
    """Sollich's probability at the most probable score: p = 1 / (1 + e^(-2 C f)) within the margin.

    The objective 1/2 |w|^2 + C sum_i l(y_i f(x_i)), with the hinge loss l(u) = max(0, 1 - u), is, up to a constant,
    minus the logarithm of a posterior density of f. The prior is a Gaussian process, likelihoods are proportional to
    e^(-C l(y f(x))). Divided by their sum over y = 1 and y = -1 the likelihoods are probabilities:
    1 / (1 + e^(-2 C f)) for |f| <= 1, and 1 / (1 + e^(-C (f + sign f))) beyond, continuous at 1 and -1.

    Nothing is fitted: `fit` only checks the examples. The map assumes decision values of a machine with this C in the
    objective above. At C = 1 it is `Softmax` within the margin.

    It is a heuristic even if the model is true, and carries no guarantee: the machine's score replaces an average
    over the posterior of f. That average is not offered: it needs the posterior variance at each object, so it is not
    a map of scores. Small C gives timid probabilities: for |f| <= 1, C bounds the log odds by 2 C.

    Parameters
    ----------
    C : float > 0
        The machine's.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Sollich (2002), "Bayesian methods for support vector machines: evidence and predictive class probabilities",
    Machine Learning 46, which compares this, the evaluation at the maximum a posteriori, with averages over the
    posterior; Sollich (2000), "Probabilistic methods for support vector machines", NIPS 12.

    Examples
    --------
    >>> Sollich(C=1.0).fit([-1.0, 1.0], [0, 1])([0.0, 1.0, 3.0]).round(4)
    array([0.5   , 0.8808, 0.982 ])
    """

    def __init__(self, C: float) -> None:
        self.C = positive("C", C)

    def fit_counts(self, scores: Floats, of_class: Floats, of_all: Floats) -> FittedSollich:
        """Return the map of this C, whatever the (n,) scores and counts."""
        return FittedSollich(self.C)
