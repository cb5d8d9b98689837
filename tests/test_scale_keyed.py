"""Keyed streams over shards: whoever owns them, dies or takes them over, each key is as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zlib
from collections import Counter

import numpy as np
import pytest

import venn
from streams.messages import Message
from venn.online import checkpoint
from venn.online.journal import JournalError
from venn.scale.keyed import Shards, Taken, key_of

fcntl = pytest.importorskip("fcntl", reason="without locks nothing keeps a second process away")
KEYS = [f"shop-{i}" for i in range(6)] + ["ä/b:c", "..", "A", "a"]
WORKER = """
    import json, sys, time
    import numpy as np
    import venn
    from venn.scale.keyed import Shards

    def make(key):
        return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("no", "yes")), venn.Argmax())

    def monitor(key):
        return venn.Monitor(("no", "yes"))
"""


def make(key):
    return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("no", "yes")), venn.Argmax())


def monitor(key):
    return venn.Monitor(("no", "yes"))


def messages_of(shards, number, n, seed=0):
    """Return n messages for the keys of one shard: ties, answers that come late, in another order, or never."""
    rng = np.random.default_rng((seed, number))
    keys = [key for key in KEYS if shards.of(key) == number]
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


def states(shards, folder):
    """Return, by key, the record's bytes and all that predictor and monitors have learned."""
    found = {}
    for number in range(shards.count):
        with shards.own(number) as shard:
            for key in shard.keys:
                online = shard.online(key)
                online.record().save(folder / "record.npz") if online.answered else None
                record = (folder / "record.npz").read_bytes() if online.answered else b""
                learned = checkpoint.pack([online.panel, online.monitors, online.told])
                found[key] = (record, learned, online.pending, online.asked, online.answered)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The states of a single process that never stopped: two shards, 60 messages each."""
    folder = tmp_path_factory.mktemp("whole")
    shards = Shards(folder / "shards", make, 2, monitor=monitor)
    for number in range(2):
        with shards.own(number) as shard:
            for _ in shard.follow(Told(messages_of(shards, number, 60)), before_bar):
                pass
    return states(shards, folder)


def happened(shards):
    """Yield the number of events of each key, as anybody can read it."""
    for key in KEYS:
        if shards.journal(key).exists():
            with venn.online.Watch(shards.journal(key)) as watch:
                yield watch.counts().asked + watch.counts().answered


def test_the_shard_of_a_key_is_a_known_digest(tmp_path):
    shards = Shards(tmp_path, make, 16)
    assert [shards.of(key) for key in KEYS] == [zlib.crc32(key.encode()) % 16 for key in KEYS]
    assert zlib.crc32(b"123456789") == 0xCBF43926  # the check value of CRC-32, which other languages have too


def test_each_key_is_as_if_it_had_been_alone(tmp_path):
    """A shard with two keys in memory at most equals an Online for each key, predictions included."""
    shards = Shards(tmp_path / "shards", make, 1, monitor=monitor, open=2)
    alone = {key: venn.Online(make(key), monitor(key)) for key in KEYS}
    said = messages_of(shards, 0, 80)
    with shards.own(0) as shard:
        events = list(shard.follow(Told(said), before_bar))
        assert len(shard._online) == 2
        for message, event in zip(said, events, strict=True):
            key = before_bar(message)
            assert (event.shard, event.key, event.id) == (0, key, message.id)
            if message.x is not None:
                expected = alone[key].ask(message.x, message.id)
                assert event.prediction.probabilities.tobytes() == expected.probabilities.tobytes()
            else:
                assert event.alarms == alone[key].answer(message.id, message.y)
        assert shard.keys == sorted({before_bar(message) for message in said})
        for key in shard.keys:
            mine = shard.online(key)
            assert checkpoint.pack([mine.panel, mine.monitors]) == checkpoint.pack(
                [alone[key].panel, alone[key].monitors]
            )


def test_a_shard_that_moves_again_and_again_equals_one_that_never_did(tmp_path, expected):
    shards = Shards(tmp_path / "moved", make, 2, monitor=monitor)
    for number in range(2):
        said = messages_of(shards, number, 60)
        for end in (7, 8, 30, 60):
            with shards.own(number) as shard:  # a new one: nothing is shared but the folder
                heard = [event.id for event in shard.follow(Told(said[:end]), before_bar)]
            assert not heard or heard[-1] == said[end - 1].id
    assert states(shards, tmp_path) == expected
    wrong = Shards(tmp_path / "wrong", make, 2, monitor=monitor)
    for number in range(2):
        with wrong.own(number) as shard:
            list(shard.follow(Told(messages_of(wrong, number, 59)), before_bar))
    assert states(wrong, tmp_path) != expected  # the comparison can fail


def test_two_owners_are_refused(tmp_path):
    shards = Shards(tmp_path, make, 2)
    with shards.own(0) as shard:
        with pytest.raises(Taken, match=r"0 must belong to one process, and another one has it"):
            shards.own(0)
        other = f"import fcntl; fcntl.flock(open({str(tmp_path / '0' / 'lock')!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True)
        assert "BlockingIOError" in done.stderr
        with shards.own(1):
            pass
        start = time.monotonic()
        with pytest.raises(Taken):
            shards.own(0, wait=0.2)
        assert time.monotonic() - start >= 0.2
        shard.close()
        with shards.own(0, wait=5):
            pass
        with pytest.raises(JournalError, match="is closed: own it again"):
            shard.ask("shop-0", [0.0])


KILLED = """
    class Slow:
        name = "list"
        def __init__(self, said):
            self.said = said
        def messages(self, position=None):
            for message in self.said:
                if position is None or message.position > position:
                    yield message
        def acknowledge(self, position):
            pass
        def close(self):
            pass

    sys.path.insert(0, sys.argv[2])
    from test_scale_keyed import before_bar, messages_of
    shards = Shards(sys.argv[1], make, 2, monitor=monitor, every=10, open=3)
    source = lambda number: Slow(messages_of(shards, number, 60))
    for event in shards.serve(range(2), source, key=before_bar, wait=0.01):
        if event is not None:
            print(event.id, flush=True)
"""


def test_a_killed_process_is_taken_over(tmp_path, expected):
    """SIGKILL after some messages: the process that stands by goes on, and in the end nothing differs."""
    command = [sys.executable, "-c", textwrap.dedent(WORKER + KILLED), tmp_path / "shards", os.path.dirname(__file__)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    heard = [first.stdout.readline() for _ in range(13)]
    second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # waits: all is taken
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.3)
    first.kill()
    rest = first.communicate()[0].splitlines()
    told = second.communicate(timeout=120)[0].splitlines()
    assert second.returncode == 0
    assert first.returncode == -signal.SIGKILL, "it was done before it was killed"
    shards = Shards(tmp_path / "shards", make, 2, monitor=monitor)
    every = Counter(message.id for number in range(2) for message in messages_of(shards, number, 60))
    ids = Counter(line.strip() for line in heard + rest + told)
    assert ids <= every
    assert ids.total() in (119, 120)  # what happened as it died was not said
    assert states(shards, tmp_path) == expected


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_streams_a_process_dies_and_another_has_its_shards(tmp_path, expected):
    pytest.importorskip("redis", reason="the package redis is not installed")
    from test_redis import Server

    server = Server(tmp_path)
    server.start()
    shards = Shards(tmp_path / "shards", make, 2, monitor=monitor)
    code = f"""
    from streams.brokers import RedisStream
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    from test_scale_keyed import before_bar
    shards = Shards(sys.argv[1], make, 2, monitor=monitor, every=10)
    source = lambda number: RedisStream({server.url!r}, f"events:{{number}}", wait=0.01)
    for event in shards.serve(json.loads(sys.argv[2]), source, key=before_bar, wait=0.01):
        if event is not None:
            print(event.shard, flush=True)
    """

    def send(client, number, lot):
        for message in messages_of(shards, number, 60)[lot]:
            said = {"id": message.id} | ({} if message.x is None else {"x": message.x.tolist()})
            said |= {} if message.y is None else {"y": message.y}
            client.xadd(f"events:{number}", {"data": json.dumps(said)})

    def serving(numbers):
        command = [sys.executable, "-c", textwrap.dedent(WORKER + code), tmp_path / "shards", numbers]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with contextlib.ExitStack() as ending, server.client() as client:
        ending.callback(server.kill)
        for number in range(2):
            send(client, number, slice(30))
        first = ending.enter_context(serving("[0]"))
        heard = [first.stdout.readline() for _ in range(10)]
        second = ending.enter_context(serving("[1, 0]"))
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
        while sum(happened(shards)) < 120:
            time.sleep(0.01)
    assert taken.count("1\n") in (59, 60)
    assert states(shards, tmp_path) == expected


def test_a_message_that_is_refused(tmp_path):
    """Passed over where somebody is told, the same after a restart; raised otherwise, and it comes again."""
    shards = Shards(tmp_path / "a", make, 1)
    said = [
        Message("k/1", [0.0, 1.0], None, 1),
        Message("k/1", [0.0, 2.0], None, 2),  # an id again
        Message("k/2", [float("nan"), 0.0], None, 3),
        Message("k/1", None, "perhaps", 4),
        Message("nokey", [0.0, 1.0], None, 5),
        Message("k/9", None, "no", 6),
        Message("k/1", None, "no", 7),
        Message("k/3", [1.0, 1.0], "yes", 8),
    ]
    told = []
    with shards.own(0) as shard:
        events = list(shard.follow(Told(said), refused=lambda message, error: told.append((message.position, error))))
        assert [event.id for event in events] == ["k/1", "k/1", "k/3"]
        assert [position for position, _ in told] == [2, 3, 4, 5, 6]
        assert "id must be like 'key/id', got 'nokey'" in str(told[3][1])
    with shards.own(0) as shard:
        assert list(shard.follow(Told(said))) == []
        assert (shard.online("k").asked, shard.online("k").answered) == (2, 2)
    shards = Shards(tmp_path / "b", make, 1)
    for turn in range(2):
        with shards.own(0) as shard:
            with pytest.raises(ValueError, match="id must be a new one"):
                list(shard.follow(Told(said)))
            assert shard.online("k").asked == 1 + turn
            shard.ask("other", [1.0, 1.0])  # the shard goes on
            assert shard.ask("k", [1.0, 1.0], id=f"more{turn}") is not None


@pytest.mark.parametrize("lost", [(), (3,), (3, 4), (5,), (2, 5)], ids=str)
def test_messages_that_come_again_after_a_death(tmp_path, lost):
    """The position was not written: what is known is passed over, even where a broker has lost others meanwhile."""
    shards = Shards(tmp_path, make, 1)
    said = [Message(f"{'ab'[i % 2]}/{i}", [float(i), 0.0], None, f"p{i}") for i in range(8)]

    class Named(Told):
        def messages(self, position=None):
            return iter(self.said if position is None else self.said[[m.position for m in said].index(position) + 1 :])

    with shards.own(0) as shard:
        assert len(list(shard.follow(Named(said[:6])))) == 6
    (tmp_path / "0" / "positions.json").unlink()  # as if the process had died before it was written
    again = [message for i, message in enumerate(said) if i not in lost]
    with shards.own(0) as shard:
        gone = [i for i in (4, 5) if i in lost]
        if gone:  # the last that a key has heard: nobody knows what comes after it
            for _ in range(2):
                with pytest.raises(
                    JournalError, match=f"instead of the one at 'p{gone[0]}' gives one at 'p{gone[0] + 2}'"
                ):
                    list(shard.follow(Named(again)))
        else:
            assert [event.id for event in shard.follow(Named(again))] == ["a/6", "b/7"]


def test_one_may_wait_for_ever(tmp_path):
    Shards(tmp_path, make, 1).own(0, wait=10**400).close()


def test_the_folder_remembers_its_number_of_shards(tmp_path):
    Shards(tmp_path, make, 4)
    with pytest.raises(JournalError, match=r"must say .*'count': 5.*got .*'count': 4"):
        Shards(tmp_path, make, 5)
    (tmp_path / "shards.json").write_text("{")
    with pytest.raises(JournalError, match="cannot be read"):
        Shards(tmp_path, make, 4)


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        (lambda s: s.of(1), TypeError, "key must be str, got 1"),
        (lambda s: s.of(""), ValueError, "key must be 1 to 200 bytes"),
        (lambda s: s.of("ä" * 40), ValueError, "key must be 1 to 200 bytes"),
        (lambda s: s.of("\ud800"), ValueError, "key must be text that UTF-8 can write"),
        (lambda s: s.own(4), ValueError, "number must be an integer from 0 to 3, got 4"),
        (lambda s: s.own(True), ValueError, "number must be an integer from 0 to 3, got True"),
        (lambda s: s.own(0, wait="x"), TypeError, "wait must be a number of seconds >= 0, got 'x'"),
        (lambda s: s.own(0, wait=-1), ValueError, "wait must be a number of seconds >= 0, got -1"),
        (lambda s: list(s.own(0).follow([1])), TypeError, r"source must be a Source \(name, .*, got \[1\]"),
        (lambda s: list(s.serve([0], int)), TypeError, r"source must be a Source \(name, .*, got 0"),
        (lambda s: list(s.serve([0], 3)), TypeError, "source must be a callable that gives .*, got 3"),
        (lambda s: s.record("new"), JournalError, "there is no such file"),
        (lambda s: Shards(s.folder, None, 4), TypeError, "make must be a function of the key, got None"),
        (lambda s: Shards(s.folder, make, 0), ValueError, "count must be an integer >= 1, got 0"),
        (lambda s: Shards(s.folder, make, 4, open=0), ValueError, "open must be an integer >= 1, got 0"),
        (lambda s: Shards(s.folder, make, 4, monitor=3), TypeError, "monitor must be a function of the key, got 3"),
    ],
    ids=[f"{i}" for i in range(16)],
)
def test_what_is_refused(tmp_path, call, error, reason):
    with pytest.raises(error, match=reason):
        call(Shards(tmp_path, make, 4))


@pytest.mark.parametrize(
    "said", ["{", "[1, 2]", '{"list": [1]}', '{"list": 3}', '{"list": [1, "2"]}', '{"list": [1, -1]}']
)
def test_damaged_positions_are_told_and_the_shard_is_free_again(tmp_path, said):
    shards = Shards(tmp_path, make, 2)
    with shards.own(0):
        path = tmp_path / "0" / "positions.json"
    path.write_text(said)
    with pytest.raises(JournalError, match=r"positions\.json (cannot be read|must say)"):
        shards.own(0)
    path.write_text('{"list": [1, 2]}')
    shards.own(0).close()


def test_a_forked_child_neither_keeps_nor_takes_the_lock(tmp_path):
    shards = Shards(tmp_path, make, np.int64(2), open=np.int32(3))
    shard = shards.own(np.int64(0))
    done, goes = os.pipe()
    stays, end = os.pipe()
    child = os.fork()
    if not child:  # closes its copy, and lives on with the lock's own
        os.close(end)
        lock = os.dup(shard._lock)
        shard.close()
        os.write(goes, b".")
        os.read(stays, 1)
        os._exit(lock < 0)
    os.close(stays)
    try:
        assert os.read(done, 1) == b"."
        with pytest.raises(Taken):
            shards.own(0)
        shard.close()
        shards.own(0).close()
    finally:
        for file in (end, done, goes):
            os.close(file)
        assert os.waitpid(child, 0)[1] == 0


def test_a_key_of_another_shard_is_refused(tmp_path):
    shards = Shards(tmp_path, make, 4)
    number = shards.of("shop-7")
    with shards.own((number + 1) % 4) as shard, pytest.raises(ValueError, match=f"got 'shop-7' of shard {number}"):
        shard.ask("shop-7", [0.0])
    with shards.own(number) as shard:
        shard.ask("shop-7", [0.0], id=1)
        shard.answer("shop-7", 1, "no")
        record = shards.record("shop-7")  # read while the shard is owned
        assert len(record) == 1


@pytest.mark.parametrize("id", [7, "a", "/a", None])
def test_an_id_without_a_key(id):
    with pytest.raises(ValueError, match="id must be like 'key/id'"):
        key_of(Message(id, [1.0], None, 1))
