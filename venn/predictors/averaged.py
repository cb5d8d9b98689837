"""The mean of several predictors' forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.machines.views import taught
from venn.prediction import Floats, Forecast, Label
from venn.predictors.blocks import ManyForecasts
from venn.predictors.learning import Combined, checked_predictor
from venn.saved import saved


@saved
class Averaged(Combined[Forecast]):
    """The mean of several predictors' probabilities: a point forecast that is often better than each of them.

    Errors of different kinds cancel: V-mix, `TransductiveVennAbers` on a `Mixture`, and beta calibration on deleted
    scores lose less together than either. The mean carries no guarantee; the intervals of its parts keep theirs.

    In a `Panel` that also holds its parts they are asked and taught once.

    Parameters
    ----------
    predictors : sequence of at least one Predictor
        Their predictions have `proba`. Those that read a machine must read the same one, or views of one bank.

    Attributes
    ----------
    machine : Machine or None
        What they read.
    n : int
        Number of examples learned.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; by `predict_one` for a prediction without probabilities.

    Examples
    --------
    >>> import venn
    >>> from venn.machines import Bank, Mixture, MultiscaleRBF
    >>> bank = Bank(MultiscaleRBF(), ["no", "yes"])
    >>> vmix = venn.TransductiveVennAbers(Mixture(bank))
    >>> beta = venn.Scaler(bank.members[1], venn.maps.BetaCalibration(), venn.predictors.DeletedScores())
    >>> panel = venn.Panel(vmix=vmix, both=Averaged([vmix, beta]))
    >>> for i in range(40):
    ...     panel.learn_one([i / 40], "yes" if i > 20 else "no")
    >>> panel.predict_one([0.2])["both"]
    Forecast('no': 0.988)
    """

    def __init__(self, predictors: Sequence[Any]) -> None:
        if isinstance(predictors, str) or not isinstance(predictors, Sequence) or not predictors:
            raise TypeError(f"predictors must be a sequence of at least one predictor, got {predictors!r}")
        self.predictors = tuple(checked_predictor(one, "predictors") for one in predictors)
        if len({id(one) for one in self.predictors}) < len(self.predictors):
            raise ValueError(f"predictors must be different objects, got one twice in {predictors!r}")
        self.classes: tuple[Label, ...] = tuple(self.predictors[0].classes)
        for one in self.predictors:
            if tuple(one.classes) != self.classes:
                raise ValueError(f"predictors must have the same classes, got {self.classes!r} and {one.classes!r}")
        machines = {id(machine): machine for one in self.predictors if (machine := taught(one.machine)) is not None}
        if len(machines) > 1:
            raise ValueError(f"predictors must read one machine, or views of one bank, got {[*machines.values()]!r}")
        self.machine = next(iter(machines.values()), None)

    def __repr__(self) -> str:
        return f"Averaged({list(self.predictors)!r})"

    def combined(self, predictions: Sequence[Any]) -> Forecast:
        """Return the mean of predictions, one by each of the predictors.

        Raises
        ------
        ValueError, TypeError
            There are not as many predictions as predictors, or one has no probabilities.
        """
        if len(predictions) != len(self.predictors):
            raise ValueError(f"predictions must be one by each of {len(self.predictors)}, got {predictions!r}")
        for one in predictions:
            if not hasattr(one, "proba"):
                raise TypeError(f"predictors must give probabilities, got {one!r}")
        return Forecast(np.mean([one.proba for one in predictions], axis=0), self.classes)

    def combined_many(self, blocks: Sequence[Any]) -> ManyForecasts:
        """Return the means of predictions for many objects, which each of the predictors has made.

        Raises
        ------
        ValueError, TypeError
            There are not as many blocks as predictors, or one has no probabilities.
        """
        if len(blocks) != len(self.predictors):
            raise ValueError(f"blocks must be one by each of {len(self.predictors)}, got {blocks!r}")
        each = [probabilities_of(block, len(self.classes)) for block in blocks]
        return ManyForecasts(np.mean(each, axis=0), self.classes)

    def of(self, parts: Sequence[Any]) -> Averaged:
        """Return the mean of other predictors."""
        return Averaged(parts)


def probabilities_of(block: Any, c: int) -> Floats:
    """Return the (n, c) probabilities of a block, or of a list of predictions; or say what has none."""
    if hasattr(block, "proba"):
        return block.proba
    for one in block if isinstance(block, list) else [block]:
        if not hasattr(one, "proba"):
            raise TypeError(f"predictors must give probabilities, got {one!r}")
    return np.array([one.proba for one in block]).reshape(-1, c)
