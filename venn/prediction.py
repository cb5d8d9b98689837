"""What a predictor says before the label is revealed: frozen values that leave no trace."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Label = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Rule(Protocol):
    """A decision rule: from the multiprobability matrix to the predicted class."""

    def quality(self, probabilities: Floats) -> Floats:
        """Return (c,) qualities of the classes; the largest wins, ties go to the first class."""


class Parameters:
    """Equality and repr by constructor parameters, for small objects without other state."""

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).items())))


class RowMean(Parameters):
    """Quality of a class: its mean probability over the hypotheses (Lambrou et al. 2012).

    Examples
    --------
    >>> RowMean().quality(np.array([[0.75, 0.25], [0.25, 0.75]]))
    array([0.5, 0.5])
    """

    def quality(self, probabilities: Floats) -> Floats:
        """Return (c,) column means."""
        mean: Floats = probabilities.mean(axis=0)
        return mean


class Maximin(Parameters):
    """Quality of a class: its smallest probability over the hypotheses.

    Examples
    --------
    >>> Maximin().quality(np.array([[0.75, 0.25], [0.5, 0.5]]))
    array([0.5 , 0.25])
    """

    def quality(self, probabilities: Floats) -> Floats:
        """Return (c,) column minima."""
        smallest: Floats = probabilities.min(axis=0)
        return smallest


def distributions(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return a read-only copy of the distributions along the last axis, or say what is wrong with them."""
    array = np.array(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    # Written so that NaN fails.
    if not (array.min() >= 0 and np.abs(array.sum(axis=-1) - 1).max() <= 1e-9):
        raise ValueError(f"{name} must be nonnegative with sum 1, got {values!r}")
    array.setflags(write=False)
    return array


class Forecast:
    """A point forecast: one probability for each class.

    Parameters
    ----------
    proba : (c,) float64
        Probabilities in class order; nonnegative, sum 1.
    classes : sequence of c labels

    Examples
    --------
    >>> forecast = Forecast(np.array([0.2, 0.8]), ("no", "yes"))
    >>> forecast.label, forecast.lower, forecast.upper
    ('yes', 0.8, 0.8)
    """

    def __init__(self, proba: Floats, classes: Sequence[Label]) -> None:
        self.classes = tuple(classes)
        self.proba = distributions("proba", proba, (len(self.classes),))

    @cached_property
    def index(self) -> int:
        """Position of the predicted class; ties go to the first class."""
        return int(self.proba.argmax())

    @property
    def label(self) -> Label:
        """The class of largest probability."""
        return self.classes[self.index]

    @property
    def lower(self) -> float:
        """Probability of the predicted class; a point forecast claims no interval."""
        return float(self.proba[self.index])

    @property
    def upper(self) -> float:
        """Equal to `lower`."""
        return self.lower

    @property
    def width(self) -> float:
        """Always 0."""
        return 0.0

    def __repr__(self) -> str:
        return f"Forecast({self.label!r}: {self.lower:.3f})"


class Multiprobability:
    """One label distribution for each hypothesis about the new label.

    Exactly one row is the row of the true label. Under exchangeability that *realised* row is
    perfectly calibrated; which row it is cannot be known before the label, hence the interval.

    Parameters
    ----------
    probabilities : (c, c) float64
        Row j: distribution over the classes, in class order, under the hypothesis that the new
        label is class j.
    classes : sequence of c labels
    rule : Rule, default RowMean()
        Picks the predicted class.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003), "Self-calibrating probability forecasting"; the rule of
    the row mean is that of Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> prediction = Multiprobability(np.array([[0.5, 0.5], [0.25, 0.75]]), ("no", "yes"))
    >>> prediction.label, prediction.lower, prediction.upper
    ('yes', 0.5, 0.75)
    >>> prediction.unanimous
    False
    """

    def __init__(self, probabilities: Floats, classes: Sequence[Label], rule: Rule | None = None) -> None:
        self.classes = tuple(classes)
        self.probabilities = distributions("probabilities", probabilities, (len(self.classes),) * 2)
        self.rule: Rule = RowMean() if rule is None else rule

    @cached_property
    def index(self) -> int:
        """Position of the predicted class."""
        return int(self.rule.quality(self.probabilities).argmax())

    @property
    def label(self) -> Label:
        """The predicted class."""
        return self.classes[self.index]

    @property
    def lower(self) -> float:
        """Smallest probability of the predicted class over the hypotheses."""
        return float(self.probabilities[:, self.index].min())

    @property
    def upper(self) -> float:
        """Largest probability of the predicted class over the hypotheses."""
        return float(self.probabilities[:, self.index].max())

    @property
    def width(self) -> float:
        """Upper minus lower."""
        return self.upper - self.lower

    @cached_property
    def proba(self) -> Floats:
        """(c,) mean of the rows: the point forecast."""
        mean: Floats = self.probabilities.mean(axis=0)
        mean.setflags(write=False)
        return mean

    @property
    def unanimous(self) -> bool:
        """True when every row has the same most probable class."""
        best = self.probabilities.argmax(axis=1)
        return bool((best == best[0]).all())

    def __repr__(self) -> str:
        return f"Multiprobability({self.label!r}: [{self.lower:.3f}, {self.upper:.3f}])"


Prediction = Forecast | Multiprobability
