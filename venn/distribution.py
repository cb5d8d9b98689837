"""Predictions of numbers, made before the label is revealed: distributions and intervals, as frozen values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from venn._compiled.distribution import crps as crps_of_points
from venn.labels import Real
from venn.parameters import array_of, fraction, integer, number, positive, share
from venn.prediction import CRPS, ERROR_RATE, LEVELS, LONG_RUN, NOTHING, Floats, Integers, Label, significance
from venn.saved import saved

__all__ = ["NestedIntervals", "NormalDistribution", "NumberPrediction", "PredictiveDistribution", "interval_score"]

GUARANTEES = (ERROR_RATE, NOTHING, LONG_RUN, CRPS)  # a new one comes last: journals hold the places
HAIR = 1e-9  # products of levels and counts are whole numbers up to rounding
ENDS = "lows", "highs", "lower", "upper"
NEVER = 1e300  # a label is smaller
#: What a prediction is made of where nobody says otherwise.
UNCHECKED = {
    "tau": 0.5, "origin": 0.0, "grid": 0.0, "guaranteed": ERROR_RATE, "strays": 0, "lows": None, "highs": None,
    "lower": None, "upper": None,
}  # fmt: skip
REAL = Real()


def interval_score(lower: float, upper: float, y: float, epsilon: float) -> float:
    """Return the score of an interval that claims to miss with probability epsilon: smaller is better.

    Its width, and 2 / epsilon times the distance of the label from it.

    Parameters
    ----------
    lower, upper : float
        Ends of the interval, in the unit of the label; they may be infinite.
    y : float
        The label.
    epsilon : float in (0, 1)
        The probability of a miss that the interval claims.

    Raises
    ------
    ValueError, TypeError
        `epsilon` is not as described.

    References
    ----------
    Gneiting & Raftery (2007), "Strictly proper scoring rules, prediction, and estimation".

    Examples
    --------
    >>> interval_score(1.0, 3.0, 3.5, 0.1)
    12.0
    """
    return (upper - lower) + 2 / fraction("epsilon", epsilon) * max(lower - y, y - upper, 0.0)


class NumberPrediction(ABC):
    """Base of predictions of a number: a point, an interval for each significance level, a p-value for each label.

    Examples
    --------
    Every prediction of a number can be asked the same:

    >>> prediction = NormalDistribution(20.0, 2.0)
    >>> isinstance(prediction, NumberPrediction), prediction.label
    (True, 20.0)
    >>> [round(end, 1) for end in prediction.interval(0.05)]
    [16.1, 23.9]
    """

    classes: ClassVar[tuple[Label, ...]] = ()  #: none: labels are numbers
    says: ClassVar[tuple[str, ...]] = ("label", "intervals", "guaranteed")  #: the attributes that `plain` writes
    guaranteed: str

    @property
    @abstractmethod
    def label(self) -> float:
        """The point forecast."""

    @property
    def index(self) -> float:
        """The code of the label: for numbers the label itself."""
        return self.label

    @abstractmethod
    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the ends of the interval that misses the label with probability at most `epsilon`; may be infinite.

        Parameters
        ----------
        epsilon : float in [0, 1]
            Significance level: the chance of an error.

        Raises
        ------
        ValueError, TypeError
            `epsilon` is not as described.
        """

    @property
    def intervals(self) -> dict[str, list[float | None]]:
        """The ends of the intervals at the significance levels 0.01, 0.05, 0.1 and 0.2; None for an infinite one."""
        return {str(level): [end if math.isfinite(end) else None for end in self.interval(level)] for level in LEVELS}

    @abstractmethod
    def p_value(self, y: float) -> float:
        """Return a number in [0, 1] that is uniform over the draw of the label, where something is guaranteed."""

    def interval_score(self, y: float, epsilon: float) -> float:
        """Return the interval score of the interval at a significance level in (0, 1): smaller is better."""
        return interval_score(*self.interval(epsilon), REAL.encode(y), epsilon)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        lower, upper = self.interval(0.1)
        return f"{type(self).__name__}({self.label:.4g}: [{lower:.4g}, {upper:.4g}] at 0.1)"


class _Ranked(NumberPrediction):
    """What predictions share that compare a label with sorted numbers, on a grid.

    `places` are those of the points among `n` sorted ones, from 1; all of them unless the prediction is an abridged
    one, which a journal keeps.

    Ends of intervals lie a step of the grid further out than their points: a label that ties with a point, but for
    rounding, is inside.
    """

    def __init__(
        self,
        points: Any,
        tau: float = 0.5,
        places: Any = None,
        n: int | None = None,
        origin: float = 0.0,
        grid: float = 0.0,
        guaranteed: str = ERROR_RATE,
    ) -> None:
        given = array_of(points)
        if given.dtype.kind not in "fiu" or given.ndim != 1:
            raise TypeError(f"points must be a sequence of numbers, got {points!r}")
        clean = given.astype(np.float64)
        if not (np.isfinite(clean).all() and (clean[1:] >= clean[:-1]).all()):
            raise ValueError(f"points must be finite and in ascending order, got {points!r}")
        self.n = len(clean) if n is None else integer("n", n, len(clean))
        if places is None and self.n != len(clean):
            raise ValueError(f"places must be given for {len(clean)} of n = {self.n} points")
        self.places: Integers = np.arange(1, self.n + 1) if places is None else np.array(places, np.int64)
        inside = not len(clean) or (self.places[0] >= 1 and self.places[-1] <= self.n)
        if self.places.shape != clean.shape or not inside or not (np.diff(self.places) > 0).all():
            raise ValueError(f"places must be {len(clean)} ascending integers from 1 to {self.n}, got {places!r}")
        for array in (clean, self.places):
            array.setflags(write=False)
        self.points = clean
        self.tau = share("tau", tau)
        self.origin, self.grid = number("origin", origin), positive("grid", grid, zero=True)
        if guaranteed not in GUARANTEES:
            raise ValueError(f"guaranteed must be one of {', '.join(map(repr, GUARANTEES))}, got {guaranteed!r}")
        self.guaranteed = guaranteed

    def _on_grid(self, y: Any) -> float:
        """Return a label as the nearest number of the grid, on which the points lie."""
        label = REAL.encode(y)
        if not self.grid:
            return label
        steps = (label - self.origin) / self.grid
        return self.origin + self.grid * float(np.rint(steps)) if math.isfinite(steps) else label

    def _counts(self, y: float) -> tuple[int, int]:
        """Return how many of all n points are below a number of the grid, and how many are not above it.

        Where not all are known, a number between two known points is taken as equal to all unknown ones there.
        """
        places, (first, after) = self.places, self._tied(y)
        if first < after:
            return int(places[first]) - 1, int(places[after - 1])
        return int(places[first - 1]) if first else 0, int(places[first]) - 1 if first < len(places) else self.n

    def _tied(self, y: float) -> tuple[int, int]:
        """Return from which place among the known points on a number ties with them, and from which no longer."""
        return int(self.points.searchsorted(y, "left")), int(self.points.searchsorted(y, "right"))

    def _at_most(self, k: int, of: Floats | None = None) -> float:
        """Return the k-th smallest point, or the last known one before it; minus infinity for none.

        Or what stands in its place in another array.
        """
        known = self.points if of is None else of
        # Where all points are known their places are 1 to n.
        place = (min(k, self.n) if len(known) == self.n else int(self.places.searchsorted(k, "right"))) - 1
        return float(known[place]) if place >= 0 else -math.inf

    def _at_least(self, k: int, of: Floats | None = None) -> float:
        """Return the k-th smallest point, or the first known one after it; infinity for none; or of another array."""
        known = self.points if of is None else of
        place = max(k - 1, 0) if len(known) == self.n else int(self.places.searchsorted(k, "left"))
        return float(known[place]) if place < len(known) else math.inf

    def _lower(self, k: int) -> float:
        """Return a lower end: the k-th smallest point, and a step of the grid less."""
        return self._at_most(k) - self.grid

    def _upper(self, k: int) -> float:
        """Return an upper end: the k-th smallest point, and a step of the grid more."""
        return self._at_least(k) + self.grid

    def _with(self, ranks: Any) -> Integers:
        """Return which of the known points hold these ranks from 1 to n, each with all that are equal to it."""
        wanted = np.array(sorted({k for k in ranks if 1 <= k <= self.n}), np.int64)
        at = np.clip(self.places.searchsorted(wanted), 0, max(len(self.places) - 1, 0))
        values = self.points[at]
        both = np.concatenate([self.points.searchsorted(values), self.points.searchsorted(values, "right") - 1])
        return np.unique(both)


#: Levels of the quantiles that an abridged distribution keeps, beside the ends of the intervals that records score.
KEPT = tuple(k / 20 for k in range(1, 20))


def central_ranks(epsilon: float, n: int) -> tuple[int, int]:
    """Return the ranks of the ends of the central interval among n points: 0 is minus infinity, n + 1 infinity."""
    k = math.floor(epsilon / 2 * (n + 1) + HAIR)
    return k, n + 1 - k


def nested_rank(epsilon: float, n: int) -> int:
    """Return the place of the interval at epsilon among n nested ones, from the outermost, 1; 0 is the line."""
    return min(math.floor(epsilon * (n + 1) + HAIR), n)


def quantile_rank(q: float, n: int) -> int:
    """Return the rank of the quantile at q among n points: below 1 it is minus infinity, above n infinity."""
    return math.ceil(q * (n + 1) - HAIR)


@saved
class PredictiveDistribution(_Ranked):
    """A distribution for one number, made of critical points: the label of the new example at each rank among others.

    With n points C_(1) <= .. <= C_(n), the probability that the label is at most y is (k + tau) / (n + 1), where k
    points are below y; if m points equal y, k + tau (m + 1) replaces k + tau. tau in [0, 1] is drawn once for the
    prediction. By `ConformalDistribution` that number, at the true label, is uniform on [0, 1] if examples are
    exchangeable, and independent over the steps: `p_value`. All of the following is read off it.

    Parameters
    ----------
    points : (n,) finite numbers in ascending order
    tau : float in [0, 1], default 0.5
        The random number that breaks ties.
    places : (m,) integers, optional
        Places of the points among n sorted ones, from 1, where only m of them are known.
    n : int, optional
        Their number then.
    origin, grid : float, default 0
        Points, and labels when they are compared, are origin + k grid with integers k; 0: compared as they are. Ends of
        intervals lie `grid` further out, so that a label that ties with an end is inside.
    guaranteed : str, default "error rate"
        "error rate": what is said above; "nothing"; "long-run error rate", by `AdaptiveIntervals`;
        "CRPS", by `DistributionMixture`.
    lows, highs : (m,) ascending numbers, optional
        Instead of a grid: of each point the ends of the interval of labels that tie with it.
    lower, upper : (m,) ascending numbers, optional
        Where intervals that end at a point have their lower end, or their upper one; by default `lows` and `highs`. No
        label may lie between these, or they lie further out.
    strays : int, default 0
        How many of the points are of labels that lie where none should: intervals end so many ranks further out.

    Attributes
    ----------
    label : float
        The point forecast: the median; the origin where there is no point.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk, Shen, Manokhin & Xie (2019), "Nonparametric predictive distributions based on conformal prediction".

    Examples
    --------
    >>> prediction = PredictiveDistribution([1.0, 2.0, 2.5, 3.0, 4.0, 4.5, 5.0, 6.0, 9.0], tau=0.5)
    >>> prediction.interval(0.2), prediction.quantile(0.9), prediction.label
    ((1.0, 9.0), 9.0, 4.0)
    >>> prediction.cdf(2.2), prediction.p_value(2.2), round(prediction.crps(2.2), 3)
    (0.25, 0.25, 0.975)
    """

    def __init__(
        self,
        points: Any,
        tau: float = 0.5,
        places: Any = None,
        n: int | None = None,
        origin: float = 0.0,
        grid: float = 0.0,
        guaranteed: str = ERROR_RATE,
        *,
        lows: Any = None,
        highs: Any = None,
        lower: Any = None,
        upper: Any = None,
        strays: int = 0,
    ) -> None:
        super().__init__(points, tau, places, n, origin, grid, guaranteed)
        for name, ends in zip(ENDS, (lows, highs, lower, upper), strict=True):
            setattr(self, name, None if ends is None else self._checked(name, ends))
        for one, other in ("lows", "highs"), ("lower", "upper"):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise ValueError(f"{one} must be given with {other}, and {other} with {one}")
        self.strays = integer("strays", strays, 0, self.n)

    @classmethod
    def unchecked(cls, points: Floats, places: Integers, n: int, **others: Any) -> Self:
        """Return the prediction of arrays that nobody else changes: nothing is checked or copied, see `UNCHECKED`."""
        new = cls.__new__(cls)
        for array in (points, places):
            array.setflags(write=False)
        new.__dict__ = {"points": points, "places": places, "n": n, **UNCHECKED, **others}
        return new

    def _checked(self, name: str, ends: Any) -> Floats:
        clean = array_of(ends).astype(np.float64)
        if clean.shape != self.points.shape or not np.isfinite(clean).all() or not (clean[1:] >= clean[:-1]).all():
            raise ValueError(f"{name} must be {len(self.points)} finite numbers in ascending order, got {ends!r}")
        clean.setflags(write=False)
        return clean

    def _tied(self, y: float) -> tuple[int, int]:
        if self.lows is None or self.highs is None:
            return super()._tied(y)
        return int(self.highs.searchsorted(y, "left")), int(self.lows.searchsorted(y, "right"))

    def _lower(self, k: int) -> float:
        lower, upper = (self.lows, self.highs) if self.lower is None else (self.lower, self.upper)
        if lower is None:
            return super()._lower(k)
        found = self._at_most(k - self.strays, lower)
        return found if found < NEVER else self._at_most(k - self.strays, upper)

    def _upper(self, k: int) -> float:
        lower, upper = (self.lows, self.highs) if self.lower is None else (self.lower, self.upper)
        if upper is None:
            return super()._upper(k)
        found = self._at_least(k + self.strays, upper)
        return found if found > -NEVER else self._at_least(k + self.strays, lower)

    @property
    def settled(self) -> Floats:
        """The points, those between two numbers where no labels are at the nearer of these."""
        if self.lower is None or self.upper is None:
            return self.points
        nearer = np.where(self.points - self.upper <= self.lower - self.points, self.upper, self.lower)
        found: Floats = np.where(self.lower > self.upper, nearer, self.points)
        return found

    lows: Floats | None
    highs: Floats | None
    lower: Floats | None
    upper: Floats | None

    @property
    def label(self) -> float:
        """The median: the mean of the two middle points, or the middle one; the origin where there is no point."""
        if not self.n:
            return self.origin
        lower, upper = self._at_most((self.n + 1) // 2), self._at_least((self.n + 2) // 2)
        return lower / 2 + upper / 2

    @property
    def mean(self) -> float:
        """The mean of the points; the origin where there is no point. Of an abridged one nearly that."""
        if not self.n:
            return self.origin
        steps = np.diff(self.places)
        shares = (np.append(2 * self.places[0] - 1, steps) + np.append(steps, 2 * (self.n - self.places[-1]) + 1)) / 2
        return float((shares / self.n) @ self.points)

    def _probability(self, y: float, tau: float) -> float:
        below, upto = self._counts(self._on_grid(y))
        return (below + tau * (upto - below + 1)) / (self.n + 1)

    def p_value(self, y: float) -> float:
        """Return the probability of labels up to `y`, ties broken by `tau`: uniform at the true label.

        Small where the label lies below what was expected, large where it lies above.
        """
        return self._probability(y, self.tau)

    def cdf(self, y: float) -> float:
        """Return the probability of labels up to `y`, that of `y` itself included: (k + 1/2) / (n + 1).

        k of the n points are not above `y`. Where labels are tied, as counts are, cdf(y) less the value just below y is
        the probability of y itself; a p-value has a random part of it. Without a random number.
        """
        _, upto = self._counts(self._on_grid(y))
        return (upto + 0.5) / (self.n + 1)

    def cdf_bounds(self, y: float) -> tuple[float, float]:
        """Return the smallest and the largest value of the distribution function at `y` that a tie-break could give."""
        return self._probability(y, 0.0), self._probability(y, 1.0)

    def quantile(self, q: float) -> float:
        """Return a number that the label exceeds with probability at most 1 - q; infinite if n + 1 < 1 / (1 - q).

        Parameters
        ----------
        q : float in [0, 1]
        """
        rank = quantile_rank(share("q", q), self.n)
        return -math.inf if rank < 1 else self._upper(rank)

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the interval that misses the label with probability at most `epsilon`, half of that on each side.

        Both ends belong to it. Where points are tied an end may have a probability of its own, all of which is inside:
        it then misses less often than `epsilon`.
        """
        ranks = central_ranks(significance(epsilon), self.n)
        lower, upper = self._lower(ranks[0]), self._upper(ranks[1])
        if math.inf > lower > upper > -math.inf:  # between two numbers where no labels are: none is inside
            lower = upper = upper if 2 * self.label <= lower + upper else lower
        return lower, upper

    def crps(self, y: float) -> float:
        """Return the continuous ranked probability score at `y`: smaller is better, in the unit of labels.

        The integral of (F(u) - 1{u >= y})^2, where F is the distribution that has each of the points with probability
        1 / n. Without a point it is that of the point forecast.
        """
        label = REAL.encode(y)
        if not self.n:
            return abs(label - self.origin)
        return float(crps_of_points(self.points, self.places, self.n, label))

    def pinball(self, y: float, q: float) -> float:
        """Return the pinball loss of the quantile at q in (0, 1): smaller is better."""
        label, at = REAL.encode(y), self.quantile(fraction("q", q))
        return max(q * (label - at), (q - 1) * (label - at))

    def abridged(self, levels: tuple[float, ...]) -> PredictiveDistribution:
        """Return a distribution of at most some dozens of points, with the same intervals at these levels.

        It keeps the median and 19 quantiles, too. Its p-values are as valid as those of all points: it looks at the
        label on a coarser scale, which is fixed before the label is known.
        """
        n = self.n
        ranks = {(n + 1) // 2, (n + 2) // 2, 1, n, *(quantile_rank(q, n) + self.strays for q in KEPT)}
        for level in levels:
            lower, upper = central_ranks(level, n)
            ranks |= {lower - self.strays, upper + self.strays}
        kept = self._with(ranks) if n else slice(None)
        ends = {name: None if (one := getattr(self, name)) is None else one[kept] for name in ENDS}
        return PredictiveDistribution(
            self.points[kept], self.tau, self.places[kept], n, self.origin, self.grid, self.guaranteed, **ends,
            strays=self.strays,
        )  # fmt: skip


@saved
class NestedIntervals(_Ranked):
    """Intervals for one number at every significance level, one inside the other: a two-sided prediction.

    Each of n examples contributes the interval of labels at which it is at least as strange as the new one; all of
    them contain the point forecast. The interval at epsilon is where at least floor(epsilon (n + 1)) of them overlap.

    Some examples may be less strange than the new one with any label: their intervals hold nothing, and their places,
    the innermost ones of each half, are missing. An interval where these would be needed holds the point forecast only.

    Parameters
    ----------
    points : (2 n,) finite numbers in ascending order
        Lower ends, then upper ends, each sorted.
    label : float
        The point forecast, between the two halves.
    tau, places, n, origin, grid, guaranteed
        As for `PredictiveDistribution`, with 2 n in place of n.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Nouretdinov, Melluish & Vovk (2001), "Ridge regression confidence machine"; Burnaev & Vovk (2014), "Efficiency of
    conformalized ridge regression".

    Examples
    --------
    >>> prediction = NestedIntervals([1.0, 2.0, 3.0, 5.0, 6.0, 7.0], 4.0)
    >>> prediction.interval(0.25), prediction.interval(0.5), prediction.p_value(6.5)
    ((1.0, 7.0), (2.0, 6.0), 0.375)
    """

    def __init__(
        self,
        points: Any,
        label: float,
        tau: float = 0.5,
        places: Any = None,
        n: int | None = None,
        origin: float = 0.0,
        grid: float = 0.0,
        guaranteed: str = ERROR_RATE,
    ) -> None:
        super().__init__(points, tau, places, n, origin, grid, guaranteed)
        if self.n % 2:
            raise ValueError(f"points must be lower and upper ends, an even number of them, got {self.n}")
        self._label = number("label", label)

    @property
    def label(self) -> float:
        """The point forecast of the machine."""
        return self._label

    @property
    def _holding(self) -> int:
        """The number of examples whose intervals hold a label: the innermost place of the lower half."""
        place = int(self.places.searchsorted(self.n // 2, "right"))
        return int(self.places[place - 1]) if place else 0

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the interval that misses the label with probability at most `epsilon`."""
        k = nested_rank(significance(epsilon), self.n // 2)
        return (self._lower(k), self._upper(self.n + 1 - k)) if k <= self._holding else (self.label, self.label)

    def p_value(self, y: float) -> float:
        """Return the share of examples at least as strange as the new one with label `y`, ties broken by `tau`."""
        inner = self._holding
        below, upto = self._counts(self._on_grid(y))
        # Strange are labels far outside: the rank from below in the lower half, from above in the upper half.
        greater, reached = (below, upto) if below < inner else (self.n - upto, self.n - below)
        if upto > inner > below:  # the innermost place
            greater, reached = min(below, self.n - upto), inner
        return (greater + self.tau * (min(reached, inner) - greater + 1)) / (self.n // 2 + 1)

    def abridged(self, levels: tuple[float, ...]) -> NestedIntervals:
        """Return nested intervals of at most some dozens of points, the same at these levels."""
        half, inner = self.n // 2, self._holding
        ranks: set[int] = {1, inner}
        for level in (*levels, *KEPT):
            ranks.add(math.floor(level * (half + 1) + HAIR))
        both = {k for k in ranks if 1 <= k <= inner}
        both |= {self.n + 1 - k for k in both}
        points, places = self.points, self.places
        if inner:
            kept = self._with(both)
            points, places = points[kept], places[kept]
            # the innermost ones tell how many hold a label, even where both ends tie
            innermost = np.array([inner, self.n + 1 - inner])
            places = np.union1d(places, innermost[np.isin(innermost, self.places)])
            points = self.points[self.places.searchsorted(places)]
        return NestedIntervals(points, self.label, self.tau, places, self.n, self.origin, self.grid, self.guaranteed)


@saved
class NormalDistribution(NumberPrediction):
    """A normal distribution for one number, for comparisons: nothing is guaranteed about it.

    Parameters
    ----------
    mean : finite number
    deviation : finite number >= 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> prediction = NormalDistribution(1.0, 2.0)
    >>> prediction.quantile(0.5), prediction.cdf(1.0), round(prediction.crps(1.0), 3)
    (1.0, 0.5, 0.467)
    """

    guaranteed = NOTHING

    def __init__(self, mean: float, deviation: float) -> None:
        self.mean, self.deviation = number("mean", mean), positive("deviation", deviation, zero=True)

    @property
    def label(self) -> float:
        """The mean."""
        return self.mean

    def _standard(self, y: float) -> float:
        away = REAL.encode(y) - self.mean
        if not self.deviation:
            return math.copysign(math.inf, away) if away else 0.0
        return away / self.deviation

    def cdf(self, y: float) -> float:
        """Return the probability of labels up to `y`."""
        return 0.5 * math.erfc(-self._standard(y) / math.sqrt(2))

    def p_value(self, y: float) -> float:
        """Return the probability of labels up to `y`."""
        return self.cdf(y)

    def quantile(self, q: float) -> float:
        """Return the number that the label exceeds with probability 1 - q; infinite for 0 and 1."""
        from statistics import NormalDist

        if share("q", q) in (0, 1):
            return math.inf if q else -math.inf
        return self.mean + self.deviation * NormalDist().inv_cdf(q)

    def interval(self, epsilon: float) -> tuple[float, float]:
        """Return the central interval of probability 1 - epsilon."""
        level = significance(epsilon)
        return self.quantile(level / 2), self.quantile(1 - level / 2)

    def crps(self, y: float) -> float:
        """Return the continuous ranked probability score at `y`: smaller is better."""
        z = self._standard(y)
        if not math.isfinite(z) or not self.deviation:
            return abs(REAL.encode(y) - self.mean)
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return self.deviation * (z * math.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))
