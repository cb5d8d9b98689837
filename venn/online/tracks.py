"""The steps of one predictor in a record: growing arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.outcomes import LOWER, PROBABILITY, UPPER, WIDTH
from venn.machines.machine import grown
from venn.monitors.outcomes import KINDS, SETS, Outcomes, Scorer, outcomes
from venn.prediction import Floats, Integers, Label, Prediction

# What the file holds of one step, beside its row of c probabilities; the columns after the first in the order
# in which a scorer writes them.
ROW = np.dtype(
    [
        ("predicted", "<i4"),
        ("lower", "<f8"),
        ("upper", "<f8"),
        ("confidence", "<f8"),
        ("probability", "<f8"),
        ("brier", "<f8"),
        ("own", "<f8"),
        ("realised", "<f8"),
        ("realised_class", "<i4"),
        ("unanimous", "?"),
    ]
)
NUMBER = np.dtype("<f8")
TOLERANCE = 1e-6
START = 256
LEVEL = 0.05  # of the sets that `means` looks at


class Track:
    """All steps of one predictor, scored; capacities double."""

    def __init__(self, name: str, classes: tuple[Label, ...]) -> None:
        self.scorer = Scorer(name, classes)
        self._predicted: Integers = np.empty(START, np.int64)
        self._numbers = np.empty((START, WIDTH))
        self._rows = np.empty((START, len(classes)))
        # Of the first steps, sums of: hit, lower, upper, error of a set at LEVEL, size of that set.
        self._summed, self._sums = 0, np.zeros(5)

    @property
    def kind(self) -> str | None:
        """Kind of prediction; known from the first one on."""
        return self.scorer.kind

    @property
    def sets(self) -> bool:
        """Whether the predictor gives prediction sets."""
        return self.kind == SETS

    def put(self, step: int, prediction: Prediction, truth: int) -> None:
        """Score a prediction in place `step`; it counts when the record says that there is such a step."""
        if step == len(self._predicted):
            self._predicted = grown(self._predicted, 2 * step)
            self._numbers = grown(self._numbers, 2 * step, WIDTH)
            self._rows = grown(self._rows, 2 * step, len(self.scorer.classes))
        self._predicted[step] = self.scorer.score(prediction, truth, self._numbers[step], self._rows[step])

    def outcomes(self, truth: NDArray[np.int32]) -> Outcomes:
        """Return the first steps, whose true labels are given; views."""
        n = len(truth)
        return outcomes(truth, self._predicted[:n], self._numbers[:n], self._rows[:n])

    def means(self, truth: NDArray[np.int32]) -> list[float]:
        """Return means over the first n >= 1 steps: hit, lower, upper, error and size of a set at 0.05.

        Adds up what came since the last call only, for a progress bar asks many times.
        """
        n = len(truth)
        new = slice(self._summed, n)
        hits = self._predicted[new] == truth[new]
        numbers, rows = self._numbers[new], self._rows[new]
        errors, sizes = numbers[:, PROBABILITY] <= LEVEL, (rows > LEVEL).sum()
        self._sums += (hits.sum(), numbers[:, LOWER].sum(), numbers[:, UPPER].sum(), errors.sum(), sizes)
        self._summed = n
        means: list[float] = (self._sums / n).tolist()
        return means

    def saved(self, n: int) -> tuple[NDArray[Any], Floats]:
        """Return the first n steps as the file holds them: (n,) rows and (n * c,) probabilities."""
        rows = np.empty(n, ROW)
        rows["predicted"] = self._predicted[:n]
        for column, name in enumerate(ROW.names[1:] if ROW.names else ()):
            rows[name] = self._numbers[:n, column]
        return rows, self._rows[:n].ravel()

    def restore(self, rows: NDArray[Any], probabilities: Floats, kind: str | None) -> None:
        """Take over what `saved` gave, or say what is wrong with it."""
        n, c = len(rows), len(self.scorer.classes)
        bounded = [rows[name] for name in ("lower", "upper", "confidence", "probability", "own", "realised")]
        values = np.concatenate([*bounded, probabilities])
        inside = (values >= -TOLERANCE) & (values <= 1 + TOLERANCE)
        brier = (rows["brier"] >= 0) & (rows["brier"] <= 2 + 8 * TOLERANCE)
        if not inside.all() or not brier.all() or not (rows["lower"] <= rows["upper"]).all():
            raise ValueError(f"the rows of {self.scorer.name} hold numbers that are no probabilities")
        if not (kind in KINDS or (kind is None and not n)):
            raise ValueError(f"its header says {kind!r} where a kind of prediction belongs")
        self.scorer.kind = kind
        room = max(START, n)
        self._predicted = grown(rows["predicted"].astype(np.int64), room)
        self._numbers = np.zeros((room, WIDTH))
        for column, name in enumerate(ROW.names[1:] if ROW.names else ()):
            self._numbers[:n, column] = rows[name]
        self._rows = grown(probabilities.reshape(n, c), room, c)
