"""Stands in for `river.base` where river is not installed: names can be listed and read about, nothing can be made."""

from __future__ import annotations

from typing import Any

MISSING = "venn.RiverClassifier and its kin need river: pip install river"


class Absent(type):
    """The type of classes that cannot be made, and of which no object can be."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        """Raise: river would be needed."""
        raise ImportError(MISSING)

    def __instancecheck__(cls, one: Any) -> bool:
        """Whether `one` is of the class: never; of a class of river's own nobody can tell."""
        if cls.__module__ == __name__:
            raise ImportError(MISSING)
        return False


class Classifier(metaclass=Absent):
    """River's base of classifiers."""


class MiniBatchClassifier(Classifier):
    """River's base of classifiers that learn many examples at once."""


class MultiLabelClassifier(metaclass=Absent):
    """River's base of classifiers of several labels."""


class Regressor(metaclass=Absent):
    """River's base of regressors."""


class MiniBatchRegressor(Regressor):
    """River's base of regressors that learn many examples at once."""


# River's base of forecasters of series; the statement `class` is that of ours.
Forecaster: Any = Absent("Forecaster", (), {"__module__": __name__})
