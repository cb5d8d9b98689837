"""Many replays: the table equals a loop written by hand, whoever does them, dies or does them twice."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest

import venn
from venn.online import archive
from venn.scale import cluster
from venn.scale.digests import digest
from venn.scale.tasks import Results, Task, grid, replays

pytest.importorskip("distributed", reason="the package distributed is not installed")
dask = pytest.importorskip("dask", reason="the package dask is not installed")
pytestmark = pytest.mark.usefixtures("patient_nannies")
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


def leaves(classes, C=1.0):
    raise SystemExit(3)


def kills(classes, C=1.0):
    os.kill(os.getpid(), signal.SIGKILL)


def frozen(classes, scorer):
    return venn.InductiveVennAbers(scorer)


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
        (lambda: grid(stream={"few": few}, predictor={"a": sharp}, C=[threading.Lock()]), TypeError, "pickle can take"),
        (lambda: Task({"log_loss": 1}, few), ValueError, "labels must leave .* got 'log_loss'"),
        (lambda: Task({"size_0.05": 1}, few), ValueError, "labels must leave .* got 'size_0.05'"),
        (lambda: replays([3], "."), TypeError, "tasks must be Tasks"),
        (lambda: replays([], ".", workers=-1), ValueError, "workers must be an integer >= 0, got -1"),
        (lambda: replays([], ".", workers=0, cluster="a"), ValueError, "workers must be left out if a cluster"),
        (lambda: Task({"a": [1]}, few), TypeError, "labels must be text or numbers"),
        (lambda: Task({"a": 1}, 3), TypeError, "make must be callable, got 3"),
    ],
    ids=[f"{i}" for i in range(15)],
)
def test_what_is_refused(make, error, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=reason):
        make()


def test_a_stream_without_classes_is_told(tmp_path):
    rows = replays(grid(stream={"bare": list}, predictor={"sharp": sharp}), tmp_path, workers=0)
    assert rows[0]["error"] == "TypeError: stream must have classes, which the predictor is made for, got list"


def test_a_task_that_cannot_be_sent_is_refused_before_a_process_starts(tmp_path):
    space = {"__name__": "__main__", "lock": threading.Lock()}
    exec("def bound(shuffle=0):\n    return lock", space)  # what it reads goes along, and cannot
    tasks = grid(stream={"few": space["bound"]}, predictor={"sharp": sharp})
    with pytest.raises(TypeError, match=r"tasks must be objects .* got Task\(.*: cannot pickle '_thread"):
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


def fitted(seed):
    """Return a scikit-learn classifier: the same for the same seed, and with the same repr for all."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    return LogisticRegression().fit(rng.normal(size=(20, 2)), np.array(CLASSES)[np.arange(20) % 2])


def in_series(seed):
    return pytest.importorskip("pandas").Series([0.0] * 99 + [seed])


def in_sparse(seed):
    return pytest.importorskip("scipy.sparse").csr_array([[1.0 + seed]])


def learned(seed):
    machine = venn.OneVsAllSVM(venn.RBF(1.0), 1.0, CLASSES)
    for x, y in few(seed):
        machine.learn_one(x, y)
    return machine


@lru_cache
def remembered(seed):
    return seed


def holding_itself(seed):
    found = [seed]
    found.append(found)
    return found


SEEDED = [
    fitted, in_series, in_sparse, learned, holding_itself,
    lambda seed: venn.FrozenScorer(fitted(seed)),
    lambda seed: np.ma.array([1, 2], mask=[0, seed]),
    lambda seed: np.array([str(seed), None], object),
    lambda seed: np.array([(seed, 0.0)], dtype=[("a", "i4"), ("b", "f8")]),
    lambda seed: np.random.RandomState(seed).normal,
    lambda seed: np.random.default_rng(seed),
    lambda seed: venn.OneVsAllSVM(venn.RBF(1.0 + seed), 1.0, CLASSES),
    lambda seed: [remembered, fails][seed],
    lambda seed: [(1,), [1]][seed],
    lambda seed: np.zeros(1, [[("a", "i4")], [("b", "i4")]][seed]),
]  # fmt: skip


@pytest.mark.parametrize("made", SEEDED, ids=[f"{i}" for i in range(len(SEEDED))])
def test_the_content_of_an_object_is_in_its_digest(made):
    assert digest("it", made(0)) == digest("it", made(0))
    assert digest("it", made(0)) != digest("it", made(1))


def test_a_fitted_scorer_is_no_other_one(tmp_path):
    """Two scorers of the same repr: each has its own result, under its own name in the table."""
    tasks = grid(
        stream={"few": few}, predictor={"frozen": frozen}, scorer=[venn.FrozenScorer(fitted(seed)) for seed in (1, 2)]
    )
    rows = replays(tasks, tmp_path, workers=0)
    alone = [venn.replay(few(), venn.InductiveVennAbers(venn.FrozenScorer(fitted(seed)))) for seed in (1, 2)]
    assert [row["brier"] for row in rows] == [record.means()["InductiveVennAbers"]["brier"] for record in alone]
    assert rows[0]["brier"] != rows[1]["brier"]
    assert [row["scorer"].rpartition(" ")[2] for row in rows] == ["#0", "#1"]


PROMPT = """
    from functools import partial
    from venn.scale.digests import digest
    def make(classes, C={default}):
        return [{what} for one in classes]
    print(digest("make", make))
    class Made:
        pass
    try:
        digest("make", Made)
    except TypeError as error:
        print(error)
"""


def test_functions_typed_at_a_prompt_are_told_apart():
    found = []
    for what, default in (("one", 1), ("one", 1), ("two", 1), ("one", 2)):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        script = textwrap.dedent(PROMPT.format(what=what, default=default))
        done = subprocess.run(
            [sys.executable, "-"], input=script, env=environment, capture_output=True, text=True, check=True
        )
        assert "must name classes of a file, whose text can be read, got Made" in done.stdout
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_iterators_and_arrays_are_lists_of_values(tmp_path):
    once = grid(stream={"a": few, "b": few}, predictor={"sharp": sharp}, shuffle=iter(range(3)), C=(C for C in (1, 2)))
    arrays = grid(stream={"a": few, "b": few}, predictor={"sharp": sharp}, shuffle=np.arange(3), C=np.array([1, 2]))
    lists = grid(stream={"a": few, "b": few}, predictor={"sharp": sharp}, shuffle=[0, 1, 2], C=[1, 2])
    assert len(lists) == 12
    assert [task.name for task in once] == [task.name for task in arrays] == [task.name for task in lists]
    assert json.dumps([dict(task.labels) for task in arrays]) == json.dumps([dict(task.labels) for task in lists])
    assert type(replays(arrays[:1], tmp_path, workers=0)[0]["C"]) is int


def test_damaged_results_are_done_again(tmp_path):
    (task,) = grid(stream={"few": few}, predictor={"both": both})
    (row, _) = before = replays([task], tmp_path / "out", workers=0)
    record, summary = Path(row["record"]), tmp_path / "out" / f"{task.name}.json"
    right = record.read_bytes()
    inside = right.index(b'"crc32"')
    for damaged in (b"xx", right[:-20], right[:inside] + b"?" + right[inside + 1 :]):
        record.write_bytes(damaged)
        again = replays([task], tmp_path / "out", workers=0)
        assert [one | {"seconds": 0} for one in again] == [one | {"seconds": 0} for one in before]
        assert record.read_bytes() == right
    kept = json.loads(summary.read_text())
    for field in ("examples", "seconds", "error", "panel", "means", "guaranteed"):
        summary.write_text(json.dumps({name: value for name, value in kept.items() if name != field}))
        assert len(replays([task], tmp_path / "out", workers=0)) == 2
        assert json.loads(summary.read_text()).keys() == kept.keys()


def test_a_replay_that_leaves_stops_no_other(tmp_path):
    tasks = grid(stream={"few": few}, predictor={"leaves": leaves, "sharp": sharp})
    assert [row["error"] for row in replays(tasks, tmp_path, workers=0)] == ["SystemExit: 3", None]


def test_neighbours_of_a_deadly_replay_may_be_innocent(tmp_path):
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        (row,) = replays(grid(stream={"few": few}, predictor={"kills": kills}), tmp_path, workers=1)
    assert row["error"].startswith("KilledWorker: ")
    assert "Or another replay on the same workers did" in row["error"]


def test_threads_write_one_file_without_harm(tmp_path, monkeypatch):
    """All have opened their temporary files before the first is renamed."""
    ready, failed = threading.Barrier(4), []
    sync = os.fsync

    def together(file):
        if not os.path.isdir(f"/proc/self/fd/{file}") and not ready.broken:
            ready.wait(timeout=60)
        sync(file)

    def write(content):
        try:
            with archive.written(tmp_path / "it") as file:
                file.write(content * 100)
        except OSError as error:
            failed.append(error)

    monkeypatch.setattr(os, "fsync", together)
    contents = [bytes([place]) * 1000 for place in range(4)]
    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert (tmp_path / "it").read_bytes() in [content * 100 for content in contents]
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_no_scheduler_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(OSError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1': Timed out"):
        replays(grid(stream={"few": few}, predictor={"sharp": sharp}), tmp_path, cluster="tcp://127.0.0.1:1")


def test_cores_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert cluster._cores() == 7


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

# Without a word from a worker for so long it counts as lost: a machine with much else to do may starve the other one
# for a while. If both were lost in turn, no task would be to blame.
QUICKLY = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100"}


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


@pytest.mark.program
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
        said = client.communicate(timeout=400)[0]
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()
    alone = replays(grid(stream={"few": few}, predictor={"both": both}, shuffle=range(20)), tmp_path / "a", workers=0)
    assert said.split() == ["40", "[]", sum(row["brier"] for row in alone).hex()]
    assert sum(calls(calls_to).values()) > 20  # what the lost host had begun was done again


def test_a_port_that_accepts_and_says_nothing_is_no_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OSError, match=r"no Dask scheduler answers at 'tcp://.*': there was no answer"):
            replays(grid(stream={"few": few}, predictor={"sharp": sharp}), tmp_path, cluster=address)
