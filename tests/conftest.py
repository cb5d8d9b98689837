"""What the tests of the machine and its readers share: small streams full of ties, kernels in both worlds."""

import contextlib
import copy
import csv
import functools
import gc
import importlib
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import lanes
import numpy as np
import pytest
import stand_ins
from naive import svm

import venn
import venn.shifts
from streams.loaded import CAR, car_rows

# Tests stand in rooms, as the product does. Some build on others, whichever room has these.
HERE = Path(__file__).parent
sys.path += sorted({str(path.parent) for path in HERE.glob("*/test_*.py")})

# A run in the background of a script ignores Ctrl-C, and so would every program that a test starts.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["STREAMS_OFFLINE"] = "1"  # a test that needs a network makes one on the loopback

# Bytecode is kept, whatever this shell says: else each worker parses all tests, and each program they start all of us.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.disable()  # until all tests are collected: what is made then stays


def whole(config) -> bool:
    """Whether all tests are asked for, not those of some files or names."""
    if hasattr(config, "workerinput"):
        return config.workerinput["whole"]
    return config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker what was asked for: it is given all folders by name."""
    node.workerinput["whole"] = whole(node.config)


def without_programs(config) -> bool:
    return whole(config) and not config.option.markexpr


def pytest_report_header(config):
    """Say what is left out."""
    if without_programs(config):
        return "left out: tests of examples, studies and attacks, and what takes long; -m program runs them"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Before a whole suite goes to workers, compile what they all need, else each would; and one thread for each."""
    config = session.config
    if whole(config) and getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the workers keep all cores busy: more threads would wait for one another
        # Not again while the loops stand as they were.
        loops = [f"{path} {path.stat().st_mtime}" for path in sorted(Path(venn.__file__).parent.glob("_compiled/*.py"))]
        loops.append(os.environ.get("NUMBA_CACHE_DIR", ""))
        if config.cache.get("venn/compiled", None) == loops:
            return
        program = str(Path(__file__).with_name("compile_first.py"))
        halves = [subprocess.Popen([sys.executable, program, half]) for half in ("hinge", "others")]
        for half in halves:
            assert half.wait() == 0, "compiling what the tests need failed"
        config.cache.set("venn/compiled", loops)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """In one of several workers, import a share of the test files first.

    Pytest rewrites the asserts of each file once and keeps the result. All workers would do it at the same time, each
    for itself; so each begins with other files, and then reads what the others have kept.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker and worker["whole"]:
        number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        for path in sorted(HERE.rglob("test_*.py"))[number::workers]:
            with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong
                importlib.import_module(path.stem)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark slow tests, and put the longest files first: a worker takes a whole file, and the last should be short."""
    programs = [item for item in items if item.get_closest_marker("program")]
    for item in [*lanes.beyond(lanes.quick, items), *programs]:
        item.add_marker(pytest.mark.slow)
    if whole(config):
        for item in lanes.beyond(lanes.usual, items):
            item.add_marker(pytest.mark.program)
    if without_programs(config):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("program")])
        items[:] = [item for item in items if not item.get_closest_marker("program")]
    items.sort(key=lambda item: -lanes.seconds(item.path.name))


@pytest.fixture
def undrawn():
    """Write empty figures: most of what a short command takes is drawing. `undrawn.undo()` draws again."""
    from venn.show import plot

    def drawn(form, *given, **named):
        path = form.bind(*given, **named).arguments["path"]
        figure = plot.blank(1, 1)  # or says what figures need
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        return figure

    with pytest.MonkeyPatch.context() as patch:
        for name in ("curves", "errors", "martingales", "p_values", "reliability"):
            patch.setattr(plot, name, functools.partial(drawn, inspect.signature(getattr(plot, name))))
        yield patch


@pytest.fixture(scope="module", autouse=True)
def few_trees(request):
    """Let forests have 12 trees, not 100: enough that nearly each example is left out by some, in little time.

    Boosting has as many rounds. A module that needs all says so: ALL_TREES = True.
    """
    with pytest.MonkeyPatch.context() as patch:
        if getattr(request.module, "ALL_TREES", False):
            yield
            return
        for room, name, few in (("stack", "TREES", 12), ("stack", "LEAVES", 12), ("number_stack", "TREES", 12),
                                ("number_stack", "ROUNDS", 12), ("number_experts", "TREES", 12)):  # fmt: skip
            patch.setattr(f"venn.machines.{room}.{name}", few)
        yield


@pytest.fixture(scope="session", autouse=True)
def frozen():
    """Tell `venn run` that what is here is frozen: to count it, as it does, takes longer than most short commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("venn.cli.run.gc", SimpleNamespace(get_freeze_count=lambda: 1, get_objects=list))
        yield


@pytest.fixture(scope="session")
def patient_nannies():
    """Give the processes of a cluster a minute to end, not five seconds: a machine with much else to do may need it."""
    nanny = pytest.importorskip("distributed").Nanny
    close = nanny.close
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nanny, "close", lambda self, *_, **options: close(self, **{**options, "timeout": 60}))
        yield


def pytest_collection_finish():
    """Look no more at what collecting has made: it lives as long as the worker; and less often at what tests make."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


def public():
    """Return every public name of `venn` and its rooms, whichever room has it: what a repr shows can be typed."""
    return dict(named())


@functools.cache
def named():
    rooms = [room for name in venn.__all__ if inspect.ismodule(room := getattr(venn, name))]
    rooms = [*(room for room in rooms if room is not venn.scale), venn.shifts]
    found = {name: getattr(room, name) for room in rooms for name in room.__all__}
    del found["ByScores"]  # a base class, of measures and of taxonomies
    return found


# One kernel in both worlds: the engine's object and the oracle's function.
KERNELS = {
    "rbf": (venn.RBF(0.5), svm.rbf(0.5)), "rbf flat": (venn.RBF(1e-3), svm.rbf(1e-3)),
    "rbf sharp": (venn.RBF(50.0), svm.rbf(50.0)), "linear": (venn.Linear(), svm.linear()),
    "quadratic": (venn.machines.Polynomial(2), svm.polynomial(2)),
    "cubic": (venn.machines.Polynomial(3, 0.5, 0.0), svm.polynomial(3, 0.5, 0.0)),
}  # fmt: skip


def objects(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n objects: in general position, on a grid, few distinct ones, with a constant feature, repeated."""
    if kind == "normal":
        return rng.normal(size=(n, 2))
    if kind == "grid":
        return rng.integers(0, 3, size=(n, 2)).astype(float)
    if kind == "few":
        return rng.integers(0, 4, size=(n, 1)).astype(float)
    if kind == "binary":
        return rng.integers(0, 2, size=(n, 3)).astype(float)
    if kind == "constant":
        X = rng.normal(size=(n, 3))
        X[:, 1] = 2.0
        return X
    if kind == "repeats":
        return rng.normal(size=(n, 2))[rng.integers(0, max(1, n // 3), n)]
    raise ValueError(kind)


OBJECTS = ("normal", "grid", "few", "binary", "constant", "repeats")


def labels(kind: str, rng: np.random.Generator, X: np.ndarray, c: int) -> np.ndarray:
    """Return codes 0..c-1: noise, a noisy function of the object, or classes that come late or take turns."""
    n = len(X)
    if kind == "noise":
        return rng.integers(0, c, n)
    if kind == "signal":
        return np.clip(np.floor(1.3 * X[:, 0] + 0.3 * rng.normal(size=n) + 1), 0, c - 1).astype(int)
    if kind == "turns":  # two classes alternate, the others never come
        return np.arange(n) % 2
    if kind == "late":
        return np.where(np.arange(n) < n // 2, 0, rng.integers(0, c, n))
    if kind == "one":
        return np.full(n, c - 1)
    raise ValueError(kind)


LABELS = ("noise", "signal", "turns", "late")


def halved(first, second):
    """Return half the pairs of two sequences, like the black fields of a board: each value meets half of the others."""
    return [(one, other) for i, one in enumerate(first) for j, other in enumerate(second) if (i + j) % 2 == 0]


def refused(call, rows, kind=(TypeError, ValueError), plain=False):
    """Return a test that each row is refused: arguments of a call, perhaps the kind of its error, what its error says.

    Where `call` is None the argument is called; what is said is a pattern, unless it is `plain`.
    """

    @pytest.mark.parametrize("row", rows, ids=lambda row: row[-1])
    def test(row):
        *given, said = row
        own = isinstance(given[-1], type) and issubclass(given[-1], Exception)
        with pytest.raises(given.pop() if own else kind, match=re.escape(said) if plain else said):
            (call or given.pop())(*given)

    return test


def well(result):
    """Return the result of a command that has ended well."""
    assert result.exit_code == 0, result.output
    return result


def learned(machine, X, y):
    """Teach a machine or predictor the examples and return it."""
    for x, label in zip(X, y, strict=True):
        machine.learn_one(x, label)
    return machine


def goes_on(model, X, y, same, folder):
    """Check that a copy of a forecaster and one from a file say the same of each example to come, and at the end."""
    venn.save(folder / "model", model)
    others = [pickle.loads(pickle.dumps(model)), venn.load(folder / "model")]
    for x, label in zip(X, y, strict=True):
        outlook = model.predict_one(x)
        for other in others:
            assert same(outlook, other.predict_one(x))
        for one in (model, *others):
            one.learn_one(x, label)
    assert [repr(other) for other in others] == [repr(model)] * 2
    assert [other.verdict() for other in others] == [model.verdict()] * 2


def leaving_out(make, X, y):
    """Yield (i, a model that learned all examples but i), for every i.

    With n log n examples learned instead of n^2: a copy learns one half of those in question before its ways part over
    which of the other half to leave out. Machines of the hinge loss learn a small bag anew: their buffers are large.
    """
    if isinstance(getattr(make(), "machine", None), venn.OneVsAllSVM):
        for i in range(len(y)):
            yield i, learned(make(), np.delete(X, i, 0), np.delete(y, i))
        return

    def parted(model, left):
        if len(left) == 1:
            yield left[0], model
            return
        halves = left[: len(left) // 2], left[len(left) // 2 :]
        for mine, others in (halves, halves[::-1]):
            yield from parted(learned(copy.deepcopy(model), X[others], y[others]), mine)

    yield from parted(make(), np.arange(len(y)))


def same_answer(first, second) -> bool:
    """True when two answers about one object agree to the last bit, under every hypothesis."""
    c = first.test_scores.size
    tables = [name for name in ("scores", "leave_one_out", "duals") if hasattr(first, name)]
    return all(
        np.array_equal(getattr(first, name)(j), getattr(second, name)(j)) for j in range(c) for name in tables
    ) and np.array_equal(first.test_scores, second.test_scores)


def published(name: str) -> list[dict[str, str]]:
    """Return the rows of a published set in $STREAMS_DATA, or skip the test."""
    folder = os.environ.get("STREAMS_DATA")
    path = Path(folder or "", f"{name}.csv")
    if not folder or not path.exists():
        pytest.skip(f"STREAMS_DATA names no folder with {name}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def car(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Car data, shuffled: ordinal codes, standardised over the whole file; class codes.

    They are generated; a test of the sets compares them with the published file's checksum.
    """
    rows = list(car_rows())
    X = np.array([[order.index(v) for order, v in zip(CAR.values(), row, strict=False)] for row in rows], float)
    return shuffled(X, [row[-1] for row in rows], seed)


def wine(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return red wine, shuffled and standardised over the whole file; class codes. Without the file a stand-in."""
    if stand_ins.nowhere("wine_red"):
        return shuffled(*stand_ins.table("wine_red"), seed)
    values = [list(row.values()) for row in published("wine_quality_red")]
    return shuffled(np.array([row[:-1] for row in values], float), [row[-1] for row in values], seed)


def shuffled(X: np.ndarray, names: list[str], seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(X))
    codes = np.unique(names, return_inverse=True)[1]
    return ((X - X.mean(axis=0)) / X.std(axis=0))[order], codes[order]
