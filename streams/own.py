"""A source of a user's own: whatever yields messages, with the form, the handlers and the errors of all others."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from streams.checks import python_label
from streams.form import Form, Parts, check_id
from streams.messages import ErrorHandler, Message, Position, Reader


class OwnSource(Reader):
    """Your own source as one of these: its objects and labels are checked and encoded as the form says.

    Parameters
    ----------
    source : object with `messages(position)`
        Yields a `Message` or None after a position, None after at most about a second without one; a position of None
        is the beginning. Its x is a sequence or a mapping of cells, its y a label, as they are. It may have `name`,
        `acknowledge(position)` and `close()`, and `once` and `holding` as those of a `MessageSource` that cannot be
        read twice.
    form : Form, optional
        Features, classes, schema and scaling.
    bad : callable, optional
        ErrorHandler called for every message that is not as the form says (`BadMessage`), which is then skipped. By
        default the error is raised.
    name : str, optional
        By default the source's own.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; while iterating, what the source yields is no message.

    Examples
    --------
    >>> class Two:
    ...     name = "two"
    ...     def messages(self, position=None):
    ...         rows = [("a", {"width": 1, "kind": "x"}, "no"), ("b", {"width": 2, "kind": "y"}, None)]
    ...         for place, row in enumerate(rows[position or 0 :], (position or 0) + 1):
    ...             yield Message(*row, place)
    >>> from streams import Nominal
    >>> form = Form(["width", "kind"], ["no", "yes"], {"kind": Nominal(["x", "y"])})
    >>> for message in OwnSource(Two(), form=form).messages():
    ...     print(message.id, message.x, message.y, message.position)
    a [1. 1. 0.] no 1
    b [2. 0. 1.] None 2
    >>> [message.id for message in OwnSource(Two(), form=form).messages(1)]
    ['b']
    """

    def __init__(
        self,
        source: Any,
        *,
        form: Form | None = None,
        bad: ErrorHandler | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(source, type) or not callable(getattr(source, "messages", None)):
            raise TypeError(f"source must have a method messages(position), got {source!r}")
        named: Any = getattr(source, "name", None) if name is None else name
        if name is None and not isinstance(named, str):
            raise TypeError(f"source must have a name, text that is the same after a restart, got {named!r}")
        super().__init__(named, form, bad, None, 1.0)  # it says itself what is lost, and when nothing comes
        self.source = source

    def __repr__(self) -> str:
        return f"OwnSource({self.source!r}, form={self.form!r})"

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether a message that was read cannot be read again."""
        return bool(getattr(self.source, "once", False))

    @property
    def holding(self) -> bool:  # type: ignore[override]
        """Whether such a source has more at hand."""
        return bool(getattr(self.source, "holding", False))

    def _check(self, position: Position | None) -> None:
        if position is not None:
            _checked_place("position", position)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        for message in self.source.messages(position):
            if message is None:
                yield None
                continue
            if not isinstance(message, tuple) or len(message) != len(Message._fields):
                raise TypeError(f"{self.name} must yield Message(id, x, y, position), or None, got {message!r:.100}")
            place = _checked_place("position of a message", message[-1])
            yield self._read(partial(self._parts, *message[:-1]), f"{self.name} at {place}", place)

    def _parts(self, id: Any, x: Any, y: Any) -> Parts:
        try:
            identity = None if id is None else check_id(python_label(id))
            point = None if x is None else self._decoder.point(x if isinstance(x, Mapping) else list(x))
            return self._decoder.parts(identity, point, None if y is None else self._decoder.label(python_label(y)))
        except TypeError as error:
            raise ValueError(str(error)) from None

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to `position` is committed, if it wants to know."""
        told = getattr(self.source, "acknowledge", None)
        if told is not None:
            told(position)

    def close(self) -> None:
        """End the messages, and close the source, if it can be closed."""
        super().close()
        ended = getattr(self.source, "close", None)
        if ended is not None:
            ended()


def _checked_place(name: str, position: Any) -> Position:
    """Return a position, or say what it must be."""
    if isinstance(position, bool) or not isinstance(position, int | str):
        raise TypeError(f"{name} must be an integer or text, got {position!r:.60}")
    return position
