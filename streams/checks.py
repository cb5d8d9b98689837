"""Types and checks of values, labels and names, shared by all sources; what texts mean."""

from __future__ import annotations

import inspect
import json
import unicodedata
import warnings
from collections.abc import Collection, Hashable, Iterable, Mapping, Set
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib import import_module
from math import inf, isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# --------------------------------------------------------------------------------------------------------------- checks
# Types and checks of values, labels and names, shared by all sources.

Label = Hashable
Floats = NDArray[np.float64]
#: (n, d) float64, or a `scipy.sparse.csr_array` of that: scipy is not imported for a type.
Objects = Any
Integers = NDArray[np.int64]
LONGEST = 1 << 24  # bytes, or characters, of a line that is read
LARGEST_INTEGER = 2**53  # whole numbers up to here are exact as float64
MANY = 30  # up to this many distinct labels are classes, whatever the number of rows
MOST_NAMES = 1000  # up to so many values of a nominal column are advised: a row of them takes 8 kB


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas.NA, which mark a missing value where values are not text.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has an array, which is not missing
        return False


def is_finite(number: Any) -> bool:
    """Whether a number is finite as float64.

    Examples
    --------
    >>> is_finite(1.5), is_finite(10**400)
    (True, False)
    """
    try:
        return isfinite(number)
    except OverflowError:  # an integer
        return False


def shown(value: object) -> str:
    """Return a value as a message shows it: not too long, and null for None.

    Examples
    --------
    >>> shown(None), shown("a"), shown("a" * 100)[-6:]
    ('null', "'a'", 'aaa...')
    """
    text = "null" if value is None else repr(python_label(value))
    return text if len(text) <= 60 else text[:57] + "..."


def label_key(label: Label) -> tuple[bool, Label]:
    """Return a dictionary key for the label that distinguishes True from 1, which Python takes for equal.

    Examples
    --------
    >>> label_key(True) == label_key(1)
    False
    """
    return isinstance(label, bool | np.bool_), label


def whole_number(name: str, value: object, least: int, most: float = inf) -> int:
    """Return `value` as int, or raise unless it is an integer from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {value!r}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Return `value`, or raise unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def filled_text(name: str, value: object) -> str:
    """Return `value`, or raise unless it is a str that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, got {value!r}")
    if not value:
        raise ValueError(f"{name} must not be empty, got ''")
    return value


def imported(module: str, needed: str) -> Any:
    """Return an optional package, imported late, since most people do without it; say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{needed}: pip install {module.replace('_', '-')}") from error


def size(name: str, value: object, least: int) -> int:
    """Return `value` as int, or raise unless it is an integer that may be the size of an array, if memory allows."""
    return whole_number(name, value, least, LARGEST_INTEGER)


def real_number(name: str, value: Any, least: float = -inf, most: float = inf) -> float:
    """Return `value` as a finite float, or raise unless it is a number from `least` to `most`.

    Examples
    --------
    >>> real_number("share", 1, least=0, most=1)
    1.0
    """
    must = "a finite number" if least == -inf and most == inf else f"a number from {least:g} to {most:g}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {must}, got {value!r}")
    number = float(value) if is_finite(value) else inf
    if number == inf or not least <= number <= most:
        raise ValueError(f"{name} must be {must}, got {value!r}")
    return number


def sort_labels(labels: set[Label]) -> tuple[Label, ...]:
    """Return the labels sorted: by value if each one is a number or the text of a number.

    Examples
    --------
    >>> sort_labels({"10", "9"}), sort_labels({"b", "10", "9"})
    (('9', '10'), ('10', '9', 'b'))
    """
    try:
        value = {label: float(label) for label in labels if isinstance(label, str)}
    except ValueError:
        value = {}
    if len(value) == len(labels) and all(map(isfinite, value.values())):
        return tuple(sorted(value, key=lambda text: (value[text], text)))
    try:
        return tuple(sorted(labels))  # type: ignore[type-var]
    except TypeError:
        some = sorted(map(repr, labels))[:5]
        raise TypeError(f"classes must be declared, since these labels have no order: {', '.join(some)}") from None


#: In place of classes: labels are numbers.
NUMBERS = "numbers"
#: In place of classes: labels are the values of a series, numbers of which some are missing.
VALUES = "values"


def are_numbers(classes: Any) -> bool:
    """Whether labels are declared as numbers."""
    return isinstance(classes, str) and classes == NUMBERS


def classes_found(labels: set[Label], rows: int, where: str) -> tuple[Label, ...]:
    """Return the sorted labels as classes; refuse labels that look like numbers to predict or names of rows.

    Examples
    --------
    >>> classes_found({"yes", "no"}, 300, "y")
    ('no', 'yes')
    >>> classes_found({i / 7 for i in range(200)}, 300, "y")
    Traceback (most recent call last):
    ...
    ValueError: y must hold classes, got 200 distinct labels in 300 rows; if each is a class, declare classes; if they
    are numbers to predict, classes='numbers'
    """
    if len(labels) > max(MANY, rows / 2):
        numbers = f"; if they are numbers to predict, classes={NUMBERS!r}" if all(map(_shows_number, labels)) else ""
        raise ValueError(
            f"{where} must hold classes, got {len(labels)} distinct labels in {rows} rows; if each is a class, declare "
            f"classes{numbers}"
        )
    return sort_labels(labels)


def _shows_number(label: Label) -> bool:
    """Whether a label is a finite number, or the text of one."""
    try:
        return is_finite(float(label)) if isinstance(label, str | Real) else False
    except (ValueError, OverflowError):
        return False


def in_order(name: str, values: Any, of: str, other: Any) -> tuple[Any, ...]:
    """Return the items of a sequence as a tuple, or raise; also for the types `other`, which have items too."""
    try:
        if isinstance(values, other):
            raise TypeError
        given = iter(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of {of}, got {values!r}") from None
    return tuple(given)


def label_set(classes: Any) -> tuple[Label, ...]:
    """Return the declared classes as a tuple of distinct Python objects."""
    given = in_order("classes", classes, "labels, in class order", str | bytes | Set | Mapping)
    labels = tuple(python_label(label) for label in given)
    for label in labels:
        if not isinstance(label, Hashable):
            raise TypeError(f"classes must be hashable labels, got {label!r}")
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"classes must be distinct and at least one, got {labels!r}")
    return labels


def same_text(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return two labels that have one text, as Python or as JSON writes them; none if all differ.

    Examples
    --------
    >>> same_text([True, "true"]), same_text([1, "one", True])
    ((True, 'true'), ())
    """
    seen: dict[str, Label] = {}
    for label in labels:
        for text in {str(label), json.dumps(label, default=str) if not isinstance(label, str) else label}:
            if text in seen:
                return seen[text], label
            seen[text] = label
    return ()


def python_label(label: Any) -> Any:
    """Return a scalar of numpy or pyarrow as the Python object it holds, anything else as it is."""
    if isinstance(label, np.generic):
        return label.item()
    return label.as_py() if type(label).__module__ == "pyarrow.lib" and hasattr(label, "as_py") else label


def distinct_names(parameter: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as a tuple, or raise unless they are distinct str."""
    named = in_order(parameter, names, "str", str)
    seen: set[str] = set()
    for name in named:
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be str, got {name!r}")
        if name in seen:
            raise ValueError(f"{parameter} must be distinct, got {name!r} twice")
        seen.add(name)
    return named


# ---------------------------------------------------------------------------------------------------------------- texts
# What texts mean: which stand for a missing value, and which are one text written in several ways.

#: Texts that stand for a missing value, whatever blanks are around them: in features, in labels, in every source.
#: The empty field and a question mark; as R, SQL and Python write it; as C does, by sign and by compiler; as
#: spreadsheets show errors.
MISSING = (
    "", "?", "NA", "N/A", "n/a", "<NA>", "null", "NULL", "Null", "None", "NaT", "\\N",
    *(sign + nan for nan in ("nan", "NaN", "NAN") for sign in ("", "-", "+")),
    "nan(ind)", "-nan(ind)", "nan(snan)", "-nan(snan)", "1.#QNAN", "-1.#QNAN", "1.#SNAN", "-1.#SNAN",
    "1.#IND", "-1.#IND",
    "#N/A", "#NA", "#N/A N/A", "#NV", "#NUM!", "#VALUE!", "#DIV/0!", "#REF!", "#NAME?", "#NULL!",
)  # fmt: skip
MEANINGS = frozenset(MISSING)
#: Those of them that may as well be a name: Namibia's code, North America, "not applicable".
NAMES = ("NA",)
GROUPS = 3  # groups of alike texts that a warning names


class Doubtful(UserWarning):
    """A doubtful fault of data, which may be intended: `what` it is, and the `remedy` in Python.

    Attributes
    ----------
    doubt : "identifier", "alike", "missing" or "row"
        A column that might be left out, texts that might be merged, a text that might mean a missing value, a row that
        might be no example.
    name : str
        The column that might be left out, or the text.
    """

    def __init__(
        self, what: str, remedy: str, doubt: Literal["identifier", "alike", "missing", "row"], name: str
    ) -> None:
        super().__init__(what, remedy, doubt, name)
        self.what, self.remedy, self.doubt, self.name = what, remedy, doubt, name

    def __str__(self) -> str:
        return self.what + self.remedy


def warn(doubtful: Doubtful) -> None:
    """Warn at the line that called this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "streams":
        frame, level = frame.f_back, level + 1
    warnings.warn(doubtful, stacklevel=level)


def means_missing(text: str, names: bool = False) -> bool:
    """Whether a text stands for a missing value; in a column of `names`, one that may be a name does not.

    Examples
    --------
    >>> means_missing(" nan "), means_missing("NA"), means_missing("NA", names=True)
    (True, True, False)
    """
    bare = text.strip()
    return bare in MEANINGS and not (names and bare in NAMES)


def lacks_label(label: Any, classes: Collection[Any], names: bool) -> bool:
    """Whether a label of any type stands for a missing one; none of the declared classes does.

    Examples
    --------
    >>> lacks_label(None, (), names=True), lacks_label("nan", (), names=True), lacks_label("nan", ("nan",), names=True)
    (True, True, False)
    """
    if isinstance(label, str):
        return means_missing(label, names) and label not in classes
    return is_missing(label)


@lru_cache(4096, typed=True)  # True and 1 are one key otherwise
def plain(text: Hashable) -> Hashable:
    """Return a key that is equal for all ways to write a text.

    The same are texts that differ in blanks, capitals, a dot at the end, the form of a number, or the Unicode form.

    Examples
    --------
    >>> plain(" <=50K. ") == plain("<=50k"), plain("1") == plain("1.0"), plain("1") == plain("1.5")
    (True, True, False)
    """
    bare = str(text)
    if not bare.isascii():
        bare = unicodedata.normalize("NFKC", bare)
        # What is not seen: marks of the order of bytes, joiners, soft hyphens.
        bare = "".join(character for character in bare if unicodedata.category(character) != "Cf")
        bare = unicodedata.normalize("NFKC", bare.casefold())
    bare = " ".join(bare.split()).casefold()
    try:
        number = Decimal(bare) if "_" not in bare else None
    except InvalidOperation:
        number = None
    if number is not None and number.is_finite():
        return number  # equal to all numbers of its value, however large
    return bare.rstrip(".").rstrip() or bare


def alike(texts: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of texts that are one text written differently; the shortest comes first.

    Examples
    --------
    >>> alike(["<=50K.", ">50K", "<=50K", "1", "1.0"])
    [['1', '1.0'], ['<=50K', '<=50K.']]
    """
    groups: dict[Hashable, list[Any]] = {}
    for text in texts:
        groups.setdefault(plain(text), []).append(text)
    several = [sorted(group, key=_shortness) for group in groups.values() if len(group) > 1]
    return sorted(several, key=lambda group: str(group[0]))


def merged(texts: Iterable[Any]) -> dict[Any, Any]:
    """Map texts that are written differently to one of them, whatever their order.

    Examples
    --------
    >>> merged(["<=50K.", ">50K", "<=50K"])
    {'<=50K.': '<=50K'}
    """
    return {text: group[0] for group in alike(texts) for text in group[1:]}


def doubt_names(where: str, counts: Mapping[Any, int], what: str) -> None:
    """Warn of names that are written differently and count as several, and of one that may mean a missing value.

    Parameters
    ----------
    where : str
    counts : mapping from name to its number of rows
    what : "labels" or "values"
    """
    rows = sum(counts.values())
    groups = alike(counts)
    if groups:
        shown = [" and ".join(f"{one!r} ({counts[one]:,} of {rows:,} rows)" for one in group) for group in groups]
        more = f", and {len(groups) - GROUPS} more" if len(groups) > GROUPS else ""
        several = "classes" if what == "labels" else "values"
        text = (
            f"{where}: the {what} {'; '.join(shown[:GROUPS])}{more} are the same written differently, and count as "
            f"several {several}"
        )
        warn(Doubtful(text, "; merge_alike=True makes them one", "alike", str(groups[0][0])))
    for name in counts:
        if isinstance(name, str) and name.strip() in NAMES:
            text = f"{where}: {name!r} ({counts[name]:,} of {rows:,} rows) counts as one of the {what}"
            remedy = "; if it means a missing one, give it as such (missing=, or NaN in place of it)"
            warn(Doubtful(text, remedy, "missing", name.strip()))


def _shortness(text: Any) -> tuple[int, str]:
    shown = str(text)
    return len(shown), shown
