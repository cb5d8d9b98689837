"""The base of all watchers: it keeps alarms, and groups them into changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol

from venn.monitors.alarms import Alarm, odds
from venn.monitors.change_point import MEMORY, ChangePoint
from venn.monitors.evidence import against
from venn.monitors.verdict import CLAIMED, DOUBTFUL, Verdict
from venn.saved import Saved, base, each, own, part, restored_int, saved, state
from venn.turns import asks

KEPT = 100  # alarms, and changes
FAR = 2**62
LASTED = 150  # steps after which a new state is no longer compared with the old one
QUESTIONS, ANSWERS = "questions", "answers"  # what a step of a watcher counts
AGAIN, ANOTHER = "nothing speaks for it any more", "another change followed"  # how a change ends


@saved
@dataclass(frozen=True)
class Case:
    """One change as one watcher sees it, from its first alarm to its end; steps count what the watcher has seen.

    Attributes
    ----------
    first, last : int
        Steps of its first and of its latest alarm.
    change : ChangePoint
        When it began: an estimate, made at its first alarm.
    evidence, detector, reason : str
        As in a `Verdict`: what it rests on, what rang first, and the numbers.
    was : float or None
        Accuracy before it; None where labels are not classes.
    part : str
        Of a watcher with several parts, which one.
    kind : str
        What has changed, in words, if that is known.
    columns, classes : tuple of str
        That are named.
    alarms : int
    anew : int
        The step after which the evidence, and with it perhaps the predictor, began anew since; 0: not yet.
    ended : int
        The step at which it ended; 0: it lasts.
    how : str
        How it ended.
    """

    first: int
    last: int
    change: ChangePoint
    evidence: str
    detector: str
    reason: str
    was: float | None = None
    part: str = ""
    kind: str = ""
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    alarms: int = 1
    anew: int = 0
    ended: int = 0
    how: str = ""


class Watches(Protocol):
    """What a monitor of your own must have; the base `Watching` gives all but `n` and `update`.

    Examples
    --------
    >>> from venn.monitors import Drift
    >>> watcher: Watches = Drift()
    >>> watcher.sees, watcher.update([0.5]), watcher.verdict().state
    ('objects', (), 'as claimed')
    """

    sees: str  #: what `update` takes: "objects" (x), "examples" (x, y) or "predictions" (prediction, y)

    @property
    def n(self) -> int:
        """Number of steps."""

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, oldest first."""

    def update(self, *seen: Any) -> tuple[Alarm, ...]:
        """Process a step; return the alarms that ring now."""

    def verdict(self) -> Verdict:
        """Return the verdict."""

    def snapshot(self) -> dict[str, Any]:
        """Return everything to show, as plain data."""


@base
class Watching(Saved):
    """Base of watchers: keeps alarms and the changes that they are about, and gives the verdict.

    One of your own has the number of its steps `n`, says what it `sees`, and returns `self.rang(alarm)` from `update`
    where it rings. All else is here: alarms that follow each other are one change, which ends after 1000 calm steps.

    Attributes
    ----------
    count : int
        Number of alarms so far.
    cases : list of Case
        The latest 100 changes, oldest first, and those before them that last.

    Examples
    --------
    >>> class Large(Watching):
    ...     about, n = "large", 0
    ...     def update(self, x):
    ...         self.n += 1
    ...         return self.rang(Alarm(self.n, "Large", 7.0, "It is large.", "large")) if x[0] > 9 else ()
    >>> watcher = Large()
    >>> [len(watcher.update([x])) for x in (1, 10, 11)], watcher.verdict().state, len(watcher.cases)
    ([0, 1, 1], 'doubtful', 1)
    """

    sees: ClassVar[str] = "objects"
    about: ClassVar[str] = ""  # what its alarms are about, in a word
    calm: ClassVar[str] = "nothing has rung"

    count: int = state(restored_int, start=0)
    _alarms: deque[Alarm] = state(each(part(Alarm, none=False), of=deque), start=own(lambda _: deque(maxlen=KEPT)))
    cases: list[Case] = state(each(part(Case, none=False)), start=own(lambda _: []))

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest 100 alarms, oldest first."""
        return tuple(self._alarms)

    @property
    def n(self) -> int:
        """Number of steps."""
        raise NotImplementedError(f"{type(self).__name__} must say in n how many steps it has seen")

    def counts(self, part: str = "") -> str:
        """Return what its steps count: questions if it sees objects, else answers."""
        return QUESTIONS if self.sees == "objects" else ANSWERS

    def case(self, part: str = "") -> Case | None:
        """Return the latest change of a part, whether it lasts or not."""
        return next((one for one in reversed(self.cases) if one.part == part), None)

    def lasting(self, part: str = "") -> Case | None:
        """Return the change of a part that lasts; None if there is none."""
        found = self.case(part)
        return None if found is None or found.ended else found

    def check(self, *seen: Any) -> None:
        """Raise what `update` would raise, and change nothing; by default nothing is refused."""

    def rang(self, *alarms: Alarm) -> tuple[Alarm, ...]:
        """Record alarms in the change that they belong to; return them."""
        for one in alarms:
            reason = f"the odds are {odds(one.log_evidence)}"
            change = ChangePoint(one.step, one.step, one.step)
            self._note(Case(one.step, one.step, change, self.about, against(one.detector, one.about), reason))
        return self._took(alarms)

    def pass_by(self) -> None:
        """End a change that has not rung for 1000 steps: `update` calls it first."""
        for found in [one for one in self.cases if not one.ended and self.n - one.last >= MEMORY]:
            self._put(replace(found, ended=self.n, how=AGAIN))

    def until(self, *parts: str) -> int:
        """Return how many steps may be made before a change of these parts ends or is compared anew, if nothing rings.

        A step at which that happens is made alone.
        """
        few = FAR
        for one in map(self.lasting, parts):
            if one is not None:
                lasted = max(one.first, one.anew) + LASTED if one.last > one.anew else FAR
                few = min(few, lasted - self.n, one.last + MEMORY - self.n)
        return max(few, 0)

    # ------------------------------------------------------------------- for those below

    def _took(self, alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
        """Keep alarms, and count them."""
        rung = tuple(alarms)
        self._alarms.extend(rung)
        self.count += len(rung)
        return rung

    def _note(self, found: Case, another: bool = False) -> None:
        """Record an alarm: it continues the change of its part or begins one; `another` ends one that lasts."""
        before = self.lasting(found.part)
        if before is not None and not another:
            kind, columns, classes = found.kind, found.columns, found.classes
            self._put(replace(
                before, last=found.last, alarms=before.alarms + found.alarms, kind=kind or before.kind,
                columns=columns or before.columns, classes=classes or before.classes,
            ))  # fmt: skip
            return
        if before is not None:
            self._put(replace(before, ended=found.first, how=ANOTHER))
        self.cases = [*(one for one in self.cases[: 1 - KEPT] if not one.ended), *self.cases[1 - KEPT :], found]

    def _put(self, changed: Case) -> None:
        """Replace a change by its new version."""
        place = max(i for i, one in enumerate(self.cases) if one.part == changed.part)
        self.cases[place] = changed

    # ------------------------------------------------------------------- reading

    @asks
    def verdict(self) -> Verdict:
        """Return "doubtful" while a change lasts, or else "as claimed"."""
        found = self.lasting()
        if found is None:
            return Verdict(CLAIMED, None, None, self.about, "", f"{CLAIMED}: {self.calm}")
        details = f"{DOUBTFUL}: since {found.change}; {found.reason}; last alarm at {found.last}"
        return Verdict(
            DOUBTFUL, found.change.step, found.change, self.about, found.detector, details, reason=found.reason
        )

    @asks
    def snapshot(self) -> dict[str, Any]:
        """Return everything to show now, as plain data: step, verdict, evidence and alarms."""
        return {
            "step": self.n,
            "verdict": self.verdict().plain(),
            "evidence": [],
            "alarms": {"count": self.count, "last": [asdict(alarm) for alarm in self._alarms]},
        }
