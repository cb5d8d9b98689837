"""Which columns of the objects have changed: each is ranked alone among its own past, and named with a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

import numpy as np

from venn._compiled.martingales import WIDTH, bet_each, rank_columns
from venn.machines.machine import check_index, check_row, grown, names_in
from venn.machines.objects import clean_object
from venn.machines.tables import as_mapping
from venn.monitors.alarms import Alarm, odds, shares
from venn.monitors.change_point import MEMORY, ChangePoint, change_of_counts, change_point, of_p_values
from venn.monitors.naming import MOST, Naming, rarity
from venn.parameters import array_of, flag, fraction, integer, optional, several_names
from venn.prediction import Floats, Integers
from venn.saved import Saved, array, component, each, own, param, part, restored_int, saved, state
from venn.smoothing import Smoothing

DETECTOR = "Columns"
FAR = 2**62
NOBODY = np.zeros((0, WIDTH))  # memories of no bets
ROOM = 64  # objects
GAP = -1.0  # in place of the number of a text
BARS = 12  # of a picture of numbers
VALUES = 6  # of a picture of texts
TOLD = 5  # columns in a sentence
USUAL, SELDOM = 0.5, 0.25  # a value that more than half have now, and fewer than a quarter had
LATELY = 10  # values: more than half of them equal to one value shows that a sensor stands still
FEW, UNIT = 12, 1.5  # a change of unit: the least number of distinct values, and the least factor
ALIKE = 0.25  # the share of the spread by which quantiles may differ from a change of unit alone
NOTABLE = 0.1  # rise of the share of gaps that is mentioned
MOVED = 0.25  # share of the quartiles' distance by which a median must move to be mentioned


@saved
@dataclass(frozen=True)
class NamedColumn:
    """A column that was named.

    Attributes
    ----------
    place : int
        Of the column, from 0.
    step : int
        The number of the object at which it was named.
    change : ChangePoint
        Where its change began: an estimate.
    log : float
        The logarithm of its capital.
    before : (n,) float64
        Its latest values before the change, 1000 at most; of texts their numbers.
    """

    place: int
    step: int
    change: ChangePoint
    log: float
    before: Floats


def has_distances(x: Any) -> bool:
    """Whether an object has numbers only, and no gap."""
    numbers = None if isinstance(x, Mapping) else array_of(x)
    return numbers is not None and numbers.dtype.kind in "fiub" and not np.isnan(numbers).any()


def given_names(name: str, value: Any) -> bool | tuple[str, ...]:
    """Return whether columns are watched, or their names; or say what they must be."""
    return flag(name, value) if isinstance(value, bool | np.bool_) else several_names(name, value)


def _restored_rows_of(name: str, value: Any, drift: ColumnDrift) -> Floats:
    """Check the objects in a state: NaN for gaps, and numbers of known texts in columns of text."""
    known = [np.inf if texts is None else len(texts) for texts in drift.texts or ()]
    found: Floats = array(None, len(known), finite=None)(name, value, drift)
    if not (np.isnan(found) | (np.abs(found) < known)).all():
        raise ValueError(f"{name} must be finite numbers, or gaps, and of columns of text the numbers of known ones")
    return found


def _is_gap(value: Any) -> bool:
    """Whether a value is missing: None or NaN."""
    return value is None or (isinstance(value, float) and isnan(value))


def bare(x: Any, names: Sequence[str] | None) -> Any:
    """Return an object with names as a mapping, or as bare values once its names were compared; others unchanged.

    A journal gives rows of a table back by position, and objects of a dataclass as mappings: so they come here.
    """
    x = as_mapping(x)
    if isinstance(x, Mapping) or names_in(x) is None:
        return x
    check_index(x)
    if names is not None:
        check_row(x, tuple(names))
    return list(x)


@component
class ColumnDrift(Saved):
    """Watches each column of the objects by itself, and names those that change: what `Drift(columns=True)` holds.

    The p-value of a number is its rank among those of its column so far, itself included: small if it is large, ties
    broken at random. A gap (NaN or None) is a value of its own, above all numbers. In a column of text a value is
    strange that few others have. `Naming` bets on each column.

    Theorem: while a column by itself comes in random order, its p-values are independent and uniform; so the
    probability that any such column is ever named is at most `level`, whatever the others do. A change that leaves each
    column as it was, such as of a correlation, names none.

    The bag of a column begins anew, empty, after `size` objects, so that memory and time do not grow. After 1000
    objects without a new name all begins anew, with a smaller level, so that a column may be named again if it changes
    again. Those that were named are told until others are, and in `Drift` as long as its change lasts.

    Parameters
    ----------
    level : float in (0, 1)
    names : sequence of str, optional
        Of the columns in order; of objects that are mappings, their keys. By default those of the first object, sorted,
        if it is a mapping; else column 1, column 2, ...
    seed : int >= 0, default 0
        Of the random numbers that break ties.
    size : int >= 2, default 5000
        Largest number of objects that a new one is compared with.

    Attributes
    ----------
    n : int
        Number of objects.
    p_values : (d,) float64
        Of the latest object, column by column.
    found : list of NamedColumn
        The columns that are named now.
    texts : list or None
        For each column the texts that it has had, none as long as it has had gaps alone, None for one of numbers; None
        before the first object.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    """

    level: float = param(fraction)
    names: Sequence[str] | None = param(optional, several_names, default=None)
    seed: int = param(integer, 0, default=0, kw_only=True)
    size: int = param(integer, 2, default=5000, kw_only=True)

    n: int = state(restored_int, start=0)
    texts: list[list[str] | None] | None = state(part(list), start=None)
    _keys: tuple[str, ...] | None = state(optional, several_names, start=None)  # of objects that are mappings
    _rows: Floats = state(_restored_rows_of, own(lambda one: one), start=own(lambda _: np.empty((0, 0))))
    _earlier: Floats = state(_restored_rows_of, own(lambda one: one), start=own(lambda _: np.empty((0, 0))))
    _naming: Naming | None = state(part(Naming, streams="texts"), start=None)
    found: list[NamedColumn] = state(each(part(NamedColumn, none=False)), start=own(lambda _: []))

    def derive(self) -> None:
        """Sort the values of each column."""
        self._smoothing = Smoothing(self.seed)
        self._held = len(self._rows)
        values = np.where(np.isnan(self._rows), np.inf, self._rows)
        self._sorted = np.ascontiguousarray(np.sort(values, axis=0).T)
        texts = self.texts or ()
        self._words = [j for j, known in enumerate(texts) if known is not None]
        self._codes = {j: {text: code for code, text in enumerate(texts[j] or ())} for j in self._words}
        self._counts = {j: Counter(np.where(np.isnan(self._rows[:, j]), GAP, self._rows[:, j]).tolist())
                        for j in self._words}  # fmt: skip
        self.p_values = np.empty(len(texts))

    @property
    def state(self) -> dict[str, Any]:
        """What was seen, without spare room."""
        return super().state | {"rows": self._rows[: self._held].copy()}

    def check(self, x: Any) -> None:
        """Raise what `update(x)` would raise for a bad object; nothing is counted."""
        self._read(x)

    def _read(self, x: Any) -> tuple[list[Any] | None, Floats]:
        """Return the values of an object with text, None without, and its numbers, NaN for a gap or a text."""
        known = self.texts
        width = None if known is None else len(known)
        x = bare(x, self.names)
        if isinstance(x, Mapping):
            by_name, keys = {str(name): value for name, value in x.items()}, self._keys or self._order(x)
            if by_name.keys() != set(keys) or len(by_name) != len(x):
                raise ValueError(f"x must have the columns {list(keys)!r}, got {list(x)!r}")
            x = [by_name[name] for name in keys]
        texts = isinstance(x, list | tuple) or (array_of(x).dtype.kind in "OU" and np.ndim(x) == 1)
        values = list(x) if texts else None
        if values is None or not any(isinstance(one, str) or _is_gap(one) for one in values):
            if words := [j for j in self._words if (known or [])[j]]:
                raise TypeError(f"x must have text in column {words[0]} as the first object had, got {x!r}")
            return None, clean_object(x, width, missing=True)
        if width is not None and len(values) != width:
            raise ValueError(f"x must have {width} columns as the first object had, got {len(values)}")
        numbers = np.full(len(values), np.nan)
        for j, value in enumerate(values):
            text = isinstance(value, str) if known is None or known[j] == [] else known[j] is not None
            if _is_gap(value):
                values[j] = None
            elif text != isinstance(value, str):
                raise TypeError(f"x must have {'text' if text else 'a number'} in column {j}, got {value!r}")
            elif not text:
                numbers[j] = clean_object([value], 1)[0]
        return values, numbers

    def _order(self, x: Mapping[Any, Any]) -> tuple[str, ...]:
        """Return the names of a first object in an order that is not its own: a journal gives it back in another."""
        return tuple(sorted(map(str, x))) if self.names is None else tuple(self.names)

    def update(self, x: Any) -> tuple[Alarm, ...]:
        """Process an object; return an alarm if columns are named now.

        Parameters
        ----------
        x : (d,) numbers or texts, NaN or None for a gap, or a mapping of these by name

        Raises
        ------
        TypeError, ValueError
            For a bad object, or one of another length than the first; nothing has changed.
        """
        values, numbers = self._read(x)
        if self.texts is None:
            self._begin(x, values, numbers.size)
        self._settle(numbers)
        naming, n = self._naming, self.n
        self.n = n + 1
        if naming is None:  # too many columns
            return ()
        if naming.last and n - naming.last >= MEMORY:
            self.begin_anew()
        elif self._held == self.size:
            self._empty()
        self._write(values, numbers)
        tau, held = self._smoothing.at(n), self._held
        rank_columns(self._sorted, held, numbers, tau, self.p_values)
        for j in self._words:
            code = GAP if isnan(numbers[j]) else float(numbers[j])
            self._counts[j][code] += 1
            codes = list(self._counts[j])
            self.p_values[j] = rarity([self._counts[j][one] for one in codes], codes.index(code), tau)
        self._rows[held] = numbers
        self._held = held + 1
        bet_each(naming.memory, self.p_values)
        return self.called()

    def called(self) -> tuple[Alarm, ...]:
        """Return an alarm if columns are named at the latest object; a compiled loop has made the bets."""
        naming = self._naming
        earlier = self.found if naming is not None and naming.last else []
        new = [] if naming is None else naming.called(self.n)
        if not new:
            return ()
        self.found = [*earlier, *(self._named(place) for place in new)]
        return (self._alarm(self.found[-len(new) :]),)

    # ------------------------------------------------------------------- blocks

    @property
    def features(self) -> int | None:
        """Number of columns where all are of numbers; None before the first object, or where some have texts."""
        return None if self.texts is None or self._words else len(self.texts)

    def room(self) -> int:
        """Return how many objects a compiled loop may watch now, at least one."""
        naming = self._naming
        if naming is None:
            return FAR
        if naming.last and self.n - naming.last >= MEMORY:
            self.begin_anew()
        elif self._held == self.size:
            self._empty()
        self._make_room()
        few = naming.last + MEMORY - self.n if naming.last else FAR
        return min(few, self.size - self._held, len(self._rows) - self._held)

    @property
    def arrays(self) -> tuple[tuple[Floats, Floats, Floats], int, Integers, float]:
        """The arrays of a compiled loop: ranks and bets, number of objects, names, and the bound."""
        naming = self._naming
        if naming is None:
            return (self._sorted, self.p_values, NOBODY), 0, np.zeros(0, np.int64), inf
        return (self._sorted, self.p_values, naming.memory), self._held, naming.named, naming.bound

    def went_on(self, rows: Floats) -> None:
        """Count objects that a compiled loop has ranked and bet on."""
        self.n += len(rows)
        if self._naming is not None:
            self._rows[self._held : self._held + len(rows)] = rows
            self._held += len(rows)

    def _begin(self, x: Any, values: list[Any] | None, width: int) -> None:
        """Set up the columns at the first object."""
        if self.names is not None and len(self.names) != width:
            raise ValueError(f"x must have {len(self.names)} columns, {', '.join(self.names)}, got {width}")
        self._keys = self._order(x) if isinstance(x, Mapping) else None
        gaps = [values is not None and values[j] is None for j in range(width)]
        self.texts = [[] if values is not None and (gap or isinstance(values[j], str)) else None
                      for j, gap in enumerate(gaps)]  # fmt: skip
        self._naming = Naming(width, self.level) if width <= MOST else None
        self._rows = self._earlier = np.empty((0, width))
        self.derive()

    def _settle(self, numbers: Floats) -> None:
        """Make a column that had only gaps a column of numbers, now that its first number has come."""
        texts = self.texts or []
        new = [j for j in self._words if texts[j] == [] and not isnan(numbers[j])]
        if new:
            self.texts = [None if j in new else known for j, known in enumerate(texts)]
            self._rows = self._rows[: self._held].copy()
            self.derive()

    def begin_anew(self) -> None:
        """Restart: compare later objects only with each other. Columns may be named again, with a smaller level."""
        if self._naming is not None:
            self._naming.begin_anew()
            self._empty()

    def _empty(self) -> None:
        """Empty the bag; the latest objects are kept for pictures."""
        self._earlier = self._rows[max(0, self._held - MEMORY) : self._held].copy()
        self._rows = np.empty((0, self._rows.shape[1]))
        self.derive()

    def _make_room(self) -> None:
        if self._held == len(self._rows):
            room, width = max(ROOM, 2 * self._held), len(self.p_values)
            self._rows, self._sorted = grown(self._rows, room, width), grown(self._sorted, width, room)

    def _write(self, values: list[Any] | None, numbers: Floats) -> None:
        """Make room, and number the texts of an object."""
        self._make_room()
        for j in self._words:
            known, text = (self.texts or [])[j], None if values is None else values[j]
            if text is not None and known is not None:
                if text not in self._codes[j]:
                    self._codes[j][text] = len(known)
                    known.append(text)
                numbers[j] = self._codes[j][text]

    # ------------------------------------------------------------------- reading

    def _named(self, place: int) -> NamedColumn:
        """Return a column that has just been named, with the estimate of its change, from its latest values."""
        values = self._rows[: self._held, place]
        first = max(0, self._held - MEMORY)
        ps = np.empty(self._held - first)
        ordered = np.where(np.isnan(values), np.inf, values)
        for i in range(first, self._held):
            upto = ordered[: i + 1]
            tau = self._smoothing.at(self.n - self._held + i)
            if place in self._words:
                _, at, counts = np.unique(upto, return_inverse=True, return_counts=True)
                ps[i - first] = rarity(counts, int(at[-1]), tau)
            else:
                ps[i - first] = ((upto > upto[-1]).sum() + tau * (upto == upto[-1]).sum()) / len(upto)
        change = change_point(of_p_values(ps), self.n)
        latest, often = ordered[first:], Counter(ordered[-LATELY:].tolist()).most_common(1)[0]
        if often[1] > USUAL * LATELY and (latest == often[0]).mean() < SELDOM:  # a value that came back and stays
            change = change_of_counts(latest == often[0], 2, self.n)
        assert self._naming is not None
        return NamedColumn(place, self.n, change, float(self._naming.logs[place]), self._window(place, change.step)[0])

    def _window(self, place: int, step: int) -> tuple[Floats, Floats]:
        """Return the values of a column before a step, and from it on, 1000 at most of each."""
        both = np.concatenate([self._earlier[:, place], self._rows[: self._held, place]])
        at = min(max(len(both) - (self.n - step + 1), 0), len(both))
        return both[max(0, at - MEMORY) : at].copy(), both[at:][-MEMORY:]

    def name(self, place: int) -> str:
        """Return the name of a column."""
        names = self.names or self._keys
        return f"column {place + 1}" if names is None else names[place]

    def told(self, one: NamedColumn) -> str:
        """Return a column that was named and what it is now, in words."""
        after = self._window(one.place, one.change.step)[1]
        known = (self.texts or [])[one.place]
        told = difference(one.before, after, known)
        name = repr(self.name(one.place)) if self.names or self._keys else f"{one.place + 1}"
        return f"{name}{f' ({told})' if told else ''}"

    @property
    def words(self) -> str:
        """The columns that are named now, in words; empty if there are none."""
        each = [self.told(one) for one in self.found[:TOLD]]
        more = f" and {len(self.found) - TOLD} more" if len(self.found) > TOLD else ""
        return f"column{'s' * (len(each) > 1)} {', '.join(each)}{more}" if each else ""

    def _alarm(self, new: Sequence[NamedColumn]) -> Alarm:
        names = ", ".join(map(self.told, new[:TOLD])) + (f" and {len(new) - TOLD} more" if len(new) > TOLD else "")
        log = min(one.log for one in new)
        sentence = (
            f"At question {self.n} {'column' if len(new) == 1 else 'columns'} {names} "
            f"{'is' if len(new) == 1 else 'are'} not like before, with odds of {odds(log)} each. Theorem: the chance "
            f"that a column is ever named whose values come in random order is at most {self.level:g}."
        )
        return Alarm(self.n, DETECTOR, log, sentence)

    def pictures(self) -> list[dict[str, Any]]:
        """Return what to show of each column that is named now, as plain data.

        Each has its ``name``, the ``step`` at which it was named, ``since``, the estimate of its change, ``words``,
        and ``bars``: for each part of its values where it ends, or the text, and its share ``before`` and ``after``.
        """
        found = []
        for one in self.found:
            after = self._window(one.place, one.change.step)[1]
            found.append({
                "name": self.name(one.place), "step": one.step, "since": str(one.change),
                "words": self.told(one), "bars": bars(one.before, after, (self.texts or [])[one.place]),
            })  # fmt: skip
        return found


def plainly(value: float) -> str:
    """Return a number of a column with four digits, a large one written out.

    Examples
    --------
    >>> plainly(20.1834), plainly(15187.2), plainly(-2.5e12), plainly(0.0)
    ('20.18', '15,190', '-2.5e+12', '0')
    """
    shown = f"{value:.4g}"
    return f"{float(shown):,.0f}" if 1e4 <= abs(float(shown)) < 1e9 else shown


def difference(before: Floats, after: Floats, texts: Sequence[str] | None) -> str:
    """Return in words how values after a change differ most from those before; empty if no difference shows.

    Examples
    --------
    >>> difference(np.arange(100.0), np.arange(300.0, 310.0), None)
    'middle 49.5 to 304.5'
    >>> difference(np.arange(100.0), np.array([50.0] * 9 + [51.0]), None)
    '50 in .900, .010 before'
    >>> difference(np.arange(100.0), np.array([np.nan, np.nan, 3.0]), None)
    'missing in .67, .00 before'
    """
    if not before.size or not after.size:
        return ""
    gaps = float(np.isnan(before).mean()), float(np.isnan(after).mean())
    if gaps[1] - gaps[0] > NOTABLE:
        now, then = shares(gaps[1], gaps[0])
        return f"missing in {now}, {then} before"
    old, new = before[~np.isnan(before)], after[~np.isnan(after)]
    if not old.size or not new.size:
        return ""
    values, counts = np.unique(new, return_counts=True)
    if texts is not None:
        moved = counts / len(new) - np.array([(old == value).mean() for value in values])
        best = int(moved.argmax())
        now, then = shares(counts[best] / len(new), counts[best] / len(new) - moved[best])
        return f"{texts[int(values[best])]!r} in {now}, {then} before"
    best = int(counts.argmax())
    often, seldom = counts[best] / len(new), float((old == values[best]).mean())
    if often > USUAL and seldom < SELDOM:
        now, then = shares(often, seldom)
        return f"{plainly(values[best])} in {now}, {then} before"
    (low, middle, high), (below, now_middle, above) = (np.quantile(one, (0.25, 0.5, 0.75)) for one in (old, new))
    if low == high and below == above and middle == now_middle:  # nearly constant: what comes more often than before
        moved = counts / len(new) - np.array([(old == value).mean() for value in values])
        best = int(moved.argmax())
        now, then = shares(counts[best] / len(new), counts[best] / len(new) - moved[best])
        return f"{plainly(values[best])} in {now}, {then} before"
    if abs(now_middle - middle) > MOVED * (high - low):
        return f"middle {plainly(middle)} to {plainly(now_middle)}{', another unit?' if rescaled(old, new) else ''}"
    return f"middle half {plainly(low)} to {plainly(high)}, now {plainly(below)} to {plainly(above)}"


def rescaled(old: Floats, new: Floats) -> bool:
    """Whether new values look like old ones in another unit: their quantiles are those on another scale.

    Examples
    --------
    >>> celsius = np.linspace(-5.0, 25.0, 50) ** 2
    >>> rescaled(celsius, 32 + 1.8 * celsius), rescaled(celsius, celsius + 300), rescaled(celsius, np.full(50, 3.0))
    (True, False, False)
    """
    one, other = (np.quantile(values, (0.1, 0.25, 0.5, 0.75, 0.9)) for values in (old, new))
    if len(new) < FEW or not one[-1] > one[0]:
        return False
    factor = (other[-1] - other[0]) / (one[-1] - one[0])
    apart = np.abs(other - other[2] - factor * (one - one[2])).max()
    return bool((factor >= UNIT or 0 < factor <= 1 / UNIT) and apart <= ALIKE * (other[-1] - other[0]))


def bars(before: Floats, after: Floats, texts: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the shares of parts of the values, before and after a change; numbers by range, texts one by one.

    Examples
    --------
    >>> [(bar["to"], bar["after"]) for bar in bars(np.array([0.0, 12.0]), np.array([12.0]), None)][-2:]
    [('11', 0.0), ('12', 1.0)]
    """
    gaps = [float(np.isnan(one).mean()) if one.size else 0.0 for one in (before, after)]
    known = [one[~np.isnan(one)] for one in (before, after)]
    found: list[dict[str, Any]] = []
    both = np.concatenate(known)
    if texts is not None:
        often = Counter(both.tolist()).most_common(VALUES)
        cells = [(texts[int(code)], [float((one == code).sum()) for one in known]) for code, _ in often]
    elif both.size:
        low, high = float(both.min()), float(both.max())
        edges = np.linspace(low, high if high > low else low + 1, BARS + 1)
        heights = [np.histogram(one, edges)[0].astype(float) for one in known]
        cells = [(plainly(edges[i + 1]), [float(one[i]) for one in heights]) for i in range(BARS)]
    else:
        cells = []
    for to, counts in cells:
        each = [count / max(one.size, 1) for count, one in zip(counts, (before, after), strict=True)]
        found.append({"to": to, "before": each[0], "after": each[1]})
    if any(gaps):
        found.append({"to": "missing", "before": gaps[0], "after": gaps[1]})
    return found
