"""How predictors learn, in three phases: they note what they must, their machines learn, they learn the rest."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NoReturn, Self, TypeVar, get_type_hints

from venn.labels import Real
from venn.machines.machine import checked_machine
from venn.machines.window import inside
from venn.parameters import has_methods, with_methods
from venn.prediction import Label
from venn.saved import Saved
from venn.turns import TakesTurns

Said = TypeVar("Said")


class Predictor(TakesTurns, Saved):
    """Base of predictors: it builds `learn_one` from three phases; a subclass overrides those it needs.

    1. `note` refuses an example that cannot be learned, and returns what must be known from before learning.
    2. The machine learns, if the predictor reads one that others may read too.
    3. `after_learning` receives what `note` returned, and learns what the machine does not hold.

    A `Panel` goes through the same phases with all its predictors side by side. Your own predictor gives
    `classes`, `predict_one`, and those of the phases that it needs.

    Examples
    --------
    >>> class Shares(Predictor):
    ...     "The shares of the classes so far, whatever the object."
    ...     classes = ("no", "yes")
    ...     def __init__(self):
    ...         self.seen = [1, 1]
    ...     def predict_one(self, x):
    ...         return {label: seen / sum(self.seen) for label, seen in zip(self.classes, self.seen)}
    ...     def note(self, x, y):
    ...         return self.classes.index(y)
    ...     def after_learning(self, x, y, noted):
    ...         self.seen[noted] += 1
    >>> model = Shares()
    >>> model.learn_one([0.3], "yes")
    >>> model.predict_one([0.3])["yes"]
    0.6666666666666666
    """

    learns = True
    #: The machine that a panel teaches and shares; None for a predictor with machines of its own, or none.
    machine: Any = None
    #: The labels, in class order.
    classes: Any

    def _turns_with(self) -> Iterable[Any]:
        return (self.machine,)

    def predict_one(self, x: Any) -> Any:
        """Return the prediction for `x`; leaves no trace."""
        raise NotImplementedError

    def expect(self, objects: Sequence[Any]) -> None:
        """Prepare for objects that have arrived, before their turns come; no answer depends on it.

        A predictor with a given scorer scores them in one call. Nothing is refused here: what is wrong with an object
        is said in its turn.
        """

    def note(self, x: Any, y: Label) -> Any:
        """Return what `after_learning` needs from before the machine learns; raise what learning would raise."""
        return None

    def note_late(self, noted: Any, told: Any, late: int) -> Any:
        """Return what to note of an example whose label came late; by default what was noted.

        Parameters
        ----------
        noted : object
            What `note` has just returned.
        told : prediction
            What the predictor said when it was asked.
        late : int >= 1
            Number of examples learned between the question and its answer.
        """
        return noted

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Learn one example that the machine has already learned."""

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example.

        Raises
        ------
        ValueError, TypeError
            For a bad object or label; nothing is learned.
        NotConverged
            The machine cannot be solved: nothing is learned. Or the predictor's own fit fails: the example is
            learned.
        """
        noted = self.note(x, y)
        if self.machine is not None:
            self.machine.learn_one(x, y)
        self.after_learning(x, y, noted)


def checked_predictor(name: str, predictor: Any) -> Any:
    """Return the predictor, or say what is wrong with it."""
    methods = ("predict_one", "note", "learn_one", "after_learning")
    wanted = f"a predictor, with machine, classes, {', '.join(methods)}"
    return with_methods(name, predictor, wanted, *methods, has=["machine", "classes"])


def said_by(predictor: Any) -> type | None:
    """Return the class of a predictor's predictions; None where nobody knows before it is asked.

    Examples
    --------
    >>> import venn
    >>> said_by(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"]))).__name__
    'PredictionSet'
    """
    said = get_type_hints(type(predictor).combined if isinstance(predictor, Combined) else type(predictor).predict_one)
    if isinstance(said.get("return"), type) and said["return"] is not Any:
        found: type = said["return"]
        return found
    told = getattr(predictor, "nothing", None)  # of an inductive one, before it is trained
    if told is not None:
        return type(told)
    parts = getattr(predictor, "predictors", None) or [getattr(predictor, "predictor", None)]
    return None if parts[-1] is None else said_by(parts[-1])


class AroundPredictor(Predictor):
    """Base of predictors around another one: they hold a copy of it, which learns here; its machine is shared."""

    #: The copy. Do not teach it.
    predictor: Any

    def _turns_with(self) -> Iterable[Any]:
        return (self.predictor,)

    def _hold(self, predictor: Any) -> None:
        """Hold a copy of a predictor that a constructor was given, with all it has learned."""
        self.predictor = copied_predictor("predictor", predictor)

    @property
    def machine(self) -> Any:
        """The machine that the predictor reads now, or None."""
        return self.predictor.machine

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a predictor around this one, which is not copied."""
        thing = super().made_of(parameters)
        thing.predictor = parameters["predictor"]
        return thing

    def expect(self, objects: Sequence[Any]) -> None:
        """Pass objects that have arrived on to the predictor."""
        expect_all([self.predictor], objects)

    def _noted(self, x: Any, y: Label, noted: Any) -> Any:
        """Return what was noted before the machine learned; nobody else teaches a predictor without a machine."""
        if noted is not None:
            return noted
        if self.machine is not None:
            self._refuse_unnoted(x, y)
        return self.note(x, y)

    def _refuse_unnoted(self, x: Any, y: Label) -> NoReturn:
        """Let the predictor learn, and say that what stands around it lacks what `note` returns."""
        self.predictor.after_learning(x, y)
        raise RuntimeError(
            "after_learning needs what note(x, y) returned before the machine learned, got none: call learn_one, "
            "or learn in a Panel"
        )


def copied_predictor(name: str, predictor: Any) -> Any:
    """Return a copy of a predictor, with all it has learned; its machine is shared."""
    machine = checked_predictor(name, predictor).machine
    return copy.deepcopy(predictor, {} if machine is None else {id(machine): machine})


class Combined(Predictor, Generic[Said]):
    """Base of predictors that combine the predictions of others, their parts.

    By itself it asks and teaches its parts; a `Panel` does that for it, each part once, whoever else holds it.
    """

    #: The parts, all of which learn.
    predictors: tuple[Any, ...]

    def _turns_with(self) -> Iterable[Any]:
        return self.predictors

    @property
    def n(self) -> int:
        """Number of examples learned, including those that a window has forgotten."""
        return self.predictors[0].n if self.machine is None else self.machine.learned

    @property
    def asked(self) -> tuple[Any, ...]:
        """The parts that predict now."""
        return self.predictors

    def settle(self) -> bool:
        """Drop parts that are not needed any more, after all have learned; return whether there were any."""
        return any([part.settle() for part in self.predictors if isinstance(part, Combined)])

    def combined(self, predictions: Sequence[Any]) -> Said:
        """Return the prediction made of the predictions of those asked, in their order."""
        raise NotImplementedError

    def combined_many(self, blocks: Sequence[Any]) -> Any:
        """Return the predictions for many objects, made of those of each predictor asked, one for each object."""
        return [self.combined(each) for each in zip(*blocks, strict=True)]

    def predict_one(self, x: Any) -> Said:
        """Return the prediction for `x`; leaves no trace.

        Parameters
        ----------
        x : object
            Any object that the parts take.
        """
        return self.combined([one.predict_one(x) for one in self.asked])

    def note(self, x: Any, y: Label) -> list[Any]:
        """Return what each part must know from before it learns, or refuse the example."""
        return [one.note(x, y) for one in self.predictors]

    def after_learning(self, x: Any, y: Label, noted: Any = None) -> None:
        """Teach the parts what the machine does not hold."""
        try:
            teach_all(self.predictors, x, y, [None] * len(self.predictors) if noted is None else noted)
        finally:
            self.settle()

    def of(self, parts: Sequence[Any]) -> Self:
        """Return the same combination of other parts."""
        raise NotImplementedError

    def joined(self, other: Self, parts: Sequence[Any]) -> Self:
        """Return a combination of parts that have learned what those of two combinations have."""
        return self.of(parts)


def names_among(predictors: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the columns of the table that a scorer inside these predictors was fitted to; None if nobody knows any."""
    for predictor in elementary(predictors):
        within = getattr(predictor, "predictor", None)
        names = names_among([within]) if isinstance(within, Predictor) else getattr(predictor, "feature_names", None)
        if names is not None:
            return names
    return None


def elementary(predictors: Iterable[Any], *, asked: bool = False) -> list[Any]:
    """Return the distinct predictors that combine no others, in order: combinations are replaced by their parts.

    All parts learn; those `asked` are the ones that predict now.
    """
    found: dict[int, Any] = {}
    for predictor in predictors:
        inside = [predictor]
        if isinstance(predictor, Combined):
            inside = elementary(predictor.asked if asked else predictor.predictors, asked=asked)
        found |= {id(one): one for one in inside}
    return list(found.values())


class OnMachine(Predictor):
    """Base of transductive predictors: everything learned is in the machine, which others may read too."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes


def of_classes(machine: Any, instead: str = "ConformalDistribution") -> Any:
    """Return a machine whose labels are classes; where they are numbers, name the predictor to use instead."""
    if isinstance(getattr(inside(machine), "space", None), Real):
        raise TypeError(f"machine must have classes for this predictor, got one of numbers, {machine!r}: use {instead}")
    return machine


def machine_of_classes(name: str, machine: Any) -> Any:
    """Return a machine that answers for every hypothesis about a class, or say what is wrong with it."""
    return of_classes(checked_machine(machine))


def teach_all(parts: Iterable[Any], x: Any, y: Label, notes: Iterable[Any]) -> None:
    """Let every part learn an example that its machine has learned, even if another fails; raise the first error."""
    failure: Exception | None = None
    for part, noted in zip(parts, notes, strict=True):
        try:
            part.after_learning(x, y, noted)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


def expect_all(predictors: Iterable[Any], objects: Sequence[Any]) -> None:
    """Let each predictor prepare for objects that have arrived; a user's own may have no method for that."""
    for predictor in predictors:
        if has_methods(predictor, "expect"):
            predictor.expect(objects)
