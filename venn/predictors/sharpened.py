"""A forecast made bolder as far as its own past says that it was too timid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.labels import HasLabels, label_space
from venn.parameters import real_array
from venn.prediction import Floats, Forecast, Label
from venn.predictors.averaged import probabilities_of
from venn.predictors.blocks import ManyForecasts
from venn.predictors.learning import Combined, Predictor, checked_predictor
from venn.saved import held_array, saved

EXPONENTS = (1.0, 1.5, 2.0)  # more of them, or others between these, change less than one percent of log loss
TINY = 1e-300  # a label of probability 0 tells nothing about the exponents: all are equally wrong


def powers(proba: Floats) -> Floats:
    """Return (3, n, c): the (n, c) probabilities to the power of each exponent, normalised."""
    raised = np.array([proba, proba * np.sqrt(proba), proba * proba])  # the same bits everywhere, unlike `power`
    return raised / raised.sum(axis=2, keepdims=True)


@saved
class Sharpened(HasLabels, Combined[Forecast]):
    """Forecasts of a predictor, made as bold as was right so far: for means of forecasts, which are too timid.

    Where two predictors that are calibrated differ, their mean is too close to the middle. Raising it to a power and
    normalising makes it bolder. Which power is right is not known beforehand, so the forecast is a mixture of those of
    the powers 1, 3/2 and 2; the weight of each is exp(-L), L its total log loss so far.

    On any stream, whatever happens, the total log loss is at most ln 3 = 1.1 more than that of the best of the three,
    and so than that of the predictor alone. Nothing else is guaranteed of the forecast.

    Parameters
    ----------
    predictor : Predictor
        Its predictions have `proba`. In a `Panel` that also holds it, or parts of it, these are asked and taught once.

    Attributes
    ----------
    weights : (3,) float64
        Of the powers 1, 3/2 and 2 now.

    Raises
    ------
    TypeError
        A parameter is not as described; by `predict_one` for a prediction without probabilities.

    References
    ----------
    Ranjan & Gneiting (2010), "Combining probability forecasts"; for the bound, DeSantis, Markowsky & Wegman (1988),
    "Learning probabilistic prediction functions".

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = Sharpened(venn.TransductiveVennAbers(machine))
    >>> for i in range(40):
    ...     model.learn_one([i % 2 + i / 40], "yes" if i % 2 else "no")
    >>> model.predict_one([0.2]), model.predictor.predict_one([0.2]).proba.round(3)
    (Forecast('no': 0.998), array([0.976, 0.024]))
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor: Any = checked_predictor(predictor)
        self.space = label_space(tuple(predictor.classes))
        self._losses = np.zeros(len(EXPONENTS))  # total log loss of each power
        self._learner = Losses(self)

    @property
    def state(self) -> dict[str, Any]:
        """The total log loss of each power."""
        return {"losses": self._losses}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the losses."""
        super().restore(state)
        losses = held_array("losses", state["losses"], (len(EXPONENTS),))
        if not (np.isfinite(losses) & (losses >= 0)).all():
            raise ValueError(f"losses must be finite and >= 0, got {losses!r}")
        self._losses = losses.copy()

    @property
    def weights(self) -> Floats:
        """(3,) weights of the powers, of sum 1."""
        likely = np.exp(self._losses.min() - self._losses)
        return likely / likely.sum()

    @property
    def machine(self) -> Any:
        """The machine that the predictor reads."""
        return self.predictor.machine

    @property
    def predictors(self) -> tuple[Any, ...]:  # type: ignore[override]
        """What learns: the predictor, and what compares its forecasts with the labels."""
        return (self.predictor, self._learner)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The predictor."""
        return (self.predictor,)

    def combined_many(self, blocks: Sequence[Any]) -> ManyForecasts:
        """Return the sharper forecasts made of the predictor's, one for each object."""
        (block,) = blocks
        sharper = powers(np.ascontiguousarray(probabilities_of(block, len(self.classes))))
        first, second, third = self.weights
        return ManyForecasts(first * sharper[0] + second * sharper[1] + third * sharper[2], self.classes)

    def combined(self, predictions: Sequence[Any]) -> Forecast:
        """Return the sharper forecast made of the predictor's only prediction."""
        return self.combined_many([list(predictions)])[0]

    def losses_of(self, x: Any, y: Label) -> Floats:
        """Return (3,) log losses of the powers on one example."""
        try:
            said = self.predictor.predict_one(x)
        except RuntimeError:  # a fit has failed, so that there is no forecast: the example may mend it
            return np.zeros(len(EXPONENTS))
        proba = probabilities_of([said], len(self.classes))
        return -np.log(np.maximum(powers(proba)[:, 0, self.space.encode(y)], TINY))

    def learn_losses(self, losses: Floats) -> None:
        """Add up the (3,) losses on an example that is being learned; negative ones, by rounding, count as 0."""
        requirement = f"losses must be {len(EXPONENTS)} finite numbers"
        found = real_array(losses, requirement)
        if found.shape != (len(EXPONENTS),) or not np.isfinite(found).all():
            raise ValueError(f"{requirement}, got {losses!r}")
        self._losses = self._losses + np.maximum(found, 0.0)


class Losses(Predictor):
    """The part of a `Sharpened` that learns by itself, so that a panel teaches the predictor beside it once."""

    def __init__(self, owner: Sharpened) -> None:
        self._owner = owner
        self.classes = owner.classes

    def __repr__(self) -> str:
        return f"Losses({self._owner!r})"

    def note(self, x: Any, y: Label) -> Floats:
        """Return the losses of what is said of x before it is learned."""
        return self._owner.losses_of(x, y)

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Add up the losses that were noted."""
        if noted is None:
            raise ValueError("noted must be what note(x, y) returned, got None")
        self._owner.learn_losses(noted)
