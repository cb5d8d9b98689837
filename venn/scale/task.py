"""One replay as a task: its parts, and the name of its result, which depends on all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from venn.parameters import integer
from venn.scale.digests import digest

TITLE = 60  # characters of a file's name for people to read
#: Fields of a row; no parameter may have one of these names.
FIELDS = frozenset({
    "examples", "seconds", "guaranteed", "error", "record",
    "accuracy", "lower", "upper", "width", "log_loss", "brier", "credibility", "confidence",
})  # fmt: skip
LEVELS = re.compile(r"(error|size)_[0-9.]+")  # names of the means of prediction sets


@dataclass(frozen=True)
class Task:
    """One replay, described so that another process can do it.

    Parameters
    ----------
    labels : mapping of str to str, int, float, bool or None
        Identifies the task: columns of the table.
    make : callable
        Called without arguments, returns a stream and a predictor or panel that has learned nothing. A function at the
        top of a module, a class, or a `functools.partial` of one. Pass what it depends on as arguments: numbers, text,
        arrays, functions, lists and dicts, or objects that can be pickled, whose content counts.
    steps : int >= 1, optional
        Stop after so many examples.
    edition : int, default 0
        Raise it when a result would change although nothing here has changed.

    Attributes
    ----------
    digest : str
        Of all these, and of the source text of the functions: a name for the result.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; a lambda or nested function has no name to identify it; or an object has no
        content that pickle could show.

    Examples
    --------
    >>> from functools import partial
    >>> def replay_of(shuffle):
    ...     import streams, venn
    ...     stream = streams.load("car", shuffle=shuffle)
    ...     return stream, venn.Forecaster(stream.classes)
    >>> task = Task({"shuffle": 0}, partial(replay_of, 0), steps=30)
    >>> dict(task.labels), len(task.digest)
    ({'shuffle': 0}, 20)
    """

    labels: Mapping[str, str | int | float | bool | None]
    make: Callable[[], tuple[Iterable[Any], Any]] = field(repr=False)
    steps: int | None = None
    edition: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", {name: plain(value) for name, value in self.labels.items()})
        for name, value in self.labels.items():
            if name in FIELDS or LEVELS.fullmatch(name):
                raise ValueError(f"labels must leave {', '.join(sorted(FIELDS))} to the results, got {name!r}")
            if not may_be_label(value):
                raise TypeError(f"labels must be text or numbers, got {value!r} as {name}")
        if not callable(self.make):
            raise TypeError(f"make must be callable, got {self.make!r}")
        if self.steps is not None:
            integer("steps", self.steps, 1)
        assert self.digest  # better an error now than in a worker

    @cached_property
    def digest(self) -> str:
        """A digest, in twenty characters, of everything that the result depends on."""
        return digest("make", [dict(self.labels), self.make, self.steps, self.edition])

    @property
    def name(self) -> str:
        """Name of the result's files: some words for people, and the digest."""
        words = "-".join(str(value) for value in self.labels.values() if value is not None)
        return f"{re.sub('[^A-Za-z0-9._-]+', '_', words)[:TITLE].strip('._-') or 'replay'}-{self.digest}"


def plain(value: Any) -> Any:
    """Return numpy's numbers and text as Python's."""
    return value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.str_) else value


def may_be_label(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
