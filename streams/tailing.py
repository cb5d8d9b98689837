"""Lines of files that grow and of standard input: read as they come, found again after a restart."""

from __future__ import annotations

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
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from streams.checks import LONGEST, whole_number
from streams.form import Form, Parts, utf8
from streams.messages import ErrorHandler, Message, MessagesLost, Position, Reader, logger

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


@dataclass(frozen=True)
class Place:
    """Where reading stands in which file: bytes and lines read, the file's number, a checksum of its start."""

    offset: int
    line: int
    inode: int
    head: int

    def __str__(self) -> str:
        return f"{self.offset}:{self.line}:{self.inode}:{self.head:08x}"

    @classmethod
    def parse(cls, text: Position) -> Place:
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
            self.rest += chunk[start:end]
            yield self.pop(1)
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
        if not isinstance(follow, bool):
            raise TypeError(f"follow must be True or False, got {follow!r}")
        self.path = None if path == "-" else Path(path).absolute()
        self.once = self.path is None
        self.follow = follow
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
            Place.parse(position)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        if self.path is None:
            lines = self._standard_input(0 if position is None else int(position))
        else:
            lines = self._files(self.path, None if position is None else Place.parse(position))
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

    def _files(self, path: Path, place: Place | None) -> Generator[Line | None, None, None]:
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

    def _open(self, path: Path, place: Place | None) -> FileIO | None:
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

    def _same(self, file: FileIO, place: Place) -> str | None:
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

    def _one(self, file: FileIO, path: Path, place: Place | None) -> Generator[Line | None, None, None]:
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
                yield Line(raw, number, str(Place(offset, number, inode, zlib.crc32(head))))
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
