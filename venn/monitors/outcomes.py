"""A prediction and its outcome in numbers: the same for a monitor and for a record."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from venn.prediction import Floats

LEVELS = (0.01, 0.05, 0.1, 0.2)  # of significance, at which prediction sets are scored


class Outcomes(NamedTuple):
    """One step in Python numbers, or n steps: then each field is an array of n, and the row is (c, n).

    For a prediction set `probability` is the p-value of the true label, `own` the p-value of the predicted label,
    `confidence` one minus the second largest, and the other numbers are 0.
    """

    truth: Any  #: code of the true label
    predicted: Any  #: code of the predicted label
    lower: Any  #: smallest probability of the predicted label over the hypotheses
    upper: Any  #: largest one
    confidence: Any  #: probability of the predicted label by the point forecast
    probability: Any  #: probability of the true label by the point forecast
    brier: Any  #: sum over the classes of (1{y = k} - p_k)^2, by the point forecast
    own: Any  #: probability of the predicted label under the true hypothesis
    realised: Any  #: largest probability in the row of the true label; `own` for class intervals
    realised_class: Any  #: its class
    unanimous: Any  #: all hypotheses have the same most probable class
    row: Any  #: (c,) probabilities under the true hypothesis: the row of the true label, one of each pair, p-values

    def part(self, which: slice) -> Self:
        """Return some of n steps; views."""
        return type(self)(*(column[..., which] for column in self))


def outcome(truth: int, predicted: int, numbers: Floats, row: Floats) -> Outcomes:
    """Return one step from what a scorer wrote."""
    # Written out because a monitor does this at every step.
    lower, upper, confidence, probability, brier, own, realised, realised_class, unanimous = numbers.tolist()
    return Outcomes(
        truth, predicted, lower, upper, confidence, probability, brier, own, realised, int(realised_class),
        unanimous == 1.0, row.tolist(),
    )  # fmt: skip


def outcomes(truth: NDArray[Any], predicted: NDArray[Any], numbers: Floats, rows: Floats) -> Outcomes:
    """Return n steps from what a scorer wrote: numbers (n, 9), rows (n, c)."""
    *scores, realised_class, unanimous = numbers.T
    return Outcomes._make([truth, predicted, *scores, realised_class.astype(np.int64), unanimous == 1.0, rows.T])
