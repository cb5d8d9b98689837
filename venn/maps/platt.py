"""Platt's sigmoid of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venn._compiled.scaling import fit_sigmoid
from venn.machines.machine import NotConverged
from venn.maps.contract import FollowingPlatt, binary_examples, finite_array
from venn.parameters import Parameters
from venn.prediction import Floats, Label
from venn.saved import saved


def logistic(u: Floats) -> Floats:
    """Return 1 / (1 + e^-u) without overflow, with full relative precision near 0."""
    e = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, e) / (1.0 + e)


@saved
@dataclass(frozen=True)
class FittedSigmoid:
    """p = 1 / (1 + exp(slope * (score - centre) + offset)); it rises if the slope is negative."""

    slope: float
    offset: float
    centre: float = 0.0

    @property
    def coefficients(self) -> tuple[float, float]:
        """A and B of p = 1 / (1 + exp(A score + B))."""
        return self.slope, self.offset - self.slope * self.centre

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        f = finite_array("scores", scores)
        with np.errstate(over="ignore"):
            distance = np.nan_to_num(f - self.centre)  # keep an overflow finite: 0 * inf is NaN
            return logistic(-(self.slope * distance + self.offset))


@saved
class Platt(Parameters):
    """Sigmoid p = 1 / (1 + exp(A f + B)), fitted by maximum likelihood to Platt's soft targets.

    With N+ and N- the weights of positives and negatives, the targets are (N+ + 1) / (N+ + 2) and 1 / (N- + 2), so
    the optimum is finite for separable data too. It is unique, and Newton's method stops when its last step
    moves no logit by more than 1e-7, which leaves an error of about the square of that.

    One class only gives its target everywhere. If all scores are equal the slope is not determined: it
    is 0, and p the mean target. Scores in the wrong order give A > 0. Far scores give probabilities as near 0
    and 1 as floating-point numbers do.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin & Weng (2007), "A note on
    Platt's probabilistic outputs for support vector machines".

    Examples
    --------
    >>> fitted = Platt().fit([-1.0, -1.0, 1.0, 1.0], [0, 0, 1, 1])
    >>> fitted([-1.0, 0.0, 1.0]).round(6)  # targets 1/4 and 3/4
    array([0.25, 0.5 , 0.75])
    """

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedSigmoid:
        """Return the sigmoid fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        NotConverged
            100 steps do not reach the optimum: squares of scores that overflow or vanish, or one example that weighs
            as much as some 1e9 others, whose target is 0 or 1 nearly to the last bit.
        """
        f, y, w = binary_examples(scores, labels, weights)
        unit, fitted = w.max(), np.full(3, np.nan)
        w = w / unit
        if not fit_sigmoid(f, w * y, w, unit, fitted):
            raise NotConverged(f"the sigmoid must converge, got no optimum for scores from {f.min()} to {f.max()}")
        return FittedSigmoid(*fitted.tolist())

    def follower(self, classes: Sequence[Label]) -> FollowingPlatt:
        """Return an object that keeps the sigmoids of all classes fitted online."""
        return FollowingPlatt(classes)
