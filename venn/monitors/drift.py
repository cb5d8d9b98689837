"""Watches objects without labels: it rings if new objects are stranger than earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np

from venn._compiled.strangers import watch_objects
from venn.machines.scale import ColumnScale, fixed_by, restored_scale
from venn.machines.tables import one_row
from venn.monitors.alarms import Alarm, ShiryaevRoberts, Ville, logs_of, odds, pair_of
from venn.monitors.change_point import MEMORY, Trace
from venn.monitors.column_drift import DETECTOR, NOBODY, ColumnDrift, NamedColumn, bare, given_names, has_distances
from venn.monitors.evidence import against
from venn.monitors.rankings import AmongAll, Ranking, is_row, measured, plain
from venn.monitors.verdict import CLAIMED, DOUBTFUL, OF_OBJECTS, Verdict
from venn.monitors.watching import LASTED, Case, Watching
from venn.parameters import above_one, fraction, integer, optional, with_methods
from venn.prediction import Floats
from venn.saved import (
    Saved,
    array,
    component,
    own,
    param,
    restored_float,
    restored_int,
    restored_like,
    restored_twin,
    state,
)
from venn.smoothing import Smoothing
from venn.turns import TakesTurns, changes

FARTHEST = 1e6  # deviations, of a scaled column
ABOUT = OF_OBJECTS
NO_ONE, NOT_NAMED = np.empty(0), np.zeros(0, np.int64)  # in place of arrays if no columns are watched
WORDS = "the ranks of objects among those before (p-values)"


def ranking_pattern(name: str, value: Any) -> Ranking:
    """Return a ranking that has seen nothing, by default `AmongAll()`; or say what it must be."""
    ranking = AmongAll() if value is None else value
    given: Ranking = with_methods(name, ranking, "AmongAll(), AgainstFirst() or the like", "check", "rank", "fresh")
    return given.fresh() if given.n else given


def _columns(name: str, value: Any, drift: Drift) -> bool | tuple[str, ...]:
    """Return whether columns are watched, or their names; their share of the level leaves more than the risk."""
    found = given_names(name, value)
    if not drift.ranking.risk < (drift.level / 2 if found else drift.level):
        what = "half the level" if found else "level"
        raise ValueError(f"{what} must be larger than the risk of {drift.ranking!r}, got level={drift.level!r}")
    return found


def none_or_two(name: str, value: Any) -> int:
    """Return 0 or a number of at least 2 objects, or say what it must be."""
    return 0 if integer(name, value, 0) == 0 else integer(name, value, 2)


@component
class ObjectRuler(Saved):
    """Fixes the scale of the columns by median and quartiles of the first objects, which serve for nothing else.

    Parameters
    ----------
    first : int >= 2, or 0
        Number of these objects; 0: objects stay as they come.
    """

    first: int = param(none_or_two)

    #: The first objects, until they fix the scale.
    _rows: Floats = state(array(None, None), start=own(lambda _: np.empty((0, 0))))
    _fixed: Floats | None = state(None, start=None)  # the scale as an array, which `derive` checks

    def derive(self) -> None:
        """Read the scale."""
        self._scale: ColumnScale | None = None if self._fixed is None else restored_scale(self._fixed)

    @property
    def taken(self) -> int:
        """Number of objects that went into the scale so far."""
        return len(self._rows) if self._scale is None else self.first

    @property
    def fixed(self) -> bool:
        """Whether objects have a scale, or need none."""
        return not self.first or self._scale is not None

    @property
    def features(self) -> int | None:
        """Number of columns; None before the first object."""
        return len(self._scale.spread) if self._scale is not None else self._rows.shape[1] if len(self._rows) else None

    def on_scale(self, rows: Floats) -> Floats:
        """Return clean objects (m, d) on the scale that is fixed; gaps stay."""
        return rows if self._scale is None else self._scale.place(rows, FARTHEST)

    def placed(self, x: Any) -> tuple[Any, ColumnScale | None]:
        """Return a clean object, on the scale if there is one, and the scale that it fixes as the last of the first."""
        if self._scale is not None:
            return self._scale.place(measured(x, len(self._scale.spread)), FARTHEST), None
        clean = measured(x, self._rows.shape[1] if len(self._rows) else None)
        last = len(self._rows) + 1 == self.first
        return clean, fixed_by([*self._rows, clean])._replace(stretch=None) if last else None

    def take(self, x: Any) -> Any:
        """Return an object on the scale; None for one of the first, which goes into the scale."""
        if not self.first:
            return x
        placed, scale = self.placed(x)
        if self._scale is not None:
            return placed
        self._rows = np.array([*self._rows, placed]) if scale is None else np.empty((0, 0))
        self._scale, self._fixed = scale, None if scale is None else scale.state
        return None


def _column_drift(drift: Drift) -> ColumnDrift | None:
    names = None if isinstance(drift.columns, bool) else drift.columns
    return ColumnDrift(drift.share, names, seed=drift.seed) if drift.columns else None


@component
class Drift(TakesTurns, Watching):
    """Watches objects alone, and rings when they change: at the question, before any label comes.

    It sees changes in the distribution of x, whether or not predictions suffer. It does not see changes in the labels
    of the same objects. So its verdict is "doubtful" at worst. In `Online` it stands among the monitors, under a name
    of its own, and gets every object that is asked about, in the order of the questions, however late labels are:

        monitors = venn.monitors.together(panel, panel.classes, objects=Drift(AmongAll(size=5000)))
        online = venn.Online(panel, monitors)

    By hand: `alarms = drift.update(x)`, once for each question.

    Theorem. While objects are exchangeable (for `AgainstFirst`: independent and of one distribution), `Ville` ever
    rings with probability at most `level`, the ranking's risk included; alarms of `ShiryaevRoberts` come at most
    n / `run_length` times in n objects on average (for `AgainstFirst` unless its first sample misleads).

    A change that is 150 objects old is the new state: from there on objects are compared with those since then alone,
    and all bets begin anew, with the level of a new stream. This happens after an alarm only, so where objects never
    change no alarm is added. What rings again within 150 objects after that belongs to the same change.

    Parameters
    ----------
    ranking : AmongAll or AgainstFirst, default AmongAll()
        A pattern, from which a fresh one is made.
    level : float in (0, 1), default 0.01
        Larger than the ranking's risk.
    run_length : float > 1, default 100000
    seed : int >= 0, default 0
        Of the random numbers that break ties.
    first : int >= 2, or 0, default 0
        Number of first objects that do nothing but fix the scale of the columns, by median and quartiles;
        distances mean little where one column counts in millions and another in thousandths. 0: as they come.
    columns : bool or sequence of str, default False
        Whether each column is also ranked alone among its own past, and named if it changes; or the names of the
        columns, which are then watched. See `ColumnDrift`: half the level is that of the columns. Objects may then have
        gaps, and texts: these have no distances, and are left out of the ranking. Of more than 100 columns none is
        named.

    Attributes
    ----------
    n : int
        Number of objects.
    p_value : float or None
        Of the latest object.
    count : int
        Number of alarms so far.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> drift, rng = Drift(), np.random.default_rng(0)
    >>> for x in rng.normal(size=(300, 2)):
    ...     assert not drift.update(x)
    >>> for x in rng.normal(3, size=(300, 2)):
    ...     if drift.update(x):
    ...         break
    >>> print(drift.n, drift.alarms[0].sentence)
    328 At question 328 the odds against objects in random order are 113 to 1: new ones are not like those before, ...
    """

    unnamed = 0
    sees = "objects"  # what `update` takes
    about = ABOUT

    ranking: Ranking = param(ranking_pattern, default=None)
    level: float = param(fraction, default=0.01, kw_only=True)
    run_length: float = param(above_one, default=100_000, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    first: int = param(none_or_two, default=0, kw_only=True)
    columns: bool | Sequence[str] = param(_columns, own(lambda drift: drift), default=False, kw_only=True)

    _ranks: Ranking = state(restored_like, start=own(lambda drift: drift.ranking.fresh()))
    _ville: Ville = state(
        restored_like, start=own(lambda drift: Ville(drift.ranking.martingale, drift.share - drift.ranking.risk))
    )
    _repeated: ShiryaevRoberts = state(
        restored_like, start=own(lambda drift: ShiryaevRoberts(drift.ranking.martingale, drift.run_length))
    )
    p_value: float | None = state(optional, restored_float, start=None)
    _trace: Trace = state(restored_like, start=own(lambda drift: Trace(False, MEMORY)))
    _seen: int = state(restored_int, start=0)
    _ruler: ObjectRuler = state(restored_twin, start=own(lambda drift: ObjectRuler(drift.first)))
    _column_drift: ColumnDrift | None = state(restored_twin, start=own(_column_drift))

    def derive(self) -> None:
        """Set up the draws that break ties."""
        self._smoothing, self.pending, self._whole = Smoothing(self.seed), False, False

    @property
    def share(self) -> float:
        """The level of the objects as wholes: half of it if columns are watched, which have the other half."""
        return self.level / 2 if self.columns else self.level

    @property
    def n(self) -> int:
        """Number of objects."""
        return self._seen

    def check(self, x: Any) -> None:
        """Raise what `update(x)` would raise for a bad object; nothing is counted."""
        x = bare(one_row(x), None if isinstance(self.columns, bool) else self.columns)
        if self._column_drift is not None:
            self._column_drift.check(x)
            if not has_distances(x):
                return
        if self.first:
            self._ruler.placed(x)
        else:
            self._ranks.check(x)

    @changes
    def update(self, x: Any) -> tuple[Alarm, ...]:
        """Process an object; return the alarms that ring now.

        Parameters
        ----------
        x : (d,) finite numbers
            With `columns` also numbers and texts, with gaps.

        Raises
        ------
        TypeError, ValueError
            For a bad object, or one of another length than the first; nothing has changed.
        """
        usual = is_row(x) and self.takes(x[None])
        if not usual:
            x = bare(one_row(x), None if isinstance(self.columns, bool) else self.columns)
            self.check(x)
        if self.cases:
            self._look()
        if usual and self.go(x[None]):
            return self.tell() if self.pending else ()
        named: tuple[Alarm, ...] = ()
        whole, n = True, self.n
        if self._column_drift is not None:
            named, whole = self._column_drift.update(x), has_distances(x)
        placed = self._ruler.take(x) if whole else None
        p = None if placed is None else self._ranks.rank(placed, self._smoothing.at(n))
        self._seen = n + 1
        self._trace.add(nan if p is None else p)
        if p is not None:
            self.p_value = p
            each = (self._ville.update(p), self._repeated.update(p))
            named += tuple(self._in_words(alarm) for alarm in each if alarm is not None)
        return self._rang(tuple(replace(alarm, about=ABOUT) for alarm in named)) if named else ()

    # ------------------------------------------------------------------- blocks

    def takes(self, rows: Floats) -> bool:
        """Whether it would refuse none of these rows (m, d), and `go` may take some of them."""
        columns, width = self._column_drift, rows.shape[1]
        return (
            type(self._ranks) is AmongAll
            and (self._ruler.features if self.first else self._ranks.features) in (None, width)
            and (columns is None or columns.features == width)
            and bool(plain(rows, columns is not None).all())
        )

    def go(self, rows: Floats) -> int:
        """Process the first of some objects that it `takes`, as `update` would; return how many.

        It stops after one at which something rings, which is then `pending` until `tell` is asked; and before one with
        which it begins anew or a change ends: that one is for `update`.
        """
        done, self.pending = 0, False
        rows = rows[: self.until("")] + 0.0  # no -0.0
        while done < len(rows) and not self.pending:
            columns, ranks = self._column_drift, self._ranks
            if not self._ruler.fixed or not isinstance(ranks, AmongAll):
                break
            few = len(rows) if columns is None else columns.room()
            crowd, room = ranks.room(rows.shape[1])
            part = rows[done : done + min(few, room)]
            ps, logs = np.empty(len(part)), np.array(logs_of(self._ville, self._repeated))
            ranked = ((np.empty((0, 0)), NO_ONE, NOBODY), 0, NOT_NAMED, inf) if columns is None else columns.arrays
            count, self.pending = watch_objects(
                part, self._ruler.on_scale(part), self._smoothing.block(self.n, len(part)), crowd.arrays, crowd.n,
                pair_of(self._ville, self._repeated), logs, *ranked, ps,
            )  # fmt: skip
            found = ps[:count][~np.isnan(ps[:count])]
            crowd.n += len(found)
            self._ville.went_on(len(found), self._ville.bets.log)
            self._repeated.went_on(len(found), float(logs[2]))
            self._trace.extend(ps[:count])
            self.p_value = float(found[-1]) if len(found) else self.p_value
            self._whole = not np.isnan(ps[count - 1])
            self._seen += count
            if columns is not None:
                columns.went_on(part[:count])
            done += count
        return done

    def tell(self) -> tuple[Alarm, ...]:
        """Return the alarms that ring at the latest object, which `go` has found."""
        self.pending = False
        rung = () if self._column_drift is None else self._column_drift.called()
        each = (self._ville.alarm(), self._repeated.alarm()) if self._whole else ()
        rung += tuple(self._in_words(alarm) for alarm in each if alarm is not None)
        return self._rang(tuple(replace(alarm, about=ABOUT) for alarm in rung))

    def _look(self) -> None:
        """Begin anew where a new state has lasted, so that a later change shows; end a change that no longer rings."""
        lasting = self.lasting()
        if lasting is not None and self.n - max(lasting.first, lasting.anew) >= LASTED and lasting.last > lasting.anew:
            self.begin_anew()
        self.pass_by()

    def begin_anew(self) -> None:
        """Restart: compare later objects only with each other, and bet anew with the level of a new stream."""
        self._ranks, self._ruler = self.ranking.fresh(), ObjectRuler(self.first)
        for one in (self._ville, self._repeated):
            one.begin_anew()
        if self._column_drift is not None:
            self._column_drift.begin_anew()
        if (lasting := self.lasting()) is not None:
            self._put(replace(lasting, anew=self.n))

    def _rang(self, rung: tuple[Alarm, ...]) -> tuple[Alarm, ...]:
        """Record the alarms about the latest object; they begin another change if the new state had lasted."""
        lasting, n = self.lasting(), self.n
        another = lasting is not None and 0 < lasting.anew <= n - LASTED and lasting.last <= lasting.anew
        columns: list[NamedColumn] = [] if self._column_drift is None else self._column_drift.found
        if (lasting is None or another) and self._column_drift is not None:  # an earlier change's are no part of it
            columns = self._column_drift.found = [one for one in self._column_drift.found if one.step == n]
        named = rung[0].detector == DETECTOR and columns
        anew = 0 if (before := self.case()) is None else before.anew
        change = columns[-1].change if named else self._trace.change(n, (), anew)
        shown = self._trace.told(n - change.step + 1, WORDS)
        reason, words = shown or f"the odds are {odds(rung[0].log_evidence)}", self._words
        names = () if self._column_drift is None else tuple(self._column_drift.name(one.place) for one in columns)
        detector = against(rung[0].detector, ABOUT)
        found = Case(n, n, change, ABOUT, detector, reason, kind=words, columns=names, alarms=len(rung))
        self._note(found, another)
        return self._took(rung)

    @property
    def _words(self) -> str:
        """The columns that are named, in words."""
        return "" if self._column_drift is None else self._column_drift.words

    def verdict(self) -> Verdict:
        """Return "doubtful" if an alarm has rung among the latest 1000 objects, or else "as claimed".

        What is claimed of labels may hold for new objects as well: only labels can show that it does not. The step of
        the change is an estimate, as in `Monitor.verdict`.

        Examples
        --------
        >>> print(Drift().verdict().details)
        as claimed: objects come as if in random order
        """
        lasting, before = self.lasting(), self.case()
        if lasting is None:
            again = "" if before is None else f" again, no alarm since question {before.last}"
            return Verdict(CLAIMED, None, None, ABOUT, "", f"{CLAIMED}{again}: objects come as if in random order")
        change, words = lasting.change, self._words or lasting.kind
        since = str(change).replace("about", "about question")
        details = (
            f"{DOUBTFUL}: since {since} objects are not like those before{f': {words}' if words else ''}; "
            f"whether what is claimed still holds, only labels can show; {lasting.reason}; "
            f"last alarm at question {lasting.last}"
        )
        return Verdict(
            DOUBTFUL, change.step, change, ABOUT, lasting.detector, details, reason=lasting.reason, kind=words
        )

    def _in_words(self, alarm: Alarm) -> Alarm:
        """Return an alarm in the words of objects, with the number of the object."""
        seldom = f"this alarm ever rings with probability at most {self.share:g}"
        if alarm.detector == "ShiryaevRoberts":
            seldom = f"such alarms come at least {self.run_length:,.12g} objects apart on average"
        sentence = (
            f"At question {self.n} the odds against objects in random order are {odds(alarm.log_evidence)}: new ones "
            f"are not like those before, whatever their labels will be. Theorem: {self._ranks.theorem} {seldom}."
        )
        return replace(alarm, step=self.n, sentence=sentence, about=ABOUT)

    def snapshot(self) -> dict[str, Any]:
        """Return everything to show now, as plain data, as of a `Monitor`; columns only while their change lasts."""
        found = super().snapshot()
        found["evidence"] = [one.shown(ABOUT, self.p_value) for one in (self._ville, self._repeated)]
        if self._column_drift is not None:
            found["columns"] = self._column_drift.pictures() if self.lasting() is not None else []
        return found
