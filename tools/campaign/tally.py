"""What a trial tells: how many things it has compared, what it noted, what has failed."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path

LONGEST = 3000  # characters of a failure's detail that are kept


class Tally:
    """Counts of one trial.

    Attributes
    ----------
    compared : int
        Answers that were held against another source.
    notes : Counter
        What happened that is no failure, such as a tie that only rounding decides.
    failures : list of (what, detail)
        `what` is short and the same for all failures of one cause, as far as can be told.
    remarks : list of (what, detail)
        What is no failure, yet should be seen: a refusal in words that do not help.
    outcomes : list of str
        What hostile calls met, one after the other.
    """

    def __init__(self) -> None:
        self.compared = 0
        self.notes: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        self.remarks: list[tuple[str, str]] = []
        self.outcomes: list[str] = []

    def same(self, holds: object, what: str, detail: object = "") -> None:
        """Count a comparison, and a failure unless it holds."""
        self.compared += 1
        if not holds:
            self.fail(what, detail)

    def fail(self, what: str, detail: object = "") -> None:
        self.failures.append((what, str(detail)[:LONGEST]))

    def remark(self, what: str, detail: object = "") -> None:
        self.remarks.append((what, str(detail)[:LONGEST]))

    def note(self, what: str) -> None:
        self.notes[what] += 1

    def escaped(self, error: BaseException) -> None:
        """Note an exception that left the trial: its type and the last of our lines that it passed."""
        self.fail(f"{type(error).__name__} at {place(error)}", "".join(traceback.format_exception(error))[-LONGEST:])


def place(error: BaseException) -> str:
    """Return the innermost line of `venn` or `streams` that an exception passed, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if {"venn", "streams"} & set(Path(frame.filename).parts) and "site-packages"
            not in frame.filename]  # fmt: skip
    last = (ours or frames or [None])[-1]
    return "nowhere" if last is None else f"{'/'.join(Path(last.filename).parts[-2:])}:{last.name}"
