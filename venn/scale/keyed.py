"""Many streams, one for each key and each with its own state: sharded over processes that may die or move."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote

import numpy as np

from venn.machines.machine import NotConverged
from venn.monitors.alarms import Alarm
from venn.online import files
from venn.online.files import written
from venn.online.journal import Journal, JournalError
from venn.online.loop import Online
from venn.online.record import Record
from venn.online.watch import Watch
from venn.parameters import flag, has_methods, integer, is_number

# ---------------------------------------------------------------------------------------------------------------- shard
# One shard of keyed streams: a journal for each key, a lock, and the position in the shard's source.

LONGEST = 200  # bytes of a key as a file's name
PREFIX = "key-"  # so that even "." can be a key
REFUSED = (ValueError, TypeError, NotConverged)

Refused = Callable[[Any, Exception], object]


def checked_source(source: Any) -> Any:
    """Return a source of messages, or say what is wrong with it."""
    if not has_methods(source, "messages", "acknowledge", "close") or not isinstance(
        getattr(source, "name", None), str
    ):
        raise TypeError(
            f"source must be a Source (name, messages, acknowledge, close), such as RedisStream, got {source!r}"
        )
    return source


class KeyedEvent(NamedTuple):
    """What a message has caused.

    Examples
    --------
    >>> KeyedEvent(3, "shop-7", "shop-7/1042", None, ()).key
    'shop-7'
    """

    shard: int
    key: str
    id: int | str
    prediction: Any  #: of a question; None for an answer
    alarms: tuple[Alarm, ...]  #: that an answer caused


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


def checked(key: Any) -> str:
    """Return a key, or say what is wrong with it."""
    if not isinstance(key, str):
        raise TypeError(f"key must be str, got {key!r}")
    try:
        length = len(quote(key, safe=""))
    except UnicodeEncodeError:
        raise ValueError(f"key must be text that UTF-8 can write, got {key!r}") from None
    if not 1 <= length <= LONGEST:
        raise ValueError(f"key must be 1 to {LONGEST} bytes, percent-encoded except letters and digits, got {key!r}")
    return key


class Taken(JournalError):
    """A shard belongs to another process."""


class Strayed(JournalError):
    """A source gives other messages than before."""


class Reading(NamedTuple):
    """A source that is read from a position on."""

    name: str
    start: int  #: number of the message at that position, from 1 at the start of the source
    current: set[str]  #: keys that have since received everything before it

    def known(self, message: Any, number: int, last: Any) -> bool:
        """Whether a key has received a message, by the position of the `last` one in its journal."""
        if last is None or last[1] <= self.start:
            return False
        if message.position == last[0] or number < last[1]:
            return True
        raise Strayed(
            f"{self.name} must give the messages that it gave before, but instead of the one at {last[0]!r} gives one "
            f"at {message.position!r}"
        )


class Owner(Protocol):
    """What a shard needs from the `Shards` that made it."""

    make: Callable[[str], Any]
    monitor: Callable[[str], Any] | None
    patience: int | None
    open: int
    durable: bool
    every: int
    new_scorer: bool

    def of(self, key: str) -> int:
        """Return the number of a key's shard."""

    def shard(self, number: int) -> Path:
        """Return the folder of a shard."""

    def journal(self, key: str) -> Path:
        """Return the file of a key's journal."""


class Shard:
    """The keys of one shard, for the process that owns it; `Shards.own` makes it, one thread uses it.

    Parameters
    ----------
    shards : Shards
        Whose keys these are.
    number : int
        Of the shard, from 0.

    Attributes
    ----------
    number : int
    folder : Path

    Examples
    --------
    >>> import tempfile, venn
    >>> from venn.scale import Shards
    >>> def make(key):
    ...     return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.Linear(), 1.0, ("no", "yes")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = Shards(folder, make, count=2)
    ...     with shards.own(shards.of("shop-7")) as shard:
    ...         prediction = shard.ask("shop-7", [0.5], id=1)
    ...         alarms = shard.answer("shop-7", 1, "yes")
    >>> prediction.lower, prediction.upper, alarms  # nothing was known
    (0.0, 1.0, ())
    """

    def __init__(self, shards: Owner, number: int) -> None:
        self.number, self.folder, self._shards = number, shards.shard(number), shards
        self._online: OrderedDict[str, Online] = OrderedDict()  # last used comes last
        self._owner = os.getpid()
        self._closed = False
        self._unwritten = 0  # messages since the positions were written
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = files.take(self.folder / "lock")
        except BlockingIOError:
            raise Taken(f"{self.folder} must belong to one process, and another one has it") from None
        try:
            self._positions: dict[str, list[Any]] = self._read_positions()
        except BaseException:
            self._give_lock()
            raise

    def __repr__(self) -> str:
        return f"Shard({self.number} of {self._shards!r})"

    def _give_lock(self) -> None:
        if self._lock is not None:
            if os.getpid() == self._owner:
                files.release(self._lock)
            else:
                os.close(self._lock)  # a forked child's copy of this object must not release the owner's lock
        self._lock = None

    # -------------------------------------------------------------------- keys

    @property
    def keys(self) -> list[str]:
        """The existing keys, sorted."""
        return sorted(unquote(path.name.removeprefix(PREFIX)) for path in self.folder.glob(f"{PREFIX}*"))

    def online(self, key: str) -> Online:
        """Return the run of a key, opened if necessary; only to look at, and valid until other keys are used.

        Raises
        ------
        JournalError
            The shard is closed, or the journal cannot be opened.
        ValueError
            The key belongs to another shard.
        """
        if self._closed:
            raise JournalError(f"{self!r} is closed: own it again")
        found = self._online.get(key) if isinstance(key, str) else None
        if found is not None:
            self._online.move_to_end(key)
            return found
        shards = self._shards
        if shards.of(key) != self.number:
            raise ValueError(f"key must belong to shard {self.number}, got {key!r} of shard {shards.of(key)}")
        while len(self._online) >= shards.open:
            self._let_go(next(iter(self._online)))
        self._online[key] = online = Online(
            shards.make(key),
            None if shards.monitor is None else shards.monitor(key),
            Journal(shards.journal(key), durable=shards.durable, every=shards.every),
            patience=shards.patience,
            new_scorer=shards.new_scorer,
        )
        return online

    def _let_go(self, key: str) -> None:
        """Close the run of a key; everything it has learned is on disk."""
        with self._online.pop(key) as online:
            if online.journal is not None:
                online.journal.sync()

    @contextmanager
    def _using(self, key: str) -> Iterator[Online]:
        """Give the run of a key; if it fails, it is dropped, and opened again from its journal next time."""
        online = self.online(key)
        try:
            yield online
        except REFUSED:
            raise
        except BaseException:
            self._drop(key)
            raise

    def _drop(self, key: str) -> None:
        self._online.pop(key).close()

    def ask(self, key: str, x: Any, id: int | str | None = None) -> Any:
        """Predict the label of a key's next object; see `Online.ask`."""
        with self._using(key) as online:
            return online.ask(x, id)

    def answer(self, key: str, id: int | str, y: Any) -> tuple[Alarm, ...]:
        """Reveal the label of a question of this key, and learn it; see `Online.answer`."""
        with self._using(key) as online:
            return online.answer(id, y)

    # ------------------------------------------------------------------ sources

    def follow(
        self, source: Any, key: Callable[[Any], str] = key_of, refused: Refused | None = None
    ) -> Iterator[KeyedEvent | None]:
        """Ask and answer what a source says; nothing is lost, and nothing learned twice, even if processes die.

        The effects of a message and its position in the source are one transaction of its key's journal. The position
        from which the source is read again is written less often: after a death some messages come again, and each key
        skips those that it knows. So the source must give the same messages after a position, as a broker does.
        Predictions of skipped messages are not given again; they are in the journal.

        Parameters
        ----------
        source : Source
            For this shard alone, such as a `streams.RedisStream` or a partition of a topic.
        key : callable, default `key_of`
            Returns the key of a message, from the message alone.
        refused : callable, optional
            Called with a message that cannot be processed (its key belongs to another shard, its object has another
            length, its question is unknown, ...) and the error; the message is then skipped. By default the error is
            raised, and the message comes again after a restart.

        Yields
        ------
        KeyedEvent or None
            None: nothing right now.

        Raises
        ------
        JournalError
            The source gives other messages than before, or a journal cannot be written.
        TypeError
            `source` is not a source.
        """
        name = checked_source(source).name
        position, number = before = self._positions.get(name, [None, 0])
        reading = Reading(name, number, set())
        for message in source.messages(position):
            if message is None:
                yield None
                continue
            number += 1
            event: KeyedEvent | None = None
            try:
                event = self._happen(message, number, reading, key, refused)
            except REFUSED as error:
                if refused is None:
                    raise
                refused(message, error)
            except Strayed:
                self._positions[name], self._unwritten = before, 0  # skipped messages may not have been known
                raise
            self._positions[name] = [message.position, number]
            self._unwritten += 1
            if self._unwritten >= self._shards.every:
                self.sync()
                source.acknowledge(message.position)
            if event is not None:
                yield event

    def _happen(
        self, message: Any, number: int, reading: Reading, key_of: Callable[[Any], str], refused: Refused | None
    ) -> KeyedEvent | None:
        """Process a message; return None if that was done before."""
        key = key_of(message)
        with self._using(key) as online:
            if key not in reading.current:
                last = online.position(reading.name)
                if reading.known(message, number, last):
                    if message.position == last[0]:
                        reading.current.add(key)
                    return None
            failure: Exception | None = None
            told: tuple[Any, ...] = ()
            try:
                with online.transaction():
                    try:
                        told = _tell(online, message)
                    except REFUSED as error:
                        if refused is None:
                            raise
                        failure = error
                    online.reach(reading.name, [message.position, number])
            except REFUSED:  # the transaction failed and does not count: this run is of no further use
                self._drop(key)
                raise
            reading.current.add(key)
        if failure is not None:
            raise failure
        return KeyedEvent(self.number, key, *told)

    def _read_positions(self) -> dict[str, list[Any]]:
        path = self.folder / "positions.json"
        try:
            found = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise JournalError(f"{path} cannot be read: {error}") from error
        if not isinstance(found, dict) or not all(_is_place(place) for place in found.values()):
            raise JournalError(f"{path} must say [position, number of messages] of each source, got {str(found)[:200]}")
        return found

    def sync(self) -> None:
        """Write to disk all that has happened, and then the positions in the sources."""
        for online in self._online.values():
            if online.journal is not None:
                online.journal.sync()
        with written(self.folder / "positions.json") as file:
            file.write(json.dumps(self._positions).encode())
        self._unwritten = 0

    # ------------------------------------------------------------------- ending

    def close(self) -> None:
        """Close all journals and release the shard. Harmless when repeated."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as rest:  # if one step fails, the rest is still done, the lock last
            rest.callback(self._give_lock)
            for key in self._online:
                rest.callback(self._let_go, key)
            if self._unwritten:
                self.sync()

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_place(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2 and type(found[1]) is int and found[1] >= 0


def _tell(online: Online, message: Any) -> tuple[int | str, Any, tuple[Alarm, ...]]:
    """Give a run a message: a question, an answer or both. Return the question's id, prediction and alarms."""
    id, prediction = message.id, None
    alarms: tuple[Alarm, ...] = ()
    if message.x is not None:
        prediction = online.ask(message.x, id)
        id = online.asked if id is None else id
    if message.y is not None:
        alarms = online.answer(id, message.y)
    return id, prediction, alarms


# ---------------------------------------------------------------------------------------------------------------- keyed

FORMAT, VERSION = "vennstream.shards", 1
TURN = 100  # messages of one shard before the next shard's turn
FOREVER = 1e9  # seconds, some thirty years: an integer may be too large for a clock
END: Any = object()


class Shards:
    """Runs keyed streams from a folder, divided among a fixed number of shards by a digest of the key.

    Each shard belongs to one process at a time. Its lock ends with the process, unless a forked child, which shares the
    lock, lives on. Each key of a shard has its own journal, made when the key first appears. A process that takes a
    shard over, whether its owner released it or died, continues where it stood, to the last bit.

    Each key's examples are a separate sequence: guarantees hold for each key by itself, if its examples are
    exchangeable. P-values and martingales of different keys are not merged.

    Parameters
    ----------
    folder : str or path
        Made if there is none. To move a shard to another machine, move its folder, or keep it on a disk that both share
        and whose locks (flock) work.
    make : callable
        ``make(key)`` returns the predictor or panel of a key before it has learned anything, always with the same
        parameters: the journal is compared with it.
    count : int >= 1
        Number of shards; the folder remembers it, and it cannot be changed.
    monitor : callable, optional
        ``monitor(key)`` returns a fresh monitor or a mapping of them, as for `Online`.
    patience : int >= 1, optional
        As for `Online`.
    open : int >= 1, default 64
        This many keys of a shard are in memory; those not used for longest have only their journal.
    durable : bool, default False
    every : int >= 1, default 1000
        As for `Journal`. After so many messages the position of a shard's source is written, too.
    new_scorer : bool, default False
        As for `Online`: calibration of a key begins anew where `make` gives it another fitted scorer than before.

    Raises
    ------
    JournalError
        The folder holds another number of shards, or something else.
    TypeError, ValueError
        A parameter is not what it must be.

    See Also
    --------
    venn.Online : one stream; what is valid when labels come late.

    Examples
    --------
    >>> import tempfile, venn
    >>> def make(key):
    ...     return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = Shards(folder, make, count=16)
    ...     with shards.own(shards.of("shop-7")) as shard:
    ...         prediction = shard.ask("shop-7", [0.0], id=1)
    ...     with shards.own(shards.of("shop-7")) as shard:  # another process, perhaps
    ...         alarms = shard.answer("shop-7", 1, "no")
    ...         print(shard.online("shop-7"))
    Online(TransductiveVenn: 1 asked, 1 answered, 0 pending)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        make: Callable[[str], Any],
        count: int,
        *,
        monitor: Callable[[str], Any] | None = None,
        patience: int | None = None,
        open: int = 64,
        durable: bool = False,
        every: int = 1000,
        new_scorer: bool = False,
    ) -> None:
        for name, function in (("make", make), ("monitor", monitor)):
            if not (callable(function) or (function is None and name == "monitor")):
                raise TypeError(f"{name} must be a function of the key, got {function!r}")
        count, open, every = integer("count", count, 1), integer("open", open, 1), integer("every", every, 1)
        self.folder, self.make, self.count = Path(folder), make, count
        self.monitor, self.patience, self.open = monitor, patience, open
        self.durable, self.every, self.new_scorer = durable, every, flag("new_scorer", new_scorer)
        about = self.folder / "shards.json"
        mine = {"format": FORMAT, "version": VERSION, "count": count}
        try:
            found = json.loads(about.read_bytes())
        except FileNotFoundError:
            with written(about) as file:
                file.write(json.dumps(mine).encode())
            return
        except ValueError as error:
            raise JournalError(f"{about} cannot be read: {error}") from error
        if found != mine:
            raise JournalError(f"{about} must say {mine}, as this program does, got {found}")

    def __repr__(self) -> str:
        return f"Shards({str(self.folder)!r}, {self.count})"

    def of(self, key: str) -> int:
        """Return the number of a key's shard: crc32 of its UTF-8 bytes, modulo `count`.

        A sender of messages can compute it in any language.
        """
        return zlib.crc32(checked(key).encode()) % self.count

    def own(self, number: int, wait: float = 0.0) -> Shard:
        """Take a shard; it is released when the block or the process ends.

        Parameters
        ----------
        number : int from 0 to count - 1
        wait : float >= 0, default 0
            Seconds to wait for its owner to release it.

        Raises
        ------
        JournalError
            Another process has it, or this one already; or its position cannot be read.
        TypeError, ValueError
            A parameter is not as described.
        """
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < self.count:
            raise ValueError(f"number must be an integer from 0 to {self.count - 1}, got {number!r}")
        if not is_number(wait):
            raise TypeError(f"wait must be a number of seconds >= 0, got {wait!r}")
        if not wait >= 0:
            raise ValueError(f"wait must be a number of seconds >= 0, got {wait!r}")
        # Half precision does not hold the limit.
        wait = min(wait if isinstance(wait, int) else float(wait), FOREVER)
        until = time.monotonic() + wait
        while True:
            try:
                return Shard(self, int(number))
            except Taken:
                if time.monotonic() >= until:
                    raise
                time.sleep(min(0.05, wait))

    def record(self, key: str) -> Record:
        """Return the journal of a key as a `Record`, whoever owns its shard; the owner is not disturbed.

        Raises
        ------
        JournalError
            There is no such key yet.
        """
        with Watch(self.journal(key)) as watch:
            return watch.record()

    def journal(self, key: str) -> Path:
        """Return the path of the journal of a key."""
        return self.shard(self.of(key)) / f"{PREFIX}{quote(key, safe='')}" / "journal.db"

    def shard(self, number: int) -> Path:
        """Return the folder of a shard.

        Raises
        ------
        TypeError
            `number` is no integer.
        """
        if not isinstance(number, int | np.integer):
            raise TypeError(f"number must be an integer, got {number!r}")
        return self.folder / f"{number:0{len(str(self.count - 1))}}"

    def serve(
        self,
        numbers: Iterable[int],
        source: Callable[[int], Any],
        *,
        key: Callable[[Any], str] = key_of,
        refused: Refused | None = None,
        wait: float = 1.0,
    ) -> Iterator[KeyedEvent | None]:
        """Follow the sources of several shards in turn; shards owned by others are taken over when they become free.

        Parameters
        ----------
        numbers : iterable of int
        source : callable
            ``source(number)`` returns the source of a shard, see `Shard.follow`.
        key, refused
            As for `Shard.follow`.
        wait : float >= 0, default 1
            Seconds after which a shard owned by another process is tried again.

        Yields
        ------
        KeyedEvent or None
            None: nothing right now; a chance to stop the loop. The loop ends when all sources have ended.
        """
        if not callable(source):
            raise TypeError(f"source must be a callable that gives the source of a shard, got {source!r}")
        with ExitStack() as all_of_them:
            free = dict.fromkeys(numbers, 0.0)
            running: dict[int, tuple[Shard, Iterator[KeyedEvent | None]]] = {}
            while free or running:
                for number in [n for n, again in free.items() if time.monotonic() >= again]:
                    try:
                        shard = all_of_them.enter_context(self.own(number))
                    except Taken:
                        free[number] = time.monotonic() + wait
                        continue
                    del free[number]
                    opened = checked_source(source(number))
                    all_of_them.callback(opened.close)
                    running[number] = shard, shard.follow(opened, key, refused)
                for number, (shard, events) in list(running.items()):
                    for _ in range(TURN):
                        event = next(events, END)
                        if event is END:
                            del running[number]
                            shard.close()
                        else:
                            yield event
                        if event is None or event is END:
                            break
                if not running and free:
                    time.sleep(min(wait, 0.05))
                    yield None
