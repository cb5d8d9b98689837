"""A lock on a file that ends with its process: only one process may learn into a journal."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a Unix: nothing keeps a second process away there
    fcntl = None  # type: ignore[assignment]


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
    handle = os.open(Path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def release(handle: int) -> None:
    """Unlock and close. Closing alone would leave the lock with a forked child."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
