"""The chain of checksums through a journal: how a changed, missing or foreign row is found, and where.

Each event has a checksum of all its columns *and* of the event before, whatever tables the two stand in: questions,
answers and expiries are one chain, in the order in which they happened, so that late labels are nothing special. The
chain begins with the description of the run. A transaction ends by writing the length and the last checksum of the
chain into `seals`, so that a chain cut short is noticed as well; a death between transactions leaves both as they were.
Rows of the other tables have a checksum each, and `seals` holds their number and sum.

There is no key: this shows accidents, and not who computes all checksums again.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shlex import quote as in_shell
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from venn.labels import LabelSpace
from venn.machines.sparse import SparseRows, clean_sparse, is_sparse, read_object
from venn.machines.tables import MARK, named_object, object_bytes, object_of, one_row
from venn.monitors.kinds import ALL, kind_of
from venn.online import files
from venn.prediction import Prediction

# --------------------------------------------------------------------------------------------------------- journal file
# The tables of a journal, and how a file is recognised as one.

FORMAT, VERSION = "vennstream.journal", 4
# What sqlite3 raises for a damaged file: the second if its message quotes bytes that are not text.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
LARGEST = 2**63 - 1  # largest integer that SQLite holds
APPLICATION = 0x76656E6E  # SQLite's mark of the application that owns a file

# `event` numbers questions, answers and expiries in the order in which they happened, `step` the answers. What the
# checksums are of, and what seals say, stands in chain.py.
SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE questions (
    event INTEGER PRIMARY KEY, id ANY NOT NULL UNIQUE, time REAL NOT NULL,
    step INTEGER NOT NULL, x BLOB NOT NULL, predictions BLOB NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE answers (
    step INTEGER PRIMARY KEY, event INTEGER NOT NULL, question INTEGER NOT NULL UNIQUE, time REAL NOT NULL,
    truth ANY NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE expired (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, question INTEGER NOT NULL UNIQUE, time REAL NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE alarms (
    predictor TEXT NOT NULL, number INTEGER NOT NULL, step INTEGER NOT NULL, time REAL NOT NULL, alarm TEXT NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (predictor, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE series (
    step INTEGER PRIMARY KEY, time REAL NOT NULL, figures TEXT NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE latest (
    predictor TEXT PRIMARY KEY, step INTEGER NOT NULL, time REAL NOT NULL, snapshot TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE positions (source TEXT PRIMARY KEY, position TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE seals (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""


class JournalError(RuntimeError):
    """A journal could not be written or read; the message says which file, and what happened.

    Attributes
    ----------
    what : str
        Where a journal is damaged, such as "answers, step 61 (event 130), is not as written"; empty for other errors.

    Examples
    --------
    >>> from pathlib import Path
    >>> try:
    ...     open_to_read(Path("no_such.db"))
    ... except JournalError as error:
    ...     print(error)
    no_such.db must be a journal, and there is no such file
    """

    what = ""


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a journal to read it; its run goes on undisturbed.

    Raises
    ------
    JournalError
        There is no such file, or it cannot be opened.
    """
    if not path.is_file():
        raise JournalError(f"{path} must be a journal, and there is no such file")
    where = f"file:{quote(os.path.realpath(path))}?mode=ro"
    try:
        return sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    except sqlite3.Error as error:
        raise JournalError(f"{path} cannot be read as a journal: {error}") from error


def check_tables(db: sqlite3.Connection, path: Path) -> None:
    """Raise unless a database has the tables and indices of a new journal, and nothing else."""
    if _tables(db) != _wanted_tables():
        raise JournalError(f"{path} must have the tables of a journal and nothing else")


def _tables(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(db.execute("SELECT type, name, ifnull(sql, '') FROM sqlite_master"))


@cache
def _wanted_tables() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _tables(db)


def read_header(db: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """Return a journal's description of its run, or say why the file cannot be read as a journal."""
    try:
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise JournalError(f"{path} must be a journal, and is empty: no run has begun in it")
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalError(f"{path} must be a journal, got another SQLite file")
        header = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM run")}
    except sqlite3.Error as error:
        cure = ""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
            cure = (
                ": SQLite writes beside a journal to read it; on a read-only file system copy it, and its -wal if it "
                "has one, to a folder that can be written"
            )
        raise JournalError(f"{path} cannot be opened as a journal: {error}{cure}") from error
    except (TypeError, ValueError) as error:  # of JSON; its words say nothing about the file
        raise JournalError(f"{path} cannot be opened as a journal: the description of its run is damaged") from error
    if header.get("format") != FORMAT:
        raise JournalError(f"{path} must be a journal of format {FORMAT!r}, got {header.get('format')!r}")
    if header.get("version") != VERSION:
        raise JournalError(
            f"{path} must be a journal of version {VERSION}, which this program writes, got {header.get('version')!r}: "
            "use the program that wrote it"
        )
    return header


# ---------------------------------------------------------------------------------------------------------------- codec
# Objects and predictions as bytes, and back, bit for bit: the form in which a journal keeps them.

NUMBER = np.dtype("<f8")


def copy_object(x: Any) -> Any:
    """Return a copy of an object in the form that `decode_object` returns.

    That is an array, a sparse row (1, d), or, of an object with text, a dict of values by name or a list of them.

    Raises
    ------
    TypeError, ValueError
        It is none of these.
    """
    if is_sparse(x):
        return clean_sparse("x", x, None).tocsr()
    named = named_object(x)
    return np.array(one_row(x), NUMBER) if named is None else named


def encode_object(x: Any) -> bytes:
    """Return the bytes of an object that `copy_object` has made."""
    if isinstance(x, dict | list):
        return object_bytes(x)
    return clean_sparse("x", x, None).tobytes() if is_sparse(x) else np.ascontiguousarray(x, NUMBER).tobytes()


def decode_object(content: bytes) -> Any:
    """Return the object that `encode_object` wrote: as `copy_object` returns it.

    Raises
    ------
    ValueError
        The bytes are not those of an object.
    """
    if len(content) % NUMBER.itemsize and content.endswith(MARK):
        return object_of(content)
    x = read_object(content)
    return x.tocsr() if isinstance(x, SparseRows) else x


def encode(predictions: Mapping[str, Prediction]) -> bytes:
    """Return the predictions, in order, as bytes; equal predictions make equal bytes.

    Raises
    ------
    TypeError
        One is not a prediction.
    """
    parts: list[bytes] = []
    for name, prediction in predictions.items():
        kind = kind_of(prediction, name)
        parts += (bytes([ALL.index(kind)]), kind.encode(prediction))
    return b"".join(parts)


def decode(content: bytes, names: Sequence[str], space: LabelSpace) -> dict[str, Prediction]:
    """Return the predictions that `encode` wrote, by name.

    Raises
    ------
    ValueError
        The bytes are not those of predictions.
    """
    predictions: dict[str, Prediction] = {}
    start = 0
    try:
        for name in names:
            predictions[name], start = ALL[content[start]].decode(content, start + 1, space)
        if start != len(content):
            raise ValueError(f"{len(content)} bytes where {start} belong")
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise ValueError(f"predictions must be those of {', '.join(names)}, got damaged ones: {error}") from error
    return predictions


# ---------------------------------------------------------------------------------------------------------------- chain

PIECE = 1000  # rows that are read at a time: a reader who stays in one transaction makes the writer's log grow
FEATURES = "features of "  # and the name of a source, beside the positions of sources: names of its objects' values
BESIDE = ("alarms", "series", "latest", "positions")  # tables beside the chain
COLUMNS = {
    "questions": "event, id, step, x, predictions, time, checksum",
    "answers": "step, event, question, truth, time, checksum",
    "expired": "number, event, question, NULL, time, checksum",
    "alarms": "predictor, number, step, time, alarm, checksum",
    "series": "step, time, figures, checksum",
    "latest": "predictor, step, time, snapshot, checksum",
    "positions": "source, position, checksum",
}
#: SQLite's codes of errors that come from elsewhere than the file: locks, permissions, memory, a disk that fails.
PASSING = {3, 5, 6, 7, 8, 9, 10, 13, 14}
log = logging.getLogger("venn")
KEYS = {"questions": "event", "answers": "step", "expired": "number"}


def linked(before: int, values: Iterable[Any], contents: Sequence[bytes] = ()) -> int:
    """Return the checksum, 64 bits with a sign, of values and contents and of what came before.

    Raises
    ------
    TypeError
        A content is not even bytes.
    """
    digest = blake2b(repr((before, *values, *map(len, contents))).encode(), digest_size=8)
    for content in contents:
        digest.update(content)
    return int.from_bytes(digest.digest(), "little", signed=True)


class QuestionRow(NamedTuple):
    """What was asked."""

    event: int
    id: int | str
    step: int  #: number of answers learned before
    x: bytes
    predictions: bytes
    time: float

    def checksum(self, before: int) -> int:
        """Return the checksum that the journal keeps beside it, given that of the event before."""
        return linked(before, ("question", self.event, self.id, self.step, self.time), (self.x, self.predictions))

    @classmethod
    def read(cls, table: str, row: Sequence[Any]) -> QuestionRow:
        """Return the question of a row."""
        return cls._make(row[:6])


class AnswerRow(NamedTuple):
    """What was revealed; None as truth means that the question expired."""

    event: int
    number: int  #: its step, the place among the answers; or the place among the expiries
    question: int
    truth: Any  #: code of the label
    time: float

    def checksum(self, before: int) -> int:
        """Return the checksum that the journal keeps beside it, given that of the event before."""
        return linked(before, ("expiry" if self.truth is None else "answer", *self))

    @classmethod
    def read(cls, table: str, row: Sequence[Any]) -> AnswerRow:
        """Return the answer or the expiry of a row."""
        number, event, question, truth, time = row[:5]
        if (truth is None) != (table == "expired"):
            raise TypeError("an answer must have a truth")
        return cls(event, number, question, truth, time)


class ChainPlace(NamedTuple):
    """Where reading or writing stands in the chain: after so many events, the last with this checksum."""

    asked: int
    answered: int
    expired: int
    checksum: int

    @property
    def events(self) -> int:
        """Number of events."""
        return self.asked + self.answered + self.expired


class Seal(NamedTuple):
    """How many rows a part of the journal has, and their checksum."""

    rows: int
    checksum: int

    def with_row(self, checksum: int, instead_of: int | None = None) -> Seal:
        """Return the seal after a row was added, or replaced: of tables beside the chain, whose checksums add up."""
        return Seal(self.rows + (instead_of is None), wrapped(self.checksum + checksum - (instead_of or 0)))


def wrapped(number: int) -> int:
    """Return a number as 64 bits with a sign."""
    return (number + 2**63) % 2**64 - 2**63


def damage(path: Path, what: str, place: ChainPlace | None = None) -> JournalError:
    """Return the error that says what is wrong with a journal, and what of it is whole."""
    some = "" if place is None else f", up to {place.asked} questions and {place.answered} answers"
    salvage = f"`venn salvage {in_shell(str(path))} RESCUED`"
    error = JournalError(f"{path} is damaged: {what}. {salvage} writes what is whole to a new journal{some}")
    error.what = what
    return error


def unread(path: Path, what: str, error: Exception, place: ChainPlace | None = None) -> JournalError:
    """Return the error that says that a part of a journal cannot be read, and whether that is damage."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING or isinstance(error, OverflowError):
        return JournalError(f"{path} cannot be read: {error}")
    return damage(path, f"{what}: {error}", place)


# ------------------------------------------------------------------------- beside the chain


def root_of(db: sqlite3.Connection) -> Seal:
    """Return the seal of the description of the run, in which the chain begins."""
    rows = sorted(db.execute("SELECT key, value FROM run"))
    return Seal(len(rows), linked(0, ("run", *rows)))


def read_seals(db: sqlite3.Connection, path: Path) -> dict[str, Seal]:
    """Return the seals by name, and the description of the run compared with its own."""
    try:
        seals = {name: Seal(rows, total) for name, rows, total in db.execute("SELECT name, rows, checksum FROM seals")}
        if seals.keys() != {"run", "events", *BESIDE}:
            raise damage(path, f"seals are there for {', '.join(map(str, seals)) or 'nothing'}")
        if seals["run"] != root_of(db):
            raise damage(path, "the description of the run (table run) is not as written")
    except (*UNREADABLE, TypeError) as error:
        raise unread(path, "table seals or run cannot be read", error) from error
    return seals


def checked_rows(
    db: sqlite3.Connection, path: Path, table: str, more: str = "", values: Any = (), left_out: bool = False
) -> Iterator[Any]:
    """Yield rows of a table beside the chain, the checksum last: each begins a chain of its own.

    One that is not as written is refused, or else left out.
    """
    found = 0
    try:
        for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table} {more}", values):
            if linked(0, (table, *row[:-1])) == row[-1]:
                yield row
            elif not left_out:
                raise damage(path, f"{table}, row {row[0]!r}, is not as written")
            found += 1
    except (*UNREADABLE, OverflowError) as error:
        if not left_out:
            raise unread(path, f"{table} cannot be read after {found} rows", error) from error


def check_beside(db: sqlite3.Connection, path: Path, table: str, seal: Seal) -> None:
    """Compare a whole table beside the chain with its seal."""
    found = Seal(0, 0)
    for row in checked_rows(db, path, table):
        found = found.with_row(row[-1])
    if found != seal:
        raise damage(path, f"{table} must have the {seal.rows} rows that were written, and has {found.rows} or others")


def check_end(path: Path, word: tuple[int, bool], events: int) -> None:
    """Refuse a journal that has lost its end since the system started; if it may have gone down, warn.

    Raises
    ------
    JournalError
        The last owner had committed more events than there are.
    """
    committed, up = word
    if committed <= events:
        return
    lost = f"it ends after event {events}, and event {committed} had been committed"
    if up:
        what = f"{lost}: its log ({path}-wal) is damaged, cut short or gone"
        error = JournalError(
            f"{path} is damaged: {what}. If you have put an older copy there to go on with, or want to go on without "
            f"these events, remove {path}-lock"
        )
        error.what = what
        raise error
    log.warning("%s: %s: the last transactions are lost, as when the power fails", path, lost)


# ------------------------------------------------------------------------------- the chain


class Unread(NamedTuple):
    """What stands where a row should be that cannot be read."""

    what: str
    error: Exception


def _rows(db: sqlite3.Connection, table: str, after: int) -> Iterator[Any]:
    """Yield rows of a table of the chain, or at last what kept the next one from being read."""
    key = KEYS[table]
    statement = f"SELECT {COLUMNS[table]} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {PIECE}"
    while True:
        piece: list[Any] = []
        failure: Unread | None = None
        try:
            for row in db.execute(statement, (after,)):
                if row[0] <= after:
                    raise TypeError("rows are not in their order")
                after = row[0]
                piece.append(row)
        except (*UNREADABLE, TypeError) as error:
            failure = Unread(f"{table} cannot be read after {key} {after}", error)
        yield from piece
        if failure is not None:
            yield failure
        if len(piece) < PIECE:
            return


class Walk:
    """Reads events in their order, each compared with its checksum; `place` is after the last that was whole.

    Parameters
    ----------
    db : sqlite3.Connection
    path : Path
        For messages.
    start : ChainPlace
    until : int, optional
        The number of the last event that must be there. None: whatever is there, as far as it is whole.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, start: ChainPlace, until: int | None = None) -> None:
        self._db, self._path, self._until = db, path, until
        self.place = start

    def __iter__(self) -> Iterator[QuestionRow | AnswerRow]:
        start = self.place
        tables = list(KEYS)
        rows = [
            _rows(self._db, *one) for one in zip(tables, (start.events, start.answered, start.expired), strict=True)
        ]
        heads = [next(one, None) for one in rows]
        event, done = start.events + 1, [start.asked, start.answered, start.expired]
        checksum = start.checksum
        while self._until is None or event <= self._until:
            which = self._which(heads, event)
            if which is None:
                return
            row: Any = heads[which]
            table = tables[which]
            done[which] += 1
            found = self._checked(table, row, checksum, event, done[which])
            checksum = row[-1]
            self.place = ChainPlace(done[0], done[1], done[2], checksum)
            yield found
            heads[which] = next(rows[which], None)
            event += 1

    def _which(self, heads: list[Any], event: int) -> int | None:
        """Return the number of the table whose next row is an event; None at the end of all."""
        for which, head in enumerate(heads):
            if head is not None and not isinstance(head, Unread) and head[min(which, 1)] == event:
                return which
        for head in heads:
            if isinstance(head, Unread):
                raise unread(self._path, head.what, head.error, self.place) from head.error
        if self._until is None and all(head is None for head in heads):
            return None
        raise damage(self._path, f"event {event} is missing from questions, answers and expired", self.place)

    def _checked(self, table: str, row: Any, before: int, event: int, number: int) -> QuestionRow | AnswerRow:
        kind: type[QuestionRow | AnswerRow] = QuestionRow if table == "questions" else AnswerRow
        try:
            found = kind.read(table, row)
            if (table == "questions" or row[0] == number) and found.checksum(before) == row[-1]:
                return found
        except TypeError:  # a value that is not even bytes
            pass
        raise damage(self._path, f"{table}, {KEYS[table]} {row[0]} (event {event}), is not as written", self.place)


def checksum_at(db: sqlite3.Connection, path: Path, event: int, answered: int) -> int | None:
    """Return the checksum of an event by which so many answers had been learned; None if there is no such event."""

    def expiry(number: int) -> int:
        return int(db.execute("SELECT event FROM expired WHERE number = ?", (number,)).fetchone()[0])

    try:
        if event == 0:
            return root_of(db).checksum
        (expired,) = db.execute("SELECT ifnull(max(number), 0) FROM expired").fetchone()
        for statement, keys in (
            ("SELECT checksum FROM questions WHERE event = ?", (event,)),
            ("SELECT checksum FROM answers WHERE event = ? AND step = ?", (event, answered)),
            ("SELECT checksum FROM expired WHERE event = ? AND number = ?", None),
        ):
            if keys is None:  # events grow with the numbers of expiries
                keys = event, 1 + bisect_left(range(1, expired + 1), event, key=expiry)
            row = db.execute(statement, keys).fetchone()
            if row is not None:
                return int(row[0])
    except (*UNREADABLE, TypeError, OverflowError) as error:
        raise unread(path, f"event {event} cannot be read", error) from error
    return None


def whole(db: sqlite3.Connection, path: Path, pages: bool = False) -> Iterator[QuestionRow | AnswerRow]:
    """Yield all events up to now, and compare everything in the journal with its checksums on the way.

    A run may go on meanwhile. With `pages` SQLite checks the structure of the file as well, and its indices.

    Raises
    ------
    JournalError
        Something is not as written; all events that were yielded before are.
    """
    within = db.in_transaction
    word = files.last_word(path, str(read_header(db, path).get("token")))  # before the snapshot: a run may go on
    try:
        if not within:
            db.execute("BEGIN")
        try:
            seals = read_seals(db, path)
            check_end(path, word, seals["events"].rows)
            for table in BESIDE:
                check_beside(db, path, table, seals[table])
            counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in KEYS]
        finally:
            if not within and db.in_transaction:
                db.execute("COMMIT")
    except UNREADABLE as error:
        raise unread(path, "it cannot be read", error) from error
    walk = Walk(db, path, ChainPlace(0, 0, 0, seals["run"].checksum), seals["events"].rows)
    yield from walk
    place = walk.place
    for table, count, number in zip(KEYS, counts, place[:3], strict=True):
        if count != number:
            raise damage(path, f"{table} has {count} rows, of which {number} were written", place)
    if place.checksum != seals["events"].checksum:
        raise damage(path, f"the last checksum (table seals) is not that of event {place.events}", place)
    if not pages:
        return
    try:
        found = db.execute("PRAGMA integrity_check(1)").fetchone()
    except UNREADABLE as error:
        raise unread(path, "its structure cannot be checked", error, place) from error
    if found != ("ok",):
        raise damage(path, f"its structure is not whole: {' '.join(str(found[0]).split())}", place)
