"""Named data sets: generated, packaged with scikit-learn, or published files found and checked."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from streams.checks import python_label
from streams.example import Scaling, Stream
from streams.files import DataFile, Fetched, offline
from streams.schema import ColumnKind, Nominal, Numeric, Skip
from streams.sources import finish
from streams.tables import CsvTable, read_csv

# ------------------------------------------------------------------------------------------------------------ catalogue
# Descriptions of the named data sets, read from `catalogue.toml`.

Where = Literal["generated", "packaged", "local", "cached", "download", "absent"]


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """Describes a named data set without loading it.

    Parameters
    ----------
    name : str
        For `load`.
    rows, features, classes : int
        Examples, attributes (before nominal ones are encoded) and labels.
    notes : str
        The task and what to beware of.
    origin, licence : str
    where : {"generated", "packaged", "local", "cached", "download", "absent"}
        Where `load` would take it from now; "absent": from nowhere, until $STREAMS_DATA names a folder with it.

    Examples
    --------
    >>> import streams
    >>> car = next(info for info in streams.datasets() if info.name == "car")
    >>> car.rows, car.features, car.classes
    (1728, 6, 4)
    """

    name: str
    rows: int
    features: int
    classes: int
    notes: str
    origin: str
    licence: str
    where: Where


@dataclass(frozen=True)
class Published:
    """A set that is a CSV file with its original values and rows, the class in column "label".

    Where the file is not, the same table is `fetched`, if scikit-learn knows where from.
    """

    known: DatasetInfo
    classes: tuple[str, ...]
    file: DataFile
    schema: Mapping[str, ColumnKind]
    fetched: Fetched | None

    @property
    def name(self) -> str:
        """Name for `load`."""
        return self.known.name

    def info(self) -> DatasetInfo:
        """Return the description, without loading the set."""
        return replace(self.known, where=self.where())

    def read(self) -> CsvTable:
        """Return the encoded table of the checked file."""
        return read_csv(self._find(), "label", self.schema, self.classes, ",")

    def where(self) -> Where:
        """Return where `read` would take the set from now."""
        found = self.file.where()
        if found != "absent" or self.fetched is None:
            return found
        found = self.fetched.table.where()
        return "download" if found == "absent" and not offline() else found

    def _find(self) -> Path:
        """Return the path of the checked file or table."""
        path, file = self.file.at_hand(), self.file
        if path is not None:
            return path
        if self.fetched is None:
            raise FileNotFoundError(
                f"{file.name} is not on this machine: {file.remedy}. Origin: {self.known.origin}; sha256 {file.sha256}"
            )
        return self.fetched.find(self.name, file.remedy, self.schema)


KINDS: dict[str, type[Numeric | Nominal | Skip]] = {"numeric": Numeric, "nominal": Nominal, "skip": Skip}


def _published(name: str, known: dict[str, Any]) -> Published:
    schema: dict[str, ColumnKind] = {}
    for described in known.pop("columns", ()):
        kind = KINDS[described.pop("kind")]
        schema |= dict.fromkeys(described.pop("names"), kind(**described))
    classes, file = tuple(known.pop("classes")), DataFile(**known.pop("file"))
    fetched = _fetched(name, known.pop("fetched")) if "fetched" in known else None
    about = DatasetInfo(name=name, classes=len(classes), where="absent", **known)
    return Published(about, classes, file, schema, fetched)


def _fetched(name: str, known: dict[str, Any]) -> Fetched:
    table = DataFile(f"{name}.table.csv", known.pop("size"), known.pop("sha256"))
    lists: dict[str, Any] = {key: tuple(known.pop(key)) for key in ("drop", "rows") if key in known}
    return Fetched(table=table, names=tuple(known.pop("names").split()), **lists, **known)


_KNOWN = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))

PUBLISHED = tuple(_published(name, known) for name, known in _KNOWN.items() if "where" not in known)
#: Sets that need no file, by name.
UNPUBLISHED = {name: DatasetInfo(name=name, **known) for name, known in _KNOWN.items() if "where" in known}


# --------------------------------------------------------------------------------------------------------------- loaded


def load(
    name: str,
    shuffle: int | None = None,
    *,
    scale: bool | Scaling = True,
) -> Stream:
    """Return the stream of a named data set.

    Nominal attributes are one-hot, those with a natural order are coded 0, 1, 2, ... (Car Evaluation).
    Published files are taken from the folder $STREAMS_DATA, else from the cache, else fetched into it by scikit-learn
    from OpenML (`fetch_openml`, `fetch_covtype`), if it has the same table and $STREAMS_OFFLINE is not set. The sha256
    of file or table is always checked.

    Parameters
    ----------
    name : str
        One of the names that `datasets` lists.
    shuffle : int, optional
        Seed of the order numpy.random.default_rng(seed).permutation(n); None keeps the file's order. In many
        sets that order is sorted by class, so far from exchangeable: see their notes.
    scale : bool or Scaling, default True
        True: mean 0 and deviation 1 over the whole stream, a constant feature becomes 0. Nothing is
        ever fitted on the past of the stream: see `Scaling` for why.

    Raises
    ------
    ValueError
        For an unknown name, or a file or table whose checksum is wrong.
    FileNotFoundError
        When the file is not here and cannot be fetched; the message says what to do.

    Examples
    --------
    >>> stream = load("car", scale=False)
    >>> stream.classes
    ('unacc', 'acc', 'good', 'vgood')
    >>> next(iter(stream))
    (array([3., 3., 0., 0., 0., 0.]), 'unacc')
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, got {name!r}")
    if name not in _SETS:
        close = difflib.get_close_matches(name, _SETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        if Path(name).suffix:
            hint = ": a file of your own is read by from_csv, or by from_frames"
        raise ValueError(f"name must be one of {', '.join(_SETS)}, got {name!r}{hint}")
    return finish(_SETS[name].read(), name, shuffle, scale)


def datasets() -> list[DatasetInfo]:
    """Describe every named data set without reading any data.

    Examples
    --------
    >>> [info.name for info in datasets()][:3]
    ['car', 'digits', 'breast_cancer']
    """
    return [known.info() for known in _SETS.values()]


# Generated ------------------------------------------------------------------------------------------

CAR = {
    "buying": ("low", "med", "high", "vhigh"),
    "maint": ("low", "med", "high", "vhigh"),
    "doors": ("2", "3", "4", "5more"),
    "persons": ("2", "4", "more"),
    "lug_boot": ("small", "med", "big"),
    "safety": ("low", "med", "high"),
}
CAR_CLASSES = ("unacc", "acc", "good", "vgood")

# The DEX model judges a car in three steps. Rows and columns run from the low code to the high code.
_PRICE = np.array([[3, 3, 2, 1], [3, 2, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])  # buying, maint; 3 is cheap
_TECH = np.array([[0, 0, 0], [0, 1, 2], [0, 2, 3]])  # comfort, safety; 3 is best
_CAR = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 3], [0, 1, 2, 3]])  # price, tech; class code


def car_rows() -> Iterator[tuple[str, ...]]:
    """Yield the 1728 rows of Car Evaluation, six attributes and the class, in the file's order.

    The set is a complete enumeration, labelled by a decision model of Bohanec and Rajkovic (1988);
    its tables are recovered from the published data.

    Examples
    --------
    >>> next(car_rows())
    ('vhigh', 'vhigh', '2', '2', 'small', 'low', 'unacc')
    """
    # The file lists prices from very high to low, everything else upwards.
    orders = [values[::-1] if column in ("buying", "maint") else values for column, values in CAR.items()]
    for row in product(*orders):
        buying, maint, doors, persons, boot, safety = (
            values.index(value) for values, value in zip(CAR.values(), row, strict=True)
        )
        tech = _TECH[_comfort(doors, persons, boot), safety]
        yield *row, CAR_CLASSES[_CAR[_PRICE[buying, maint], tech]]


def _comfort(doors: int, persons: int, boot: int) -> int:
    """Return 0 (poor), 1 or 2 (good) from the codes of the three attributes."""
    two_seats, crowd_in_two_doors = persons == 0, persons == 2 and doors == 0
    if two_seats or (boot == 0 and crowd_in_two_doors):
        return 0
    roomy = doors >= 2 or (doors == 1 and persons == 2)
    return 2 if boot == 2 or (boot == 1 and roomy) else 1


def _car() -> CsvTable:
    codes = [
        [values.index(value) for values, value in zip((*CAR.values(), CAR_CLASSES), row, strict=True)]
        for row in car_rows()
    ]
    numbers = np.array(codes, dtype=np.int64)
    return CsvTable(numbers[:, :-1].astype(np.float64), numbers[:, -1].copy(), CAR_CLASSES, tuple(CAR))


# Packaged with scikit-learn -------------------------------------------------------------------------


def _packaged(name: str, **options: Any) -> CsvTable:
    """Return a set of scikit-learn's; of several numbers to predict the first is taken."""
    from sklearn import datasets as held

    bunch = getattr(held, f"load_{name}")(**options)
    y = bunch.target if bunch.target.ndim == 1 else bunch.target[:, 0]
    numbers = y.dtype.kind == "f"
    classes = () if numbers else tuple(map(python_label, bunch.target_names))
    features = tuple(feature.lower() for feature in bunch.feature_names)
    X = np.array(bunch.data, dtype=np.float64, order="C")
    return CsvTable(X, y.astype(np.float64 if numbers else np.int64), classes, tuple(map(str, features)))


@dataclass(frozen=True)
class _Made:
    """A set that needs no file."""

    known: DatasetInfo
    make: Callable[[], CsvTable]

    def info(self) -> DatasetInfo:
        return self.known

    def read(self) -> CsvTable:
        return self.make()


_MAKERS: dict[str, Callable[[], CsvTable]] = {
    "car": _car,
    **{name: partial(_packaged, name) for name in ("digits", "breast_cancer", "linnerud")},
    "diabetes": partial(_packaged, "diabetes", scaled=False),
}

_SETS: dict[str, _Made | Published] = {name: _Made(known, _MAKERS[name]) for name, known in UNPUBLISHED.items()} | {
    published.name: published for published in PUBLISHED
}
