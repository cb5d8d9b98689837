"""Keyed messages into fleets: several processes divide the keys as a broker divides them among partitions."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from venn.machines.machine import NotConverged
from venn.parameters import has_methods, integer, is_number
from venn.scale.fleet import Fleet, checked_key
from venn.scale.fleet_store import Taken
from venn.scale.key_changes import KeyChange

REFUSED = (ValueError, TypeError, NotConverged)
TURN = 100  # messages of one partition before the next one's turn
NAP = 0.05  # seconds
FOREVER = 1e9  # seconds, some thirty years: an integer may be too large for a clock
END: Any = object()
Refused = Callable[[Any, Exception], object]


class KeyedEvent(NamedTuple):
    """The result of a message.

    Examples
    --------
    >>> KeyedEvent(3, "shop-7", "shop-7/1042", None, ()).key
    'shop-7'
    """

    partition: Any
    key: str
    id: int | str | None
    prediction: Any  #: of a question; None for an answer
    named: tuple[KeyChange, ...]  #: keys that were named because of an answer
    answered: bool = False  #: whether a label came


def key_of(message: Any) -> str:
    """Return the key of a message whose id is "key/id": the part before the first slash.

    Raises
    ------
    ValueError
        The id is not of this form.

    Examples
    --------
    >>> from streams import Message
    >>> key_of(Message("shop-7/1042", [1.0], None, position=3))
    'shop-7'
    """
    key, slash, _ = message.id.partition("/") if isinstance(message.id, str) else ("", "", "")
    if not (key and slash):
        raise ValueError(f"id must be like 'key/id', got {message.id!r}")
    return str(key)


def partition_of(key: str, count: int) -> int:
    """Return the number of a key's partition: crc32 of its UTF-8 bytes, modulo `count`.

    A sender of messages can compute it in any language. A topic of Kafka divides keys by itself.

    Examples
    --------
    >>> partition_of("shop-7", 16)
    5
    """
    return zlib.crc32(checked_key(key).encode()) % integer("count", count, 1)


def _checked_source(source: Any) -> Any:
    if not has_methods(source, "messages", "acknowledge", "close") or not isinstance(
        getattr(source, "name", None), str
    ):
        raise TypeError(
            f"source must be a Source (name, messages, acknowledge, close), such as RedisStream, got {source!r}"
        )
    return source


def follow(
    fleet: Fleet,
    source: Any,
    key: Callable[[Any], str] = key_of,
    refused: Refused | None = None,
    partition: Any = None,
) -> Iterator[KeyedEvent | None]:
    """Ask and answer the messages of a source; none is lost or learned twice, even if the process dies.

    What a message does, and its position in the source, are one transaction.

    Parameters
    ----------
    fleet : Fleet
        With a folder, for this source and no other.
    source : Source
        Such as a `streams.RedisStream`.
    key : callable, default `key_of`
        Returns the key of a message.
    refused : callable, optional
        Called with a message that cannot be processed and the error; the message is then passed over. By default the
        error is raised, and the message comes again after a restart.
    partition : object, optional
        Stands in the events.

    Yields
    ------
    KeyedEvent or None
        None: nothing right now.

    Raises
    ------
    TypeError
        `source` is not a source.
    JournalError
        The fleet cannot be written.

    Examples
    --------
    >>> import venn
    >>> from streams import Message
    >>> class Told:
    ...     name = "told"
    ...     def messages(self, position=None):
    ...         yield Message("shop-7/1", [0.5], None, position=1)
    ...         yield Message("shop-7/1", None, "no", position=2)
    ...     def acknowledge(self, position):
    ...         pass
    ...     def close(self):
    ...         pass
    >>> def make(key):
    ...     return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), C=1, classes=["no", "yes"]))
    >>> [(event.key, event.id) for event in follow(venn.Fleet(make), Told())]
    [('shop-7', 'shop-7/1'), ('shop-7', 'shop-7/1')]
    """
    name = _checked_source(source).name
    for message in source.messages(fleet.position(name)):
        if message is None:
            yield None
            continue
        event: KeyedEvent | None = None
        try:
            with fleet.transaction():
                event = _processed(fleet, message, key(message), partition)
                fleet.reach(name, message.position)
        except REFUSED as error:
            if refused is None:
                raise
            refused(message, error)
            fleet.reach(name, message.position)
        source.acknowledge(message.position)
        if event is not None:
            yield event


def _processed(fleet: Fleet, message: Any, key: str, partition: Any) -> KeyedEvent:
    """Tell a fleet what a message says: a question, an answer or both."""
    id, prediction = message.id, None
    named: tuple[KeyChange, ...] = ()
    if message.x is not None:
        prediction = fleet.ask(key, message.x, id)
        id = fleet.pending(key)[-1]
    if message.y is not None:
        named = fleet.answer(key, id, message.y)
    return KeyedEvent(partition, key, id, prediction, named, message.y is not None)


def follow_partitions(
    partitions: Iterable[Any],
    fleet: Callable[[Any], Fleet],
    source: Callable[[Any], Any],
    *,
    key: Callable[[Any], str] = key_of,
    refused: Refused | None = None,
    wait: float = 1.0,
) -> Iterator[KeyedEvent | None]:
    """Follow the sources of several partitions in turn; those of other processes are taken over once they are free.

    Start it in several processes, on machines that share the folders: each partition is served by the first to take
    it, and when that dies, another one goes on with it. With a consumer group, name the partitions that the broker has
    assigned.

    Parameters
    ----------
    partitions : iterable of numbers or names
    fleet : callable
        ``fleet(partition)`` opens the fleet of a partition, in a folder of its own.
    source : callable
        ``source(partition)`` returns its source, see `follow`.
    key, refused
        As for `follow`.
    wait : float >= 0, default 1
        Seconds after which a partition of another process is tried again.

    Yields
    ------
    KeyedEvent or None
        None: nothing right now; a chance to stop the loop. The loop ends when all sources have ended.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from streams import Message
    >>> class Told:
    ...     name = "told"
    ...     def messages(self, position=None):
    ...         yield Message("shop-7/1", [0.5], None, position=1)
    ...         yield Message("shop-7/1", None, "no", position=2)
    ...     def acknowledge(self, position):
    ...         pass
    ...     def close(self):
    ...         pass
    >>> def make(key):
    ...     return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), C=1, classes=["no", "yes"]))
    >>> for event in follow_partitions([5], lambda partition: venn.Fleet(make), lambda partition: Told()):
    ...     print(event.partition, event.key)
    5 shop-7
    5 shop-7
    """
    for name, function in (("fleet", fleet), ("source", source)):
        if not callable(function):
            raise TypeError(f"{name} must be a function of the partition, got {function!r}")
    if not is_number(wait) or not wait >= 0:
        raise ValueError(f"wait must be a number of seconds >= 0, got {wait!r}")
    pause = min(float(wait), FOREVER)
    with ExitStack() as all_of_them:
        free = dict.fromkeys(partitions, 0.0)
        running: dict[Any, tuple[Fleet, Iterator[KeyedEvent | None]]] = {}
        while free or running:
            for one in [one for one, again in free.items() if time.monotonic() >= again]:
                try:
                    opened = all_of_them.enter_context(fleet(one))
                except Taken:
                    free[one] = time.monotonic() + pause
                    continue
                del free[one]
                told = _checked_source(source(one))
                all_of_them.callback(told.close)
                running[one] = opened, follow(opened, told, key, refused, one)
            for one, (opened, events) in list(running.items()):
                for _ in range(TURN):
                    event = next(events, END)
                    if event is END:
                        del running[one]
                        opened.close()
                    else:
                        yield event
                    if event is None or event is END:
                        break
            if not running and free:
                time.sleep(min(pause, NAP))
                yield None
