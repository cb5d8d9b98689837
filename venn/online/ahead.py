"""Events that are at hand are shown to predictors before their turn, so that their objects are scored in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

AT_A_TIME = 512  # events; a call of a hundred trees then costs little for each, and few are scored in vain


def at_hand(events: object) -> bool:
    """Whether all events have arrived, so that reading ahead waits for nothing: a list, or `arrived` is True."""
    return isinstance(events, list | tuple) or getattr(events, "arrived", False) is True


def ahead(events: Iterable[Any], expect: Callable[[list[Any]], None]) -> Iterator[Any]:
    """Yield the events in order; where they are at hand, `expect` receives some hundred of them before the first.

    An error of the iteration is raised after the events before it, as if nothing were read ahead.

    Examples
    --------
    >>> list(ahead([1, 2, 3], print)), list(ahead(iter([1, 2, 3]), print))
    [1, 2, 3]
    ([1, 2, 3], [1, 2, 3])
    """
    if not at_hand(events):
        yield from events
        return
    rest = iter(events)
    while True:
        block: list[Any] = []
        failure: Exception | None = None
        try:
            for event in islice(rest, AT_A_TIME):
                block.append(event)
        except Exception as error:
            failure = error
        if block:
            expect(block)
        yield from block
        if failure is not None:
            raise failure
        if len(block) < AT_A_TIME:
            return
