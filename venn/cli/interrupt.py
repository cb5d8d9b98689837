"""Ctrl-C as a request that is honoured between two steps."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130  # exit code of every program ended by SIGINT


class Interrupt:
    """While it is entered, the first Ctrl-C only sets `pressed`; the next one raises KeyboardInterrupt.

    So no step is left half done, and no Ctrl-C is lost in compiled code, where Python may swallow the exception.
    Signals reach the main thread only: in other threads nothing changes. If Ctrl-C is ignored, as in a background job
    of a script, it remains ignored.

    Examples
    --------
    >>> with Interrupt() as interrupt:
    ...     interrupt.pressed
    False
    """

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


class Ending(Interrupt):
    """The same for Ctrl-C and SIGTERM; a second Ctrl-C ends the process immediately, like a kill.

    For programs that can be killed at any moment without harm.

    Attributes
    ----------
    pressed : bool
        Whether either of them came.
    terminated : bool
        Whether SIGTERM came.

    Examples
    --------
    >>> with Ending() as ending:
    ...     ending.pressed, ending.terminated
    (False, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self.terminated = False
        self._term: Any = None

    def __enter__(self) -> Ending:
        super().__enter__()
        if threading.current_thread() is threading.main_thread():
            self._term = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._term is not None:
            signal.signal(signal.SIGTERM, self._term)
        super().__exit__(kind, error, trace)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.pressed = self.terminated = True

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.pressed and not self.terminated:
            os._exit(INTERRUPTED)
        self.pressed = True
