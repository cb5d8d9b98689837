"""The steps of one predictor in a record: growing arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.outcomes import REALISED_CLASS, WIDTH
from venn.labels import LabelSpace
from venn.machines.machine import grown
from venn.monitors.kind import Kind
from venn.monitors.kinds import FORECAST, KINDS, Scorer, kind_of
from venn.monitors.losses import CLIP
from venn.monitors.outcomes import Outcomes, outcomes
from venn.prediction import Prediction
from venn.saved import checked_keys, held_array, held_text

START = 256
ARRAYS = ("predicted", "numbers", "rows")


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

    def saved(self, n: int) -> dict[str, Any]:
        """Return the first n steps as a file holds them."""
        kept = dict(zip(ARRAYS, (each[:n] for each in (self._predicted, self._numbers, self._rows)), strict=True))
        return {"kind": self.kind.name if n else None, "guaranteed": self.scorer.guaranteed, **kept}

    def restore(self, held: dict[str, Any], n: int) -> None:
        """Take over what `saved` gave, or say what is wrong with it."""
        checked_keys("predictors", held, ("kind", "guaranteed", *ARRAYS))
        kind, space = held["kind"], self.scorer.space
        if not n:
            return
        if kind not in KINDS:
            raise ValueError(f"kind must be a kind of prediction, got {kind!r}")
        self.scorer.kind, self.scorer.guaranteed = KINDS[kind], held_text("guaranteed", held["guaranteed"])
        room, breadth = max(START, n), KINDS[kind].breadth(space)
        self._predicted = grown(held_labels("predicted", held["predicted"], n, space), room)
        self._numbers = grown(held_array("numbers", held["numbers"], (n, WIDTH)), room, WIDTH)
        self._rows = grown(held_array("rows", held["rows"], (n, breadth)), room, breadth)
        if not space.holds(self._numbers[:n, REALISED_CLASS]):
            raise ValueError(f"numbers must hold codes of {space.told}, got others")


def held_labels(name: str, codes: Any, n: int, space: LabelSpace) -> NDArray[Any]:
    """Return (n,) codes of labels, or say what they must be."""
    checked: NDArray[Any] = held_array(name, codes, (n,), space.dtype)
    if not space.holds(checked):
        raise ValueError(f"{name} must hold codes of {space.told}, got others")
    return checked
