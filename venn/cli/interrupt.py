"""Ctrl-C as a wish that is granted between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While it is entered, the first Ctrl-C is remembered in `pressed`; the next one raises KeyboardInterrupt.

    So no step is left half done, and none is lost in compiled code, where Python may swallow the exception. Signals
    reach the main thread only: in another one nothing changes. Where Ctrl-C is ignored, as by a job in the background
    of a script, it stays so.

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
