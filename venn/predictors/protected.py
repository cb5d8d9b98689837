"""Protected forecasting: never much worse than the base forecaster, and better where that is miscalibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from venn._compiled import protection as compiled
from venn.labels import Classes, HasLabels
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, fraction, with_methods
from venn.prediction import Floats, Forecast, Label, distributions
from venn.predictors.learning import AroundPredictor
from venn.saved import held_array, held_float, saved

POWERS = (1.0, 0.5, 2.0)
SHIFT = 1.0


class Loss(Protocol):
    """How forecasts are scored, and how several weighted forecasts are merged into one.

    The bound of `Protected` is a theorem if ``forecast`` merges well enough: whatever the label, the loss of
    the merged forecast must be at most -ln sum_i w_i exp(-loss_i), for weights w of sum 1.
    """

    def losses(self, log_rows: Floats, code: int) -> Floats:
        """Return the (s,) losses of s forecasts when the label has that code.

        Parameters
        ----------
        log_rows : (s, c) float64
            Natural logarithms of distributions over the classes; -inf where a probability is 0.
        code : int
            Class code of the label.
        """

    def forecast(self, log_weights: Floats, log_rows: Floats) -> Floats:
        """Return the (c,) merged forecast; `log_weights` (s,) are logarithms of weights, up to a constant."""


@saved
class LogLoss(Parameters):
    """Log loss -ln p_y. Forecasts are merged by their weighted mean, which makes the bound an equality.

    Examples
    --------
    >>> rows = np.log([[0.5, 0.5], [0.25, 0.75]])
    >>> LogLoss().losses(rows, 0).round(3)
    array([0.693, 1.386])
    >>> LogLoss().forecast(np.log([0.5, 0.5]), rows)
    array([0.375, 0.625])
    """

    def losses(self, log_rows: Floats, code: int) -> Floats:
        """Return the (s,) losses in nats of (s, c) log forecasts; infinite where the label had probability 0."""
        return -log_rows[:, code]

    def forecast(self, log_weights: Floats, log_rows: Floats) -> Floats:
        """Return the weighted mean (c,) of the forecasts."""
        return compiled.mixture(log_weights, log_rows)


@saved
class BrierLoss(Parameters):
    """Brier loss sum_k (1{y = k} - p_k)^2, in [0, 2].

    With g_k = -ln sum_i w_i exp(-loss_i(k)), the merged forecast is p_k = (s - g_k)^+ / 2 with the s that makes the
    sum 1. Its loss is at most g_y, whatever the label y: the Brier game is mixable at learning rate 1. (A simpler rule
    solves for s as if nothing were negative, cuts off negative numbers and divides by the sum. It is another forecast:
    of (.8, .2, 0, ..., 0) and (.2, .8, 0, ..., 0), weighted .8 and .2, with ten classes, it loses up to g_y + .010.)

    References
    ----------
    Vovk & Zhdanov (2009), "Prediction with expert advice for the Brier game".

    Examples
    --------
    >>> rows = np.log([[0.5, 0.5], [0.25, 0.75]])
    >>> BrierLoss().losses(rows, 0)
    array([0.5  , 1.125])
    >>> BrierLoss().forecast(np.log([0.5, 0.5]), rows).round(3)
    array([0.383, 0.617])
    """

    def losses(self, log_rows: Floats, code: int) -> Floats:
        """Return the (s,) losses, from 0 to 2, of (s, c) forecasts, given as logarithms, when the label is `code`."""
        return compiled.brier_losses(np.exp(log_rows))[:, code]

    def forecast(self, log_weights: Floats, log_rows: Floats) -> Floats:
        """Return the forecast (c,) by the rule above."""
        return compiled.brier_forecast(log_weights, log_rows)


class Answer(NamedTuple):
    """The answer about one object."""

    rows: Floats  #: (versions, c) logarithms of the versions' forecasts
    merged: Floats  #: (c,) the forecast


@saved
class Protected(HasLabels, AroundPredictor):
    """A probability forecaster mixed with recalibrated versions of itself, by weights that follow their losses.

    A version's forecast is proportional to p^power * exp(shift), with p the base's forecast, a power of 1, 1/2 or 2,
    and no shift or one of +1 or -1 at one class: the base (right where it is well calibrated), a milder or bolder
    version, or one that leans towards or away from a class. (For two classes these are the nine published calibrators.)
    There is a
    mixture for every jump rate J: before each step the share J of each version's weight is spread evenly over all
    versions; after it weights are multiplied by exp(-loss). The weight `passive` stays on the base itself.

    Theorem, for any sequence of objects and labels: after every step the cumulative loss is at most the base's plus
    ln(1 / passive), by `LogLoss` and by `BrierLoss`. That it is less than the base's if the base is
    miscalibrated is an observation, not a theorem, and the forecasts carry no guarantee of calibration.

    Parameters
    ----------
    predictor : Predictor
        The base, whose predictions have `.proba`: forecasts, multiprobabilities, class intervals. It is copied,
        with all it has learned; only its machine is shared. So the original may stand in the same `Panel`, and nothing
        is learned twice: this object does not teach it.
    loss : Loss, default LogLoss()
        `LogLoss()`, `BrierLoss()`, or an object with the same methods.
    rates : sequence of floats in (0, 1), default (0.01, 0.001, 0.0001)
        Jump rates.
    passive : float in (0, 1), default 0.5

    Attributes
    ----------
    predictor : Predictor
        The copy of the base that learns here.
    gain : float
        Cumulative loss of the base minus that of these forecasts: at least ln(passive), up to rounding. With log
        loss, exp(gain) is a test martingale against the hypothesis that the base's forecasts are the true
        conditional probabilities. Steps where both losses are infinite are left out.

    Raises
    ------
    TypeError
        The predictor or the loss is not one. On predicting or learning: predictions have no `.proba`.
    ValueError
        The rates or the passive weight are out of range.

    Notes
    -----
    If the base gives a class probability 0, so does every version. If that label comes, all log losses are infinite,
    which says nothing about weights: they do not change. The bound then holds for the sum over the other steps.

    Why the bound holds: each step multiplies the sum of the weights, before normalising, by at most
    exp(-loss of the forecast), and the sum is at least the passive weight: passive * exp(-cumulative loss of the
    base).

    Weights are kept as logarithms; memory is constant. The forecast itself consists of plain numbers, so do not rely on
    the log loss of probabilities below 1e-300.

    The base's forecast must be from before its machine learns. `learn_one` and a `Panel` see to that. Who teaches the
    machine by hand calls `note` before, and hands what it returns to `after_learning`.

    References
    ----------
    Vovk, Petej & Gammerman (2021), "Protected probabilistic classification", arXiv:2107.01726.

    Examples
    --------
    A base that is too bold, on labels that are equally often one and the other:

    >>> from venn.predictors import Predictor
    >>> class Bold(Predictor):
    ...     classes = ("no", "yes")
    ...     def predict_one(self, x):
    ...         return Forecast(np.array([0.1, 0.9]), self.classes)
    >>> model = Protected(Bold())
    >>> for y in ["yes", "no"] * 100:
    ...     model.learn_one([0.0], y)
    >>> model.predictor.predict_one([0.0]), model.predict_one([0.0])
    (Forecast('yes': 0.900), Forecast('yes': 0.529))
    >>> round(model.gain / 200, 1)  # nats a step
    0.5
    """

    def __init__(
        self,
        predictor: Any,
        loss: Loss | None = None,
        rates: Sequence[float] = (1e-2, 1e-3, 1e-4),
        passive: float = 0.5,
    ) -> None:
        self._hold(predictor)
        wanted = "a loss object, with methods 'losses' and 'forecast'"
        self.loss: Loss = with_methods("loss", LogLoss() if loss is None else loss, wanted, "losses", "forecast")
        if isinstance(rates, str | bytes) or not isinstance(rates, Sequence | np.ndarray) or not len(rates):
            raise TypeError(f"rates must be a sequence of numbers in (0, 1), got {rates!r}")
        self.rates = tuple(fraction("rates", rate) for rate in rates)
        self.passive = fraction("passive", passive)
        self.gain = 0.0
        self.space = Classes(predictor.classes)
        self._powers, self._shifts = _calibrators(len(self.classes))
        states = len(self._powers)
        self._rates = np.array(self.rates)
        self._log_passive = math.log(self.passive)
        self._log_weights = np.full((len(self.rates), states), -np.inf)
        self._log_weights[:, 0] = math.log((1.0 - self.passive) / len(self.rates))
        # Weights are for the next forecast: after the jump that comes before it.
        compiled.jump(self._log_weights, self._rates)

    @property
    def state(self) -> dict[str, Any]:
        """Gain and weights."""
        return {"gain": self.gain, "passive": self._log_passive, "weights": self._log_weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        weights = held_array("weights", state["weights"], self._log_weights.shape)
        if not (weights < np.inf).all():
            raise ValueError("weights must be logarithms of numbers")
        self.gain = held_float("gain", state["gain"])
        passive = state["passive"]
        if type(passive) is not float or not passive < np.inf:
            raise ValueError(f"passive must be the logarithm of a number, got {passive!r}")
        self._log_passive, self._log_weights = passive, weights.copy()

    @property
    def tuning(self) -> Any:
        """How the kernel and C of the base's own machine were chosen, if `tune` chose them."""
        return getattr(self.predictor, "tuning", None)

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; it changes no later answer.

        Parameters
        ----------
        x : object
            Any object that the base takes.

        Raises
        ------
        TypeError
            The base's prediction has no `.proba`.
        """
        return Forecast(self._ask(x).merged, self.classes)

    def note(self, x: Any, y: Label) -> tuple[Answer, Any]:
        """Return the answer about `x` before anything learns, and what the base notes; or raise what it would raise."""
        self.space.check(y)
        noted = self.predictor.note(x, y)
        return self._ask(x), noted

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example that the machine has already learned: the base's own state, and the weights.

        Raises
        ------
        RuntimeError
            `noted` is missing, so the base's forecast from before its machine learned is unknown. The base has
            learned the example, the weights have not moved.
        NotConverged
            A training or fit of the base fails: all have learned the example.
        """
        code = self.space.encode(y)
        answer, of_base = self._noted(x, y, noted)
        if self.machine is not None:  # weights first, which cannot fail: the forecast was made before the label
            self._weigh(answer, code)
            self.predictor.after_learning(x, y, of_base)
            return
        # Nobody else teaches this base: it may refuse. A training that fails does so when the example is learned.
        try:
            self.predictor.after_learning(x, y, of_base)
        except NotConverged:
            self._weigh(answer, code)
            raise
        self._weigh(answer, code)

    def _ask(self, x: Any) -> Answer:
        """Ask the base about `x`, and merge."""
        prediction = self.predictor.predict_one(x)
        proba = getattr(prediction, "proba", None)
        if proba is None:
            raise TypeError(
                f"predictor must give predictions with .proba, got {type(prediction).__name__} by {self.predictor!r}"
            )
        clean = distributions("proba of the predictor", proba, (len(self.classes),))
        with np.errstate(divide="ignore"):
            rows: Floats = compiled.recalibrate(np.log(clean), self._powers, self._shifts)
        merged = self.loss.forecast(compiled.pool(self._log_passive, self._log_weights), rows)
        return Answer(rows, merged)

    def _weigh(self, answer: Answer, code: int) -> None:
        """Update the weights by the losses of one step, and jump for the next."""
        losses = self.loss.losses(answer.rows, code)
        if np.isfinite(losses[0]):
            with np.errstate(divide="ignore"):
                own = self.loss.losses(np.log(answer.merged)[None], code)[0]
            self.gain += float(losses[0] - own)
            self._log_passive -= float(losses[0])
            self._log_weights -= losses
            total = float(np.logaddexp(self._log_passive, compiled.log_sum(self._log_weights.ravel())))
            self._log_passive -= total
            self._log_weights -= total
        compiled.jump(self._log_weights, self._rates)


def _calibrators(c: int) -> tuple[Floats, Floats]:
    """Return powers (s,) and shifts (s, c), the identity first."""
    # For two classes a shift of one class is the opposite shift of the other.
    ways = np.vstack([np.eye(c), -np.eye(c)] if c > 2 else [[0.0, 1.0], [0.0, -1.0]])
    shifts = SHIFT * np.vstack([np.zeros(c), ways])
    return np.repeat(POWERS, len(shifts)), np.tile(shifts, (len(POWERS), 1))
