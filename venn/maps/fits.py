"""Maps from scores to probabilities, fitted to all examples at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from venn._compiled.maps import fit_logistic, log_memberships, softmax_moments
from venn._compiled.scaling import apply_isotonic, fit_sigmoid, pool, ranges
from venn.machines.machine import NotConverged
from venn.maps.contract import (
    BinaryMap,
    Edges,
    FittedMap,
    FollowingBins,
    FollowingIsotonic,
    FollowingPlatt,
    Refitting,
    ScoreMap,
    binary_examples,
    binned,
    checked_map,
    class_examples,
    class_scores,
    finite_array,
)
from venn.parameters import Parameters, flag, integer, one_of, with_methods
from venn.prediction import Floats, Label
from venn.saved import component, param, saved

# ------------------------------------------------------------------------------------------------------------- sigmoids
# Maps from scores to probabilities, fitted to all examples at once: Platt's sigmoid, and what fitted maps share.
#
# A map is a small object that holds parameters; `fit` does not change it and returns the fitted map, which is frozen.


class Fitted:
    """Equality by value, and arrays that cannot be written to."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(vars(self).values(), vars(other).values(), strict=True))

    __hash__ = None  # type: ignore[assignment]


def soft_targets(positive: float, negative: float) -> tuple[float, float]:
    """Return Platt's targets of negatives and positives, from the weights of positives and negatives."""
    return 1 / (negative + 2), (positive + 1) / (positive + 2)


def logistic(u: Floats) -> Floats:
    """Return 1 / (1 + e^-u) without overflow, with full relative precision near 0."""
    e = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, e) / (1.0 + e)


def softmax(scores: Floats) -> Floats:
    """Return the softmax of each row, without overflow."""
    with np.errstate(over="ignore"):
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@saved
@dataclass(frozen=True)
class FittedConstant:
    """The same probability at every score."""

    probability: float

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        return np.full(len(finite_array("scores", scores)), self.probability)


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


# ----------------------------------------------------------------------------------------------------- beta calibration
# Beta calibration: logistic regression on the logarithms of a membership and of 1 minus it.

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


# ---------------------------------------------------------------------------------------------------------------- steps
# Maps that count: binning and isotonic regression.


@component
class EqualWidth(Parameters):
    """Cuts for bins that divide the range of the scores into equal parts.

    Examples
    --------
    >>> EqualWidth().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([1, 1, 1]), 4)
    array([[1., 2., 3.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts low + i / bins * (high - low) of (c, n) scores; totals do not matter."""
        low, high = ranges(scores)
        with np.errstate(over="ignore"):
            cuts: Floats = low + (high - low) * (np.arange(1, bins) / bins)
        return cuts


@component
class EqualFrequency(Parameters):
    """Cuts for bins of equal weight, as nearly as ties allow.

    In order of score, cut i is the first score at which the weight so far exceeds i / bins of the total.

    Examples
    --------
    >>> EqualFrequency().cuts(np.array([[0.0, 1.0, 4.0]]), np.array([2, 1, 1]), 2)
    array([[1.]])
    """

    def cuts(self, scores: Floats, totals: Any, bins: int) -> Floats:
        """Return the (c, bins - 1) cuts of (c, n) scores, each with its weight in the (n,) totals."""
        shares = np.arange(1, bins) * totals.sum()
        cuts = np.empty((len(scores), bins - 1))
        for row, f in zip(cuts, scores, strict=True):
            order = f.argsort()
            row[:] = f[order[(totals[order].cumsum() * bins).searchsorted(shares, side="right")]]
        return cuts


@saved
@dataclass(frozen=True, eq=False)
class FittedBins(Fitted):
    """Rates (bins,) between `cuts` (bins - 1,); a score equal to a cut belongs to the bin above."""

    cuts: Floats
    rates: Floats

    def __call__(self, scores: Any) -> Floats:
        """Return (n,) probabilities of label 1 at (n,) scores."""
        return self.rates[self.cuts.searchsorted(finite_array("scores", scores), side="right")]


@component
class Binning(Parameters):
    """Histogram binning: the rate of positives among the examples in the score's bin.

    Scores outside the range of the examples belong to the end bins. A bin without examples takes the rate of
    the nearest bin that has some, counted in bins, and of two the lower one. When all scores are equal there is one
    bin. One class only, and separable scores, give rates of 0 and 1, where one error has infinite log loss, unless
    `laplace`.

    Parameters
    ----------
    bins : int >= 1, default 10
    edges : Edges, default EqualWidth()
        `EqualWidth()`, `EqualFrequency()`, or an object with the same method.
    laplace : bool, default False
        Rate (n+ + 1) / (n + 2) instead of n+ / n in a bin with n examples, n+ positive.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Zadrozny & Elkan (2001); Drish (2001); Rueping (2004) uses 10 and 50 bins.

    Examples
    --------
    >>> fitted = Binning(bins=2).fit([0.0, 0.2, 0.4, 0.6, 1.0], [0, 0, 1, 1, 1])
    >>> fitted.cuts, fitted([-7.0, 0.5, 0.9]).round(3)
    (array([0.5]), array([0.333, 1.   , 1.   ]))
    """

    bins: int = param(integer, 1, default=10)
    edges: Edges = param(
        with_methods, "an object with a method 'cuts', such as EqualWidth()", "cuts", default=EqualWidth()
    )
    laplace: bool = param(flag, default=False)

    def fit(self, scores: Any, labels: Any, weights: Any = None) -> FittedBins:
        """Return the map fitted to (n,) scores, labels 0 and 1, and weights >= 0.

        Raises
        ------
        TypeError, ValueError
            Bad scores, labels or weights, or cuts that decrease or are not finite.
        """
        f, y, w = binary_examples(scores, labels, weights)
        cuts, rates = binned(f[None], (w * y)[None], w, self.bins, self.edges, self.laplace)
        return FittedBins(cuts[0], rates[0])

    def follower(self, classes: Sequence[Label]) -> FollowingBins:
        """Return an object that keeps the bins of all classes counted online."""
        return FollowingBins(self.bins, self.edges, self.laplace)


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


# -------------------------------------------------------------------------------------------------------------- classes
# Maps for several classes: temperature, and any binary map one class against all others.

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
            return softmax(np.nan_to_num(f - f.max(axis=1, keepdims=True)) / self.temperature)


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
    >>> from venn.maps.fits import Platt
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
