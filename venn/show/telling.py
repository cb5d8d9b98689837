"""Alarms in words: each theorem is told only once."""

from __future__ import annotations

from math import log

from venn.monitors.objects import ABOUT
from venn.show.snapshots import Snapshot

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
        evidence = f"10^{alarm['log_evidence'] / log(10):.2f}"
        counted = "question" if alarm["about"] == ABOUT else "step"
        return f"At {counted} {alarm['step']} {alarm['detector']} rang{about}, evidence {evidence}."
