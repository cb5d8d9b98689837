"""Many streams, one for each key and each with its own state: sharded over processes that may die or move."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from venn.online.archive import written
from venn.online.journal import JournalError
from venn.online.record import Record
from venn.online.watch import Watch
from venn.parameters import integer, is_number
from venn.scale.shard import PREFIX, KeyedEvent, Refused, Shard, Taken, checked, checked_source, key_of

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
    ) -> None:
        for name, function in (("make", make), ("monitor", monitor)):
            if not (callable(function) or (function is None and name == "monitor")):
                raise TypeError(f"{name} must be a function of the key, got {function!r}")
        count, open, every = integer("count", count, 1), integer("open", open, 1), integer("every", every, 1)
        self.folder, self.make, self.count = Path(folder), make, count
        self.monitor, self.patience, self.open = monitor, patience, open
        self.durable, self.every = durable, every
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
