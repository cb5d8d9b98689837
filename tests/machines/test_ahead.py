"""Fits that another process makes while the stream goes on: the answers are those of fits made when they are due."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  # before a test hides it

import venn
from venn._compiled import life
from venn.machines import fit_ahead
from venn.machines.fit_ahead import FitAhead, Fits
from venn.machines.number_stack import NumberStack
from venn.machines.stack import Stack
from venn.predictors.distribution_stacked import StackedDistribution
from venn.predictors.refits import LateExperts, NumberRefits, Refits
from venn.schedules import Prefix

N = 70
ALL_TREES = True  # another process has all


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, 2)).astype(float)
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def by_stack():
    return venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=60))


def by_refits():
    return Refits([0, 1], first=60)


def by_numbers():
    return venn.predictors.InductiveDistribution(NumberStack(), schedule=Prefix(0.7, first=60))


def by_stacked():
    return StackedDistribution(Prefix(0.7, first=60))


def by_number_refits():
    return NumberRefits(first=40, growth=1.5)


def said(model, X, y):
    """Return what a model says before each label, to the last bit."""
    answers = []
    for x, label in zip(X, y.tolist(), strict=True):
        one = model.predict_one(x)
        numbers = getattr(one, "pairs", getattr(one, "points", one))
        answers.append((str(one), numbers.tobytes()))
        model.learn_one(x, label)
    return answers


@pytest.mark.parametrize("make", [by_stack, by_numbers, by_stacked, by_refits, by_number_refits])
def test_answers_are_those_of_fits_made_when_they_are_due(make, monkeypatch):
    X, y = table()
    monkeypatch.setattr("venn.predictors.refits.LATE", 60)
    expected = said(make(), X, y)  # too few for another process
    began, begin = [], FitAhead.__init__
    monkeypatch.setattr(
        FitAhead, "__init__", lambda self, *given: (began.append(len(given[1][1])), begin(self, *given))[1]
    )
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    monkeypatch.setattr(FitAhead, "begun", True)
    assert said(make(), X, y) == expected
    of_classes = [57, 68] if isinstance(make(), Refits) else [57]  # again after a fifth more, 72
    assert began == (of_classes if isinstance(make(), LateExperts) else [42]), "the first 19 of 20, or seven tenths"
    if make not in (by_stack, by_refits):  # the others have what these two have
        return
    # In blocks, and saved in the middle of a fit.
    model = make()
    if make is by_stack:
        model.learn_many(X[:58], y[:58].tolist())
    else:
        said(model, X[:58], y[:58])
    other = make()
    other.restore(model.state)
    assert said(other, X[58:], y[58:]) == expected[58:]


def test_who_cannot_begin_a_process_fits_when_it_is_due(monkeypatch):
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    X, y = table()
    expected = said(by_stack(), X, y)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert said(by_stack(), X, y) == expected
    monkeypatch.setattr(sys, "executable", "")
    assert said(by_stack(), X, y) == expected


@pytest.fixture
def no_trees_there(tmp_path, monkeypatch):
    """Let other processes find an empty scikit-learn: to import it takes two seconds, and these calls need none."""
    (tmp_path / "sklearn").mkdir()
    for name in ("__init__.py", "ensemble.py"):
        (tmp_path / "sklearn" / name).touch()
    monkeypatch.syspath_prepend(tmp_path)


def broken(X, y):
    raise ValueError("X must be better")


def double(X, y):
    return 2 * X


def here_or_never(X, y, pid):
    if os.getpid() != pid:
        time.sleep(60)
    return 2 * X


def test_a_fit_that_fails_is_made_here_and_says_why(no_trees_there, monkeypatch):
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    X, y = table()
    monkeypatch.setattr(FitAhead, "begun", True)
    fits = Fits()
    fits.begin(broken, X, y)
    with pytest.raises(ValueError, match="X must be better"):
        fits.to(broken, X, y)
    assert fits.to(double, X, y) is not None


def test_one_process_at_a_time_and_none_is_left_behind(no_trees_there, monkeypatch):
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    X, y = table()
    running, fits = FitAhead(time.sleep, (60,)), Fits()
    monkeypatch.setattr(fit_ahead, "_latest", ref(running))
    assert running.runs
    fits.begin(double, X, y)
    assert fits.ahead[1] is None
    assert fit_ahead.busy()
    process = running.process
    del running
    assert process.poll() is not None, "whoever is not waited for is stopped"
    fits.begin(double, X[:9], y)
    assert isinstance(fits.ahead[1], FitAhead)
    assert not fits.ahead[1].begun, "it is not waited for"
    assert (fits.to(double, X[:9], y) == 2 * X[:9]).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_leaves_the_fit_to_its_parent(no_trees_there):
    one = FitAhead(abs, (-3,))
    child = os.fork()
    if not child:
        os._exit(0 if one.result() is None and not one.runs else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert one.result() == 3


def test_what_a_call_or_its_process_prints_is_no_answer(no_trees_there, tmp_path, monkeypatch):
    assert FitAhead(exec, ("print('x' * 100_000)",)).result() is None  # what exec returns
    assert FitAhead(eval, ("print('x' * 100_000) or 7",)).result() == 7
    (tmp_path / "sitecustomize.py").write_text("print('good morning', flush=True)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert FitAhead(abs, (-3,)).result() is None


def test_a_frozen_program_does_not_begin_itself_again(monkeypatch):
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    fits = Fits()
    fits.begin(double, *table())
    assert fits.ahead[1] is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="elsewhere a process does not learn that another has ended")
def test_a_process_whose_asker_was_killed_ends():
    code = (
        "import time, os; from venn.machines.fit_ahead import FitAhead; one = FitAhead(time.sleep, (60,));"
        "print(one.process.pid, flush=True); time.sleep(1.5); os._exit(9)"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid, until = int(asked.stdout), time.monotonic() + 20
    while time.monotonic() < until and alive(pid):
        time.sleep(0.1)
    assert not alive(pid)


def alive(pid):
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_process_that_hangs_is_not_waited_for_and_one_that_works_for_long_is(no_trees_there, monkeypatch):
    monkeypatch.setattr(life, "SILENCE", 2.0)
    X, y = table()
    works = FitAhead(eval, ("__import__('time').sleep(4) or 7",))
    assert works.result() == 7
    monkeypatch.setattr(fit_ahead, "LONG", 1)
    monkeypatch.setattr(fit_ahead, "_latest", None)
    fits = Fits()
    fits.begin(here_or_never, X, y, os.getpid())
    hangs = fits.ahead[1]
    while not hangs.begun:
        time.sleep(0.01)
    os.kill(hangs.process.pid, signal.SIGSTOP)
    assert (fits.to(here_or_never, X, y, os.getpid()) == 2 * X).all()
    assert not hangs.runs
    assert not alive(hangs.process.pid)


@pytest.mark.parametrize("while_writing", [True, False])
def test_calls_are_made_in_turn_threads_may_wait_and_after_one_that_fails_there_are_none(
    while_writing, no_trees_there, monkeypatch
):
    monkeypatch.setattr(fit_ahead, "WHILE_WRITING", while_writing)
    one = FitAhead(range, (3,), (1, 2), ("x",), (5,))
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one.result, [1, 0, 1, 0])) == [range(1, 2), range(3)] * 2
    assert [one.result(i) for i in range(4)] == [range(3), range(1, 2), None, None]


def test_examples_are_passed_once_however_many_fits_are_foreseen(monkeypatch):
    X, y = table()
    passed = []
    monkeypatch.setattr(fit_ahead, "_latest", None)
    monkeypatch.setattr(fit_ahead, "FitAhead", lambda *given: (passed.append(len(pickle.dumps(given))), Fits())[1])
    Fits().foresee(double, X, y, [len(X) - 3, len(X) - 2, len(X) - 1, len(X)])
    assert X.nbytes < passed[0] < 2 * X.nbytes


def test_a_stream_that_can_be_read_once_is_not_read_before_its_turn():
    class Once:
        arrived = True

        def __init__(self, examples):
            self.examples = iter(examples)

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.examples)

    X, y = table()
    panel = venn.Panel(forecast=venn.predictors.ExpertMixture([Refits([0, 1])]))
    assert len(venn.replay(Once(zip(X, y.tolist(), strict=True)), panel, progress=False)) == len(X)


def test_no_fit_is_begun_that_falls_due_after_the_last_example(monkeypatch):
    began = []

    class Begun:
        begun = runs = False

        def __init__(self, *given):
            began.append(given)

        def result(self, i):
            return None

    monkeypatch.setattr(fit_ahead, "LONG", 1)
    monkeypatch.setattr(fit_ahead, "_latest", None)
    monkeypatch.setattr(fit_ahead, "FitAhead", Begun)
    X, y = table()
    examples = list(zip(X, y.tolist(), strict=True))
    for stream, expected in ((examples[:55], 0), (iter(examples[:55]), 1), (examples, 1)):
        began.clear()
        model = venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=60))
        venn.replay(stream, model, progress=False)
        assert len(began) == expected
    began.clear()
    model = venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=60))
    venn.replay(examples[:55], model, progress=False)
    model.learn_one(*examples[55])
    assert len(began) == 1, "more came"


@pytest.mark.parametrize(("late", "imported"), [(True, True), (False, True), (True, False)])
def test_a_replay_of_what_is_at_hand_has_the_answers_of_one_as_it_comes(late, imported, monkeypatch):
    """Fits to examples that are known are made before their turn, and where they do not come they are made here.

    Unless that would take an import: then they are waited for, the first ones as well.
    """
    X, y = table(n=120)
    asked, ask = [], FitAhead.result
    monkeypatch.setattr(FitAhead, "result", lambda self, i: (found := ask(self, i), asked.append(found is not None))[0])
    monkeypatch.setattr(FitAhead, "begun", not late)
    monkeypatch.setattr("venn.predictors.refits.SLOW", 100)
    for module in ("venn.predictors.refits", "venn.machines.fit_ahead"):
        monkeypatch.setattr(f"{module}.trees_imported", lambda: imported)

    def replayed(stream, panel):
        record = venn.replay(stream, panel, progress=False)
        return record.table(), record.outcomes("forecast").lower.tobytes(), len(asked)

    def panel():
        return venn.Panel(forecast=venn.predictors.ExpertMixture([Refits([0, 1], first=81)]))

    examples = list(zip(X, y.tolist(), strict=True))
    as_they_come = replayed(iter(examples), panel())
    assert as_they_come[2] == 0
    assert replayed(examples, panel())[:2] == as_they_come[:2]
    assert asked == [True] * (2 if not imported else 0 if late else 1), "at 81 and 113"
    if late:
        return
    asked.clear()
    model = panel()
    model.learn_one(*examples[0])
    replayed(examples[1:], model)
    assert asked == [], "what comes is not the first"


@pytest.mark.skipif(not fit_ahead.WHILE_WRITING, reason="calls are known before a process begins here")
def test_the_first_calls_go_to_the_process_that_is_ready(monkeypatch):
    monkeypatch.setattr(fit_ahead, "one_core", lambda: False)
    monkeypatch.setattr(fit_ahead, "waiting", None)
    fit_ahead.get_ready()
    ready = fit_ahead.waiting
    fit_ahead.get_ready()
    assert fit_ahead.waiting is ready, "one is enough"
    first, second = FitAhead(abs, (-3,), (np.ones(1 << 16),)), FitAhead(abs, (-4,))
    assert first.process is ready.process is not second.process
    assert first.result() == 3
    assert len(first.result(1)) == 1 << 16
    fit_ahead.get_ready()
    fit_ahead.waiting.process.kill()
    fit_ahead.waiting.process.wait()
    assert FitAhead(abs, (-5,)).result() == 5
    assert second.result() == 4


@pytest.mark.parametrize(
    ("args", "begins"), [(["car"], True), (["car", "--help"], False), (["car", "--predictors", "venn"], False)]
)
def test_a_replay_gets_it_ready_before_it_is_imported(args, begins):
    code = (
        "import sys; from venn.cli import commands; begun = []\n"
        "commands.get_ready = lambda: begun.append('venn._compiled.jit' in sys.modules)\n"
        f"given = ['replay', *{args!r}]\n"
        "commands.main.resolve_command(commands.main.make_context('venn', [*given]), given); print(begun)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == ("[False]" if begins else "[]"), found.stderr
