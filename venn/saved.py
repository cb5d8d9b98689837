"""Declares an object once: what its constructor takes, what it learns, and what must hold of both.

    @component
    class Streak(Saved):
        most: int = param(integer, 1, default=10)
        _hits: Floats = state(restored_finite, own(lambda s: (s.most,)), start=own(lambda s: np.zeros(s.most)))

        def derive(self) -> None:
            self._sum = self._hits.sum()  # what follows from the fields is in no file

From this follow the constructor with its checks, repr, equality, fresh and other copies, pickles, files and merging.
An annotated name in the body of such a class is a field, as in a dataclass; other class attributes have no annotation,
or `ClassVar`. A class whose constructor takes any number of parts, such as `Panel`, is `saved` instead, and gives
`parameters`, `state` and `restore` by hand.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, ForwardRef, Literal, NamedTuple, Self, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from venn.turns import asks, changes

#: The only classes whose objects a file may hold, by name. `saved` adds each class where it is defined.
KINDS: dict[str, type] = {}

Kind = TypeVar("Kind", bound=type)
Made = TypeVar("Made", bound="Saved")
MISSING: Any = dataclasses.MISSING
LISTED = "classes", "class_weights", "kernel"  # parameters that `repr` shows as lists
GATHERED = np.ndarray, list, dict, set, deque  # what is copied into a state, and out of it


def saved(kind: Kind) -> Kind:
    """Class decorator: allow objects of the class in files.

    A class that learns is a `Saved` as well. Any other class keeps only its constructor's arguments, read from
    the attributes of the same names.
    """
    known = KINDS.get(kind.__name__, kind)
    # The same class once more, as a notebook defines it whose cell is run again, takes the place of the first.
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(
            f"a class that files hold must have a name of its own, got {kind.__name__}, as in {known.__module__}"
        )
    KINDS[kind.__name__] = kind
    return kind


#: Packages with classes whose objects a file may hold.
ROOMS = (
    "venn.machines", "venn.taxonomies", "venn.nonconformity", "venn.maps", "venn.schedules", "venn.predictors",
    "venn.prediction", "venn.distribution", "venn.shifts", "venn.decisions", "venn.monitors",
    "venn.series", "venn.online",
)  # fmt: skip


def kind_named(name: str) -> type | None:
    """Return the class that a file names, imported if necessary; None if there is none."""
    if name not in KINDS:
        public = [(room, one) for room in map(import_module, ROOMS) for one in room.__all__]
        # Classes without a public name, such as what a map returns, are in the modules of public ones.
        for room, one in [(room, one) for room, one in public if one == name] or public:
            getattr(room, one)
    return KINDS.get(name)


def is_saved(thing: Any) -> bool:
    """Whether a file may hold objects of exactly this class, not of a subclass."""
    return KINDS.get(type(thing).__name__) is type(thing)


# ---------------------------------------------------------------------------------- declarations


class own:
    """Marks a function of the object whose result is an argument of a check, or the start of a state."""

    __slots__ = ("of",)

    def __init__(self, of: Callable[[Any], Any]) -> None:
        self.of = of


#: A number, or how an object gives it: the path of an attribute that is a number or has a length, or an `own`.
Known: TypeAlias = "int | str | own"


def known(number: Known, thing: Any) -> int:
    """Return the number that `Known` describes for an object."""
    if isinstance(number, own):
        return int(number.of(thing))
    found: Any = attrgetter(number)(thing) if isinstance(number, str) else number
    return -1 if found is None else len(found) if hasattr(found, "__len__") else int(found)


class StateCheck(ABC):
    """The declaration of a part of a state: it checks the value that a file brings."""

    @abstractmethod
    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the value, of a state of `thing`, or raise a ValueError that says what it must be."""


class array(StateCheck):
    """Checks an array: its shape and entries, and the range of indices, which compiled loops do not check.

    Parameters
    ----------
    shape : int, str, own or None
        The length in each dimension, or what knows it; None: any.
    of : dtype, default float64
    least, below : int, str or own
        The range of whole numbers.
    finite : bool, optional
        Of real ones: they are finite; False: they may be infinite; None: they may be NaN as well.
    none : bool, default False
        There may be none.

    Examples
    --------
    >>> class Groups: count = 2
    >>> array(None, of=np.int64, below="count")("members", np.array([0, 1, 1]), Groups())
    array([0, 1, 1])
    """

    def __init__(
        self, *shape: Known | None, of: Any = np.float64, least: Known = 0, below: Known | None = None,
        finite: bool | None = True, none: bool = False,
    ) -> None:  # fmt: skip
        self.shape, self.of, self.least, self.below, self.finite = shape, of, least, below, finite
        self.none = none

    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the array, or say what it must be."""
        if value is None and self.none:
            return value
        there = np.shape(value) if np.ndim(value) == len(self.shape) else (0,) * len(self.shape)
        shape = tuple(
            length if wanted is None else known(wanted, thing) for wanted, length in zip(self.shape, there, strict=True)
        )
        if self.below is not None:
            return restored_codes(name, value, shape, known(self.least, thing), known(self.below, thing), self.of)
        found = restored_array(name, value, shape, self.of)
        if self.finite and found.dtype.kind == "f":
            return restored_finite(name, found, shape)
        if self.finite is False and np.isnan(found).any():
            raise ValueError(f"{name} must be numbers, got NaN")
        return found


class part(StateCheck):
    """Checks an object of one of some classes: its attributes must fit the object around it.

    Parameters
    ----------
    kinds : types
    none : bool, default True
        Whether there may be none.
    alike : Known
        By name of the part's attribute: what it must equal.
    """

    def __init__(self, *kinds: type, none: bool = True, **alike: Known) -> None:
        self.kinds, self.none, self.alike = kinds, none, alike

    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the object, or say what it must be."""
        if value is None and self.none:
            return value
        wanted = {of.replace("__", "."): known(number, thing) for of, number in self.alike.items()}
        if not isinstance(value, self.kinds) or any(known(of, value) != number for of, number in wanted.items()):
            what = " or ".join(kind.__name__ for kind in self.kinds) + "".join(f", {k} {v}" for k, v in wanted.items())
            raise ValueError(f"{name} must be a {what}{', or None' if self.none else ''}, got {value!r}")
        return value


class each(StateCheck):
    """Checks a list, tuple or deque whose members all pass one check.

    Parameters
    ----------
    member : StateCheck
    count : Known, optional
        How many there are.
    of : type, default list
    """

    def __init__(self, member: StateCheck, count: Known | None = None, of: Any = list) -> None:
        self.member, self.count, self.of = member, count, of

    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the list, or say what it must be."""
        count = None if self.count is None else known(self.count, thing)
        if type(value) is not self.of or count not in (None, len(value)):
            many = "" if count is None else f" of {count}"
            raise ValueError(f"{name} must be a {self.of.__name__}{many}, got {value!r}")
        for one in value:
            self.member(name, one, thing)
        return value


class twin(StateCheck):
    """An object with the parameters of one that the object around it knows."""

    def __init__(self, pattern: own) -> None:
        self.pattern = pattern

    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the object, or say what it must be."""
        return restored_twin(name, value, self.pattern.of(thing))


class code(StateCheck):
    """A whole number from 0 on, below what the object knows."""

    def __init__(self, below: Known) -> None:
        self.below = below

    def __call__(self, name: str, value: Any, thing: Any) -> Any:
        """Return the number, or say what it must be."""
        return restored_int(name, value, 0, known(self.below, thing) - 1)


class Field(NamedTuple):
    """What was declared of one parameter or part of the state."""

    attribute: str
    name: str  #: in messages, files and states: without an underscore in front
    check: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    start: Any
    learned: bool
    foreign: bool
    sized: bool = False
    within: bool = False
    unsaid: Callable[[Any], bool] | None = None

    def checked(self, value: Any, thing: Any) -> Any:
        """Return the value as the object keeps it, or raise what the check raises."""
        if self.check is None:
            return value
        if isinstance(self.check, StateCheck):
            return self.check(self.name, value, thing)
        if not self.arguments:
            return self.check(self.name, value)
        return self.check(self.name, value, *[one.of(thing) if type(one) is own else one for one in self.arguments])


def param(
    check: Callable[..., Any] | None = None, *arguments: Any, default: Any = MISSING, kw_only: bool = False,
    foreign: bool = False, sized: bool = False, kept_as: str = "", unsaid: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """Declare a parameter of the constructor, which the object keeps under the same name.

    Parameters
    ----------
    check : function, optional
        Called as check(name, value, *arguments). It returns what the object keeps, or raises an error that names the
        parameter, the requirement and the value. Those of `venn.parameters` serve.
    arguments
        Of the check; `own(...)` for one that reads fields declared before.
    default
        It is checked like any other value.
    kw_only : bool
        It is given by name: for those of a base class, after which a subclass has its own.
    foreign : bool
        The value is a user's own estimator: a file only describes it, and `load(path, models=...)` is given it.
    sized : bool
        The object allocates room for so many: a file with fewer bytes is damaged.
    kept_as : str, optional
        The attribute that keeps it, where its own name says something else of the object, as `machine` of a predictor.
    unsaid : function, optional
        Takes the value, and returns whether `repr` leaves it out; None is left out in any case.
    """
    about = Field(kept_as, "", check, arguments, None, False, foreign, sized, unsaid=unsaid)
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"declared": about})


def state(
    check: Callable[..., Any] | None = None, *arguments: Any, start: Any, foreign: bool = False, within: bool = False,
    init: Literal[False] = False,
) -> Any:  # fmt: skip
    """Declare a part of what the object learns.

    Parameters
    ----------
    check : function, optional
        As in `param`, for values that come from a file: types, shapes, and for indices what they point into.
    arguments
        Of the check, as in `param`. Those that compare with a pattern compare with the start, if none is given.
    start
        The value before anything is learned; `own(...)` for one that a function of the object makes, such as an array.
    foreign : bool
        As in `param`.
    within : bool
        The value learns, or is a list of what learns, and no file holds it by itself: its own `state` is part of the
        object's, and its `restore` takes it back. The check is of that state; a state of None drops the value.
    """
    if check in (restored_like, restored_twin) and not arguments:
        arguments = (start,)
    about = Field("", "", check, arguments, start, True, foreign, within=within)
    return dataclasses.field(init=init, default=None, metadata={"declared": about})


# ----------------------------------------------------------------------------------- the base


class Saved:
    """Base of what has parameters, may learn, and can be saved with all that it has learned.

    Files, journals, pickle, `copy` and comparisons of content all use these methods.
    """

    #: Parameters and parts of the state that hold a user's own estimators. A file only says which they are.
    foreign: ClassVar[frozenset[str]] = frozenset()
    #: Parameters for which a constructor allocates room: a file with fewer bytes is damaged.
    sized: ClassVar[frozenset[str]] = frozenset()
    #: Parameters of the constructor that an attribute of another name holds, with that name.
    held_as: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Number of leading parameters that `repr` shows without their names.
    unnamed: ClassVar[int] = 1
    #: Whether it learns, and so is equal to itself alone: whatever has a state, and what learns by its parts.
    learns: ClassVar[bool] = False
    #: The fields that `component` has found: parameters, and parts of the state.
    declared: ClassVar[tuple[Field, ...]] = ()
    learned_as: ClassVar[tuple[Field, ...]] = ()

    def __post_init__(self) -> None:
        for field in self.declared:  # not by vars(), which would make all attributes slower
            value = getattr(self, field.name)
            if field.attribute != field.name:
                delattr(self, field.name)
            setattr(self, field.attribute, field.checked(value, self))
        for field in self.learned_as:
            start = field.start
            setattr(self, field.attribute, start.of(self) if type(start) is own else start)
        self.derive()

    def derive(self) -> None:
        """Compute what follows from parameters and state: the constructor calls this, and whoever restores a state."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor takes, by name."""
        held_as = dict(self.held_as)
        return {name: getattr(self, held_as.get(name, name)) for name in arguments_of(type(self))}

    @property
    @asks
    def state(self) -> dict[str, Any]:
        """What was learned, as arrays, plain values and objects that can be saved; not what follows from these."""
        return {field.name: _as_saved(getattr(self, field.attribute), field.within) for field in self.learned_as}

    def __repr__(self) -> str:
        try:
            parameters = self.parameters
        except AttributeError:  # nobody knows where a user's own class holds them
            return object.__repr__(self)
        unsaid = {field.name: field.unsaid for field in self.declared if field.unsaid}
        given = {
            name: _listed(v) if name in LISTED else v
            for name, v in parameters.items()
            if v is not None and not (name in unsaid and unsaid[name](v))
        }
        each = [f"{'' if place < self.unnamed else f'{name}='}{v!r}" for place, (name, v) in enumerate(given.items())]
        return f"{type(self).__name__}({', '.join(each)})"

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return one with these parameters that has learned nothing; the constructor says what is wrong with them."""
        checked_keys("parameters", parameters, arguments_of(cls))
        return cls(**parameters)

    @changes
    def restore(self, state: dict[str, Any]) -> None:
        """Bring an object into this state, whatever it has learned.

        Raises
        ------
        ValueError
            No object with these parameters can be in that state: nothing changes. Where a class restores by hand,
            parts of it may have changed: do not use the object any more.
        """
        checked_keys("state", state, self.state)
        if not self.learned_as:
            return
        given = state if isinstance(state, Given) else deepcopy(state)  # what another object holds goes on there
        before = [(field.attribute, getattr(self, field.attribute)) for field in self.learned_as]
        try:
            for field in self.learned_as:
                value = field.checked(given[field.name], self)
                own = getattr(self, field.attribute)
                setattr(self, field.attribute, _taken(field.name, own, value) if field.within else _copied(value))
            self.derive()
        except BaseException:
            for attribute, value in before:
                setattr(self, attribute, value)
            self.derive()
            raise

    def fresh(self) -> Self:
        """Return one with the same parameters that has learned nothing."""
        return self.made_of(
            {name: one.fresh() if getattr(one, "learns", False) else one for name, one in self.parameters.items()}
        )

    def __copy__(self) -> Self:
        # Of two that share what learns, each would learn only half of it when the other is taught.
        return deepcopy(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if is_saved(self):
            return made_again, (type(self), self.parameters, self.state)
        return super().__reduce_ex__(protocol)


@dataclass_transform(eq_default=False, field_specifiers=(param, state))
def component(kind: type[Made]) -> type[Made]:
    """Class decorator: let files hold a class, and make its constructor, repr, equality and copies of its fields."""
    return saved(base(kind))


@dataclass_transform(eq_default=False, field_specifiers=(param, state))
def base(kind: type[Made]) -> type[Made]:
    """Class decorator: the same for a base class, whose fields the components below it have; it is in no file."""
    made = dataclasses.dataclass(eq=False, repr=False)(kind)
    fields = []
    for field in dataclasses.fields(made):  # type: ignore[arg-type]
        about: Field = field.metadata.get("declared", Field("", "", None, (), None, False, False))
        fields.append(about._replace(attribute=about.attribute or field.name, name=field.name.lstrip("_")))
        (owner, *_) = (one for one in made.__mro__ if field.name in vars(one).get("__annotations__", ()))
        if owner.__module__ != made.__module__ and isinstance(field.type, str) and field.init:
            # Names in the type are those of the module where it was written.
            made.__init__.__annotations__[field.name] = ForwardRef(field.type, module=owner.__module__)
    made.declared = tuple(field for field in fields if not field.learned)
    made.learned_as = tuple(field for field in fields if field.learned)
    made.learns = made.learns or bool(made.learned_as)
    if "__eq__" not in vars(kind) and kind.__hash__ is not None:  # else its base compares content that changes
        equal, hashed = (object.__eq__, object.__hash__) if made.learns else (_equal, _hash)
        made.__eq__, made.__hash__ = equal, hashed  # type: ignore[method-assign, assignment]
    made.foreign = frozenset(field.name for field in fields if field.foreign)
    made.sized = frozenset(field.name for field in fields if field.sized)
    made.held_as = tuple((field.name, field.attribute) for field in made.declared if field.attribute != field.name)
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same structure and content: parameters of components, arrays, plain values.

    Examples
    --------
    >>> same({"a": np.arange(3)}, {"a": np.arange(3)}), same((1, 2.0), (1, 2.5)), same(1, 1.0)
    (True, False, False)
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Saved):
        return same(one.parameters, other.parameters)
    return bool(one == other)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, tuple) else value


def _copied(value: Any) -> Any:
    return copy(value) if isinstance(value, GATHERED) else value


def _as_saved(value: Any, within: bool) -> Any:
    """Return a part of an object as its state has it."""
    if not within or value is None:
        return _copied(value)
    return [one.state for one in value] if isinstance(value, list) else value.state


def _taken(name: str, own: Any, held: Any) -> Any:
    """Return what learns within an object, after it has taken over its state; None where that is None."""
    if held is None:
        return None
    if isinstance(own, list) and isinstance(held, list) and len(own) == len(held):
        return [_taken(name, one, state) for one, state in zip(own, held, strict=True)]
    if not isinstance(held, Mapping) or not hasattr(own, "restore"):
        raise ValueError(f"{name} must be the state of {own!r}, got {held!r}")
    own.restore(Given(held))
    return own


def _equal(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and same(one.parameters, other.parameters))


def _hash(one: Any) -> int:
    return hash((type(one), *one.parameters.values()))


def _arguments_of(kind: Any) -> tuple[str, ...]:
    """Return the names of a constructor's parameters; what `*args` and `**kwargs` pass on are those of the base."""
    parameters = inspect.signature(kind).parameters.values()
    named = [one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    if len(named) < len(parameters):
        making = [one for one in kind.__mro__ if "__init__" in vars(one)]
        named += [name for name in arguments_of(making[1]) if name not in named]
    return tuple(named)


# A class keeps its constructor, and a checkpoint asks for it hundreds of times.
arguments_of: Callable[[Any], tuple[str, ...]] = cache(_arguments_of)


def taken_apart(thing: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the state of an object whose class can be saved."""
    if isinstance(thing, Saved):
        return thing.parameters, thing.state
    return {name: getattr(thing, name) for name in arguments_of(type(thing))}, {}


class Given(dict[str, Any]):
    """A state that nobody else holds, as of a file or a pickle: its objects are taken over, not copied."""


def made_again(kind: type, parameters: dict[str, Any], state: dict[str, Any]) -> Any:
    """Return an object with these parameters and state, or raise ValueError if none can have them."""
    thing: Any
    if issubclass(kind, Saved):
        thing = kind.made_of(parameters)
        thing.restore(Given(state))
        return thing
    checked_keys("parameters", parameters, arguments_of(kind))
    checked_keys("state", state, ())
    thing = kind(**parameters)
    if dataclasses.is_dataclass(thing):
        _check_fields(thing)
    return thing


def _check_fields(thing: Any) -> None:
    """Refuse a dataclass whose numbers and arrays do not match its fields: its constructor does not check."""
    kinds = {"float": float, "int": int, "str": str, "Floats": np.ndarray}
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if field.type in kinds and type(value) is not kinds[str(field.type)]:
            raise ValueError(f"{field.name} must be of type {field.type}, got {value!r}")


def mergeable(one: Any, other: Any) -> None:
    """Refuse to merge objects of different kinds or parameters."""
    if type(other) is not type(one):
        raise TypeError(f"other must be a {type(one).__name__}, to be merged with one, got {other!r}")
    if repr(other) != repr(one):
        raise ValueError(f"other must have the parameters of {one!r}, to be merged with it, got {other!r}")


# ------------------------------------------------------------------- what must hold of a state


def checked_keys(what: str, found: Mapping[str, Any], wanted: Iterable[str]) -> None:
    """Refuse a dict with other keys, or anything that is not a dict."""
    if not isinstance(found, Mapping):
        raise TypeError(f"{what} must be a dict with {sorted(wanted)}, got {found!r}")
    if found.keys() != set(wanted):
        raise ValueError(f"{what} must be {sorted(wanted)}, got {sorted(found)}")


def restored_int(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return an integer of a state, or say what it must be."""
    if type(value) is not int or value < least or (most is not None and value > most):
        upto = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be an integer >= {least}{upto}, got {value!r}")
    return value


def restored_bool(name: str, value: Any) -> bool:
    """Return a truth value of a state, or say that it is not one."""
    if type(value) is not bool:
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def described(thing: Any) -> str:
    """Return the repr of an object without addresses in memory, which differ in every process.

    Examples
    --------
    >>> described([1.5, object()])
    '[1.5, <object object>]'
    """
    return re.sub(r"(?: at)? *\b0x[0-9A-Fa-f]{6,}\b", "", repr(thing))


def restored_text(name: str, value: Any) -> str:
    """Return a text of a state, or say that it is not one."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {value!r}")
    return value


def restored_float(name: str, value: Any, least: float = -np.inf) -> float:
    """Return a finite number of a state, or say what it must be."""
    if type(value) is not float or not least <= value < np.inf or value == -np.inf:
        raise ValueError(f"{name} must be a finite number{f' >= {least:g}' if least > -np.inf else ''}, got {value!r}")
    return value


def restored_positive(name: str, value: Any) -> float:
    """Return a finite number > 0 of a state, or say that it is none."""
    if not restored_float(name, value) > 0:
        raise ValueError(f"{name} must be > 0, got {value!r}")
    return float(value)


def restored_array(name: str, value: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return an array of a state of this shape and type, or say what it must be."""
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != np.dtype(dtype):
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} of shape {shape}, got {found}")
    return value


def restored_finite(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of finite numbers."""
    array: NDArray[np.float64] = restored_array(name, value, shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def restored_codes(name: str, value: Any, shape: tuple[int, ...], least: int, below: int, dtype: Any = np.int64) -> Any:
    """Return an array of integers from `least` on, below `below`."""
    array = restored_array(name, value, shape, dtype)
    if array.size and not (array.min() >= least and array.max() < below):
        raise ValueError(f"{name} must be integers from {least} to {below - 1}, got {array.min()} to {array.max()}")
    return array


def restored_like(name: str, value: Any, pattern: Any) -> Any:
    """Return an object of a state that is of the same class as another one, or say that it is not."""
    if type(value) is not type(pattern):
        raise ValueError(f"{name} must be one like {pattern!r}, got {value!r}")
    return value


def restored_twin(name: str, value: Any, pattern: Any) -> Any:
    """Return a part of a state that has the parameters of another one, or say what it must be."""
    if type(value) is not type(pattern) or (pattern is not None and not same(value.parameters, pattern.parameters)):
        raise ValueError(f"{name} must be one like {pattern!r}, got {value!r}")
    return value


def restored_rows(name: str, value: Any) -> int:
    """Return the length of an array, or say that it is not one."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        raise ValueError(f"{name} must be an array, got {value!r}")
    return len(value)
