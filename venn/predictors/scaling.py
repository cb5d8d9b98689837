"""Scalers: they map a machine's scores to probabilities, with any map and any source of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from venn.maps.contract import Follower, ScoreMap, checked_map, follower_of
from venn.parameters import optional
from venn.prediction import Forecast, Label
from venn.predictors.learning import Predictor
from venn.predictors.score_sources import ScoreSource, checked_source
from venn.saved import checked_keys, component, held_bool, held_int, held_text, param, state


@component
class Scaler(Predictor):
    """Probabilities by a map from scores, fitted anew after every example.

    A binary map, such as `Platt()`, is fitted for each class against all others: machine k's map to its scores of the
    examples, where those of class k are positive. The new object's mapped scores are divided by their sum (all zero:
    the uniform distribution). A map of all classes, such as `Temperature()`, is fitted once. The class of largest
    probability is predicted, ties to the first. Before there are scored examples the forecast is uniform. Maps are
    fitted after each learned example, so predicting changes nothing.

    These forecasts carry no guarantee: they are baselines for Venn predictors.

    `Platt` and `Isotonic` continue from their last fit, and `Binning` counts in compiled code; the others are fitted
    from nothing each time (times: `benchmarks/scalers.py`).

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`; `HeldOutScores` also takes a `FrozenScorer`, and
        teaches `fresh()` machines.
    map : ScoreMap
        `Platt()`, `Binning()`, `Isotonic()`, `BetaCalibration()`, `Temperature()`, or an object with the same method,
        such as a `venn.maps.BinaryMap` of your own.
    source : ScoreSource, default TrainingScores()
        Which scores the map is fitted to: `TrainingScores()`, `DeletedScores()`, `HeldOutScores()`,
        `CrossFittedScores()`, or an object with the same method.

    Attributes
    ----------
    n : int
        Number of examples learned, including those that a window has forgotten.
    fitted : Follower
        The last fitted maps.

    Raises
    ------
    TypeError, ValueError
        A part is not as described.
    NotConverged, ValueError
        On learning, when a map cannot be fitted. The example is learned, and no forecast is given until a later fit
        succeeds.

    References
    ----------
    Zadrozny & Elkan (2002) for several classes; Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = Scaler(machine, venn.maps.Platt())
    >>> model.predict_one([0.0])
    Forecast('no': 0.500)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Forecast('no': 0.750)
    """

    machine: Any = param(kept_as="_given")
    map: ScoreMap = param(checked_map)
    source: ScoreSource = param(checked_source, default=None)

    _fitted_to: int = state(held_int, -1, start=-1)
    _failure: str = state(held_text, start="")  # of the last fit that failed
    _held_then: int | None = state(optional, held_int, start=None)
    _ready: bool = state(held_bool, start=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._feed = self.source.feed(self._given)
        self.machine = self._feed.machine  # what a panel teaches and shares; None if the source has only its own
        self.fitted = follower_of(self.map, self._feed.classes)
        self._interim: tuple[int | None, Follower, bool] | None = None
        self._refit(None)

    @property
    def state(self) -> dict[str, Any]:
        """The last fitted maps, and the state of a source's own machines."""
        maps = getattr(self.fitted, "state", self.fitted)  # a user's own follower may have no state
        return super().state | {"maps": maps, "parts": [part.state for part in self._feed.parts]}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a scaler on this machine, which may have learned: nothing is fitted."""
        checked_keys("parameters", parameters, ("machine", "map", "source"))
        machine = parameters["machine"]
        scaler = cls(machine.fresh() if hasattr(machine, "fresh") else machine, parameters["map"], parameters["source"])
        scaler._stand_on(machine)
        return scaler

    def _stand_on(self, machine: Any) -> None:
        self._given = machine
        self._feed.stand_on(machine)
        self.machine = self._feed.machine

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`, or raise a ValueError if it has not the form of one."""
        super().restore(state)
        for part, held in zip(self._feed.parts, state["parts"], strict=True):
            part.restore(type(state)(held))  # what nobody else holds is taken over, else copied
        self._interim = None
        if hasattr(self.fitted, "restore"):
            self.fitted.restore(state["maps"], len(self.classes))
        else:
            self.fitted = state["maps"]
        if self._ready:
            try:
                shape = np.shape(self.fitted(np.zeros(len(self.classes))))
            except (TypeError, IndexError) as error:
                raise ValueError(f"maps must be there after a fit, got none: {error}") from error
            if shape != (len(self.classes),):
                raise ValueError("maps must be of all classes")

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self._feed.classes

    @property
    def n(self) -> int:
        """Number of examples learned, including those that a window has forgotten."""
        return self._feed.n

    @property
    def tuning(self) -> Any:
        """How the machine's kernel and C were chosen, if `tune` chose them."""
        return getattr(self._given, "tuning", None)

    def predict_one(self, x: Any) -> Forecast:
        """Return the forecast for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers

        Raises
        ------
        RuntimeError
            The machine has learned examples that this predictor has not learned, or the last fit failed.
        """
        n, fitted_to = self._feed.n, self._fitted_to
        if n != fitted_to:
            found = (
                f"a failed fit: {self._failure}"
                if fitted_to < 0
                else f"a fit to {fitted_to}: share a machine in a Panel"
            )
            raise RuntimeError(f"Scaler needs a fit to all {n} examples of its machine, got {found}")
        test_scores = self._feed.test_scores(x)  # even without a map: refuses a bad x
        c = len(test_scores)
        total = 0.0
        fitted, ready = self._current()
        if ready:
            p = fitted(test_scores)
            total = p.sum()
        return Forecast(p / total if total > 0 else np.full(c, 1.0 / c), self.classes)

    def expect(self, objects: Sequence[Any]) -> None:
        """Pass objects that have arrived on to the predictors that score them."""
        for part in self._feed.parts:
            part.expect(objects)

    def note(self, x: Any, y: Label) -> Any:
        """Return what machines of the source's own note, or raise what they would raise."""
        return self._feed.note(x, y)

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Fit the maps to the scores of the machine, which has learned the example already."""
        try:
            self._feed.after_learning(x, y, self.note(x, y) if noted is None else noted)
        finally:  # also when a training of the source's own machines failed, the example is learned
            self._refit(self)

    @property
    def _held(self) -> int | None:
        return getattr(self._feed, "held", None)

    def _current(self) -> tuple[Follower, bool]:
        """Return the maps and whether they are fitted.

        Between a window's restart and the next example these are other maps, fitted from scratch to what remains: a
        question must not change where the next fit starts.
        """
        held = self._held
        if held == self._held_then:
            return self.fitted, self._ready
        if self._interim is None or self._interim[0] != held:
            fitted, examples = follower_of(self.map, self._feed.classes), self._feed.examples(None)
            if examples is not None:
                fitted.fit(*examples)
            self._interim = held, fitted, examples is not None
        return self._interim[1:]

    def _refit(self, reader: object) -> None:
        # There is no fit until it succeeds: after an error predict_one refuses to answer.
        self._fitted_to = -1
        self._interim = None
        examples = self._feed.examples(reader)
        self._ready = examples is not None
        if examples is not None:
            try:
                self.fitted.fit(*examples)
            except Exception as error:
                self._failure = str(error)
                raise
        self._fitted_to, self._held_then = self._feed.n, self._held
