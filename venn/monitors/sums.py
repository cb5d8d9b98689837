"""What monitors share: checks, tables of sums, forecasts in bins, means, what compiled loops update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from venn._compiled.outcomes import keep_latest, mean_of_latest
from venn.machines.machine import grown
from venn.parameters import (
    LARGEST_INTEGER,
    TRUTH,
    Parameters,
    array_of,
    integer,
    is_number,
    several_names,
    with_methods,
)
from venn.prediction import SUM, Floats, Integers, sum_may_miss
from venn.saved import (
    Saved,
    checked_keys,
    component,
    mergeable,
    own,
    param,
    restored_finite,
    restored_int,
    same,
    state,
    taken_apart,
)

# --------------------------------------------------------------------------------------------------------------- checks
# Checks of the input of monitors: p-values, deviations, forecasts, and the true labels.


def number(name: str, value: Any, least: float = 0.0, truths: bool = False) -> float:
    """Return a number in [least, 1], or say what is wrong with it; with `truths` True and False are numbers."""
    if isinstance(value, float) and least <= value <= 1.0:
        return value
    if isinstance(value, TRUTH):
        if truths:
            return float(value)
    elif is_number(value):
        if least <= value <= 1:
            return float(value)
        raise ValueError(f"{name} must lie in [{least:g}, 1], got {value!r}")
    raise TypeError(f"{name} must be a number in [{least:g}, 1], got {value!r}")


def numbers(name: str, values: Any, least: float = 0.0, truths: bool = False) -> Floats:
    """Return (n,) numbers in [least, 1], or say what is wrong with them."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a 1-D array of numbers, got rows of different length") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array of numbers, got shape {array.shape}")
    if len(array) and array.dtype.kind not in ("biuf" if truths else "iuf"):
        raise TypeError(f"{name} must be a 1-D array of numbers, got dtype {array.dtype}")
    clean = np.ascontiguousarray(array, np.float64)
    bad = np.flatnonzero(~((clean >= least) & (clean <= 1)))  # NaN is bad
    if bad.size:
        raise ValueError(f"{name} must lie in [{least:g}, 1], got {clean[bad[0]].item()!r} at position {bad[0]}")
    return clean


def probabilities(proba: Any, name: str = "proba") -> Floats:
    """Return (n,) probabilities or (n, c) distributions, or say what is wrong with them."""
    values = np.ma.filled(proba, np.nan) if np.ma.isMaskedArray(proba) else array_of(proba)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers, got {values.dtype}: {proba!r}")
    if values.ndim not in (1, 2) or not len(values) or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(f"{name} must have shape (n,) or (n, c) with n >= 1 and c >= 2, got {values.shape}")
    p = _within_one(name, values)
    if p.ndim == 2:
        sums = p.sum(axis=1)
        off = np.abs(sums - 1.0)
        if off.max() > sum_may_miss(values.dtype, p.shape[1]):
            row = int(off.argmax())
            raise ValueError(f"{name} must have rows of sum 1, got {sums[row]} in row {row}")
        if off.max() > SUM:
            p = p / sums[:, None]
    return p


def forecasts(proba: Any, truth: Any, names: tuple[str, str] = ("proba", "truth")) -> tuple[Floats, Integers]:
    """Return both arrays, or say what is wrong with them."""
    p = probabilities(proba, names[0])
    if p.ndim == 1:
        return p, class_codes(names[1], truth, len(p), 2, "0 or 1, False or True", "iub")
    return p, class_codes(names[1], truth, len(p), p.shape[1], kinds="iub")


def _within_one(name: str, values: Any) -> Floats:
    """Return numbers in [0, 1], or say which one is not."""
    # Contiguous rows: numpy's sum of a row depends on that, and parts must give the rows of the whole.
    clean: Floats = np.ascontiguousarray(values, np.float64)
    wrong = np.argwhere(~((clean >= 0.0) & (clean <= 1.0)))  # NaN is wrong
    if len(wrong):
        row, *label = wrong[0].tolist()
        of = f" of label {label[0]}" if label else ""
        raise ValueError(f"{name} must lie in [0, 1], got {clean[row, *label]}{of} in row {row}")
    return clean


def class_codes(name: str, values: Any, n: int, c: int, wanted: str = "", kinds: str = "iu") -> Integers:
    """Return (n,) class codes from 0 to c - 1, of dtypes of these kinds, or say what is wrong with them."""
    array = array_of(values)
    wanted = wanted or f"class codes from 0 to {c - 1}"
    integers = array.dtype.kind in kinds and not np.ma.isMaskedArray(values)
    if not integers and not (array.size == 0 and array.dtype.kind == "f"):
        raise TypeError(f"{name} must be {wanted}, got {array.dtype}: {values!r}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each row, got {array.shape}")
    wrong = (array < 0) | (array >= c)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name} must be {wanted}, got {array[i]} in row {i}")
    return array.astype(np.int64)


# ----------------------------------------------------------------------------------------------------------------- sums
# Counts and sums by name, which of parts add up to those of the whole.

Table = dict[str, Floats]


def _restored_table(name: str, table: Any, columns: dict[str, int]) -> Table:
    """Return the table of a state, or say what it must be."""
    checked_keys(name, table, columns)
    return {one: restored_finite(f"{one} of {name}", table[one], (size,)).copy() for one, size in columns.items()}


@component
class Tallies(Saved):
    """Base of what counts and adds up predictions in one table, and so merges.

    A subclass says how long the columns of its table are, and gives what some predictions add to them.
    """

    unnamed = 0

    _table: Table = state(
        _restored_table, own(lambda one: one.columns),
        start=own(lambda one: {name: np.zeros(size) for name, size in one.columns.items()}),
    )  # fmt: skip

    @property
    def columns(self) -> dict[str, int]:
        """How many counts or sums there are of each name."""
        raise NotImplementedError

    @property
    def state(self) -> dict[str, Any]:
        """Counts and sums."""
        return {"table": self.table}

    @property
    def table(self) -> Table:
        """Counts and sums by name."""
        return {name: column.copy() for name, column in self._table.items()}

    @property
    def n(self) -> int:
        """Number of predictions."""
        return int(self._table["n"][0])

    def add(self, table: dict[str, Any]) -> None:
        """Add counts and sums."""
        self._table = {name: column + table[name] for name, column in self._table.items()}

    def merge(self, other: Self) -> Self:
        """Return one of the predictions of both, which do not change.

        Counts add up exactly, sums but for rounding: parts in another order or grouping may differ in their last bits.

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

    def _mean(self, sum_: float) -> float:
        if not self.n:
            raise ValueError("means are of at least one prediction, got 0")
        return float(sum_ / self.n)


# ----------------------------------------------------------------------------------------------------------------- bins
# Forecasts in bins: the cuts between bins, and the contents of each bin.


class Bins(Protocol):
    """Chooses the cuts between bins of probabilities."""

    def cuts(self, probabilities: Floats) -> Floats:
        """Return (b - 1,) nondecreasing cuts in [0, 1] for b bins.

        Bin 0 lies below the first cut; a probability equal to a cut belongs to the bin above.
        """


@component
class WidthBins(Parameters):
    """Bins of equal width: [i / bins, (i + 1) / bins), the last one closed.

    Parameters
    ----------
    bins : int >= 1, default 10

    Examples
    --------
    >>> WidthBins(4).cuts(np.array([0.1, 0.2]))
    array([0.25, 0.5 , 0.75])
    """

    bins: int = param(integer, 1, LARGEST_INTEGER, default=10)

    def cuts(self, probabilities: Floats) -> Floats:
        """Return the cuts i / bins."""
        return np.arange(1, self.bins) / self.bins


def cuts_of(bins: Bins | None, p: Floats) -> Floats:
    """Return the cuts between the bins, by default `WidthBins(10)`, or say what is wrong with them."""
    wanted = "an object with a method 'cuts', such as WidthBins(10)"
    bins = with_methods("bins", WidthBins() if bins is None else bins, wanted, "cuts")
    cuts = np.asarray(bins.cuts(p), np.float64)
    if cuts.ndim != 1 or not ((cuts >= 0.0) & (cuts <= 1.0)).all() or not (cuts[:-1] <= cuts[1:]).all():
        raise ValueError(f"bins must give nondecreasing cuts in [0, 1], got {cuts!r}")
    return cuts


def place(p: Floats, cuts: Floats) -> Integers:
    """Return the bin of each probability."""
    return np.searchsorted(cuts, p, side="right")


def count_bins(places: Integers, p: Floats, y: Integers) -> tuple[Integers, Floats, Integers]:
    """Return the numbers of forecasts, the sums of their probabilities and the numbers of events, by bin."""
    counts: Integers = np.bincount(places)
    sums = np.bincount(places, p).astype(np.float64)
    events: Integers = np.bincount(places[y == 1], minlength=len(counts))
    return counts, sums, events


def calibration_error(counts: Any, sums: Floats, events: Any) -> float:
    """Return the mean over the forecasts of |share of events - mean probability| in their bin."""
    return float(np.abs(events - sums).sum() / counts.sum())


@component
class CalibrationBins(Tallies):
    """The bins of a reliability diagram, of equal width, filled one forecast at a time in constant memory.

    Parameters
    ----------
    bins : int >= 1, default 10

    Attributes
    ----------
    n : int
        Number of forecasts.
    ece : float
        Expected calibration error: equal to the function `ece` of the same forecasts, but for rounding.

    Raises
    ------
    ValueError, TypeError
        The number of bins is not as described.

    Examples
    --------
    >>> monitor = CalibrationBins(2)
    >>> for confidence, hit in [(0.75, True), (0.75, True), (0.25, False), (0.25, True)]:
    ...     monitor.update(confidence, hit)
    >>> monitor.ece
    0.25
    >>> monitor.reliability[1]
    {'lower': 0.5, 'upper': 1.0, 'count': 2, 'confidence': 0.75, 'accuracy': 1.0}
    >>> monitor.merge(monitor).n
    8
    """

    bins: int = param(integer, 1, LARGEST_INTEGER, default=10, sized=True)

    def derive(self) -> None:
        """Find the cuts."""
        self._cuts: list[float] = WidthBins(self.bins).cuts(np.empty(0)).tolist()

    @property
    def columns(self) -> dict[str, int]:
        """Of each bin the forecasts, the sum of their probabilities, and the events that happened."""
        return dict.fromkeys(("counts", "sums", "hits"), self.bins)

    @property
    def n(self) -> int:
        """Number of forecasts."""
        return int(self._table["counts"].sum())

    def update(self, confidence: float, hit: Any) -> None:
        """Add one forecast: a probability in [0, 1], and whether the event happened (True, 1, False or 0)."""
        self.update_many([number("confidence", confidence)], [hit])

    def update_many(self, confidence: Any, hit: Any) -> None:
        """Add (n,) forecasts, with the same result as one after another."""
        if np.shape(confidence) == np.shape(hit) == (0,):
            return
        p, y = forecasts(confidence, hit, ("confidence", "hit"))
        if p.ndim != 1:
            raise ValueError(f"confidence must have shape (n,), got {p.shape}")
        places = place(p, np.array(self._cuts))
        for name, added in (("counts", 1.0), ("sums", p), ("hits", y)):
            np.add.at(self._table[name], places, added)  # in their order, as one by one

    @property
    def ece(self) -> float:
        """Expected calibration error; 0.0 before the first forecast."""
        if not self.n:
            return 0.0
        return calibration_error(*self._table.values())

    @property
    def reliability(self) -> list[dict[str, float]]:
        """The non-empty bins, as plain data: ends, count, mean confidence, share of events."""
        ends = [0.0, *self._cuts, 1.0]
        return [
            {
                "lower": ends[i],
                "upper": ends[i + 1],
                "count": int(count),
                "confidence": sum_ / count,
                "accuracy": hits / count,
            }
            for i, (count, sum_, hits) in enumerate(zip(*(c.tolist() for c in self._table.values()), strict=True))
            if count
        ]


# ---------------------------------------------------------------------------------------------------------------- means
# Means of columns over all steps of a stream, and over its latest steps.

ROWS = 1024  # steps


def _columns_of(means: Means) -> tuple[int, ...]:
    return (len(means.names),)


def _latest(means: Means) -> tuple[int, ...]:
    return min(means.n, means.window), len(means.names)


@component
class Means(Saved):
    """Sums of columns over all steps, and the rows of the latest ones, as many as a window holds.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    window : int >= 1

    Examples
    --------
    >>> means = Means(("hit",), window=2)
    >>> means.extend(np.array([[1.0], [1.0], [0.0]]), stops=[2])
    [{'hit': 1.0}]
    >>> means.sums += 2
    >>> means.of_all(), means.of_latest(2)
    ({'hit': 0.6666666666666666}, {'hit': 0.5})
    """

    names: tuple[str, ...] = param(several_names)
    window: int = param(integer, 1)

    n: int = state(restored_int, start=0)
    sums: Floats = state(restored_finite, own(_columns_of), start=own(lambda means: np.zeros(_columns_of(means))))
    _ring: Floats = state(restored_finite, own(_latest), start=own(lambda means: np.zeros(_latest(means))))

    @property
    def state(self) -> dict[str, Any]:
        """Number of steps, sums and latest rows."""
        return super().state | {"ring": self._ring[: min(self.n, self.window)].copy()}

    def extend(self, table: Floats, stops: Sequence[int] = ()) -> list[dict[str, float]]:
        """Keep the rows of several new steps; return the means over the window after so many of these."""
        before, self.n = self.n, self.n + len(table)
        if (held := min(self.n, self.window)) > len(self._ring):
            self._ring = grown(self._ring, min(max(2 * held, ROWS), self.window), len(self.names))
        means = np.empty((len(stops), len(self.names)))
        keep_latest(self._ring, before, self.window, table, np.array(stops, np.int64), means)
        return self.named(means)

    def of_all(self) -> dict[str, float]:
        """Return the means over all steps, at least one."""
        return self.named(self.sums[None] / self.n)[0]

    def of_latest(self, size: int) -> dict[str, float]:
        """Return the means over the latest steps, as many as the window has at most."""
        means = np.empty((1, len(self.names)))
        mean_of_latest(self._ring, self.n, min(size, self.window), self.window, means[0])
        return self.named(means)[0]

    def named(self, means: Floats) -> list[dict[str, float]]:
        """Return rows of means by name."""
        return [dict(zip(self.names, row, strict=True)) for row in means.tolist()]


# -------------------------------------------------------------------------------------------------------------- running
# The base of what a compiled loop updates step by step.


def restored_memory(name: str, memory: Any, size: int) -> Floats:
    """Return the memory of a `Sums` in a state, whose first number is one of steps; or say what it must be."""
    found = restored_finite(name, memory, (size,))
    if not 0 <= found[0] <= LARGEST_INTEGER:
        raise ValueError(f"{name} must begin with a number of steps, got {found[0]}")
    return found


@component
class Sums(Saved):
    """Base with a fixed number of floats, first the number of steps, which a compiled loop updates.

    One number is an array of length 1, so that single steps and blocks of steps run the same code.
    """

    unnamed = 0
    _run: ClassVar[Any]  # compiled: run(constants, memory, xs, out)
    _width: ClassVar[tuple[int, ...]] = ()  # of what the loop writes after each number
    _inputs: ClassVar[tuple[int, ...]] = (1,)  # shape of what it reads in one step

    _memory: Floats = state(restored_memory, own(lambda one: one.size), start=own(lambda one: one.begin()))

    @property
    def constants(self) -> Any:
        """What the loop reads besides."""
        return ()

    @property
    def size(self) -> int:
        """Length of the memory."""
        raise NotImplementedError

    def begin(self) -> Floats:
        """Return the memory before the first step."""
        return np.zeros(self.size)

    def derive(self) -> None:
        """Make room for one number and its result."""
        self._constants = np.array(self.constants, np.float64)
        self._one = np.empty(self._inputs)
        self._out = np.empty((1, *self._width))
        self._step = self._constants, self._memory, self._one, self._out

    def move(self, to: Floats) -> None:
        """Keep the memory in an array of the same size from now on, which another loop may update as well."""
        to[:] = self._memory
        self._memory = to
        self.derive()

    @property
    def n(self) -> int:
        """Number of steps."""
        return int(self._memory[0])

    def _many(self, clean: Floats) -> Floats:
        """Process (m,) numbers; return what the loop writes after each."""
        out = np.empty((clean.shape[-1], *self._width))
        self._run(self._constants, self._memory, clean, out)
        return out


class OfNumbers(Sums):
    """Base of those that read one number at each step."""

    _named: ClassVar[tuple[str, str]] = "p", "ps"  # one number of its input, and several
    _least: ClassVar[float] = 0.0  # of its input; the largest is 1
    _truth: ClassVar[bool] = False  # whether True and False are numbers as well

    def update(self, x: Any) -> None:
        """Take in one number, from 0 to 1, of a deviation from -1 to 1.

        Raises
        ------
        TypeError, ValueError
            It is not; nothing changes.
        """
        # The usual case first: two comparisons, both false for NaN.
        usual = type(x) is float and self._least <= x <= 1.0
        self._one[0] = x if usual else number(self._named[0], x, self._least, self._truth)
        self._run(*self._step)

    def update_many(self, xs: Any) -> Floats:
        """Take in (m,) numbers in order; return (m, ...) what it says after each, to the last bit as one by one.

        Of a martingale that is ln S, of a bound its lower and upper end, of a band the total and the radius.

        Raises
        ------
        TypeError, ValueError
            `xs` is not one-dimensional, or not all are numbers from 0 to 1 (-1 to 1); nothing changes.
        """
        return self._many(numbers(self._named[1], xs, self._least, self._truth))
