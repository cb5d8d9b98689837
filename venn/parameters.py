"""Parameters of constructors: checks that say what must hold and what was given, equality and repr by them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn.saved import Saved

REAL = (int, float, np.integer, np.floating)
TRUTH = (bool, np.bool_)
LARGEST_INTEGER = 2**53  # whole numbers up to here are exact as float64


class Parameters(Saved):
    """Base of small objects with parameters and no state, which are equal if their attributes are."""

    unnamed = 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).items())))


def class_codes(classes: Any, least: int = 2) -> dict[Hashable, int]:
    """Return the code of each label; refuse what cannot be a set of classes."""
    if isinstance(classes, str | bytes):
        raise TypeError(f"classes must be a sequence of labels, got the string {classes!r}")
    if isinstance(classes, set | frozenset):
        raise TypeError(f"classes must have an order, for ties go to the first; got the set {classes!r}")
    if isinstance(classes, np.ndarray):
        classes = classes.tolist()
    codes: dict[Hashable, int] = {}
    keys: dict[str, Hashable] = {}
    try:
        labels = [python_value(label) for label in classes]
        hash(tuple(labels))
    except TypeError as error:
        raise TypeError(f"classes must be a sequence of hashable labels, got {classes!r}") from error
    for label in labels:
        if isinstance(label, float | np.floating) and not np.isfinite(label):
            raise ValueError(f"classes must be finite labels, got {label!r}")
        if label in codes:
            raise ValueError(f"classes must be distinct, got {label!r} twice")
        key = spelled(label)
        if key in keys:  # a page and a line of JSON would lose one of the two
            raise ValueError(
                f"classes must differ as keys of a JSON object, got {keys[key]!r} and {label!r}, which are both {key!r}"
            )
        keys[key] = label
        codes[label] = len(codes)
    if len(codes) < least:
        none = "" if codes else ": labels that are numbers have none, and ConformalDistribution predicts them"
        raise ValueError(f"classes must hold at least {least} label{'s'[: least != 1]}, got {list(classes)!r}{none}")
    return codes


def spelled(label: Any) -> str:
    """Return a label as a key of a JSON object: text as it is, others as JSON writes them where they are values.

    Examples
    --------
    >>> spelled("no"), spelled(1), spelled(True)
    ('no', '1', 'true')
    """
    return label if isinstance(label, str) else json.dumps(python_value(label), default=str)


def python_value(value: Any) -> Any:
    """Return a scalar of numpy or pyarrow as Python's own value, anything else as it is.

    Two ways to write one label must not make two models, nor two journals. Times of numpy stay: Python has none as
    fine.

    Examples
    --------
    >>> python_value(np.str_("up")), python_value(np.int64(3)), python_value(np.bool_(True)), python_value("up")
    ('up', 3, True, 'up')
    """
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufU" else value
    # A list of a column of Arrow's holds such scalars.
    return value.as_py() if type(value).__module__ == "pyarrow.lib" and hasattr(value, "as_py") else value


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or numpy; True and False do not count."""
    return isinstance(value, REAL) and not isinstance(value, TRUTH)


def has_methods(value: Any, *names: str) -> bool:
    """Whether a value is an object with these methods. Classes, strings and arrays do not count."""
    return not isinstance(value, type | str | np.ndarray) and all(
        callable(getattr(value, name, None)) for name in names
    )


def with_methods(name: str, value: Any, wanted: str, *methods: str, has: Sequence[str] = ()) -> Any:
    """Return an object with these methods, and attributes `has`, or say what it must be."""
    if not has_methods(value, *methods) or not all(hasattr(value, attribute) for attribute in has):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    return value


def array_of(values: Any) -> NDArray[Any]:
    """Return the values as an array; where rows differ in length, an empty one of type object."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0, np.object_)


def real_array(values: Any, requirement: str) -> NDArray[np.float64]:
    """Return the values as an array of float64, themselves where they are one; or say what they must be."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":  # numpy would leave out the imaginary part, with a warning
            raise TypeError
        return np.asarray(array, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{requirement}, got {values!r}") from None


def members(name: str, values: Any, of: str) -> tuple[Any, ...]:
    """Return the items of a sequence as a tuple, or say that the value is not a sequence."""
    try:
        given = iter(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of {of}, got {values!r}") from None
    return tuple(given)


def several_names(name: str, values: Any) -> tuple[str, ...]:
    """Return different names, at least one, as a tuple; or say what is wrong with them.

    Examples
    --------
    >>> several_names("names", {"abers": 1, "conformal": 2})
    ('abers', 'conformal')
    """
    found = members(name, values, "str")
    if isinstance(values, str | bytes) or not all(isinstance(one, str) for one in found):
        raise TypeError(f"{name} must be a sequence of str, such as a panel, got {values!r}")
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{name} must be different, at least one, got {values!r}")
    return found


def by_name(name: str, value: Any, of: str, known: Collection[str] | None = None) -> dict[str, Any]:
    """Return a mapping of names, if given those of `known` predictors, as a dict, empty for None; or say it is none."""
    if not isinstance(value, Mapping | None) or not all(isinstance(key, str) for key in value or ()):
        raise TypeError(f"{name} must be a mapping of names to {of}, got {value!r}")
    strange = [key for key in value or () if known is not None and key not in known]
    if strange:
        raise ValueError(f"{name} must have names of predictors, {', '.join(known or ())}, got {strange[0]!r}")
    return dict(value or {})


def path_of(name: str, value: Any) -> Path:
    """Return `value` as a path, or raise unless it is a str or a path.

    Examples
    --------
    >>> path_of("path", "run.db").name
    'run.db'
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a str or path, got {value!r}")
    return Path(value)


def flag(name: str, value: Any) -> bool:
    """Return True or False, or say what is wrong with the value."""
    if not isinstance(value, TRUTH):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def one_of(name: str, value: Any, among: Sequence[str]) -> str:
    """Return the value, one of several words, or say which ones there are.

    Examples
    --------
    >>> one_of("on_change", "keep", ("restart", "keep"))
    'keep'
    """
    if value not in among:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, among))}, got {value!r}")
    return str(value)


def integer(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """Return an integer from `least` to `most`, or say what is wrong with the value."""
    if type(value) is int and least <= value <= most:  # for speed
        return value
    requirement = f"{name} must be an integer >= {least}, got {value!r}"
    if isinstance(value, TRUTH) or not isinstance(value, int | np.integer):
        raise TypeError(requirement)
    if value < least:
        raise ValueError(requirement)
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {value!r}")
    return int(value)


def optional(name: str, value: Any, check: Callable[..., Any], *arguments: Any) -> Any:
    """Return None, or what another check returns of a value that is not None."""
    return None if value is None else check(name, value, *arguments)


def instance(name: str, value: Any, kind: type[Any], wanted: str) -> Any:
    """Return an object of a class, or say what it must be."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    return value


def number(name: str, value: Any) -> float:
    """Return a finite number, or say what is wrong with the value."""
    return _within(name, value, "a finite number", -math.inf, math.inf)


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a finite number above 0, or of at least 0, or say what is wrong with the value."""
    if zero and is_number(value) and value == 0:
        return 0.0
    return _within(name, value, f"a finite number {'>=' if zero else '>'} 0", 0.0, math.inf)


def not_negative(name: str, value: Any) -> float:
    """Return a finite number of at least 0, or say what is wrong with the value."""
    return positive(name, value, zero=True)


def several_positive(name: str, values: Any) -> tuple[float, ...]:
    """Return at least one finite number above 0, or say what is wrong with the values."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise TypeError(f"{name} must be a sequence of numbers > 0, got {values!r}")
    return tuple(positive(name, value) for value in values)


def share(name: str, value: Any) -> float:
    """Return a number from 0 to 1, or say what is wrong with the value."""
    if is_number(value) and (value == 0 or value == 1):
        return float(value)
    return _within(name, value, "a number in [0, 1]", 0.0, 1.0)


def above_one(name: str, value: Any) -> float:
    """Return a finite number above 1, or say what is wrong with the value."""
    return _within(name, value, "a finite number > 1", 1.0, math.inf)


def fraction(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1, or say what is wrong with the value."""
    return _within(name, value, "a number in (0, 1)", 0.0, 1.0)


def probability(name: str, value: Any) -> float:
    """Return a number above 0, up to 1, or say what is wrong with the value."""
    return _within(name, value, "a number in (0, 1]", 0.0, math.nextafter(1.0, 2.0))


def _within(name: str, value: Any, requirement: str, low: float, high: float) -> float:
    if not is_number(value):
        raise TypeError(f"{name} must be {requirement}, got {value!r}")
    try:
        clean = float(value)
    except OverflowError:
        clean = math.inf
    # Written so that NaN fails.
    if not low < clean < high:
        raise ValueError(f"{name} must be {requirement}, got {value!r}")
    return clean


def ascending(name: str, steps: Any) -> tuple[int, ...]:
    """Return ascending numbers of steps, each at least 1; perhaps none.

    Examples
    --------
    >>> ascending("restarts", [2000, 4000])
    (2000, 4000)
    """
    if isinstance(steps, str) or not isinstance(steps, Sequence):
        raise TypeError(f"{name} must be a sequence of steps, such as (2000, 4000), got {steps!r}")
    found = tuple(integer(name, step, 1) for step in steps)
    if any(after <= before for before, after in pairwise(found)):
        raise ValueError(f"{name} must be ascending, got {steps!r}")
    return found
