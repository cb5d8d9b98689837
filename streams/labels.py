"""Teachers decide when labels come: they turn a labelled stream into questions and late, or missing, answers."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple, Protocol

import numpy as np

from streams.checks import Floats, Label, real_number, whole_number
from streams.frames import columns_of
from streams.messages import Message, Position, Reader

# See DRAW in synthetic.py: delays must not be made of the numbers that shuffle the stream or break ties.
WAIT, WITHHOLD = 0xDE1A9, 0x1A2F


class Question(NamedTuple):
    """An object without its label.

    Examples
    --------
    >>> Question(1, "x")
    Question(id=1, x='x')
    """

    id: int
    x: Floats


class Answer(NamedTuple):
    """The label of an earlier question.

    Examples
    --------
    >>> Answer(1, "yes")
    Answer(id=1, y='yes')
    """

    id: int
    y: Label


class Teacher(Protocol):
    """Decides when each label comes, without looking at objects or labels."""

    def delays(self) -> Iterator[int | None]:
        """Yield for each question, without end, how many more questions come before its answer; None: no answer."""


@dataclass(frozen=True)
class Immediate:
    """Each label comes before the next question.

    Examples
    --------
    >>> list(islice(Immediate().delays(), 3))
    [0, 0, 0]
    """

    def delays(self) -> Iterator[int | None]:
        """Yield 0 for ever."""
        while True:
            yield 0


@dataclass(frozen=True)
class Delayed:
    """Each label comes when `steps` further questions have been asked.

    Parameters
    ----------
    steps : int >= 0

    Raises
    ------
    TypeError, ValueError
        `steps` is not as described.

    Examples
    --------
    >>> list(islice(Delayed(10).delays(), 3))
    [10, 10, 10]
    """

    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole_number("steps", self.steps, 0))

    def delays(self) -> Iterator[int | None]:
        """Yield `steps` for ever."""
        while True:
            yield self.steps


@dataclass(frozen=True)
class RandomDelay:
    """Labels come in any order: each delay is independent, P(k) = (1 - q) q^k, k = 0, 1, ..., with a given mean.

    Parameters
    ----------
    mean : float >= 0
        Mean number of further questions asked before a label comes, q / (1 - q).
    seed : int >= 0, default 0

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> list(islice(RandomDelay(0).delays(), 3))
    [0, 0, 0]
    """

    mean: float
    seed: int = 0

    def __post_init__(self) -> None:
        # numpy draws no geometric number beyond 2^63; no stream waits for a millionth of that.
        object.__setattr__(self, "mean", real_number("mean", self.mean, 0, 1e12))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0))

    def delays(self) -> Iterator[int | None]:
        """Yield the drawn delays."""
        rng = np.random.default_rng((WAIT, self.seed))
        while True:
            yield int(rng.geometric(1 / (1 + self.mean))) - 1


@dataclass(frozen=True)
class Lazy:
    """A share of the labels never comes, chosen at random; the others come as another teacher says.

    Parameters
    ----------
    share : float in [0, 1]
        Probability that a label never comes, the same for every example.
    seed : int >= 0, default 0
    teacher : teacher, default Immediate()

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> Lazy(0.5, teacher=Delayed(10))
    Lazy(share=0.5, seed=0, teacher=Delayed(steps=10))
    """

    share: float
    seed: int = 0
    teacher: Teacher = Immediate()

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", real_number("share", self.share, 0, 1))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0))
        _check_teacher(self.teacher)

    def delays(self) -> Iterator[int | None]:
        """Yield the other teacher's delays, None for what never comes."""
        # A lazy teacher inside a lazy one often has the same seed, but must draw numbers of its own.
        rng = np.random.default_rng((WITHHOLD, self.depth(), self.seed))
        for delay in self.teacher.delays():
            yield None if rng.random() < self.share else delay

    def depth(self) -> int:
        """Return how many lazy teachers are inside this one."""
        return 1 + self.teacher.depth() if isinstance(self.teacher, Lazy) else 0


class Lessons(Reader):
    """Questions and answers made of labelled examples; every `for event in lessons` starts from the first.

    Made by `teach`. It is also a live source (see `Source`) whose position counts the events, so a program for
    live data can be tried on any stream.

    Parameters
    ----------
    stream : re-iterable of (x, y)
    teacher : teacher

    Examples
    --------
    >>> lessons = Lessons([("a", 0), ("b", 1)], Immediate())
    >>> for message in lessons.messages(2):
    ...     print(message)
    Message(id=2, x='b', y=None, position=3)
    Message(id=2, x=None, y=1, position=4)
    """

    def __init__(self, stream: Iterable[tuple[Floats, Label]], teacher: Teacher) -> None:
        if not isinstance(stream, Iterable):
            raise TypeError(f"stream must be an iterable of (x, y), got {stream!r}")
        if isinstance(stream, Iterator):
            raise TypeError(f"stream must start anew at every loop, got the iterator {stream!r}: pass a list of it")
        if columns_of(stream) is not None or isinstance(stream, str | bytes | Mapping):
            # A frame iterates over its column names, and two names of two letters would pass for pairs.
            raise TypeError(
                f"stream must be an iterable of (x, y), got a {type(stream).__name__}: see from_arrays and from_frames"
            )
        _check_teacher(teacher)
        super().__init__(f"{stream!r} taught by {teacher!r}", None, None, None, 1.0)
        self.stream = stream
        self.teacher = teacher

    @property
    def arrived(self) -> bool:
        """Whether all events are at hand, and reading them ahead waits for nothing."""
        return isinstance(self.stream, list | tuple) or getattr(self.stream, "arrived", False) is True

    def __repr__(self) -> str:
        return f"teach({self.stream!r}, {self.teacher!r})"

    def __iter__(self) -> Iterator[Question | Answer]:
        waiting: list[tuple[int, int, Label]] = []
        for i, (x, y), delay in zip(count(1), self.stream, self.teacher.delays(), strict=False):
            yield Question(i, x)
            if delay is not None:
                heapq.heappush(waiting, (i + delay, i, y))
            while waiting and waiting[0][0] <= i:
                _, known, label = heapq.heappop(waiting)
                yield Answer(known, label)
        while waiting:
            _, known, label = heapq.heappop(waiting)
            yield Answer(known, label)

    def _check(self, position: Position | None) -> None:
        if position is not None:
            whole_number("position", position, 0)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        done = 0 if position is None else int(position)
        for number, event in enumerate(islice(self, done, None), done + 1):
            if isinstance(event, Question):
                yield Message(event.id, event.x, None, number)
            else:
                yield Message(event.id, None, event.y, number)


def teach(stream: Iterable[tuple[Floats, Label]], teacher: Teacher) -> Lessons:
    """Return the stream as questions and answers: the objects in order, each label when the teacher says.

    Example i of the stream, counted from 1, becomes `Question(i, x)` and later `Answer(i, y)`, or never. A label
    with delay k comes right after question i + k; labels due at once come in the order of their questions, and
    those still due when the stream ends come after the last question. The same on every iteration.

    A teacher knows neither objects nor labels, so the answered examples of an exchangeable stream are
    exchangeable. "Weak teachers" in the book says what predictions under slow and lazy teachers are worth.

    Parameters
    ----------
    stream : re-iterable of (x, y)
    teacher : Immediate, Delayed, RandomDelay, Lazy or any other `Teacher`

    Returns
    -------
    Lessons
        Re-iterable; a live source as well.

    Raises
    ------
    TypeError
        The stream can be read only once, or `teacher` is not a teacher.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), section 4.3.

    Examples
    --------
    >>> for event in teach([("a", 0), ("b", 1), ("c", 0)], Delayed(1)):
    ...     print(event)
    Question(id=1, x='a')
    Question(id=2, x='b')
    Answer(id=1, y=0)
    Question(id=3, x='c')
    Answer(id=2, y=1)
    Answer(id=3, y=0)
    """
    return Lessons(stream, teacher)


def _check_teacher(teacher: object) -> None:
    if isinstance(teacher, type) or not callable(getattr(teacher, "delays", None)):
        raise TypeError(f"teacher must be Immediate(), Delayed(steps) or another with delays(), got {teacher!r}")
