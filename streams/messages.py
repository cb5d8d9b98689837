"""Live sources: messages with positions, the protocol of a source, and its errors."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, Protocol, Self, runtime_checkable

from streams.checks import Floats, Label, filled_text, is_finite, whole_number
from streams.form import Decoder, Form, Identity, Parts

#: A place in a source, JSON-able. Only the source that gave it can read it.
Position = str | int

logger = logging.getLogger("streams")


class Message(NamedTuple):
    """One message of a live source: a question, an answer, or an example with both.

    Parameters
    ----------
    id : int, str or None
        Shared by an answer and its question. May be None where `x` is given; no answer can then refer to it.
    x : (d,) finite float64, read-only, or None
        The object. None where the message is only the label of an earlier object.
    y : label or None
        None: the label is not known yet, or never will be.
    position : str or int
        The place in the source after this message.

    Examples
    --------
    >>> Message(7, None, "spam", position=12)
    Message(id=7, x=None, y='spam', position=12)
    """

    id: Identity | None
    x: Floats | None
    y: Label | None
    position: Position


class TimedMessage(Message):
    """A message that says when it happened: `at`, in seconds since 1970.

    Examples
    --------
    >>> TimedMessage.of(Message(7, None, "spam", position=12), 1.5).at
    1.5
    """

    at: float

    @classmethod
    def of(cls, message: Message, at: float) -> Self:
        """Return a message with its time."""
        made = cls(*message)
        made.at = at
        return made


@runtime_checkable
class MessageSource(Protocol):
    """Where messages come from: the protocol of a live source, endless or not.

    The consumer commits `position` in the same transaction as the effects of the message, and passes the last
    committed position to `messages` when it restarts. Then nothing is lost and nothing is done twice, whichever
    process dies and whenever:

        with source:
            for message in source.messages(journal.position(source.name)):
                if message is not None:
                    ...                                    # ask, answer, journal.commit(message.position)
                    source.acknowledge(message.position)

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from streams import JSONLines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.jsonl"
    ...     _ = path.write_text('{"id": 1, "x": [0.5]}\\n{"id": 1, "y": "no"}\\n')
    ...     with JSONLines(path, follow=False) as source:
    ...         first = next(source.messages())
    ...     with JSONLines(path, follow=False) as restarted:
    ...         rest = [message.y for message in restarted.messages(first.position)]
    >>> first.x, rest
    (array([0.5]), ['no'])
    """

    @property
    def name(self) -> str:
        """Identifies this source in a journal; the same after a restart. Holds no password."""

    def messages(self, position: Position | None = None) -> Iterator[Message | None]:
        """Return the messages after `position`; None starts from the first one there is.

        None in place of a message means that there is nothing right now. It comes after at most about a second
        without a message, so that the loop can commit, show that it is alive and notice Ctrl-C. One reader at a
        time: a second call ends the messages of the first.
        """

    def acknowledge(self, position: Position) -> None:
        """Tell a broker that everything up to `position` is committed. Other sources do nothing."""

    def close(self) -> None:
        """Close files and connections; may be repeated."""


class BadMessage(ValueError):
    """A message that cannot be read; the text says where it is and what is wrong.

    `source.messages(error.position)` continues after it.

    Parameters
    ----------
    text : str
    position : str or int
        The place in the source after the message.
    error : ValueError, optional
        What is wrong with it, without the place.

    Examples
    --------
    >>> error = BadMessage("in.jsonl, line 3: must be a JSON object, got '[]'", position=3)
    >>> print(error, "/", error.position)
    in.jsonl, line 3: must be a JSON object, got '[]' / 3
    """

    def __init__(self, text: str, position: Position, error: ValueError | None = None) -> None:
        super().__init__(text, position)
        self.position, self.error = position, error

    def __str__(self) -> str:
        return str(self.args[0])


class MessagesLost(RuntimeError):
    """Messages were lost before they were read: a file was cut short, a stream trimmed by its server.

    To go on, call `source.messages()`, which starts from what is left, or give the source a function `lost`,
    which receives the error and lets the source continue by returning.

    Examples
    --------
    >>> raise MessagesLost("in.jsonl has 10 bytes, fewer than the 70 that were read: it was cut short")
    Traceback (most recent call last):
    ...
    streams.messages.MessagesLost: in.jsonl has 10 bytes, fewer than the 70 that were read: it was cut short
    """


class Tally:
    """Counts skipped messages, up to a limit: for the parameters `bad` and `lost` of sources.

    The 1st, 10th, 100th, ... is also logged as a warning by the logger "streams".

    Parameters
    ----------
    limit : int >= 0, optional
        The first error beyond this number is raised.

    Attributes
    ----------
    count : int
        Errors so far. Starts from 0 in every process.
    last : Exception or None

    Raises
    ------
    TypeError, ValueError
        `limit` is not as described.

    Examples
    --------
    >>> tally = Tally(limit=100)
    >>> tally
    Tally(limit=100)
    >>> tally.count
    0
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = None if limit is None else whole_number("limit", limit, 0)
        self.count = 0
        self.last: Exception | None = None

    def __call__(self, error: Exception) -> None:
        """Count `error`, or raise it if it exceeds the limit."""
        self.count += 1
        self.last = error
        if self.limit is not None and self.count > self.limit:
            raise error
        if self.count == 10 ** (len(str(self.count)) - 1):
            logger.warning("skipped (%d so far): %s", self.count, error)

    def __repr__(self) -> str:
        return f"Tally(limit={self.limit})"


ErrorHandler = Callable[[Exception], object]


class Reader(ABC):
    """Base of the sources: the form of messages, the handlers of bad and lost messages, closing.

    Parameters
    ----------
    name : str
    form : Form, optional
    bad, lost : callable, optional
        Handlers of `BadMessage` and `MessagesLost`: if one returns, the source continues. None raises the error.
    wait : float > 0
        Seconds without a message after which None is yielded.

    Attributes
    ----------
    once : bool
        Whether a message that was read cannot be read again, as one from standard input: a loop that ends processes all
        that it has read.
    holding : bool
        Whether such a source has more at hand, taken from its pipe and not yet yielded.
    """

    once = holding = False

    def __init__(
        self, name: str, form: Form | None, bad: ErrorHandler | None, lost: ErrorHandler | None, wait: float
    ) -> None:
        self.name = filled_text("name", name)
        if form is not None and not isinstance(form, Form):
            raise TypeError(f"form must be a Form, got {form!r}")
        for parameter, told in (("bad", bad), ("lost", lost)):
            if told is not None and not callable(told):
                raise TypeError(f"{parameter} must be a function of the error, such as Tally(), or None, got {told!r}")
        if isinstance(wait, bool) or not isinstance(wait, int | float):
            raise TypeError(f"wait must be a number of seconds > 0, got {wait!r}")
        if not (is_finite(wait) and wait > 0):
            raise ValueError(f"wait must be a number of seconds > 0, got {wait!r}")
        self.form = Form() if form is None else form
        self._bad, self._lost, self._wait = bad, lost, float(wait)
        self._decoder = Decoder(self.form)
        self._running: Generator[Message | None, None, None] | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features, as declared or read in the first line; empty while none are known."""
        return self._decoder.names

    def messages(self, position: Position | None = None) -> Iterator[Message | None]:
        """Return the messages after `position`, see `MessageSource`.

        Raises
        ------
        TypeError, ValueError
            `position` does not come from this source.
        BadMessage, MessagesLost
            While iterating, where `bad` and `lost` do not let it pass.
        """
        self._check(position)
        self.close()
        self._running = self._messages(position)
        return self._running

    @abstractmethod
    def _check(self, position: Position | None) -> None:
        """Raise TypeError or ValueError unless `position` may be one of this source's."""

    @abstractmethod
    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        """Yield the messages after a checked position."""

    def acknowledge(self, position: Position) -> None:  # noqa: B027 - a broker may override it
        """Do nothing: the consumer keeps the position, this source keeps none."""

    def close(self) -> None:
        """Close files and connections; may be repeated. `messages` opens them again."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, decode: Callable[[], Parts], where: str, position: Position) -> Message | None:
        """Return the message, or None for a bad one that may be skipped.

        None gives the loop its turn even during a long run of bad messages.
        """
        try:
            identity, x, y, *at = decode()
            message = Message(identity, x, y, position)
            return TimedMessage.of(message, at[0]) if at else message
        except ValueError as error:
            self._refuse(BadMessage(f"{where}: {error}", position, error))
        return None

    def _refuse(self, error: BadMessage | MessagesLost) -> None:
        """Pass the error to its handler, if there is one; raise it otherwise."""
        told = self._bad if isinstance(error, BadMessage) else self._lost
        if told is None:
            raise error from None
        told(error)
