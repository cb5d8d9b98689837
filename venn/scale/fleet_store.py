"""The store of a fleet: the last state of each key and its events since, in one SQLite file or in memory."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from venn.online import files
from venn.online.journal import JournalError
from venn.online.repair import Verified

FORMAT, VERSION = "venn fleet", 1
PRIOR = 0  # the number under which the shared model is kept
FILE = "fleet.db"
SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE keys (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, asked INTEGER NOT NULL, answered INTEGER NOT NULL,
    expired INTEGER NOT NULL, "right" REAL, log_e REAL NOT NULL, log_p REAL NOT NULL, since INTEGER NOT NULL,
    kind TEXT NOT NULL, named INTEGER NOT NULL, time REAL NOT NULL
);
CREATE TABLE states (number INTEGER PRIMARY KEY, event INTEGER NOT NULL, state BLOB NOT NULL);
CREATE TABLE log (
    number INTEGER NOT NULL, event INTEGER NOT NULL, what INTEGER NOT NULL, id, x BLOB, y, said BLOB, prior BLOB,
    time REAL NOT NULL, checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX events ON log (number, event);
CREATE TABLE ids (number INTEGER NOT NULL, id NOT NULL, what INTEGER NOT NULL, PRIMARY KEY (number, id)) WITHOUT ROWID;
CREATE TABLE positions (source TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
"""
ASK, ANSWER, LEARN, EXPIRE = range(4)  # what happens to a key
LARGEST_LOG = 1 << 26  # bytes of SQLite's own log
LEVEL = 6  # of the compression of states


class Taken(JournalError):
    """A fleet's folder belongs to another process."""


class FleetEvent(NamedTuple):
    """One event of a key, as it is kept until the key's next state."""

    event: int  #: its number among the key's events, from 1
    what: int  #: ASK, ANSWER, LEARN or EXPIRE
    id: int | str | None
    x: bytes | None
    y: Any  #: code of the label
    said: bytes | None  #: the predictions that were given
    prior: bytes | None  #: what the shared model said
    time: float  #: seconds since 1970

    @property
    def checksum(self) -> int:
        """Of all its values."""
        plain = (self.event, self.what, self.id, self.y, self.time)
        content = b"".join((self.x or b"", self.said or b"", self.prior or b""))
        return zlib.crc32(content, zlib.crc32(repr(plain).encode()))


class KeyRow(NamedTuple):
    """What is known of a key without opening it."""

    number: int
    key: str
    asked: int = 0
    answered: int = 0
    expired: int = 0
    right: float | None = 0.0  #: predicted labels that were right; None of numbers
    log_e: float = -0.6931471805599453
    log_p: float = 0.0
    since: int = 0
    kind: str = ""
    named: int = 0  #: the answer of this key after which it was named first; 0: it was not
    time: float = 0.0  #: of its last event, in seconds since 1970

    @property
    def events(self) -> int:
        """Number of its events."""
        return self.asked + self.answered + self.expired


class Memory:
    """Keeps the states of closed keys in memory, without events."""

    path: Path | None = None
    connection: Any = None

    def __init__(self) -> None:
        self._states: dict[int, bytes] = {}

    def keys(self) -> list[KeyRow]:
        """Return the keys that are there already."""
        return []

    def add(self, row: KeyRow) -> None:
        """Take a key in."""

    def write(self, row: KeyRow, event: FleetEvent | None) -> None:
        """Keep an event of a key, and how the key stands after it."""

    def log(self, number: int, event: FleetEvent) -> None:
        """Keep an event."""

    def ended(self, number: int, id: int | str) -> int | None:
        """Return how a question of a key has ended, ANSWER or EXPIRE; None if it has not or is not kept."""
        return None

    def keep(self, number: int, event: int, state: bytes) -> None:
        """Keep the state of a key after an event, in place of its earlier events."""
        self._states[number] = zlib.compress(state, LEVEL)

    def state(self, number: int) -> bytes | None:
        """Return the last state of a key; None if there is none."""
        found = self._states.get(number)
        return None if found is None else zlib.decompress(found)

    def since(self, number: int) -> list[FleetEvent]:
        """Return what has happened to a key since its state."""
        return []

    def reach(self, source: str, position: Any) -> None:
        """Keep how far a source has been read."""

    def position(self, source: str) -> Any:
        """Return how far a source has been read; None before its start."""
        return None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let all inside count together."""
        yield

    def sync(self) -> None:
        """Let what is kept reach the disk."""

    def close(self) -> None:
        """Nothing is open."""


class Folder(Memory):
    """Keeps a fleet in one SQLite file of a folder, which belongs to one process.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    durable : bool
        Whether each transaction reaches the disk before it counts.

    Raises
    ------
    JournalError
        By every method: another process has the folder, it holds something else, or it cannot be read or written.
    """

    def __init__(self, folder: Path, durable: bool) -> None:
        super().__init__()
        self.path = folder
        self._file = folder / FILE
        self._pid = os.getpid()
        self._depth = 0
        self._forget()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = files.take(files.beside(self._file))
        except BlockingIOError:
            raise Taken(f"{folder} must belong to one process, and another one has it open") from None
        except OSError as error:
            raise JournalError(f"{folder} cannot be opened as a fleet: {error.strerror or error}") from error
        try:
            self._db = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=30)
            self.connection = self._db
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                with self.transaction():
                    for statement in SCHEMA.split(";"):
                        self._db.execute(statement)
                    self._db.executemany(
                        "INSERT INTO about VALUES (?, ?)", [("format", FORMAT), ("version", json.dumps(VERSION))]
                    )
            check(self._db, self._file)
        except sqlite3.Error as error:
            self.close()
            raise JournalError(f"{self._file} cannot be opened as a fleet: {error}") from error
        except JournalError:
            self.close()
            raise

    @contextmanager
    def _trying(self, what: str) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise JournalError("a fleet must be used by the process that made it, got a call in a forked one")
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"{self._file} cannot be {what}: {error}") from error

    def keys(self) -> list[KeyRow]:
        """Return the keys, in the order in which they came."""
        with self._trying("read"):
            return rows_of(self._db)

    def add(self, row: KeyRow) -> None:
        """Take a key in."""
        with self._trying("written"):
            self._db.execute(f"INSERT INTO keys VALUES ({', '.join('?' * len(row))})", row)

    def write(self, row: KeyRow, event: FleetEvent | None) -> None:
        """Keep an event of a key, and how the key stands after it, in the present transaction."""
        if event is not None:
            self.log(row.number, event)
        self._new_rows[row.number] = row

    def log(self, number: int, event: FleetEvent) -> None:
        """Keep an event in the present transaction."""
        self._new_events.append((number, *event, event.checksum))
        if event.what in (ANSWER, EXPIRE):  # the log is cleared, but a sender may repeat a message long after
            self._new_ends[number, event.id] = event.what

    def _forget(self) -> None:
        """Begin a transaction with nothing to write."""
        self._new_rows: dict[int, KeyRow] = {}
        self._new_events: list[tuple[Any, ...]] = []
        self._new_ends: dict[tuple[int, Any], int] = {}

    def _flush(self) -> None:
        """Write all changes since the last time at once; of each key only its latest row."""
        with self._trying("written"):
            self._db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._new_events)
            ends = ((*which, what) for which, what in self._new_ends.items())
            self._db.executemany("INSERT INTO ids VALUES (?, ?, ?)", ends)
            self._db.executemany(
                'UPDATE keys SET asked=?, answered=?, expired=?, "right"=?, log_e=?, log_p=?, since=?, kind=?, '
                "named=?, time=? WHERE number=?",
                ((*row[2:], row.number) for row in self._new_rows.values()),
            )
        self._forget()

    def ended(self, number: int, id: int | str) -> int | None:
        """Return how a question of a key has ended, ANSWER or EXPIRE; None if it has not."""
        if (number, id) in self._new_ends:
            return self._new_ends[number, id]
        with self._trying("read"):
            found = self._db.execute("SELECT what FROM ids WHERE number = ? AND id = ?", (number, id)).fetchone()
        return None if found is None else int(found[0])

    def keep(self, number: int, event: int, state: bytes) -> None:
        """Keep the state of a key after an event, in place of its earlier events."""
        with self.transaction(), self._trying("written"):
            self._flush()
            # In this order what events leave free holds the state.
            self._db.execute("DELETE FROM log WHERE number = ? AND event <= ?", (number, event))
            self._db.execute(
                "INSERT OR REPLACE INTO states VALUES (?, ?, ?)", (number, event, zlib.compress(state, LEVEL))
            )

    def state(self, number: int) -> bytes | None:
        """Return the last state of a key; None if there is none."""
        with self._trying("read"):
            return _state_of(self._db, self._file, number)[1]

    def since(self, number: int) -> list[FleetEvent]:
        """Return what has happened to a key since its state."""
        self._flush()
        with self._trying("read"):
            return _events_of(self._db, self._file, number)

    def reach(self, source: str, position: Any) -> None:
        """Keep how far a source has been read."""
        with self._trying("written"):
            self._db.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", (source, json.dumps(position)))

    def position(self, source: str) -> Any:
        """Return how far a source has been read; None before its start."""
        with self._trying("read"):
            found = self._db.execute("SELECT position FROM positions WHERE source = ?", (source,)).fetchone()
        return None if found is None else json.loads(found[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let all inside count together, or not at all."""
        if self._depth:
            yield
            return
        with self._trying("written"):
            self._db.execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
            self._flush()
            with self._trying("written"):
                self._db.execute("COMMIT")
        except BaseException:
            self._forget()
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        finally:
            self._depth = 0

    def sync(self) -> None:
        """Let what is kept reach the disk."""
        with self._trying("written"):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file and let others have it."""
        if os.getpid() != self._pid:
            return
        if hasattr(self, "_db"):
            self._db.close()
        if self._lock is not None:
            files.release(self._lock)
            self._lock = None


def check(db: sqlite3.Connection, file: Path) -> None:
    """Raise unless a database is a fleet that this program reads."""
    try:
        found = dict(db.execute("SELECT name, value FROM about"))
    except sqlite3.Error as error:
        raise JournalError(f"{file} must be a fleet, got another file: {error}") from error
    if found.get("format") != FORMAT or found.get("version") != json.dumps(VERSION):
        raise JournalError(f"{file} must be a {FORMAT} of version {VERSION}, got {found}")


def rows_of(db: sqlite3.Connection) -> list[KeyRow]:
    """Return the keys of a fleet, in the order in which they came."""
    return [KeyRow(*one) for one in db.execute("SELECT * FROM keys ORDER BY number")]


def _state_of(db: sqlite3.Connection, file: Path, number: int) -> tuple[int, bytes | None]:
    """Return the last state of a key and the event that it is of; 0 and None if there is none."""
    event, state = db.execute("SELECT event, state FROM states WHERE number = ?", (number,)).fetchone() or (0, None)
    try:
        return event, None if state is None else zlib.decompress(state)
    except (zlib.error, TypeError) as error:
        raise JournalError(f"{file} is damaged: the state of key {number} cannot be read: {error}") from error


def _events_of(db: sqlite3.Connection, file: Path, number: int) -> list[FleetEvent]:
    """Return what has happened to a key since its state, compared with its checksums."""
    found = db.execute(
        "SELECT event, what, id, x, y, said, prior, time, checksum FROM log WHERE number = ? ORDER BY event", (number,)
    )
    events = []
    for *values, checksum in found:
        events.append(FleetEvent(*values))
        try:
            same = events[-1].checksum == checksum
        except TypeError:  # a value that is not even bytes
            same = False
        if not same:
            raise JournalError(f"{file} is damaged: event {values[0]} of key {number} has another checksum")
    return events


def verify_fleet(folder: str | os.PathLike[str]) -> Verified:
    """Compare each key of a fleet's folder, or of those of partitions inside, with its checksums.

    Those of its state and of the events since, that no event is missing, and the structure of the file. Its process
    may go on meanwhile.

    Raises
    ------
    JournalError
        There is no fleet, or it is damaged: the message says where.
    """
    found = Verified(0, 0, 0, 0, ())
    for one in folders_of(folder) or [Path(folder)]:
        file = one / FILE
        with _reading(one) as db:
            db.execute("BEGIN")  # all of one moment
            said = db.execute("PRAGMA integrity_check(1)").fetchone()
            if said != ("ok",):
                raise JournalError(f"{file} is damaged: its structure is not whole: {' '.join(str(said[0]).split())}")
            for row in [KeyRow(PRIOR, ""), *rows_of(db)]:
                last, state = _state_of(db, file, row.number)
                try:
                    if state is not None:
                        files.read(BytesIO(state))
                except Exception as error:
                    raise JournalError(f"{file} is damaged: the state of key {row.key!r}: {error}") from error
                events = _events_of(db, file, row.number)
                numbers = [last, *(one.event for one in events)]  # an example of a key is a question and its answer
                ends = accumulate((2 if one.what == LEARN and row.key else 1 for one in events), initial=last)
                if numbers != list(ends) or (row.key and numbers[-1] != row.events):
                    raise JournalError(f"{file} is damaged: events of key {row.key!r} are missing")
                counts = found.asked + row.asked, found.answered + row.answered, found.expired + row.expired
                found = Verified(*counts, found.checkpoints + (state is not None), ())
    return found


def folders_of(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of fleets: this one, or those inside, of partitions; none if there is no fleet."""
    here = Path(folder)
    if (here / FILE).is_file():
        return [here]
    return sorted(one.parent for one in here.glob(f"*/{FILE}"))


def read_rows(folder: str | os.PathLike[str]) -> list[KeyRow]:
    """Return the keys of a fleet's folder, or of those of partitions inside; their processes are not disturbed.

    Raises
    ------
    JournalError
        There is no fleet, or it cannot be read.
    """
    found: list[KeyRow] = []
    for one in folders_of(folder) or [Path(folder)]:
        with _reading(one) as db:
            found += rows_of(db)
    return found


@contextmanager
def _reading(folder: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Open the fleet of a folder to read it."""
    file = Path(folder) / FILE
    if not file.is_file():
        raise JournalError(f"{folder} must be the folder of a fleet, and has no {FILE}")
    try:
        where = f"file:{quote(os.path.realpath(file))}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, isolation_level=None, timeout=10)) as db:
            check(db, file)
            yield db
    except sqlite3.Error as error:
        raise JournalError(f"{file} cannot be read as a fleet: {error}") from error


LOOKED = 20  # events
WORDS = {ASK: "asked", ANSWER: "answered", LEARN: "learned", EXPIRE: "given up"}


def read_log(folder: str | os.PathLike[str], key: str) -> list[tuple[str, str, float]]:
    """Return what has happened to a key since its state was kept, the latest first: what, the id, and when.

    Raises
    ------
    JournalError
        There is no fleet, or it cannot be read.
    """
    for one in folders_of(folder) or [Path(folder)]:
        with _reading(one) as db:
            found = db.execute(
                "SELECT what, id, log.time FROM log JOIN keys USING (number) WHERE key = ? ORDER BY event DESC LIMIT ?",
                (key, LOOKED),
            ).fetchall()
        if found:
            return [(WORDS[what], "" if id is None else str(id), time) for what, id, time in found]
    return []
