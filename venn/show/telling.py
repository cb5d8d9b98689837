"""What is said seldom: of alarms that follow one another the first, then counts; what goes wrong again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from venn.monitors.alarms import PER_DECADE
from venn.monitors.drift import ABOUT
from venn.show.view import Snapshot

REMIND = 60.0  # seconds after which a repeated complaint is shown again


def plain(text: str) -> str:
    """Return a text with a blank for each letter that cannot be shown, such as a line's end.

    Examples
    --------
    >>> plain(chr(10).join("ab"))
    'a b'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Seldom:
    """Counts what goes wrong, and gives something to say the 1st, 10th, 100th time of a kind, and once a minute.

    Attributes
    ----------
    counts : dict of str to int
        How often each kind came.

    Examples
    --------
    >>> seldom = Seldom()
    >>> [seldom.heading("lost") for _ in range(3)]
    ['lost', '', '']
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._told: dict[str, float] = {}

    def heading(self, kind: str) -> str:
        """Count a complaint; return how it is headed, or nothing if it was said lately."""
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        now = monotonic()
        if count != 10 ** (len(str(count)) - 1) and now - self._told[kind] < REMIND:
            return ""
        self._told[kind] = now
        return f"{kind} ({count} so far)" if count > 1 else kind


@contextmanager
def hearing(loggers: Mapping[str, int], hear: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Give what loggers say, from these levels on, to a function alone, while the block lasts."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = hear  # type: ignore[assignment, method-assign]
    found = {logging.getLogger(name): level for name, level in loggers.items()}
    before = {one: (one.propagate, one.level) for one in found}
    for one, level in found.items():
        one.addHandler(handler)
        one.propagate = False
        one.setLevel(level)
    try:
        yield
    finally:
        for one, (propagate, level) in before.items():
            one.removeHandler(handler)
            one.propagate = propagate
            one.setLevel(level)


APART = 1000  # steps: alarms of one detector that are less apart belong together
THEOREM = " Theorem"  # from here on the sentence is the same for every alarm of a detector


class Telling:
    """Tells alarms one after the other: the first alarm with a theorem states it, later ones are short.

    Sentences without a theorem, such as those of a user's own detectors, are always told in full.

    Examples
    --------
    >>> telling = Telling()
    >>> alarm = {"step": 7, "detector": "Ville", "about": "realised row", "log_evidence": 6.9,
    ...          "sentence": "At step 7 the odds are 992 to 1. Theorem: this is seldom."}
    >>> telling.tell(alarm)
    'At step 7 the odds are 992 to 1. Theorem: this is seldom.'
    >>> telling.tell(alarm | {"step": 9})
    'At step 9 Ville rang against the realised row, evidence 10^3.00.'
    """

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, alarm: Snapshot) -> str:
        """Return the sentence of an alarm, in full or, if its theorem has been told, in short."""
        sentence = str(alarm["sentence"])
        _, found, theorem = sentence.partition(THEOREM)
        if not found or theorem not in self._told:
            self._told.add(theorem)
            return sentence
        about = f" against the {alarm['about']}" if alarm["about"] else ""
        evidence = f"10^{alarm['log_evidence'] / PER_DECADE:.2f}"
        counted = "question" if alarm["about"] == ABOUT else "step"
        return f"At {counted} {alarm['step']} {alarm['detector']} rang{about}, evidence {evidence}."


@dataclass
class Burst:
    """Alarms that belong together, such as those of one detector about one predictor, each soon after the one before.

    Attributes
    ----------
    name : str
        The predictor of the first.
    first, last : mapping
        Alarms, with "step", "detector", "about", "log_evidence" and "sentence".
    count : int
    """

    name: str
    first: Snapshot
    last: Snapshot
    count: int = 1

    def takes(self, alarm: Snapshot) -> bool:
        """Take in an alarm of the same kind if it is soon after the last one; return whether it is."""
        if alarm["step"] - self.last["step"] >= APART:
            return False
        self.last, self.count = alarm, self.count + 1
        return True

    @property
    def more(self) -> str:
        """How many alarms followed the first, and until when; empty if none did."""
        counted = "question" if self.last["about"] == ABOUT else "step"
        return f"{self.count - 1:,} more until {counted} {self.last['step']:,}" if self.count > 1 else ""


def bursts(alarms: Iterable[tuple[str, Snapshot]]) -> list[Burst]:
    """Return the bursts of alarms, each with the name of its predictor, in the order in which they came.

    Examples
    --------
    >>> alarm = {"detector": "Ville", "about": "realised row", "log_evidence": 6.9, "sentence": "..."}
    >>> [(one.first["step"], one.more) for one in bursts(("abers", alarm | {"step": n}) for n in (7, 9, 30, 5000))]
    [(7, '2 more until step 30'), (5000, '')]
    """
    return _together(alarms, lambda name, alarm: (name, alarm["detector"], alarm["about"]))


def _together(alarms: Iterable[tuple[str, Snapshot]], key: Callable[[str, Snapshot], Any]) -> list[Burst]:
    found, latest = [], dict[Any, Burst]()
    for name, alarm in alarms:
        of = key(name, alarm)
        if of not in latest or not latest[of].takes(alarm):
            latest[of] = Burst(name, alarm, alarm)
            found.append(latest[of])
    return found


def storms(alarms: Iterable[tuple[str, Snapshot]]) -> list[Burst]:
    """Return alarms of whatever rang in bursts, in order: one change makes many detectors ring, again and again.

    Those about objects are apart: their steps are questions.

    Examples
    --------
    >>> alarm = {"detector": "Ville", "about": "realised row", "log_evidence": 6.9, "sentence": "..."}
    >>> rung = [("abers", alarm | {"step": 9}), ("sets", alarm | {"step": 7}), ("abers", alarm | {"step": 5000})]
    >>> [(one.name, one.first["step"], one.more) for one in storms(rung)]
    [('sets', 7, '1 more until step 9'), ('abers', 5000, '')]
    """
    return _together(sorted(alarms, key=lambda one: int(one[1]["step"])), lambda name, alarm: alarm["about"] == ABOUT)


class Crier:
    """Tells alarms as they come: the first of a burst, then at the 10th, 100th, ... how many followed it.

    Those without a theorem, as of a user's own detector, are all told.

    Examples
    --------
    >>> crier = Crier()
    >>> alarm = {"detector": "Ville", "about": "", "log_evidence": 6.9, "sentence": "It rang. Theorem: seldom."}
    >>> for step in range(5, 10):
    ...     for line in crier.tell("abers", alarm | {"step": step}):
    ...         print(line)
    abers: It rang. Theorem: seldom.
    >>> crier.rest()
    ['abers: Ville rang again, 4 more until step 9']
    """

    def __init__(self) -> None:
        self.telling = Telling()
        self._now: dict[tuple[str, str, str], Burst] = {}
        self._untold: set[tuple[str, str, str]] = set()

    def tell(self, name: str, alarm: Snapshot) -> list[str]:
        """Return the lines to say of an alarm; none if it is only counted."""
        if THEOREM not in alarm["sentence"]:
            return [f"{name}: {alarm['sentence']}"]
        key = name, str(alarm["detector"]), str(alarm["about"])
        burst = self._now.get(key)
        if burst is None or not burst.takes(alarm):
            before = self._again(key)
            self._now[key] = Burst(name, alarm, alarm)
            return [*before, f"{name}: {self.telling.tell(alarm)}"]
        self._untold.add(key)
        return self._again(key) if burst.count == 10 ** (len(str(burst.count)) - 1) else []

    def rest(self) -> list[str]:
        """Return a line for each burst of which some were only counted since they were last told."""
        return [line for key in list(self._now) for line in self._again(key)]

    def _again(self, key: tuple[str, str, str]) -> list[str]:
        if key not in self._untold:
            return []
        self._untold.remove(key)
        about = f" against the {key[2]}" if key[2] else ""
        return [f"{key[0]}: {key[1]} rang again{about}, {self._now[key].more}"]
