"""Sums without rounding, so that sums of parts add up exactly to the sum of the whole.

Addition of floating-point numbers is not associative: in another order or grouping the last bits differ, and then
results cannot be compared exactly. Every floating-point number is a whole number of units of 2^-1074. So a sum is
kept as that whole number, a Python integer; sums merge by `+`, and 0 is the empty sum. It is rounded once, when it
is read.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.sums import LIMB, ROOM, SMALLEST, add_to_limbs, no_limbs
from venn.prediction import Floats, Integers

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


def held_whole(name: str, values: Any, size: int, least: int = -MOST) -> list[int]:
    """Return counts, or sums in units of 2^-1074, of a state; or say what they must be."""
    if type(values) is not list or len(values) != size or any(type(one) is not int for one in values):
        raise ValueError(f"{name} must be a list of {size} integers, got {values!r}")
    bad = [one for one in values if not least <= one <= MOST]
    if bad:
        raise ValueError(f"{name} must be {'counts' if least == 0 else 'sums of finite numbers'}, got {bad[0]}")
    return values
