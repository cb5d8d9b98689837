"""What a floor is about: the loss of a step, in [0, 1]: accuracy, coverage, cost, or one of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from venn.labels import LabelSpace
from venn.monitors.alarms import shares
from venn.monitors.curves import Outcomes
from venn.monitors.kind import LEVEL, ErrorKind, Kind
from venn.monitors.number_kinds import NumberKind
from venn.parameters import Parameters, number, with_methods
from venn.prediction import LEVELS
from venn.saved import component, param


class Loss(Protocol):
    """What a floor is about: any object with these methods will do. `guess(prediction, kind)` is optional."""

    @property
    def name(self) -> str:
        """What is measured, in a word or two."""

    def risk(self, at: float) -> float:
        """Return the largest mean loss that a floor `at` allows."""

    def loss(self, step: Outcomes, kind: Kind, space: LabelSpace) -> float:
        """Return the loss of one step, in [0, 1]."""

    def said(self, mean: float) -> str:
        """Return a mean loss in the user's own words."""


@component
class Accuracy(Parameters):
    """The loss is 1 where the predicted label is wrong; of numbers, where the label is outside the interval at .05.

    Examples
    --------
    >>> Accuracy().said(0.08)
    'right in .92'
    """

    name = "accuracy"

    def risk(self, at: float) -> float:
        """Return the share of wrong labels."""
        return 1.0 - at

    def loss(self, step: Outcomes, kind: Kind, space: LabelSpace) -> float:
        """Return whether the predicted label is wrong."""
        return 0.0 if kind.hit(step) else 1.0

    def guess(self, prediction: Any, kind: Kind) -> float:
        """Return the chance of a wrong label that the prediction claims; 0 if it claims none."""
        return 1.0 - min((prediction.lower + prediction.upper) / 2, 1.0) if kind.calibrated else 0.0

    def said(self, mean: float) -> str:
        """Return the accuracy in words."""
        return f"right in {shares(1.0 - mean)[0]}"


@component
class Coverage(Parameters):
    """The loss is 1 where the true label is outside the set, or the interval, at a significance level.

    Parameters
    ----------
    epsilon : float, default 0.05
        One of 0.01, 0.05, 0.1 and 0.2.

    Raises
    ------
    ValueError
        `epsilon` is another number.

    Examples
    --------
    >>> from venn.monitors import Floor
    >>> floor = Floor(0.85, of=Coverage(0.1))
    >>> floor.name
    'coverage at 0.1'
    """

    epsilon: float = param(lambda name, value: _level(name, value), default=LEVEL)

    @property
    def name(self) -> str:
        """What is measured."""
        return f"coverage at {self.epsilon:g}"

    def risk(self, at: float) -> float:
        """Return the share of labels missed."""
        return 1.0 - at

    def loss(self, step: Outcomes, kind: Kind, space: LabelSpace) -> float:
        """Return whether the true label was missed."""
        if not isinstance(kind, ErrorKind):
            raise ValueError(f"floor must be on accuracy or cost of {kind.name}, which has no sets, got {self.name}")
        if isinstance(kind, NumberKind):
            low, high = step.row[2 * LEVELS.index(self.epsilon) :][:2]
            return 0.0 if low <= step.truth <= high else 1.0
        return 0.0 if step.probability > self.epsilon else 1.0

    def guess(self, prediction: Any, kind: Kind) -> float:
        """Return the level."""
        return self.epsilon

    def said(self, mean: float) -> str:
        """Return the coverage in words."""
        return f"the label covered in {shares(1.0 - mean)[0]}"


def _level(name: str, value: Any) -> float:
    if value not in LEVELS:
        raise ValueError(f"{name} must be one of {', '.join(map(str, LEVELS))}, got {value!r}")
    return float(value)


def _table(name: str, value: Any) -> dict[Any, dict[Any, float]]:
    """Return the costs as dicts, or say what they must be."""
    if not isinstance(value, Mapping) or not value or not all(isinstance(row, Mapping) for row in value.values()):
        raise TypeError(f"{name} must be a mapping of predicted labels to mappings of true ones, got {value!r}")
    table = {one: {truth: number(name, cost) for truth, cost in row.items()} for one, row in value.items()}
    if any(row.keys() != table.keys() for row in table.values()):
        raise ValueError(f"{name} must have a cost for every predicted and every true label, got {value!r}")
    found = [cost for row in table.values() for cost in row.values()]
    if not (min(found) >= 0 and max(found) > 0):
        raise ValueError(f"{name} must be numbers >= 0, not all 0, got {value!r}")
    return table


@component
class Cost(Parameters):
    """What it costs to take the predicted label for the true one. `Floor(at, of=Cost(...))`: the mean is at most `at`.

    Parameters
    ----------
    costs : mapping of predicted label to mapping of true label to number >= 0

    Raises
    ------
    TypeError, ValueError
        The costs are not as described.

    Examples
    --------
    >>> from venn.monitors import Floor
    >>> floor = Floor(0.5, of=Cost({"wait": {"wait": 0, "treat": 10}, "treat": {"wait": 1, "treat": 0}}))
    >>> floor.risk, str(floor)
    (0.05, 'a mean cost of at most 0.5')
    """

    name = "cost"

    costs: Any = param(_table)

    def derive(self) -> None:
        """Find the largest cost."""
        self.most = max(cost for row in self.costs.values() for cost in row.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cost) and other.costs == self.costs

    def __hash__(self) -> int:
        return hash(tuple((one, tuple(row.items())) for one, row in self.costs.items()))

    def risk(self, at: float) -> float:
        """Return the mean cost as a share of the largest."""
        return at / self.most

    def loss(self, step: Outcomes, kind: Kind, space: LabelSpace) -> float:
        """Return the cost as a share of the largest."""
        if self.costs.keys() != set(space.labels):
            raise ValueError(f"costs must be of the classes {list(space.labels)!r}, got {list(self.costs)!r}")
        return self.costs[space.decode(step.predicted)][space.decode(step.truth)] / self.most

    def said(self, mean: float) -> str:
        """Return the mean cost in words."""
        return f"mean cost {mean * self.most:.4g}"


WORDS = {"accuracy": Accuracy, "coverage": Coverage}


def checked_loss(name: str, value: Any) -> Loss:
    """Return what a floor is about, or say what it must be."""
    if isinstance(value, str):
        if value not in WORDS:
            raise ValueError(f"{name} must be {' or '.join(map(repr, WORDS))}, Cost(...) or a loss, got {value!r}")
        return WORDS[value]()
    return with_methods(name, value, "'accuracy', 'coverage', Cost(...) or a loss", "risk", "loss", "said",
                               has=["name"])  # fmt: skip
