"""Scores of paths as their values come: by horizon, beside seasonal naive."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from venn._compiled import series_distributions as loops
from venn.prediction import Floats
from venn.series.experts import LEVELS, SHARES, WINDOW
from venn.series.path import Path

LEVEL = 0.1


class HorizonScores(NamedTuple):
    """Mean scores of the paths at one horizon: a row of a table."""

    n: int  #: values that came
    inside: float  #: share of the intervals at .1 that held their value
    width: float  #: mean width of these intervals, of the finite ones
    crps: float  #: mean continuous ranked probability score
    over_naive: float  #: CRPS over that of seasonal naive with the distribution of its past errors


class PathScores:
    """Scores each path at every horizon, as the values come.

    Parameters
    ----------
    horizon : int
    season : int
        Of the naive forecast: the value of the same phase a season before, with the last 300 errors of that horizon.

    Examples
    --------
    >>> import venn
    >>> model, scores = venn.SeriesForecaster(season=4, horizon=2), PathScores(2, 4)
    >>> for t in range(60):
    ...     y = [3.0, 5.0, 4.0, 1.0][t % 4] + 0.1 * (t % 3)
    ...     scores.came(y)
    ...     model.learn_one(y)
    ...     scores.told(model.forecast())
    >>> [one.n for one in scores.rows], scores.rows[0].crps < 0.2
    ([59, 58], True)
    """

    def __init__(self, horizon: int, season: int) -> None:
        self.horizon, self.season = horizon, season
        self._paths: deque[tuple[Floats, Floats]] = deque(maxlen=horizon)
        self._values: deque[float] = deque(maxlen=horizon + 2 * season)
        self._sums = np.zeros((horizon, 7))  # values, inside, widths, finite, CRPS; of both CRPS where naive has one
        self._windows, self._orders = np.zeros((horizon, WINDOW)), np.zeros((horizon, WINDOW))
        self._counts = [0] * horizon
        self._quantiles = np.zeros((horizon, len(LEVELS)))

    def told(self, path: Path) -> None:
        """Record the path forecast after the latest value."""
        self._paths.append((path.quantiles, path.intervals(LEVEL)))

    def came(self, y: float | None) -> None:
        """Score all paths by the next value; None or NaN: it is missing."""
        value = math.nan if y is None else float(y)
        if not math.isnan(value):
            for h in range(1, min(self.horizon, len(self._paths)) + 1):
                self._score(h, value, *(one[h - 1] for one in self._paths[-h]))
        self._values.append(value)

    def _score(self, h: int, y: float, quantiles: Floats, ends: Floats) -> None:
        sums, k = self._sums[h - 1], h - 1
        lower, upper = ends.tolist()
        sums[0] += 1
        sums[1] += lower <= y <= upper
        if math.isfinite(upper - lower):
            sums[2] += upper - lower
            sums[3] += 1
        score = float(loops.pinball(quantiles, LEVELS, SHARES, y))
        back = self.season * -(-h // self.season)
        before = self._values[-back] if len(self._values) >= back else math.nan
        if not math.isnan(score):
            sums[4] += score
        if not math.isnan(before):
            n = self._counts[k]
            if n and not math.isnan(score):
                sums[5] += score
                sums[6] += loops.pinball(self._quantiles[k], LEVELS, SHARES, y - before)
            loops.insert(self._windows[k], self._orders[k], n, y - before)
            loops.read_quantiles(self._windows[k], min(n + 1, WINDOW), LEVELS, self._quantiles[k])
            self._counts[k] = n + 1

    @property
    def rows(self) -> tuple[HorizonScores, ...]:
        """The means so far, by horizon; NaN where nothing has come."""

        def over(one: float, other: float) -> float:
            return one / other if other else math.nan

        return tuple(
            HorizonScores(int(n), over(inside, n), over(width, finite), over(crps, n), over(mine, naive))
            for n, inside, width, finite, crps, mine, naive in self._sums.tolist()
        )

    def plain(self) -> list[dict[str, Any]]:
        """Return the rows as JSON: None for what is not known."""
        found = [{"horizon": h, **row._asdict()} for h, row in enumerate(self.rows, 1)]
        return [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in found]
