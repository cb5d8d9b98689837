"""Work in parallel on threads: for compiled loops, which release Python's global lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Condition, Lock
from typing import Generic, TypeVar

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


def _forked() -> None:
    """Forget the pools: a forked process has none of their threads."""
    global _lock
    _lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
