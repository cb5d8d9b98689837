"""How predictors learn: through a machine that others may share, or alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from venn.machines.machine import Machine
from venn.prediction import Label
from venn.saved import Saved


class OnMachine(Saved):
    """Base of transductive predictors: their whole state is in the machine, which others may read too."""

    machine: Machine

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example."""
        self.machine.learn_one(x, y)

    def after_learning(self, x: Any, y: Label) -> None:
        """Do nothing: the machine holds the whole state."""


class Alone(Saved):
    """Base of predictors with their own machines or none, which a panel neither teaches nor shares."""

    machine = None

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example."""
        raise NotImplementedError

    def after_learning(self, x: Any, y: Label) -> None:
        """Learn one example, as `learn_one` does: there is no machine that learns elsewhere."""
        self.learn_one(x, y)


def teach_all(parts: Iterable[Any], x: Any, y: Label) -> None:
    """Let every part learn one example, even if another fails; then raise the first failure."""
    failure: Exception | None = None
    for part in parts:
        try:
            part.learn_one(x, y)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
