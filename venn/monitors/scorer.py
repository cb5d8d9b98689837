"""Scores the predictions of one predictor, for a monitor and for a record."""

from __future__ import annotations

from venn._compiled.outcomes import FINE
from venn.labels import LabelSpace
from venn.monitors.kind import Kind
from venn.monitors.kinds import kind_of
from venn.prediction import Floats, Prediction

MIXED = "mixed"


class Scorer:
    """Scores the predictions of one predictor, all of one kind and with the same classes.

    Scoring leaves no trace; `keep` says that a prediction counts.

    Parameters
    ----------
    name : str
        Of the predictor, for messages.
    space : LabelSpace
        Of the labels.
    """

    def __init__(self, name: str, space: LabelSpace) -> None:
        self.name = name
        self.space = space
        self.kind: Kind | None = None  # known from the first prediction on
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
            A prediction with other classes, or with numbers that are none.
        """
        kind = kind_of(prediction, self.name)
        known = self.kind or kind
        if kind is not known and kind != known:  # it may be a copy
            raise TypeError(f"{self.name} must keep to one kind of prediction, {known.name}, got {prediction!r}")
        if prediction.classes != self.space.labels:
            raise ValueError(f"{self.name} must predict the classes {self.space.labels!r}, got {prediction.classes!r}")
        raw = getattr(prediction, kind.attribute)
        predicted = prediction.index
        if raw.shape != kind.shape(self.space) or kind.score(raw, predicted, truth, numbers, row) != FINE:
            raise ValueError(f"{self.name} must predict {kind.wanted}, got {raw!r}")
        return predicted

    def keep(self, prediction: Prediction) -> None:
        """Remember the kind and the guarantee of a prediction that counts."""
        self.kind = kind_of(prediction, self.name)
        if prediction.guaranteed != self.guaranteed:
            self.guaranteed = prediction.guaranteed if self.guaranteed is None else MIXED
