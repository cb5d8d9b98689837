"""A Redis stream, from a real server: each entry once, whoever dies; what the server has thrown away is said."""

import logging
import shutil
import sqlite3
import sys

import numpy as np
import pytest
from ports import RedisServer

from streams.brokers import RedisStream
from streams.form import Form
from streams.messages import BadMessage, MessagesLost, MessageSource, Tally

redis = pytest.importorskip("redis", reason="the package redis is not installed")
pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")

QUICK = 0.005


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def source(server, request):
    with redis.Redis(port=server.port) as client:
        client.flushall()
    with RedisStream(server.url, request.node.name, wait=QUICK) as source:
        yield source


@pytest.fixture
def client(server):
    with redis.Redis(port=server.port) as client:
        yield client


def take(messages):
    """Return the messages there are right now."""
    found = []
    for message in messages:
        if message is None:
            return found
        found.append(message)
    return found


def test_what_is_sent_is_read(source):
    sent = [source.send(1, np.array([1, 2.5])), source.send(1, y="a"), source.send(x=[0, 0], y=2)]
    found = take(source.messages())
    assert [m.position for m in found] == [f"{entry}/{i}" for i, entry in enumerate(sent, 1)]
    assert [(m.id, None if m.x is None else m.x.tolist(), m.y) for m in found] == [
        (1, [1, 2.5], None),
        (1, None, "a"),
        (sent[2], [0, 0], 2),  # its own entry
    ]
    assert [m.id for m in take(source.messages(sent[0]))] == [1, sent[2]]
    source.acknowledge(sent[2])


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols(server, source, protocol):
    source.send(1, [1])
    with RedisStream(f"{server.url}?protocol={protocol}", source.stream, wait=QUICK) as reader:
        assert isinstance(reader, MessageSource)
        assert [message.id for message in take(reader.messages())] == [1]
        assert take(reader.messages("0-1")) != []


def test_a_message_that_is_not_taken_is_said(source, client):
    client.set(source.stream, "text")
    with pytest.raises(OSError, match="has not taken the message: WRONGTYPE"):
        source.send(1, [1])


def test_none_until_there_is_something(source, client):
    messages = source.messages()
    assert [next(messages), next(messages)] == [None, None]
    source.send(7, [1])
    assert next(messages).id == 7
    assert next(messages) is None
    source.send(8, [1])
    assert next(messages).id == 8


def test_many_entries_come_in_order(source, client):
    pipe = client.pipeline()
    for i in range(1234):
        pipe.xadd(source.stream, {"data": f'{{"id": {i}, "x": [{i % 3}]}}'})
    pipe.execute()
    found = take(source.messages())
    assert [m.id for m in found] == list(range(1234))
    assert [m.id for m in take(source.messages(found[1000].position))] == list(range(1001, 1234))


def test_flat_fields(server, client, source):
    form = Form(features=["a", "b"], classes=["no", 2])
    client.xadd(source.stream, {"id": "k", "x": "[1, 2]"})
    client.xadd(source.stream, {"id": "k", "y": "2", "when": b"\xff"})
    entry = client.xadd(source.stream, {"x": '{"b": 2, "a": 1}', "y": "no"})
    with RedisStream(server.url, source.stream, form=form, wait=QUICK) as flat:
        found = [(m.id, None if m.x is None else m.x.tolist(), m.y) for m in take(flat.messages())]
    assert found == [("k", [1, 2], None), ("k", None, 2), (entry.decode(), [1, 2], "no")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"data": "{"}, "must be JSON"), ({"data": b"\xff"}, "must be UTF-8"),
        ({"data": "{}"}, "must have x, y or both, got neither"),
        ({"data": '{"y": 1}'}, "must have an id, as it has y and no x, got none"),
        ({"data": '{"x": [1]}', "y": "1"}, "must have the field 'data' or id, x and y, got 'data' and 'y'"),
        ({"other": "1"}, "must have x, y or both, got neither"),
        ({"y": "1"}, "must have an id, as it has y and no x, got none"),
        ({"id": "", "x": "[1]"}, "id must not be empty"), ({"x": "1,2"}, "x must be JSON"),
        ({"x": "[NaN]"}, "must hold finite numbers only, got NaN"),
        ({"x": "[" * 950 + "]" * 950}, "x must be JSON nested at most 100 deep"),
        ({"x": "[1]", "y": b"\xff"}, "must be UTF-8"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_entries(server, source, client, fields, reason):
    bad = client.xadd(source.stream, fields).decode()
    source.send(7, [1])
    with pytest.raises(BadMessage) as caught:
        next(source.messages())
    assert f"entry {bad}: {reason}" in str(caught.value)
    assert caught.value.position == f"{bad}/1"
    assert next(source.messages(bad)).id == 7
    tally = Tally()
    with RedisStream(server.url, source.stream, bad=tally, wait=QUICK) as tolerant:
        messages = tolerant.messages()
        assert [next(messages), next(messages).id] == [None, 7]
    assert tally.count == 1


def test_the_server_dies_and_comes_back(server, source, caplog):
    sent = [source.send(i, [i]) for i in range(5)]
    messages = source.messages()
    found = [next(messages).id, next(messages).id]
    with caplog.at_level(logging.WARNING, "streams"):
        server.kill()
        while len(found) < 5:
            found.append(next(messages).id)  # already here
        assert [next(messages) for _ in range(4)] == [None] * 4
        server.start()
        for i in range(5, 8):
            source.send(i, [i])
        while len(found) < 8:
            message = next(messages)
            found += [] if message is None else [message.id]
    assert found == list(range(8))
    said = [record.getMessage() for record in caplog.records]
    assert [text.split(":")[0] for text in said] == ["redis", "redis"]
    assert "is away" in said[0]
    assert "is back" in said[1]
    assert [m.id for m in take(source.messages(sent[3]))] == [4, 5, 6, 7]


def test_both_sides_die_and_nothing_is_lost_or_done_twice(server, source, tmp_path):
    """The consumer keeps the position beside what it did, and starts again from there however it ended."""
    rng = np.random.default_rng(0)
    journal = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    journal.execute("create table done (id integer, position text)")
    sent = 0
    for turn in range(12):
        for _ in range(rng.integers(1, 6)):
            source.send(sent, [sent % 3])
            sent += 1
        if turn in (4, 8):
            server.kill()
            server.start()
        last = journal.execute("select position from done order by rowid desc limit 1").fetchone()
        messages = source.messages(last and last[0])
        for _ in range(rng.integers(0, 8)):
            message = next(messages)
            if message is not None:
                journal.execute("begin")
                journal.execute("insert into done values (?, ?)", (message.id, message.position))
                journal.execute("commit" if rng.random() < 0.8 else "rollback")
                if journal.execute("select position from done order by rowid desc limit 1").fetchone() != (
                    message.position,
                ):
                    break  # died before the commit
    last = journal.execute("select position from done order by rowid desc limit 1").fetchone()
    rest = [m.id for m in take(source.messages(last and last[0]))]
    done = [i for (i,) in journal.execute("select id from done order by rowid")]
    journal.close()
    assert len(done) > 10
    assert done + rest == list(range(sent))


def drain(source, position=None):
    """Return ids and positions of what there is."""
    found = take(source.messages(position))
    return [message.id for message in found], [message.position for message in found]


def test_trimmed_entries_are_said(server, source, client):
    for i in range(10):
        source.send(i, [1])
    _, positions = drain(source)
    client.xtrim(source.stream, maxlen=7, approximate=False)
    assert drain(source)[0] == list(range(3, 10))  # no position, nothing lost
    assert drain(source, positions[2])[0] == list(range(3, 10))  # all that is gone was read
    assert drain(source, positions[1].split("/")[0])[0] == list(range(3, 10))  # nobody knows
    with pytest.raises(MessagesLost, match=f"has lost 1 entries after {positions[1]}, the last one that was read"):
        next(source.messages(positions[1]))
    lost = Tally()
    with RedisStream(server.url, source.stream, lost=lost, wait=QUICK) as tolerant:
        assert drain(tolerant, positions[1]) == (list(range(3, 10)), positions[3:])
    assert lost.count == 1


def test_trimmed_under_the_reader(source, client, monkeypatch):
    monkeypatch.setattr("streams.brokers.BATCH", 2)
    for i in range(10):
        source.send(i, [1])
    messages = source.messages()
    assert [next(messages).id, next(messages).id] == [0, 1]
    client.xtrim(source.stream, maxlen=8, approximate=False)
    assert [next(messages).id, next(messages).id] == [2, 3]
    client.xtrim(source.stream, maxlen=3, approximate=False)
    with pytest.raises(MessagesLost, match="has lost 3 entries after"):
        next(messages)


def test_all_trimmed(source, client):
    for i in range(3):
        source.send(i, [1])
    _, positions = drain(source)
    client.xtrim(source.stream, maxlen=0, approximate=False)
    assert drain(source, positions[2])[0] == []
    with pytest.raises(MessagesLost, match="has lost 1 entries after"):
        next(source.messages(positions[1]))
    source.send(3, [1])
    assert drain(source, positions[2])[0] == [3]


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_is_said_just_when_there_is_one(server, source, client, seed, monkeypatch):
    """Entries come and are trimmed away, restarts at any moment: ids are a run without gaps, or a loss was said."""
    monkeypatch.setattr("streams.brokers.BATCH", 3)
    rng = np.random.default_rng(seed)
    lost = Tally()
    with RedisStream(server.url, source.stream, lost=lost, wait=QUICK) as reader:
        sent, oldest, last, position, losses = 0, 0, -1, None, 0
        messages = reader.messages()
        for _ in range(40):
            action = rng.integers(4)
            if action == 0:
                for _ in range(rng.integers(1, 6)):
                    client.xadd(source.stream, {"data": f'{{"id": {sent}, "x": [1]}}'})
                    sent += 1
            elif action == 1 and sent:
                kept = int(rng.integers(1, 8))
                client.xtrim(source.stream, maxlen=kept, approximate=False)
                oldest = max(oldest, sent - kept)
            elif action == 2:
                messages = reader.messages(position)
            else:
                for _ in range(rng.integers(1, 5)):
                    before = lost.count
                    message = next(messages)
                    if message is None:
                        break
                    skipped = position is not None and message.id != last + 1
                    assert lost.count - before == skipped
                    assert not skipped or message.id >= oldest - 3
                    last, position, losses = message.id, message.position, losses + skipped
    assert lost.count == losses


def test_one_entry_taken_out_is_no_loss(source, client):
    sent = [source.send(i, [1]) for i in range(5)]
    _, positions = drain(source)
    client.xdel(source.stream, sent[2])
    assert drain(source, positions[0])[0] == [1, 3, 4]
    _, positions = drain(source, positions[0])
    client.xtrim(source.stream, maxlen=0, approximate=False)
    assert drain(source, positions[-1])[0] == []


@pytest.mark.parametrize("anew", [True, False])
def test_a_stream_that_was_deleted_is_said(server, source, client, anew):
    position = f"{2**60}-0"  # of a stream that stood here before
    if anew:
        source.send(1, [1])
    with pytest.raises(MessagesLost, match="ends before" if anew else "is gone"):
        next(source.messages(position))
    lost = Tally()
    with RedisStream(server.url, source.stream, lost=lost, wait=QUICK) as tolerant:
        assert [m.id for m in take(tolerant.messages(position))] == [1] * anew
    assert lost.count == 1


def test_another_kind_of_key_is_said(source, client):
    client.set(source.stream, "text")
    with pytest.raises(OSError, match="refuses to read 'test_another_kind_of_key_is_said': WRONGTYPE"):
        next(source.messages())


def test_a_wrong_password_is_said_and_never_shown(server):
    source = RedisStream(f"redis://me:secret@127.0.0.1:{server.port}/0", "s", wait=QUICK)
    with source, pytest.raises(OSError, match=r"refuses to read 's'") as caught:
        next(source.messages())
    for text in (str(caught.value), repr(source), source.name):
        assert "secret" not in text
        assert f"redis://127.0.0.1:{server.port}/0" in text


def test_close_and_use_again(source):
    source.send(1, [1])
    messages = source.messages()
    assert next(messages).id == 1
    source.close()
    source.close()
    assert list(messages) == []
    assert next(source.messages()).id == 1


@pytest.mark.parametrize(
    ("make", "error", "reason"),
    [
        (lambda: RedisStream(1, "s"), TypeError, "url must be str, got 1"),
        (lambda: RedisStream("redis://h", 1), TypeError, "stream must be str, got 1"),
        (lambda: RedisStream("redis://h", ""), ValueError, "stream must not be empty"),
        (lambda: RedisStream("http://:secret@h", "s"), ValueError, "url must be like redis://"),
        (lambda: RedisStream("redis://:secret/x@h:6379", "s"), ValueError, "url must be like redis://"),
        (lambda: RedisStream("redis://[:secret@h", "s"), ValueError, "url must be like redis://"),
        (lambda: RedisStream("redis://h:secret", "s"), ValueError, "url must be like redis://"),
        (lambda: RedisStream("redis://h?decode_responses=1", "s"), ValueError, "url must leave decode_responses alone"),
        (lambda: RedisStream("redis://h", "s", wait=0), ValueError, "wait must be a number of seconds > 0, got 0"),
        (lambda: RedisStream("redis://h", "s").messages(1), TypeError, "position must be the id of an entry"),
        (lambda: RedisStream("redis://h", "s").messages("$"), ValueError, "position must be the id of an entry"),
        (lambda: RedisStream("redis://h", "s").messages(f"{2**64}-0"), ValueError,
         "position must be the id of an entry"),
        (lambda: RedisStream("redis://h", "s").send(), ValueError, "must have x, y or both, got neither"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_bad_parameters(make, error, reason):
    with pytest.raises(error) as caught:
        make()
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ImportError, match=r"pip install redis"):
        RedisStream("redis://h", "s")
