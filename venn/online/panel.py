"""Many predictors side by side on one stream, each machine solved once and taught once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from venn.labels import HasLabels, label_space
from venn.prediction import Label, Prediction


@runtime_checkable
class Predictor(Protocol):
    """What the loop asks of a predictor."""

    @property
    def machine(self) -> Any:
        """The machine whose answer it reads; None for a predictor that needs none."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, in class order."""

    def predict_one(self, x: Any) -> Prediction:
        """Say what the label of `x` may be; leaves no trace."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example: the machine first, then the predictor's own state."""

    def after_learning(self, x: Any, y: Label) -> None:
        """Learn one example that the machine has already learned."""


class Panel(HasLabels, Mapping[str, Predictor]):
    """Several predictors on one stream.

    Predictors that hold the same machine object share it: its hypotheses are solved once a step
    and the label is learned once.

    Parameters
    ----------
    **predictors : Predictor
        Names and predictors, in the order in which they are shown. All must have the same classes.
        One name for one predictor object. Machines may be shared or not.

    Attributes
    ----------
    classes : tuple of labels
    space : LabelSpace
        What labels may be.

    Raises
    ------
    TypeError
        A predictor without a name, a value that is not a predictor, or two different machines that cannot be checked
        before they learn.
    ValueError
        No predictor, one predictor under two names, or classes that differ.

    Notes
    -----
    An example that is refused leaves every machine and predictor as it was. To that end a machine or
    predictor may offer ``check(x, y)``, which raises what learning would raise and changes nothing;
    all checks come before anything learns. One machine without a check may stand in a panel: it
    learns first, and its own refusal changes nothing.

    Examples
    --------
    A predictor that knows only how often each label came, alone in a panel:

    >>> import numpy as np
    >>> from venn.prediction import Forecast
    >>> class Frequencies:
    ...     machine, classes = None, ("no", "yes")
    ...     def __init__(self):
    ...         self.counts = np.ones(2)
    ...     def predict_one(self, x):
    ...         return Forecast(self.counts / self.counts.sum(), self.classes)
    ...     def after_learning(self, x, y):
    ...         self.counts[self.classes.index(y)] += 1
    ...     learn_one = after_learning
    >>> panel = Panel(frequencies=Frequencies())
    >>> panel.learn_one([0.0], "yes")
    >>> panel.predict_one([0.0])
    {'frequencies': Forecast('yes': 0.667)}
    """

    def __init__(self, /, *unnamed: object, **predictors: Predictor) -> None:
        if unnamed:
            raise TypeError(f"predictors go by name, Panel(venn=model, ...), got {', '.join(map(repr, unnamed))}")
        if not predictors:
            raise ValueError("a panel needs at least one predictor, got none")
        for name, predictor in predictors.items():
            if isinstance(predictor, type) or not isinstance(predictor, Predictor):
                raise TypeError(
                    f"{name} must be a predictor (machine, classes, predict_one, learn_one, after_learning), "
                    f"got {predictor!r}"
                )
        first, *others = predictors
        self.space = label_space(tuple(predictors[first].classes))
        seen = {id(predictors[first]): first}
        for name in others:
            classes = tuple(predictors[name].classes)
            if classes != self.classes:
                raise ValueError(
                    f"predictors must have the same classes, got {self.classes!r} in {first} and {classes!r} in {name}"
                )
            twin = seen.setdefault(id(predictors[name]), name)
            if twin != name:
                raise ValueError(f"{twin} and {name} are the same predictor object: it would learn twice")
        self._predictors = predictors
        machines: list[Any] = []
        for predictor in predictors.values():
            if predictor.machine is not None and not any(predictor.machine is m for m in machines):
                machines.append(predictor.machine)
        machines.sort(key=lambda machine: hasattr(machine, "check"))
        if len(machines) > 1 and not hasattr(machines[1], "check"):
            raise TypeError(
                "of several machines in one panel all but one must have check(x, y), "
                f"got {machines[0]!r} and {machines[1]!r} without"
            )
        self._machines = machines
        checks: list[Callable[[Any, Label], object]] = [
            part.check for part in (*machines, *predictors.values()) if hasattr(part, "check")
        ]
        # A machine that alone can refuse does so as it learns, before anything has changed.
        alone = len(machines) == 1 and len(checks) == 1 and hasattr(machines[0], "check")
        self._checks = [] if alone else checks

    @property
    def machines(self) -> tuple[Any, ...]:
        """The distinct machines, each once."""
        return tuple(self._machines)

    def __getitem__(self, name: str) -> Predictor:
        return self._predictors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._predictors)

    def __len__(self) -> int:
        return len(self._predictors)

    # Two panels are never the same panel: what they hold learns.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={predictor!r}" for name, predictor in self._predictors.items())
        return f"Panel({inside})"

    def predict_one(self, x: Any) -> dict[str, Prediction]:
        """Return the prediction of every predictor by name; nothing is learned."""
        return {name: predictor.predict_one(x) for name, predictor in self._predictors.items()}

    def check(self, x: Any, y: Label) -> None:
        """Raise what `learn_one(x, y)` would raise before it learns, and learn nothing.

        All machines solve their problems, so that learning can begin.
        """
        self.space.check(y)
        for check in self._checks:
            check(x, y)
        for machine in self._machines:
            machine.hypotheses(x)

    def learn_one(self, x: Any, y: Label) -> None:
        """Teach every distinct machine once, then every predictor.

        Raises
        ------
        ValueError
            The label is not one of the classes, or a machine refuses the example. Nothing is learned.
        NotConverged
            A machine cannot be solved: nothing is learned. Or a scaler's own fit fails: the machines and all
            other predictors have learned the example.
        """
        self.space.check(y)
        for check in self._checks:
            check(x, y)
        # What can still fail is solving: every machine solves before any learns. One alone solves as it learns.
        if len(self._machines) > 1:
            for machine in self._machines:
                machine.hypotheses(x)
        for machine in self._machines:
            machine.learn_one(x, y)
        # The machines have learned: a predictor whose own fit fails must not keep the news from the others.
        failure: Exception | None = None
        for predictor in self._predictors.values():
            try:
                predictor.after_learning(x, y)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
