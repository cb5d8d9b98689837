"""Work side by side on threads: the same as in a loop, whatever goes wrong, and nothing left running."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from venn.machines import threads as ours
from venn.machines.threads import side_by_side

THREADS = [1, 2, 3, 8]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("items", [[], [4], list(range(50))])
def test_results_are_in_the_order_of_the_items(items, threads):
    def work(i):
        time.sleep(1e-3 * (i % 3))
        return i * i

    assert side_by_side(work, iter(items), threads) == [i * i for i in items]


def test_one_thread_is_the_caller_and_more_work_at_once():
    assert side_by_side(lambda _: threading.current_thread(), range(4), 1) == [threading.current_thread()] * 4
    meet = threading.Barrier(3, timeout=30)
    side_by_side(lambda _: meet.wait(), range(3), 3)  # none of them goes on alone
    assert meet.broken is False


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_error_is_raised_and_nobody_works_then(threads):
    """The second item fails later than the third and the last; items that the loop would not reach are left."""
    done, begun = [], []

    def work(i):
        begun.append(i)
        if i == 1:
            time.sleep(0.05)
            raise LookupError("the first")
        if i in (2, 999):
            raise ValueError("another")
        time.sleep(0.1)
        done.append(i)

    with pytest.raises(LookupError, match="the first"):
        side_by_side(work, range(1000), threads)
    count = len(done)
    assert set(done) | {1, 2, 999} >= set(begun)
    assert len(begun) <= 2 * threads + 3  # two rounds, and those that fail
    time.sleep(0.15)
    assert len(done) == count


@pytest.mark.parametrize("threads", [2, 3])
def test_an_interrupt_waits_for_those_at_work(threads):
    done = []

    def work(i):
        meet.wait()
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.1)
        done.append(i)
        raise ValueError("less important")

    meet = threading.Barrier(threads, timeout=30)
    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(100), threads)
    count = len(done)
    time.sleep(0.15)
    assert len(done) == count < threads


def test_interrupted_while_it_waits_it_goes_on_waiting(monkeypatch):
    done, interrupts = [], [KeyboardInterrupt, KeyboardInterrupt]

    class Interrupted(threading.Condition):
        def wait_for(self, *args):
            if interrupts:
                raise interrupts.pop()
            return super().wait_for(*args)

    monkeypatch.setattr(ours, "Condition", Interrupted)
    meet = threading.Barrier(2, timeout=30)

    def work(i):
        meet.wait()
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.1)
            done.append(i)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(2), 2)
    assert len(done) == 1


def test_work_may_itself_be_side_by_side():
    assert side_by_side(lambda i: side_by_side(lambda j: i * j, range(5), 2), range(5), 2) == [
        [i * j for j in range(5)] for i in range(5)
    ]


def test_several_callers_share_a_pool():
    found = {}
    callers = [
        threading.Thread(target=lambda k=k: found.update({k: side_by_side(lambda i: i + k, range(40), 3)}))
        for k in range(6)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == {k: [i + k for i in range(40)] for k in range(6)}
    assert ours._pools[3]._max_workers == 2


def test_what_numpy_does_about_overflow_is_what_the_caller_says():
    meet = threading.Barrier(2, timeout=30)

    def work(_):
        meet.wait()
        return np.geterr()["over"]

    with np.errstate(over="raise"):
        here = np.geterr()["over"]
        found = side_by_side(work, range(2), 2)
    assert found == [here, here] or np.lib.NumpyVersion(np.__version__) < "2.0.0"


def test_without_threads_the_caller_does_all(monkeypatch):
    class Full:
        def submit(self, *_):
            raise RuntimeError("can't start new thread")

    monkeypatch.setitem(ours._pools, 2, Full())
    assert side_by_side(lambda i: (i, threading.current_thread()), range(5), 2) == [
        (i, threading.current_thread()) for i in range(5)
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    side_by_side(time.sleep, [0.01] * 2, 2)
    child = os.fork()
    if child == 0:
        meet = threading.Barrier(2, timeout=30)
        side_by_side(lambda _: meet.wait(), range(2), 2)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_no_thread_is_left_at_the_end_and_even_then_it_works():
    code = """
import atexit, threading, time
from venn.machines.threads import side_by_side
atexit.register(lambda: print(side_by_side(abs, [-1, -2, -3], 2), threading.active_count()))
side_by_side(time.sleep, [.01] * 4, 4)
print(threading.active_count() > 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split("\n")[:2] == ["True", "[1, 2, 3] 1"]
    assert done.stderr == ""
