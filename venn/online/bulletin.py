"""What a run shows to viewers: alarms, points of its curves, the latest figures."""

from __future__ import annotations

import time
from typing import Any

from venn.monitors.alarms import Alarm
from venn.online.journal import Journal
from venn.online.run import Run, Rung
from venn.show.view import figures_of

FINEST, OCTAVE = 8, 512  # the curves have a point every FINEST steps, after OCTAVE of them half as many, and so on
FRESH = 0.5  # least seconds between two writes of the latest figures, where points of the curves are rarer


def spacing(step: int) -> int:
    """Return the number of steps from one point of the curves to the next: some thousand points in a million steps."""
    return FINEST if step < OCTAVE * FINEST else 1 << ((step // OCTAVE).bit_length() - 1)


class Bulletin:
    """Gathers what viewers see of a run, and writes it into the journal when something is due.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._alarms: list[tuple[str, int, int, float, Alarm]] = []  # not yet written
        self._points: list[tuple[int, float, dict[str, Any]]] = []
        self._shown = -FRESH  # when the latest figures were written, by a clock that is never set

    def note(self, now: float, rung: list[Rung]) -> None:
        """Record the alarms of the latest answer, and its point of the curves if it has one."""
        run, step = self._run, self._run.answered
        self.ring(step, now, rung)
        if step % spacing(step) == 0:
            seen = {name: one.figures() for name, one in run.by_predictor.items()}
            figures = {name: figures_of(told.figures(), seen.get(name)) for name, told in run.told.items()}
            self._points.append((step, now, figures))

    def ring(self, step: int, now: float, rung: list[Rung]) -> None:
        """Record the alarms of a step."""
        self._alarms += [(name, number, step, now, alarm) for name, number, alarm in rung]

    def due(self) -> bool:
        """Whether there is something to write."""
        return bool(self._alarms or self._points) or time.monotonic() - self._shown >= FRESH

    def write(self, journal: Journal, now: float, last: bool = False) -> None:
        """Write what is due, or everything at the `last` moment of a run; what cannot be written waits."""
        told, monitors = self._run.told, self._run.monitors
        # With an alarm always: nothing may come after it for long, and the verdict must not be older than it.
        late = last or bool(self._alarms) or time.monotonic() - self._shown >= FRESH
        with journal:
            for alarm in self._alarms:
                journal.ring(*alarm)
            for point in self._points:
                journal.draw(*point)
            for name in (*told, *(monitors.keys() - told.keys())) if late else ():
                said = self._run.seen(name) if name in told else None
                journal.show(name, self._run.answered, now, {"told": said, "monitor": self._run.watched(name)})
        if late:
            self._shown = time.monotonic()
        self._alarms.clear()
        self._points.clear()
