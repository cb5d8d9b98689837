"""Descriptions of the named data sets, read from `catalogue.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from streams.fetched import Fetched, offline
from streams.files import DataFile, Progress, address
from streams.schema import ColumnKind, Nominal, Numeric, Skip
from streams.tables import CsvTable, read_csv

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
        Where `load` would take it from now; "absent": from nowhere, until $STREAMS_DATA or $STREAMS_URL is set.

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

    def read(self, base_url: str | None, progress: Progress | None) -> CsvTable:
        """Return the encoded table of the checked file."""
        return read_csv(self._find(base_url, progress), "label", self.schema, self.classes, ",")

    def where(self) -> Where:
        """Return where `read` would take the set from now."""
        found = self.file.where()
        if found != "download" or address(None):
            return found
        if self.fetched is None:
            return "absent"
        found = self.fetched.table.where()
        return "absent" if found == "download" and offline() else found

    def _find(self, base_url: str | None, progress: Progress | None) -> Path:
        """Return the path of the checked file or table."""
        if self.fetched is None or self.file.at_hand() or address(base_url):
            return self.file.find(self.known.origin, base_url, progress)
        return self.fetched.find(self.name, self.file.remedy, self.schema, progress)


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


_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

PUBLISHED = tuple(_published(name, known) for name, known in _KNOWN.items() if "where" not in known)
#: Sets that need no file, by name.
UNPUBLISHED = {name: DatasetInfo(name=name, **known) for name, known in _KNOWN.items() if "where" in known}
