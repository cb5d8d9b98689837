"""Point forecasts: from another predictor of probabilities, and a second one beside it."""

from __future__ import annotations

from typing import Any

from venn.prediction import Forecast, Label
from venn.predictors.learning import Predictor, checked_predictor
from venn.saved import saved


@saved
class PointForecast(Predictor):
    """Point forecasts from another predictor of probabilities, averaged with a second one's while there is one.

    It only reads the first, which a `Panel` teaches beside it, and drops the second when the first hands over.

    Parameters
    ----------
    first : Predictor
        Of probabilities; taught by the panel.
    second : Predictor, optional
        Of probabilities, of the same classes; taught through this one.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> abers = venn.TransductiveVennAbers(machine)
    >>> PointForecast(abers, venn.Scaler(machine, venn.maps.Platt())).predict_one([0.0])
    Forecast('no': 0.500)
    """

    def __init__(self, first: Predictor, second: Predictor | None = None) -> None:
        self.first = checked_predictor(first, "first")
        self.second = second if second is None else checked_predictor(second, "second")
        if second is not None and tuple(second.classes) != tuple(first.classes):
            raise ValueError(f"first and second must have the same classes, got {first.classes!r}, {second.classes!r}")
        self._described = f"PointForecast({first!r}, {second!r})"  # the same before and after

    def __repr__(self) -> str:
        return self._described

    @property
    def parameters(self) -> dict[str, Any]:
        """The two predictors, the second one only while it counts."""
        return {"first": self.first, "second": self.second}

    @property
    def state(self) -> dict[str, Any]:
        """How it was described when it was made."""
        return {"described": self._described}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the description."""
        super().restore(state)
        if not isinstance(state["described"], str):
            raise ValueError(f"described must be text, got {state['described']!r}")
        self._described = state["described"]

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return tuple(self.first.classes)

    @property
    def _beside(self) -> Any:
        return None if getattr(self.first, "over", False) else self.second

    @property
    def machine(self) -> Any:
        """The machine of the second predictor, if it has one."""
        return None if self._beside is None else self._beside.machine

    def predict_one(self, x: Any) -> Forecast:
        """Return the mean of the forecasts; leaves no trace."""
        proba = self.first.predict_one(x).proba
        if self._beside is not None:
            proba = (proba + self._beside.predict_one(x).proba) / 2
        return Forecast(proba, self.classes)

    def note(self, x: Any, y: Label) -> Any:
        """Return what the second one notes, or raise what it would raise."""
        return None if self._beside is None else self._beside.note(x, y)

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Let the second one learn."""
        if self._beside is None:
            self.second = None
        else:
            self._beside.after_learning(x, y, noted)
