"""Many predictors side by side on one stream, each machine is solved once and learns once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from venn.labels import HasLabels, space_of
from venn.machines.views import taught
from venn.parameters import has_methods
from venn.prediction import Label, Prediction
from venn.predictors.learning import Combined, Predictor, checked_predictor, elementary, expect_all, teach_all
from venn.saved import Saved, saved


@saved
class Panel(HasLabels, Saved, Mapping[str, Predictor]):
    """Several predictors on one stream.

    Predictors that hold the same machine object share it: its hypotheses are solved once a step
    and the label is learned once. The same holds of predictors on members and mixtures of one `Bank`,
    and of predictors that also stand inside an `Averaged`.

    Parameters
    ----------
    **predictors : Predictor
        Names and predictors, in the order of display. All must have the same classes.
        Each predictor object has one name. Machines may be shared or not.

    Attributes
    ----------
    classes : tuple of labels
    space : LabelSpace
        What labels may be.

    Raises
    ------
    TypeError
        A predictor without a name, a value that is not a predictor, or a machine without `check`.
    ValueError
        No predictor, one predictor under two names, or classes that differ.

    Notes
    -----
    A refused example leaves every machine and predictor as it was: everything that can refuse it, a machine's `check`
    and a predictor's `note`, comes before anything learns, and several machines solve before any learns.

    Examples
    --------
    A predictor that counts labels only, alone in a panel:

    >>> import numpy as np
    >>> from venn.prediction import Forecast
    >>> from venn.predictors import Predictor
    >>> class Frequencies(Predictor):
    ...     classes = ("no", "yes")
    ...     def __init__(self):
    ...         self.counts = np.ones(2)
    ...     def predict_one(self, x):
    ...         return Forecast(self.counts / self.counts.sum(), self.classes)
    ...     def after_learning(self, x, y, noted=None):
    ...         self.counts[self.classes.index(y)] += 1
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
            checked_predictor(predictor, name)
            if predictor.machine is not None and not has_methods(predictor.machine, "check", "learn_one"):
                raise TypeError(f"{name} must read a machine with check and learn_one, got {predictor.machine!r}")
        first, *others = predictors
        self.space = space_of(predictors[first])
        seen = {id(predictors[first]): first}
        for name in others:
            space = space_of(predictors[name])
            if space != self.space:
                raise ValueError(
                    f"predictors must have the same classes, got {self.space.told} in {first}, {space.told} in {name}"
                )
            twin = seen.setdefault(id(predictors[name]), name)
            if twin != name:
                raise ValueError(f"{twin} and {name} are the same predictor object: it would learn twice")
        self._predictors = predictors
        self._learners = elementary(predictors.values())

    @property
    def parameters(self) -> dict[str, Any]:
        """The predictors by name."""
        return dict(self)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Panel:
        """Return a panel of these predictors."""
        return cls(**parameters)

    @property
    def machines(self) -> tuple[Any, ...]:
        """The distinct machines, each once: those that the predictors read now."""
        machines = (taught(predictor.machine) for predictor in self._learners)
        found = {id(machine): machine for machine in machines if machine is not None}
        return tuple(found.values())

    def __getitem__(self, name: str) -> Predictor:
        return self._predictors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._predictors)

    def __len__(self) -> int:
        return len(self._predictors)

    # Two panels are never equal: their contents learn.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={predictor!r}" for name, predictor in self._predictors.items())
        return f"Panel({inside})"

    def predict_one(self, x: Any) -> dict[str, Prediction]:
        """Return the prediction of every predictor by name; nothing is learned."""
        said: dict[int, Prediction] = {}
        return {name: self._said(predictor, x, said) for name, predictor in self._predictors.items()}

    def _said(self, predictor: Any, x: Any, said: dict[int, Prediction]) -> Prediction:
        """Return a prediction, made once: `said` has those made so far, by the predictor's identity."""
        if id(predictor) not in said:
            if isinstance(predictor, Combined):
                parts = [self._said(part, x, said) for part in predictor.asked]
                said[id(predictor)] = predictor.combined(parts)
            else:
                said[id(predictor)] = predictor.predict_one(x)
        return said[id(predictor)]

    def expect(self, objects: Sequence[Any]) -> None:
        """Let predictors take notice of objects that have arrived: given scorers score them in one call.

        No answer depends on it, and nothing is refused: what is wrong with an object is said in its turn.
        """
        expect_all(self._learners, objects)

    def note(self, x: Any, y: Label) -> list[Any]:
        """Return what the predictors note before anything learns; raise what `learn_one(x, y)` would raise.

        All machines solve their problems, so that learning can begin.
        """
        noted = self._noted(x, y)
        for machine in self.machines:
            machine.hypotheses(x)
        return noted

    def _noted(self, x: Any, y: Label) -> list[Any]:
        self.space.check(y)
        for machine in self.machines:
            machine.check(x, y)
        return [predictor.note(x, y) for predictor in self._learners]

    def learn_one(self, x: Any, y: Label, noted: list[Any] | None = None) -> None:
        """Teach every distinct machine once, then every predictor.

        Parameters
        ----------
        x : object
        y : one of `classes`
        noted : optional
            What `note(x, y)` has just returned.

        Raises
        ------
        ValueError
            The label is not one of the classes, or a machine refuses the example. Nothing is learned.
        NotConverged
            A machine cannot be solved: nothing is learned. Or a scaler's own fit fails: the machines and all
            other predictors have learned the example.
        """
        # Only solving can still fail: several machines solve before any learns; a single one solves as it learns.
        if noted is not None and (type(noted) is not list or len(noted) != len(self._learners)):
            raise ValueError(f"noted must be what note(x, y) returned, got {noted!r}")
        if noted is None:
            noted = self.note(x, y) if len(self.machines) > 1 else self._noted(x, y)
        for machine in self.machines:
            machine.learn_one(x, y)
        try:
            teach_all(self._learners, x, y, noted)
        finally:
            if any([one.settle() for one in self._predictors.values() if isinstance(one, Combined)]):
                self._learners = elementary(self._predictors.values())
