"""Makes fits in another process before they are due, so that the stream need not stop."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import blake2b
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any, TypeVar
from weakref import finalize, ref

from venn.prediction import Floats

LONG = 500  # examples: with fewer the fit is done before another process has begun
LOOK = 0.5  # seconds: how often the other process looks whether its parent lives
BEGUN = b"+"  # what is written when the call begins
CODE = "import sys; sys.path[:] = {path!r}; from venn.machines.fit_ahead import work; work()"

Found = TypeVar("Found")
Make = Callable[..., Found]


class FitAhead:
    """One call in another process, with the answer it would have here.

    Arguments and answer are passed in unnamed files, which leave nothing behind, and which nobody else can write. The
    call is stopped when this process ends; if this process is killed, the other one ends by itself.
    """

    def __init__(self, call: Any, *given: Any) -> None:
        self._owner = os.getpid()
        with ExitStack() as failed:
            self._came = failed.enter_context(TemporaryFile())
            with TemporaryFile() as goes:
                pickle.dump((call, given), goes)
                goes.seek(0)
                # A group of its own: Ctrl-C is for the process that asks.
                self.process = subprocess.Popen(
                    [sys.executable, "-c", CODE.format(path=sys.path)], stdin=goes, stdout=self._came,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
            failed.pop_all()
        self._stop = finalize(self, _stop, self.process, self._came, self._owner)

    @property
    def runs(self) -> bool:
        """Whether it is still at work."""
        return os.getpid() == self._owner and self.process.poll() is None

    @property
    def begun(self) -> bool:
        """Whether the call itself has begun, after all imports."""
        came = vars(self).get("_came")
        try:
            return came is not None and os.fstat(came.fileno()).st_size > 0
        except ValueError:  # closed: another thread has just taken the answer
            return False

    def result(self) -> Any:
        """Wait for the answer and return it, once; None if there is none, as when the call failed."""
        if os.getpid() != self._owner:  # a fork shares the file with its parent, which waits for the answer
            return None
        came = vars(self).pop("_came", None)  # only one thread gets it
        if came is None:
            return None
        try:
            if self.process.wait():
                return None
            came.seek(0)
            return pickle.load(came) if came.read(len(BEGUN)) == BEGUN else None
        except Exception:  # the file holds no answer, as when something else was printed first
            return None
        finally:
            self._stop()


def _stop(process: subprocess.Popen[bytes], came: IO[bytes], owner: int) -> None:
    came.close()
    if os.getpid() == owner and process.poll() is None:
        process.kill()
        process.wait()


def work() -> None:
    """Run in the other process: make the call that stdin holds."""
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    call, given = pickle.load(sys.stdin.buffer)
    import sklearn.ensemble  # noqa: F401  # most of what fits load

    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # whatever the call prints is no part of the answer
        answer.write(BEGUN)
        answer.flush()
        pickle.dump(call(*given), answer)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended: nobody waits for the answer."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


_latest: ref[FitAhead] | None = None  # one is at work at a time, however many models there are


def busy() -> bool:
    """Whether a fit is being made ahead; another one must wait."""
    running = None if _latest is None else _latest()
    return running is not None and running.runs


class Awaited:
    """The next fit of a predictor: when it is due, and whether its examples are known before that.

    Parameters
    ----------
    due : int or None
        After how many examples; None: no fit follows.
    settled : callable, optional
        After how many examples those are known that a fit at a time is made of; without it they are not known before.
    """

    def __init__(self, due: int | None, settled: Callable[[int], int] | None) -> None:
        self.due = due
        self._known = None if due is None or settled is None else settled(due)

    def known(self, n: int) -> int | None:
        """Return how many examples the fit has if it may begin now, after n examples; only once, else None."""
        known = self._known
        if known is None or not known <= n < (self.due or 0) or busy():
            return None
        self._known = None
        return known


class Fits:
    """The latest fit of a learner, shared by its copies: the second that is fitted to the same examples has it at once.

    Examples
    --------
    >>> import numpy as np
    >>> fits = Fits()
    >>> total = lambda X, y, power: float((X[:, 0] * y**power).sum())
    >>> fits.to(total, np.ones((3, 1)), np.arange(3.0), 2)
    5.0
    """

    def __init__(self) -> None:
        # Which examples, and the fit to them or what makes it. Set in one step: threads may share it.
        self._latest: tuple[bytes, Any] = b"", None

    @property
    def found(self) -> Any:
        """The latest fit, or what makes it."""
        return self._latest[1]

    def begin(self, make: Make[Any], X: Floats, labels: Any, *more: Any) -> None:
        """Let another process make the fit to these examples, if it takes long and no fit is being made."""
        global _latest
        # In a frozen program sys.executable is that program, which would begin again.
        if len(X) < LONG or not sys.executable or getattr(sys, "frozen", False) or busy():
            return
        key = _key(X, labels)
        if self._latest[0] != key:
            self._latest = key, None
            with suppress(OSError):  # no process may be begun here, or no file made
                begun = FitAhead(make, X, labels, *more)
                self._latest, _latest = (key, begun), ref(begun)

    def to(self, make: Make[Found], X: Floats, labels: Any, *more: Any) -> Found:
        """Return `make(X, labels, *more)`; what it raises is raised.

        A process that has not come to the call yet is not waited for: here the fit is made in less time.
        """
        key, (latest, found) = _key(X, labels), self._latest
        if latest != key:
            found = None
        if isinstance(found, FitAhead):
            found = found.result() if found.begun else None
        self._latest = key, None
        if found is None:
            found = make(X, labels, *more)
        self._latest = key, found
        made: Found = found
        return made


def _key(X: Floats, labels: Any) -> bytes:
    """Return what tells examples from others."""
    digest = blake2b(f"{X.shape} {labels.dtype}".encode(), digest_size=16)
    digest.update(X.tobytes())
    digest.update(labels.tobytes())
    return digest.digest()
