"""Labels that ripen: a report counts when its question is ripe, and silence means a label then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, NamedTuple

from venn.labels import LabelSpace
from venn.online.journal import Journal
from venn.parameters import integer, is_number
from venn.prediction import Label

REPORTED = "venn report on "  # and the event of a question, beside the positions of sources in a journal


def moment(name: str, value: Any) -> float:
    """Return a time as seconds since 1970.

    Raises
    ------
    TypeError, ValueError
        It is neither a finite number nor a `datetime` with a time zone.

    Examples
    --------
    >>> from datetime import timezone
    >>> moment("at", datetime(1970, 1, 2, tzinfo=timezone.utc)), moment("at", 3)
    (86400.0, 3.0)
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} must be a datetime with a time zone, got {value!r}")
        return value.timestamp()
    if not is_number(value):
        raise TypeError(f"{name} must be seconds since 1970 or a datetime with a time zone, got {value!r}")
    if not isfinite(value):
        raise ValueError(f"{name} must be a finite number of seconds, got {value!r}")
    return float(value)


class Report(NamedTuple):
    """The latest report on a question."""

    truth: Any  #: code of the label
    time: float  #: by the clock of the run
    late: bool = False  #: whether the question was ripe by then


class Ripening:
    """Holds what is reported until its question is ripe: see `Online`.

    Parameters
    ----------
    ripe : int >= 1 or timedelta > 0
        A question is ripe when so many later ones have been asked, or so much time has passed.
    silent : label, optional
        The label of a question of which nothing is reported until then. None: it is given up.
    space : LabelSpace

    Attributes
    ----------
    clock : float
        The latest time that was seen, in seconds since 1970. It never goes back.
    reports : dict of int or str to Report
        The latest report on each question that waits, by its id.
    late : int
        Number of questions on which a report came after they were ripe.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> from venn.labels import Classes
    >>> Ripening(timedelta(days=90), "honest", Classes(["fraud", "honest"]))
    Ripening('90 days, 0:00:00', silent='honest')
    """

    def __init__(self, ripe: Any, silent: Label | None, space: LabelSpace) -> None:
        if isinstance(ripe, timedelta):
            if ripe <= timedelta(0):
                raise ValueError(f"ripe must be a time > 0, got {ripe!r}")
        elif isinstance(ripe, bool) or not isinstance(ripe, int):
            raise TypeError(f"ripe must be a number of questions or a timedelta, got {ripe!r}")
        else:
            integer("ripe", ripe, 1)
        if silent is not None:
            try:
                space.check(silent)
            except (TypeError, ValueError) as error:
                raise type(error)(f"silent must be one of the labels: {error}") from None
        self.ripe, self.silent, self.space = ripe, silent, space
        self._silence = None if silent is None else space.encode(silent)
        self.clock = 0.0
        self.reports: dict[int | str, Report] = {}
        self.late = 0
        self._ended: dict[int | str, Report | None] = {}  # reports on the latest ripe questions

    def __repr__(self) -> str:
        return f"Ripening({str(self.ripe)!r}, silent={self.silent!r})"

    def tell(self, time: float) -> float:
        """Advance the clock to a time; return its time."""
        self.clock = max(self.clock, time)
        return self.clock

    def due(self, later: int, since: float) -> bool:
        """Whether a question is ripe after this many later questions and seconds."""
        return since >= self.ripe.total_seconds() if isinstance(self.ripe, timedelta) else later >= self.ripe

    def truth(self, id: int | str) -> Any:
        """Return the code of the label of a ripe question; None if it is given up."""
        found = self.reports.get(id)
        return self._silence if found is None else found.truth

    def end(self, id: int | str) -> None:
        """Move a ripe question to the short memory of ripe ones."""
        report = self.reports.pop(id, None)
        self._ended[id] = report
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def earlier(self, id: int | str, event: int, journal: Journal | None) -> Report | None:
        """Return the latest report on a question that is ripe; None if there was none."""
        if journal is None:
            return self._ended.get(id)
        found = journal.position(_key(event))
        return None if found is None else Report(*found)

    def knows(self, id: int | str) -> bool:
        """Whether an id belongs to one of the latest ripe questions."""
        return id in self._ended

    def come(self, id: int | str, event: int, report: Report, journal: Journal | None) -> None:
        """Record a report. A late one is only counted, once for each question."""
        if report.late:
            earlier = self.earlier(id, event, journal)
            if earlier is not None and (earlier.late or earlier.truth == report.truth):
                return  # the same message again
        if journal is not None:
            journal.reach(_key(event), list(report))
        self.tell(report.time)
        if report.late:
            self.late += 1
            self._ended[id] = report
        else:
            self.reports[id] = report

    def snapshot(self, waiting: int) -> dict[str, Any]:
        """Return what is shown, given how many questions wait."""
        return {"waiting": waiting, "reported": len(self.reports), "late": self.late, "ripe": self.words}

    @property
    def words(self) -> str:
        """When a question is ripe, in words."""
        if isinstance(self.ripe, timedelta):
            days = self.ripe / timedelta(days=1)
            return f"{days:g} day{'s' * (days != 1)}" if days == int(days) else str(self.ripe)
        return f"{self.ripe:,} question{'s' * (self.ripe != 1)}"

    # ------------------------------------------------------------------ journal

    def read(self, journal: Journal, waiting: Mapping[int, int | str], time: float) -> None:
        """Read from a journal the reports on open questions, and how many came too late.

        `waiting` maps events of open questions to ids; `time` is the time of the last event.
        """
        self.clock = time
        rows = journal.connection.execute(
            "SELECT source, position FROM positions WHERE source BETWEEN ? AND ?", (_key(0), _key(LARGEST_EVENT))
        )
        for source, position in rows:
            report, event = Report(*json.loads(position)), int(source.removeprefix(REPORTED))
            self.clock = max(self.clock, report.time)
            self.late += report.late
            if event in waiting:
                self.reports[waiting[event]] = report


REMEMBERED = 100_000
LARGEST_EVENT = 10**15 - 1


def _key(event: int) -> str:
    return f"{REPORTED}{event:015d}"
