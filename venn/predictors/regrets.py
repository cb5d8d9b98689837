"""Calibeating: on any sequence, a Venn predictor with fixed bins loses little more than the best constants by bin."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import NamedTuple

from venn.parameters import integer
from venn.prediction import Integers
from venn.predictors.inductive import CALIBEATING, InductiveVenn

ROUNDING = 1e-9


class Calibeating(NamedTuple):
    """How a predictor's forecasts stand beside the best constant forecast of each bin, chosen in hindsight.

    Examples
    --------
    >>> Calibeating(n=100, bins=2, regret=3.5, bound=6.0, brier_bound=9.0).holds
    True
    """

    n: int  #: examples
    bins: int  #: categories with examples
    regret: float  #: sum of log losses of the forecasts less that of the best constants by bin
    bound: float  #: what the theorem allows for it
    brier_bound: float  #: what it allows for sums of squared distances |e_y - p|^2

    @property
    def holds(self) -> bool:
        """Whether regret <= bound, up to rounding; it always does."""
        return self.regret <= self.bound + ROUNDING * (1.0 + self.bound)


def regret_bound(n: int, c: int) -> float:
    """Return what the log loss of n forecasts (n_k + 1/c) / (n + 1) in one bin may be above that of the best constant.

    Two classes: ln(n) / 2 + ln 2 (Krichevsky & Trofimov). For c classes, with a = 1/c, the largest over q from 1 to
    min(c, n) of ln(n) / 2 + (1/2 - a) q ln(n / q) + q (a (1 - a) + ln Gamma(a)) - (q - 1) ln(2 pi) / 2 + 1 / (12 n):
    (c - 1) / 2 ln n + O(1).

    Parameters
    ----------
    n : int >= 0
    c : int >= 2

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Notes
    -----
    The forecasts are those of a Dirichlet mixture with parameters a, so the sum of their log losses is
    ln n! - sum ln(Gamma(n_k + a) / Gamma(a)), whatever the order. Let q classes occur. By Wendel,
    Gamma(n_k + a) >= n_k! (n_k + a)^(a - 1); by Robbins, the probability of the counts under their own shares is at
    most (2 pi)^((1 - q) / 2) sqrt(n / prod n_k) exp(1 / (12 n)); and ln(n_k + a) <= ln n_k + a. The rest is concave in
    the counts, largest at n_k = n / q.

    Examples
    --------
    >>> round(regret_bound(100, 2), 3), round(regret_bound(100, 3), 3)
    (2.996, 5.842)
    """
    n, c = integer("n", n, 0), integer("c", c, 2)
    if n == 0:
        return 0.0
    if c == 2:
        return 0.5 * log(n) + log(2.0)
    a = 1.0 / c
    each = a * (1.0 - a) + lgamma(a)
    return max(
        0.5 * log(n) + (0.5 - a) * q * log(n / q) + q * each - 0.5 * (q - 1) * log(2.0 * pi) + 1.0 / (12.0 * n)
        for q in range(1, min(c, n) + 1)
    )


def regret_of(counts: Integers) -> float:
    """Return the log loss of the forecasts in one bin above that of the best constant, from (c,) counts of labels.

    It does not depend on the order of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> round(regret_of(np.array([1, 0])), 6), round(regret_of(np.array([3, 1])), 3)
    (0.693147, 0.993)
    """
    found, a = [int(count) for count in counts], 1.0 / len(counts)
    n = sum(found)
    mixture = lgamma(n + 1.0) - sum(lgamma(count + a) - lgamma(a) for count in found)
    return mixture + sum(count * log(count / n) for count in found if count)


def calibeating(model: InductiveVenn) -> Calibeating:
    """Return how the forecasts of a Venn predictor stand beside the best constants by bin, with what is proved of it.

    Where `model.on_any_sequence` is "calibeating" (a scorer that is given, with `NoTraining()`, categories that depend
    on an example's own scores alone, and no `shift`), the point forecasts `proba` are the frequencies in the category,
    (n_k + 1/c) / (n + 1). On **any** sequence of labels, also one chosen by an adversary who sees the forecasts, the
    sum of their log losses is at most that of the best constant forecasts by category, chosen in hindsight, plus
    `regret_bound(n_b, c)` for each category b; and the sum of their squared distances at most that of the best
    constants plus 1 - 1/c + 2 ln(n_b + 1) for each. So they are never much worse than the scorer with its bins
    relabelled as one likes, and on exchangeable data the predictor keeps what its predictions guarantee. The theorem is
    about forecasts at the time of learning, each label learned before the next forecast.

    Parameters
    ----------
    model : InductiveVenn
        Whose `on_any_sequence` is "calibeating".

    Raises
    ------
    ValueError
        The theorem is not about this predictor.

    References
    ----------
    Foster & Hart (2023), "Calibeating: beating forecasters at their own game", Theoretical Economics; Krichevsky &
    Trofimov (1981). The bounds for forecasts with 1/c are derived here: by the Dirichlet mixture, and by Welford's
    identity with one example at the uniform distribution.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> import venn
    >>> scorer = venn.FrozenScorer(LinearSVC().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]))
    >>> model = venn.InductiveVenn(scorer, venn.taxonomies.ScoreBins(4))
    >>> for _ in range(100):  # whatever is forecast, the other label comes
    ...     p = model.predict_one([0.4]).proba
    ...     model.learn_one([0.4], "no" if p[0] < 0.5 else "yes")
    >>> found = calibeating(model)
    >>> model.on_any_sequence, found.bins, round(found.regret, 2), round(found.bound, 2), found.holds
    ('calibeating', 1, 2.53, 3.0, True)
    """
    if getattr(model, "on_any_sequence", None) != CALIBEATING:
        raise ValueError(
            "model must have a given scorer with NoTraining(), categories by an example's own scores, and no shift, as "
            f"an InductiveVenn may, got {model!r}: about others there is no theorem for any sequence"
        )
    counts = model.calibration.reader.state["counts"]
    c, sizes = len(model.classes), counts.sum(axis=1)
    return Calibeating(
        int(sizes.sum()),
        int((sizes > 0).sum()),
        sum(regret_of(row) for row in counts[sizes > 0]),
        sum(regret_bound(int(size), c) for size in sizes),
        sum(1.0 - 1.0 / c + 2.0 * log(size + 1.0) for size in sizes.tolist() if size),
    )
