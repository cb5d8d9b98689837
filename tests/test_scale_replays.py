"""Many replays: the table equals a loop written by hand, whoever does them, dies or does them twice."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import venn
from venn.scale.digests import digest
from venn.scale.tasks import Results, Task, grid, replays

pytest.importorskip("distributed", reason="the package distributed is not installed")
HERE = Path(__file__).parent
CLASSES = ("no", "yes")


class Examples(list):
    """A stream of a few examples."""

    classes = CLASSES
    name = "few"


def few(n=12, shuffle=0):
    """Ties and duplicates, in an order of its own for each shuffle."""
    rng = np.random.default_rng(shuffle)
    return Examples((rng.integers(3, size=2).astype(float), CLASSES[rng.integers(2)]) for _ in range(n))


def counted(folder, n=12, shuffle=0):
    """The same; leaves a file for every time that it is called."""
    (Path(folder) / f"{shuffle}-{os.getpid()}-{os.urandom(4).hex()}").touch()
    return few(n, shuffle)


def deadly(folder, dies, shuffle=0):
    """The same; the first process that is told `dies` is killed by the system."""
    stream = counted(folder, shuffle=shuffle)
    try:
        if shuffle == dies:
            (Path(folder) / "killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass  # it was done before
    return stream


def sharp(classes, C=1.0):
    return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), C, classes), venn.Argmax())


def both(classes, C=1.0):
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), C, classes)
    return venn.Panel(venn=venn.TransductiveVenn(machine, venn.Argmax()), abers=venn.TransductiveVennAbers(machine))


def fails(classes, C=1.0):
    raise ValueError(f"C must please me, got {C}")


def calls(folder):
    """Return how often each shuffle was asked for."""
    names = [path.name.split("-")[0] for path in Path(folder).glob("*-*")]
    return {int(name): names.count(name) for name in names}


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.npz")}


def test_the_table_equals_a_loop_written_by_hand(tmp_path):
    tasks = grid(stream={"few": few}, predictor={"sharp": sharp, "both": both}, shuffle=[0, 3], C=[1, 10.0], steps=10)
    rows = replays(tasks, tmp_path, workers=0)
    expected = []
    for name, predictor in (("sharp", sharp), ("both", both)):
        for shuffle in (0, 3):
            for C in (1, 10.0):
                record = venn.replay(few(shuffle=shuffle), predictor(CLASSES, C), steps=10)
                for member, means in record.means().items():
                    called = name if name == "sharp" else f"both/{member}"
                    expected.append({"stream": "few", "predictor": called, "shuffle": shuffle, "C": C} | means)
    assert len(rows) == len(expected) == 12
    for row, right in zip(rows, expected, strict=True):
        assert {key: row[key] for key in right} == right
        assert row["error"] is None
        assert row["examples"] == 10
        kept = venn.Record.load(row["record"])
        assert kept.means()[row["predictor"].partition("/")[2] or "TransductiveVenn"]["brier"] == row["brier"]
        assert kept.shuffle == row["shuffle"]


def test_what_is_done_is_skipped_and_what_failed_is_tried_again(tmp_path, caplog):
    stream = {"few": partial(counted, str(tmp_path))}
    tasks = grid(stream=stream, predictor={"sharp": sharp, "fails": fails}, shuffle=range(3), C=[2])
    with caplog.at_level(logging.WARNING, "venn"):
        rows = replays(tasks, tmp_path / "out", workers=0)
    assert caplog.messages == ["3 of 6 replays failed, the first with ValueError: C must please me, got 2"]
    assert [row["error"] for row in rows] == [None] * 3 + ["ValueError: C must please me, got 2"] * 3
    assert calls(tmp_path) == {0: 2, 1: 2, 2: 2}
    kept = json.loads((tmp_path / "out" / f"{tasks[3].name}.json").read_text())
    assert 'raise ValueError(f"C must please me' in kept["trace"]
    again = replays(tasks, tmp_path / "out", workers=0)
    assert again == [
        *rows[:3],
        *[row | {"seconds": new["seconds"]} for row, new in zip(rows[3:], again[3:], strict=True)],
    ]
    assert calls(tmp_path) == {0: 3, 1: 3, 2: 3}  # those that failed
    replays(tasks[:3], tmp_path / "out", workers=0)
    assert calls(tmp_path) == {0: 3, 1: 3, 2: 3}
    (tmp_path / "out" / f"{tasks[0].name}.json").write_text("{")  # a file of somebody else's
    (tmp_path / "out" / f"{tasks[1].name}.npz").unlink()
    replays(tasks[:3], tmp_path / "out", workers=0)
    assert calls(tmp_path) == {0: 4, 1: 4, 2: 3}
    for again in range(2):  # failed, and no record would be there anyway
        replays(tasks[5:], tmp_path / "out", workers=0, records=False)
        assert calls(tmp_path) == {0: 4, 1: 4, 2: 4 + again}


def test_a_second_run_of_a_task_gives_the_same_file(tmp_path):
    tasks = grid(stream={"few": few}, predictor={"both": both}, shuffle=range(2))
    replays(tasks, tmp_path / "a", workers=0)
    replays(reversed(tasks), tmp_path / "b", workers=0)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != {}
    replays(tasks, tmp_path / "c", workers=0, records=False)
    assert contents(tmp_path / "c") == {}


def test_a_worker_is_killed_and_nothing_differs(tmp_path):
    """On a cluster of two processes, one dies in the middle of a task; the rest is done, by two again."""
    tasks = grid(stream={"few": partial(deadly, str(tmp_path), 5)}, predictor={"both": both}, shuffle=range(12))
    tasks += grid(stream={"few": few}, predictor={"fails": fails})
    rows = replays(tasks, tmp_path / "cluster", workers=2)
    assert (tmp_path / "killed").exists()
    assert [row["error"] for row in rows] == [None] * 24 + ["ValueError: C must please me, got 1.0"]
    done = calls(tmp_path)
    assert done.keys() == set(range(12))
    assert done[5] >= 2
    for part in tmp_path.glob("*-*"):
        part.unlink()
    replays(tasks[:12], tmp_path / "cluster", workers=2)  # starts no process either
    assert calls(tmp_path) == {}
    alone = grid(stream={"few": few}, predictor={"both": both}, shuffle=range(12))
    replays(alone, tmp_path / "alone", workers=0)
    for one, other in zip(tasks, alone, strict=False):
        mine = (tmp_path / "cluster" / f"{one.name}.npz").read_bytes()
        assert mine == (tmp_path / "alone" / f"{other.name}.npz").read_bytes()


@pytest.mark.parametrize(
    ("make", "error", "reason"),
    [
        (lambda: grid(stream={"few": lambda: 1}, predictor={"sharp": sharp}), TypeError, "got a lambda: write it with"),
        (
            lambda: grid(stream=[few], predictor={"sharp": sharp}),
            TypeError,
            "stream must be a mapping of names to func",
        ),
        (lambda: grid(stream={"few": few}, predictor={"sharp": 3}), TypeError, "predictor must be a mapping of names"),
        (lambda: grid(stream={"few": few}, predictor={"sharp": sharp}, C=3), TypeError, "C must be several values"),
        (lambda: grid(stream={"few": few}, predictor={"a": sharp}, error=[3]), ValueError, "labels must leave"),
        (lambda: grid(stream={"few": few}, predictor={"a": sharp}, steps=0), ValueError, "steps must be an integer"),
        (lambda: grid(stream={"few": few}, predictor={"a": sharp}, steps="a"), TypeError, "steps must be an integer"),
        (lambda: grid(stream={"few": few}, predictor={"a": sharp}, C=[object()]), TypeError, "objects whose repr says"),
        (lambda: replays([3], "."), TypeError, "tasks must be Tasks"),
        (lambda: replays([], ".", workers=-1), ValueError, "workers must be an integer >= 0, got -1"),
        (lambda: replays([], ".", workers=0, cluster="a"), ValueError, "workers must be left out where a cluster"),
        (lambda: Task({"a": [1]}, few), TypeError, "labels must be text or numbers"),
        (lambda: Task({"a": 1}, 3), TypeError, "make must be callable, got 3"),
    ],
    ids=[f"{i}" for i in range(13)],
)
def test_what_is_refused(make, error, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=reason):
        make()


def test_a_stream_without_classes_is_told(tmp_path):
    rows = replays(grid(stream={"bare": list}, predictor={"sharp": sharp}), tmp_path, workers=0)
    assert rows[0]["error"] == "TypeError: stream must have classes, which the predictor is made for, got list"


def test_a_task_that_cannot_be_sent_is_refused_before_a_process_starts(tmp_path):
    class Bound:
        def __repr__(self):
            return "Bound()"

        def __reduce__(self):
            raise TypeError("it is bound to this process")

    Bound.__qualname__ = "Bound"
    tasks = grid(stream={"few": few}, predictor={"sharp": sharp}, C=[Bound()])
    with pytest.raises(TypeError, match=r"tasks must be such .* got Task\(.*: it is bound to this process"):
        replays(tasks, tmp_path)


PIECES = [
    None, True, 1, 1.0, -1, "1", b"1", Path("1"), np.float64(1), np.int64(1), np.array([1]), np.array([1.0]),
    np.array([[1]]), [1, [2]], [[1], 2], {"a": 1}, {"a": 2}, {1: 2}, {1, 2}, few, sharp, partial(few, 3),
    partial(few, n=3), partial(few, 4), venn.RBF(1.0), venn.RBF(2.0), list, {}, [],
]  # fmt: skip


def test_different_things_have_different_digests():
    found = [digest("it", piece) for piece in PIECES]
    assert len(set(found)) == len(PIECES)
    assert found == [digest("it", piece) for piece in PIECES]
    large = np.zeros(5000)
    large[2500] = 1  # where a repr would leave it out
    assert digest("it", large) != digest("it", np.zeros(5000))


def test_the_digest_of_a_script_is_the_same_in_every_process_and_another_when_its_functions_change(tmp_path):
    script = """
        from functools import partial
        from venn.scale.digests import digest
        def make(classes, C):
            return {what}
        print(digest("make", partial(make, C={{"b", "a", "c"}})))
    """
    found = []
    for name, what in (("a.py", 1), ("a.py", 1), ("a.py", 2), ("b.py", 1)):
        (tmp_path / name).write_text(textwrap.dedent(script.format(what=what)))
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": str(len(found))}
        found.append(
            subprocess.run(
                [sys.executable, tmp_path / name], env=environment, capture_output=True, text=True, check=True
            ).stdout
        )
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_results_of_another_version_are_done_again(tmp_path):
    (task,) = grid(stream={"few": few}, predictor={"sharp": sharp})
    replays([task], tmp_path, workers=0)
    path = tmp_path / f"{task.name}.json"
    assert Results(tmp_path, True).read(task)
    path.write_text(path.read_text().replace('"version": 1', '"version": 0'))
    assert Results(tmp_path, True).read(task) == {}


# ---------------------------------------------------------------------- a cluster of hosts, one of them unplugged

QUICKLY = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}  # without a word from a worker it counts as lost


def _ip(*words, check=True):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


@pytest.fixture
def complaints(tmp_path):
    with open(tmp_path / "stderr", "w") as file:
        yield file


@pytest.fixture
def hosts():
    """Three hosts on a switch, each a network namespace: names, and a function that unplugs one."""
    if not (shutil.which("ip") and hasattr(os, "geteuid") and os.geteuid() == 0):
        pytest.skip("network namespaces need ip and root")
    mark = f"v{os.getpid() % 10**6}"
    names = [f"{mark}{letter}" for letter in "sab"]
    if _ip("netns", "add", names[0], check=False).returncode:
        pytest.skip("this machine allows no network namespaces")
    try:
        for name in names[1:]:
            _ip("netns", "add", name)
        for name in names:
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", names[0], "link", "add", "br0", "type", "bridge")
        _ip("-n", names[0], "link", "set", "br0", "up")
        _ip("-n", names[0], "addr", "add", "10.77.0.1/24", "dev", "br0")
        for place, name in enumerate(names[1:], 2):
            _ip("-n", names[0], "link", "add", f"to{place}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", names[0], "link", "set", f"to{place}", "master", "br0", "up")
            _ip("-n", name, "addr", "add", f"10.77.0.{place}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
    except subprocess.CalledProcessError as error:
        for name in names:
            _ip("netns", "del", name, check=False)
        pytest.skip(f"this machine allows no network of namespaces: {error.stderr}")
    yield names, lambda place: _ip("-n", names[0], "link", "set", f"to{place}", "down")
    for name in names:
        _ip("netns", "del", name, check=False)


def unhurried(folder, shuffle=0):
    """A stream that takes a while, so that a link can go down in its midst."""
    import time

    stream = counted(folder, shuffle=shuffle)
    time.sleep(0.2)
    return stream


UNPLUGGED = """
    import sys
    from functools import partial
    sys.path.insert(0, sys.argv[1])
    from test_scale_replays import both, unhurried
    from venn.scale.tasks import grid, replays
    tasks = grid(stream={"few": partial(unhurried, sys.argv[2])}, predictor={"both": both}, shuffle=range(20))
    rows = replays(tasks, sys.argv[3], cluster="tcp://10.77.0.1:8786")
    print(len(rows), [row["error"] for row in rows if row["error"]], sum(row["brier"] for row in rows).hex())
"""


def test_a_host_is_unplugged_and_the_total_is_exact(hosts, complaints, tmp_path):
    names, unplug = hosts
    environment = {**os.environ, **QUICKLY, "PYTHONPATH": f"{HERE.parent}:{HERE}"}

    def on(name, *words):
        return subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, *words],
            env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True,
        )  # fmt: skip

    command = ["-m", "distributed.cli.dask_scheduler", "--host", "10.77.0.1", "--port", "8786", "--no-dashboard"]
    calls_to = tmp_path / "calls"
    calls_to.mkdir()
    running = []
    try:
        running.append(on(names[0], *command))
        for name in names[1:]:
            worker = ["-m", "distributed.cli.dask_worker", "tcp://10.77.0.1:8786", "--no-dashboard", "--no-nanny"]
            running.append(on(name, *worker, "--nthreads", "1", "--local-directory", str(tmp_path / name)))
        script = textwrap.dedent(UNPLUGGED)
        client = on(names[0], "-c", script, str(HERE), str(calls_to), str(tmp_path / "out"))
        running.append(client)
        while len({path.name.split("-")[1] for path in calls_to.iterdir()}) < 2:  # until both are at work
            assert client.poll() is None, Path(complaints.name).read_text()
            signal.sigtimedwait([], 0.05)
        unplug(3)
        said = client.communicate(timeout=120)[0]
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()
    alone = replays(grid(stream={"few": few}, predictor={"both": both}, shuffle=range(20)), tmp_path / "a", workers=0)
    assert said.split() == ["40", "[]", sum(row["brier"] for row in alone).hex()]
    assert sum(calls(calls_to).values()) > 20  # what the lost host had begun was done again
