"""The kinds of a table's columns: how text becomes numbers, and what stands for a missing value."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, nan
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from streams.checks import MISSING, Floats, doubt_names, is_finite, is_missing, means_missing, merged, plain, shown

# 3,5 and 1.234,5 as much of Europe writes them; 1,234.5 as spreadsheets show it.
WITH_COMMA = re.compile(r"\s*[+-]?(\d*,\d+([eE][+-]?\d+)?|\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})+,\d*)\s*", re.ASCII)


# 3,5 where the comma stands before the decimals.
DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*", re.ASCII)


class Refused(ValueError):
    """A text that its column cannot hold: `what` is wrong, and the `remedy` in a program."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy

    def __str__(self) -> str:
        return self.what + self.remedy

    @classmethod
    def of(cls, error: ValueError) -> Refused:
        """Return the error as one of these: a user's own kind may raise another ValueError."""
        return error if isinstance(error, Refused) else cls(str(error))


class ColumnKind(ABC):
    """What a column holds: from a cell to a number, and from the numbers of a column to features."""

    gaps: ClassVar[str] = ""  #: how to declare missing values, for messages

    @abstractmethod
    def read(self, text: str) -> float:
        """Return the number that stands for a text, NaN for a missing value that is filled; or raise Refused."""

    def value(self, cell: Any) -> float:
        """Return the number that stands for a cell of a source whose numbers are no text; or raise Refused."""
        return self.read(_named(self, cell))

    def names(self, feature: str) -> list[str]:
        """Return the names of what a feature becomes."""
        return [feature]

    def encode(self, numbers: Floats) -> Floats:
        """Return what the numbers of a column become, (n, features)."""
        return numbers[:, None]


@dataclass(frozen=True)
class Numeric(ColumnKind):
    """A column of finite numbers: one feature.

    Parameters
    ----------
    missing : str or sequence of str, optional
        Text that stands for a missing value, for instance "?", or several: ("", "NA"). Spaces around it are ignored,
        as around a number. By default, with `fill`: "", "?", NA, N/A, nan, null, None and the like.
    fill : finite float or "median", optional
        What a missing value becomes: a number given beforehand, or the median of the known values of the whole
        stream. Both treat all examples alike (see `Scaling`). Without it a missing value is an error.

    Raises
    ------
    ValueError
        When `missing` is given without `fill`, or `fill` is not a finite number.
    TypeError
        When `missing` is not text.

    Examples
    --------
    >>> Numeric(missing="?", fill="median")
    Numeric(missing='?', fill='median')
    """

    gaps: ClassVar[str] = ", or declare it in a schema as Numeric(missing='', fill=NUMBER)"
    missing: str | Sequence[str] | None = None
    fill: float | Literal["median"] | None = None

    def __post_init__(self) -> None:
        if self.missing is not None and self.fill is None:
            raise ValueError(f"fill must say what becomes of missing={self.missing!r}, got None")
        known = self.fill is None or (isinstance(self.fill, str) and self.fill == "median")
        if not known and not _finite_number(self.fill):
            raise ValueError(f'fill must be a finite number or "median", got {self.fill!r}')
        by_default = self.missing is None and self.fill is not None
        object.__setattr__(self, "missing", MISSING if by_default else _texts(self.missing))

    def read(self, text: str) -> float:
        """Return the number that `text` shows; NaN for a declared missing value."""
        known = missing_texts(self)
        if known and (text in known or text.strip() in known):
            return float("nan")
        if means_missing(text):
            own = "" if self.missing is None else f"missing={text!r}, "
            raise Refused(f"is missing, got {text!r}", f": declare Numeric({own}fill='median' or a number), or Skip()")
        try:
            # float() also takes 1_000 and digits of other scripts, which numpy's reader refuses.
            value = float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            value = None
        if value is None and WITH_COMMA.fullmatch(text):
            raise Refused(
                f"must be a number with a decimal point and no comma, got {text!r}",
                ": mend the file, give decimal=',' where it stands before decimals, or declare Skip()",
            )
        if value is None:
            raise Refused(
                f"must be a number, got {text!r}",
                f": declare the column as Nominal(), Ordinal(values), Skip() or Numeric(missing={text!r}, fill=...)",
            )
        if not isfinite(value):
            raise Refused(f"must be a finite number, got {text!r}")
        return value

    def value(self, cell: Any) -> float:
        """Return a number as it is; NaN for a missing value that is declared."""
        if is_missing(cell):
            return self.read(_absent(self, cell))
        if isinstance(cell, str):
            if cell in missing_texts(self):
                return nan
            raise Refused(
                f"must be a number, got {shown(cell)}",
                ": declare it in a schema as Nominal(values), Ordinal(values) or Skip()",
            )
        if isinstance(cell, bool | np.bool_) or not isinstance(cell, Real):
            advice = ": make it 0 and 1, if that is meant" if isinstance(cell, bool | np.bool_) else ""
            raise Refused(f"must be a number, got {shown(cell)}", advice)
        if not is_finite(cell):
            raise Refused(f"must be a finite number, got {shown(cell)}")
        return float(cell)

    def encode(self, numbers: Floats) -> Floats:
        """Return the values (n, 1), missing ones filled."""
        if self.missing is not None and (unknown := np.isnan(numbers)).any():
            if unknown.all() and self.fill == "median":
                raise Refused("has no value to take a median of", "; give fill a number or declare Skip()")
            fill = np.median(numbers[~unknown]) if self.fill == "median" else np.float64(self.fill)
            numbers = np.where(unknown, fill, numbers)
        return numbers[:, None]


@dataclass(frozen=True)
class Nominal(ColumnKind):
    """A column of names without order: one 0/1 feature for each value (one-hot).

    Parameters
    ----------
    values : sequence of distinct str, optional
        The values that may occur, in feature order. Without it they are the values of the whole
        stream, sorted: a symmetric function of the stream, so nothing leaks (see `Scaling`).
    missing : str or sequence of str, optional
        Text of a missing value that counts as a value of its own, for instance "?", or several. Not
        needed where `values` already holds it. Otherwise a missing value is an error.
    merge_alike : bool, default False
        Whether values that are the same written differently count as one: they differ in blanks, capitals, a dot at
        the end, the form of a number or the Unicode form. It has the name of the declared value, or of the shortest.

    Raises
    ------
    TypeError
        `values` is a text instead of a sequence of texts.
    ValueError
        No value, or one value twice.

    Examples
    --------
    >>> Nominal(("red", "green"))
    Nominal(values=('red', 'green'), missing=None, merge_alike=False)
    """

    gaps: ClassVar[str] = ", or declare it in a schema as Nominal(values, missing='?')"
    values: tuple[str, ...] | None = None
    missing: str | Sequence[str] | None = None
    merge_alike: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", _texts(self.missing))
        if self.values is not None:
            values = _distinct_texts(self.values)
            own = tuple(text for text in missing_texts(self) if text not in values)
            object.__setattr__(self, "values", values + own)

    def read(self, text: str) -> float:
        """Return the position of `text` in the values; 0 for any that may be one, as long as there are none."""
        place = self._places.get(text)
        if place is None:
            text = self.declared(text)
            _check_value(text, self.values, f"Nominal(missing={text!r})", missing_texts(self), names=True)
            place = self._places.get(text, 0.0)
        return place

    def names(self, feature: str) -> list[str]:
        """Return the names of what the feature becomes, "feature=value"."""
        return [f"{feature}={value}" for value in self.values or ()]

    def encode(self, numbers: Floats) -> Floats:
        """Return the 0/1 features (n, values)."""
        return (numbers[:, None] == np.arange(len(self.values or ()))).astype(np.float64)

    def settled(self, where: str, texts: Mapping[str, int], textual: bool) -> Nominal:
        """Return the kind with its values: those of the whole column, sorted, if it does not say.

        `texts` has the number of rows of each text. In a file, which is all text, the text of a missing value is a
        value only where it occurs; elsewhere always, as other cells may mean it.
        """
        if self.values is not None:
            return self
        own, known = missing_texts(self), Counter[str]()
        for text, count in texts.items():
            # A text that means a missing value is refused where it stands, unless the kind takes it.
            if self.declared(text) in own or not means_missing(text, names=True):
                known[self.declared(text)] += count
        if not known and not own:
            raise ValueError(f"{where} must be text, as its kind is Nominal, got none: make it text")
        if self.merge_alike:
            twins = merged(known)
            known = Counter({text: n for text, n in known.items() if text not in twins})
        else:
            doubt_names(where, {text: n for text, n in known.items() if n and text not in own}, "values")
        left = tuple(text for text in own if text in known) if textual else own
        return replace(self, values=tuple(sorted(known)) or own, missing=left or None)

    @cached_property
    def _places(self) -> dict[str, float]:
        return {value: float(place) for place, value in enumerate(self.values or ())}

    @cached_property
    def _forms(self) -> dict[Hashable, str]:
        """The declared value of each form of it."""
        return {plain(value): value for value in reversed(self.values or ())}

    def declared(self, text: str) -> str:
        """Return the declared value that a text is, written differently or missing with blanks around it."""
        if text in self._places:
            return text
        if text.strip() in missing_texts(self):
            return text.strip()
        return self._forms.get(plain(text), text) if self.merge_alike else text


@dataclass(frozen=True)
class Ordinal(ColumnKind):
    """A column of names in order: one feature, 0 for the first value, 1 for the second, ...

    Parameters
    ----------
    values : sequence of distinct str
        The values in their natural order.

    Raises
    ------
    TypeError
        `values` is a text instead of a sequence of texts.
    ValueError
        No value, or one value twice.

    Examples
    --------
    >>> Ordinal(("low", "med", "high"))
    Ordinal(values=('low', 'med', 'high'))
    """

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _distinct_texts(self.values))

    def read(self, text: str) -> float:
        """Return the rank of `text`."""
        _check_value(text, self.values, "it among the values of the Ordinal")
        return float(self.values.index(text))


@dataclass(frozen=True)
class Skip(ColumnKind):
    """A column that is not a feature; its content is ignored.

    Examples
    --------
    >>> Skip()
    Skip()
    """

    def read(self, text: str) -> float:
        """Return 0 for any text."""
        return 0.0

    def value(self, cell: Any) -> float:
        """Return 0 for anything."""
        return 0.0

    def names(self, feature: str) -> list[str]:
        """Return the names of what the feature becomes: none."""
        return []

    def encode(self, numbers: Floats) -> Floats:
        """Return no feature."""
        return np.empty((len(numbers), 0))


def _finite_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)


def is_number(text: str, comma: bool = False) -> bool:
    """Whether a numeric column takes the text as it is, perhaps one whose decimals stand after a comma."""
    try:
        PLAIN.read(with_point(text) if comma else text)
    except ValueError:
        return False
    return True


def check_decimal(decimal: object) -> None:
    """Raise ValueError unless it is a sign that may stand before decimals."""
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}")


def with_point(text: str, kind: object = None) -> str:
    """Return a number written with a decimal comma as Python writes it; other texts as they are.

    What a Numeric `kind` takes for a missing value is no number, and stays.

    Raises
    ------
    Refused
        The number has a decimal point, or more than one comma: which of them is meant is not guessed.
    """
    if {text, text.strip()} & {*missing_texts(kind)}:
        return text
    if DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    if WITH_COMMA.fullmatch(text) or ("." in text and is_number(text)):
        raise Refused(
            f"must be a number with a decimal comma, as decimal=',' says, and no point, got {text!r}",
            f": mend the file{', or declare Skip()' if isinstance(kind, Numeric) else ''}",
        )
    return text


def checked_schema(schema: Any) -> dict[str, ColumnKind]:
    """Return a schema, empty for None, or say what is wrong with it."""
    if not isinstance(schema, Mapping | None):
        raise TypeError(f"schema must be a mapping from name to kind, got {schema!r}")
    for name, kind in (schema or {}).items():
        if not isinstance(kind, ColumnKind):
            raise TypeError(f"schema[{name!r}] must be Numeric, Nominal, Ordinal or Skip, got {kind!r}")
    return dict(schema or {})


def merging(schema: dict[str, ColumnKind], merge_alike: bool) -> dict[str, ColumnKind]:
    """Return a schema whose every Nominal merges values that are the same written differently, if so told."""
    if not merge_alike:
        return schema
    return {
        name: replace(kind, merge_alike=True) if isinstance(kind, Nominal) else kind for name, kind in schema.items()
    }


def kinds_of(features: Sequence[str], schema: Mapping[str, ColumnKind] | None) -> dict[str, ColumnKind]:
    """Return the kind of each feature, in order: Numeric where the schema says nothing."""
    for name in schema or {}:
        if name not in features:
            raise ValueError(f"schema must name features of {tuple(features)!r}, got {name!r}")
    return {feature: (schema or {}).get(feature, PLAIN) for feature in features}


def missing_texts(kind: object) -> tuple[str, ...]:
    """Return the declared texts of a missing value."""
    missing = getattr(kind, "missing", None)
    return () if missing is None else (missing,) if isinstance(missing, str) else tuple(missing)


def _absent(kind: ColumnKind, cell: object) -> str:
    """Return the text that stands for a missing value, or raise unless one is declared."""
    for text in missing_texts(kind):
        return text
    raise Refused(f"is missing, got {shown(cell)}", f": drop the row{kind.gaps}")


def _named(kind: ColumnKind, cell: Any) -> str:
    """Return the text of a cell in a column of names."""
    if is_missing(cell):
        return _absent(kind, cell)
    if not isinstance(cell, str):
        raise Refused(f"must be text, got {shown(cell)}", ": make it text")
    return cell


def _texts(missing: object) -> str | tuple[str, ...] | None:
    if missing is None or isinstance(missing, str):
        return missing
    if isinstance(missing, Sequence) and missing and all(isinstance(text, str) for text in missing):
        return tuple(dict.fromkeys(missing))
    raise TypeError(f"missing must be text, a sequence of texts or None, got {missing!r}")


def _distinct_texts(values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"values must be a sequence of str, got {values!r}")
    strange = [value for value in values if not isinstance(value, str)]
    if strange:
        raise TypeError(f"values must be str, as a CSV file holds text, got {strange[0]!r}")
    if not values or len(set(values)) < len(values):
        raise ValueError(f"values must be distinct and at least one, got {tuple(values)!r}")
    return tuple(values)


def _check_value(
    text: str, values: tuple[str, ...] | None, own: str, missing: tuple[str, ...] = (), names: bool = False
) -> None:
    """Raise unless a column of names takes the text; `own` declares a missing value as a value of its own."""
    if text in missing or (values is not None and text in values):
        return
    if means_missing(text, names):
        raise Refused(f"is missing, got {text!r}", f": to count it as a value of its own, declare {own}")
    if values is not None:
        raise Refused(f"must be one of the declared values {values!r}, got {text!r}")


PLAIN = Numeric()
