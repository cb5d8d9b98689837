"""Sums without rounding, so that sums of parts add up exactly to the sum of the whole.

Addition of floating-point numbers is not associative: in another order or grouping the last bits differ, and then
results cannot be compared exactly. Every floating-point number is a whole number of units of 2^-1074. So a sum is
kept as that whole number, a Python integer; sums merge by `+`, and 0 is the empty sum. It is rounded once, when it
is read.

Counts and such sums by name are a table. Whatever counts and adds up predictions keeps one, and is a `Tally`.
"""

from __future__ import annotations

import sys
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from venn._compiled.sums import LIMB, ROOM, SMALLEST, add_to_limbs, no_limbs
from venn.prediction import Floats, Integers
from venn.saved import Saved, checked_keys, component, mergeable, own, same, state, taken_apart

Table = dict[str, list[int]]

MOST = int(sys.float_info.max) << SMALLEST  # the largest finite number in units
TOGETHER = 50  # numbers that count equally often: adding them up together takes as long as one by one


def units(value: float) -> int:
    """Return a finite number in units of 2^-1074.

    Examples
    --------
    >>> rounded(units(0.1) + units(0.2) - units(0.3))
    2.7755575615628914e-17
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (SMALLEST + 1 - denominator.bit_length())


def totals(values: Any, places: Integers | None = None, groups: int = 1, times: Integers | None = None) -> list[int]:
    """Return the sums of groups of numbers in units of 2^-1074: some 3 ns a number.

    Parameters
    ----------
    values : (n,) finite float64
    places : (n,) int64 from 0 to groups - 1, optional
        The group of each; all are in group 0 by default.
    groups : int >= 1
    times : (n,) int64 >= 0, optional
        How often each number counts; once by default.

    Raises
    ------
    ValueError
        A number is not finite.

    Examples
    --------
    >>> [rounded(total) for total in totals([1e100, 1.0, -1e100], np.array([0, 0, 0]))]
    [1.0]
    """
    numbers = np.ascontiguousarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"values must be finite, got {numbers[~np.isfinite(numbers)][0]}")
    places = np.zeros(len(numbers), np.int64) if places is None else np.ascontiguousarray(places, np.int64)
    if times is None:
        return _totals(numbers, places, groups)
    sums = [0] * groups
    each = np.unique(times).tolist()
    if len(numbers) < TOGETHER * len(each):
        for value, group, often in zip(numbers.tolist(), places.tolist(), times.tolist(), strict=True):
            sums[group] += often * units(value)
        return sums
    for often in each:
        part = times == often
        for group, sum_ in enumerate(_totals(numbers[part], places[part], groups)):
            sums[group] += often * sum_
    return sums


def _totals(numbers: Floats, places: Integers, groups: int) -> list[int]:
    sums = [0] * groups
    for start in range(0, len(numbers), ROOM):
        limbs = no_limbs(groups)
        part = slice(start, start + ROOM)
        add_to_limbs(numbers[part].view(np.int64), places[part], limbs)
        for group, k in np.argwhere(limbs).tolist():
            sums[group] += int(limbs[group, k]) << (LIMB * k)
    return sums


def total(values: Any) -> int:
    """Return the sum of (n,) finite numbers in units of 2^-1074."""
    return totals(values)[0]


def rounded(sum_: int, count: int = 1) -> float:
    """Return a sum in units of 2^-1074, divided by a count >= 1 and rounded to the nearest floating-point number."""
    return sum_ / (count << SMALLEST)


def means(sums: list[int], counts: Any) -> Floats:
    """Return (g,) the means of groups from their sums in units of 2^-1074 and (g,) counts >= 1, or one for all."""
    each: NDArray[Any] = np.broadcast_to(counts, len(sums))
    return np.array([rounded(s, int(n)) for s, n in zip(sums, each.tolist(), strict=True)], np.float64)


def added(one: Table, other: Table) -> Table:
    """Return the sums of two tables, name by name; what one of them lacks counts as 0.

    Examples
    --------
    >>> added({"n": [2], "hits": [1, 0]}, {"hits": [1, 1, 1]})
    {'n': [2], 'hits': [2, 1, 1]}
    """
    return {
        name: [a + b for a, b in zip_longest(one.get(name, ()), other.get(name, ()), fillvalue=0)]
        for name in one | other
    }


def _held_table(name: str, table: Any, columns: dict[str, int]) -> Table:
    """Return the table of a state, or say what it must be."""
    checked_keys(name, table, columns)
    for one, size in columns.items():
        values = table[one]
        if type(values) is not list or len(values) != size or any(type(value) is not int for value in values):
            raise ValueError(f"{one} of {name} must be a list of {size} integers, got {values!r}")
        if values and not -MOST <= min(values) <= max(values) <= MOST:
            raise ValueError(f"{one} of {name} must be counts, or sums of finite numbers, got {values!r}")
    return {one: list(table[one]) for one in columns}


@component
class Tally(Saved):
    """Base of what counts and adds up predictions in one table, and so merges exactly.

    A subclass says how long the columns of its table are, and gives what some predictions add to them.
    """

    unnamed = 0

    _table: Table = state(
        _held_table, own(lambda one: one.columns),
        start=own(lambda one: {name: [0] * size for name, size in one.columns.items()}),
    )  # fmt: skip

    @property
    def columns(self) -> dict[str, int]:
        """How many counts or sums there are of each name."""
        raise NotImplementedError

    @property
    def table(self) -> Table:
        """Counts, and sums in units of 2^-1074, by name."""
        return self._table

    @property
    def n(self) -> int:
        """Number of predictions."""
        return self._table["n"][0]

    def add(self, table: Table) -> None:
        """Add counts and sums."""
        self._table = added(self._table, table)

    def merge(self, other: Self) -> Self:
        """Return one of the predictions of both, which do not change.

        Merging is exact: parts give what the whole gives, to the last bit, whatever their order and grouping, and a
        fresh one changes nothing.

        Parameters
        ----------
        other : of the same class
            With the same parameters.

        Raises
        ------
        TypeError, ValueError
            `other` is not as described.
        """
        mergeable(self, other)
        both = self.fresh()
        for part in (self, other):
            both.add(part.table)
        return both

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and same(taken_apart(self), taken_apart(other))

    __hash__ = None  # type: ignore[assignment]

    def _mean(self, sum_: int) -> float:
        if not self.n:
            raise ValueError("means are of at least one prediction, got 0")
        return rounded(sum_, self.n)
