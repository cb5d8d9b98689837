"""Viewers' access to a journal: they read it during its run, and never disturb the run."""

from __future__ import annotations

import json
import os
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from venn.labels import HasLabels, read_labels
from venn.monitors.episodes import Episode, Episodes
from venn.monitors.verdict import OF_OBJECTS, Moment, Verdict
from venn.online.chain import (
    LARGEST_SQLITE,
    UNREADABLE,
    JournalError,
    QuestionRow,
    checked_rows,
    decode,
    open_to_read,
    read_header,
    whole,
)
from venn.online.files import held
from venn.online.journal import checked_id
from venn.online.record import Record
from venn.parameters import integer, path_of
from venn.prediction import Label, Prediction
from venn.show.view import SeenCounts, overall

EPISODES = "venn episodes"  # beside the snapshots of predictors in a journal
ENDED = "venn run ended"  # beside the positions of sources in a journal
QUESTIONS = "questions q LEFT JOIN answers a ON a.question = q.event"
RECENT = 1000  # answers over which the rate is measured


class Seen(NamedTuple):
    """One of the latest questions."""

    event: int
    id: int | str
    time: float  #: seconds since 1970
    predictions: dict[str, Prediction]  #: by name
    status: str  #: "pending", "answered" or "expired"
    y: Label | None
    delay: int | None  #: answers learned between the question and its own answer


class SeenQuestion(NamedTuple):
    """A question found by its id: what was said of it, and what came."""

    number: int  #: from 1 on, in the order in which they were asked
    seen: Seen  #: with the time when it was asked
    came: float | None  #: when its label came, or it was given up, in seconds since 1970
    since: int  #: answers that came after it was asked


class SeenAnswer(NamedTuple):
    """A label that came."""

    number: int  #: of its question, from 1 on
    asked: int  #: questions until then: what was learned from it speaks in later ones only
    time: float  #: seconds since 1970


class CurvePoint(NamedTuple):
    """A point of the curves."""

    step: int
    time: float
    figures: dict[
        str, Any
    ]  #: by name of a predictor: "curves", "window" and "evidence" (base 10 logarithms by detector)


class Watch(HasLabels):
    """Reads the journal of a run, whether its process is alive or not.

    Every method reads what is committed when it is called. Reading takes no lock that the run would wait for.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    classes : tuple of labels
    names : tuple of str
        The predictors.
    predictors, monitors : dict of str to str
        Their descriptions.
    objects : tuple of str
        The names of what watches the objects and the examples: monitors of no predictor.
    created : float
        Seconds since 1970.

    Raises
    ------
    JournalError
        There is no such file, or it is not a journal of this version.

    Examples
    --------
    >>> import tempfile, venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with venn.Online(venn.TransductiveVenn(machine), journal=f"{folder}/run.db") as online:
    ...         prediction = online.ask([0.0])
    ...         with Watch(f"{folder}/run.db") as watch:
    ...             print(watch.names, watch.counts().pending)
    ('TransductiveVenn',) 1
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path_of("path", path)
        self._db: sqlite3.Connection | None = open_to_read(self.path)
        try:
            header = read_header(self._db, self.path)
            self._token = header.get("token")
            self.space = read_labels(header)
            self.names: tuple[str, ...] = tuple(header["names"])
            self.predictors: dict[str, str] = header["predictors"]
            self.monitors: dict[str, str] = header["monitors"]
            self.objects = tuple(name for name in self.monitors if name not in self.names)
            self.created: float = header["created"]
            self._moments: dict[int, Moment] = {}  # of questions that changes name by number alone
        except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
            self.close()
            raise JournalError(f"{self.path} cannot be read as a journal: {error!r}") from error
        except JournalError:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Watch({str(self.path)!r})"

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
        self._db = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise JournalError(f"{self.path} is closed")
        return self._db

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._open.execute(statement, values).fetchall()
        except UNREADABLE as error:
            raise JournalError(f"{self.path} cannot be read: {error}") from error

    def _checked(self, table: str, more: str, values: tuple[Any, ...]) -> list[Any]:
        """Return rows of a table beside the events, each compared with its checksum."""
        return [row[:-1] for row in checked_rows(self._open, self.path, self._token, table, more, values)]

    @contextmanager
    def _making(self) -> Iterator[None]:
        """Turn errors from rows of a damaged file into a message that says so."""
        try:
            yield
        except (TypeError, ValueError, LookupError) as error:
            raise JournalError(f"{self.path} cannot be read: {error!r}") from error

    def counts(self) -> SeenCounts:
        """Return the progress of the run."""
        question = self._rows("SELECT event, time FROM questions ORDER BY event DESC LIMIT 1")
        answer = self._rows("SELECT event, time, step FROM answers ORDER BY step DESC LIMIT 1")
        given_up = self._rows("SELECT event, time, number FROM expired ORDER BY number DESC LIMIT 1")
        rows = question + answer + given_up
        with self._making():
            events, last = max((row[0] for row in rows), default=0), max((row[1] for row in rows), default=0.0)
            answered = answer[0][2] if answer else 0
            expired = given_up[0][2] if given_up else 0
            asked = events - answered - expired
            rate = 0.0
            if answered > 1:
                first = max(1, answered - RECENT)
                ((start,),) = self._rows("SELECT time FROM answers WHERE step = ?", (first,))
                rate = (answered - first) / max(answer[0][1] - start, 1e-9)
            return SeenCounts(asked, answered, expired, asked - answered - expired, rate, last)

    def ended(self) -> float | None:
        """Return when the run came to its end, in seconds since 1970; None while it goes on, and if it was killed.

        A run that is closed writes so, under `ENDED`, beside the positions of sources.
        """
        rows = self._checked("positions", "WHERE source = ?", (ENDED,))
        if not rows or held(self.path):
            return None
        with self._making():
            said, counts = json.loads(rows[0][1]), self.counts()
            gone_on = said["events"] != counts.asked + counts.answered + counts.expired
            return None if gone_on else float(said["time"])

    def series(self, points: int = 1000, after: int = 0) -> list[CurvePoint]:
        """Return the points of the curves after a step, evenly thinned to about `points`, always with the last one."""
        points, after = integer("points", points, 1), integer("after", after, 0, LARGEST_SQLITE)
        steps = [row[0] for row in self._rows("SELECT step FROM series WHERE step > ? ORDER BY step", (after,))]
        if not steps:
            return []
        apart = max(1, (steps[-1] - after) // points)
        kept, previous = [], after - apart
        for step in steps:
            if step - previous >= apart or step == steps[-1]:
                kept.append(step)
                previous = step
        rows = []
        for start in range(0, len(kept), 500):
            part = kept[start : start + 500]
            marks = ", ".join("?" * len(part))
            rows += self._checked("series", f"WHERE step IN ({marks}) ORDER BY step", tuple(part))
        with self._making():
            return [CurvePoint(step, when, json.loads(figures)) for step, when, figures in rows]

    def snapshot(self, name: str) -> dict[str, Any] | None:
        """Return a predictor's latest figures: `told`, its predictions as they were made, and `monitor`.

        Both are results of `Monitor.snapshot`; `monitor` is None without a monitor, and `told` is None for what watches
        objects. None before the first snapshot.

        Raises
        ------
        KeyError
            No predictor has this name.
        """
        if not isinstance(name, str) or name not in (*self.names, *self.objects):
            raise KeyError(f"name: no predictor {name!r} in this run; it has {', '.join(self.names)}")
        rows = self._checked("latest", "WHERE predictor = ?", (name,))
        with self._making():
            return json.loads(rows[0][3]) if rows else None

    def verdict(self) -> Verdict | None:
        """Return the worst verdict on the predictors, with its name, at the latest snapshot; None before the first."""
        found = {name: self.snapshot(name) for name in (*self.names, *self.objects)}
        with self._making():
            return overall({name: snapshot for name, snapshot in found.items() if snapshot is not None})

    def episodes(self) -> Episodes:
        """Return the changes of the run, each from its first alarm to its end, as they were when last written."""
        rows = self._checked("latest", "WHERE predictor = ?", (EPISODES,))
        with self._making():
            found = [Episode.of(one) for one in json.loads(rows[0][3])] if rows else []
        whole = self._whole
        return Episodes(
            replace(
                one, first=whole(one.first), rang=whole(one.rang), last=whole(one.last),
                anew=one.anew and whole(one.anew), ended=one.ended and whole(one.ended),
            )
            for one in found
        )  # fmt: skip

    def _whole(self, at: Moment) -> Moment:
        """Return a moment with the time and the id of its question."""
        if at.time is not None or at.number < 1:
            return at
        if at.number not in self._moments:
            self._moments[at.number] = self.moment(at.number) or at
        return self._moments[at.number]

    def alarms(self, name: str, last: int = 100) -> list[dict[str, Any]]:
        """Return the latest alarms about a predictor, oldest first, each with its `time` and the run's `step`.

        The `step` of an alarm about objects is the number of the question.
        """
        at_most = integer("last", last, 0, LARGEST_SQLITE)
        rows = self._checked("alarms", "WHERE predictor = ? ORDER BY number DESC LIMIT ?", (name, at_most))
        with self._making():
            told = [(json.loads(alarm), step, when) for _, _, step, when, alarm in reversed(rows)]
            return [{**alarm, **({} if alarm["about"] == OF_OBJECTS else {"step": step}), "time": when}
                    for alarm, step, when in told]  # fmt: skip

    def latest(self, questions: int = 20) -> list[Seen]:
        """Return the latest questions, newest first."""
        integer("questions", questions, 0, LARGEST_SQLITE)
        return self._seen("q.time", QUESTIONS, "q.event", questions)

    def outcomes(self, answers: int = 20) -> list[Seen]:
        """Return the latest questions that were answered, the latest answer first; `time` is when the answer came."""
        integer("answers", answers, 0, LARGEST_SQLITE)
        return self._seen("a.time", "answers a JOIN questions q ON q.event = a.question", "a.step", answers)

    def _seen(self, time: str, tables: str, order: str, most: int) -> list[Seen]:
        """Return the latest questions by an order, each with its answer if it has one."""
        rows = self._rows(
            f"SELECT q.event, q.id, {time}, q.predictions, a.truth, a.step - 1 - q.step,"
            " EXISTS (SELECT 1 FROM expired WHERE question = q.event)"
            f" FROM {tables} ORDER BY {order} DESC LIMIT ?", (most,)
        )  # fmt: skip
        with self._making():
            return [
                Seen(
                    event, id, when, decode(content, self.names, self.space),
                    "expired" if expired else "pending" if truth is None else "answered",
                    None if truth is None else self.space.decode(truth), delay,
                )
                for event, id, when, content, truth, delay, expired in rows
            ]  # fmt: skip

    def question(self, id: int | str) -> SeenQuestion | None:
        """Return the question of an id, what was said of it and what came; None if there is none.

        However long the run, that takes a few steps in indices.

        Examples
        --------
        >>> import tempfile, venn
        >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with venn.Online(venn.TransductiveVenn(machine), journal=f"{folder}/run.db") as online:
        ...         prediction = online.ask([0.0], "order-7")
        ...         with Watch(f"{folder}/run.db") as watch:
        ...             print(watch.question("order-7").seen.status, watch.question("order-8"))
        pending None
        """
        rows = self._rows("SELECT event, step FROM questions WHERE id = ?", (checked_id(id),))
        if not rows:
            return None
        event, step = rows[0]
        (seen,) = self._seen("q.time", f"{QUESTIONS} WHERE q.event = {event}", "q.event", 1)
        came = self._rows(
            "SELECT time FROM answers WHERE question = ? UNION ALL SELECT time FROM expired WHERE question = ?",
            (event, event),
        )
        (last,) = self._rows("SELECT ifnull(max(step), 0) FROM answers")
        return SeenQuestion(event - step - self._given_up(event), seen, came[0][0] if came else None, last[0] - step)

    def answer(self, step: int) -> SeenAnswer | None:
        """Return which question the label of a step was to, and when it came; None if there is no such step."""
        rows = self._rows(
            "SELECT q.event, q.step, a.event, a.time FROM answers a JOIN questions q ON q.event = a.question"
            " WHERE a.step = ?", (integer("step", step, 0, LARGEST_SQLITE),)
        )  # fmt: skip
        if not rows:
            return None
        question, before, event, when = rows[0]
        number, asked = question - before - self._given_up(question), event - step - self._given_up(event)
        return SeenAnswer(number, asked, float(when))

    def _given_up(self, event: int) -> int:
        """Return how many questions had been given up before an event: they are numbered in the order of events."""
        (last,) = self._rows("SELECT ifnull(max(number), 0) FROM expired")
        return bisect_left(range(1, last[0] + 1), event, key=self._given_up_at)

    def _given_up_at(self, number: int) -> int:
        with self._making():
            return int(self._rows("SELECT event FROM expired WHERE number = ?", (number,))[0][0])

    def _event(self, number: int) -> int | None:
        """Return the event of a question by its number; None if there is none."""
        (last,) = self._rows("SELECT ifnull(max(event), 0) FROM questions")
        found = bisect_left(range(1, last[0] + 1), number, key=self._asked_by) + 1
        return found if found <= last[0] else None

    def _asked_by(self, event: int) -> int:
        """Return how many questions had been asked up to an event."""
        rows = self._rows("SELECT event, step FROM questions WHERE event <= ? ORDER BY event DESC LIMIT 1", (event,))
        return rows[0][0] - rows[0][1] - self._given_up(rows[0][0]) if rows else 0

    def moment(self, number: int) -> Moment | None:
        """Return the time and the id of a question, by its number from 1 on; None if there is no such question."""
        if isinstance(number, int) and not 1 <= number <= LARGEST_SQLITE:
            return None
        event = self._event(integer("number", number, 1))
        rows = [] if event is None else self._rows("SELECT time, id FROM questions WHERE event = ?", (event,))
        return Moment(number, *rows[0]) if rows else None

    def asked_at(self, number: int) -> float | None:
        """Return when a question came, in seconds since 1970; None if there is no such question."""
        found = self.moment(number)
        return None if found is None else found.time

    def answered_at(self, step: int) -> float | None:
        """Return when the answer of a step came, in seconds since 1970; None if there is no such step."""
        if isinstance(step, int) and not 1 <= step <= LARGEST_SQLITE:
            return None
        found = self._rows("SELECT time FROM answers WHERE step = ?", (integer("step", step, 1),))
        return float(found[0][0]) if found else None

    def record(self) -> Record:
        """Return all answered questions as a `Record`: predictions as they were made, in the order of their answers.

        All of the journal is compared with its checksums first.
        """
        return read_record(self._open, self.path)


def read_record(db: sqlite3.Connection, path: Path) -> Record:
    """Return the answered questions of an open journal as a record; all of it is compared with its checksums."""
    header = read_header(db, path)
    asked: dict[int, bytes] = {}  # predictions for the questions that wait
    try:
        record = Record(read_labels(header), tuple(header["names"]), parameters=header["predictors"])
        for event in whole(db, path):
            if isinstance(event, QuestionRow):
                asked[event.event] = event.predictions
                continue
            predictions = asked.pop(event.question)
            if event.truth is not None:
                record.update(decode(predictions, record.names, record.space), record.space.decode(event.truth))
        return record
    except (sqlite3.Error, TypeError, ValueError, LookupError) as error:
        raise JournalError(f"{path} cannot be read: {error}") from error
