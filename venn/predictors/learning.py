"""How predictors learn, in three phases: `prepare` before the machine learns, the machine, and `commit` after it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar, get_type_hints

from venn.labels import Real
from venn.machines.machine import checked_machine
from venn.machines.objects import Query
from venn.machines.window import inside
from venn.parameters import with_methods
from venn.prediction import Label
from venn.saved import Saved
from venn.turns import TakesTurns, asks, changes

Said = TypeVar("Said")


class Predictor(TakesTurns, Saved):
    """Base of predictors: it builds `learn_one` from three phases; a subclass overrides those it needs.

    1. `prepare` refuses an example that cannot be learned, and returns what must be known from before learning.
    2. The machine learns, if the predictor reads one that others may read too.
    3. `commit` receives what `prepare` returned, and learns what the machine does not hold.

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
    ...     def prepare(self, x, y):
    ...         return self.classes.index(y)
    ...     def commit(self, x, y, prepared):
    ...         self.seen[prepared] += 1
    >>> model = Shares()
    >>> model.learn_one([0.3], "yes")
    >>> model.predict_one([0.3])["yes"]
    0.6666666666666666
    """

    learns = True
    #: Whether a `Query` may come in place of an object. What users write in subclasses of ours gets the object.
    questioned: ClassVar[bool] = False
    #: The machine that a panel teaches and shares; None for a predictor with machines of its own, or none.
    machine: Any = None
    #: The labels, in class order.
    classes: Any

    def __init_subclass__(cls, **named: Any) -> None:
        for name in ("predict_one", "prepare", "commit"):
            given_by = next(kind for kind in cls.__mro__ if name in vars(kind))
            if not given_by.__module__.startswith("venn."):
                cls.questioned = False
        super().__init_subclass__(**named)

    def _turns_with(self) -> Iterable[Any]:
        return (self.machine,)

    @asks
    def predict_one(self, x: Any) -> Any:
        """Return the prediction for `x`; leaves no trace."""
        raise NotImplementedError

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what `commit` needs from before the machine learns; raise what learning would raise."""
        return None

    def prepare_late(self, prepared: Any, told: Any, late: int) -> Any:
        """Return what `commit` needs of an example whose label came late; by default what `prepare` returned.

        Parameters
        ----------
        prepared : object
            What `prepare` has just returned.
        told : prediction
            What the predictor said when it was asked.
        late : int >= 1
            Number of examples learned between the question and its answer.
        """
        return prepared

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example that the machine has already learned."""

    @changes
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
        prepared = self.prepare(x, y)
        if self.machine is not None:
            self.machine.learn_one(x, y)
        self.commit(x, y, prepared)


def put(asked: Any, question: Query) -> Any:
    """Return what a predictor, or a machine, is asked about: the question, or the object that the user gave."""
    return question if getattr(asked, "questioned", False) else question.x


def checked_predictor(name: str, predictor: Any) -> Any:
    """Return the predictor, or say what is wrong with it."""
    methods = ("predict_one", "prepare", "learn_one", "commit")
    wanted = f"a predictor, with machine, classes, {', '.join(methods)}"
    return with_methods(name, predictor, wanted, *methods, has=["machine", "classes"])


def said_by(predictor: Any) -> type | None:
    """Return the class of a predictor's predictions; None if it is not known before the first one.

    Examples
    --------
    >>> import venn
    >>> said_by(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"]))).__name__
    'PredictionSet'
    """
    said = get_type_hints(type(predictor).combined if isinstance(predictor, Combined) else type(predictor).predict_one)
    if isinstance(said.get("return"), type) and said["return"] is not Any:
        return said["return"]
    told = getattr(predictor, "nothing", None)  # an inductive predictor's prediction before training
    if told is not None:
        return type(told)
    parts = getattr(predictor, "predictors", None) or [getattr(predictor, "predictor", None)]
    return None if parts[-1] is None else said_by(parts[-1])


class AroundPredictor(Predictor):
    """Base of predictors that wrap another one: they hold a copy of it, which learns here; its machine is shared."""

    #: The copy. Do not teach it.
    predictor: Any

    def _turns_with(self) -> Iterable[Any]:
        return (self.predictor,)

    def _hold(self, predictor: Any) -> None:
        """Hold a copy of the given predictor, with all it has learned."""
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

    def _prepared(self, x: Any, y: Label, prepared: Any) -> Any:
        """Return what was prepared before the machine learned. A predictor without a machine is prepared now."""
        if prepared is not None:
            return prepared
        if self.machine is not None:
            self._refuse_unprepared(x, y)
        return self.prepare(x, y)

    def _refuse_unprepared(self, x: Any, y: Label) -> NoReturn:
        """Let the inner predictor learn, then raise: the wrapper needs what `prepare` returned."""
        self.predictor.commit(x, y)
        raise RuntimeError(
            "commit needs what prepare(x, y) returned before the machine learned, got none: call learn_one, "
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

    def prepare(self, x: Any, y: Label) -> list[Any]:
        """Return what each part must know from before it learns, or refuse the example."""
        return [one.prepare(x, y) for one in self.predictors]

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Teach the parts what the machine does not hold."""
        try:
            teach_all(self.predictors, x, y, [None] * len(self.predictors) if prepared is None else prepared)
        finally:
            self.settle()

    def of(self, parts: Sequence[Any]) -> Self:
        """Return a combination of the same kind of other parts."""
        raise NotImplementedError

    def joined(self, other: Self, parts: Sequence[Any]) -> Self:
        """Return a combination whose parts have learned the examples of two combinations."""
        return self.of(parts)


def names_among(predictors: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the names of columns that a scorer inside these predictors was fitted to; None if there are none."""
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


class WeighsClasses(Predictor):
    """Base of predictors with a parameter `shift` that may be a `PriorShift`."""

    @asks
    def under(self, shift: Any) -> Self:
        """Return the same predictor under a prior shift, or none, having learned nothing."""
        own = {} if self.machine is None else {"machine": self.machine.fresh()}
        return self.made_of(self.parameters | own | {"shift": shift})


class OnMachine(Predictor):
    """Base of transductive predictors: everything learned is in the machine, which others may read too."""

    questioned = True

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes

    def of_machine(self, x: Any) -> Any:
        """Return the machine's answer about an object or a question."""
        return self.machine.hypotheses(put(self.machine, x) if type(x) is Query else x)


def of_classes(machine: Any, instead: str = "ConformalDistribution") -> Any:
    """Return a machine whose labels are classes; where they are numbers, name the predictor to use instead."""
    if isinstance(getattr(inside(machine), "space", None), Real):
        raise TypeError(f"machine must have classes for this predictor, got one of numbers, {machine!r}: use {instead}")
    return machine


def machine_of_classes(name: str, machine: Any) -> Any:
    """Return a machine that answers for every hypothesis about a class, or say what is wrong with it."""
    return of_classes(checked_machine(name, machine))


def teach_all(parts: Iterable[Any], x: Any, y: Label, notes: Iterable[Any]) -> None:
    """Let every part learn an example that its machine has learned, even if another fails; raise the first error.

    `x` may be a `Query`.
    """
    failure: Exception | None = None
    for part, prepared in zip(parts, notes, strict=True):
        try:
            part.commit(put(part, x) if type(x) is Query else x, y, prepared)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
