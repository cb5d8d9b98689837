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
from unicodedata import category

import numpy as np

from streams.checks import MISSING, Floats, doubt_names, is_finite, is_missing, means_missing, merged, plain, shown

# 3,5 and 1.234,5 as much of Europe writes them; 1,234.5 as spreadsheets show it.
WITH_COMMA = re.compile(r"\s*[+-]?(\d*,\d+([eE][+-]?\d+)?|\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})+,\d*)\s*", re.ASCII)


# 3,5 where the comma stands before the decimals.
DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*", re.ASCII)

# What may stand between groups of digits: each sign, and the characters that are written for it.
BLANKS = " \u00a0\u2009\u202f"
THOUSANDS = {",": ",", ".": ".", "'": "'\u2019", "_": "_", " ": BLANKS}
CURRENCIES = (
    *("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF"),
    *("RUB", "TRY", "BRL", "ZAR", "MXN", "KRW", "Rs", "Rs.", "Fr", "Fr.", "kr", "kr."),
)
MINUS = "\u2212"  # as typesetters write it
PERCENT = "%"


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
    unit : str, optional
        What stands before or behind a number that is text, such as "$", "€" or "kg"; it is left out, and so is a blank
        beside it. A number without it has that unit; but with "%" each has the sign, since .5 might mean 50%. In
        brackets, ($5.00), a number is negative.
    thousands : str, optional
        What stands between groups of digits: ",", ".", "'", "_" or " ", which is any blank.
    decimal : "." or ",", default "."
        What stands before decimals.

    Raises
    ------
    ValueError
        When `missing` is given without `fill`, `fill` is not a finite number, `unit` might be a part of a number, or
        `thousands` is not one of these, or is `decimal`.
    TypeError
        When `missing` or `unit` is not text.

    Examples
    --------
    >>> Numeric(missing="?", fill="median")
    Numeric(missing='?', fill='median')
    >>> Numeric(unit="$", thousands=",").read("$1,969.50"), Numeric(unit="%").read("96 %")
    (1969.5, 96.0)
    >>> Numeric(unit="€", thousands=".", decimal=",").read("1.241,50 €")
    1241.5
    """

    gaps: ClassVar[str] = ", or declare it in a schema as Numeric(missing='', fill=NUMBER)"
    missing: str | Sequence[str] | None = None
    fill: float | Literal["median"] | None = None
    unit: str | None = None
    thousands: str | None = None
    decimal: str = "."

    def __repr__(self) -> str:
        known: dict[str, Any] = {"missing": self.missing, "fill": self.fill}  # these two are always said
        if self.missing == MISSING:  # as it is with `fill`
            del known["missing"]
        known |= {key: getattr(self, key) for key in WRITTEN if getattr(self, key) != getattr(Numeric, key)}
        return f"Numeric({', '.join(f'{key}={value!r}' for key, value in known.items())})"

    def __post_init__(self) -> None:
        check_decimal(self.decimal)
        check_thousands(self.thousands, self.decimal)
        if self.unit is not None and not isinstance(self.unit, str):
            raise TypeError(f"unit must be text or None, got {self.unit!r}")
        if self.unit is not None and (not self.unit.strip(".\t" + BLANKS) or set(self.unit) & set("0123456789,+-()")):
            raise ValueError(f"unit must be text without digits, commas, signs and brackets, got {self.unit!r}")
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
        value = self._number(text)
        if value is None and self._pattern is None and WITH_COMMA.fullmatch(text):
            raise Refused(
                f"must be a number with a decimal point and no comma, got {text!r}",
                ": mend the file, give decimal=',' where it stands before decimals, thousands=',' where it stands "
                "between thousands, or declare Skip()",
            )
        if value is None and self.decimal == "," and (WITH_COMMA.fullmatch(text) or ("." in text and is_number(text))):
            raise Refused(
                f"must be a number with a decimal comma, as decimal=',' says, and no point, got {text!r}",
                ": mend the file, give thousands='.' where it stands between thousands, or declare Skip()",
            )
        if value is None:
            raise Refused(
                f"must be a number{self._form}, got {text!r}",
                f": declare the column as Nominal(), Ordinal(values), Skip() or Numeric(missing={text!r}, fill=...)",
            )
        if not isfinite(value):
            raise Refused(f"must be a finite number, got {text!r}")
        return value

    def _number(self, text: str) -> float | None:
        """Return the number that a text shows, as it is declared to be written; None if it shows none."""
        if self._pattern is not None:
            found = self._pattern.fullmatch(text)
            if found is None:
                return None
            signs, units = found["first"] + found["sign"], [one for one in (found["before"], found["after"]) if one]
            several = len(signs) + len(found["open"]) > 1 or len(units) > 1 or len(found["open"]) != len(found["close"])
            if several or (self.unit == PERCENT and not units):
                return None
            minus = "-" if found["open"] or signs in ("-", MINUS) else ""
            digits = found["whole"]
            for sign in THOUSANDS.get(self.thousands or "", ""):
                digits = digits.replace(sign, "")
            text = f"{minus}{digits}.{found['part'] or ''}{found['power']}"
        try:
            # float() also takes 1_000 and digits of other scripts, which numpy's reader refuses.
            return float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            return None

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """What a number looks like as it is declared to be written; None where Python writes it so."""
        if self.unit is None and self.thousands is None and self.decimal == ".":
            return None
        whole = r"\d*"
        if self.thousands is not None:  # India's groups have two digits
            between = f"[{re.escape(THOUSANDS[self.thousands])}]"
            whole = rf"[1-9]\d{{0,2}}(?:{between}\d{{2,3}})*{between}\d{{3}}|\d*"
        unit, sign = "(?!)" if self.unit is None else re.escape(self.unit.strip()), rf"[+\-{MINUS}]?"
        blank = rf"[\s{BLANKS}]*+"  # all there are: a cell of many blanks would be tried in as many ways to the sixth
        return re.compile(
            rf"{blank}(?P<open>\(?)(?P<first>{sign}){blank}(?P<before>{unit})?{blank}(?P<sign>{sign})(?P<whole>{whole})"
            rf"(?:{re.escape(self.decimal)}(?P<part>\d*))?(?P<power>(?:[eE][+-]?\d+)?){blank}(?P<after>{unit})?{blank}"
            rf"(?P<close>\)?){blank}",
            re.ASCII,
        )

    @property
    def _form(self) -> str:
        """How numbers are declared to be written, in messages."""
        said = [f"{key}={getattr(self, key)!r}" for key in WRITTEN if getattr(self, key) != getattr(Numeric, key)]
        return f" written as {', '.join(said)} says" if said else ""

    def value(self, cell: Any) -> float:
        """Return a number as it is; NaN for a missing value that is declared."""
        if is_missing(cell):
            return self.read(_absent(self, cell))
        if isinstance(cell, str):
            if cell in missing_texts(self):
                return nan
            value = self._number(cell)  # many programs write numbers as text
            if value is not None and isfinite(value):
                return value
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


def is_number(text: str, kind: Numeric | None = None) -> bool:
    """Whether a numeric column takes the text as it is, by default one of plain numbers."""
    try:
        (kind or PLAIN).read(text)
    except ValueError:
        return False
    return True


def check_decimal(decimal: object) -> None:
    """Raise ValueError unless it is a sign that may stand before decimals."""
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}")


def check_thousands(thousands: object, decimal: str) -> None:
    """Raise ValueError unless it is None, or a sign that may stand between groups of digits beside this decimal one."""
    if thousands is not None and (not isinstance(thousands, str) or thousands not in THOUSANDS):
        raise ValueError(f"thousands must be one of {', '.join(map(repr, THOUSANDS))} or None, got {thousands!r}")
    if thousands == decimal:
        raise ValueError(f"thousands must be another sign than decimal, got {decimal!r} for both")


def way_to_write(texts: Sequence[str], decimal: str = ".") -> Numeric | None:
    """Return the way to write numbers in which all texts are numbers, the plainest; None without any.

    1,234 has thousands where decimals stand after a point, as `decimal` says; else both are tried.

    Examples
    --------
    >>> way_to_write(["$1,969.50", "-$3"]), way_to_write(["12 kg", "5 g"])
    (Numeric(missing=None, fill=None, unit='$', thousands=','), None)
    """
    units = {unit for text in texts for unit in _units(text)}
    before = any(text.strip("(+-" + MINUS + BLANKS)[:1].isalpha() for text in texts)
    if not texts or len(units) > 1 or (before and not any(map(is_money, units))):
        return None
    for sign in dict.fromkeys((decimal, ".", ",")):
        for thousands in (None, *THOUSANDS):
            if thousands != sign:
                kind = Numeric(unit=next(iter(units), None), thousands=thousands, decimal=sign)
                if all(is_number(text, kind) for text in texts):
                    return kind
    return None


def _units(text: str) -> list[str]:
    """Return what might be a unit in a text: what stands before its digits, and behind them."""
    digits = [place for place, one in enumerate(text) if one in "0123456789"]
    if not digits:
        return []
    before, after = text[: digits[0]].strip("+-()\t" + MINUS + BLANKS), text[digits[-1] + 1 :].strip(".,()\t" + BLANKS)
    before = before if before.strip(".").isalpha() else before.rstrip(".,")
    return [one for one in (before, after) if one.strip(".") and not set(one) & set(",+-()")]


def is_money(unit: str) -> bool:
    """Whether a unit is that of a currency, which may stand before a number: other words there make a name of it.

    Examples
    --------
    >>> is_money("US$"), is_money("CHF"), is_money("shop")
    (True, True, False)
    """
    return any(category(one) == "Sc" for one in unit) or unit in CURRENCIES


def written(kind: Any, decimal: str, thousands: str | None) -> Any:
    """Return a kind whose numbers are written as all of a source are, where it does not say itself."""
    if not isinstance(kind, Numeric) or (decimal == "." and thousands is None):
        return kind
    own = kind.decimal if kind.decimal != "." else decimal
    return replace(kind, decimal=own, thousands=kind.thousands or (None if thousands == own else thousands))


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


WRITTEN = "unit", "thousands", "decimal"  #: parameters of `Numeric`: how numbers that are text are written
PLAIN = Numeric()
