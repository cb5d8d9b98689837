"""Temperature scaling: the softmax of scores divided by one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from venn._compiled.maps import softmax_moments
from venn.maps.contract import class_examples, class_scores
from venn.parameters import Parameters
from venn.prediction import Floats
from venn.saved import component, saved

ITERATIONS = 200
LAST_STEP = 1e-9  # a step that changes 1 / T by a smaller share is the last: what it leaves is about the square


@saved
@dataclass(frozen=True)
class FittedTemperature:
    """softmax(scores / temperature) of (n, classes) scores; an infinite temperature makes it uniform."""

    temperature: float
    classes: int

    def __call__(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores."""
        f = class_scores(scores, self.classes)
        # Differences first: a large common level of the scores would cost digits.
        with np.errstate(over="ignore"):
            e = np.exp(np.nan_to_num(f - f.max(axis=1, keepdims=True)) / self.temperature)
        return e / e.sum(axis=1, keepdims=True)


@component
class Temperature(Parameters):
    """softmax(s / T), one temperature T > 0 by maximum likelihood.

    The predicted class stays that of the largest score.

    When every example's own class has the largest score, ties included, and some score is smaller, the
    likelihood grows as T goes to 0. Then, and only then, each label is replaced by (n + 1) / (n + c) for its class
    and 1 / (n + c) for every other one, n the weight of all examples, which gives a T > 0. If no T makes the
    likelihood better than that of the uniform distribution, as with scores of the wrong sign, T is infinite and
    the map uniform. If all scores of each example are equal, T is not determined and set to 1. A single class needs no
    special rule, nor do far scores: T follows their scale.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> fitted = Temperature().fit([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]], [0, 1, 0, 0])
    >>> round(fitted.temperature, 4)  # 3 of 4 right: 2 / T = ln 3
    1.8205
    >>> fitted([[2.0, 0.0]]).round(3)
    array([[0.75, 0.25]])
    """

    of_all_classes: ClassVar = True

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedTemperature:
        """Return the map fitted to (n, c) scores, labels 0 .. c - 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights, or scores of one example further apart than the largest number.
        """
        f, y, w = class_examples(scores, labels, weights)
        n, c = f.shape
        counts = np.zeros((c, n))
        counts[y, np.arange(n)] = w
        return self.fit_counts(np.ascontiguousarray(f.T), counts)

    def fit_counts(self, scores: Floats, counts: Floats) -> FittedTemperature:
        """Return the map fitted to counts, or weights, of each class (c, n) at (c, n) scores; some in each column.

        Raises
        ------
        ValueError
            The scores of one example differ by more than the largest float.
        """
        c = len(scores)
        with np.errstate(over="ignore"):
            f = scores - scores.max(axis=0)
        scale = float(-f.min())
        if scale == 0:
            return FittedTemperature(1.0, c)
        if scale == np.inf:
            raise ValueError("scores of one example must differ by a finite number, got inf")
        f /= scale
        weights = counts.sum(axis=0)
        total = float(weights.sum())
        own = float((counts * f).sum())  # the sum of scores that the softmax must reach
        if own == 0:
            own = float(weights @ f.sum(axis=0)) / (total + c)
        unit = weights / total  # the unit does not change the optimum, but prevents overflow
        inverse = _inverse_temperature(f, unit, own / total)
        return FittedTemperature(np.inf if inverse == 0 else scale / inverse, c)


def _inverse_temperature(f: Floats, weights: Floats, own: float) -> float:
    """Return the 1 / T at which the mean score by softmax(f / T) is `own`; 0 if it is larger already at 0.

    The mean grows with 1 / T, and its slope is the variance: Newton's method, within the bracket found so far.
    """
    low, high, inverse = 0.0, np.inf, 0.0
    for _ in range(ITERATIONS):
        mean, variance = softmax_moments(f, weights, inverse)
        if mean >= own:
            high = inverse
        else:
            low = inverse
        with np.errstate(divide="ignore"):
            following = inverse + float(np.divide(own - mean, variance))
        if not low < following < high:
            following = 2 * low + 1 if high == np.inf else (low + high) / 2
        moved = abs(following - inverse)
        inverse = following
        if moved <= LAST_STEP * inverse:
            return inverse
    return inverse
