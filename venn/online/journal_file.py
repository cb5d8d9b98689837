"""The tables of a journal, and how a file is recognised as one."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

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
