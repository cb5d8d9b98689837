"""What a checkpoint keeps of predictors."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.maps import followers
from venn.online.forms.base import Form, Model, register
from venn.online.forms.checks import checked_names, finite, numbers, real, rows_of, truth, whole, within
from venn.online.forms.inductive import give_inductive, given_history, held_history, held_inductive
from venn.online.panel import Panel
from venn.predictors import score_sources
from venn.predictors.balanced import Balanced
from venn.predictors.conformal import Conformal
from venn.predictors.history import History
from venn.predictors.inductive_base import Inductive
from venn.predictors.protected import Answer, Protected
from venn.predictors.refitted import Refitted
from venn.predictors.restarting import Restarting, Said
from venn.predictors.scaling import Scaler
from venn.predictors.transductive import TransductiveVenn
from venn.predictors.transductive_abers import TransductiveVennAbers

# ---------------------------------------------------------------------------------------- scalers


def parts_of(feed: Any) -> list[Inductive[Any]]:
    """Return the inductive predictors within a source of scores."""
    if isinstance(feed, score_sources.HeldOutFeed):
        return [feed._inductive]
    return list(getattr(feed, "_parts", []))


def held_follower(follower: Any) -> dict[str, Any]:
    """Return the maps of the last fit."""
    if isinstance(follower, followers.Refitting):
        return {"fitted": follower.fitted}
    names = {
        followers.FollowingPlatt: ("_maps",),
        followers.FollowingBins: ("_cuts", "_rates"),
        followers.FollowingIsotonic: ("_first", "_last", "_value"),  # the order is only there to be fast
    }
    if type(follower) not in names:
        raise TypeError(f"map must be one of this package, got one with {follower!r}")
    return {name: getattr(follower, name, None) for name in names[type(follower)]}


def give_follower(follower: Any, state: dict[str, Any], c: int, ready: bool) -> None:
    """Let one that has fitted nothing have those maps."""
    checked_names("state of the maps", state, held_follower(follower))
    if isinstance(follower, followers.Refitting):
        fitted = state["fitted"]
        if not isinstance(fitted, tuple) or not all(callable(one) for one in fitted):
            raise ValueError(f"fitted must be maps, got {fitted!r}")
        follower.fitted = fitted
    else:
        for name, value in state.items():
            if value is None:
                continue
            if rows_of(name, value) != c or value.ndim != 2 or value.dtype != np.float64 or np.isnan(value).any():
                raise ValueError(f"{name} must be rows of numbers, one for each of {c} classes, got {value!r}")
            setattr(follower, name, np.array(value))
        shapes = [np.shape(value)[1:] for value in state.values()]
        if isinstance(follower, followers.FollowingPlatt):
            wanted: list[Any] = [(3,)]
        elif isinstance(follower, followers.FollowingBins):
            wanted = [(follower._bins - 1,), (follower._bins,)]
        else:
            wanted = [shapes[0]] * 3
        empty = all(value is None for value in state.values())
        if not empty and (shapes != wanted or shapes[-1] == (0,)):
            raise ValueError(f"maps must have {wanted} numbers a class, got {shapes}")
        if empty and ready:
            raise ValueError("maps must be there after a fit, got none")
    if ready and np.shape(follower(np.zeros(c))) != (c,):
        raise ValueError("maps must be of all classes")


class ScalerForm(Form):
    """Of `Scaler`: the maps as fitted last, and what a source of scores has in its own machines."""

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what it has learned."""
        return {
            "fitted_to": thing._fitted_to,
            "held": thing._held_then,
            "ready": thing._ready,
            "maps": held_follower(thing.fitted),
            "parts": [held_inductive(part) for part in parts_of(thing._feed)],
        }

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return a scaler on this machine, whatever that has learned: nothing is fitted."""
        checked_names("parameters", parameters, self._attributes)
        machine = parameters["machine"]
        fresh = machine.fresh() if hasattr(machine, "fresh") else machine
        thing = self.kind(fresh, parameters["map"], parameters["source"])
        thing._given = machine
        for part in parts_of(thing._feed):
            part._given = machine
        if thing._feed.machine is not None:
            thing._feed.machine = machine
        return thing

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned what the state says."""
        checked_names("state", state, self.state(thing))
        for part, held in zip(parts_of(thing._feed), state["parts"], strict=True):
            give_inductive(part, held)
        thing._fitted_to = whole("fitted_to", state["fitted_to"], -1)
        held = state["held"]
        thing._held_then = None if held is None else whole("held", held)
        thing._ready = truth("ready", state["ready"])
        give_follower(thing.fitted, state["maps"], len(thing.classes), thing._ready)


# ------------------------------------------------------------------------- around other predictors


class BalancedForm(Form):
    """Of `Balanced`: the predictor within, as it has learned."""

    def state(self, thing: Any) -> dict[str, Any]:
        """Return the predictor and the number of examples offered."""
        return {"n": thing.n, "predictor": thing.predictor}

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned that."""
        checked_names("state", state, self.state(thing))
        n, predictor, own = whole("n", state["n"]), state["predictor"], thing.predictor
        if type(predictor) is not type(own) or repr(predictor) != repr(own):
            raise ValueError(f"predictor must be one like {own!r}, got {predictor!r}")
        thing.n, thing.predictor = n, predictor
        if thing.kept > n:
            raise ValueError(f"predictor must have learned at most {n} examples, got {thing.kept}")


class ProtectedForm(Form):
    """Of `Protected`: the base within, the weights, and what was said last, which a label may follow."""

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what it has learned."""
        asked = thing._asked
        return {
            "gain": thing.gain,
            "passive": thing._log_passive,
            "weights": thing._log_weights,
            "n": thing._n,
            # What was said of an object that is not made of numbers is known by that very object.
            "asked": None if asked is None or asked.content is None else tuple(asked)[1:],
        }

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return one around this base, which is not copied."""
        thing = super().make(parameters)
        thing.predictor = parameters["predictor"]
        return thing

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned what the state says."""
        checked_names("state", state, self.state(thing))
        weights = numbers("weights", state["weights"], thing._log_weights.shape)
        if not (weights < np.inf).all():
            raise ValueError("weights must be logarithms of numbers")
        thing.gain, thing._n = real("gain", state["gain"]), whole("n", state["n"])
        passive = state["passive"]
        if type(passive) is not float or not passive < np.inf:
            raise ValueError(f"passive must be the logarithm of a number, got {passive!r}")
        thing._log_passive, thing._log_weights = passive, weights.copy()
        if state["asked"] is not None:
            content, learned, rows, merged = state["asked"]
            c = len(thing.classes)
            numbers("what was said", rows, (weights.shape[1], c))
            if type(content) is not bytes or not (learned is None or type(learned) is int) or np.isnan(rows).any():
                raise ValueError("asked must be what was said of an object")
            thing._asked = Answer(None, content, learned, rows, finite("what was said", merged, (c,)))


class RestartingForm(Form):
    """Of `Restarting`: monitor, restarts, and what was said last, which a label may follow."""

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what it has learned."""
        return {
            "n": thing.n,
            "monitor": thing.monitor,
            "restarts": thing._restarts,
            "said": None if thing._said is None else tuple(thing._said),
        }

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return one around this predictor, which is not copied."""
        thing = super().make(parameters)
        thing.predictor = parameters["predictor"]
        return thing

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned what the state says."""
        checked_names("state", state, self.state(thing))
        thing.n = whole("n", state["n"])
        if type(state["monitor"]) is not type(thing.monitor):
            raise ValueError(f"monitor must be one like {thing.monitor!r}, got {state['monitor']!r}")
        thing.monitor = state["monitor"]
        steps = [0, *(whole("restarts", step, 1, thing.n) for step, _ in state["restarts"])]
        if not (np.diff(steps) > 0).all() or not all(isinstance(rung, tuple) for _, rung in state["restarts"]):
            raise ValueError(f"restarts must be steps in order and alarms, got {state['restarts']!r}")
        thing._restarts = state["restarts"]
        if state["said"] is not None:
            content, learned, prediction = state["said"]
            if type(content) is not bytes or not hasattr(prediction, "guaranteed"):
                raise ValueError(f"said must be what was said of an object, got {state['said']!r}")
            thing._said = Said(content, whole("learned", learned), prediction)


class RefittedForm(Form):
    """Of `Refitted`: the examples; the estimator is the caller's, and fitted to them again."""

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return what the constructor takes, of the estimator only which it is."""
        return {"estimator": Model(thing._given), "classes": thing.classes, "schedule": thing.schedule}

    def state(self, thing: Any) -> dict[str, Any]:
        """Return the examples, and what was fitted where they are gone."""
        gone = thing.fitted is not None and thing._history is None
        return {
            "n": thing.n,
            "features": thing._features,
            "history": held_history(thing._history),
            "proba": thing._proba,
            "columns": thing._columns,
            "fits": thing.fitted is not None,
            "fitted_to": thing.fitted_to,
            "fitted": Model(thing.fitted) if gone else None,
        }

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return one around the caller's estimator."""
        checked_names("parameters", parameters, self._attributes)
        if not isinstance(parameters["estimator"], Model):
            raise ValueError(f"estimator must be one of the models, got {parameters['estimator']!r}")
        return self.kind(parameters["estimator"].estimator, parameters["classes"], parameters["schedule"])

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned what the state says."""
        checked_names("state", state, self.state(thing))
        c, n = len(thing.classes), whole("n", state["n"])
        to = whole("fitted_to", state["fitted_to"], 0, n)
        features = state["features"]
        if n or features is not None:
            whole("features", features, 1)
        thing._proba = finite("proba", state["proba"], (c,)).copy()
        if not ((thing._proba >= 0).all() and abs(thing._proba.sum() - 1) <= 1e-9):
            raise ValueError(f"proba must be probabilities of sum 1, got {thing._proba}")
        columns = state["columns"]
        if columns is not None:
            thing._columns = within("columns", columns, (rows_of("columns", columns),), 0, c).copy()
        if state["history"] is None:
            thing._history = thing._next = None
        else:
            thing._history = given_history(state["history"], n, c)
            thing._next = thing.schedule.next_training(n)
        thing.n, thing._features = n, features
        if truth("fits", state["fits"]):
            if thing._history is not None:
                self._fit(thing, to)
            elif not isinstance(state["fitted"], Model) or columns is None:
                raise ValueError("fitted must be one of the models, got none")
            else:
                thing.fitted, thing.fitted_to = state["fitted"].estimator, to
        thing.fitted_to = to

    @staticmethod
    def _fit(thing: Any, to: int) -> None:
        """Fit again to the first examples; the same fit, for the estimator starts from its own seed each time."""
        whole_history, then, n = thing._history, thing._next, thing.n
        X, codes, calibrates = (values[:to] for values in whole_history.examples)
        thing._history = History()
        thing._history.append(X, codes, calibrates)
        try:
            thing._fit()
        finally:
            thing._history, thing._next, thing.n = whole_history, then, n


class PanelForm(Form):
    """Of `Panel`: its predictors by name."""

    def __init__(self) -> None:
        self.kind, self.name = Panel, "Panel"

    def parameters(self, thing: Any) -> dict[str, Any]:
        """Return the predictors."""
        return dict(thing)

    def make(self, parameters: dict[str, Any]) -> Any:
        """Return a panel of them."""
        return Panel(**parameters)


register(
    Form(TransductiveVenn),
    Form(TransductiveVennAbers),
    Form(Conformal, seed="_smoothing.seed"),
    ScalerForm(Scaler, machine="_given"),
    BalancedForm(Balanced, predictor="_given"),
    ProtectedForm(Protected),
    RestartingForm(Restarting, monitor="_pattern"),
    RefittedForm(Refitted, estimator="_given"),
    PanelForm(),
)
