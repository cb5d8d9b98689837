"""Which keys of a fleet have changed: the verdict, and a table of all keys."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from venn.monitors.key_evidence import e_bh, holm
from venn.parameters import fraction, integer, path_of
from venn.scale.fleet_store import KeyRow, read_rows

RATE = 0.1  # share of wrong names among the named, by default
LISTED = 5  # names in a sentence


class KeyChange(NamedTuple):
    """A key that is named.

    Examples
    --------
    >>> print(KeyChange("shop-7", 121, "how often classes come", 4.2, 200))
    shop-7 since about 121 of 200 (how often classes come)
    """

    key: str
    since: int  #: the answer from which on a change shows, an estimate
    kind: str  #: what speaks against it, in words
    evidence: float  #: base 10 logarithm of its e-value, or of 1 / p where no key may ever be named wrongly
    answered: int  #: its answers so far

    def __str__(self) -> str:
        return f"{self.key} since about {self.since:,} of {self.answered:,} ({self.kind})"


@dataclass(frozen=True)
class FleetVerdict:
    """Which keys have changed, and the promise about wrong names.

    Attributes
    ----------
    changed : tuple of KeyChange
        Those that are named, the clearest first.
    keys : int
        Number of keys that have begun.
    promise : str
        What is proved.

    Examples
    --------
    >>> print(FleetVerdict((KeyChange("shop-7", 121, "how often classes come", 4.2, 200),), 500, "..."))
    1 of 500 keys changed: shop-7 since about 121 of 200 (how often classes come).
    """

    changed: tuple[KeyChange, ...]
    keys: int
    promise: str

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that are named."""
        return tuple(one.key for one in self.changed)

    def __str__(self) -> str:
        if not self.changed:
            return f"No key of {self.keys:,} is known to have changed."
        more = len(self.changed) - LISTED
        shown = "; ".join(map(str, self.changed[:LISTED])) + (f"; and {more:,} more" if more > 0 else "")
        return f"{len(self.changed):,} of {self.keys:,} keys changed: {shown}."


def verdict_of(
    rows: Sequence[KeyRow], rate: float | None = None, ever: float | None = None, most: int | None = None
) -> FleetVerdict:
    """Return which keys have changed, from the rows of all keys: see `Fleet.verdict`."""
    if rate is not None and ever is not None:
        raise TypeError(f"rate and ever must not both be given, got {rate!r} and {ever!r}")
    total = len(rows) if most is None else max(len(rows), integer("most", most, 1))
    if ever is not None:
        level = fraction("ever", ever)
        logs = np.array([row.log_p for row in rows])
        found = holm(logs, level, total)
        promise = f"with probability {1 - level:g} no key is ever named that has not changed"
    else:
        level = fraction("rate", RATE if rate is None else rate)
        logs = np.array([row.log_e for row in rows])
        found = e_bh(logs, level, total)
        promise = f"of the keys that are named a share of {level:g} at most is wrong, on average, whenever one looks"
    named = found.tolist()
    return FleetVerdict(tuple(changes([rows[i] for i in named], logs[found])), len(rows), promise)


def changes(rows: Sequence[KeyRow], logs: Any = None) -> list[KeyChange]:
    """Return the named keys as `KeyChange`s, with the logarithms of their evidence; by default the one for `rate`."""
    each = [row.log_e for row in rows] if logs is None else logs.tolist()
    return [
        KeyChange(row.key, row.since, row.kind, one / log(10), row.answered)
        for row, one in zip(rows, each, strict=True)
    ]


def fleet_verdict(
    folder: str | os.PathLike[str], rate: float | None = None, ever: float | None = None, most: int | None = None
) -> FleetVerdict:
    """Return which keys have changed in a fleet's folder, or in the folders of partitions inside it together.

    It reads the files, whichever processes own them.

    Parameters
    ----------
    folder : str or path
    rate, ever
        As of `Fleet.verdict`.
    most
        As of `Fleet`.

    Raises
    ------
    JournalError
        There is no fleet, or it cannot be read.
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import tempfile, venn
    >>> def make(key):
    ...     return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), C=1, classes=["no", "yes"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for partition, key in enumerate(["Oslo", "Riga"]):
    ...         with venn.Fleet(make, f"{folder}/{partition}") as fleet:
    ...             named = fleet.learn_one(key, [0.5], "no")
    ...     print(fleet_verdict(folder))
    No key of 2 is known to have changed.
    """
    return verdict_of(read_rows(path_of("folder", folder)), rate, ever, most)


def columns_of(rows: Sequence[KeyRow]) -> dict[str, Any]:
    """Return the rows of all keys as arrays by name, in the order in which keys came."""
    number = np.float64
    kinds: dict[str, Any] = dict.fromkeys(("asked", "answered", "expired", "since", "named"), np.int64)
    found = {name: np.array([getattr(row, name) for row in rows], kind) for name, kind in kinds.items()}
    right = np.array([np.nan if row.right is None else row.right for row in rows], number)
    answered = found["answered"]
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(answered > 0, right / answered, np.nan)
    return {
        "key": np.array([row.key for row in rows], object), **found, "accuracy": accuracy,
        "log10_e": np.array([row.log_e for row in rows], number) / log(10),
        "log10_p": np.array([-row.log_p for row in rows], number) / log(10),
        "kind": np.array([row.kind for row in rows], object),
        "time": np.array([row.time for row in rows], number),
    }  # fmt: skip
