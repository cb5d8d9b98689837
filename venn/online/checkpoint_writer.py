"""Checkpoints beside a journal: written in the background from a snapshot, so that the loop goes on meanwhile."""

from __future__ import annotations

import glob
import logging
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

from venn.online import checkpoint

KEPT = 2  # checkpoints
log = logging.getLogger("venn")


def state_file(journal: Path, event: int) -> Path:
    """Return the path of the checkpoint after an event, beside a journal."""
    return journal.with_name(f"{journal.name}-state-{event:012d}")


def state_files(journal: Path) -> list[Path]:
    """Return the checkpoints beside a journal, newest first."""
    name = f"{glob.escape(journal.name)}-state-{'[0-9]' * 12}"
    return sorted(journal.parent.glob(name), reverse=True)


class CheckpointWriter:
    """Writes the checkpoints of one journal, and finds them again.

    A checkpoint is a snapshot of the state, copied in memory while the loop waits, and written by a thread. A state of
    more than `largest` bytes is written at the end of a run only.

    Parameters
    ----------
    file : Path
        The journal's, by its real name.
    every : int
        Least number of events between two checkpoints.
    share : float
        Largest share of the time spent on them.
    largest : int
        Bytes of the arrays of a state.
    """

    def __init__(self, file: Path, every: int, share: float, largest: int) -> None:
        self._file, self._every, self._share, self._largest = file, every, share, largest
        self._event, self._at, self._cost = 0, 0.0, 0.0  # event, time and cost of the last one, written or not
        self._written = 0  # event of the last one that was
        self._writer: Thread | None = None

    def due(self, event: int, times: int = 1) -> bool:
        """Whether a checkpoint is due: at least `times` times `every` events after the last one; 0: any number."""
        if times == 0:
            self.wait()
            return event != self._written
        if event - self._event < times * self._every:
            return False
        busy = self._writer is not None and self._writer.is_alive()
        return not busy and (time.monotonic() - self._at + self._cost) * self._share >= self._cost

    def keep(self, event: int, state: Any, last: bool = False) -> None:
        """Write the checkpoint of the state after an event, and forget all but two.

        The first one and the `last` of a run are written before this returns; errors of others are logged.

        Raises
        ------
        OSError, TypeError, ValueError
            It cannot be written.
        """
        self.wait()
        at_once = last or event == 0
        self._event, self._at = event, time.monotonic()  # after a failure the next one comes when it is due
        taken = checkpoint.Snapshot(state)
        if at_once:
            self._write(event, taken)
        elif taken.size <= self._largest:
            taken.copy()
            self._writer = Thread(target=self._in_background, args=(event, taken), name="venn checkpoint")
            self._writer.start()

    def _in_background(self, event: int, taken: checkpoint.Snapshot) -> None:
        start = time.monotonic()
        try:
            self._write(event, taken)
        except Exception as error:
            log.warning("no checkpoint of %s can be written: %s", self._file, error)
        self._at = time.monotonic()
        self._cost = self._at - start

    def _write(self, event: int, taken: checkpoint.Snapshot) -> None:
        # The journal reaches the disk first, so that a loss of power leaves no checkpoint of lost events.
        where = f"file:{quote(str(self._file))}?mode=rw"  # rw: makes no file where this one is gone
        with suppress(sqlite3.Error), closing(sqlite3.connect(where, uri=True, timeout=0)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        taken.write(state_file(self._file, event))
        self._written = event
        for old in self.files()[KEPT:]:
            old.unlink(missing_ok=True)

    def kept(self, event: int) -> None:
        """Count from here to the next checkpoint: this one was read, or nothing has happened yet."""
        self._event = self._written = event
        self._at = time.monotonic()

    def wait(self) -> None:
        """Return when nothing is being written."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def files(self) -> list[Path]:
        """Return the checkpoints, newest first."""
        return state_files(self._file)

    def clear(self) -> None:
        """Remove what a process left that died while it wrote."""
        for file in self._file.parent.glob(f".{glob.escape(self._file.name)}-state-*.tmp"):
            file.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all checkpoints: those of a run that no longer exists."""
        for file in self.files():
            file.unlink(missing_ok=True)
