"""The data of the page: the state of a run, read again and again, never more than a screen can show."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic, time
from typing import Any, NamedTuple, Protocol

from venn.labels import LabelSpace, Real
from venn.monitors.episodes import Episode
from venn.monitors.kind import LEVEL
from venn.monitors.verdict import CLAIMED, OF_OBJECTS, Verdict
from venn.show.view import UNSEEN, SeenCounts, Snapshot, Standing, figures_of, overall, standing

MOST_POINTS = 2000
LATEST = 20  # questions in a table
OUTCOMES = 40  # latest questions with their labels
OFTEN = 0.25  # least seconds between two readings, however many viewers ask
RATE_OVER = 10.0  # seconds
FEW = 5  # fewer answers say little about a rate
NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # an id that is a number, as somebody types it
QUIET, QUIET_GAPS = 5.0, 10.0  # a run is silent after so many seconds, and so many times its usual gap


class Watched(Protocol):
    """What the page needs from a run: `venn.online.watch.Watch` is one."""

    space: LabelSpace
    names: tuple[str, ...]
    predictors: dict[str, str]
    monitors: dict[str, str]
    objects: tuple[str, ...]  #: the names of monitors that watch the objects or examples, and no predictor
    created: float

    def counts(self) -> SeenCounts: ...
    def ended(self) -> float | None:
        """Return when the run came to its end, in seconds since 1970; None if it goes on, or that is not known."""

    def series(self, points: int = 1000, after: int = 0) -> Sequence[Any]:
        """Return points with a `step`, a `time` and `figures`."""

    def snapshot(self, name: str) -> Snapshot | None:
        """Return a mapping with `told` and `monitor`."""

    def alarms(self, name: str, last: int = 100) -> Sequence[Snapshot]: ...
    def episodes(self) -> Sequence[Episode]: ...
    def latest(self, questions: int = 20) -> Sequence[Any]: ...
    def outcomes(self, answers: int = 20) -> Sequence[Any]: ...
    def answer(self, step: int) -> Any:
        """Return the `number` of the question of a label, how many were `asked` until it came, and its `time`."""

    def answered_at(self, step: int) -> float | None:
        """Return when the label of a step came, in seconds since 1970; None if that is not known."""

    def asked_at(self, number: int) -> float | None:
        """Return the same of a question."""

    def close(self) -> None: ...


class Point(NamedTuple):
    """A point of the curves."""

    step: int
    figures: Mapping[str, Any]  #: by name: "curves", "window", "evidence"
    time: float = 0.0  #: seconds since 1970; 0 where that is not known


class FollowedRun:
    """One run in the state in which it was last read.

    Attributes
    ----------
    points : list of Point
        About `MOST_POINTS` at most, evenly thinned; grows at its end.
    thinned : int
        How often earlier points were dropped; unless it changed, `points` has only grown.
    verdict : Verdict or None
        The worst on the predictors, with its name.
    since : float or None
        When the question came from which on the verdict holds, in seconds since 1970, if it names one. Where the
        journal names none, and of an alarm that has passed, when the label of that step came.
    by_episode : list of list
        The alarms that were read, by episode: pairs of a name and an alarm. Before them those of no episode.
    ended : float or None
        When the run came to its end, in seconds since 1970.
    version : int
        Changes whenever any of this changes.
    key : str
        Of this object alone.
    """

    def __init__(self, watched: Watched) -> None:
        self.space, self.names, self.created = watched.space, watched.names, watched.created
        self.predictors, self.monitors, self.objects = watched.predictors, watched.monitors, watched.objects
        self.points: list[Point] = []
        self.thinned = 0
        self._apart = 1
        self._drawn = 0  # last step of the run's own points that was read
        self._times: deque[tuple[float, int]] = deque()
        self._standings: dict[str, Standing] = {}
        self._seen: Any = None
        self.version, self.key = 0, token_hex(4)
        self.verdict: Verdict | None = None
        self.since: float | None = None
        self.snapshots: dict[str, Snapshot] = {}  # of predictors
        self.drifts: dict[str, Snapshot] = {}  # of what watches objects
        self.alarms: dict[str, Sequence[Snapshot]] = {}
        self.answers: dict[int, Any] = {}  # labels, by the steps of alarms: see `Watched.answer`
        self.read(watched)

    def read(self, watched: Watched) -> None:
        """Read what has happened since the last time."""
        self.counts, self.ended = watched.counts(), watched.ended()
        series = watched.series(MOST_POINTS, self._drawn)
        found = {name: watched.snapshot(name) for name in (*self.names, *self.objects)}
        known = {name: snapshot for name, snapshot in found.items() if snapshot is not None}
        self.snapshots = {name: known[name] for name in self.names if name in known}
        self.drifts = {name: known[name] for name in self.objects if name in known}
        self.alarms = {name: watched.alarms(name) for name in found}
        self.episodes = watched.episodes()
        self.latest = watched.latest(LATEST)
        self.outcomes = watched.outcomes(OUTCOMES)
        self._judge(watched)
        for point in series:
            self._drawn = point.step
            self._add(Point(point.step, point.figures, point.time))
        steps = {snapshot["told"]["step"] for snapshot in self.snapshots.values()}
        if len(steps) == 1 and steps != {0}:  # written together, and later than the last point of the curves
            self._add(Point(steps.pop(), self._figures(), self.counts.time))
        rung = [len(one) for one in self.alarms.values()], [one[-1]["step"] for one in self.alarms.values() if one]
        seen = (tuple(self.counts), self.ended, tuple(self.episodes), len(self.points), self.thinned, steps, rung)
        if seen != self._seen:
            self._seen, self.version = seen, self.version + 1
            self.by_episode = grouped(self.episodes, self.alarms, partial(self._answer, watched))
            self._standings.clear()
        now = monotonic()
        self._times.append((now, self.counts.answered))
        while now - self._times[0][0] > RATE_OVER:
            self._times.popleft()

    def _answer(self, watched: Watched, step: int) -> Any:
        """Return the label of a step, read once."""
        if step not in self.answers:
            self.answers[step] = watched.answer(step)
        return self.answers[step]

    def _judge(self, watched: Watched) -> None:
        """Note the worst verdict, and when what it says began."""
        before, verdict = self.verdict, overall({**self.snapshots, **self.drifts})
        self.verdict = verdict
        if verdict is None or verdict.since is None:
            self.since = None
        elif verdict.at is not None and verdict.at.time is not None and verdict.state != CLAIMED:
            self.since = verdict.at.time
        elif before is None or (before.since, before.predictor) != (verdict.since, verdict.predictor):
            when = watched.asked_at if verdict.evidence == OF_OBJECTS else watched.answered_at
            self.since = when(verdict.since - self.before(verdict.predictor))

    def before(self, name: str) -> int:
        """Return how many steps a monitor had seen before the run began."""
        one = self.snapshots.get(name)
        return 0 if one is None or one["monitor"] is None else one["monitor"]["step"] - one["told"]["step"]

    def snapshot(self, name: str) -> Snapshot:
        """Return the latest figures of a predictor; before the first, what shows none."""
        return self.snapshots.get(name, UNSEEN)

    def standing(self, name: str) -> Standing:
        """Return how a predictor stands."""
        if name not in self._standings:
            self._standings[name] = standing(self.snapshot(name))
        return self._standings[name]

    @property
    def right(self) -> str:
        """What it is to be right: of numbers, the label lies inside the interval."""
        return f"inside at {LEVEL}" if isinstance(self.space, Real) else "accuracy"

    @property
    def worst(self) -> str:
        """The predictor on which the verdict is, or would be if nobody watched objects; at first the first one."""
        found = overall(self.snapshots)
        return self.names[0] if found is None else found.predictor

    def _figures(self) -> dict[str, Any]:
        """Return the point of the curves given by the snapshots."""
        return {name: figures_of(one["told"], one["monitor"]) for name, one in self.snapshots.items()}

    def _add(self, point: Point) -> None:
        """Append a point, unless one is nearby; if there are too many, drop every second one."""
        while point.step > MOST_POINTS * self._apart:
            self._apart *= 2
            kept = [one for one, after in zip(self.points, [*self.points[1:], point], strict=True)
                    if one.step // self._apart != after.step // self._apart]  # fmt: skip
            self.thinned += len(kept) < len(self.points)
            self.points = kept
        if not self.points or point.step // self._apart > self.points[-1].step // self._apart:
            self.points.append(point)

    def finish(self) -> None:
        """Let the curves end where the run ends, however near the last point is."""
        step = max((one["told"]["step"] for one in self.snapshots.values()), default=0)
        if self.points and step > self.points[-1].step:
            self.points.append(Point(step, self._figures(), self.counts.time))
            self._standings.clear()

    @property
    def rate(self) -> float:
        """Answers per second over the last seconds, or over the latest answers where the last seconds are too few."""
        (start, first), (end, last) = self._times[0], self._times[-1]
        apart = end - start
        if apart > 1.0 and max(last - first, apart * self.counts.rate) >= FEW:
            return (last - first) / apart
        return 0.0 if self.silent() else self.counts.rate

    def silent(self, now: float | None = None) -> bool:
        """Whether nothing has happened for longer than usual."""
        usual = QUIET_GAPS / self.counts.rate if self.counts.rate else 0.0
        return (time() if now is None else now) - self.counts.time > max(QUIET, usual)


def grouped(
    episodes: Sequence[Episode], alarms: Mapping[str, Sequence[Snapshot]], answer: Callable[[int], Any]
) -> list[list[tuple[str, Snapshot]]]:
    """Return alarms with their names by episode, each with the latest that had rung at its question.

    `answer` gives the label of a step. Before the episodes stand the alarms of none, where there are none.
    """
    found: list[list[tuple[str, Snapshot]]] = [[] for _ in range(len(episodes) + 1)]
    begun = [one.rang.number for one in episodes]
    for name, rung in alarms.items():
        reached = 0  # labels may come in another order than their questions
        for alarm in rung:
            of_object = alarm.get("about") == OF_OBJECTS
            came = None if of_object else answer(alarm["step"])
            number = alarm["step"] if of_object else 0 if came is None else came.number
            reached = max(reached, number)
            found[max(bisect_right(begun, reached), min(len(begun), 1))].append((name, alarm))
    return found


class Searched(Watched, Protocol):
    """What the page needs besides, to find a question."""

    def question(self, id: Any) -> Any:
        """Return the question of an id, what was said of it and what came; None if there is none."""

    def moment(self, number: int) -> Any:
        """Return the moment of a question, by its number; None if there is none."""


class Feed:
    """Reads one run for all viewers; if the file is missing, replaced or damaged, it tries again later.

    Parameters
    ----------
    opened : callable
        Opens the run, or raises one of `errors`.
    path : str or path
        Path of its file: another file of this name is another run.
    errors : exceptions
        Errors that mean: not now, perhaps later.

    Attributes
    ----------
    run : FollowedRun or None
        The run as last read; another object for another run; None before it is there.
    complaint : str or None
        Why it cannot be read at present.
    looks : int
        How often it was read.
    """

    def __init__(
        self,
        opened: Callable[[], Searched],
        path: str | os.PathLike[str],
        errors: tuple[type[Exception], ...] = (OSError, RuntimeError, ValueError),
    ) -> None:
        self._open, self._errors = opened, errors
        self.path = Path(path)
        self.run: FollowedRun | None = None
        self.complaint: str | None = None
        self.looks = 0
        self._watched: Searched | None = None
        self._file: tuple[int, int] | None = None
        self._next = 0.0

    def look(self) -> FollowedRun | None:
        """Read what is new, unless that was done a moment ago; return the run."""
        now = monotonic()
        if now >= self._next:
            try:
                self._read()
                self.complaint = None
            except self._errors as error:
                self.complaint = " ".join(str(error).split()) or type(error).__name__
                self.close()
            self.looks += 1
            self._next = monotonic() + OFTEN
        return self.run

    def _read(self) -> None:
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path} is not there yet")
        status = self.path.stat()
        file = (status.st_dev, status.st_ino)
        if self._watched is not None and file != self._file:
            self.close()
        if self._watched is None:
            self._watched, self._file = self._open(), file
            if self.run is None or not self._goes_on(self.run, self._watched):
                self.run = FollowedRun(self._watched)
                return
        assert self.run is not None
        self.run.read(self._watched)

    def find(self, said: str) -> list[Any]:
        """Return the questions whose id somebody typed: as text, as a number, or else by their number.

        Each is a `venn.online.watch.SeenQuestion`.
        """
        self.look()
        watched = self._watched
        if watched is None:
            return []
        number = int(said) if NUMBER.fullmatch(said) else None
        found = [watched.question(said), *([] if number is None else [watched.question(number)])]
        if number is not None and not any(found) and (at := watched.moment(number)) is not None:
            found = [watched.question(at.id)]
        return [one for one in found if one is not None]

    @staticmethod
    def _goes_on(run: FollowedRun, watched: Watched) -> bool:
        """Whether the opened run continues the one seen before, and is not a copy of an earlier state."""
        return run.created == watched.created and run.counts.answered <= watched.counts().answered

    def close(self) -> None:
        """Close the file; a later look opens it again."""
        if self._watched is not None:
            self._watched.close()
        self._watched = None
