"""The journal of a run: an SQLite file that survives the death of its process, and that others may read."""

from __future__ import annotations

import glob
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from venn.monitors.alarms import Alarm
from venn.online import checkpoint, lock
from venn.online.journal_file import (
    APPLICATION,
    FORMAT,
    SCHEMA,
    UNREADABLE,
    VERSION,
    checksum,
    read_header,
    schema_of,
    wanted_schema,
)
from venn.online.journal_file import JournalError as JournalError

COLUMNS = "event, id, step, x, predictions, time, checksum"
KEPT = 2  # checkpoints
LARGEST_LOG = 1 << 26  # bytes that the log keeps when no reader needs more
LARGEST = 2**63 - 1  # largest integer that SQLite holds


class Question(NamedTuple):
    """What was asked."""

    event: int
    id: int | str
    step: int  #: number of answers learned before
    x: bytes
    predictions: bytes
    time: float

    @property
    def checksum(self) -> int:
        """The checksum that the journal keeps beside it."""
        return checksum(self.event, self.id, self.step, self.time, contents=(self.x, self.predictions))


class Answer(NamedTuple):
    """What was revealed; None as truth means that the question expired."""

    event: int
    question: int
    truth: Any  #: code of the label
    time: float

    @property
    def checksum(self) -> int:
        """The checksum that the journal keeps beside it."""
        return checksum(*self)


class Found(NamedTuple):
    """A question found by its id."""

    x: bytes
    truth: Any  #: code of the label that came
    expired: bool


Event = TypeVar("Event", Question, Answer)


class Journal:
    """The journal of one `Online` run.

    What is committed survives the death of the process at any moment. If the operating system or the power fails, the
    last transactions may be lost as a whole, unless `durable`; the file is never half written. Viewers read it during
    the run (`Watch`), and never disturb it.

    Parameters
    ----------
    path : str or path
        Of the SQLite file, made if there is none; beside it lie its log (``-wal``, ``-shm``), a lock (``-lock``) and
        two checkpoints (``-state-...``). Missing folders are made.
    durable : bool, default False
        Let every transaction reach the disk before it counts (synchronous = FULL): much slower, but safe from loss of
        power.
    every : int >= 1, default 1000
        Least number of events between two checkpoints; about as many are learned again after a restart.
    share : float in (0, 1], default 0.05
        Largest share of the time spent on checkpoints: large states are written less often.

    Raises
    ------
    JournalError
        By every method: the file cannot be opened or written, another process has it, it is no journal, or one of
        another version.
    TypeError, ValueError
        A parameter is not as described.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durable: bool = False, every: int = 1000, share: float = 0.05
    ) -> None:
        if not isinstance(durable, bool):
            raise TypeError(f"durable must be True or False, got {durable!r}")
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"every must be an integer >= 1, got {every!r}")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ValueError(f"share must be a number in (0, 1], got {share!r}")
        self.path = Path(path)
        self._file = Path(os.path.realpath(path))  # one name per file, for its lock and its checkpoints
        self.share = float(share)
        self.durable = durable
        self.every = every
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._inode: int | None = None
        self._depth = 0
        self.token = ""  # of the run
        self._kept, self._kept_at, self._cost = 0, 0.0, 0.0  # event, time and cost of the last checkpoint

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, durable={self.durable}, every={self.every}, share={self.share})"

    # ------------------------------------------------------------------ opening

    def open(self, header: Mapping[str, Any]) -> bool:
        """Open the file for a run described by `header`, or make it; return whether there was a run.

        Raises
        ------
        JournalError
            As said above, or the run in the file has another header: the message names the first difference.
        """
        if self._db is not None or self._lock is not None:
            raise JournalError(f"{self.path} must be opened once, and this object has it open")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = lock.take(f"{self._file}-lock")
            except BlockingIOError:
                raise JournalError(f"{self.path} must belong to one process, and another one has it open") from None
            for file in self._file.parent.glob(f".{glob.escape(self._file.name)}-state-*.tmp"):
                file.unlink(missing_ok=True)  # left by a process that died while writing it
            if self._file.exists() and not os.access(self._file, os.W_OK):
                raise JournalError(f"{self.path} must be writable, and is read-only")
            db = self._db = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=30)
            new = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not new:
                self._compare(header)  # before anything is written
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
            db.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
            self._inode = os.stat(self._file).st_ino
            if new:
                self._make(header)
            return not new
        except UNREADABLE as error:
            self.close()
            raise JournalError(f"{self.path} cannot be opened as a journal: {error}") from error
        except OSError as error:
            self.close()
            raise JournalError(f"{self.path} cannot be opened as a journal: {error.strerror or error}") from error
        except JournalError:
            self.close()
            raise

    def _make(self, header: Mapping[str, Any]) -> None:
        for file in self._states():
            file.unlink(missing_ok=True)  # left by a run that no longer exists
        self.token = secrets.token_hex(8)
        entries = {"format": FORMAT, "version": VERSION, "token": self.token, **header}
        self.begin()
        for statement in SCHEMA.split(";"):
            self._run(statement)
        self._run(f"PRAGMA application_id = {APPLICATION}")
        for key, value in entries.items():
            self._run("INSERT INTO run VALUES (?, ?)", (key, json.dumps(value, allow_nan=False)))
        self.commit()

    def _compare(self, header: Mapping[str, Any]) -> None:
        found = read_header(self.connection, self.path)
        if schema_of(self.connection) != wanted_schema():
            raise JournalError(f"{self.path} must have the tables of a journal and nothing else")
        self.token = str(found.get("token"))
        for key, value in header.items():
            if key == "created" or found.get(key) == json.loads(json.dumps(value)):
                continue
            if key == "start":
                raise JournalError(
                    f"{self.path} must hold a run that started from the same state: give the predictor as the first "
                    "process made it, with what it had learned then and no more"
                )
            raise JournalError(
                f"{self.path} must hold a run with the same {key}, got {found.get(key)!r} there and {value!r} here"
            )

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database."""
        if self._db is None:
            raise JournalError(f"{self.path} is closed")
        return self._db

    def close(self) -> None:
        """Close the file and release the lock; what is committed stays."""
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            os.close(self._lock)
        self._db = self._lock = None
        self._depth = 0

    # ------------------------------------------------------------------ writing
    # A single statement outside a transaction is a transaction by itself.

    def _check_there(self) -> None:
        """Refuse to write into a file that nobody will find: SQLite would continue as if nothing were wrong."""
        try:
            there = self._depth > 0 or os.stat(self._file).st_ino == self._inode
        except FileNotFoundError:
            there = False
        if not there:
            raise JournalError(
                f"{self.path} must stay where it is while its run goes on, and was deleted, moved or replaced: nothing "
                "more is written"
            )

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self.connection.execute(statement, values)
        except sqlite3.Error as error:
            raise JournalError(f"{self.path} cannot be written: {error}") from error

    @property
    def within(self) -> bool:
        """Whether a transaction is open."""
        return self._depth > 0

    def begin(self) -> None:
        """Open a transaction, or enter one level deeper into the open one."""
        self._check_there()
        self._depth += 1  # first: an interrupt may come right after the statement
        if self._depth == 1:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._depth = 0
                raise JournalError(f"{self.path} cannot be written: {error}") from error

    def commit(self) -> None:
        """End a level; at the outermost level everything since `begin` counts, or this raises and nothing does."""
        if self._depth == 1:
            self._run("COMMIT")
        self._depth -= 1

    def rollback(self) -> None:
        """Take back everything since the outermost `begin`."""
        self._depth = 0
        if self._db is not None and self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def __enter__(self) -> Journal:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError) and self._depth > 1:
            self._depth -= 1  # refused, nothing written: earlier writes stay
            return
        if error is not None:
            self.rollback()
            return
        try:
            self.commit()
        except JournalError:
            self.rollback()
            raise

    def ask(self, question: Question) -> None:
        """Write a question; if its id is known, raise ValueError and write nothing."""
        self._check_there()
        try:
            self.connection.execute(
                "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?)",
                (question.event, question.id, question.time, question.step, question.x, question.predictions,
                 question.checksum),
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            if "questions.id" not in str(error):
                raise JournalError(f"{self.path} cannot be written: {error}") from error
            raise ValueError(
                f"id must be a new one, got {question.id!r}, which was asked before; after a restart "
                "follow(events, again=True) passes over what the journal holds"
            ) from None
        except sqlite3.Error as error:
            raise JournalError(f"{self.path} cannot be written: {error}") from error

    def answer(self, step: int, event: int, question: int, time: float, truth: Any) -> None:
        """Write the answer to a question."""
        self._check_there()
        self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                  (step, event, question, time, truth, Answer(event, question, truth, time).checksum))  # fmt: skip

    def expire(self, number: int, event: int, question: int, time: float) -> None:
        """Write that a question has expired."""
        self._check_there()
        self._run("INSERT INTO expired VALUES (?, ?, ?, ?, ?)",
                  (number, event, question, time, Answer(event, question, None, time).checksum))  # fmt: skip

    def ring(self, predictor: str, number: int, step: int, time: float, alarm: Alarm) -> None:
        """Write an alarm; the same one again changes nothing."""
        text = json.dumps(vars(alarm))
        self._run("INSERT OR IGNORE INTO alarms VALUES (?, ?, ?, ?, ?)", (predictor, number, step, time, text))

    def draw(self, step: int, time: float, figures: Any) -> None:
        """Write a point of the curves; the same one again changes nothing."""
        self._run("INSERT OR IGNORE INTO series VALUES (?, ?, ?)", (step, time, json.dumps(figures)))

    def show(self, predictor: str, step: int, time: float, snapshot: Any) -> None:
        """Write the current snapshot of a predictor."""
        self._run("INSERT OR REPLACE INTO latest VALUES (?, ?, ?, ?)", (predictor, step, time, json.dumps(snapshot)))

    def reach(self, source: str, position: Any) -> None:
        """Write how far a source has been read."""
        self._run("INSERT OR REPLACE INTO positions VALUES (?, ?)", (source, json.dumps(position)))

    def sync(self) -> None:
        """Let all that is committed reach the disk."""
        self._run("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    # -------------------------------------------------------------- checkpoints

    def due(self, event: int, times: int = 1) -> bool:
        """Whether a checkpoint is due: at least `times` times `every` events after the last one; 0: any number."""
        passed = event - self._kept
        if passed == 0 or passed < times * self.every:
            return False
        return times == 0 or (time.monotonic() - self._kept_at + self._cost) * self.share >= self._cost

    def keep(self, event: int, state: Any) -> None:
        """Write the checkpoint of the state after an event, and forget all but the last two."""
        start = time.monotonic()
        self.kept(event)  # after a failure the next attempt comes when the next one is due
        self.sync()
        checkpoint.save(self._file.with_name(f"{self._file.name}-state-{event:012d}"), state)
        for old in self._states()[KEPT:]:
            old.unlink(missing_ok=True)
        self.kept(event)
        self._cost = self._kept_at - start

    def kept(self, event: int) -> None:
        """Count from here to the next checkpoint."""
        self._kept, self._kept_at = event, time.monotonic()

    def states(self, models: Sequence[Any]) -> Iterator[tuple[Callable[[], Any], Callable[[], None]]]:
        """Yield for each checkpoint, newest first, a function that reads it and one that drops it.

        `models` are the user's own models, which it does not hold.
        """
        for file in self._states():
            yield partial(checkpoint.load, file, models), partial(file.unlink, missing_ok=True)

    def _states(self) -> list[Path]:
        name = f"{glob.escape(self._file.name)}-state-{'[0-9]' * 12}"
        return sorted(self._file.parent.glob(name), reverse=True)

    # ------------------------------------------------------------------ reading

    def position(self, source: str) -> Any:
        """Return how far a source has been read; None before the start."""
        row = self._run("SELECT position FROM positions WHERE source = ?", (source,)).fetchone()
        return None if row is None else json.loads(row[0])

    def last_event(self) -> int:
        """Return the number of the last event; 0 before the first."""
        tops = (
            self._run(f"SELECT event FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
            for table in ("questions", "answers", "expired")
        )
        return max(0 if top is None else top[0] for top in tops)

    def time_of(self, event: int) -> float | None:
        """Return when an event happened; None if it did not."""
        for table in ("questions", "answers", "expired"):
            # In answers and expiries event numbers grow with the rows, and mostly the latest are looked for.
            order = "event" if table == "questions" else "rowid"
            for found, when in self._run(f"SELECT event, time FROM {table} ORDER BY {order} DESC"):
                if found == event:
                    return float(when)
                if found < event:
                    break
        return None

    def question(self, event: int) -> Question:
        """Return the question with this event number."""
        row = self._run(f"SELECT {COLUMNS} FROM questions WHERE event = ?", (event,)).fetchone()
        if row is None:
            raise JournalError(f"{self.path} must hold the question of event {event}, and does not")
        return self._as_written(Question, row)

    def _as_written(self, kind: type[Event], row: tuple[Any, ...]) -> Event:
        """Return a row without its checksum, or raise if it is not what was written."""
        found = kind._make(row[:-1])
        try:
            alike = found.checksum == row[-1]
        except TypeError:  # a value that is not even bytes
            alike = False
        if not alike:
            raise JournalError(f"{self.path} is damaged: the {kind.__name__.lower()} of event {row[0]} has changed")
        return found

    def after(self, event: int, step: int, number: int) -> Iterator[Question | Answer]:
        """Yield what happened after an event, in order; `step` answers and `number` expiries came before it."""
        questions = map(partial(self._as_written, Question), self._run(
            f"SELECT {COLUMNS} FROM questions WHERE event > ? ORDER BY event", (event,)
        ))  # fmt: skip
        answers = map(partial(self._as_written, Answer), self._run(
            "SELECT event, question, truth, time, checksum FROM answers WHERE step > ? UNION ALL"
            " SELECT event, question, NULL, time, checksum FROM expired WHERE number > ? ORDER BY event", (step, number)
        ))  # fmt: skip
        question, answer = next(questions, None), next(answers, None)
        while question is not None or answer is not None:
            if answer is None or (question is not None and question.event < answer.event):
                assert question is not None
                yield question
                question = next(questions, None)
            else:
                yield answer
                answer = next(answers, None)

    def knows(self, id: int | str) -> bool:
        """Whether a question of this id was asked."""
        return self._run("SELECT 1 FROM questions WHERE id = ?", (id,)).fetchone() is not None

    def found(self, id: int | str) -> Found | None:
        """Return the question with this id and its outcome; None if there is none."""
        row = self._run(
            "SELECT x, (SELECT truth FROM answers WHERE question = q.event),"
            " EXISTS (SELECT 1 FROM expired WHERE question = q.event) FROM questions q WHERE id = ?", (id,)
        ).fetchone()  # fmt: skip
        return None if row is None else Found(row[0], row[1], bool(row[2]))

    def status_of(self, id: int | str) -> str:
        """Return "pending", "answered", "expired" or "unknown"."""
        found = self.found(id)
        if found is None:
            return "unknown"
        return "expired" if found.expired else "pending" if found.truth is None else "answered"


def checked_id(id: Any) -> int | str:
    """Return an id as the journal keeps it, or say what is wrong with it."""
    if isinstance(id, np.integer):
        id = int(id)
    if isinstance(id, bool) or not isinstance(id, int | str):
        raise TypeError(f"id must be an int or a str, got {id!r}")
    if isinstance(id, int):
        if not -LARGEST <= id <= LARGEST:
            raise ValueError(f"id must be an int of at most 64 bits or a str, got {id!r}")
        return int(id)
    try:
        id.encode()
    except UnicodeEncodeError:
        raise ValueError(f"id must be text that UTF-8 can write, got {id!r}") from None
    return str(id)
