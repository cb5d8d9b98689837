"""Evidence without labels: whether new objects are stranger than those before, known as soon as one is asked about."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from venn.machines.columns import ColumnScale, fixed_by, held_scale
from venn.monitors.alarms import Alarm, ShiryaevRoberts, Ville, odds
from venn.monitors.change import MEMORY, ChangePoint, Trace
from venn.monitors.evidence import against
from venn.monitors.rankings import AmongAll, Ranking, measured
from venn.monitors.verdict import CLAIMED, DOUBTFUL, Verdict
from venn.parameters import above_one, fraction, integer, with_methods
from venn.saved import Saved, checked_keys, held_finite, held_float, held_int, held_rows, held_text, saved
from venn.smoothing import Smoothing
from venn.turns import TakesTurns

KEPT = 100  # alarms
FARTHEST = 1e6  # deviations, of a scaled column
ABOUT = "objects"
WORDS = "the ranks of objects among those before (p-values)"


@saved
class Drift(TakesTurns, Saved):
    """Watches objects alone, and rings when they change: at the question, before any label comes.

    It sees what changes in the distribution of x, whether or not predictions suffer; not what changes in the labels of
    the same objects. So its verdict is "doubtful" at worst. In `Online` it stands among the monitors, under a name of
    its own, and gets every object that is asked about, in the order of the questions, however late labels are:

        monitors = venn.monitors.together(panel, panel.classes, objects=Drift(AmongAll(size=5000)))
        online = venn.Online(panel, monitors)

    By hand: `alarms = drift.update(x)`, once for each question.

    Theorem. While objects are exchangeable (for `AgainstFirst`: independent and of one distribution), `Ville` ever
    rings with probability at most `level`, the ranking's risk included; alarms of `ShiryaevRoberts` come at most
    n / `run_length` times in n objects on average (for `AgainstFirst` unless its first sample misleads).

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
        Number of first objects that do nothing but fix the scale of the columns, by mean and standard deviation;
        distances mean little where one column counts in millions and another in thousandths. 0: as they come.

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

    def __init__(
        self, ranking: Ranking | None = None, *, level: float = 0.01, run_length: float = 100_000, seed: int = 0,
        first: int = 0,
    ) -> None:  # fmt: skip
        ranking = AmongAll() if ranking is None else ranking
        wanted = "AmongAll(), AgainstFirst() or the like"
        self.ranking: Ranking = with_methods("ranking", ranking, wanted, "check", "rank", "fresh").fresh()
        self.level = fraction("level", level)
        self.run_length = above_one("run_length", run_length)
        if not self.ranking.risk < self.level:
            raise ValueError(f"level must be larger than the risk of {self.ranking!r}, got {level!r}")
        self._smoothing = Smoothing(seed)
        self.seed = self._smoothing.seed
        self.first = 0 if integer("first", first, 0) == 0 else integer("first", first, 2)
        self._rows: list[Any] = []  # the first objects, until they fix the scale
        self._scale: ColumnScale | None = None
        pattern = self.ranking.martingale
        self._ville = Ville(pattern, self.level - self.ranking.risk)
        self._repeated = ShiryaevRoberts(pattern, self.run_length)
        self.p_value: float | None = None
        self.count = 0
        self._alarms: deque[Alarm] = deque(maxlen=KEPT)
        self._trace = Trace(False, MEMORY)
        self._change: ChangePoint | None = None  # the latest
        self._reason = ""  # what its first alarm rested on, in numbers

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor takes; the ranking as a pattern."""
        return super().parameters | {"ranking": self.ranking.fresh()}

    def fresh(self) -> Drift:
        """Return one with the same parameters that has seen nothing."""
        return Drift(**self.parameters)

    @property
    def n(self) -> int:
        """Number of objects."""
        return self.ranking.n + (len(self._rows) if self._scale is None else self.first)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest 100 alarms, oldest first."""
        return tuple(self._alarms)

    def check(self, x: Any) -> None:
        """Raise what `update(x)` would raise for a bad object, and take no notice of it."""
        self._placed(x)

    def _placed(self, x: Any) -> tuple[Any, ColumnScale | None]:
        """Return a clean object, on the scale if there is one, and the scale that it fixes as the last of the first."""
        if not self.first:
            self.ranking.check(x)
            return x, None
        if self._scale is not None:
            return self._scale.place(measured(x, len(self._scale.spread)), FARTHEST), None
        clean = measured(x, self._rows[0].size if self._rows else None)
        return clean, fixed_by([*self._rows, clean])._replace(stretch=None) if len(
            self._rows
        ) + 1 == self.first else None

    def update(self, x: Any) -> tuple[Alarm, ...]:
        """Take notice of an object; return the alarms that ring now.

        Parameters
        ----------
        x : (d,) finite numbers

        Raises
        ------
        TypeError, ValueError
            For a bad object, or one of another length than the first; nothing has changed.
        """
        placed, scale = self._placed(x)
        if self.first and self._scale is None:
            self._scale, self._rows = scale, [] if scale is not None else [*self._rows, placed]
            return ()
        p = self.p_value = self.ranking.rank(placed, self._smoothing.at(self.n))
        if p is None:
            return ()
        self._trace.add(p)
        each = (self._ville.update(p), self._repeated.update(p))
        rung = tuple(self._told(alarm) for alarm in each if alarm is not None)
        if rung and not self._lasting(rung[0].step):
            self._change = self._trace.change(self.n)
            shown = self._trace.told(self.n - self._change.step + 1, WORDS)
            self._reason = shown or f"the odds are {odds(rung[0].log_evidence)}"
        self._alarms.extend(rung)
        self.count += len(rung)
        return rung

    def _lasting(self, n: int) -> bool:
        """Whether an alarm has rung among the latest objects, of n."""
        return bool(self._alarms) and n - self._alarms[-1].step < MEMORY

    def verdict(self) -> Verdict:
        """Return "doubtful" if an alarm has rung among the latest 1000 objects, or else "as claimed".

        What is claimed of labels may hold for new objects as well: only labels can show that it does not. The step of
        the change is an estimate, as in `Monitor.verdict`.

        Examples
        --------
        >>> print(Drift().verdict())
        as claimed: objects come as if in random order
        """
        if self._change is None or not self._lasting(self.n):
            return Verdict(CLAIMED, None, None, ABOUT, "", f"{CLAIMED}: objects come as if in random order")
        last = self._alarms[-1]
        since = str(self._change).replace("about", "about question")
        sentence = (
            f"{DOUBTFUL}: since {since} objects are not like those before; whether what is claimed still holds, only "
            f"labels can show; {self._reason}; last alarm at question {last.step}"
        )
        detector = against(last.detector, ABOUT)
        return Verdict(DOUBTFUL, self._change.step, self._change, ABOUT, detector, sentence, reason=self._reason)

    def _told(self, alarm: Alarm) -> Alarm:
        """Return an alarm in the words of objects, with the number of the object."""
        seldom = f"this alarm ever rings with probability at most {self.level:g}"
        if alarm.detector == "ShiryaevRoberts":
            seldom = f"such alarms come at least {self.run_length:,.12g} objects apart on average"
        sentence = (
            f"At question {self.n} the odds against objects in random order are {odds(alarm.log_evidence)}: new ones "
            f"are not like those before, whatever their labels will be. Theorem: {self.ranking.theorem} {seldom}."
        )
        return replace(alarm, step=self.n, sentence=sentence, about=ABOUT)

    def snapshot(self) -> dict[str, Any]:
        """Return everything to show now, as plain data, as of a `Monitor`: step, verdict, evidence and alarms."""
        return {
            "step": self.n,
            "verdict": self.verdict().plain(),
            "evidence": [one.shown(ABOUT, self.p_value) for one in (self._ville, self._repeated)],
            "alarms": {"count": self.count, "last": [asdict(alarm) for alarm in self._alarms]},
        }  # fmt: skip

    @property
    def state(self) -> dict[str, Any]:
        """The ranking, the detectors and the alarms."""
        return {
            "ranking": self.ranking, "ville": self._ville, "repeated": self._repeated, "p_value": self.p_value,
            "count": self.count, "alarms": list(self._alarms), "trace": self._trace.state, "change": self._change,
            "reason": self._reason,
            "rows": np.array(self._rows) if self._rows else None,
            "scale": self._scale and self._scale.state,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`, or raise a ValueError."""
        checked_keys("state", state, self.state)
        ranking, ville, repeated = state["ranking"], state["ville"], state["repeated"]
        for name, found, own in (
            ("ranking", ranking, self.ranking), ("ville", ville, self._ville), ("repeated", repeated, self._repeated),
        ):  # fmt: skip
            if type(found) is not type(own) or repr(found) != repr(own):
                raise ValueError(f"state must have the {name} {own!r}, got {found!r}")
        alarms, change, p = state["alarms"], state["change"], state["p_value"]
        if type(alarms) is not list or any(type(alarm) is not Alarm for alarm in alarms):
            raise ValueError(f"alarms must be a list of alarms, got {alarms!r}")
        if not isinstance(change, ChangePoint | None):
            raise ValueError(f"change must be a ChangePoint or None, got {change!r}")
        self._change, self._reason = change, held_text("reason", state["reason"])
        self.p_value, self.count = None if p is None else held_float("p_value", p), held_int("count", state["count"])
        self._alarms = deque(alarms, maxlen=KEPT)
        self._scale = None if state["scale"] is None else held_scale(state["scale"])
        rows = np.empty((0, 0)) if state["rows"] is None else state["rows"]
        self._rows = list(held_finite("rows", rows, (held_rows("rows", rows), *rows.shape[1:2])).copy())
        self._trace.take_over(state["trace"], ville.n)
        self.ranking, self._ville, self._repeated = ranking, ville, repeated
