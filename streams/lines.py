"""JSON lines and CSV rows as live sources: files that grow and standard input, found again after a restart."""

from __future__ import annotations

import csv
import glob
import os
import re
import select
import sys
import time
import zlib
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Literal, NamedTuple

from streams.checks import LONGEST, distinct_names, flag, whole_number
from streams.form import Decoder, Form, Parts, check_id
from streams.header import check_delimiter, check_one_name
from streams.json_text import utf8
from streams.messages import ErrorHandler, Message, MessagesLost, Position, Reader, logger
from streams.schema import Numeric, Skip

CHUNK = 1 << 16
#: Bytes at a file's start that identify it.
HEAD = 1024
#: Seconds between two looks at a file that may have grown.
POLL = 0.05


class Line(NamedTuple):
    """One line without its end; None if it is too long."""

    raw: bytes | None
    number: int
    position: Position


class LinePlace(NamedTuple):
    """Where reading stands in which file: bytes and lines read, the file's number, a checksum of its start."""

    offset: int
    line: int
    inode: int
    head: int

    def __str__(self) -> str:
        return f"{self.offset}:{self.line}:{self.inode}:{self.head:08x}"

    @classmethod
    def parse(cls, text: Position) -> LinePlace:
        """Return the place written by `str`."""
        if not isinstance(text, str):
            raise TypeError(f"position must be text that this source gave, got {text!r}")
        found = re.fullmatch(r"([0-9]{1,18}):([0-9]{1,18}):([0-9]{1,39}):([0-9a-f]{8})", text, re.ASCII)
        if found is None:
            raise ValueError(f"position must be text that this source gave, got {text!r}")
        offset, line, inode, head = found.groups()
        return cls(int(offset), int(line), int(inode), int(head, 16))


class _Splitter:
    """Cuts bytes into lines; an unfinished line waits."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """Number of bytes of the line that has no end yet."""
        return self.dropped + len(self.rest)

    def push(self, chunk: bytes) -> Iterator[tuple[bytes | None, int]]:
        """Yield each line that `chunk` ends, None for a long one, with its number of bytes, the end included."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if self.waiting or end - start > LONGEST:
                self.rest += chunk[start:end]
                yield self.pop(1)
            else:
                yield chunk[start:end], end - start + 1
            start = end + 1
        self.rest += chunk[start:]
        if len(self.rest) > LONGEST:
            self.dropped += len(self.rest)
            self.rest.clear()

    def pop(self, end: int = 0) -> tuple[bytes | None, int]:
        """Return the unfinished line."""
        size = self.waiting + end
        raw = None if self.dropped or len(self.rest) > LONGEST else bytes(self.rest)
        self.rest.clear()
        self.dropped = 0
        return raw, size


class LineReader(Reader):
    """A source in which every line is a message; subclasses say what a line holds."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        form: Form | None = None,
        follow: bool = True,
        bad: ErrorHandler | None = None,
        lost: ErrorHandler | None = None,
        wait: float = 1.0,
        name: str | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f'path must be the path of a file, or "-" for standard input, got {path!r}')
        self.follow = flag("follow", follow)
        self.path = None if path == "-" else Path(path).absolute()
        self.once = self.path is None
        self._shown = "standard input" if self.path is None else str(path)
        default = "standard input" if self.path is None else f"file {self.path}"
        super().__init__(default if name is None else name, form, bad, lost, wait)

    @abstractmethod
    def parts(self, text: str) -> Parts:
        """Return the parts of the message in a line."""

    def heading(self, raw: bytes | None, number: int) -> bool:
        """Read the first line that is not empty as a heading; return whether it is one."""
        return False

    def _check(self, position: Position | None) -> None:
        if position is None:
            return
        if self.path is None:
            whole_number("position", position, 0)
        else:
            LinePlace.parse(position)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        if self.path is None:
            lines = self._standard_input(0 if position is None else int(position))
        else:
            lines = self._files(self.path, None if position is None else LinePlace.parse(position))
        for line in lines:
            if line is None:
                yield None
            elif line.raw is None or line.raw.strip():
                yield self._read(partial(self._line, line.raw), self.where(line.number), line.position)

    def where(self, number: int) -> str:
        return f"{self._shown}, line {number}"

    def _line(self, raw: bytes | None) -> Parts:
        if raw is None:
            raise ValueError(f"must have at most {LONGEST} bytes, got more")
        return self.parts(utf8(raw.removesuffix(b"\r")))

    # Standard input --------------------------------------------------------------------------------------------------

    def _standard_input(self, number: int) -> Generator[Line | None, None, None]:
        if sys.stdin is None:
            raise ValueError("- must be an open standard input, got one that was closed before the start")
        splitter, headed, handle = _Splitter(), False, sys.stdin.fileno()
        while True:
            # Windows cannot wait for a pipe: there it reads, and Ctrl-C waits for a line.
            if os.name != "nt" and not select.select([handle], [], [], self._wait)[0]:
                self.holding = False  # the rest of a line that nobody ends is not waited for
                yield None
                continue
            # The rest of a line byte by byte, so that no other line is begun: who reads the pipe next has that whole.
            chunk = os.read(handle, 1 if 0 < splitter.waiting < CHUNK else CHUNK)
            pieces = list(splitter.push(chunk)) if chunk else [splitter.pop()] if splitter.waiting else []
            self.holding = splitter.waiting > 0
            for left, (raw, _) in enumerate(pieces, 1 - len(pieces)):
                self.holding = left < 0 or splitter.waiting > 0
                number += 1
                if not headed and (raw is None or raw.strip()):
                    headed = True
                    raw = raw and raw.removeprefix(b"\xef\xbb\xbf")
                    if self.heading(raw, number):
                        continue
                yield Line(raw, number, number)
            if not chunk:
                return

    # Files -----------------------------------------------------------------------------------------------------------

    def _files(self, path: Path, place: LinePlace | None) -> Generator[Line | None, None, None]:
        said = False
        while True:
            file = self._open(path, place)
            if file is None:
                if not self.follow:
                    raise FileNotFoundError(f"there is no file {self._shown}")
                if not said:
                    logger.warning("there is no file %s yet: waiting for it", self._shown)
                said = True
                time.sleep(min(self._wait, 0.5))
                yield None
                continue
            with file:
                yield from self._one(file, path, place)
                if not self.follow and not _moved(file, path):
                    return
            said, place = False, None

    def _open(self, path: Path, place: LinePlace | None) -> FileIO | None:
        """Return the file to read, at its start: the one at the path, or the one that stood there before it."""
        try:
            file = path.open("rb", buffering=0)
        except FileNotFoundError:
            file = None
        if place is None or (file is not None and os.fstat(file.fileno()).st_ino == place.inode):
            return file
        # Renamed while nobody looked (logrotate): read it to its end first, unless another one came in between.
        old = _renamed(path, place.inode)
        if old is not None and self._same(old, place) is None:
            if file is not None:
                file.close()
            logger.warning("%s was renamed to %s: reading that to its end first", self._shown, old.name)
            return old
        if old is not None:
            old.close()
        return file

    def _same(self, file: FileIO, place: LinePlace) -> str | None:
        """Return None if `place` was taken from this file, otherwise why not."""
        status = os.fstat(file.fileno())
        if status.st_ino != place.inode:
            return "is another file than the one that was read"
        if status.st_size < place.offset:
            return f"has {status.st_size} bytes, fewer than the {place.offset} that were read: it was cut short"
        if zlib.crc32(_head(file, place.offset)) != place.head:
            return "does not begin as it did when it was read: it was written anew"
        return None

    def _lose(self, why: str, line: int) -> None:
        gone = f"{self._shown} {why}; what came after line {line} may be lost"
        self._refuse(MessagesLost(f"{gone}. Without a position it is read from its start"))

    def _one(self, file: FileIO, path: Path, place: LinePlace | None) -> Generator[Line | None, None, None]:
        """Yield the lines of one file, until it ends or another one has taken its place."""
        if place is not None and (why := self._same(file, place)):
            self._lose(why, place.line)
            place = None
        inode = os.fstat(file.fileno()).st_ino
        offset, number = (0, 0) if place is None else (place.offset, place.line)
        head = _head(file, offset)
        # A last line without an end was read as it was (follow=False): only its end may come now.
        unended = offset > 0 and _at(file, offset - 1, 1) != b"\n"
        headed = offset > 0
        if headed and (first := _first_line(file, offset)) is not None:
            self.heading(*first)
        file.seek(offset)
        splitter, quiet, idle = _Splitter(), 0.0, False
        while True:
            chunk = file.read(CHUNK) or b""
            if chunk:
                if idle and _head(file, len(head)) != head:
                    return self._lose("does not begin as it did: it was written anew", number)
                pieces, quiet, idle = splitter.push(chunk), 0.0, False
            else:
                size = os.fstat(file.fileno()).st_size
                if size < offset + splitter.waiting:
                    return self._lose(f"has {size} bytes, fewer than were read: it was cut short", number)
                moved = self.follow and quiet >= self._wait and _moved(file, path)
                if self.follow and not moved:
                    # The writer may still hold the renamed file and finish a line: give it a moment.
                    idle = True
                    if quiet >= self._wait:
                        quiet = 0.0
                        yield None
                    time.sleep(min(POLL, self._wait))
                    quiet += min(POLL, self._wait)
                    continue
                pieces = iter([splitter.pop()] if splitter.waiting else [])
            for raw, size in pieces:
                offset += size
                if len(head) < HEAD:
                    head = _head(file, offset)
                if unended:
                    unended = False
                    if raw is None or raw.strip():
                        self._lose("had a last line without an end, which has grown since it was read", number)
                    continue
                number += 1
                if number == 1 and raw is not None:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if not headed and (raw is None or raw.strip()):
                    headed = True
                    if self.heading(raw, number):
                        continue
                yield Line(raw, number, str(LinePlace(offset, number, inode, zlib.crc32(head))))
            if not chunk:
                if self.follow:
                    logger.info("another file has taken the place of %s: reading it", self._shown)
                return None


def _moved(file: FileIO, path: Path) -> bool:
    """Whether another file stands at `path`; if there is none, one may appear in a moment."""
    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _renamed(path: Path, inode: int) -> FileIO | None:
    """Return the file that stood at `path`, if it is the latest of those beside it with the same beginning."""
    beside: dict[Path, os.stat_result] = {}
    for entry in path.parent.glob(glob.escape(path.name) + "?*"):
        with suppress(FileNotFoundError):
            beside[entry] = entry.stat()
    for entry, status in beside.items():
        if status.st_ino == inode and status.st_mtime_ns >= max(other.st_mtime_ns for other in beside.values()):
            with suppress(FileNotFoundError):
                return entry.open("rb", buffering=0)
    return None


def _at(file: FileIO, offset: int, size: int) -> bytes:
    """Return bytes of the file without moving its position."""
    place = file.tell()
    file.seek(offset)
    raw = file.read(size) or b""
    file.seek(place)
    return raw


def _head(file: FileIO, offset: int) -> bytes:
    """Return the first bytes of what was read, enough to identify the file."""
    return _at(file, 0, min(offset, HEAD))


def _first_line(file: FileIO, offset: int) -> tuple[bytes, int] | None:
    """Return the first line before `offset` that is not empty, with its number."""
    lines = _at(file, 0, min(offset, LONGEST)).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return next(((raw, number) for number, raw in enumerate(lines, 1) if raw.strip()), None)


class JSONLines(LineReader):
    """Lines of JSON, in a file that grows or on standard input: {"id": 7, "x": [1, 2.5], "y": "no"}.

    `x` may also be an object from feature to value, where the form names the features; `id` is text or an
    integer, `y` text, a number or a truth value. A message without `y` (absent or null) is a question, one
    without `x` an answer. Other keys and empty lines are ignored. A line is read once its end has been written.
    `to_json` writes such lines.

    A file may be renamed and another one begun under its name (logrotate with `create`): the old one
    (in.jsonl.1 beside in.jsonl) is first read to its end, also after a restart. A file that is cut short or
    written anew is noticed (see `lost`).

    Parameters
    ----------
    path : path or "-"
        "-" is standard input. It cannot be read twice: its position only counts lines, and after a restart its
        writer must continue after the last committed line.
    form : Form, optional
        Features, classes, schema and scaling.
    follow : bool, default True
        True: wait for more at the end of a file. False: end there; a last line without a line end is read too.
        Standard input ends when its writer does.
    bad : callable, optional
        ErrorHandler called for every line that is not a message (`BadMessage`), for instance `Tally()`; the line is
        then skipped. By default the error is raised.
    lost : callable, optional
        ErrorHandler called when lines may be lost before they were read (`MessagesLost`); the file is then read from
        its start. By default the error is raised.
    wait : float > 0, default 1
        Seconds without a line after which None is yielded.
    name : str, optional
        By default made of the absolute path.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.
    FileNotFoundError
        While iterating with follow=False. With follow=True a file that does not exist is waited for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.jsonl"
    ...     _ = path.write_text('{"id": 1, "x": [0.5, 2]}\\n{"id": 1, "y": "no"}\\n')
    ...     source = JSONLines(path, follow=False)
    ...     question, answer = source.messages()
    ...     again = list(source.messages(question.position))
    >>> question.id, question.x, question.y
    (1, array([0.5, 2. ]), None)
    >>> again == [answer]
    True
    """

    def __repr__(self) -> str:
        return f"JSONLines({'-' if self.path is None else str(self.path)!r}, form={self.form!r}, follow={self.follow})"

    def parts(self, text: str) -> Parts:
        return self._decoder.json(text)


class NamesAgain(ValueError):
    """Raised at the row of names inside files that were joined: it stands for no example."""


class CSVRows(LineReader):
    """Rows of a CSV file that grows or comes on standard input; the first row names the columns.

    A row without a label ("", "?", NA, nan, null and the like, unless that is a class) is a question; a row with only
    id and label is an answer. Every row is one line: a quoted field may hold delimiters but no line end, since a quote
    that is never closed would block the stream for ever. Everything else is as for `JSONLines`.

    Parameters
    ----------
    path : path or "-"
    label : str, optional
        Name of the label's column. None: questions only.
    id : str, optional
        Name of the id's column. Ids are text.
    delimiter : str of one character
    decimal : "." or ",", default "."
        What stands before the decimals of numbers.
    thousands : str, optional
        What stands between their groups of digits, see `Numeric`.
    form, follow, bad, lost, wait, name
        As for `JSONLines`. By default the features are all other columns except those that the schema skips;
        columns that a form does not name are ignored.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described; while iterating, when the row of names is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.csv"
    ...     _ = path.write_text("key,width,height,fruit\\nk1,0.5,2,\\nk1,,,lime\\n")
    ...     for message in CSVRows(path, label="fruit", id="key", follow=False).messages():
    ...         print(message.id, message.x, message.y)
    k1 [0.5 2. ] None
    k1 None lime
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        label: str | None,
        *,
        id: str | None = None,
        delimiter: str = ",",
        decimal: Literal[".", ","] = ".",
        thousands: str | None = None,
        form: Form | None = None,
        follow: bool = True,
        bad: ErrorHandler | None = None,
        lost: ErrorHandler | None = None,
        wait: float = 1.0,
        name: str | None = None,
    ) -> None:
        super().__init__(path, form=form, follow=follow, bad=bad, lost=lost, wait=wait, name=name)
        for parameter, column in (("label", label), ("id", id)):
            if column is not None and not isinstance(column, str):
                raise TypeError(f"{parameter} must be the name of a column, or None, got {column!r}")
        if label is not None and label == id:
            raise ValueError(f"id must be another column than label, got {id!r} for both")
        check_delimiter(delimiter)
        self._decoder = Decoder(self.form, textual=True, written=Numeric(decimal=decimal, thousands=thousands))
        self.label, self.id, self.delimiter = label, id, delimiter
        self._columns: list[str] = []
        self._at_id: int | None = None  # places of columns
        self._at_label: int | None = None
        self._places: list[int] = []  # of the features
        self._needed: list[int] = []  # of those that the schema does not skip

    def __repr__(self) -> str:
        path = "-" if self.path is None else str(self.path)
        return f"CSVRows({path!r}, {self.label!r}, id={self.id!r}, form={self.form!r}, follow={self.follow})"

    def heading(self, raw: bytes | None, number: int) -> bool:
        where = self.where(number)
        try:
            names = list(distinct_names("column names", self._fields(utf8((raw or b"").removesuffix(b"\r")))))
            if len(names) == 1:
                check_one_name("a file of rows", names[0], self.delimiter)
            for parameter, column in (("label", self.label), ("id", self.id)):
                if column is not None and column not in names:
                    raise ValueError(f"{parameter} must be one of the columns {names!r}, got {column!r}")
            if self._decoder.features is None:
                self._decoder.name(tuple(name for name in names if name not in (self.label, self.id)))
            for feature in self._decoder.features or ():
                if feature not in names or feature in (self.label, self.id):
                    raise ValueError(f"features must be columns of {names!r} other than label and id, got {feature!r}")
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        self._columns, features = names, self._decoder.features or ()
        schema = self.form.schema or {}
        self._at_id, self._at_label = (None if one is None else names.index(one) for one in (self.id, self.label))
        self._places = [names.index(name) for name in features]
        self._needed = [names.index(name) for name in features if not isinstance(schema.get(name), Skip)]
        return True

    def _fields(self, text: str) -> list[str]:
        if 0 < len(text) <= csv.field_size_limit() and not ('"' in text or "\r" in text or "\n" in text):
            return text.split(self.delimiter)  # most rows need no reader, which takes three times as long
        try:
            return next(csv.reader([text], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise ValueError(f"must be a row of CSV on one line: {error}") from None

    def parts(self, text: str) -> Parts:
        fields = self._fields(text)
        if len(fields) != len(self._columns):
            raise ValueError(f"must have {len(self._columns)} fields, got {len(fields)}")
        if fields == self._columns:
            raise NamesAgain("must be an example, got the names of the columns again")
        identity = check_id(fields[self._at_id]) if self._at_id is not None and fields[self._at_id] else None
        label = None if self._at_label is None else self._decoder.text_label(fields[self._at_label])
        values = [fields[place] for place in self._places]
        known = any(fields[place] for place in self._needed)
        return self._decoder.parts(identity, self._decoder.row(values) if known else None, label)
