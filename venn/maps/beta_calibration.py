"""Beta calibration: logistic regression on the logarithms of a membership and of 1 minus it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venn._compiled.maps import fit_logistic, log_memberships
from venn.machines.machine import NotConverged
from venn.maps.contract import BinaryMap, Refitting, finite_array
from venn.maps.platt import logistic
from venn.prediction import Floats, Label
from venn.saved import saved


def soft_targets(positive: float, negative: float) -> tuple[float, float]:
    """Return Platt's targets of negatives and positives, from the weights of positives and negatives."""
    return 1 / (negative + 2), (positive + 1) / (positive + 2)


@saved
@dataclass(frozen=True)
class FittedConstant:
    """The same probability at every score."""

    probability: float

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        return np.full(len(finite_array("scores", scores)), self.probability)


ROUNDS = 500
SMALLEST_STEP = 1e-7  # a step that changes no logit by more is the last: what it leaves is about the square
RIDGE = 1e-14


def _features(f: Floats) -> Floats:
    """Return (2, n): ln s and -ln(1 - s) of s = 1 / (1 + e^(-2 f))."""
    both = np.empty((2, len(f)))
    log_memberships(f, both)
    return both


def _least_log_loss(
    features: Floats, target: Floats, weights: Floats, start: FittedBetaCalibration | None
) -> tuple[Floats, float]:
    """Return the slopes >= 0 and the offset of least log loss, with the ridge on the slopes in standard units."""
    weights = weights / weights.sum()
    # Centred and scaled: scores far from 0, or close together, lose no digits.
    centre = features @ weights
    x = features - centre[:, None]
    scale = np.abs(x).max(axis=1)
    scale[scale == 0] = np.inf  # one value only: its slope stays 0
    x /= scale[:, None]
    mean = float(weights @ target)
    beta = np.array([0.0, 0.0, np.log(mean) - np.log1p(-mean)])
    ridge = np.array([RIDGE, RIDGE, 0.0])
    near = beta if start is None else start.in_units(centre, scale)
    if fit_logistic(x, target, weights, ridge, near, ROUNDS, SMALLEST_STEP):
        beta = near
    elif start is None or not fit_logistic(x, target, weights, ridge, beta, ROUNDS, SMALLEST_STEP):
        raise NotConverged(f"beta calibration must converge within {ROUNDS} steps, got no optimum of its log loss")
    slopes = beta[:-1] / scale
    return slopes, float(beta[-1] - slopes @ centre)


@saved
@dataclass(frozen=True)
class FittedBetaCalibration:
    """logit p = c + a ln s - b ln(1 - s), s = 1 / (1 + e^(-2 f)), a and b >= 0."""

    a: float
    b: float
    c: float

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        with np.errstate(over="ignore"):
            return logistic(np.array([self.a, self.b]) @ _features(finite_array("scores", scores)) + self.c)

    def in_units(self, centre: Floats, scale: Floats) -> Floats:
        """Return the slopes, 0 where the scale is infinite, and the offset for features that are centred and scaled."""
        slopes = np.array([self.a, self.b])
        return np.array([*slopes * np.where(np.isfinite(scale), scale, 0.0), self.c + slopes @ centre])


@saved
class BetaCalibration(BinaryMap):
    """Beta calibration: logit p = c + a ln s - b ln(1 - s) with least log loss, a and b not negative.

    s = 1 / (1 + e^(-2 f)) is the softmax scaling of the score; where the scores are probabilities s, give
    ln(s / (1 - s)) / 2. With a = b the map is a sigmoid of f; with a = b = 1 and c = 0 it is s itself. The optimum
    respects the constraints. (The authors drop a negative coefficient and fit the others again: the same result,
    unless both are negative or the other one becomes negative.) Labels are used as they are.

    If the scores separate the labels, ties included, there is no optimum: then, and only then, labels are replaced
    by Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2). One class only gives its target everywhere. If all scores
    are equal, or in the wrong order, p is the rate of positives (a = b = 0). If fewer than three distinct scores
    do not determine a and b, a tiny penalty (1e-14 of their squares, in units of the features' ranges) does. Far scores
    give probabilities as near 0 and 1 as floating-point numbers do.

    References
    ----------
    Kull, Silva Filho & Flach (2017), "Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers".

    Examples
    --------
    >>> fitted = BetaCalibration().fit([-0.5, -0.5, 0.0, 0.0, 0.5, 0.5], [0, 1, 0, 1, 0, 1], weights=[3, 1, 1, 1, 1, 3])
    >>> fitted([-0.5, 0.0, 0.5]).round(9)  # the rates
    array([0.25, 0.5 , 0.75])
    >>> round(fitted.a, 6), round(fitted.b, 6)  # ln 3
    (1.098612, 1.098612)
    """

    def follower(self, classes: Sequence[Label]) -> Refitting:
        """Return what fits anew after each example, from the last fit on."""
        return Refitting(self, near=True)

    def fit_counts(
        self, scores: Floats, of_class: Floats, of_all: Floats, near: Any = None
    ) -> FittedBetaCalibration | FittedConstant:
        """Return the map fitted to counts, or weights > 0 in all, at each of (n,) scores.

        A map that is `near` saves time: the search starts from it, and ends at the same optimum, up to rounding.
        """
        positive = float(of_class.sum())
        negative = float(of_all.sum()) - positive
        if positive == 0 or negative == 0:
            return FittedConstant(soft_targets(positive, negative)[int(negative == 0)])
        target = of_class / of_all
        if scores[of_class < of_all].max() <= scores[of_class > 0].min() and scores.min() < scores.max():
            of_negative, of_positive = soft_targets(positive, negative)
            target = of_negative + target * (of_positive - of_negative)
        (a, b), c = _least_log_loss(
            _features(scores), target, of_all, near if isinstance(near, FittedBetaCalibration) else None
        )
        return FittedBetaCalibration(float(a), float(b), c)
