"""Encodes columns of any source, and labels, as arrays of numbers, by a schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, nan
from numbers import Real
from typing import Any

import numpy as np

from streams.checks import (
    Floats,
    Integers,
    Label,
    are_numbers,
    classes_found,
    distinct_names,
    doubt_names,
    is_finite,
    label_key,
    label_set,
    lacks_label,
    merged,
    plain,
    shown,
)
from streams.schema import (
    DECIMAL_COMMA,
    PLAIN,
    ColumnKind,
    Nominal,
    Numeric,
    Refused,
    Skip,
    is_number,
    kinds_of,
    written,
)

#: The place of a cell in words, for messages: of column j and row i; of the whole column where i is None.
Where = Callable[[int, "int | None"], str]


class BadValue(Refused):
    """A cell that its column cannot hold: the column's name, None where columns have none, its kind, and the cell."""

    def __init__(self, what: str, remedy: str, feature: str | None, kind: Any, cell: Any) -> None:
        super().__init__(what, remedy)
        self.feature, self.kind, self.cell = feature, kind, cell


@dataclass(frozen=True)
class Labels:
    """What labels may be: declared classes, those of the whole stream (None), or numbers. The kind of their column.

    Its codes are the positions of the classes, or the numbers; NaN for a missing label, which is dropped.
    """

    classes: tuple[Label, ...] | None
    numbers: bool = False
    drop: bool = False
    merge_alike: bool = False
    written: Numeric = PLAIN  #: how numbers are written, where labels are

    @classmethod
    def of(cls, classes: Any, drop: bool = False, merge_alike: bool = False, written: Numeric = PLAIN) -> Labels:
        """Return what a parameter `classes` says."""
        numbers = are_numbers(classes)
        return cls(None if classes is None or numbers else label_set(classes), numbers, drop, merge_alike, written)

    @property
    def any(self) -> bool:
        """Whether any label is a class, since no classes are declared."""
        return self.classes is None and not self.numbers

    def lacks(self, label: Any) -> bool:
        """Whether a label stands for a missing one."""
        return lacks_label(label, self.classes or (), names=self.any)

    def lacks_text(self, text: str) -> bool:
        """Whether a label that a file shows as text is missing: the text of a class is not."""
        return text not in self._texts and self.lacks(text)

    def read(self, text: str) -> float:
        """Return the code of a label that a file shows as text: a class has the text of it."""
        place = self._texts.get(text)
        if place is not None:
            return place
        if self.lacks(text):
            return self._missing(text)
        if self.numbers and is_number(text, self.written):
            return self.written.read(text)
        comma = ", or give decimal=',' where it stands before decimals" if DECIMAL_COMMA.fullmatch(text) else ""
        return self._other(text, f"; drop the row{comma}")

    def value(self, label: Any) -> float:
        """Return the code of a label that is not missing."""
        if self.numbers:
            if not isinstance(label, bool) and isinstance(label, Real) and is_finite(label):
                return float(label)
            if isinstance(label, str) and is_number(label, self.written):
                return self.written.read(label)
        elif _hashed(label):
            place = self._places.get(label_key(label))
            if place is not None:
                return place
        return self._other(label, "")

    def encode(self, labels: Sequence[Any], where: Callable[[int], str], rows: Sequence[int] | Integers) -> Floats:
        """Return the codes of labels, or raise ValueError; `where` says the place of the row of a number."""
        known: dict[tuple[type, Any], float] = {}
        codes = np.empty(len(labels))
        for i, label in enumerate(labels):
            try:
                key = type(label), label
                code = known.get(key) if _hashed(label) else None
                if code is None:  # a label without a hash is none of the classes, and is refused
                    code = known[key] = self._missing(label) if self.lacks(label) else self.value(label)
            except Refused as error:
                others = [row for row, one in zip(rows[i + 1 :], labels[i + 1 :], strict=True) if self.lacks(one)]
                same = also_in(others) if self.lacks(label) else ""
                raise ValueError(f"{where(rows[i])} {error.what}{same}{error.remedy}") from None
            codes[i] = code
        return codes

    def settled(self, where: str, counts: Mapping[Any, int]) -> Labels:
        """Return the labels' space, with the classes of a whole stream if none are declared."""
        if not self.any:
            return self
        home = merged(counts) if self.merge_alike else {}
        classes = classes_found({home.get(label, label) for label in counts}, sum(counts.values()), where)
        if not self.merge_alike:
            doubt_names(where, counts, "labels")
        return replace(self, classes=classes)

    @cached_property
    def _places(self) -> dict[Any, float]:
        return {label_key(label): float(place) for place, label in enumerate(self.classes or ())}

    @cached_property
    def _texts(self) -> dict[str, float]:
        return {str(label): float(place) for place, label in enumerate(self.classes or ())}

    def _missing(self, label: Any) -> float:
        if self.drop:
            return nan
        further = "; or declare classes" if self.any and isinstance(label, str) else ""
        raise Refused(f"is the label and is missing, got {label!r}", f"; drop_unlabelled=True drops such rows{further}")

    def _other(self, label: Any, remedy: str) -> float:
        """Return the code of a label that is none of the classes as it stands, or refuse it."""
        if self.numbers:
            raise Refused(f"must be a finite number, as labels are declared to be numbers, got {shown(label)}", remedy)
        if self.classes is None:
            return 0.0
        same = [k for k in self.classes if plain(k) == plain(label)] if self.merge_alike else []
        if len(same) == 1:
            return self._places[label_key(same[0])]
        raise Refused(f"must be one of the classes {self.classes!r}, got {shown(label)}{self._alike(label)}")

    def _alike(self, label: Any) -> str:
        """Return what is wrong with a label that looks like a class, and is of another kind."""
        classes = self.classes or ()
        like = next((one for one in classes if one == label or str(one).lower() == str(label).lower()), None)
        kinds = {str: "text", bool: "a truth value"}
        ours, theirs = kinds.get(type(label), "a number"), kinds.get(type(like), "a number")
        return "" if like is None or ours == theirs else f": it is {ours}, and the class {like!r} is {theirs}"


@dataclass(frozen=True)
class Column:
    """A column of a source: its name and kind, and how its cells are written.

    Parameters
    ----------
    name : str
        Empty where columns have none.
    kind : Numeric, Nominal, Ordinal, Skip or Labels
    textual : bool
        Whether every cell is text, "1.5" as well as "red". False: numbers are numbers; None and NaN are missing.
    gaps : tuple of str
        Of textual cells: further texts that mean a missing value.
    """

    name: str
    kind: Any
    textual: bool = False
    gaps: tuple[str, ...] = ()

    @cached_property
    def read(self) -> Callable[[Any], float]:
        """Returns the number of a cell, NaN for a missing value that is filled; or raises Refused."""
        read: Callable[[Any], float] = self.kind.read if self.textual else self.kind.value
        return self._unless_gap if self.gaps else read

    def _unless_gap(self, cell: str) -> float:
        gap = self.gap(cell)
        try:
            number: float = self.kind.read("" if gap else cell)
        except Refused as error:
            if not gap:
                raise
            raise Refused(f"{error.what.partition(', got ')[0]}, got {cell!r}", error.remedy) from None
        return number

    def numbers(self, cells: Any, where: Where, j: int) -> Floats:
        """Return the numbers (n,) of cells, a sequence or an array of numbers; or raise BadValue."""
        if isinstance(self.kind, Skip):
            return np.empty(len(cells))
        if isinstance(cells, np.ndarray):
            if cells.dtype.kind in "iuf":
                known = np.isfinite(cells)
                if (known if self.kind.missing is None else known | np.isnan(cells)).all():
                    return cells.astype(np.float64, copy=False)
            cells = cells.tolist()
        return np.array([self.number(cell, where, j, i) for i, cell in enumerate(cells)], np.float64)

    def number(self, cell: Any, where: Where, j: int, i: int) -> float:
        """Return the number of a cell, or raise BadValue."""
        try:
            return self.read(cell)
        except ValueError as error:
            said = Refused.of(error)
            what = f"{where(j, i)} {said.what}"
            raise BadValue(what, said.remedy, self.name or None, self.kind, cell) from None

    def gap(self, text: str) -> bool:
        """Whether a text is one of the further ones that mean a missing value."""
        return bool(self.gaps) and text.strip() in self.gaps

    def settled(self, where: str, texts: Mapping[Any, int]) -> Column:
        """Return the column with a kind that its whole content settles, the number of rows of each text in it."""
        kind = self.kind
        if isinstance(kind, Labels):
            kind = kind.settled(where, {t: n for t, n in texts.items() if not (self.gap(t) or kind.lacks(t))})
        elif isinstance(kind, Nominal):
            counts = Counter[str]()
            for text, count in texts.items():
                counts["" if self.gap(text) else text] += count
            kind = kind.settled(where, counts, self.textual)
        return replace(self, kind=kind)


class Encoder:
    """Columns in, rows of numbers out: what every source does with its features.

    Parameters
    ----------
    columns : sequence of Column

    Attributes
    ----------
    names : tuple of str
        Of the encoded features.
    width : int
        Their number.

    Examples
    --------
    >>> from streams.schema import Nominal, Numeric
    >>> encoder = Encoder([Column("width", Numeric(fill=0)), Column("colour", Nominal(("red", "blue")))])
    >>> encoder.names
    ('width', 'colour=red', 'colour=blue')
    >>> encoder.encode([[1.5, None], ["blue", "red"]], lambda j, i: f"row {i}")
    array([[1.5, 0. , 1. ],
           [0. , 1. , 0. ]])
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.plain = all(column.kind == PLAIN for column in columns)
        named = [column.kind.names(column.name) for column in columns]
        self._ends = np.cumsum([0, *map(len, named)]).tolist()
        self.width = self._ends[-1]
        if not self.width:
            skips = "schema must leave a feature, but skips every one"
            raise ValueError(skips if columns else "features must leave at least one column, got none")
        self.names = tuple(name for names in named for name in names)
        if "" not in self.names:
            distinct_names("features", self.names)

    def encode(self, columns: Sequence[Any], where: Where) -> Floats:
        """Return the rows (n, width) of columns of n cells each, or raise BadValue."""
        return self._encoded([one.numbers(columns[j], where, j) for j, one in enumerate(self.columns)], where)

    def _encoded(self, numbers: Sequence[Floats], where: Where) -> Floats:
        """Return what the numbers of all columns become."""
        X = np.empty((len(numbers[0]), self.width))
        for j, column in enumerate(self.columns):
            try:
                X[:, self._ends[j] : self._ends[j + 1]] = column.kind.encode(numbers[j])
            except ValueError as error:
                said = Refused.of(error)
                raise Refused(f"{where(j, None)} {said.what}", said.remedy) from None
        return X

    def row(self, cells: Sequence[Any], where: Where) -> Floats:
        """Return one row (width,): a block of one, faster where all is plain."""
        if self.plain and {*map(type, cells)} <= {int, float}:
            with suppress(OverflowError):  # an integer that no float holds
                if isfinite(sum(cells)):
                    return np.array(cells, np.float64)
        numbers = np.array([one.number(cells[j], where, j, 0) for j, one in enumerate(self.columns)], np.float64)
        return numbers if self.plain else self._encoded([*numbers[:, None]], where)[0]

    def object(self, row: Any, scaling: Any = None) -> Floats:
        """Return one raw row, a mapping from column to cell or a sequence of cells, as an object (width,), scaled.

        A cell may be text, also where it is a number. Columns that are skipped may be left out of a mapping.
        """
        names = [column.name for column in self.columns]
        if isinstance(row, Mapping):
            skipped = {one.name: None for one in self.columns if isinstance(one.kind, Skip)}
            cells = in_order(skipped | dict(row), names)
        elif isinstance(row, str | bytes) or not isinstance(row, Iterable):
            raise TypeError(f"x must be a mapping from column to value, or a list of values, got {shown(row)}")
        else:
            cells = list(row)
        if len(cells) != len(names):
            raise ValueError(f"x must have {len(names)} values, got {len(cells)}")

        def where(j: int, i: int | None) -> str:
            return f"x, feature {names[j]!r}"

        numbers = np.empty((len(names), 1))
        for j, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
            if not isinstance(cell, str):
                column = replace(column, textual=False, gaps=())
            numbers[j] = column.number(cell, where, j, 0)
        x: Floats = self._encoded([*numbers], where)[0]
        if scaling is not None:
            with np.errstate(over="ignore"):
                x = scaling(x)
            if not np.isfinite(x).all():
                raise ValueError(f"x must stay finite when scaled, got {shown(row)}")
        x.setflags(write=False)
        return x


def in_order(x: Mapping[str, Any], features: Sequence[str]) -> list[Any]:
    """Return the values of an object in the order of the features, or raise unless it has just these."""
    missing = [name for name in features if name not in x]
    if missing:
        raise ValueError(f"x must have a value for every feature, got none for {missing[0]!r}")
    if len(x) > len(features):
        extra = next(name for name in x if name not in features)
        raise ValueError(f"x must have values for the features only, got one for {shown(extra)}")
    return [x[name] for name in features]


def described(
    features: Sequence[str],
    schema: Mapping[str, ColumnKind] | None,
    textual: bool = False,
    decimal: str = ".",
    thousands: str | None = None,
) -> list[Column]:
    """Return the columns of features that a schema describes, all written alike: see `Column` and `written`."""
    kinds = kinds_of(features, schema).items()
    return [Column(name, written(kind, decimal, thousands), textual) for name, kind in kinds]


def filled(column: Column, numbers: Floats) -> Column:
    """Return the column with a number in place of "median", that of its known values, as `encode` fills them in."""
    if not isinstance(column.kind, Numeric) or column.kind.fill != "median":
        return column
    known = numbers[~np.isnan(numbers)]
    return replace(column, kind=replace(column.kind, fill=float(np.median(known))))


def encoded(columns: Sequence[Column], cells: Sequence[Any], where: Where) -> tuple[Floats, Encoder]:
    """Return the rows (n, d) of a whole stream, which settles what kinds leave open, and the encoder of later ones."""
    final = []
    for j, (column, own) in enumerate(zip(columns, cells, strict=True)):
        nominal = isinstance(column.kind, Nominal) and column.kind.values is None
        texts = Counter(cell for cell in own if isinstance(cell, str)) if nominal else Counter()
        final.append(column.settled(where(j, None), texts) if nominal else column)
    encoder = Encoder(final)
    X = encoder.encode(cells, where)
    return X, Encoder([filled(one, one.numbers(cells[j], where, j)) for j, one in enumerate(final)])


def _hashed(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def places_in(name: str, features: Sequence[str], first: int = 0) -> Where:
    """Return the words for the places of a table whose first row has a number."""
    return lambda j, i: f"{name}, {'' if i is None else f'row {first + i}, '}column {features[j]!r}"


def also_in(rows: Sequence[int]) -> str:
    """Return the further rows with the same fault, for a message; empty if there are none."""
    if not rows:
        return ""
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f", as in {'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:5]))}{more}"
