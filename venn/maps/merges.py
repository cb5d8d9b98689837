"""From the two probabilities of Venn-Abers to one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from venn.parameters import Parameters, real_array, with_methods
from venn.prediction import Floats
from venn.saved import saved


class Merge(Protocol):
    """How p0 and p1 become one probability of label 1."""

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both."""

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""


def _pair(p0: Any, p1: Any) -> tuple[Floats, Floats]:
    pair = real_array(p0, "p0 must be numbers in [0, 1]"), real_array(p1, "p1 must be numbers in [0, 1]")
    for name, p in zip(("p0", "p1"), pair, strict=True):
        inside = (p >= 0) & (p <= 1)
        if not inside.all():
            raise ValueError(f"{name} must lie in [0, 1], got {p[~inside].ravel()[0]}")
    try:
        np.broadcast_shapes(pair[0].shape, pair[1].shape)
    except ValueError:
        raise ValueError(f"p0 and p1 must have the same shape, got {pair[0].shape} and {pair[1].shape}") from None
    return pair


@saved
class LogMerge(Parameters):
    """Makes one probability of p0 and p1: its log loss exceeds the right one's by as much for label 0 as for 1.

    p = p1 / (1 - p0 + p1) is the minimax choice: the regret is log(1 - p0 + p1) whatever the label. Over folds
    it is GM(p1) / (GM(1 - p0) + GM(p1)) with geometric means.

    A merged probability is not valid: only the pair has the guarantee.

    References
    ----------
    Vovk, Petej & Fedorova (2015).

    Examples
    --------
    >>> round(float(LogMerge().merge(0.2, 0.5)), 6)  # 5 / 13
    0.384615
    """

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both.

        They are 1/2 for the pair (1, 0), where both losses are infinite.

        Parameters
        ----------
        p0, p1 : numbers in [0, 1], or arrays of them whose shapes fit
            Probability of label 1 if the label is 0, and if it is 1.

        Raises
        ------
        TypeError, ValueError
            p0 or p1 is not as described.
        """
        p0, p1 = _pair(p0, p1)
        return _share(p1, 1 - p0)

    def regret(self, p0: Any, p1: Any) -> Floats:
        """Return, elementwise, the excess of the log loss over that of the right one of p0 and p1, in nats."""
        p0, p1 = _pair(p0, p1)
        with np.errstate(divide="ignore"):
            excess: Floats = np.log(1 - p0 + p1)
        return excess

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""
        p0, p1 = _pair(p0, p1)
        with np.errstate(divide="ignore"):
            return _share(np.exp(np.log(p1).mean(axis=0)), np.exp(np.log(1 - p0).mean(axis=0)))


def _share(one: Floats, other: Floats) -> Floats:
    """Return one / (one + other), 1/2 where both are 0."""
    total = one + other
    return np.divide(one, total, out=np.full(total.shape, 0.5), where=total > 0)


@saved
class BrierMerge(Parameters):
    """Makes one probability of p0 and p1: its squared error exceeds the right one's by as much for label 0 as for 1.

    p = p1 + (p0^2 - p1^2) / 2 is the minimax choice for the Brier loss (p - y)^2; the mean of p0 and p1 is
    not. Over folds it is the mean of the folds' merges.

    A merged probability is not valid: only the pair has the guarantee.

    References
    ----------
    Vovk, Petej & Fedorova (2015).

    Examples
    --------
    >>> round(float(BrierMerge().merge(0.2, 0.5)), 6)
    0.395
    """

    def merge(self, p0: Any, p1: Any) -> Floats:
        """Return the merged probabilities, elementwise, in the shape of both.

        Parameters
        ----------
        p0, p1 : numbers in [0, 1], or arrays of them whose shapes fit
            Probability of label 1 if the label is 0, and if it is 1.

        Raises
        ------
        TypeError, ValueError
            p0 or p1 is not as described.
        """
        p0, p1 = _pair(p0, p1)
        return np.asarray(p1 + (p0 * p0 - p1 * p1) / 2)

    def regret(self, p0: Any, p1: Any) -> Floats:
        """Return, elementwise, the excess of (p - y)^2 over that of the right one of p0 and p1."""
        p0, p1 = _pair(p0, p1)
        merged = self.merge(p0, p1)
        return np.asarray(merged * merged - p0 * p0)

    def merge_folds(self, p0: Any, p1: Any) -> Floats:
        """Return (n,) probabilities merged over folds, from (folds, n) ones."""
        return self.merge(p0, p1).mean(axis=0)


def checked_merge(merge: Any) -> Merge:
    """Return the merge, by default `LogMerge()`, or say what is wrong with it."""
    merge = LogMerge() if merge is None else merge
    return with_methods("merge", merge, "a merge object, such as LogMerge(), with a method 'merge'", "merge")
