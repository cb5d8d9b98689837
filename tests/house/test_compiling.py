"""Loops are compiled as parts of those that Python calls; by a numba that nobody has tried, each by itself."""

import os
import signal
import subprocess
import sys
from tempfile import TemporaryFile

import numba
import numpy as np
import pytest
from numba.core import caching

from venn._compiled import jit, life, rows, solvers
from venn.cli import beside

STEPS = """
import importlib, numba, numpy as np
from venn._compiled import jit
for version in {others}:
    numba.version_info = numba.version_info._replace(short=version)
    assert importlib.reload(jit).Whole is None
from venn._compiled import rows, solvers
assert (jit.Whole is None) == bool({others})
rng = np.random.default_rng(0)
K, beta, score = rng.normal(size=(70, 70)), rng.normal(size=70), np.empty(70)
solvers.scores_from(beta, 0.5, K, 67, score)
print(score[:67].tobytes().hex())
"""


def scores(folder, others=()):
    """Return the bytes of scores by loops that are compiled anew: by this numba, or by the last of other versions."""
    program = STEPS.format(others=others)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    return found.stdout.strip()


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_by_another_numba_loops_are_compiled_plainly_and_say_the_same(tmp_path):
    assert scores(tmp_path / "plain", ((0, 59), (1, 0))) == scores(tmp_path / "parts")


def test_a_loop_says_the_same_called_from_python_and_as_a_part():
    rng = np.random.default_rng(1)
    for n in (1, 2, 8, 9, 31):
        K, beta, score, own = rng.normal(size=(n, n)), rng.normal(size=n), np.empty(n), np.zeros(n)
        solvers.scores_from(beta, 0.0, K, n, score)
        rows.add_rows(own, n, K, np.arange(n), beta, n)
        assert np.allclose(score, own, rtol=1e-13, atol=1e-13)
        assert np.allclose(score, K.T @ beta, rtol=1e-12, atol=1e-12)


class Loop:
    """What numba says of a loop when it compiles it."""

    def __init__(self, module):
        self.data = {"dispatcher": self}
        self.py_func, self.stats = self, self
        self.cache_path = "cache"
        self.__module__ = module


def test_that_loops_are_compiled_is_said_once_and_only_if_it_takes_a_while(monkeypatch, caplog):
    now = 0.0
    monkeypatch.setattr(jit, "perf_counter", lambda: now)
    one, other = Loop("venn._compiled.path"), Loop("somebody")
    said = jit.Announcement()
    for k in range(9):  # 0.9 s in all
        said.on_start(one)
        now += 0.1
        said.on_end(one)
        now += 100.0  # not of compiling
        assert not caplog.messages, k
    for loop in (other, one, other):  # a loop of somebody else's, with parts
        said.on_start(loop)
        now += 0.1
    for loop in (other, one, other):
        said.on_end(loop)
    assert not caplog.messages
    for loop in (one, other, other):
        said.on_start(loop)
    for loop in (other, other, one):
        said.on_end(loop)
        said.on_start(one)
    assert caplog.messages == ["compiling loops that are used for the first time: seconds to a minute; kept in cache"]


def test_without_a_place_for_what_is_compiled_loops_are_compiled_all_the_same(monkeypatch, caplog):
    def more(x):
        return x + 1

    for how in ("nowhere", "not wanted"):
        with monkeypatch.context() as patch:
            if how == "nowhere":
                base = getattr(caching, "CacheImpl", None) or getattr(caching, "_CacheImpl")  # noqa: B009 - by version
                patch.setattr(base, "_locator_classes", [])
            else:
                patch.setenv("NUMBA_DISABLE_CACHING", "1")
            loop = jit.loops()(more)
        assert loop(1) == 2
        assert not getattr(loop, "stats", None) or loop.stats.cache_path is None
    nowhere = Loop("venn._compiled.path")
    nowhere.cache_path = None
    said = jit.Announcement()
    monkeypatch.setattr(jit, "NOTICEABLE", 0.0)
    for _ in range(3):
        said.on_start(nowhere)
        said.on_end(nowhere)
    assert len(caplog.messages) == 1
    assert "NUMBA_CACHE_DIR" in caplog.messages[0]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_a_full_disk_or_files_of_somebody_else_stop_no_loop(monkeypatch, tmp_path, caplog):
    def more(x):
        return x + 1

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    loop = jit.loops()(more)
    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    monkeypatch.setattr(caching.IndexDataCacheFile, "load", full)
    assert loop(1) == 2
    assert loop(1.5) == 2.5
    assert [message for message in caplog.messages if "No space left" in message] == caplog.messages
    assert len(caplog.messages) == 1


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_a_loop_that_another_process_compiles_is_waited_for_and_taken_from_the_cache(monkeypatch, tmp_path):
    def more(x):
        return x + 1

    class Other:
        def __init__(self, keeps, ends):
            self.keeps, self.ends, self.asked = keeps, ends, 0

        def poll(self):
            self.asked += 1
            if self.asked == 3 and self.keeps:
                assert jit.loops()(more)(1) == 2  # it keeps the loop, as another process would
            return 1 if self.asked == 3 and self.ends else None

    for keeps, ends in ((True, False), (True, True), (False, True)):
        other = Other(keeps, ends)
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / f"{keeps} {ends}"))
        with TemporaryFile() as dated:
            monkeypatch.setattr(jit, "compiled_elsewhere", {more: (other, dated)})
            loop = jit.loops()(more)
            assert loop(1) == 2
        assert other.asked == 3
        assert sum(loop.stats.cache_hits.values()) == keeps
        assert not jit.compiled_elsewhere


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_process_that_compiles_is_waited_for_while_it_shows_life(monkeypatch, tmp_path):
    def more(x):
        return x + 1

    monkeypatch.setattr(life, "SILENCE", 2.0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    works = "import threading, time; from venn._compiled.life import show_life; "
    works += "threading.Thread(target=show_life, args=(1,), daemon=True).start(); time.sleep({})"
    for stopped, seconds in ((False, 4), (True, 1000)):
        with TemporaryFile() as dated:
            other = subprocess.Popen([sys.executable, "-c", works.format(seconds)], stdout=dated)
            if stopped:
                other.send_signal(signal.SIGSTOP)
            monkeypatch.setattr(jit, "compiled_elsewhere", {more: (other, dated)})
            assert jit.loops()(more)(1.0 if stopped else 1) == 2
            assert other.wait() == (-signal.SIGKILL if stopped else 0)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_the_other_process_compiles_all_that_is_waited_for():
    program = """if True:
        from venn.cli import beside
        beside.compile_loops()
        print([len(loop.signatures) for loop in beside.AWAITED])"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == f"{[1] * len(beside.AWAITED)}\n"


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_the_other_process_is_begun_only_where_loops_are_missing_and_a_core_is_free(monkeypatch, tmp_path):
    class File:
        _index_path = str(tmp_path / "index")

    class Cache:
        _cache_file = File()

    begun = []
    monkeypatch.setattr(jit, "compiled_elsewhere", {})
    monkeypatch.setattr(beside.step, "solve_step", type("Loop", (), {"_cache": Cache()}))
    monkeypatch.setattr(beside.subprocess, "Popen", lambda command, **_: begun.append(command))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    beside.compile_beside()
    assert not begun  # one core
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    beside.compile_beside()
    assert begun == [[sys.executable, "-m", "venn.cli.beside"]]
    assert set(jit.compiled_elsewhere) == {loop.py_func for loop in beside.AWAITED}
    for _, dated in jit.compiled_elsewhere.values():
        dated.close()
    (tmp_path / "index").write_text("")
    beside.compile_beside()
    assert len(begun) == 1
