"""The journal of a run: an SQLite file that survives the death of its process, and that others may read."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from venn.monitors.alarms import Alarm
from venn.online import chain, files
from venn.online.chain import (
    APPLICATION,
    FORMAT,
    LARGEST_SQLITE,
    SCHEMA,
    UNREADABLE,
    VERSION,
    JournalPlace,
    check_tables,
    read_header,
)
from venn.online.chain import AnswerRow as AnswerRow
from venn.online.chain import JournalError as JournalError
from venn.online.chain import QuestionRow as QuestionRow
from venn.online.checkpoint_writer import CheckpointWriter
from venn.parameters import flag, integer, path_of

LARGEST_LOG = 1 << 26  # bytes that the log keeps when no reader needs more
DESCRIBED = "predictors", "monitors", "start", "packing"  # of a header: in the words of one version
OF_SCORER = "predictors", "start"  # of a header: what changes with a given scorer
ANEW = "venn calibrated anew"  # beside the positions of sources
TOLD = "venn told of changes"  # the same: up to which event
HOW = (
    "If the fitted model is another one on purpose, Online(..., new_scorer=True) begins calibration anew with it, "
    "in the same journal"
)
SOME = 500  # values that a statement names, at most
FIGURES = msgspec.json.Encoder(enc_hook=float)  # a fourteenth of the time of `json`; what is not finite becomes null
REPLACING = ("latest", "positions")  # tables beside the events with one row for a key


class Anew(NamedTuple):
    """Where calibration began anew with another scorer."""

    events: int  #: of the run so far
    answered: int
    header: dict[str, Any]  #: what describes the predictors since then
    alarms: dict[str, int]  #: numbers of those before, by name


class Found(NamedTuple):
    """A question found by its id."""

    x: bytes
    truth: Any  #: code of the label that came
    expired: bool
    event: int = 0


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
    largest : int >= 0, default 2**30
        Bytes of the largest state that is written while the run goes on: it is copied in memory first. A larger one is
        written at the end of the run only, and after a kill more is learned again.

    Raises
    ------
    JournalError
        By every method: the file cannot be opened or written, another process has it, it is no journal, or one of
        another version.
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import tempfile, venn
    >>> from pathlib import Path
    >>> def loop(folder):
    ...     model = venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, (0, 1)))
    ...     return venn.Online(model, journal=Journal(Path(folder, "run.db")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with loop(folder) as online:
    ...         said = online.ask([0.5], id="first")
    ...     with loop(folder) as online:  # as after a kill: it goes on where it was
    ...         alarms = online.answer("first", 1)
    ...         print(online)
    Online(Conformal: 1 asked, 1 answered, 0 pending)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durable: bool = False,
        every: int = 1000,
        share: float = 0.05,
        largest: int = 1 << 30,
    ) -> None:
        self.durable, self.every = flag("durable", durable), integer("every", every, 1)
        self.largest = integer("largest", largest, 0)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ValueError(f"share must be a number in (0, 1], got {share!r}")
        self.path = path_of("path", path)
        self._file = Path(os.path.realpath(path))  # one name per file, for its lock and its checkpoints
        self.share = float(share)
        self.checkpoints = CheckpointWriter(self._file, self.every, self.share, self.largest)
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._owned: files.Owned | None = None
        self._inode: int | None = None
        self._depth = 0
        self.token = ""  # of the run
        self.other = False  # whether it was opened for predictors that are not those of its run
        self._last = self._committed = (0, 0)  # number and checksum of the last event: now, and of the last transaction

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, durable={self.durable}, every={self.every}, share={self.share})"

    # ------------------------------------------------------------------ opening

    def open(self, header: Mapping[str, Any], *, new_scorer: bool | None = None) -> bool:
        """Open the file for a run described by `header`, or make it; return whether there was a run.

        With a given scorer `new_scorer` is a bool: whether predictors may be others than before.

        Raises
        ------
        JournalError
            As said above, or the run in the file has another header: the message names the first difference.
        """
        if self._db is not None or self._lock is not None:
            raise JournalError(f"{self.path} must be opened once, and this object has it open")
        try:
            self._own()
            self.checkpoints.clear()
            db = self._db = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=30)
            new = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not new:
                self._compare(header, new_scorer)  # before anything is written
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
            db.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
            self._inode = os.stat(self._file).st_ino
            if new:
                self._make(header)
            return not new
        except (*UNREADABLE, OSError) as error:
            self.close()
            why = getattr(error, "strerror", None) or error
            raise JournalError(f"{self.path} cannot be opened as a journal: {why}") from error
        except JournalError:
            self.close()
            raise

    def open_as(self, texts: Mapping[str, str]) -> None:
        """Make the file for the events of another journal, whose description, as JSON by key, is taken over.

        Raises
        ------
        JournalError
            As said above, or there is something in the file.
        """
        if self.open({}):
            self.close()
            raise JournalError(f"{self.path} must be a new file, and exists")
        with self:
            self._run("DELETE FROM run")
            self._describe(texts)

    def _own(self) -> None:
        """Let no other process in, by whatever name of the file."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        there = self._file.exists()
        try:
            self._lock = files.take(files.beside(self._file))
            if self._file.exists() and not os.access(self._file, os.W_OK):
                raise JournalError(f"{self.path} must be writable, and is read-only")
            self._owned = files.Owned(self._file)
        except BlockingIOError:
            raise JournalError(f"{self.path} must belong to one process, and another one has it open") from None
        if there and self._file.is_file() and not self._file.stat().st_size and self.checkpoints.files():
            raise JournalError(
                f"{self.path} must be the journal of the checkpoints beside it, and is empty: put the journal back, or "
                "remove the empty file to begin anew"
            )
        if self._file.exists() and self._file.stat().st_nlink > 1:
            # SQLite's log belongs to one name, so that by the other the last transactions would not be there.
            raise JournalError(
                f"{self.path} must have one name, and has {self._file.stat().st_nlink} (hard links): keep one of them"
            )

    def _make(self, header: Mapping[str, Any]) -> None:
        self.checkpoints.forget()  # left by a run that no longer exists
        entries = {"format": FORMAT, "version": VERSION, "token": secrets.token_hex(8), **header}
        texts = {key: json.dumps(value, allow_nan=False) for key, value in entries.items()}
        with self:
            for statement in SCHEMA.split(";"):
                self._run(statement)
            self._run(f"PRAGMA application_id = {APPLICATION}")
            self._describe(texts)

    def _describe(self, texts: Mapping[str, str]) -> None:
        """Write what the run is."""
        self.token = str(json.loads(texts["token"]))
        for row in texts.items():
            self._run("INSERT INTO run VALUES (?, ?, ?)", (*row, chain.row_checksum(self.token, ("run", *row))))

    def _compare(self, header: Mapping[str, Any], new_scorer: bool | None) -> None:
        found = read_header(self.connection, self.path)
        check_tables(self.connection, self.path)
        self.token = str(found.get("token"))
        for _ in chain.checked_rows(self.connection, self.path, self.token, "positions"):
            pass  # a run goes on from there
        self._last = self._committed = chain.last_event(self.connection, self.path)
        anew = self.anew
        found |= {} if anew is None else anew.header
        # Another version describes objects in other words. All is learned again then, and the predictions prove that
        # these are the objects of the run.
        # So do those that kept labels as numpy's scalars.
        alike = found.get("packing") == header.get("packing") and "np." not in str(found.get("predictors"))
        skipped = {"created"} if alike else {"created", *DESCRIBED}
        for key, value in header.items():
            if key in skipped or found.get(key) == json.loads(json.dumps(value)):
                continue
            if key in OF_SCORER and new_scorer:
                self.other = True
                continue
            hint = "" if new_scorer is None or key not in OF_SCORER else f". {HOW}"
            if key == "start":
                raise JournalError(
                    f"{self.path} must hold a run that started from the same state: give the predictor as the first "
                    f"process made it, with what it had learned then and no more{hint}"
                )
            raise JournalError(
                f"{self.path} must hold a run with the same {key}, got {found.get(key)!r} there and {value!r} here"
                f"{hint}"
            )

    @property
    def anew(self) -> Anew | None:
        """Where calibration began anew with another scorer, for the last time; None if it never did."""
        held = self.position(ANEW)
        return None if held is None else Anew(**held)

    def begin_anew(self, anew: Anew) -> None:
        """Write that calibration begins anew, and forget the checkpoints of what was calibrated before."""
        self.reach(ANEW, anew._asdict())
        self.checkpoints.forget()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database."""
        if self._db is None:
            raise JournalError(f"{self.path} is closed")
        return self._db

    def close(self) -> None:
        """Close the file and release the lock; what is committed stays."""
        self.checkpoints.wait()
        if self._db is not None:
            self._db.close()
        if self._owned is not None:
            self._owned.release()
        if self._lock is not None:
            os.close(self._lock)
        self._db = self._lock = self._owned = None
        self._depth = 0

    # ------------------------------------------------------------------ writing
    # What is written outside a transaction is a transaction by itself.

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
            self._committed = self._last
        self._depth -= 1

    def rollback(self) -> None:
        """Take back everything since the outermost `begin`."""
        self._depth = 0
        self._last = self._committed
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

    def ask(self, question: QuestionRow) -> None:
        """Write a question; if its id is known, raise ValueError and write nothing."""
        with self:
            checksum = question.checksum(self.token)
            try:
                self.connection.execute(
                    "INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (question.event, question.id, question.time, question.step, question.x, question.predictions,
                     checksum),
                )  # fmt: skip
            except sqlite3.Error as error:
                if isinstance(error, sqlite3.IntegrityError) and "questions.id" in str(error):
                    self._find_asked(question.id)
                    raise ValueError(
                        f"id must be a new one, got {question.id!r}, which was asked before; after a restart "
                        "follow(events, again=True) passes over what the journal holds"
                    ) from None
                raise JournalError(f"{self.path} cannot be written: {error}") from error
            self._last = question.event, checksum

    def _find_asked(self, id: Any) -> None:
        """Find the question of this id among the rows, as it was written, or say what is damaged."""
        found = self.connection.execute("SELECT event FROM questions NOT INDEXED WHERE id = ?", (id,)).fetchone()
        if found is None:
            raise chain.damage(self.path, f"the index of ids has {id!r}, which no question has") from None
        self.question(found[0])

    def answer(self, step: int, event: int, question: int, time: float, truth: Any) -> None:
        """Write the answer to a question."""
        self._reveal(AnswerRow(event, step, question, truth, time))

    def expire(self, number: int, event: int, question: int, time: float) -> None:
        """Write that a question has expired."""
        self._reveal(AnswerRow(event, number, question, None, time))

    def _reveal(self, answer: AnswerRow) -> None:
        event, number, question, truth, time = answer
        with self:
            checksum = answer.checksum(self.token)
            if truth is None:
                self._run("INSERT INTO expired VALUES (?, ?, ?, ?, ?)", (number, event, question, time, checksum))
            else:
                values = (number, event, question, time, truth, checksum)
                self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", values)
            self._last = event, checksum

    def happen(self, questions: Sequence[QuestionRow], answers: Sequence[AnswerRow]) -> None:
        """Write questions whose ids are new, and answers: events that follow each other, of a block."""
        asked = [(one.event, one.id, one.time, one.step, one.x, one.predictions, one.checksum(self.token))
                 for one in questions]  # fmt: skip
        came = [(one.number, one.event, one.question, one.time, one.truth, one.checksum(self.token)) for one in answers]
        with self:
            try:
                self.connection.executemany("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?)", asked)
                self.connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", came)
            except sqlite3.Error as error:
                raise JournalError(f"{self.path} cannot be written: {error}") from error
            ends = [(row[0], row[-1]) for row in asked[-1:]] + [(row[1], row[-1]) for row in came[-1:]]
            self._last = max([self._last, *ends], key=lambda end: end[0])

    def known(self, ids: Sequence[int | str]) -> set[int | str]:
        """Return those of some ids that questions have."""
        found: set[int | str] = set()
        for at in range(0, len(ids), SOME):
            part = tuple(ids[at : at + SOME])
            marks = ", ".join("?" * len(part))
            found |= {id for (id,) in self._run(f"SELECT id FROM questions WHERE id IN ({marks})", part)}
        return found

    def write(self, event: QuestionRow | AnswerRow) -> None:
        """Write an event that another journal holds."""
        if isinstance(event, QuestionRow):
            self.ask(event)
        else:
            self._reveal(event)

    def ring(self, predictor: str, number: int, step: int, time: float, alarm: Alarm) -> None:
        """Write an alarm; the same one again changes nothing."""
        self.put("alarms", (predictor, number, step, time, json.dumps(vars(alarm))))

    def draw(self, step: int, time: float, figures: Any) -> None:
        """Write a point of the curves; the same one again changes nothing."""
        self.put("series", (step, time, FIGURES.encode(figures).decode()))

    def show(self, predictor: str, step: int, time: float, snapshot: Any) -> None:
        """Write the current snapshot of a predictor."""
        self.put("latest", (predictor, step, time, json.dumps(snapshot)))

    def reach(self, source: str, position: Any) -> None:
        """Write how far a source has been read."""
        self.put("positions", (source, json.dumps(position)))

    def put(self, table: str, values: tuple[Any, ...]) -> None:
        """Write a row of a table beside the events.

        In alarms and series the row that is there with its key stays; in the others it is replaced.
        """
        how, marks = "REPLACE" if table in REPLACING else "IGNORE", ", ".join("?" * (len(values) + 1))
        checksum = chain.row_checksum(self.token, (table, *values))
        with self:
            self._run(f"INSERT OR {how} INTO {table} VALUES ({marks})", (*values, checksum))

    def sync(self) -> None:
        """Let all that is committed reach the disk."""
        self._run("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    # ------------------------------------------------------------------ reading

    def check(self) -> None:
        """Compare all of the journal with its checksums, and let SQLite check the file, as `venn verify` does."""
        for _ in chain.whole(self.connection, self.path, pages=True):
            pass

    def position(self, source: str) -> Any:
        """Return how far a source has been read; None before the start."""
        row = self._run("SELECT position FROM positions WHERE source = ?", (source,)).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except (TypeError, ValueError) as error:
            raise chain.damage(self.path, f"positions, row {source!r}, cannot be read: {error}") from error

    @property
    def events(self) -> int:
        """Number of events, those of an open transaction included."""
        return self._last[0]

    @property
    def last_checksum(self) -> int:
        """The checksum of the last event."""
        return self._last[1]

    def checksum_at(self, place: JournalPlace) -> int | None:
        """Return the checksum of the last event before a place; None if there is no such event."""
        return chain.checksum_at(self.connection, self.path, place)

    def question(self, event: int) -> QuestionRow:
        """Return the question with this event number, compared with its checksum."""
        return self.some([event])[0]

    def some(self, events: Sequence[int]) -> list[QuestionRow]:
        """Return the questions with these event numbers, each compared with its checksum."""
        found: dict[int, QuestionRow] = {}
        for at in range(0, len(events), SOME):
            part = tuple(events[at : at + SOME])
            for one in self._questions(f"event IN ({', '.join('?' * len(part))})", part):
                found[one.event] = one
        for event in events:
            if event not in found:
                raise chain.damage(self.path, f"questions, event {event}, is missing")
        return [found[event] for event in events]

    def questions(self, after: int) -> Iterator[QuestionRow]:
        """Yield the questions after an event, each compared with its checksum."""
        while found := self._questions("event > ? ORDER BY event LIMIT ?", (after, chain.PIECE)):
            yield from found
            after = found[-1].event

    def _questions(self, which: str, values: tuple[int, ...]) -> list[QuestionRow]:
        found, at, columns = [], values[0], chain.COLUMNS["questions"]
        try:
            for row in self.connection.execute(f"SELECT {columns} FROM questions WHERE {which}", values):
                at = row[0]
                question = QuestionRow.read("questions", row)
                if question.checksum(self.token) != row[-1]:
                    raise chain.damage(self.path, f"questions, event {at}, is not as written")
                found.append(question)
        except (*UNREADABLE, TypeError) as error:  # TypeError: a value that is not even bytes
            raise chain.unread(self.path, f"questions cannot be read near event {at}", error) from error
        return found

    def after(self, place: JournalPlace) -> Iterator[QuestionRow | AnswerRow]:
        """Yield what happened after a place, in order, each event compared with its checksum, to the end of all.

        Raises
        ------
        JournalError
            Something is not as written; what was yielded before is.
        """
        return iter(chain.Walk(self.connection, self.path, self.token, place, self.events))

    def alarms(self) -> list[tuple[str, int, int]]:
        """Return what rang, which of its alarms it was, and at which step."""
        return list(self._run("SELECT predictor, number, step FROM alarms"))

    def found(self, id: int | str) -> Found | None:
        """Return the question with this id and its outcome; None if there is none."""
        row = self._run(
            "SELECT x, (SELECT truth FROM answers WHERE question = q.event),"
            " EXISTS (SELECT 1 FROM expired WHERE question = q.event), event FROM questions q WHERE id = ?", (id,)
        ).fetchone()  # fmt: skip
        return None if row is None else Found(row[0], row[1], bool(row[2]), row[3])


def checked_id(id: Any) -> int | str:
    """Return an id as the journal keeps it, or say what is wrong with it."""
    if isinstance(id, np.integer):
        id = int(id)
    if isinstance(id, bool) or not isinstance(id, int | str):
        raise TypeError(f"id must be an int or a str, got {id!r}")
    if isinstance(id, int):
        if not -LARGEST_SQLITE <= id <= LARGEST_SQLITE:
            raise ValueError(f"id must be an int of at most 64 bits or a str, got {id!r}")
        return int(id)
    try:
        id.encode()
    except UnicodeEncodeError:
        raise ValueError(f"id must be text that UTF-8 can write, got {id!r}") from None
    return str(id)
