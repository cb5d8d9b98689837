"""A Kafka topic, from librdkafka's mock broker: each message once over all partitions, from offsets of our own."""

import json
import logging
import sys
import time
from collections import Counter

import numpy as np
import pytest
from conftest import refused

from streams.brokers import KafkaTopic
from streams.form import Form
from streams.messages import BadMessage, MessagesLost, MessageSource, Tally

kafka = pytest.importorskip("confluent_kafka", reason="the package confluent-kafka is not installed")

CONFIG = {"session.timeout.ms": 6000}
PARTITIONS = 4  # of the mock broker's topics


@pytest.fixture(scope="module")
def broker():
    """Addresses of a mock broker, which lives as long as its producer."""
    quiet = logging.getLogger("quiet")
    quiet.propagate = False
    producer = kafka.Producer({"test.mock.num.brokers": 1, "linger.ms": 0}, logger=quiet)
    found = producer.list_topics(timeout=60)
    yield producer, ",".join(f"{node.host}:{node.port}" for node in found.brokers.values())
    producer.flush(5)


@pytest.fixture
def topic(broker, request):
    """A topic of the test's own."""
    producer, servers = broker
    name = "".join(character if character.isalnum() else "_" for character in request.node.name)
    assert len(producer.list_topics(name, timeout=60).topics[name].partitions) == PARTITIONS

    def put(*values, partition=-1):
        for value in values:
            if isinstance(value, int):
                value = json.dumps({"id": value, "x": [value % 3]})
            where = {} if partition < 0 else {"partition": partition}
            producer.produce(name, value, **where)
        assert producer.flush(10) == 0

    put.servers, put.topic = servers, name
    return put


def source(topic, **settings):
    return KafkaTopic(topic.servers, topic.topic, **({"wait": 0.3, "config": CONFIG} | settings))


def take(messages, n):
    found = []
    for _ in range(200):
        message = next(messages)
        found += [] if message is None else [message]
        if len(found) == n:
            return found
    raise AssertionError(f"{len(found)} of {n} messages came")


def test_what_is_sent_is_read(topic):
    with source(topic) as both:
        assert isinstance(both, MessageSource)
        messages = both.messages()
        assert next(messages) is None
        both.send("k", np.array([1, 2.5]))
        both.send("k", y="a")
        both.send(x=[0, 0], y=2)
        found = take(messages, 3)
    ours = [(m.x is None, m.y) for m in found if m.id == "k"]
    assert ours == [(False, None), (True, "a")]  # one key, one partition, in order
    assert [(m.x.tolist(), m.y) for m in found if m.id is None] == [([0, 0], 2)]
    last = json.loads(found[-1].position)
    assert (sorted(last), sum(last.values())) == (["0", "1", "2", "3"], 3)


@pytest.mark.parametrize("seed", range(3))
def test_each_message_once_over_restarts(topic, seed):
    rng = np.random.default_rng(seed)
    sent, read, position = 0, [], None
    for _ in range(4):
        for _ in range(rng.integers(1, 12)):
            topic(sent, partition=int(rng.integers(PARTITIONS)))
            sent += 1
        with source(topic) as reader:
            for message in take(reader.messages(position), int(rng.integers(0, sent - len(read))) + 1):
                read.append(message.id)
                position = message.position
    with source(topic) as reader:
        messages = reader.messages(position)
        if sent > len(read):
            read += [message.id for message in take(messages, sent - len(read))]
        assert next(messages) is None
    assert Counter(read) == Counter(range(sent))


def test_two_readers_divide_the_partitions(topic):
    """Each of two fleets has half of them, in folders of their own; what one is told the other is not."""
    for partition in range(PARTITIONS):
        topic(partition, partition + PARTITIONS, partition=partition)
    read = []
    for mine in ([0, 2], (1, 3)):
        with source(topic, partitions=mine) as reader:
            messages = reader.messages()
            found = take(messages, 4)
            assert json.loads(found[-1].position) == {str(one): 2 for one in mine}
            assert next(messages) is None
            read.append({message.id for message in found})
    assert read == [{0, 2, 4, 6}, {1, 3, 5, 7}]
    with source(topic, partitions=[9]) as reader, pytest.raises(ValueError, match="which has no 9"):
        take(reader.messages(), 1)
    for bad, error in (("0", TypeError), ([-1], ValueError), ([True], TypeError)):
        with pytest.raises(error, match="partitions must be"):
            source(topic, partitions=bad)


def test_partitions_found_later_are_read_from_their_start(topic, monkeypatch):
    monkeypatch.setattr("streams.brokers.NEW_PARTITIONS", 0.0)
    for partition in range(PARTITIONS):
        topic(partition, partition + PARTITIONS, partition=partition)
    with source(topic) as reader:
        whole = reader._partitions
        monkeypatch.setattr(reader, "_partitions", lambda: (whole() or set()) & {0, 1})
        messages = reader.messages()
        early = take(messages, 4)
        assert sorted(message.id for message in early) == [0, 1, 4, 5]
        assert json.loads(early[-1].position) == {"0": 2, "1": 2}
        monkeypatch.setattr(reader, "_partitions", whole)
        assign, tries = reader._assign, []
        # The first try fails, as with a broker that is away just then.
        monkeypatch.setattr(reader, "_assign", lambda *now: tries.append(now) if not tries else assign(*now))
        late = take(messages, 4)
        assert sorted(message.id for message in late) == [2, 3, 6, 7]
        assert json.loads(late[-1].position) == {str(i): 2 for i in range(PARTITIONS)}
        assert len(tries) == 1


def test_bad_messages_say_where(topic):
    topic(1, "[]", 2, partition=3)
    with source(topic) as reader:
        messages = reader.messages()
        assert take(messages, 1)[0].id == 1
        reason = rf"topic '{topic.topic}', partition 3, offset 1: must be a JSON object with id, x, y, got '\[\]'"
        with pytest.raises(BadMessage, match=reason) as caught:
            take(messages, 1)
        assert take(reader.messages(caught.value.position), 1)[0].id == 2
    topic(None, b"\xff", '{"x": ["a"]}', 3, partition=3)
    bad = Tally(limit=4)
    with source(topic, bad=bad, form=Form(features=["a"])) as reader:
        assert [m.id for m in take(reader.messages(), 3)] == [1, 2, 3]
    assert (bad.count, reader.tombstones) == (3, 1)


def test_tombstones_are_passed_over_counted_and_said_once(topic, caplog):
    topic(1, None, 2, None, 3, partition=2)
    with source(topic) as reader:
        messages = take(reader.messages(), 3)
        assert [m.id for m in messages] == [1, 2, 3]
        assert json.loads(messages[1].position)["2"] == 3
        assert reader.tombstones == 2
    assert len([one for one in caplog.messages if "tombstone" in one]) == 1


@pytest.mark.parametrize("offsets", [{"1": 99}, {"0": 0, "7": 3}])
def test_a_topic_begun_anew_is_said(topic, offsets):
    topic(1, 2, partition=1)
    position = json.dumps(offsets)
    reason = "holds offsets 0 to 2, but 99 is the next to read" if "1" in offsets else "has no partition 7"
    with source(topic) as reader, pytest.raises(MessagesLost, match=reason):
        next(reader.messages(position))
    lost = Tally()
    with source(topic, lost=lost) as reader:
        assert [m.id for m in take(reader.messages(position), 2)] == [1, 2]
    assert lost.count == 1


def test_messages_that_the_broker_dropped_are_said(topic):
    """The mock broker keeps 5 MB of a partition."""
    large = [json.dumps({"id": i, "x": [1], "note": "x" * 900_000}) for i in range(9)]
    topic(*large, partition=0)
    with source(topic) as reader:
        messages = take(reader.messages(), 4)
        assert 0 < messages[0].id < 5
        with pytest.raises(MessagesLost, match="but 0 is the next to read"):
            next(reader.messages('{"0": 0}'))


def test_dropped_under_the_reader(topic):
    topic(0, partition=0)
    lost = Tally()
    with source(topic, lost=lost) as reader:
        messages = reader.messages()
        assert take(messages, 1)[0].id == 0
        reader._consumer.pause([reader._partition(0)])
        topic(*[json.dumps({"id": i, "x": [1], "note": "x" * 900_000}) for i in range(1, 10)], partition=0)
        reader._consumer.resume([reader._partition(0)])
        found = [message.id for message in take(messages, 4)]
    assert found[0] > 1
    assert found == list(range(found[0], found[0] + 4))
    assert lost.count == 1


def test_acknowledged_offsets_are_for_others_to_see_only(topic):
    topic(1, 2, 3, partition=2)
    config = CONFIG | {"auto.offset.reset": "latest", "enable.auto.commit": True}  # of no effect
    with source(topic, group="shown", config=config) as reader:
        found = take(reader.messages(), 3)
        reader.acknowledge(found[1].position)
        others = kafka.Consumer(CONFIG | {"bootstrap.servers": topic.servers, "group.id": "shown"})
        watched = [kafka.TopicPartition(topic.topic, 2)]
        for _ in range(50):
            time.sleep(0.05)
            if others.committed(watched, timeout=5)[0].offset == 2:
                break
        else:
            raise AssertionError("no offset was committed")
        assert [m.id for m in take(reader.messages(), 3)] == [1, 2, 3]


def test_a_broker_that_is_away_is_said_once(caplog):
    away = KafkaTopic("127.0.0.1:1", "t", wait=0.1)
    with away, caplog.at_level(logging.WARNING, "streams"):
        messages = away.messages()
        assert [next(messages) for _ in range(4)] == [None] * 4
    said = [record.getMessage() for record in caplog.records if record.module == "brokers"]
    assert len(said) == 1
    assert said[0].startswith("127.0.0.1:1 is away: ")


def test_a_message_that_is_not_taken_is_said(topic):
    config = {"message.timeout.ms": 50, "log_level": 0}
    with (
        KafkaTopic("127.0.0.1:1", "t", config=config) as away,
        pytest.raises(OSError, match="has not taken the message"),
    ):
        away.send(1, [1])
    small = {"message.max.bytes": 1000}
    with source(topic, config=small) as reader, pytest.raises(OSError, match=r"has not taken the message: .*large"):
        reader.send("k" * 1000, [1])


def test_close_and_use_again(topic):
    topic(1)
    reader = source(topic)
    messages = reader.messages()
    assert take(messages, 1)[0].id == 1
    reader.close()
    reader.close()
    assert list(messages) == []
    reader.acknowledge('{"0": 1}')  # nobody listens
    assert take(reader.messages(), 1)[0].id == 1
    reader.close()


test_bad_parameters = refused(None, [
    (lambda: KafkaTopic(1, "t"), TypeError, "servers must be str, got 1"),
    (lambda: KafkaTopic("h", None), TypeError, "topic must be str, got None"),
    (lambda: KafkaTopic("h", ""), ValueError, "topic must not be empty"),
    (lambda: KafkaTopic("h", "t", group=""), ValueError, "group must not be empty"),
    (lambda: KafkaTopic("h", "t", group=1), TypeError, "group must be str, got 1"),
    (lambda: KafkaTopic("h", "t", config=["a"]), TypeError, "config must be a mapping of settings of librdkafka"),
    (lambda: next(KafkaTopic("h", "t", config={"no": 1}).messages()), ValueError, "config must hold settings"),
    (lambda: KafkaTopic("h", "t", config={"no": 1}).send(1, [1]), ValueError, "config must hold settings"),
    (lambda: KafkaTopic("h", "t").send(1), ValueError, "must have x, y or both, got neither"),
    (lambda: KafkaTopic("h", "t", wait=-1), ValueError, "wait must be a number of seconds > 0, got -1"),
    (lambda: KafkaTopic("h", "t").messages(1), TypeError, "position must be JSON from partition to offset"),
    (lambda: KafkaTopic("h", "t").messages("{"), ValueError, "position must be JSON from partition to offset"),
    (lambda: KafkaTopic("h", "t").messages("[]"), ValueError, "position must be JSON from partition to offset"),
    (lambda: KafkaTopic("h", "t").messages('{"a": 1}'), ValueError, "position must be JSON from partition"),
    (lambda: KafkaTopic("h", "t").messages('{"0": true}'), ValueError, "position must be JSON from partition"),
    (lambda: KafkaTopic("h", "t").messages('{"0": -1}'), ValueError, "position must be JSON from partition"),
], plain=True)  # fmt: skip


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"pip install confluent-kafka"):
        KafkaTopic("h", "t")
