"""For river: our forecaster of series in its `time_series` tools."""

from __future__ import annotations

from typing import Any

from venn.series.forecaster import SeriesForecaster
from venn.series.path import Path

try:
    from river.time_series import base as base
except ImportError:
    from venn.adapters import without_river as base


class RiverForecaster(base.Forecaster):  # type: ignore[misc]
    """A `SeriesForecaster` as a forecaster of river, for its evaluations and pipelines.

    `forecast` returns medians, as river's tools expect numbers; `path` returns all that is said.

    Parameters
    ----------
    season, horizon
        As of `SeriesForecaster`.

    Attributes
    ----------
    model : SeriesForecaster

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> model = RiverForecaster(season=4, horizon=2)
    >>> for t in range(60):
    ...     model.learn_one([3.0, 5.0, 4.0, 1.0][t % 4] + 0.1 * (t % 3))
    >>> [round(one) for one in model.forecast(2)], model.path(2).guaranteed
    ([3, 5], 'long-run error rate')
    """

    def __init__(self, season: Any = None, horizon: int = 24) -> None:
        self.season, self.horizon = season, horizon
        self.model = SeriesForecaster(season, horizon)
        self._latest = 0.0

    def learn_one(self, y: Any, x: Any = None) -> None:
        """Learn the next value, and what is known beside it."""
        self.model.learn_one(y, x)
        if y is not None and y == y:
            self._latest = float(y)

    def forecast(self, horizon: int, xs: Any = None) -> list[float]:
        """Return the medians of the next values; before anything is known the latest one, or 0."""
        return [self._latest if one != one else one for one in self.model.forecast(horizon, xs).medians.tolist()]

    def path(self, horizon: int | None = None, xs: Any = None) -> Path:
        """Return all that is said of the next values: intervals, bands, distributions."""
        return self.model.forecast(horizon, xs)
