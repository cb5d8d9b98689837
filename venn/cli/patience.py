"""Measures how long questions have waited for their labels, even if the clock is set."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from time import monotonic, time


class Patience:
    """Says which questions have waited too long.

    Within a process time is that of a clock which nobody sets: a device without a battery starts in 1970 and learns
    later what time it is. Only what was asked before the process started is as old as the clock says, and never
    younger than nothing.

    Parameters
    ----------
    seconds : float or None
        How long a question may wait; None: for ever.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._since: dict[int | str, float] = {}  # oldest first

    def remember(self, asked: Iterable[tuple[int | str, float]]) -> None:
        """Let questions wait that were asked at these times by the clock, oldest first."""
        now, reading, oldest = monotonic(), time(), float("inf")
        for id, when in asked if self._seconds is not None else ():
            oldest = min(oldest, max(0.0, reading - when))  # no older than those asked before
            self._since[id] = now - oldest

    def begin(self, id: int | str) -> None:
        """Start the wait of a question."""
        if self._seconds is not None:
            self._since[id] = monotonic()

    def end(self, id: int | str) -> None:
        """End the wait of a question."""
        self._since.pop(id, None)

    def overdue(self) -> list[int | str]:
        """Return the questions that have waited too long, oldest first."""
        if self._seconds is None:
            return []
        since = monotonic() - self._seconds
        return [id for id, _ in takewhile(lambda one: one[1] <= since, self._since.items())]
