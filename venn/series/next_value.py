"""A model of a series as a predictor of its next value: for `Online`, its journal, and monitors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venn.distribution import NestedIntervals
from venn.labels import Real
from venn.monitors.watching import Watching
from venn.parameters import instance
from venn.prediction import Label
from venn.predictors.learning import Predictor
from venn.saved import component, param
from venn.series.forecaster import SeriesForecaster
from venn.series.path import Path


@component
class NextValue(Predictor):
    """A `SeriesForecaster` as a predictor of numbers: a question is about the next value, which answers it.

    So a series can stand in `Online`, be journaled, resumed, served and watched. An object is the covariates of the
    next value, an empty row where there are none; or those of the next steps, one after another, for the path. A value
    answers the questions of all horizons inside the model: the accounts of all of them, and the path, are those of
    `model`. Questions and values come in turn: while one waits for its value, `Online` refuses another. A gap is a
    question that is given up, and `answer(id, None)` says so: time goes on.

    Parameters
    ----------
    model : SeriesForecaster
        It learns and is not copied.

    Raises
    ------
    TypeError
        `model` is something else.

    Examples
    --------
    >>> import venn
    >>> online = venn.Online(venn.series.NextValue(venn.SeriesForecaster(season=1, horizon=3)))
    >>> for value in (3.0, 4.0, 3.5, 3.8):
    ...     prediction = online.ask([])
    ...     alarms = online.answer(online.asked, value)
    >>> prediction.guaranteed, len(online.panel["NextValue"].model.forecast())
    ('long-run error rate', 3)
    """

    classes = ()
    space = Real()
    in_turn = True  # one question waits at a time; a question given up is a gap

    model: SeriesForecaster = param(instance, SeriesForecaster, "a SeriesForecaster")

    def _turns_with(self) -> Iterable[Any]:
        return (self.model,)

    @property
    def n(self) -> int:
        """Number of values."""
        return self.model.n

    @property
    def watches(self) -> dict[str, Watching]:
        """The model's own watchers, by their subject."""
        return {"values": self.model.watch, "accounts": self.model.account_watch}

    def predict_one(self, x: Any) -> NestedIntervals:
        """Return the intervals of the next value, by its covariates; leaves no trace."""
        return self.model.intervals_with(self._rows(x)).nested()

    def path(self, x: Any = ()) -> Path:
        """Return the path, by covariates of the next steps; leaves no trace."""
        return self.model.path_with(self._rows(x) if len(x) else np.empty((0, 0)))

    def prepare(self, x: Any, y: Label) -> Any:
        """Return the covariates and the value, or raise what learning them would raise."""
        return self._rows(x), self.space.encode(y)

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn the next value. The accounts count the path that was made with its covariates."""
        rows, value = prepared or self.prepare(x, y)
        self._learn(rows, value)

    def skip(self, x: Any) -> None:
        """Learn that the next value is missing."""
        self._learn(self._rows(x), None)

    def _learn(self, rows: Any, value: float | None) -> None:
        if self.model.n and rows.size:
            self.model.forecast(min(len(rows), self.model.horizon), xs=rows)
        self.model.learn_one(value, rows[0] if rows.size else None)

    def ahead(self) -> dict[str, Any]:
        """Return the present path, an earlier one, and the latest values: see `SeriesForecaster.fan`."""
        return self.model.fan()

    def _rows(self, x: Any) -> Any:
        """Return the (j, k) covariates of the next steps that an object holds."""
        row = np.asarray(x, np.float64)
        if row.ndim != 1 or not np.isfinite(row).all():
            raise ValueError(f"x must be a row of finite numbers, the covariates of the next value, got {x!r}")
        width = len(self.model.names) if self.model.n else len(row)
        if (len(row) % width or not len(row)) if width else len(row):
            raise ValueError(f"x must have {width} covariates, as before, or so many for each step, got {x!r}")
        return row.reshape(-1, width) if width else np.empty((0, 0))
