"""How predictors learn, in three phases: `prepare` before the machine learns, the machine, and `commit` after it."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, Self, TypeVar, get_type_hints

import numpy as np

from venn.labels import LabelSpace, Real
from venn.machines import frozen
from venn.machines.fit_ahead import Awaited
from venn.machines.machine import checked_machine, grown
from venn.machines.sparse import SparseRows, rows_of
from venn.machines.store import SparsePool
from venn.machines.tables import TableRows
from venn.machines.window import inside
from venn.parameters import with_methods
from venn.prediction import Bools, Floats, Integers, Label
from venn.saved import (
    Saved,
    StateCheck,
    arguments_of,
    checked_keys,
    restored_array,
    restored_finite,
    restored_int,
    restored_rows,
    same_content,
)
from venn.schedules import Schedule
from venn.turns import TakesTurns, asks, changes

# ------------------------------------------------------------------------------------------------------------- learning

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


def put(asked: Any, question: frozen.Query) -> Any:
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
        return self.machine.hypotheses(put(self.machine, x) if type(x) is frozen.Query else x)


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
            part.commit(put(part, x) if type(x) is frozen.Query else x, y, prepared)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


# -------------------------------------------------------------------------------------------------------------- history
# Keeps the examples so far, for later trainings.


class KeptExamples:
    """Objects and codes in the order in which they came. The first one decides whether all are kept sparse."""

    def __init__(self, space: LabelSpace) -> None:
        self.space = space
        self.n = 0
        self._X = np.zeros((0, 0))
        self._sparse: SparsePool | None = None
        self._codes = np.zeros(0, space.kept)

    def put(self, X: frozen.ObjectRows, codes: Integers) -> None:
        """Keep further examples."""
        n = self.n + len(X)
        if isinstance(X, TableRows):
            raise TypeError(f"X must be rows of numbers for a machine that is trained, got {X!r}")
        if n > len(self._codes):
            self._codes = grown(self._codes, 2 * n)
        if self.n == 0 and isinstance(X, SparseRows):
            self._sparse = SparsePool(X.features)
        if self._sparse is not None:
            self._sparse.put(self.n, X if isinstance(X, SparseRows) else rows_of(X))
            self._sparse.keep(n - 1)
        else:
            if n > len(self._X):
                self._X = grown(self._X.reshape(-1, X.shape[1]), 2 * n, X.shape[1])
            self._X[self.n : n] = X.toarray() if isinstance(X, SparseRows) else X
        self._codes[self.n : n] = codes
        self.n = n

    def first(self, n: int) -> tuple[Any, Integers]:
        """Return the first n objects, `SparseRows` where they are sparse, and codes."""
        return self._sparse.held(n) if n and self._sparse is not None else self._X[:n], self._codes[:n]

    def hold(self, n: int, X: Any, codes: Integers) -> bool:
        """Whether these are the examples after the first n, to the last bit; of sparse ones that is not looked at."""
        if self._sparse is not None or not isinstance(X, np.ndarray) or n + len(X) > self.n:
            return False
        part = slice(n, n + len(X))
        return self._X[part].tobytes() == X.tobytes() and self._codes[part].tobytes() == codes.tobytes()


class History:
    """The examples so far, for later trainings. Histories of one stream may share what they hold."""

    def __init__(self, space: LabelSpace) -> None:
        self.space = space
        self.n = 0
        self._held = KeptExamples(space)
        self._calibrates = np.zeros(0, np.bool_)

    @property
    def state(self) -> dict[str, Any]:
        """The examples so far."""
        return dict(zip(("X", "codes", "calibrates"), self.examples, strict=True))

    def restore(self, state: Any) -> None:
        """Take over the examples of a `state`, having none, or raise a ValueError."""
        checked_keys("history", state, ("X", "codes", "calibrates"))
        X, codes, calibrates = state["X"], state["codes"], state["calibrates"]
        n = restored_rows("codes", codes)
        if n:
            d = np.shape(X)[-1]
            restored_int("number of features", d, 1)
            if not (isinstance(X, SparseRows) and X.shape == (n, d)):  # SparseRows are checked when made
                restored_finite("X", X, (n, d))
            if not self.space.holds(restored_array("codes", codes, (n,), self.space.kept)):
                raise ValueError(f"codes must be those of {self.space.told}")
            self.append(X, codes, restored_array("calibrates", calibrates, (n,), np.bool_))
        elif any(restored_rows(name, value) for name, value in state.items()):
            raise ValueError("history must hold the examples learned, got some of none")

    def append(self, X: frozen.ObjectRows, codes: Integers, calibrates: Bools) -> None:
        """Keep examples, and whether each calibrated when it came."""
        n = self.n + len(X)
        if n == self.n:
            return
        if self._held.n > self.n and not self._held.hold(self.n, X, codes):  # from here on they differ
            before, self._held = self._held.first(self.n), KeptExamples(self.space)
            if self.n:
                self._held.put(*before)
        if self._held.n == self.n:
            self._held.put(X, codes)
        if n > len(self._calibrates):
            self._calibrates = grown(self._calibrates, 2 * n)
        self._calibrates[self.n : n] = calibrates
        self.n = n

    def share(self, other: History) -> None:
        """Hold examples together with another history, if both have the same ones."""
        if self.n == other.n and self.space == other.space and other._held.hold(0, *self._held.first(self.n)):
            self._held = other._held

    @property
    def examples(self) -> tuple[Any, Integers, Bools]:
        """(n, d) objects, `SparseRows` where they are sparse, (n,) class codes, (n,) whether they calibrated."""
        X, codes = self._held.first(self.n)
        return X, codes, self._calibrates[: self.n]


class AtSetTimes(Predictor):
    """Base of what keeps all examples until the last fit, and is fitted to them whenever a schedule says so."""

    n: int
    schedule: Schedule
    settled: Any  #: a function from the time of a fit to the number of its first examples; None: not known before
    _history: History | None
    _end: float = math.inf  # how many examples come, where that is known

    @property
    def times(self) -> Schedule:
        """It says when to fit."""
        return self.schedule

    @property
    def due(self) -> int | None:
        """Number of examples at the next fit; None if there is none."""
        return self._next.due

    def _look_forward(self) -> None:
        """Schedule the next fit, whose examples may be known early."""
        following = None if self._history is None else self.times.next_training(self.n)
        self._next = Awaited(following, self.settled)

    def foresee(self, examples: Sequence[Any], whole: bool = False) -> None:
        """Announce the examples that come next; where these are all, a fit due later begins when more have come."""
        if whole:
            self._end = self.n + len(examples)

    def _keep(self, rows: Any, codes: Any, calibrates: Bools) -> bool:
        """Keep the latest examples for the next fit, and make it if due; return whether it was."""
        if self._history is None:
            return False
        self._history.append(rows, codes, calibrates)
        if self.n == self.due:
            examples = self._history.examples
            self._look_forward()
            if self._next.due is None:
                self._history = None
            self._fit(*examples)
            return True
        due_later = self.n <= self._end < (self.due or 0)
        if not due_later and (known := self._next.known(self.n)):
            X, codes, _ = self._history.examples
            self._expect(X[:known], codes[:known])
        return False

    def _fit(self, X: Any, codes: Any, calibrated: Bools) -> None:
        """Fit to (n, d) objects and (n,) labels or class codes; which of them calibrated when they came."""
        raise NotImplementedError

    def _expect(self, X: Any, codes: Any) -> None:
        """Begin the next fit in another process if its examples are known early."""


def share_histories(predictors: Iterable[Any]) -> None:
    """Let predictors with the same examples share them; one that learns other examples later gets its own copy."""
    found = [one for predictor in predictors if isinstance(one := getattr(predictor, "_history", None), History)]
    for one in found[1:]:
        one.share(found[0])


def restored_history(name: str, state: Any, n: int) -> Any:
    """Return the state of a history of n examples, or None where there is none any more; or say what it must be."""
    if state is not None and restored_rows("codes", dict(state).get("codes")) != n:
        raise ValueError(f"{name} must hold the {n} examples learned, got {len(state['codes'])}")
    return state


def restored_features(name: str, features: Any, n: int, known: int | None = None) -> int | None:
    """Return the number of features, None before the first of n examples where it is not `known`; or say what it is."""
    if n and known is None:
        return restored_int(name, features, 1)
    if features != known:
        raise ValueError(f"{name} must be {known!r}, got {features!r}")
    return known


# -------------------------------------------------------------------------------------------------------------- merging
# Readers of calibration scores, and merging: the states of the parts make the state of the whole.


def checked_alike(one: Any, other: Any, parts: dict[str, tuple[Any, Any]]) -> None:
    """Refuse to merge objects that do not belong together.

    Parameters
    ----------
    one, other : objects to be merged
    parts : dict of str to pair
        What both must have in common, by the name that a message gives it; compared by repr.

    Raises
    ------
    TypeError
        They are of different classes.
    ValueError
        A part differs; the message names it.
    """
    if type(one) is not type(other):
        raise TypeError(
            f"other must be a {type(one).__name__}, to be merged with one, got a {type(other).__name__}: {other!r}"
        )
    for name, (own, others) in parts.items():
        if repr(own) != repr(others):
            raise ValueError(f"other must have the {name} {own!r}, to be merged, got {others!r}")


class MergingReader(ABC):
    """Base of what makes predictions from the scores of calibration examples, all by one scorer."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all calibration examples."""

    @abstractmethod
    def add(self, scores: Floats, codes: Integers) -> None:
        """Take in calibration examples of (n, c) scores and (n,) class codes."""

    @abstractmethod
    def predict(self, scores: Floats) -> Any:
        """Return the predictions for n objects of (n, c) scores, each as if it were alone; leaves no trace."""

    def predict_one(self, scores: Floats) -> Any:
        """Return the prediction for one object of (1, c) scores; leaves no trace."""
        return self.predict(scores)[0]

    def replay(self, scores: Floats, codes: Integers, calibrates: Bools) -> Any:
        """Predict each example in turn, then add it if it calibrates; return the predictions."""
        blocks = [self.predict(scores[:0])]
        for i in range(len(scores)):
            one = slice(i, i + 1)
            blocks.append(self.predict(scores[one]))
            if calibrates[i]:
                self.add(scores[one], codes[one])
        return self.join(blocks)

    @abstractmethod
    def nothing(self, n: int) -> Any:
        """Return the predictions for n objects before there is a scorer."""

    def join(self, blocks: list[Any]) -> Any:
        """Return one block of all, in order."""
        return type(blocks[0]).join(blocks)

    @property
    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The calibration examples."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Hold the calibration examples of a `state`, or raise a ValueError if it is not one."""


class Mergeable(MergingReader):
    """Base of readers whose parts can be merged into the whole.

    Merging makes a new reader and changes neither part. It answers like one that has received the examples of both, to
    the last bit, whatever the order and grouping of merges; a fresh one changes nothing.
    """

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, by name: attributes hold them."""
        return {name: getattr(self, name) for name in arguments_of(type(self))}

    @abstractmethod
    def take(self, state: dict[str, Any]) -> None:
        """Take in the calibration examples of the `state` of one with the same parameters."""

    #: What each part of the state is.
    holds: ClassVar[Mapping[str, StateCheck]] = {}

    def refuse(self, state: dict[str, Any]) -> None:
        """Raise a ValueError for what is no `state`."""
        checked_keys("state of the reader", state, self.state)
        for name, check in self.holds.items():
            check(name, state[name], self)

    def restore(self, state: dict[str, Any]) -> None:
        """Hold the calibration examples of a `state`, or raise a ValueError if it is not one."""
        self.refuse(state)
        self.clear()
        self.take(state)

    def fresh(self) -> Self:
        """Return a reader with the same parameters and no examples."""
        return type(self)(**self.parameters)

    def merge(self, other: Self) -> Self:
        """Return a new reader of the examples of both.

        Raises
        ------
        TypeError, ValueError
            They do not belong together.
        """
        parts = {}
        if type(other) is type(self):
            theirs = other.parameters
            parts = {name: (_plain(own), _plain(theirs[name])) for name, own in self.parameters.items()}
        checked_alike(self, other, parts)
        both = self.fresh()
        both.take(self.state)
        both.take(other.state)
        return both


def sorted_rows(*parts: Floats) -> Floats:
    """Return the rows of all arrays sorted by their columns, so that the order in which they came is lost."""
    rows = np.concatenate(parts)
    return rows[np.lexsort(rows.T[::-1])]


def _plain(value: Any) -> Any:
    # The repr of an array rounds.
    return value.tolist() if isinstance(value, np.ndarray) else value


class Calibration(NamedTuple):
    """What an inductive predictor keeps of its calibration examples."""

    reader: Any
    n: int  #: number of examples
    features: int | None  #: of their objects

    def merge(self, other: Calibration) -> Calibration:
        """Return the calibration of both together.

        Raises
        ------
        ValueError
            Their objects have different numbers of features.
        """
        if None not in (self.features, other.features) and self.features != other.features:
            raise ValueError(
                f"other must have seen objects of {self.features} features, to be merged, got {other.features}"
            )
        features = other.features if self.features is None else self.features
        return Calibration(self.reader.merge(other.reader), self.n + other.n, features)


def checked_parts(one: Any, other: Any) -> None:
    """Refuse to merge inductive predictors that differ in parameters or scorer, or depend on the order of examples.

    Raises
    ------
    TypeError, ValueError
        The message names the difference.
    """
    checked_alike(one, other, {})
    checked_unordered(other)
    _check_scorer(one.given, other.given)
    alike = type(other).made_of({**other.parameters, "machine": one.given})  # a machine's repr may hold an address
    checked_alike(one, alike, {"parameters of": (one, alike)})


def checked_unordered(predictor: Any) -> None:
    """Refuse a predictor that depends on the order of examples, since parts have no order."""
    if not predictor.schedule.alike:
        raise ValueError(
            f"{type(predictor).__name__} must have the schedule NoTraining(), to be merged: {predictor.schedule!r} "
            "lets examples train or calibrate by their order"
        )


def _check_scorer(one: Any, other: Any) -> None:
    # Compared by content: a scorer that was sent to another process is a copy.
    try:
        same = same_content(one, other)
    except Exception as error:
        raise ValueError(
            f"other must have the scorer {one!r}, to be merged, got one that cannot be compared with it: {error}"
        ) from error
    if not same:
        got = "one that prints the same, of another content" if repr(one) == repr(other) else repr(other)
        raise ValueError(f"other must have the scorer {one!r}, to be merged, got {got}")
