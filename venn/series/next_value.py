"""A model of a series as a predictor of its next value: for `Online`, its journal, and monitors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venn.distribution import NestedIntervals
from venn.labels import Real
from venn.parameters import instance
from venn.prediction import Label
from venn.predictors.learning import Predictor
from venn.saved import component, param
from venn.series.forecaster import SeriesForecaster


@component
class NextValue(Predictor):
    """A `SeriesForecaster` as a predictor of numbers: a question is about the next value, which answers it.

    So a series can stand in `Online`, be journaled, resumed and watched. An object is the covariates of the next value,
    an empty row where there are none. A value answers the questions of all horizons inside the model: the accounts of
    all of them, and the path, are those of `model`. The questions of a series must be answered in their order, each
    before the next is asked.

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

    model: SeriesForecaster = param(instance, SeriesForecaster, "a SeriesForecaster")

    def _turns_with(self) -> Iterable[Any]:
        return (self.model,)

    @property
    def n(self) -> int:
        """Number of values."""
        return self.model.n

    def predict_one(self, x: Any) -> NestedIntervals:
        """Return the intervals of the next value, by its covariates; leaves no trace."""
        return self.model.intervals_with(self._row(x)).nested()

    def note(self, x: Any, y: Label) -> Any:
        """Return the covariates and the value, or raise what learning them would raise."""
        return self._row(x), self.space.encode(y)

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn the next value; the path that counts is that with its covariates."""
        row, value = noted or self.note(x, y)
        if self.model.n and len(row):
            self.model.forecast(1, xs=[row])
        self.model.learn_one(value, row if len(row) else None)

    def ahead(self) -> dict[str, Any]:
        """Return the path that is said now, one said before, and the latest values: see `SeriesForecaster.fan`."""
        return self.model.fan()

    def _row(self, x: Any) -> Any:
        row = np.asarray(x, np.float64)
        if row.ndim != 1 or not np.isfinite(row).all():
            raise ValueError(f"x must be a row of finite numbers, the covariates of the next value, got {x!r}")
        if self.model.n and len(row) != len(self.model.names):
            raise ValueError(f"x must have {len(self.model.names)} covariates, as before, got {x!r}")
        return row
