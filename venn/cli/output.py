"""Predictions as JSON lines, written after their transaction; lines lost when a process dies are written later."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import click

from venn.cli.errors import writing
from venn.online.chain import decode
from venn.online.journal import Journal
from venn.online.loop import Online
from venn.prediction import Label, Prediction, plain
from venn.predictors.blocks import dumps

KEY = "output"  # key beside the positions of sources in the journal
COLUMNS = "columns of "  # and a source's name: how its columns are read, also there
STDOUT = "-"
BEGIN = b'{"id": '  # of each line


def finite(found: Any) -> Any:
    """Return plain data as JSON can say it: null where a number is not finite, such as a width without bound."""
    if isinstance(found, Mapping):
        return {key: finite(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [finite(value) for value in found]
    return None if isinstance(found, float) and not isfinite(found) else found


def prediction_line(
    event: int,
    id: int | str,
    predictions: Mapping[str, Prediction],
    y: Label | None = None,
    more: Mapping[str, Any] | None = None,
) -> str:
    """Return the predictions for one question, its label if that has come, and `more`, as JSON on one line.

    Examples
    --------
    >>> import numpy as np
    >>> from venn.prediction import PredictionSet
    >>> prediction_line(3, "k", {"conformal": PredictionSet(np.array([0.5, 0.25]), ("no", "yes"))})
    '{"id": "k", "event": 3, "predictions": {"conformal": {"label": "no", "p_values": {"no": 0.5, "yes": 0.25},
    "guaranteed": "error rate"}}}'
    """
    said = dumps({name: plain(prediction) for name, prediction in predictions.items()})
    return json_line(event, id, said, y, more)


def json_line(event: int, id: int | str, said: str, y: Label | None = None, more: Any = None) -> str:
    """Return the line for predictions that are JSON already."""
    beside = ({} if y is None else {"y": y}) | (more or {})
    texts = "".join(f"{dumps(key)}: {dumps(value)}, " for key, value in beside.items())
    return f'{{"id": {dumps(id)}, "event": {event}, {texts}"predictions": {said}}}'


def only_predictions(option: str, path: str) -> None:
    """Refuse to append predictions to a file that begins with something else, such as one of data."""
    if os.path.isfile(path):  # not a pipe or a device
        with writing(option, path), open(path, "rb") as file:
            begins = file.read(len(BEGIN))
        if not BEGIN.startswith(begins):
            raise click.UsageError(
                f"{option} must be a new file, or one that holds predictions, got {path}, which holds something else"
            )


class Output:
    """Writes predictions to a file or stdout.

    Each transaction of the journal records what had been written before it, and which of its own lines hold the label:
    those of messages with both. So after a death it is known which lines
    may be missing: those of the last transaction at most. In a file they are compared with what is there and only the
    missing bytes are written: every prediction is in it once. Nobody knows how much of stdout arrived: there the last
    lines may come twice, the same to the byte, with the same `event`.

    Parameters
    ----------
    to : str
        "-" for stdout, or the path of a file, which is appended to. It may be renamed during the run.
    durable : bool
        Let lines reach the disk before they count as written.
    """

    def __init__(self, to: str, durable: bool = False) -> None:
        self.path = None if to == STDOUT else Path(to).absolute()
        self._durable = durable
        self._event = 0  # the last event that is written completely
        self._size: int | None = None  # of the file after that
        self._noted: dict[str, Any] | None = None

    def catch_up(self, online: Online, journal: Journal) -> int:
        """Write the lines that were lost when the process died; return how many.

        Raises
        ------
        click.ClickException, OSError
            The file cannot be opened or written.
        """
        known = online.position(KEY)
        self._noted = known
        if not isinstance(known, dict):
            self._event = journal.events
            self._write([])  # an error comes now, not after the first transaction
            return 0
        self._event, self._size = known["event"], known["size"]
        lines, last, space, labelled = [], self._event, online.panel.space, {*known.get("labelled", ())}
        for question in journal.questions(self._event):
            predictions = decode(question.predictions, tuple(online.panel), space)
            found = journal.found(question.id) if question.event in labelled else None
            y = None if found is None or found.truth is None else space.decode(found.truth)
            more = known.get("more", {}).get(str(question.event))
            lines.append(prediction_line(question.event, question.id, predictions, y, more))
            last = question.event
        same = self.path is not None and known["path"] == str(self.path)
        written = self._write(lines, self._size if same else None)
        self._event = last
        return written

    def note(
        self, online: Online, labelled: Sequence[int] = (), more: Mapping[int, Mapping[str, Any]] | None = None
    ) -> None:
        """Record in the open transaction what was written before it, and which of its questions have labels.

        `more` has further content of their lines, by event.
        """
        path = None if self.path is None else str(self.path)
        now: dict[str, Any] = {"path": path, "event": self._event, "size": self._size, "labelled": [*labelled]}
        if more:
            now["more"] = {str(event): one for event, one in more.items()}
        if now != self._noted:
            online.reach(KEY, now)
            self._noted = now

    def write(self, lines: Iterable[str], event: int) -> None:
        """Write the lines of a transaction, up to an event."""
        self._write(list(lines))
        self._event = event

    def _write(self, lines: list[str], size: int | None = None) -> int:
        """Write lines; those at the end of a file that had `size` bytes before them only once; return how many."""
        content = "".join(f"{line}\n" for line in lines).encode()
        if self.path is None:
            if content:
                # Not through a text layer: a line is written whole or the run ends.
                with writing("--out", STDOUT):
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
            return len(lines)
        # Opened each time: after a renaming, as by logrotate, there is a new file.
        with writing("--out", self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            regular = stat.S_ISREG(os.fstat(handle).st_mode)
            if size is not None and regular:
                content = _missing(handle, size, content)
            with writing("--out", self.path):
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(handle, rest) :]
            if self._durable and regular:
                os.fsync(handle)
            self._size = os.fstat(handle).st_size if regular else None
        finally:
            os.close(handle)
        return content.count(b"\n")


def _missing(handle: int, size: int, content: bytes) -> bytes:
    """Return the part of `content`, which belongs after `size` bytes of a file, that is not there."""
    there = os.fstat(handle).st_size
    if size <= there:
        tail = _read(handle, size, min(there - size, len(content)))
        if content.startswith(tail) and there - size <= len(content):
            return content[len(tail) :]
        if tail == content:  # and something after it: predictions that the journal lost in a power failure
            content = b""
    # A new file after a renaming, or foreign lines: nobody knows what is missing, so all is written again.
    ended = there == 0 or _read(handle, there - 1, 1) == b"\n"
    return content if ended else b"\n" + content


def _read(handle: int, offset: int, size: int) -> bytes:
    os.lseek(handle, offset, os.SEEK_SET)
    found = b""
    while len(found) < size and (part := os.read(handle, size - len(found))):
        found += part
    return found
