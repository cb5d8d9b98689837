"""Whether a journal is whole, and what of a damaged one can be saved."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from venn.online import files
from venn.online.chain import (
    BESIDE,
    UNREADABLE,
    AnswerRow,
    JournalError,
    JournalPlace,
    QuestionRow,
    Walk,
    check_tables,
    checked_rows,
    open_to_read,
    read_header,
    whole,
)
from venn.online.checkpoint_writer import state_file, state_files
from venn.online.journal import Journal
from venn.parameters import path_of

TOGETHER = 10_000  # events of a transaction
STEPS = {"alarms": 2, "series": 0, "latest": 1}  # column of the step, in tables beside the events


class Verified(NamedTuple):
    """What a whole journal holds."""

    asked: int
    answered: int
    expired: int
    checkpoints: int  #: that can be read
    unreadable: tuple[str, ...]  #: names of checkpoints that cannot: they cost time at the next start, nothing else


class Salvaged(NamedTuple):
    """What was saved of a damaged journal."""

    asked: int
    answered: int
    expired: int
    damage: str  #: what `verify` says of the damaged one; empty where that is whole
    positions: bool  #: whether the positions in the sources were saved: only where they are those of the last event


def verify(path: str | os.PathLike[str]) -> Verified:
    """Compare everything in a journal with its checksums, from the first event to the last; a run may go on meanwhile.

    Every row of every table, that no event is missing between two, the structure of the file with its indices (by
    SQLite), and the checksums in the checkpoint files. The checksums have no key: they show accidents, and not who
    computes them again or deletes the last rows.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Verified

    Raises
    ------
    JournalError
        There is no journal, or it is damaged: the message says where, and what can be saved.

    Examples
    --------
    >>> import tempfile, venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with venn.Online(venn.TransductiveVenn(machine), journal=f"{folder}/run.db") as online:
    ...         prediction = online.ask([0.0], "first")
    ...         alarms = online.answer("first", "no")
    ...     venn.online.verify(f"{folder}/run.db")
    Verified(asked=1, answered=1, expired=0, checkpoints=2, unreadable=())
    """
    file = path_of("path", path)
    with closing(_with_tables(file)) as db:
        held = Counter(
            "asked" if isinstance(event, QuestionRow) else "answered" if event.truth is not None else "expired"
            for event in whole(db, file, pages=True)
        )
    good, bad = 0, []
    for one in state_files(file.resolve()):
        try:
            with one.open("rb") as content:
                files.read(content)
            good += 1
        except FileNotFoundError:
            pass  # the run goes on, and has forgotten it
        except Exception:
            bad.append(one.name)
    return Verified(held["asked"], held["answered"], held["expired"], good, tuple(bad))


def salvage(damaged: str | os.PathLike[str], rescued: str | os.PathLike[str]) -> Salvaged:
    """Write what is whole of a damaged journal to a new one, which goes on from there; the damaged one is not changed.

    All events before the first damaged one are saved, each with its checksum, and so are the alarms, points of curves
    and checkpoints of that time: the new journal equals the beginning of the old one to the last bit. If events are
    left behind in the damaged file, the positions in the sources are lost, for they belong to its end. Sources are
    then read again from their beginning, and questions that the journal holds are refused by their ids.

    Parameters
    ----------
    damaged, rescued : str or path
        The second must not exist.

    Returns
    -------
    Salvaged

    Raises
    ------
    JournalError
        Nothing can be saved: the description of the run, or the first page of the file, is damaged; or `rescued`
        exists or cannot be written.

    Examples
    --------
    >>> import tempfile, venn
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     damaged, rescued = Path(folder, "run.db"), Path(folder, "rescued.db")
    ...     model = venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, (0, 1)))
    ...     with venn.Online(model, journal=damaged) as online:
    ...         said = online.ask([0.5], id="first")
    ...     salvage(damaged, rescued)
    Salvaged(asked=1, answered=0, expired=0, damage='', positions=True)
    """
    source, target = path_of("damaged", damaged), path_of("rescued", rescued)
    if target.exists():
        raise JournalError(f"{target} must be a new file, and exists")
    with closing(_with_tables(source)) as db:
        everything = Sound(whole(db, source, pages=True))
        deque(everything, maxlen=0)
        place, ended = _copy(db, source, target, everything.damage)
    for state in state_files(source.resolve()):
        event = int(state.name.rpartition("-")[2])
        if event <= place.events:
            shutil.copy2(state, state_file(target, event))
    return Salvaged(place.asked, place.answered, place.expired, everything.damage, ended)


def _copy(db: sqlite3.Connection, source: Path, target: Path, damage: str) -> tuple[JournalPlace, bool]:
    """Write the whole part of a journal to a new one; return where it ends, and whether the old one ended there."""
    try:
        texts = dict(db.execute("SELECT key, value FROM run"))
        token = read_header(db, source).get("token")
    except (*UNREADABLE, JournalError, TypeError, ValueError) as error:
        raise JournalError(f"nothing of {source} can be saved: what the run is cannot be read: {error}") from error
    walk = Walk(db, source, token)
    sound = Sound(walk)
    events = iter(sound)
    event = next(events, None)
    if event is None and sound.damage:
        raise JournalError(f"nothing of {source} can be saved: {damage}")
    target.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(target)
    try:
        journal.open_as(texts)
        while event is not None:
            with journal:
                for _ in range(TOGETHER):
                    journal.write(event)
                    event = next(events, None)
                    if event is None:
                        break
        ended = not sound.damage
        with journal:
            for table in BESIDE if ended else ("alarms", "series"):
                step = STEPS.get(table)
                for row in checked_rows(db, source, token, table, left_out=True):
                    if step is None or row[step] <= walk.place.answered:
                        journal.put(table, row[:-1])
    except BaseException:
        journal.close()
        for left in target.parent.glob(f"{target.name}*"):
            left.unlink(missing_ok=True)
        raise
    journal.close()
    return walk.place, ended


class Sound:
    """Events as far as they are as written; `damage` then says what ended them, if anything did."""

    def __init__(self, events: Iterable[QuestionRow | AnswerRow]) -> None:
        self.damage = ""
        self._events = events

    def __iter__(self) -> Iterator[QuestionRow | AnswerRow]:
        try:
            yield from self._events
        except JournalError as error:
            self.damage = error.what or str(error)


def _with_tables(path: Path) -> sqlite3.Connection:
    """Open a journal, and refuse one without its tables."""
    db = open_to_read(path)
    try:
        read_header(db, path)
        check_tables(db, path)
    except (*UNREADABLE, ValueError) as error:
        db.close()
        raise JournalError(f"{path} cannot be opened as a journal: {error}") from error
    except JournalError:
        db.close()
        raise
    return db
