"""Work side by side on threads: the same as in a loop, whatever goes wrong, and nothing left running."""

import os
import subprocess
import sys
import threading
import time
from functools import wraps

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import venn
from venn.machines import number_experts, number_stack, ridge, stack, trees, tuning
from venn.machines import threads as ours
from venn.machines.threads import asked, one_thread, side_by_side
from venn.predictors.refits import both_fitted

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


# ----------------------------------------------------------------------------------------------------------- one thread


def counts():
    """Return how many threads each loaded library would use in this thread."""
    return [one["num_threads"] for one in threadpool_info()]


def test_libraries_have_one_thread_while_anybody_fits():
    """Who ends first leaves it to the others, and who ends last gives back what was there."""
    inside, leave = threading.Event(), threading.Event()

    def fit():
        with one_thread():
            inside.set()
            leave.wait(60)

    with threadpool_limits(2):
        thread = threading.Thread(target=fit)
        before = counts()
        with one_thread():
            thread.start()
            inside.wait(60)
            with one_thread():
                assert set(counts()) == {1}
        assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {1}
        leave.set()
        thread.join()
        assert counts() == before
        with pytest.raises(ValueError, match="broken"), one_thread():
            raise ValueError("broken")
        assert counts() == before


def fits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    codes = (X[:, 0] > 0).astype(np.int64)
    stack, numbers = venn.machines.Stack(["no", "yes"]), venn.machines.NumberStack()
    window = venn.SlidingWindow(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ["no", "yes"]), 10)

    def forgetting():
        for x, k in zip(X, codes, strict=True):
            window.learn_one(x, ["no", "yes"][k])
        window.machine._system._solved(window.machine._system.ridge, None)

    return {
        "stack": lambda: stack.fit_rows(X, codes), "numbers": lambda: numbers.fit_rows(X, X[:, 0]),
        "process": lambda: both_fitted(X, X[:, 0], None), "machine": forgetting,
        "penalties": lambda: venn.tune([(x, int(k)) for x, k in zip(X, codes, strict=True)], classes=[0, 1]),
    }  # fmt: skip


USED = (
    (stack, "cho_factor"), (stack, "fitted_pool"), (number_stack, "cho_factor"), (number_stack, "_chosen"),
    (number_experts, "cho_factor"), (number_experts, "cholesky"), (ridge, "cholesky"), (tuning, "eigh"),
    (trees.FlatTrees, "_answers_as"),
)  # fmt: skip


@pytest.mark.parametrize("name", ["stack", "numbers", "process", "machine", "penalties"])
def test_fits_that_answers_rest_on_use_one_thread(name, monkeypatch):
    """Also where what was fitted is asked again, to compare its trees: boosted ones are asked side by side."""
    seen = set()

    def watched(call):
        @wraps(call)
        def called(*given, **named):
            seen.add((call.__name__, *counts()))
            return call(*given, **named)

        return called

    for owner, used in USED:
        monkeypatch.setattr(owner, used, watched(getattr(owner, used)))
    with threadpool_limits(2):
        fits()[name]()
    assert seen
    assert {count for _, *each in seen for count in each} <= {1}


FORKED = """
import os, sys
import numpy as np
from threadpoolctl import threadpool_limits
import venn
from venn.machines import stack
stack.TREES = stack.LEAVES = 10
kind = sys.argv[1]
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 2))
Y = ["ab"[int(x[0] > 0)] for x in X]
threadpool_limits(2, "openmp")
scorer = None
if kind == "scorer":
    from lightgbm import LGBMClassifier
    scorer = LGBMClassifier(n_estimators=5, n_jobs=2, verbose=-1).fit(X, Y)
    scorer.predict_proba(X)
if kind == "beside":  # what else the process did with OpenMP
    from sklearn.ensemble import HistGradientBoostingClassifier
    HistGradientBoostingClassifier(max_iter=2).fit(X, Y).predict(X)
model = venn.Forecaster(["a", "b"], scorer=scorer) if scorer else venn.Forecaster(["a", "b"], transductive=20, first=20)
here = 30 if kind == "forecaster" else 5
for x, y in zip(X[:here], Y):
    model.predict_one(x), model.learn_one(x, y)
child = os.fork()
for x, y in zip(X[here:60], Y[here:]):
    model.predict_one(x), model.learn_one(x, y)
if not child:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", ["forecaster", "beside", "scorer"])
def test_a_forked_process_teaches_and_predicts(kind):
    """GNU's OpenMP has no threads in it, and would wait for them for ever."""
    if kind == "scorer":
        pytest.importorskip("lightgbm")
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, kind], capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stderr[-2000:]


def test_a_forked_process_asks_estimators_on_another_thread(monkeypatch):
    monkeypatch.setattr(ours, "_orphan", threading.get_ident())
    monkeypatch.setattr(ours, "_helper", None)

    def where(X):
        return threading.get_ident(), X

    ident, given = asked(where, 5)
    assert ident != threading.get_ident()
    assert given == 5
    assert asked(where, 6) == (ident, 6), "the same one again"
    with pytest.raises(ValueError, match="could not"):
        asked(np.linalg.norm, "a")
