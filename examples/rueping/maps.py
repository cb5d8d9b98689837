"""Maps of scores that are fixed within the margin: those of Rueping (2004), and Sollich's.

A binary map of one's own derives from `venn.maps.BinaryMap` and has one method, `fit_counts`. It works in a
`ScoreCalibrator`, online, and wherever else the maps of `venn.maps` do.
"""

import numpy as np
from scipy.special import expit

from venn.maps import BinaryMap


class Softmax(BinaryMap):
    """Softmax scaling p = 1 / (1 + e^(-2 f)): nothing is fitted, so the data justify nothing."""

    def fit_counts(self, scores, of_class, of_all):
        return lambda f: expit(2 * f)


def beyond_the_margin(scores, of_class, of_all):
    """Return the rates of positives below -1 and above 1; 0 and 1 where there are no examples."""
    rates = [0.0, 1.0]
    for i, beyond in enumerate((scores < -1, scores > 1)):
        if beyond.any():
            rates[i] = of_class[beyond].sum() / of_all[beyond].sum()
    return rates


class Sigma01(BinaryMap):
    """Sigma-01: (1 + f) / 2 for |f| <= 1, the rate of positives beyond each side of the margin.

    The map jumps at 1 and -1. Where a rate is 0 or 1 one error gives infinite log loss. (The list of methods in the
    paper describes a line clipped to [0, 1], which would have infinite log loss where its tables have none.)
    """

    def fit_counts(self, scores, of_class, of_all):
        below, above = beyond_the_margin(scores, of_class, of_all)
        return lambda f: np.where(f > 1, above, np.where(f < -1, below, 0.5 + f / 2))


class SigmaPP(BinaryMap):
    """Sigma-PP: the line (1 + f) / 2, clipped at the rates of positives beyond the margin.

    Where the rate below is not less than the one above, as with scores of the wrong sign, it is constant.
    """

    def fit_counts(self, scores, of_class, of_all):
        below, above = beyond_the_margin(scores, of_class, of_all)
        return lambda f: np.minimum(above, np.maximum(below, 0.5 + f / 2))


class Sollich(BinaryMap):
    """Sollich's class probabilities, from the machine's decision value f and its C; nothing is fitted.

    The objective of the machine is the log posterior of a model with the likelihood e^(-C l(y f)),
    l(t) = max(0, 1 - t). Divided by their sum over y = 1 and y = -1 the likelihoods are 1 / (1 + e^(-2 C f)) for
    |f| <= 1, and 1 / (1 + e^(-C (f + sign f))) beyond. The score replaces an average over the posterior of f, so it is
    a heuristic even if the model is true.

    Sollich (2002), "Bayesian methods for support vector machines: evidence and predictive class probabilities".
    """

    def __init__(self, C):
        self.C = C

    def fit_counts(self, scores, of_class, of_all):
        return lambda f: expit(self.C * (f + np.clip(f, -1.0, 1.0)))
