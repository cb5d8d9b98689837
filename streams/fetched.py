"""Fetches published tables by scikit-learn's own functions, from OpenML and others, and writes them as ours."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from streams.checks import Floats
from streams.files import DataFile, Progress
from streams.schema import ColumnKind, Numeric, is_number

BLOCK = 20_000  # rows written at once


@dataclass(frozen=True)
class Decoded:
    """A table as its source has it.

    Parameters
    ----------
    names : sequence of str
        Of the d features.
    X : ndarray of float, shape (n, d)
        Numbers; codes where `words` has the feature. NaN is a missing value.
    words : mapping from str to sequence of str
        The words that the codes of a feature stand for.
    y : ndarray, shape (n,)
        Labels, words or numbers.
    """

    names: Sequence[str]
    X: Floats
    words: Mapping[str, Sequence[str]]
    y: np.ndarray[Any, Any]


def from_openml(number: int, label: str) -> Decoded:
    """Return a data set of OpenML by its number, from scikit-learn's cache if it is there."""
    from sklearn.datasets import fetch_openml

    # liac-arff reads numbers to the last bit, and needs no pandas.
    bunch = fetch_openml(data_id=number, target_column=label, as_frame=False, parser="liac-arff")
    return Decoded(bunch.feature_names, bunch.data, bunch.categories or {}, bunch.target)


def from_covtype() -> Decoded:
    """Return Covertype, from scikit-learn's cache if it is there."""
    from sklearn.datasets import fetch_covtype

    bunch = fetch_covtype()
    return Decoded(bunch.feature_names, bunch.data, {}, bunch.target)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A table that scikit-learn fetches, and what makes it the published one.

    Values are written in one spelling, whatever that of the source: numbers as short as they are exact, 1.50 as 1.5 and
    2.0 as 2; words as they are. So a table has the same checksum from wherever it comes.

    Parameters
    ----------
    table : DataFile
        The table in that spelling, a CSV file of ours.
    names : tuple of str
        Our names of the features, in the order of the source.
    openml : int, optional
        Number of the data set on OpenML; without one it is Covertype.
    label : str, optional
        Column of the source that holds the label, where it is not the one that the source names.
    drop : tuple of str, optional
        Columns of the source that are no features.
    rows : tuple of two int, optional
        First row of the source that is ours, and the first behind it that is not.
    values : mapping from str to mapping from str to str, optional
        Our words for those of the source, by our name of a column; "label" is the label's.
    """

    table: DataFile
    names: tuple[str, ...]
    openml: int | None = None
    label: str = "default-target"
    drop: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The name of the source, for messages."""
        return f"OpenML (data set {self.openml})" if self.openml else "scikit-learn's fetch_covtype"

    def find(self, name: str, remedy: str, schema: Mapping[str, ColumnKind], progress: Progress | None = None) -> Path:
        """Return the path of the checked table, fetched if it is not in the cache yet.

        Raises
        ------
        ValueError
            When the source has another table than the published one.
        FileNotFoundError
            When the source cannot be reached; the message says what to do.
        """
        path = self.table.at_hand()
        if path is not None:
            return path
        if progress is not None:
            progress(0, self.table.size)
        found = self._fetch(name, remedy)
        path = self.table.keep(
            f"the table of {name} from {self.source}", lambda output: self.write(found, schema, output), remedy
        )
        if progress is not None:
            progress(self.table.size, self.table.size)
        return path

    def _fetch(self, name: str, remedy: str) -> Decoded:
        if offline():
            raise FileNotFoundError(f"{name} is not on this machine, and STREAMS_OFFLINE forbids to fetch it: {remedy}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it tries again: the last error says enough
                return from_covtype() if self.openml is None else from_openml(self.openml, self.label)
        except (OSError, ValueError, KeyError) as error:  # whatever a server may answer
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reason = " ".join(str(getattr(error, "reason", error)).split())
            raise FileNotFoundError(
                f"{name} is not on this machine and cannot be fetched from {self.source}: {reason}; "
                f"try again with a network, or {remedy}"
            ) from error

    def write(self, found: Decoded, schema: Mapping[str, ColumnKind], output: IO[bytes]) -> str:
        """Write a table in our spelling and return its checksum."""
        kept = [j for j, name in enumerate(found.names) if name not in self.drop]
        if len(kept) != len(self.names):
            raise ValueError(f"{self.source} must have the {len(self.names)} features of the table, got {len(kept)}")
        first, end = self.rows or (0, len(found.y))
        digest = hashlib.sha256()

        def line_up(columns: Sequence[Sequence[str]]) -> None:
            text = "".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode()
            digest.update(text)
            output.write(text)

        line_up([[name] for name in (*self.names, "label")])
        for start in range(first, end, BLOCK):
            rows = slice(start, min(start + BLOCK, end))
            columns = []
            for j, name in zip(kept, self.names, strict=True):
                spell = self._speller(name, schema.get(name, Numeric()), found.words.get(found.names[j]))
                columns.append(_spelled(found.X[rows, j], spell))
            label = self._speller("label", None, None)
            line_up([*columns, _spelled(found.y[rows], label)])
        return digest.hexdigest()

    def _speller(self, name: str, kind: ColumnKind | None, words: Sequence[str] | None) -> Callable[[Any], str]:
        """Return what spells a value of a column in our way."""
        ours = self.values.get(name, {})

        def spell(value: Any) -> str:
            if value != value:
                return "?"
            text = value if isinstance(value, str) else _number(float(value)) if words is None else words[int(value)]
            text = ours.get(text, text)
            return _number(float(text)) if isinstance(kind, Numeric) and is_number(text) else text

        return spell


def offline() -> bool:
    """Whether $STREAMS_OFFLINE is set: nothing is fetched but from an address that is given."""
    return bool(os.environ.get("STREAMS_OFFLINE"))


def _number(value: float) -> str:
    """Return the shortest text of a number from which it is read back to the last bit."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _spelled(values: np.ndarray[Any, Any], spell: Callable[[Any], str]) -> list[str]:
    """Return the texts of values, each distinct value spelled once."""
    distinct, places = np.unique(values, return_inverse=True)
    texts = np.array([spell(value) for value in distinct.tolist()], dtype=object)
    return texts[places.reshape(-1)].tolist()
