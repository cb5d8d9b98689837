"""Alarms that follow one another: the first is told, of the others how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from venn.monitors.alarms import PER_DECADE
from venn.monitors.drift import ABOUT
from venn.show.view import Snapshot

APART = 1000  # steps: alarms of one detector that are closer than this belong together
THEOREM = " Theorem"  # from here on the sentence is the same for every alarm of a detector


@dataclass
class AlarmGroup:
    """Alarms that belong together, such as those of one detector about one predictor, each soon after the one before.

    Attributes
    ----------
    name : str
        The predictor of the first.
    first, last : mapping
        Alarms, with "step", "detector", "about", "log_evidence" and "sentence".
    count : int
    untold : bool
        Whether the last ones were only counted.
    """

    name: str
    first: Snapshot
    last: Snapshot
    count: int = 1
    untold: bool = False

    @property
    def more(self) -> str:
        """How many alarms followed the first, and until when; empty if none did."""
        return f"{self.count - 1:,} more until {_counted(self.last)} {self.last['step']:,}" if self.count > 1 else ""


def _counted(alarm: Snapshot) -> str:
    return "question" if alarm["about"] == ABOUT else "step"


def _against(alarm: Snapshot) -> str:
    return f" against the {alarm['about']}" if alarm["about"] else ""


def _by_detector(name: str, alarm: Snapshot) -> Any:
    return name, alarm["detector"], alarm["about"]


class AlarmReporter:
    """Tells alarms as they come: the first of a group, then at the 10th, 100th, ... how many followed it.

    A theorem is stated once. Those without a theorem, as of a user's own detector, are all told, in full.

    Parameters
    ----------
    key : callable
        Of a predictor's name and an alarm: alarms for which it is the same belong together, if they are not far apart.

    Examples
    --------
    >>> reporter = AlarmReporter()
    >>> alarm = {"detector": "Ville", "about": "", "log_evidence": 6.9, "sentence": "It rang. Theorem: seldom."}
    >>> for step in range(5, 10):
    ...     for line in reporter.tell("abers", alarm | {"step": step}):
    ...         print(line)
    abers: It rang. Theorem: seldom.
    >>> reporter.rest()
    ['abers: Ville rang again, 4 more until step 9']
    >>> reporter.sentence(alarm | {"step": 9})
    'At step 9 Ville rang, evidence 10^3.00.'
    """

    def __init__(self, key: Callable[[str, Snapshot], Any] = _by_detector) -> None:
        self._key = key
        self._now: dict[Any, AlarmGroup] = {}
        self._stated: set[str] = set()

    def sentence(self, alarm: Snapshot) -> str:
        """Return the sentence of an alarm, in full or, if its theorem has been stated, in short."""
        sentence = str(alarm["sentence"])
        _, found, theorem = sentence.partition(THEOREM)
        if not found or theorem not in self._stated:
            self._stated.add(theorem)
            return sentence
        evidence = f"10^{alarm['log_evidence'] / PER_DECADE:.2f}"
        return f"At {_counted(alarm)} {alarm['step']} {alarm['detector']} rang{_against(alarm)}, evidence {evidence}."

    def take(self, name: str, alarm: Snapshot) -> AlarmGroup:
        """Count an alarm; return its group, a new one with it alone if it is not soon after the last one."""
        group = self._now.get(key := self._key(name, alarm))
        if group is None or alarm["step"] - group.last["step"] >= APART:
            group = self._now[key] = AlarmGroup(name, alarm, alarm)
        else:
            group.last, group.count = alarm, group.count + 1
        return group

    def tell(self, name: str, alarm: Snapshot) -> list[str]:
        """Return the lines to say of an alarm; none if it is only counted."""
        if THEOREM not in alarm["sentence"]:
            return [f"{name}: {alarm['sentence']}"]
        before, group = self._now.get(self._key(name, alarm)), self.take(name, alarm)
        if group.count == 1:
            return [*self._again(before), f"{name}: {self.sentence(alarm)}"]
        group.untold = True
        return self._again(group) if group.count == 10 ** (len(str(group.count)) - 1) else []

    def rest(self) -> list[str]:
        """Return a line for each group of which some were only counted since they were last told."""
        return [line for group in self._now.values() for line in self._again(group)]

    def _again(self, group: AlarmGroup | None) -> list[str]:
        if group is None or not group.untold:
            return []
        group.untold = False
        return [f"{group.name}: {group.last['detector']} rang again{_against(group.last)}, {group.more}"]


def grouped(
    alarms: Iterable[tuple[str, Snapshot]], key: Callable[[str, Snapshot], Any] = _by_detector
) -> list[AlarmGroup]:
    """Return the groups of alarms, each with the name of its predictor, in the order in which they came.

    Examples
    --------
    >>> alarm = {"detector": "Ville", "about": "realised row", "log_evidence": 6.9, "sentence": "..."}
    >>> [(one.first["step"], one.more) for one in grouped(("abers", alarm | {"step": n}) for n in (7, 9, 30, 5000))]
    [(7, '2 more until step 30'), (5000, '')]
    """
    reporter = AlarmReporter(key)
    return [group for group in (reporter.take(*alarm) for alarm in alarms) if group.count == 1]
