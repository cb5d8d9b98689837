"""Signs of life: a process that is waited for dates a file anew, and one that hangs is not waited for longer."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import sleep

PAUSE = 0.5  # seconds from one sign to the next
SILENCE = 60.0  # seconds without a sign, after which a process hangs


def show_life(file: int, lives: Callable[[], bool] = lambda: True) -> None:
    """Date an open file anew, again and again, while that function says True."""
    while lives():
        with suppress(OSError):  # where files cannot be dated
            os.utime(file)
        sleep(PAUSE)


class AwaitedSigns:
    """Waits for signs of life of another process.

    It adds up its own pauses, since a clock would also count a time in which both processes stood still.

    Parameters
    ----------
    file : int
        The open file that the other process dates.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._silent, self._latest = 0.0, 0

    def lasts(self, pause: float) -> bool:
        """Wait so many seconds; return whether there was a sign in the last minute."""
        sleep(pause)
        latest = os.fstat(self._file).st_mtime_ns
        self._silent, self._latest = self._silent + pause if latest == self._latest else 0.0, latest
        return self._silent <= SILENCE
