"""A prediction and its outcome in numbers: the same for a monitor and for a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.outcomes import FINE, score_pairs, score_point, score_rows, score_set
from venn.prediction import Floats, Label, Prediction


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


class Kind(NamedTuple):
    """A kind of prediction."""

    attribute: str  #: of the prediction: its raw numbers
    shape: Callable[[int], tuple[int, ...]]
    score: Any  #: compiled
    wanted: str


KINDS = {
    "Forecast": Kind("proba", lambda c: (c,), score_point, "probabilities of sum 1"),
    "Multiprobability": Kind("probabilities", lambda c: (c, c), score_rows, "probabilities of sum 1"),
    "ClassIntervals": Kind("pairs", lambda c: (c, 2), score_pairs, "probabilities"),
    "PredictionSet": Kind("p_values", lambda c: (c,), score_set, "p-values"),
}
SETS = "PredictionSet"
MIXED = "mixed"
LEVELS = (0.01, 0.05, 0.1, 0.2)  # of significance, at which prediction sets are scored


class Scorer:
    """Scores the predictions of one predictor, all of one kind and with the same classes.

    Scoring leaves no trace; `keep` records that a prediction counts.

    Parameters
    ----------
    name : str
        Of the predictor, for messages.
    classes : sequence of c labels
    """

    def __init__(self, name: str, classes: Sequence[Label]) -> None:
        self.name = name
        self.classes = tuple(classes)
        self._c = len(self.classes)
        self.kind: str | None = None  # known from the first prediction on
        self.guaranteed: str | None = None

    def score(self, prediction: Prediction, truth: int, numbers: Floats, row: Floats) -> int:
        """Write the scores of a prediction for the true code into `numbers` (9,) and `row` (c,).

        Returns
        -------
        int
            Code of the predicted class.

        Raises
        ------
        TypeError
            Not a prediction, or one of another kind than before.
        ValueError
            A prediction with other classes, or with invalid numbers.
        """
        kind = type(prediction).__name__
        if kind != self.kind:
            if kind not in KINDS:
                raise TypeError(f"{self.name} must predict one of {', '.join(KINDS)}, got {prediction!r}")
            if self.kind is not None:
                raise TypeError(f"{self.name} must keep to one kind of prediction, {self.kind}, got {prediction!r}")
        if prediction.classes != self.classes:
            raise ValueError(f"{self.name} must predict the classes {self.classes!r}, got {prediction.classes!r}")
        attribute, shape, score, wanted = KINDS[kind]
        raw = getattr(prediction, attribute)
        predicted = prediction.index
        if raw.shape != shape(self._c) or score(raw, predicted, truth, numbers, row) != FINE:
            raise ValueError(f"{self.name} must predict {wanted}, got {raw!r}")
        return predicted

    def keep(self, prediction: Prediction) -> None:
        """Remember the kind and the guarantee of a prediction that counts."""
        self.kind = type(prediction).__name__
        if prediction.guaranteed != self.guaranteed:
            self.guaranteed = prediction.guaranteed if self.guaranteed is None else MIXED


def outcome(truth: int, predicted: int, numbers: Floats, row: Floats) -> Outcomes:
    """Return one step from a scorer's output."""
    lower, upper, confidence, probability, brier, own, realised, realised_class, unanimous = numbers.tolist()
    return Outcomes(
        truth, predicted, lower, upper, confidence, probability, brier, own, realised, int(realised_class),
        unanimous == 1.0, row.tolist(),
    )  # fmt: skip


def outcomes(truth: NDArray[Any], predicted: NDArray[Any], numbers: Floats, rows: Floats) -> Outcomes:
    """Return n steps from a scorer's output: numbers (n, 9), rows (n, c)."""
    lower, upper, confidence, probability, brier, own, realised, realised_class, unanimous = numbers.T
    return Outcomes(
        truth, predicted, lower, upper, confidence, probability, brier, own, realised, realised_class.astype(np.int64),
        unanimous == 1.0, rows.T,
    )  # fmt: skip
