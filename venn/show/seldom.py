"""What is said seldom: what goes wrong again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

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
    """Counts complaints of each kind, and says which to show: the 1st, 10th, 100th, ..., and one a minute.

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
        self._notified: dict[str, float] = {}

    def heading(self, kind: str) -> str:
        """Count a complaint; return its heading, or nothing if it need not be shown."""
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        now = monotonic()
        if count != 10 ** (len(str(count)) - 1) and now - self._notified[kind] < REMIND:
            return ""
        self._notified[kind] = now
        return f"{kind} ({count} so far)" if count > 1 else kind


@contextmanager
def hearing(loggers: Mapping[str, int], hear: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Hand what loggers say, from these levels on, to a function and to nobody else while the block lasts."""
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
