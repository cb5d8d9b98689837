"""Any binary map for several classes: each class against all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from venn.maps.contract import FittedMap, ScoreMap, checked_map, class_examples, class_scores
from venn.parameters import Parameters
from venn.prediction import Floats
from venn.saved import component, param, saved


@saved
@dataclass(frozen=True)
class FittedOneVsAll:
    """One fitted binary map for each class."""

    maps: tuple[FittedMap, ...]

    def __call__(self, scores: Any) -> Floats:
        """Return (n, c) probabilities at (n, c) scores: by each class's map, divided by their sum."""
        c = len(self.maps)
        f = class_scores(scores, c)
        p = np.column_stack([one(f[:, k]) for k, one in enumerate(self.maps)])
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=np.full(p.shape, 1 / c), where=total > 0)


@component
class OneVsAll(Parameters):
    """Turns a binary map into one for several classes: each class against all others, divided by the sum.

    The map of class k is fitted to column k of the scores and to whether the label is k. Where all maps give 0 the
    probabilities are uniform. The map of a class without examples is fitted to negatives only; the binary map says
    what this gives. With two classes the columns need not agree: the sum divides them.

    Parameters
    ----------
    map : ScoreMap
        For (n,) scores and labels 0 and 1, such as `Platt()`.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Zadrozny & Elkan (2002); Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> from venn.maps.platt import Platt
    >>> scores = [[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    >>> OneVsAll(Platt()).fit(scores, [0, 1, 2])([[1.0, -1.0, -1.0]])  # 2/3, 1/4 and 1/4, divided by 7/6
    array([[0.57142857, 0.21428571, 0.21428571]])
    """

    of_all_classes: ClassVar = True

    map: ScoreMap = param(checked_map)

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedOneVsAll:
        """Return the maps fitted to (n, c) scores, labels 0 .. c - 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights.
        """
        f, y, w = class_examples(scores, labels, weights)
        return FittedOneVsAll(tuple(self.map.fit(f[:, k], (y == k).astype(np.int64), w) for k in range(f.shape[1])))
