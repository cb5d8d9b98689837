"""Locks on files that end with their process: only one process may learn into a journal, whatever the names of it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from time import sleep
from zlib import crc32

try:
    import fcntl
except ImportError:  # not a Unix: nothing keeps a second process away there
    fcntl = None  # type: ignore[assignment]

MOMENT = 0.02  # seconds

#: Device and inode of the files that this process owns by `own`. To open one of them again and to close it would take
#: SQLite's locks on it away, which POSIX drops when a process closes any of its handles of a file.
_owned: set[tuple[int, int]] = set()


def take(path: str | os.PathLike[str]) -> int | None:
    """Lock a file for this process, and make it if missing; return its handle, or None on a system without locks.

    Raises
    ------
    BlockingIOError
        Another process has the lock.
    OSError
        The file cannot be opened.
    """
    if fcntl is None:
        return None  # type: ignore[unreachable]
    return _locked(os.open(Path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))


def beside(journal: str | os.PathLike[str]) -> str:
    """Return the path of a journal's lock file, the same by whatever name of the journal."""
    return f"{os.path.realpath(journal)}-lock"


def held(journal: str | os.PathLike[str]) -> bool | None:
    """Return whether a process has locked a journal; None where that cannot be known."""
    if fcntl is None:
        return None  # type: ignore[unreachable]
    try:
        handle = os.open(beside(journal), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for a moment, which `_locked` waits for
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _locked(handle: int) -> int:
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(MOMENT)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def release(handle: int) -> None:
    """Unlock and close. Closing alone would leave the lock with a forked child."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


class Owned:
    """A database that belongs to this process by its inode, so that no other name of it lets a second one in.

    The file is made if there is none. Its locks are beside those of SQLite: on Linux the two do not meet. Elsewhere
    they may, and there only the lock beside the file (`take`) holds.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    BlockingIOError
        Another process has it, or another object of this one.
    OSError
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.handle: int | None = None
        self.inode: tuple[int, int] | None = None
        if fcntl is None or sys.platform != "linux":
            return
        while True:
            try:
                there = os.stat(path)
            except FileNotFoundError:
                there = None
            if there is not None and (there.st_dev, there.st_ino) in _owned:
                raise BlockingIOError(f"this process has {path} open")
            handle = _locked(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            now = os.fstat(handle)
            self.inode = (now.st_dev, now.st_ino)
            if there is None or (there.st_dev, there.st_ino) == self.inode:
                break
            os.close(handle)  # another file has come to this name in between
        self.handle = handle
        _owned.add(self.inode)

    def release(self) -> None:
        """Let others have it; only after SQLite has closed its own handles of the file."""
        if self.handle is not None and self.inode is not None:
            os.close(self.handle)
            _owned.discard(self.inode)
        self.handle = None


# ------------------------------------------------------------------ what the last owner said


def boot() -> str:
    """Return a name of the time since this system started; empty where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


class Word:
    """The last word of a journal's owner, in the lock file: how many events it had committed, since which start.

    A process that is killed leaves its journal with at least so many events. If there are fewer, and the system has
    not gone down meanwhile, the journal has lost its end: SQLite takes a damaged log for a shorter one.

    Parameters
    ----------
    handle : int
        Of the lock file.
    """

    def __init__(self, handle: int) -> None:
        self._handle, self._boot = handle, boot()

    def say(self, token: str, events: int) -> None:
        """Write how many events the run with this token has; nothing comes of a disk that is full."""
        text = f"{token} {events:020d} {self._boot}"
        with suppress(OSError):
            os.pwrite(self._handle, f"{text} {_sum(text)}\n".encode(), 0)


def last_word(journal: str | os.PathLike[str], token: str | None = None) -> tuple[int, bool]:
    """Return how many events the last owner of a run had committed, and whether the system has been up since; else 0.

    With a token, only if it is that of the run.
    """
    try:
        with open(beside(journal), "rb") as file:
            text, _, found = file.read(200).decode("ascii").splitlines()[0].rpartition(" ")
        name, events, start = text.split(" ")
        if found == _sum(text) and token in (None, name):
            return int(events), bool(start) and start == boot()
    except (OSError, ValueError, IndexError):
        pass
    return 0, False


def _sum(text: str) -> str:
    return f"{crc32(text.encode()):08x}"
