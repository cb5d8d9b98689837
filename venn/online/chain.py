"""The rows of a journal: its tables, how they are read in the order of events, and what is damaged in them.

Questions, answers and expiries are numbered in one row, as they happened, so that late labels are nothing special and a
row that is missing leaves a gap. Each row of each table has a checksum of its columns and of the run's token: a row
that was changed, exchanged, or is another run's is noticed. Transactions, the log and the structure of the file are
SQLite's.

There is no key: this shows accidents, and not who computes checksums again. Nor does it show that somebody has deleted
the last rows.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
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
from venn.prediction import Prediction
from venn.predictors.blocks import BLOCKS, block_of

# --------------------------------------------------------------------------------------------------------- journal file
# The tables of a journal, and how a file is recognised as one.

FORMAT, VERSION = "vennstream.journal", 5
# What sqlite3 raises for a damaged file: the second if its message quotes bytes that are not text.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
LARGEST_SQLITE = 2**63 - 1  # largest integer that SQLite holds
APPLICATION = 0x76656E6E  # SQLite's mark of the application that owns a file

# `event` numbers questions, answers and expiries in the order in which they happened, `step` the answers. Who adds a
# column adds it to COLUMNS below, and to `QuestionRow` or `AnswerRow` if it is one of an event.
SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
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
        There is no such file, it is a folder, or it cannot be opened.
    """
    if path.is_dir():
        raise JournalError(f"{path} must be a journal, a file, got a folder")
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
            "go on with the program that wrote it (vennstream 0.3 writes version 4); or let its `venn export` write "
            "what the journal holds, and begin a new journal with that"
        )
    try:
        for key, value, checksum in db.execute("SELECT key, value, checksum FROM run"):
            if row_checksum(header.get("token"), ("run", key, value)) != checksum:
                what = f"the description of the run (table run, {key!r}) is not as written"
                refusal = JournalError(f"{path} is damaged: {what}: nothing of it can be saved, take the backup")
                refusal.what = what
                raise refusal
    except UNREADABLE as error:
        raise unread(path, "table run cannot be read", error) from error
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
    if type(x) is np.ndarray and x.dtype == NUMBER:
        return np.array(x)
    if is_sparse(x):
        return clean_sparse("x", x, None).tocsr()
    named = named_object(x)
    return np.array(one_row(x), NUMBER) if named is None else named


def encode_object(x: Any) -> bytes:
    """Return the bytes of an object that `copy_object` has made."""
    if type(x) is np.ndarray:
        return np.asarray(x, NUMBER).tobytes()
    if isinstance(x, dict | list):
        return object_bytes(x)
    return clean_sparse("x", x, None).tobytes()


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


def encode_many(blocks: Mapping[str, Any]) -> list[bytes]:
    """Return what `encode` returns of each object, of blocks of predictions for classes, by name.

    Raises
    ------
    TypeError
        One is of another kind.
    """
    columns: list[list[bytes]] = []
    for name, block in blocks.items():
        kind = kind_of(block[0], name)
        before, n = bytes([ALL.index(kind)]), len(block)
        if type(block) in BLOCKS.values():
            before += kind.beside.pack(*kind.known(block[0]))
            content = np.ascontiguousarray(getattr(block, block.numbers), kind.arrays[0][1]).tobytes()
            size = len(content) // n
            columns.append([before + content[at : at + size] for at in range(0, len(content), size)])
        else:
            columns.append([before + kind.encode(block[i]) for i in range(n)])
    return [b"".join(parts) for parts in zip(*columns, strict=True)]


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


def decode_many(contents: Sequence[bytes], names: Sequence[str], space: LabelSpace) -> list[dict[str, Prediction]]:
    """Return what `decode` returns of each; of predictions for classes that are alike, much faster.

    Raises
    ------
    ValueError
        As by `decode`.
    """
    if len({len(one) for one in contents}) == 1:
        known, columns, start = decode(contents[0], names, space), list[list[Any]](), 0
        table = np.frombuffer(b"".join(contents), np.uint8).reshape(len(contents), -1)
        for name, first in known.items():
            kind, block = kind_of(first, name), block_of([first])
            before = start + 1 + kind.beside.size
            end = start + 1 + len(kind.encode(first))
            # What a block does not hold of its predictions, or holds once, must be as in the first.
            if type(block) not in BLOCKS.values() or vars(block[0]).keys() != vars(first).keys():
                break
            if kind.encode(block[0]) != kind.encode(first) or (table[:, start:before] != table[0, start:before]).any():
                break
            numbers = np.ascontiguousarray(table[:, before:end]).view(kind.arrays[0][1])
            columns.append(block.of_rows(lambda _, to=(-1, *block.rows.shape[1:]), of=numbers: of.reshape(to)).each())
            start = end
        if len(columns) == len(names):
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [decode(one, names, space) for one in contents]


# --------------------------------------------------------------------------------------------------------------- events

PIECE = 1000  # rows that are read at a time: a reader who stays in one transaction makes the writer's log grow
FEATURES = "features of "  # and the name of a source, beside the positions of sources: names of its objects' values
BESIDE = ("alarms", "series", "latest", "positions")  # tables beside the events
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
KEYS = {"questions": "event", "answers": "step", "expired": "number"}


def row_checksum(token: Any, values: Iterable[Any], contents: Sequence[bytes] = ()) -> int:
    """Return the checksum of a row of the run with a token, 64 bits with a sign, by its values and contents.

    Raises
    ------
    TypeError
        A content is not even bytes.
    """
    digest = blake2b(repr((token, *values, *map(len, contents))).encode(), digest_size=8)
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

    def checksum(self, token: str) -> int:
        """Return the checksum that the journal of a run keeps beside it."""
        return row_checksum(token, ("question", self.event, self.id, self.step, self.time), (self.x, self.predictions))

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

    def checksum(self, token: str) -> int:
        """Return the checksum that the journal of a run keeps beside it."""
        return row_checksum(token, ("expiry" if self.truth is None else "answer", *self))

    @classmethod
    def read(cls, table: str, row: Sequence[Any]) -> AnswerRow:
        """Return the answer or the expiry of a row."""
        number, event, question, truth, time = row[:5]
        if (truth is None) != (table == "expired"):
            raise TypeError("an answer must have a truth")
        return cls(event, number, question, truth, time)


class JournalPlace(NamedTuple):
    """Where reading stands among the events."""

    asked: int
    answered: int
    expired: int

    @property
    def events(self) -> int:
        """Number of events."""
        return self.asked + self.answered + self.expired


BEGINNING = JournalPlace(0, 0, 0)


def damage(path: Path, what: str, place: JournalPlace | None = None) -> JournalError:
    """Return the error that says what is wrong with a journal, and what of it is whole."""
    some = "" if place is None else f", up to {place.asked} questions and {place.answered} answers"
    salvage = f"`venn salvage {in_shell(str(path))} RESCUED`"
    error = JournalError(f"{path} is damaged: {what}. {salvage} writes what is whole to a new journal{some}")
    error.what = what
    return error


def unread(path: Path, what: str, error: Exception, place: JournalPlace | None = None) -> JournalError:
    """Return the error that says that a part of a journal cannot be read, and whether that is damage."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING or isinstance(error, OverflowError):
        return JournalError(f"{path} cannot be read: {error}")
    return damage(path, f"{what}: {error}", place)


def checked_rows(
    db: sqlite3.Connection, path: Path, token: Any, table: str, more: str = "", values: Any = (),
    left_out: bool = False,
) -> Iterator[Any]:  # fmt: skip
    """Yield rows of a table beside the events, the checksum last; one that is not as written is refused or left out."""
    found = 0
    try:
        for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table} {more}", values):
            if row_checksum(token, (table, *row[:-1])) == row[-1]:
                yield row
            elif not left_out:
                raise damage(path, f"{table}, row {row[0]!r}, is not as written")
            found += 1
    except (*UNREADABLE, OverflowError) as error:
        if not left_out:
            raise unread(path, f"{table} cannot be read after {found} rows", error) from error


class Unread(NamedTuple):
    """What stands where a row should be that cannot be read."""

    what: str
    error: Exception


def _rows(db: sqlite3.Connection, table: str, after: int) -> Iterator[Any]:
    """Yield rows of a table of events, or at last what kept the next one from being read."""
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
    """Reads the events of a run in their order, each compared with its checksum; `place` is after the last whole one.

    Parameters
    ----------
    db : sqlite3.Connection
    path : Path
        For messages.
    token : str
        Of the run.
    start : JournalPlace
    until : int, optional
        The number of the last event that must be there. None: whatever is there, as far as it is whole.
    """

    def __init__(
        self, db: sqlite3.Connection, path: Path, token: Any, start: JournalPlace = BEGINNING, until: int | None = None
    ) -> None:
        self._db, self._path, self._token, self._until = db, path, token, until
        self.place = start

    def __iter__(self) -> Iterator[QuestionRow | AnswerRow]:
        start, tables = self.place, list(KEYS)
        after = start.events, start.answered, start.expired
        rows = [_rows(self._db, table, done) for table, done in zip(tables, after, strict=True)]
        heads, done = [next(one, None) for one in rows], list(start)
        while self._until is None or self.place.events < self._until:
            which = self._which(heads, self.place.events + 1)
            if which is None:
                return
            done[which] += 1
            found = self._checked(tables[which], heads[which], done[which])
            self.place = JournalPlace(*done)
            yield found
            heads[which] = next(rows[which], None)

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

    def _checked(self, table: str, row: Any, number: int) -> QuestionRow | AnswerRow:
        kind: type[QuestionRow | AnswerRow] = QuestionRow if table == "questions" else AnswerRow
        try:
            found = kind.read(table, row)
            if (table == "questions" or row[0] == number) and found.checksum(self._token) == row[-1]:
                return found
        except TypeError:  # a value that is not even bytes
            pass
        event = self.place.events + 1
        raise damage(self._path, f"{table}, {KEYS[table]} {row[0]} (event {event}), is not as written", self.place)


def last_event(db: sqlite3.Connection, path: Path) -> tuple[int, int]:
    """Return the number of the last event and its checksum; zeros where there is none."""
    last = (0, 0)
    for table, key in KEYS.items():
        try:
            end = db.execute(f"SELECT event, checksum FROM {table} ORDER BY {key} DESC LIMIT 1").fetchone()
            last = max(last, (0, 0) if end is None else (int(end[0]), int(end[1])))
        except (*UNREADABLE, TypeError, ValueError) as error:
            raise unread(path, f"the last row of {table} cannot be read", error) from error
    return last


def checksum_at(db: sqlite3.Connection, path: Path, place: JournalPlace) -> int | None:
    """Return the checksum of the last event before a place; None if there is no such event."""
    if not place.events:
        return 0
    numbers = {"event": place.events, "answered": place.answered, "expired": place.expired}
    try:
        row = db.execute(
            "SELECT checksum FROM questions WHERE event = :event UNION ALL"
            " SELECT checksum FROM answers WHERE step = :answered AND event = :event UNION ALL"
            " SELECT checksum FROM expired WHERE number = :expired AND event = :event", numbers
        ).fetchone()  # fmt: skip
    except (*UNREADABLE, OverflowError) as error:
        raise unread(path, f"event {place.events} cannot be read", error) from error
    return None if row is None else int(row[0])


def whole(db: sqlite3.Connection, path: Path, pages: bool = False) -> Iterator[QuestionRow | AnswerRow]:
    """Yield all events up to now, and compare everything in the journal with its checksums on the way.

    A run may go on meanwhile. With `pages` SQLite checks the structure of the file as well, and its indices.

    Raises
    ------
    JournalError
        Something is not as written; all events that were yielded before are.
    """
    token = read_header(db, path).get("token")
    for table in BESIDE:
        for _ in checked_rows(db, path, token, table):
            pass
    try:
        (events,) = db.execute(
            "SELECT (SELECT count(*) FROM questions) + (SELECT count(*) FROM answers) + (SELECT count(*) FROM expired)"
        ).fetchone()
    except UNREADABLE as error:
        raise unread(path, "it cannot be read", error) from error
    walk = Walk(db, path, token, until=events)
    yield from walk
    if not pages:
        return
    try:
        found = db.execute("PRAGMA integrity_check(1)").fetchone()
    except UNREADABLE as error:
        raise unread(path, "its structure cannot be checked", error, walk.place) from error
    if found != ("ok",):
        raise damage(path, f"its structure is not whole: {' '.join(str(found[0]).split())}", walk.place)
