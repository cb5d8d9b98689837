"""Predictive distributions and intervals by a regressor that is not trained on the examples it calibrates on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import frexp, isfinite, ldexp
from typing import Any, ClassVar, Self

import numpy as np

from venn.distribution import NestedIntervals, PredictiveDistribution, central_ranks, nested_rank, quantile_rank
from venn.labels import Real, space_of
from venn.machines.digests import digests_of
from venn.machines.objects import ObjectRows
from venn.machines.rulers import LOCATION_SCALE, Ruler, ruler_of
from venn.parameters import integer, share
from venn.prediction import Bools, Floats, Integers, significance
from venn.predictors.inductive_base import GIVEN, Inductive, checked_scorer, fitting_schedule
from venn.predictors.merging import Mergeable, MergingReader
from venn.saved import array, component, param
from venn.schedules import Schedule
from venn.smoothing import Smoothing

DIGITS = 40  # binary digits of labels that comparisons use


class _Block:
    """Base of blocks of predictions of numbers: sorted measures of calibration examples, and n objects."""

    classes = ()

    def __init__(
        self, residuals: Floats, times: Integers, scores: Floats, counts: Integers, taus: Floats | None = None,
        ruler: Ruler = LOCATION_SCALE,
    ) -> None:  # fmt: skip
        self.bags = [(residuals, times)]  # of each calibration set
        self.bag_of = np.zeros(len(scores), np.int64)  # the set of each object
        self.scores, self.counts, self.ruler = scores, counts, ruler
        self.taus = np.full(len(scores), 0.5) if taus is None else taus

    def of_bags(self, bags: list[tuple[Floats, Integers]], bag_of: Integers, *arrays: Any) -> Self:
        """Return the predictions for objects of several calibration sets: with scores, counts and random numbers."""
        new = type(self)(*bags[0], *arrays)
        new.ruler = self.ruler
        new.bags, new.bag_of = bags, bag_of
        return new

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return one block of the predictions of all, in order; at least one block."""
        bags = [bag for block in blocks for bag in block.bags]
        firsts = np.cumsum([0, *(len(block.bags) for block in blocks)])
        bag_of = np.concatenate([first + block.bag_of for first, block in zip(firsts, blocks, strict=False)])
        most = max(blocks, key=len)  # empty blocks have no ruler
        scores = np.concatenate([one.ruler.alike(one.scores) for one in blocks if len(one) or one is most])
        counts, taus = (np.concatenate([getattr(one, name) for one in blocks]) for name in ("counts", "taus"))
        return most.of_bags(bags, bag_of, scores, counts, taus)

    def __len__(self) -> int:
        return len(self.scores)

    def _known(self, bag: int, count: int) -> Floats:
        """Return the residuals of the first `count` examples of a calibration set, in ascending order."""
        residuals, times = self.bags[bag]
        return residuals if count == len(residuals) else residuals[times < count]

    def _by_count(self) -> Iterator[tuple[Integers, Floats]]:
        """Yield the places of objects with the same calibration examples, and the measures of these examples."""
        most = int(self.counts.max(initial=0)) + 1
        keys = self.bag_of * most + self.counts
        for key in np.unique(keys).tolist():
            yield np.flatnonzero(keys == key), self._known(*divmod(key, most))

    def _grids(self, *labels: Floats) -> Floats:
        """Return the (n,) grids on which labels are compared, by the size of these (n, k); 0 where all are 0."""
        # A residual is only as exact as its forecast.
        if len(labels[0]) == 1:  # for speed
            numbers = [abs(number) for ends in labels for number in ends[0].tolist()]
            if all(map(isfinite, numbers)):
                exponent = max(frexp(max(numbers))[1] - DIGITS, -1000)
                return np.array([ldexp(1.0, exponent) if any(numbers) else 0.0])
        largest = np.abs(np.hstack(labels)).max(axis=1)
        exponents = np.maximum(np.frexp(largest)[1] - DIGITS, -1000)
        return np.where(largest > 0, np.ldexp(1.0, exponents), 0.0)

    def with_taus(self, taus: Floats) -> Self:
        """Return a copy with these (n,) random numbers in [0, 1]."""
        return self.of_bags(self.bags, self.bag_of, self.scores, self.counts, taus)

    def taken(self, order: Integers) -> Self:
        """Return the predictions in another order."""
        return self.of_bags(self.bags, self.bag_of[order], self.scores[order], self.counts[order], self.taus[order])

    def __repr__(self) -> str:
        known = f", {len(self.bags[0][0])} calibration examples" if len(self.bags) == 1 else ""
        return f"{type(self).__name__}({len(self)} objects{known})"


def _on(grids: Floats, labels: Floats) -> Floats:
    """Return (n, k) labels as the nearest numbers of their grids; without a grid all are 0."""
    on_grid = np.where(grids > 0, grids, 1.0)[:, None]
    return np.rint(labels / on_grid) * on_grid


class ManyDistributions(_Block):
    """Predictive distributions for n objects: a block that answers by place as n predictions would.

    Parameters
    ----------
    residuals : (m,) float64
        Measures of calibration examples, such as residuals over their spread, in ascending order.
    times : (m,) int64
        Which of them came when: for object i those below `counts[i]` count.
    scores : (n, c) float64
        Forecasts, and spreads; or what else the ruler reads.
    counts : (n,) int64
    taus : (n,) float64
    ruler : Ruler, optional
        What measures labels by scores; by default residuals over spreads.

    Examples
    --------
    >>> block = ManyDistributions(
    ...     np.array([-1.0, 0.0, 1.0]), np.arange(3), np.array([[5.0], [7.0]]), np.array([3, 3])
    ... )
    >>> len(block), block.quantile(0.5).round(9).tolist()
    (2, [5.0, 7.0])
    >>> block.interval(0.5).round(9).tolist()
    [[4.0, 6.0], [6.0, 8.0]]
    """

    def __getitem__(self, i: int) -> PredictiveDistribution:
        i = range(len(self))[i]
        points, grids = self._points(np.array([i]), self._known(self.bag_of[i], self.counts[i]), slice(None))
        scores, tau = self.scores[i : i + 1], float(self.taus[i])
        if not points.size:
            middle = self.ruler.back(scores, self.ruler.middle(scores)[:, None])
            return PredictiveDistribution([], tau, origin=float(middle[0, 0]))
        if self.ruler.bends:
            back = partial(self.ruler.back, scores)
            return bent_back(points[0], tau, float(grids[0]), lambda three: back(three.reshape(1, -1)).reshape(3, -1))
        return _unchecked(points[0], tau, grid=float(grids[0]))

    def interval(self, epsilon: float) -> Floats:
        """Return the (n, 2) ends of the intervals, each as its prediction says it."""
        level = significance(epsilon)
        return self._at(lambda n: central_ranks(level, n), (-1.0, 1.0))

    def quantile(self, q: float) -> Floats:
        """Return the (n,) quantiles at q in [0, 1], each as its prediction says it."""
        at = share("q", q)
        return self._at(lambda n: (quantile_rank(at, n),), (1.0,))[:, 0]

    def _points(self, rows: Integers, known: Floats, ranks: Any) -> tuple[Floats, Floats]:
        """Return the critical points of some objects at some ranks, counted from 0, and the grid of each object."""
        if not len(known):
            return np.empty((len(rows), 0)), np.zeros(len(rows))
        scores = self.scores[rows]
        grids = self._grids(self.ruler.middle(scores)[:, None], self.ruler.labels(scores, known[[0, -1]]))
        return _on(grids, self.ruler.labels(scores, known[ranks])), grids

    def _at(self, ranks: Callable[[int], tuple[int, ...]], further: tuple[float, ...]) -> Floats:
        """Return for each object the points at ranks from 1 to n, which depend on n; infinite where there is none.

        Each lies so many steps of the grid `further` up, as the ends of a single prediction do.
        """
        found = np.empty((len(self), len(ranks(0))))
        for rows, known in self._by_count():
            wanted = np.array(ranks(len(known)))
            found[rows] = np.where(wanted < 1, -np.inf, np.inf)
            inside = np.flatnonzero((wanted >= 1) & (wanted <= len(known)))
            points, grids = self._points(rows, known, wanted[inside] - 1)
            ends = points + np.outer(grids, np.array(further)[inside])
            found[np.ix_(rows, inside)] = self.ruler.back(self.scores[rows], ends)
        return found

    def points(self) -> tuple[Floats, Floats]:
        """Return the (n, m) critical points of objects with the same calibration examples, and the (n,) grids."""
        ((rows, known),) = self._by_count()
        return self._points(rows, known, slice(None))


def bent_back(points: Floats, tau: float, grid: float, back: Callable[[Floats], Floats]) -> PredictiveDistribution:
    """Return the distribution of points on a grid of a bent scale; `back` maps (3, m) points to labels."""
    points, lows, highs = back(np.array([points, points - grid, points + grid]))
    return _unchecked(points, tau, lows=lows, highs=highs)


def _unchecked(points: Floats, tau: float, **others: Any) -> PredictiveDistribution:
    """Return the distribution of finite ascending points, without checks."""
    return PredictiveDistribution.unchecked(points, np.arange(1, len(points) + 1), len(points), tau=tau, **others)


class ManyIntervals(_Block):
    """Nested intervals for n objects: a block that answers by place as n predictions would.

    Parameters
    ----------
    residuals : (m,) float64
        How strange calibration examples are, in ascending order.
    times, scores, counts, taus, ruler
        As for `ManyDistributions`.

    Examples
    --------
    >>> block = ManyIntervals(np.array([0.5, 1.0, 2.0]), np.arange(3), np.array([[5.0], [7.0]]), np.array([3, 3]))
    >>> block.interval(0.25).round(9).tolist()
    [[3.0, 7.0], [5.0, 9.0]]
    """

    def __getitem__(self, i: int) -> NestedIntervals:
        i = range(len(self))[i]
        known, tau = self._known(self.bag_of[i], self.counts[i]), float(self.taus[i])
        lower, upper, middles, grids = self._nested(np.array([i]), known, slice(None))
        holding = int((lower[0] <= upper[0]).sum())  # beyond these ranks intervals hold no label
        n = 2 * len(known)
        first = len(known) - holding
        points = np.concatenate([lower[0, first:][::-1], upper[0, first:]])
        places = np.concatenate([np.arange(1, holding + 1), np.arange(n - holding + 1, n + 1)])
        return NestedIntervals(points, float(middles[0]), tau, places, n, grid=float(grids[0]))

    def interval(self, epsilon: float) -> Floats:
        """Return the (n, 2) ends of the intervals, each as its prediction says it."""
        level = significance(epsilon)
        found = np.empty((len(self), 2))
        for rows, known in self._by_count():
            k = nested_rank(level, len(known))
            if not k:
                found[rows] = -np.inf, np.inf
                continue
            lower, upper, middles, grids = self._nested(rows, known, slice(len(known) - k, len(known) - k + 1))
            ends = np.hstack([lower - grids[:, None], upper + grids[:, None]])
            found[rows] = np.where(lower <= upper, ends, middles[:, None])
        return found

    def ends(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return lower and upper ends, middles and grids of objects with the same calibration examples."""
        ((rows, known),) = self._by_count()
        return self._nested(rows, known, slice(None))

    def _nested(self, rows: Integers, known: Floats, ranks: slice) -> tuple[Floats, Floats, Floats, Floats]:
        """Return lower and upper ends of some objects at some ranks, on the grid, the middles, and the grids.

        An interval that holds no label has its lower end above the upper one. Where the ruler bends labels there is no
        grid any more: ends lie a step of it further out already.
        """
        scores = self.scores[rows]
        middles = self.ruler.middle(scores)
        if not len(known):
            return np.empty((len(rows), 0)), np.empty((len(rows), 0)), middles, np.zeros(len(rows))
        grids = self._grids(middles[:, None], *self.ruler.ends(scores, known[[0, -1]]))
        lower, upper = (_on(grids, ends) for ends in self.ruler.ends(scores, known[ranks]))
        middle = _on(grids, middles[:, None])
        holds = lower <= upper
        lower, upper = (
            np.where(holds, np.minimum(lower, middle), lower),
            np.where(holds, np.maximum(upper, middle), upper),
        )
        if self.ruler.bends:
            back, step = partial(self.ruler.back, scores), grids[:, None]
            lower, upper = (np.where(holds, back(end), end) for end in (lower - step, upper + step))
            return lower, upper, back(middles[:, None])[:, 0], np.zeros(len(rows))
        return lower, upper, middles, grids


class Residuals(Mergeable):
    """Reader of forecasts: keeps the residuals of calibration examples, as its ruler measures them, in ascending order.

    Parameters
    ----------
    ruler : Ruler, optional
        By default residuals are over their spread.
    """

    block: ClassVar[type[Any]] = ManyDistributions

    holds: ClassVar = {"residuals": array(None)}

    def __init__(self, ruler: Ruler = LOCATION_SCALE) -> None:
        self.ruler = ruler
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._residuals, self._times = np.zeros(0), np.zeros(0, np.int64)

    def _with(self, values: Floats) -> tuple[Floats, Integers]:
        """Return all residuals with new ones, and their times, in new arrays: earlier answers keep the old ones."""
        n = len(self._residuals)
        if len(values) == 1:  # for speed
            known, times, place = self._residuals, self._times, self._residuals.searchsorted(values[0], "right")
            residuals = np.concatenate([known[:place], values, known[place:]])
            return residuals, np.concatenate([times[:place], [n], times[place:]])
        residuals = np.concatenate([self._residuals, values])
        order = np.argsort(residuals, kind="stable")
        return residuals[order], np.concatenate([self._times, n + np.arange(len(values))])[order]

    def add(self, scores: Floats, codes: Any) -> None:
        """Take in calibration examples of scores (n, c), and (n,) labels."""
        if len(codes):
            self._residuals, self._times = self._with(self.measured(scores, codes))

    def measured(self, scores: Floats, codes: Any) -> Floats:
        """Return the (n,) numbers that are kept of calibration examples."""
        return self.ruler.measured(scores, codes)

    def take_back(self, scores: Floats, codes: Any) -> None:
        """Forget as many of the latest examples."""
        stay = self._times < len(self._times) - len(codes)
        self._residuals, self._times = self._residuals[stay], self._times[stay]

    def predict(self, scores: Floats) -> Any:
        """Return the predictions for n objects, each as if it were alone; leaves no trace."""
        return self._block(scores, np.full(len(scores), len(self._residuals)))

    def _block(self, scores: Floats, counts: Integers) -> Any:
        return self.block(self._residuals, self._times, scores, counts, ruler=self.ruler)

    def replay(self, scores: Floats, codes: Any, calibrates: Bools) -> Any:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        counts = len(self._residuals) + np.cumsum(calibrates) - calibrates
        self.add(scores[calibrates], codes[calibrates])
        return self._block(scores, counts)

    def nothing(self, n: int) -> Any:
        """Return predictions that exclude nothing, for n objects before there is a regressor."""
        return self.block(np.zeros(0), np.zeros(0, np.int64), np.zeros((n, 1)), np.zeros(n, np.int64))

    @property
    def state(self) -> dict[str, Any]:
        """The residuals, in ascending order."""
        return {"residuals": self._residuals}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        self._residuals = np.sort(np.concatenate([self._residuals, state["residuals"]]))
        self._times = np.arange(len(self._residuals))


class Strangeness(Residuals):
    """Reader of forecasts: keeps how strange calibration examples are, in ascending order."""

    block = ManyIntervals

    def measured(self, scores: Floats, codes: Any) -> Floats:
        """Return the (n,) numbers that are kept of calibration examples."""
        return self.ruler.strangeness(scores, codes)


def scorer_of_numbers(name: str, machine: Any) -> Any:
    """Return a regressor, or a machine of numbers that has learned nothing; or say what is wrong with it."""
    if not isinstance(space_of(checked_scorer(name, machine)), Real):
        raise TypeError(
            f"{name} must be one of numbers, such as FrozenRegressor(regressor) or KernelRidge, got {machine!r}"
        )
    return machine


@component
class InductiveDistribution(Inductive[Any]):
    """Predictive distributions by any regressor: calibration residuals, moved to the new object's forecast.

    The critical points are f(x) + s(x) (y_i - f(x_i)) / s(x_i) over the calibration examples, with the forecast f and,
    if there is a model of it, the spread s. Of given quantiles or distributions they are the labels that have at x the
    levels F(y_i | x_i). A prediction costs O(m) for m calibration examples, and learning as much.

    Theorems about `p_value` of the true label when examples are exchangeable, as for `InductiveConformal`: at each
    single step it is uniform on [0, 1], with every schedule and any regressor; so an interval at epsilon misses with
    probability at most epsilon. Over a stream, with `PrefixRestart`, and with `NoTraining` and a regressor fitted on
    other data, the p-values are also independent, and test martingales may bet on them. With other schedules they
    depend on each other. How narrow the intervals are is no theorem.

    Parameters
    ----------
    machine : FrozenRegressor, FrozenQuantiles, FrozenDistribution or KernelRidge
        A regressor fitted elsewhere, on other examples; or a machine that has learned nothing, to be trained as the
        schedule says.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for what was fitted elsewhere.
    seed : int >= 0, default 0
        Of the random numbers that break ties, one for each step and object.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : FrozenRegressor, machine or None
        What makes forecasts now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError, ValueError
        The machine is not one of numbers, has learned, or the schedule does not suit it.

    References
    ----------
    Vovk, Petej, Nouretdinov, Manokhin & Gammerman (2020), "Computationally efficient versions of conformal predictive
    distributions"; Papadopoulos, Proedrou, Vovk & Gammerman (2002), for the spread.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from venn.machines import FrozenRegressor
    >>> model = InductiveDistribution(FrozenRegressor(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])))
    >>> model.learn_many([[0.5], [1.5], [2.0], [3.0]], [1.25, 2.5, 4.25, 6.0])
    >>> prediction = model.predict_one([2.5])
    >>> prediction.points, prediction.label, np.round(prediction.interval(0.4), 9)
    (array([4.5 , 5.  , 5.25, 5.25]), 5.125, array([4.5 , 5.25]))
    """

    questioned = True

    machine: Any = param(scorer_of_numbers, kept_as="given")
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return what keeps the residuals."""
        return Residuals(ruler_of(self.given))

    def derive(self) -> None:
        """Draw nothing yet."""
        super().derive()
        self._smoothing = Smoothing(self.seed)

    def finished(self, block: Any, rows: ObjectRows, step: int, in_turn: bool) -> Any:
        """Return the distributions with a random number for each object: all at one step, or in turn from it on."""
        of = self._smoothing.of_each if in_turn else self._smoothing.of
        return block.with_taus(of(step, digests_of(rows)))


@component
class InductiveIntervals(InductiveDistribution):
    """Two-sided intervals by any regressor; with given quantiles conformalized quantile regression.

    - `FrozenQuantiles`: strange is a label that lies far outside the outermost quantiles, max(q_lo - y, y - q_hi), a
      negative number inside. The interval at epsilon is [q_lo - Q, q_hi + Q], with the strangeness Q of rank
      ceil((1 - epsilon)(m + 1)) among m calibration examples. Where quantiles are too wide it gets narrower. It may
      then hold no label of some object: `interval` is the point in the middle there.
    - Any other: |y - f| / s, so that the interval is f plus and minus a multiple of the spread s.

    At each single step an interval at epsilon misses with probability at most epsilon, and `p_value` of the true label
    is uniform; the rest is as for `InductiveDistribution`. The misses may all lie on one side; distributions promise
    half of them on each.

    Parameters
    ----------
    machine, schedule, seed
        As for `InductiveDistribution`.

    Raises
    ------
    TypeError, ValueError
        The machine is not one of numbers, has learned, or the schedule does not suit it.

    References
    ----------
    Romano, Patterson & Candès (2019), "Conformalized quantile regression".

    Examples
    --------
    >>> from sklearn.linear_model import QuantileRegressor
    >>> from venn.machines import FrozenQuantiles
    >>> X, y = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], [0.0, 1.0, 2.0, 0.0, 3.0, 6.0]
    >>> pair = [QuantileRegressor(quantile=q, alpha=0).fit(X, y) for q in (0.2, 0.8)]
    >>> model = InductiveIntervals(FrozenQuantiles(pair, (0.2, 0.8)))
    >>> model.learn_many([[0.0], [0.5], [1.0], [1.0]], [0.5, 2.0, 7.0, 3.0])
    >>> np.round(model.predict_one([0.5]).interval(0.4), 9) + 0.0  # of strangeness -0.5, -2, 1 and -3
    array([0.5, 3.5])
    """

    def new_reader(self) -> MergingReader:
        """Return what keeps how strange calibration examples are."""
        return Strangeness(ruler_of(self.given))
