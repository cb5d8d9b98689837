"""Which threads work: several, for compiled loops, which release Python's global lock, or one, in fits."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from threading import Condition, Lock, get_ident
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}  # by number of threads; made when first needed, and shared
_lock = Lock()


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Return what `work` returns for each item, in the order of the items, computed by up to `threads` threads.

    The calling thread is one of them: one thread is a plain loop, and work may itself call this. Each takes the next
    item when it has finished one. Results do not depend on `threads` if work on one item reads nothing that work on
    another writes.

    When work raises, no later item is begun. Among the items that failed, the error of the first is raised, as in a
    plain loop. Ctrl-C comes before all errors. Whatever is raised, no thread is still at work.

    Parameters
    ----------
    work : function of one item
    items : iterable
    threads : int >= 1

    Examples
    --------
    >>> side_by_side(abs, [-3, 2, -1], threads=2)
    [3, 2, 1]
    """
    todo = list(items)
    if threads == 1 or len(todo) < 2:
        return [work(item) for item in todo]
    shared = _Shared(work, todo)
    try:
        _call(shared.help, min(threads, len(todo)) - 1, threads)
        shared.go_on(shared.todo.popleft)
    finally:
        shared.finish()
    if shared.errors:
        raise min(shared.errors.items(), key=lambda error: (isinstance(error[1], Exception), error[0]))[1]
    return [shared.results[i] for i in range(len(todo))]


class _Shared(Generic[Item, Result]):
    """Items that several threads take from: the caller from the front, helpers from the back.

    So at each step a thread has about the same items, and their data are in its core's cache.
    """

    def __init__(self, work: Callable[[Item], Result], items: list[Item]) -> None:
        self.work = work
        self.todo = deque(enumerate(items))
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self.last = len(items)  # no item after this one is begun, because it failed; -1 for Ctrl-C
        self.helping = 0  # threads at work beside the caller
        self.changed = Condition()

    def go_on(self, take: Callable[[], tuple[int, Item]]) -> None:
        """Work on items until none is left that the loop would begin."""
        while True:
            try:
                i, item = take()
            except IndexError:
                return
            if i > self.last:
                continue
            try:
                self.results[i] = self.work(item)
            except BaseException as error:
                self.errors[i] = error
                with self.changed:
                    self.last = min(self.last, i) if isinstance(error, Exception) else -1

    def help(self) -> None:
        """Work on items beside the caller; nothing if all is done before a thread is free."""
        with self.changed:
            if not self.todo:
                return
            self.helping += 1
        try:
            self.go_on(self.todo.pop)
        finally:
            with self.changed:
                self.helping -= 1
                self.changed.notify_all()

    def finish(self) -> None:
        """Wait until no helper works, even after Ctrl-C: helpers write into the caller's arrays."""
        interrupt: BaseException | None = None
        while True:
            try:
                self.todo.clear()
                with self.changed:
                    self.changed.wait_for(lambda: self.helping == 0)
                break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _call(help: Callable[[], None], count: int, threads: int) -> None:
    """Start `count` helpers; fewer at the end of the process, or where it may have no more threads."""
    with _lock:
        try:
            if threads not in _pools:
                _pools[threads] = ThreadPoolExecutor(threads - 1, "venn")
            for _ in range(count):
                # In a copy of the caller's context, which sets, for instance, what numpy does on overflow.
                _pools[threads].submit(copy_context().run, help)
        except RuntimeError:
            pass  # the caller does all the work


# ----------------------------------------------------------------------------------------------------------- one thread
# In libraries that begin threads by themselves: OpenBLAS and the like, and OpenMP in scikit-learn and other scorers.

_controllers: dict[int, Any] = {}  # key: the number of loaded modules, for a new module may have brought a library
_limiting = Lock()
_within = 0  # threads in `one_thread`
_undo: Any = None  # gives the libraries back the threads that they had before the first of these


@contextmanager
def one_thread(blas: bool = True) -> Iterator[None]:
    """Let linear algebra and OpenMP have one thread, around a fit or a factorization that answers rest on.

    The last bits of sums depend on how many threads share the work. And threads that wait for each other where the
    cores are busy take seconds for what one does in milliseconds. What a fit needs must be imported before: only
    libraries that are loaded are told. It takes some 20 microseconds, and milliseconds after an import; without `blas`,
    where there is no linear algebra, half of that.
    """
    global _within, _undo
    with _limiting:
        found = _controllers.get(len(sys.modules))
        if found is None:
            _controllers.clear()
            loaded = ThreadpoolController()  # one of several kinds would give back threads of the other kind as well
            found = _controllers[len(sys.modules)] = loaded.select(user_api="blas"), loaded.select(user_api="openmp")
        linear, openmp = found
        _within += blas
        if blas and _within == 1:
            _take_over(linear)
            _undo = linear.limit(limits=1)
    own = openmp.limit(limits=1)  # these count for the thread that asks
    try:
        yield
    finally:
        own.restore_original_limits()
        with _limiting:  # another thread may be in the midst of a fit
            _within = max(0, _within - blas)  # a process that was forked within has begun to count anew
            if blas and _within == 0:
                _take_over(linear)
                _undo.restore_original_limits()
                _take_over(linear)


def _take_over(linear: Any) -> None:
    """Let this thread set limits: threadpoolctl leaves that to the thread that did it first, and says nothing."""
    for library in linear.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_orphan: int | None = None  # the thread that this process was forked by
_helper: ThreadPoolExecutor | None = None


def asked(call: Callable[[Any], Result], given: Any) -> Result:
    """Return what a foreign estimator's method answers, also in a process that was forked.

    If the thread that forked had begun OpenMP's threads, these are not there any more, and GNU's library waits for them
    for ever. A thread that is new in this process begins its own, if one is not enough.
    """
    global _helper
    if _orphan is None or get_ident() != _orphan:
        return call(given)
    if _helper is None:
        _helper = ThreadPoolExecutor(1, "venn")
    return _helper.submit(copy_context().run, _alone, call, given).result()


def _alone(call: Callable[[Any], Result], given: Any) -> Result:
    with one_thread():
        return call(given)


def _forked() -> None:
    """Forget the pools: a forked process has none of their threads."""
    global _lock, _limiting, _within, _orphan, _helper
    _lock, _limiting = Lock(), Lock()
    _within = 0  # those counted before are gone
    _orphan, _helper = get_ident(), None
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
