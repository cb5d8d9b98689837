"""Keyed messages: whoever serves a partition, dies or takes it over, each key is as if nothing had happened."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import refused
from ports import RedisServer

import venn
from streams.messages import Message
from tests.scale.test_fleet import KEYS, make, state_of
from venn.online.journal import JournalError
from venn.scale import fleet_verdict, follow, follow_partitions, key_of, partition_of
from venn.scale.fleet_store import Taken, read_rows
from venn.scale.key_changes import verdict_of

NAMES = [f"shop-{i}" for i in range(6)] + KEYS


def messages_of(number, n, seed=0):
    """Return n messages for the keys of one of two partitions: ties, late answers, in another order, or never."""
    rng = np.random.default_rng((seed, number))
    keys = [key for key in NAMES if partition_of(key, 2) == number]
    waiting, found = [], []
    while len(found) < n:
        if waiting and rng.random() < 0.5:
            key, i, y = waiting.pop(rng.integers(len(waiting)))
            found.append(Message(f"{key}|{i}", None, y, len(found) + 1))
        else:
            key, i = keys[rng.integers(len(keys))], len(found)
            x = rng.integers(3, size=2).astype(float)
            found.append(Message(f"{key}|{i}", x, None, len(found) + 1))
            if rng.random() < 0.9:
                waiting.append((key, i, "yes" if x.sum() + rng.integers(2) > 2 else "no"))
    return found


def before_bar(message):
    return message.id.rpartition("|")[0]


class Told:
    """A source: a list of messages, with positions."""

    def __init__(self, messages, name="list"):
        self.said, self.name, self.acknowledged = messages, name, []

    def messages(self, position=None):
        return iter([message for message in self.said if position is None or message.position > position])

    def acknowledge(self, position):
        self.acknowledged.append(position)

    def close(self):
        pass


def opened(folder, number, **more):
    return venn.Fleet(make, folder / str(number), open=3, **more)


def states(folder):
    found = {}
    for number in range(2):
        with opened(folder, number) as fleet:
            found |= state_of(fleet)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    for _ in follow_partitions(
        range(2), lambda n: opened(folder, n), lambda n: Told(messages_of(n, 60)), key=before_bar
    ):
        pass
    return states(folder)


WORKER = """
    import json, sys
    from pathlib import Path
    from tests.scale.test_fleet_partitions import Told, before_bar, messages_of, opened
    from venn.scale import follow_partitions

    folder = Path(sys.argv[1])
"""
KILLED = """
    for event in follow_partitions(range(2), lambda n: opened(folder, n, every=10), lambda n: Told(messages_of(n, 60)),
                       key=before_bar, wait=0.01):
        if event is not None:
            print(event.id, flush=True)
"""


def started(code, *given):
    command = [sys.executable, "-c", textwrap.dedent(WORKER + code), *map(str, given)]
    here = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])  # for conftest
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": here})


def test_a_killed_process_is_taken_over(tmp_path, expected):
    """SIGKILL after some messages: the process that stands by goes on, and in the end nothing differs."""
    first = started(KILLED, tmp_path)
    heard = [first.stdout.readline() for _ in range(13)]
    second = started(KILLED, tmp_path)  # waits: all is taken
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.3)
    first.kill()
    rest = first.communicate()[0].splitlines()
    told = second.communicate(timeout=120)[0].splitlines()
    assert second.returncode == 0
    assert first.returncode == -signal.SIGKILL, "it was done before it was killed"
    every = Counter(message.id for number in range(2) for message in messages_of(number, 60))
    ids = Counter(line.strip() for line in heard + rest + told)
    assert ids <= every
    assert ids.total() in (119, 120)  # what happened as it died was not said
    assert states(tmp_path) == expected


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_streams_a_process_dies_and_another_has_its_partition(tmp_path, expected):
    redis = pytest.importorskip("redis", reason="the package redis is not installed")
    server = RedisServer(tmp_path)
    folder = tmp_path / "fleets"
    code = f"""
    from streams.brokers import RedisStream
    source = lambda number: RedisStream({server.url!r}, f"events:{{number}}", wait=0.01)
    fleet, numbers = lambda n: opened(folder, n), json.loads(sys.argv[2])
    for event in follow_partitions(numbers, fleet, source, key=before_bar, wait=0.01):
        if event is not None:
            print(event.partition, flush=True)
    """

    def send(client, number, lot):
        for message in messages_of(number, 60)[lot]:
            said = {"id": message.id} | ({} if message.x is None else {"x": message.x.tolist()})
            said |= {} if message.y is None else {"y": message.y}
            client.xadd(f"events:{number}", {"data": json.dumps(said)})

    with contextlib.ExitStack() as ending, redis.Redis(port=server.port) as client:
        ending.callback(server.kill)
        for number in range(2):
            send(client, number, slice(30))
        first = ending.enter_context(started(code, folder, "[0]"))
        heard = [first.stdout.readline() for _ in range(10)]
        second = ending.enter_context(started(code, folder, "[1, 0]"))
        ending.callback(second.kill)
        taken = [second.stdout.readline() for _ in range(10)]
        assert taken == ["1\n"] * 10  # the other one's owner is alive
        send(client, 0, slice(30, 50))
        first.kill()
        heard += first.stdout.readlines()
        assert 10 <= heard.count("0\n") == len(heard) <= 50
        send(client, 0, slice(50, 60))
        send(client, 1, slice(30, 60))
        while len(heard) + len(taken) < 119:  # one may have happened as the first died, and was not said
            taken.append(second.stdout.readline())
            assert taken[-1], "the second process has died"
        while sum(row.events for number in range(2) for row in read_rows(folder / str(number))) < 120:
            pass
    assert states(folder) == expected


def test_one_verdict_over_all_partitions(tmp_path):
    """The keys of the folders inside together: a change in one is named among all."""
    rng, rows = np.random.default_rng(0), []
    for number in range(2):
        with opened(tmp_path, number) as fleet:
            for step in range(80):
                for key in ("a", "b"):
                    y = "yes" if number and key == "b" and step >= 40 else "no"
                    fleet.learn_one(f"{key} {number}", rng.integers(3, size=2), y)
            rows += read_rows(tmp_path / str(number))
    found = fleet_verdict(tmp_path, most=4)
    assert found.names == ("b 1",)
    assert found == verdict_of(rows)
    with pytest.raises(JournalError, match="must be the folder of a fleet"):
        fleet_verdict(tmp_path / "none")


def test_a_message_that_is_refused(tmp_path):
    """Passed over where somebody is told, the same after a restart; raised otherwise, and it comes again."""
    said = messages_of(0, 20)
    bad = [Message("no key", None, "no", 21), Message("a|x", [1.0, np.inf], None, 22), Message("a|y", None, "no", 23)]
    told, source = [], Told([*said, *bad, Message("a|z", [1.0, 1.0], "no", 24)])
    for _ in range(2):
        with opened(tmp_path, 0) as fleet:
            events = list(follow(fleet, source, before_bar, lambda message, error: told.append((message.id, error))))
            assert fleet.position("list") == 24
    assert events == []
    assert [id for id, _ in told] == ["no key", "a|x", "a|y"]
    assert source.acknowledged == list(range(1, 25))
    for _ in range(2):
        with opened(tmp_path, 1) as fleet, pytest.raises(ValueError, match="key must have"):
            list(follow(fleet, source, before_bar))
        assert sum(row.events for row in read_rows(tmp_path / "1")) == 20


test_what_is_refused = refused(lambda call: call(venn.Fleet(make)), [
    (lambda f: next(follow_partitions([0], lambda n: f, Told, wait=-1)), ValueError, "wait must be"),
    (lambda f: partition_of("a", 0), ValueError, "count must be"),
    (lambda f: key_of(Message("shop", None, "no", 1)), ValueError, "id must be like"),
    (lambda f: key_of(Message("/1", None, "no", 1)), ValueError, "id must be like"),
    (lambda f: key_of(Message(7, None, "no", 1)), ValueError, "id must be like"),
])  # fmt: skip


def test_a_forked_child_neither_keeps_nor_takes_the_lock(tmp_path):
    fleet = opened(tmp_path, 0)
    child = os.fork()
    if not child:
        with contextlib.suppress(JournalError):
            fleet.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(Taken):
        opened(tmp_path, 0)
    fleet.close()
    opened(tmp_path, 0).close()
