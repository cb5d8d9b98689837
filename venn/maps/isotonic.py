"""Isotonic regression of labels on scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venn._compiled.scaling import apply_isotonic, pool
from venn.maps.contract import Fitted, FollowingIsotonic, binary_examples, finite_array
from venn.parameters import Parameters, one_of
from venn.prediction import Floats, Label
from venn.saved import component, param, saved


@saved
@dataclass(frozen=True, eq=False)
class FittedIsotonic(Fitted):
    """Blocks of equal `value`, from score `first` to score `last`, all (blocks,) and increasing."""

    first: Floats
    last: Floats
    value: Floats
    interpolation: str

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        fit, f = (self.first[None], self.last[None], self.value[None]), finite_array("scores", scores)
        return apply_isotonic(*fit, self.interpolation == "linear", f[None])[0]


@component
class Isotonic(Parameters):
    """Isotonic regression: the nondecreasing map of least weighted squared error, equal scores pooled first.

    Below the smallest score and above the largest the map is constant. If all scores are equal, or in the wrong
    order, it is the rate of positives. With one class only it is 0 or 1; with separable scores too, and between them
    it follows the interpolation. Where the map is 0 or 1, one error has infinite log loss.

    Parameters
    ----------
    interpolation : {"step", "linear"}, default "step"
        Between two neighbouring scores of the fit: "step" takes the value of the lower one, "linear" draws a
        straight line from one value to the other.

    Raises
    ------
    ValueError
        `interpolation` is neither of the two.

    References
    ----------
    Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> fitted = Isotonic("linear").fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted([-1.0, 0.5, 1.5, 9.0])
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    interpolation: str = param(one_of, ("step", "linear"), default="step")

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedIsotonic:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        """
        f, y, w = binary_examples(scores, labels, weights)
        order, blocks = f.argsort(kind="stable"), np.empty((3, len(f)))
        found = pool(f[order], order, w * y, w, *blocks)
        first, last, value = blocks[:, :found].copy()
        return FittedIsotonic(first, last, value, self.interpolation)

    def follower(self, classes: Sequence[Label]) -> FollowingIsotonic:
        """Return an object that keeps the fits of all classes online."""
        return FollowingIsotonic(self.interpolation == "linear")
