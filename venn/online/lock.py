"""A lock on a file that ends with its process: two that learn into one would each be ignorant of the other."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a Unix: there nothing keeps a second process away
    fcntl = None  # type: ignore[assignment]


def take(path: str | os.PathLike[str]) -> int | None:
    """Return the handle of a file that is locked for this process, made if there is none; None without locks.

    Raises
    ------
    BlockingIOError
        Another process has the lock.
    OSError
        The file cannot be opened.
    """
    if fcntl is None:
        return None  # type: ignore[unreachable]
    handle = os.open(Path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def release(handle: int) -> None:
    """Unlock and close. A forked child has the same lock, to which closing alone would leave it."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
