"""Ctrl-C and SIGTERM as requests that are honoured between two steps."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

INTERRUPTED, TERMINATED = 130, 143  # exit codes of programs ended by SIGINT and by SIGTERM


class Interrupt:
    """While it is entered, the first Ctrl-C or SIGTERM only sets `pressed`; the next one ends the program.

    So no step is left half done, and no Ctrl-C is lost in compiled code, where Python may swallow the exception.
    Signals reach the main thread only: in other threads nothing changes. If Ctrl-C is ignored, as in a background job
    of a script, it remains ignored.

    Attributes
    ----------
    pressed : bool
        Whether either of them came.
    terminated : bool
        Whether SIGTERM came.

    Examples
    --------
    >>> with Interrupt() as interrupt:
    ...     interrupt.pressed, interrupt.terminated
    (False, False)
    """

    def __init__(self) -> None:
        self.pressed = self.terminated = False
        self._before: dict[int, Any] = {}

    @property
    def status(self) -> int:
        """The exit code of a program that ended because of it; 0 if neither came."""
        return TERMINATED if self.terminated else INTERRUPTED if self.pressed else 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._take)
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(self, *_: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise SystemExit(TERMINATED)
        self.pressed = self.terminated = True


class Ending(Interrupt):
    """The same, but a second Ctrl-C ends the process immediately, like a kill, and a second SIGTERM does nothing.

    For programs that can be killed at any moment without harm.

    Examples
    --------
    >>> with Ending() as ending:
    ...     ending.pressed, ending.terminated
    (False, False)
    """

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.pressed = self.terminated = True

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.pressed and not self.terminated:
            os._exit(INTERRUPTED)
        self.pressed = True
