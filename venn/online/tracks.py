"""The steps of one predictor in a record: growing arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured, unstructured_to_structured
from numpy.typing import NDArray

from venn._compiled.outcomes import WIDTH
from venn.labels import LabelSpace
from venn.machines.machine import grown
from venn.monitors.calibration import CLIP
from venn.monitors.curves import Outcomes, outcomes
from venn.monitors.kind import Kind
from venn.monitors.kinds import FORECAST, KINDS, Scorer, kind_of
from venn.online.record_file import SavedTrack
from venn.prediction import Prediction

START = 256


class Track:
    """All steps of one predictor, scored; capacities double."""

    def __init__(self, name: str, space: LabelSpace) -> None:
        self.scorer = Scorer(name, space)
        self._predicted = np.empty(START, space.dtype)
        self._numbers = np.empty((START, WIDTH))
        self._rows = np.empty((START, 0))
        self._summed, self._sums = 0, dict[str, float]()  # number of steps summed, and the sums from which means follow

    @property
    def kind(self) -> Kind:
        """Kind of prediction; before the first one, the kind of forecasts."""
        return self.scorer.kind or FORECAST

    def put(self, step: int, prediction: Prediction, truth: Any) -> None:
        """Score a prediction in place `step`; it counts once the record includes that step."""
        if step == 0:
            self._rows = np.empty((START, kind_of(prediction, self.scorer.name).breadth(self.scorer.space)))
        if step == len(self._predicted):
            self._predicted, self._numbers, self._rows = (
                grown(held, 2 * step, *held.shape[1:]) for held in (self._predicted, self._numbers, self._rows)
            )
        self._predicted[step] = self.scorer.score(prediction, truth, self._numbers[step], self._rows[step])

    def outcomes(self, truth: NDArray[Any], start: int = 0) -> Outcomes:
        """Return views of the steps from `start` on, as far as true labels are given."""
        which = slice(start, len(truth))
        return outcomes(truth[which], self._predicted[which], self._numbers[which], self._rows[which])

    def running(self, truth: NDArray[Any]) -> str:
        """Return the results of the first n >= 1 steps as text.

        Only steps since the last call are added up, because a progress bar calls this often.
        """
        columns = self.kind.curves(self.outcomes(truth, self._summed), CLIP).columns
        for name in self.kind.summed:
            self._sums[name] = self._sums.get(name, 0.0) + float(columns[name].sum())
        self._summed = len(truth)
        return self.kind.running(self.kind.finished({name: sum_ / len(truth) for name, sum_ in self._sums.items()}))

    def saved(self, n: int) -> SavedTrack:
        """Return the first n steps as the file holds them."""
        table = np.column_stack([self._predicted[:n], self._numbers[:n]])
        rows = unstructured_to_structured(table, self.kind.row)
        return SavedTrack(self.kind.name if n else None, self.scorer.guaranteed, rows, self._rows[:n].ravel())

    def restore(self, held: SavedTrack) -> None:
        """Take over what `saved` gave, or say what is wrong with it."""
        rows, n = held.rows, len(held.rows)
        if not (held.kind in KINDS or (held.kind is None and not n)):
            raise ValueError(f"its header says {held.kind!r} where a kind of prediction belongs")
        self.scorer.kind = None if held.kind is None else KINDS[held.kind]
        self.scorer.guaranteed = held.guaranteed
        room, breadth = max(START, n), self.kind.breadth(self.scorer.space)
        table = structured_to_unstructured(rows, np.float64)
        self._predicted = grown(table[:, 0].astype(self._predicted.dtype), room)
        self._numbers = grown(table[:, 1:], room, WIDTH)
        self._rows = grown(held.tails.reshape(n, breadth), room, breadth)
