"""Predictive distributions by a regressor that is not trained on the examples it calibrates on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from venn.distribution import PredictiveDistribution, central_ranks, quantile_rank
from venn.labels import Real, space_of
from venn.machines.digests import digests_of
from venn.machines.frozen import ObjectRows
from venn.parameters import integer, share
from venn.prediction import Bools, Floats, Integers, significance
from venn.predictors.inductive_base import GIVEN, Inductive, checked_scorer, fitting_schedule
from venn.predictors.learning import Mergeable, MergingReader
from venn.saved import component, held_finite, held_rows, param
from venn.schedules import Schedule
from venn.smoothing import Smoothing

DIGITS = 40  # binary digits to which labels are compared


class ManyDistributions:
    """Predictive distributions for n objects: a block that answers by place as n predictions would.

    Parameters
    ----------
    residuals : (m,) float64
        Residuals of calibration examples over their spread, in ascending order.
    times : (m,) int64
        Which of them came when: for object i those below `counts[i]` count.
    scores : (n, 1) or (n, 2) float64
        Forecasts, and spreads.
    counts : (n,) int64
    taus : (n,) float64

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

    classes = ()

    def __init__(
        self, residuals: Floats, times: Integers, scores: Floats, counts: Integers, taus: Floats | None = None
    ) -> None:
        self.bags = [(residuals, times)]  # of each calibration set
        self.bag_of = np.zeros(len(scores), np.int64)  # the set of each object
        self.scores, self.counts = scores, counts
        self.taus = np.full(len(scores), 0.5) if taus is None else taus

    def of_bags(self, bags: list[tuple[Floats, Integers]], bag_of: Integers, *arrays: Any) -> Self:
        """Return the predictions for objects of several calibration sets: with scores, counts and random numbers."""
        new = type(self)(*bags[0], *arrays)
        new.bags, new.bag_of = bags, bag_of
        return new

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return one block of the predictions of all, in order; at least one block."""
        bags = [bag for block in blocks for bag in block.bags]
        firsts = np.cumsum([0, *(len(block.bags) for block in blocks)])
        bag_of = np.concatenate([first + block.bag_of for first, block in zip(firsts, blocks, strict=False)])
        scores = np.concatenate([np.column_stack([one.scores[:, 0], _spreads(one.scores)]) for one in blocks])
        counts, taus = (np.concatenate([getattr(one, name) for one in blocks]) for name in ("counts", "taus"))
        return blocks[0].of_bags(bags, bag_of, scores, counts, taus)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, i: int) -> PredictiveDistribution:
        i = range(len(self))[i]
        points, grids = self._points(np.array([i]), self._known(self.bag_of[i], self.counts[i]), slice(None))
        if not points.size:
            return PredictiveDistribution([], float(self.taus[i]), origin=float(self.scores[i, 0]))
        return PredictiveDistribution(points[0], float(self.taus[i]), grid=float(grids[0]))

    def interval(self, epsilon: float) -> Floats:
        """Return the (n, 2) ends of the intervals, each as its prediction says it."""
        level = significance(epsilon)
        return self._at(lambda n: central_ranks(level, n), (-1.0, 1.0))

    def quantile(self, q: float) -> Floats:
        """Return the (n,) quantiles at q in [0, 1], each as its prediction says it."""
        at = share("q", q)
        quantiles: Floats = self._at(lambda n: (quantile_rank(at, n),), (1.0,))[:, 0]
        return quantiles

    def _known(self, bag: int, count: int) -> Floats:
        """Return the residuals of the first examples of a calibration set, so many of them, in ascending order."""
        residuals, times = self.bags[bag]
        return residuals if count == len(residuals) else residuals[times < count]

    def _points(self, rows: Integers, known: Floats, ranks: Any) -> tuple[Floats, Floats]:
        """Return the critical points of some objects at some ranks, counted from 0, and the grid of each object."""
        if not len(known):
            return np.empty((len(rows), 0)), np.zeros(len(rows))
        forecasts, spreads = self.scores[rows, :1], _spreads(self.scores[rows])[:, None]
        # A residual is as exact as the forecast it is a difference from.
        largest = np.abs(np.hstack([forecasts, forecasts + spreads * known[[0, -1]]])).max(axis=1)
        exponents = np.maximum(np.frexp(largest)[1] - DIGITS, -1000)
        grids = np.where(largest > 0, np.ldexp(1.0, exponents), 0.0)
        points: Floats = forecasts + spreads * known[ranks]
        on_grid = np.where(grids > 0, grids, 1.0)[:, None]  # without a grid all points are 0
        return np.rint(points / on_grid) * on_grid, grids

    def _at(self, ranks: Callable[[int], tuple[int, ...]], further: tuple[float, ...]) -> Floats:
        """Return for each object the points at ranks from 1 to n, which depend on n; infinite where there is none.

        Each lies so many steps of the grid `further` up, as the ends of a single prediction do.
        """
        found = np.empty((len(self), len(ranks(0))))
        most = int(self.counts.max(initial=0)) + 1
        keys = self.bag_of * most + self.counts
        for key in np.unique(keys).tolist():
            bag, count = divmod(key, most)
            rows, wanted = np.flatnonzero(keys == key), np.array(ranks(count))
            found[rows] = np.where(wanted < 1, -np.inf, np.inf)
            inside = np.flatnonzero((wanted >= 1) & (wanted <= count))
            points, grids = self._points(rows, self._known(bag, count), wanted[inside] - 1)
            found[np.ix_(rows, inside)] = points + np.outer(grids, np.array(further)[inside])
        return found

    def with_taus(self, taus: Floats) -> Self:
        """Return the same with these (n,) random numbers in [0, 1]."""
        return self.of_bags(self.bags, self.bag_of, self.scores, self.counts, taus)

    def taken(self, order: Integers) -> Self:
        """Return the predictions in another order."""
        return self.of_bags(self.bags, self.bag_of[order], self.scores[order], self.counts[order], self.taus[order])

    def __repr__(self) -> str:
        known = f", {len(self.bags[0][0])} calibration examples" if len(self.bags) == 1 else ""
        return f"ManyDistributions({len(self)} objects{known})"


def _spreads(scores: Floats) -> Floats:
    """Return the (n,) spreads that scores have, 1 where they have none."""
    return scores[:, 1] if scores.shape[1] > 1 else np.ones(len(scores))


class Residuals(Mergeable):
    """Reader of forecasts: keeps the residuals of calibration examples, over their spread, in ascending order."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all calibration examples."""
        self._residuals, self._times = np.zeros(0), np.zeros(0, np.int64)

    def _with(self, values: Floats) -> tuple[Floats, Integers]:
        """Return all residuals with some more, and their times; new arrays, as earlier answers hold the old ones."""
        n = len(self._residuals)
        if len(values) == 1:  # for speed
            place = self._residuals.searchsorted(values[0], "right")
            return np.insert(self._residuals, place, values[0]), np.insert(self._times, place, n)
        residuals = np.concatenate([self._residuals, values])
        order = np.argsort(residuals, kind="stable")
        return residuals[order], np.concatenate([self._times, n + np.arange(len(values))])[order]

    def add(self, scores: Floats, codes: Any) -> None:
        """Take in calibration examples of forecasts (n, 1) or (n, 2), and (n,) labels."""
        if len(codes):
            self._residuals, self._times = self._with((codes - scores[:, 0]) / _spreads(scores))

    def predict(self, scores: Floats) -> ManyDistributions:
        """Return the distributions for n objects, each as if it were alone; leaves no trace."""
        counts = np.full(len(scores), len(self._residuals))
        return ManyDistributions(self._residuals, self._times, scores, counts)

    def replay(self, scores: Floats, codes: Any, calibrates: Bools) -> ManyDistributions:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        counts = len(self._residuals) + np.cumsum(calibrates) - calibrates
        self.add(scores[calibrates], codes[calibrates])
        return ManyDistributions(self._residuals, self._times, scores, counts)

    def nothing(self, n: int) -> ManyDistributions:
        """Return what is said of n objects before there is a regressor: nothing."""
        return ManyDistributions(np.zeros(0), np.zeros(0, np.int64), np.zeros((n, 1)), np.zeros(n, np.int64))

    @property
    def state(self) -> dict[str, Any]:
        """The residuals, in ascending order."""
        return {"residuals": self._residuals}

    def take(self, state: dict[str, Any]) -> None:
        """Take in the examples of a `state`."""
        self._residuals = np.sort(np.concatenate([self._residuals, state["residuals"]]))
        self._times = np.arange(len(self._residuals))

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError for what is no `state`."""
        super().refuse(state)
        held_finite("residuals", state["residuals"], (held_rows("residuals", state["residuals"]),))


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
    if there is a model of it, the spread s. A prediction costs O(m) for m calibration examples, and learning as much.

    Theorems about `p_value` of the true label when examples are exchangeable, as for `InductiveConformal`: at each
    single step it is uniform on [0, 1], with every schedule and any regressor; so an interval at epsilon misses with
    probability at most epsilon. Over a stream, with `PrefixRestart`, and with `NoTraining` and a regressor fitted on
    other data, the p-values are also independent, and test martingales may bet on them. With other schedules they
    depend on each other. How narrow the intervals are is no theorem.

    Parameters
    ----------
    machine : FrozenRegressor or KernelRidge
        A regressor fitted elsewhere, on other examples; or a machine that has learned nothing, to be trained as the
        schedule says.
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenRegressor`.
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

    machine: Any = param(scorer_of_numbers, kept_as="given")
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return what keeps the residuals."""
        return Residuals()

    def derive(self) -> None:
        """Draw nothing yet."""
        super().derive()
        self._smoothing = Smoothing(self.seed)

    def finished(self, block: Any, rows: ObjectRows, step: int, in_turn: bool) -> Any:
        """Return the distributions with a random number for each object: all at one step, or in turn from it on."""
        of = self._smoothing.of_each if in_turn else self._smoothing.of
        return block.with_taus(of(step, digests_of(rows)))
