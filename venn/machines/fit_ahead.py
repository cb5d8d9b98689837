"""Makes fits in another process before they are due, so that the stream need not stop."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from hashlib import blake2b
from importlib import import_module
from tempfile import TemporaryFile
from threading import Thread
from time import sleep
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import finalize, ref

from venn._compiled.life import AwaitedSigns, show_life

if TYPE_CHECKING:  # a command begins a process before it imports anything large
    from venn.prediction import Floats

LONG = 500  # examples: with fewer the fit is done before another process has begun
SOON = 0.002  # seconds: how often this process looks whether an answer has come
BEGUN = b"+"  # what is written when the first call begins
SIZE = 8  # bytes before each answer, which say how long it is
WHILE_WRITING = hasattr(os, "pread")  # else answers are read when the other process has ended
CODE = "import sys; sys.path[:] = {path!r}; from venn.machines.fit_ahead import work; work{modules!r}"
FOR_FITS = "sklearn.ensemble", "venn.machines.stack"  # most of what fits load

Found = TypeVar("Found")
Make = Callable[..., Found]


class OtherProcess:
    """A process that imports modules, and then makes the calls that it is asked for, once.

    Calls and answers are passed in unnamed files, which leave nothing behind, and which nobody else can write. The
    process is stopped when this one ends; if this one is killed, the other one ends by itself.
    """

    def __init__(self, modules: Sequence[str], calls: Any = None) -> None:
        self.owner = os.getpid()
        with ExitStack() as failed:
            self.came = failed.enter_context(TemporaryFile())
            self._goes = failed.enter_context(TemporaryFile())
            if calls is not None:
                self.ask(calls)
            self._goes.seek(0)
            # A group of its own: Ctrl-C is for the process that asks.
            self.process = subprocess.Popen(
                [sys.executable, "-c", CODE.format(path=sys.path, modules=tuple(modules))], stdin=self._goes,
                stdout=self.came, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            failed.pop_all()
        self.stop = finalize(self, _stop, self.process, self.came, self._goes, self.owner)

    def ask(self, calls: Any) -> None:
        """Ask for calls, a function and its arguments each time; their size comes last, for then all is written."""
        self._goes.write(bytes(SIZE))
        pickle.dump(calls, self._goes)
        size = self._goes.tell() - SIZE
        self._goes.flush()
        self._goes.seek(0)
        self._goes.write(size.to_bytes(SIZE, "big"))
        self._goes.flush()


def _stop(process: subprocess.Popen[bytes], came: IO[bytes], goes: IO[bytes], owner: int) -> None:
    came.close()
    goes.close()
    if os.getpid() == owner and process.poll() is None:
        process.kill()
        process.wait()


waiting: OtherProcess | None = None  # begun before its calls are known


def get_ready() -> None:
    """Begin the process that makes the first fits before they are known: it imports what they need meanwhile."""
    global waiting
    if waiting is None and WHILE_WRITING and not one_core() and not is_frozen():
        with suppress(OSError):  # no process may be begun here, or no file made
            waiting = OtherProcess(FOR_FITS)


def is_frozen() -> bool:
    """Whether `sys.executable` is not Python but this program, which would begin again."""
    return getattr(sys, "frozen", False) or not sys.executable


def one_core() -> bool:
    """Whether another process would only take turns with this one."""
    return len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) < 2


class FitAhead:
    """Calls in another process, one after the other, with the answers they would have here.

    `by` is a process that was begun for them; else it is the one that is ready for fits, or a new one.
    """

    def __init__(self, call: Any, *given: tuple[Any, ...], by: OtherProcess | None = None) -> None:
        global waiting
        if by is None:
            by, waiting = waiting, None
        if by is not None and by.owner == os.getpid() and by.process.poll() is None:
            by.ask((call, given))
        else:
            by = OtherProcess(FOR_FITS, (call, given))
        self._owner, self._came, self.process, self._stop = by.owner, by.came, by.process, by.stop
        self._by = by  # it is stopped with this

    @property
    def runs(self) -> bool:
        """Whether it is still at work."""
        return os.getpid() == self._owner and self.process.poll() is None

    @property
    def begun(self) -> bool:
        """Whether the first call has begun, after all imports."""
        try:
            return os.fstat(self._came.fileno()).st_size > 0
        except ValueError:  # closed
            return False

    def result(self, i: int = 0) -> Any:
        """Wait for answer i and return it; None if there is none, as when the call failed or its process hangs."""
        if os.getpid() != self._owner:  # a fork shares the file with its parent, which waits for the answer
            return None
        try:
            at = len(BEGUN)
            for _ in range(i):
                at += SIZE + int.from_bytes(self._part(at, SIZE), "big")
            size = int.from_bytes(self._part(at, SIZE), "big")
            return pickle.loads(self._part(at + SIZE, size)) if self._part(0, len(BEGUN)) == BEGUN else None
        except Exception:  # the file holds no answer, as when something else was printed first
            return None

    def _part(self, start: int, size: int) -> bytes:
        """Return bytes of the file of answers once they are there; raise EOFError if they do not come."""
        patience = AwaitedSigns(self._came.fileno())
        while self.runs:
            if WHILE_WRITING and os.fstat(self._came.fileno()).st_size >= start + size:
                break
            if not patience.lasts(SOON) and WHILE_WRITING:
                self._stop()
                raise EOFError
        if WHILE_WRITING:
            found = os.pread(self._came.fileno(), size, start)  # which moves no place where the other process writes
        else:
            self._came.seek(start)
            found = self._came.read(size)
        if len(found) < size:
            raise EOFError
        return found


def work(*modules: str) -> None:
    """Run in the other process: import the modules, and make the calls that stdin holds."""
    Thread(target=_end_with, args=(os.getppid(), os.dup(1)), daemon=True).start()
    for module in modules:
        import_module(module)
    while WHILE_WRITING and not any(os.pread(0, SIZE, 0)):
        sleep(SOON)
    os.lseek(0, SIZE, os.SEEK_SET)
    call, given = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # whatever a call prints is no part of the answer
        answer.write(BEGUN)
        answer.flush()
        for each in given:
            found = pickle.dumps(call(*each))
            answer.write(len(found).to_bytes(SIZE, "big") + found)
            answer.flush()


def _end_with(parent: int, answers: int) -> None:
    """Date the file of answers anew, as a sign of life; end this process when its parent has ended."""
    show_life(answers, lambda: os.getppid() == parent)
    os._exit(1)


def trees_imported() -> bool:
    """Whether this process has imported what most fits need, which takes a second."""
    return "sklearn.ensemble" in sys.modules


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
        # Which examples, and the fit to them; then the same of those that another process makes. Each is set in one
        # step: threads may share it.
        self._latest: tuple[bytes, Any] = b"", None
        self.ahead: tuple[list[bytes], FitAhead | None] = [], None

    def begin(self, make: Make[Any], X: Floats, labels: Any, *more: Any) -> None:
        """Let another process make the fit to these examples, if it takes long and no fit is being made."""
        if len(X) >= LONG:
            self.foresee(make, X, labels, [len(X)], *more)

    def foresee(self, make: Make[Any], X: Floats, labels: Any, times: Sequence[int], *more: Any) -> None:
        """Let another process make the fits to so many first examples, in this order, unless one is at work."""
        global _latest
        if not times or is_frozen() or busy():
            return
        if len(times) > 1 and not WHILE_WRITING:  # the first answer would wait for the last
            return
        keys = [_key(X[:time], labels[:time]) for time in times]
        if keys[-1] not in (self._latest[0], *self.ahead[0]):
            self.ahead = [], None
            with suppress(OSError):  # no process may be begun here, or no file made
                begun = FitAhead(_of_first, *[(make, X, labels, time, *more) for time in times])
                self.ahead, _latest = (keys, begun), ref(begun)

    def to(self, make: Make[Found], X: Floats, labels: Any, *more: Any) -> Found:
        """Return `make(X, labels, *more)`; what it raises is raised.

        A process that has not come to any call yet is waited for only where this one would have to import what it is
        importing: else the fit is made here in less time.
        """
        key, (latest, found), (keys, ahead) = _key(X, labels), self._latest, self.ahead
        if latest != key:
            found = None
        if found is None and ahead is not None and key in keys and (ahead.begun or not trees_imported()):
            found = ahead.result(keys.index(key))
        if key in keys[-1:]:
            self.ahead = [], None
        self._latest = key, None
        if found is None:
            found = make(X, labels, *more)
        self._latest = key, found
        made: Found = found
        return made


def _of_first(make: Make[Any], X: Floats, labels: Any, time: int, *more: Any) -> Any:
    """Return the fit to the first examples: of several such calls the arrays, which are the same, are passed once."""
    return make(X[:time], labels[:time], *more)


def _key(X: Floats, labels: Any) -> bytes:
    """Return what tells examples from others."""
    digest = blake2b(f"{X.shape} {labels.dtype}".encode(), digest_size=16)
    digest.update(X.tobytes())
    digest.update(labels.tobytes())
    return digest.digest()
