"""Intervals of each horizon with a long-run error rate on any series: thresholds move with the errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venn._compiled import series_levels as loops
from venn.parameters import integer
from venn.prediction import LEVELS as USUAL
from venn.prediction import Floats
from venn.predictors.long_run import ConstantSteps, Steps, checked_steps, rising
from venn.saved import (
    Saved,
    component,
    own,
    param,
    restored_array,
    restored_codes,
    restored_finite,
    restored_float,
    restored_int,
    state,
)
from venn.series.experts import LEVELS

REMEMBERED = 500  # latest answers of a horizon, with which a new one is ranked
UNSEEN = np.array([0.0, 2.0])  # of a path before any value has come
LEAST = 0.5  # room of the lowest threshold above the line


class HorizonAccount(NamedTuple):
    """The intervals of one horizon at one level: how many missed, and the bound that holds on any series.

    Examples
    --------
    >>> HorizonAccount(horizon=1, level=0.1, n=1000, errors=104, bound=102.0, width=1.3, empty=0).errors - 0.1 * 1000
    4.0
    """

    horizon: int | None  #: None: of bands, for the whole path
    level: float
    n: int  #: answers that came
    errors: int  #: intervals that missed the value
    bound: float  #: the errors differ from n times the level by at most this
    width: float  #: mean width of the finite ones; NaN before the first; of bands the mean over horizons, too
    empty: int  #: empty intervals, given because too few had missed


def _floats(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    return restored_array(name, value, shape)


def _zeros(*shape: str) -> Any:
    return state(
        _floats, own(lambda m: m.shape_of(shape)), start=own(lambda m: np.zeros(m.shape_of(shape)))
    )  # fmt: skip


@component
class MovingLevels(Saved):
    """Turns distributions into intervals and bands whose long-run error rate is the level, on any series.

    For each horizon and each level there is a threshold, which says what share of the distribution an interval leaves
    out: at first the level, less while there are few answers. After an interval that missed the value it falls, after a
    hit it rises a little, and it is never clipped. From .1 on it is that share itself. Below, the share shrinks by a
    factor with each miss, so that a row of misses makes intervals wider and wider long before they are the line. They
    are the line where the threshold is `line` or less, and empty where it is `empty` or more.

    An interval is never narrower than its threshold says, nor than those of larger levels.

    Parameters
    ----------
    horizon : int >= 1
    levels : sequence of numbers in (0, 1), default (0.01, 0.05, 0.1, 0.2)
        Rising.
    steps : optional
        `ConstantSteps()`, the default, or `DecayingSteps()`.

    Attributes
    ----------
    n : int
        Number of values.
    thresholds : (horizon + 1, l) float64
        Those of bands are the last.
    line, empty : float
        Thresholds up to which an interval is the line, and from which on it is empty.
    """

    horizon: int = param(integer, 1)
    levels: Sequence[float] = param(rising, default=USUAL)
    steps: Steps = param(checked_steps, default=ConstantSteps())

    n: int = state(restored_int, start=0)
    _clock: int = state(restored_int, start=0)
    _spent: float = state(
        restored_float, 0.0, start=0.0
    )  # sum of 1 / size of the last step before each start of the clock
    thresholds: Floats = state(
        restored_finite, own(lambda m: m.shape_of(("rows", "levels"))),
        start=own(lambda m: np.tile(begins(m.levels), (m.horizon + 1, 1))),
    )  # fmt: skip
    _windows: Floats = _zeros("rows", "window")
    _orders: Floats = _zeros("rows", "window")
    _counts: Any = state(
        restored_codes,
        own(lambda m: (m.horizon + 1,)),
        0,
        1 << 62,
        start=own(lambda m: np.zeros(m.horizon + 1, np.int64)),
    )
    _books: Floats = _zeros("rows", "levels", "book")
    _told: Floats = _zeros("horizon", "horizon", "levels", "ends")
    _said: Floats = _zeros("horizon", "horizon", "quantiles")
    _bands: Floats = _zeros("horizon", "levels", "horizon", "ends")
    _paths: Floats = _zeros("horizon", "path")

    def shape_of(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return the sizes with these names."""
        sizes = {
            "rows": self.horizon + 1, "horizon": self.horizon, "levels": len(self.levels), "window": REMEMBERED,
            "book": 5, "ends": 2, "quantiles": len(LEVELS), "path": 2 + len(self.levels),
        }  # fmt: skip
        return tuple(sizes[name] for name in names)

    def derive(self) -> None:
        """Keep the levels as an array; see where intervals are the line, and empty.

        A row of misses, and one of hits, may move a threshold by at most 1 from where it began, where levels are those
        by default: so the errors are within 1 / size of what they should be.
        """
        self._epsilons, begin = np.array(self.levels), begins(self.levels)
        self.line = float(min(begin[-1] - 1.0, begin[0] - LEAST))
        self.empty = float(np.clip(begin[0] + 1.0, begin[-1], 1.0))
        self._begin = begin

    def tell(self, distributions: Floats) -> tuple[Floats, Floats]:
        """Return the (H, l, 2) intervals and (l, H, 2) bands of (H, q) quantiles; leaves no trace."""
        shape = (self.horizon, len(self.levels), 2)
        ends, bands = np.empty(shape), np.empty((shape[1], shape[0], 2))
        loops.tell(
            distributions, LEVELS, self.thresholds, self.line, self.empty, self._windows, self._counts, ends, bands
        )  # fmt: skip
        return ends, bands

    def learn(self, y: float, told: tuple[Floats, Floats, Floats] | None) -> Floats:
        """Answer with the next value, NaN for a missing one, after quantiles, intervals and bands were told.

        Returns
        -------
        (H,) float64
            The p-value of each horizon; NaN for none.
        """
        t = self.n
        if told is not None:
            slot = (t - 1) % self.horizon
            self._said[slot], self._told[slot], self._bands[slot] = told
            self._paths[slot] = 0.0
            self._paths[slot, :2] = UNSEEN
        p_values = np.full(self.horizon, np.nan)
        size = self.steps.at(self._clock + 1)
        loops.account(
            y, t, LEVELS, self._epsilons, size, self._told, self._said, self._bands, self.thresholds, self._windows,
            self._orders, self._counts, self._books, self._paths, p_values,
        )  # fmt: skip
        self.n += 1
        self._clock += 1
        return p_values

    def earlier(self) -> tuple[Floats, Floats, Floats]:
        """Return the latest quantiles, intervals and bands whose values have all come: those `horizon` values ago."""
        slot = (self.n - 1) % self.horizon
        return self._said[slot].copy(), self._told[slot].copy(), self._bands[slot].copy()

    def start_clock(self) -> None:
        """Make steps large again. Constant steps do not change."""
        last = self.steps.at(max(self._clock, 1))
        if last < self.steps.at(1):
            self._spent += 1.0 / last
            self._clock = 0

    def accounts(self) -> tuple[HorizonAccount, ...]:
        """Return the account of each horizon at each level, those of bands last."""
        found, bounds = [], self._bounds().tolist()
        for row in range(self.horizon + 1):
            for k, level in enumerate(self.levels):
                errors, widths, finite, empty, n = self._books[row, k].tolist()
                found.append(HorizonAccount(
                    None if row == self.horizon else row + 1, level, int(n), int(errors), bounds[row][k],
                    widths / finite if finite else math.nan, int(empty),
                ))  # fmt: skip
        return tuple(found)

    def used(self) -> Floats:
        """Return the (H + 1, l) shares of the bounds that the accounts have used up: > 0 by misses, < 0 by hits."""
        return (self._books[:, :, 0] - self._epsilons * self._books[:, :, 4]) / self._bounds()

    def _bounds(self) -> Floats:
        first, last = self.steps.at(1), self.steps.at(max(self._clock, 1))
        one_over_sizes = self._spent + (1.0 / last if self._clock else 0.0)
        below: Any = self._begin - self.line
        above: Any = self.empty - self._begin
        if self._spent or last < first:  # steps of other sizes: a threshold may have gone from one end to the other
            below = above = self.empty - self.line
        # Answers on their way move a threshold beyond the line. Beyond `empty`, a level waits for larger ones, too.
        rows = np.arange(1, self.horizon + 2)
        beyond = first * (1.0 + np.minimum(rows, self.horizon))[:, None]
        waits = len(self.levels) - np.arange(len(self.levels))
        return np.maximum(below + beyond, above + waits * beyond) * one_over_sizes


def begins(levels: Sequence[float]) -> Floats:
    """Return the thresholds at which intervals leave out these shares of a distribution."""
    given = np.array(levels)
    return np.where(given >= loops.KNEE, given, loops.KNEE * (1.0 + np.log(given / loops.KNEE)))
