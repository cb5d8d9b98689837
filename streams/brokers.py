"""Redis streams and Kafka topics as live sources. The consumer keeps the position, never the server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from streams.checks import Label, filled_text, imported, whole_number
from streams.form import Form, Identity, Parts, check_id, to_json
from streams.json_text import from_json, utf8
from streams.messages import ErrorHandler, Message, MessagesLost, Position, Reader, logger

# --------------------------------------------------------------------------------------------------------- redis stream
# Redis streams as a live source. The consumer keeps the position, never the server.

#: Entries in one answer.
BATCH = 500
#: Seconds between two tries to reach a server that is away: at first, at most.
BACKOFF = (0.05, 5.0)

#: The two numbers of an entry's id, by which entries are ordered.
Entry = tuple[int, int]


class State(NamedTuple):
    """The server's facts about a stream: ids of its first and last entry, number of entries now and ever added."""

    first: Entry | None
    last: Entry
    length: int
    added: int | None


class RedisPlace(NamedTuple):
    """The last entry that was read, and its number among all entries ever added (None: unknown)."""

    entry: Entry
    number: int | None

    def __str__(self) -> str:
        return f"{self.entry[0]}-{self.entry[1]}" + ("" if self.number is None else f"/{self.number}")

    @classmethod
    def parse(cls, position: Position) -> RedisPlace:
        """Return the place written by `str`; the id of an entry is a place too."""
        wrong = (
            f"position must be the id of an entry, such as '1795311820838-0' or '1795311820838-0/7', got {position!r}"
        )
        if not isinstance(position, str):
            raise TypeError(wrong)
        found = re.fullmatch(r"([0-9]{1,20})-([0-9]{1,20})(?:/([0-9]{1,20}))?", position, re.ASCII)
        if found is None or max(map(int, found.groups("0"))) >= 2**64:
            raise ValueError(wrong)
        return cls((int(found[1]), int(found[2])), None if found[3] is None else int(found[3]))


class RedisStream(Reader):
    """The entries of a Redis stream, from the oldest that the server holds.

    No consumer group is needed: the position is the id of the last entry, with its number among all entries. An
    entry has a field `data` with JSON as in `JSONLines`, or fields of text: `id`, `y` and `x`, the latter a JSON
    list of numbers or object from feature to value. A message without an id gets the id of its entry, which XADD
    returns to the sender; an answer must name the id of its question. If the server is away, the reader waits
    and logs this once (logger "streams").

    Parameters
    ----------
    url : str
        redis://[[user]:password@]host[:port][/db], rediss:// for TLS or unix:// for a socket.
    stream : str
        The key.
    form, bad, wait, name
        As for `JSONLines`.
    lost : callable, optional
        ErrorHandler called when the server has trimmed, deleted or forgotten unread entries (`MessagesLost`); reading
        then continues with what is left. By default the error is raised. Trimming is noticed from Redis 7 on, which
        counts the entries ever added; an unread entry removed with XDEL is noticed only if those before it are gone
        too.

    Raises
    ------
    ImportError
        Without the package redis: pip install redis.
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> source = RedisStream("redis://:secret@localhost:6379/0", "fruit")    # doctest: +SKIP
    >>> source                                                               # doctest: +SKIP
    RedisStream('redis://localhost:6379/0', 'fruit')
    >>> source.send(7, [1, 2.5])                                             # doctest: +SKIP
    '1795311820838-0'
    >>> next(source.messages())                                              # doctest: +SKIP
    Message(id=7, x=array([1. , 2.5]), y=None, position='1795311820838-0/1')
    """

    def __init__(
        self,
        url: str,
        stream: str,
        *,
        form: Form | None = None,
        bad: ErrorHandler | None = None,
        lost: ErrorHandler | None = None,
        wait: float = 1.0,
        name: str | None = None,
    ) -> None:
        self._redis = imported("redis", "RedisStream needs the package redis")
        url, self.stream = filled_text("url", url), filled_text("stream", stream)
        # Neither the name nor an error shows a password.
        wrong = "url must be like redis://:password@host:6379/0, with %2F for / and the like in a password, got another"
        if not re.match("(redis|rediss|unix)://", url):
            raise ValueError(wrong)
        try:
            parts = urlsplit(url)
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        except ValueError:
            raise ValueError(wrong) from None
        if "decode_responses" in parts.query:
            raise ValueError("url must leave decode_responses alone, as entries are read as bytes, got it set")
        super().__init__(f"{shown} {stream}" if name is None else name, form, bad, lost, wait)
        try:
            self._client = self._redis.Redis.from_url(
                url,
                retry=self._redis.retry.Retry(self._redis.backoff.NoBackoff(), 0),
                socket_timeout=self._wait + 5,
                socket_connect_timeout=min(self._wait, 5),
            )
        except ValueError:
            raise ValueError(wrong) from None
        self._shown = shown

    def __repr__(self) -> str:
        return f"RedisStream({self._shown!r}, {self.stream!r})"

    def send(self, id: Identity | None = None, x: object = None, y: Label | None = None) -> str:
        """Add a message to the stream, as `to_json` makes it, and return the id of its entry.

        Raises TypeError or ValueError for a wrong message, OSError when the server has not taken it.
        """
        data = to_json(id, x, y)
        try:
            entry: str = self._client.xadd(self.stream, {"data": data}).decode()
        except self._redis.RedisError as error:
            raise OSError(f"{self._shown} has not taken the message: {error}") from None
        return entry

    def close(self) -> None:
        """Close the connections; may be repeated. `messages` and `send` open them again."""
        super().close()
        self._client.close()

    def _check(self, position: Position | None) -> None:
        if position is not None:
            RedisPlace.parse(position)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        place = None if position is None else RedisPlace.parse(position)
        pause, away = BACKOFF[0], False
        while True:
            try:
                state, entries = self._next(place)
            except self._redis.AuthenticationError as error:
                raise self._refused(error) from None
            except (self._redis.ConnectionError, self._redis.TimeoutError) as error:
                if not away:
                    logger.warning("%s is away: %s. Trying again until it is back", self._shown, str(error).rstrip("."))
                away = True
                time.sleep(min(pause, self._wait))
                pause = min(2 * pause, BACKOFF[1])
                yield None
                continue
            except self._redis.RedisError as error:
                raise self._refused(error) from None
            if away:
                logger.warning("%s is back", self._shown)
                pause, away = BACKOFF[0], False
            if place is not None and (why := _lost(place, state)):
                asked = f"{self.stream!r} on {self._shown} {why}"
                self._refuse(MessagesLost(f"{asked}. Without a position it is read from the oldest entry"))
                # The ids of a stream begun anew may be smaller: then it is read from its first entry.
                place = RedisPlace(place.entry, None) if state is not None and state.last >= place.entry else None
                continue
            number = _first_number(place, state, len(entries))
            for i, (raw, fields) in enumerate(entries):
                entry = raw.decode()
                place = RedisPlace(RedisPlace.parse(entry).entry, None if number is None else number + i)
                yield self._read(partial(self._entry_parts, entry, fields), f"{self._shown}, entry {entry}", str(place))
            if not entries:
                yield None

    def _refused(self, error: Exception) -> OSError:
        return OSError(f"{self._shown} refuses to read {self.stream!r}: {error}")

    def _next(self, place: RedisPlace | None) -> tuple[State | None, list[Any]]:
        """Return what the server says about the stream, and the entries after `place`, once there are some."""
        after = "0-0" if place is None else f"{place.entry[0]}-{place.entry[1]}"
        state, entries = self._look(after)
        if not entries and (place is None or not _lost(place, state)):
            # This call only waits; the second look sees entries and state at the same moment.
            if not self._client.xread({self.stream: after}, count=1, block=max(1, int(1000 * self._wait))):
                return state, []
            state, entries = self._look(after)
        return state, entries

    def _look(self, after: str) -> tuple[State | None, list[Any]]:
        pipe = self._client.pipeline(transaction=True)
        pipe.xinfo_stream(self.stream)
        pipe.xread({self.stream: after}, count=BATCH)
        info, answer = pipe.execute(raise_on_error=False)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(info, Exception):
            if "no such key" not in str(info):
                raise info
            return None, []
        first, last = info.get("first-entry"), info["last-generated-id"]
        state = State(
            RedisPlace.parse(first[0].decode()).entry if first else None,
            RedisPlace.parse(last.decode() if isinstance(last, bytes) else last).entry,
            info["length"],
            info.get("entries-added"),  # Redis 7
        )
        if isinstance(answer, dict):  # protocol 3
            streams = [found for value in answer.values() for found in value]
        else:
            streams = [found for _, found in answer or ()]
        return state, [entry for found in streams for entry in found]

    def _entry_parts(self, entry: str, fields: Mapping[bytes, bytes] | None) -> Parts:
        if fields is None:
            raise ValueError("must have fields, got none")
        if b"data" in fields:
            both = sorted({b"id", b"x", b"y"} & set(fields))
            if both:
                raise ValueError(f"must have the field 'data' or id, x and y, got 'data' and {both[0].decode()!r}")
            parts = self._decoder.json(fields[b"data"])
        else:
            text = {name.decode(): utf8(fields[name]) for name in (b"id", b"x", b"y") if name in fields}
            identity = check_id(text["id"]) if "id" in text else None
            x = None if "x" not in text else self._decoder.point(from_json(text["x"], "x"))
            y = None if "y" not in text else self._decoder.text_label(text["y"])
            parts = self._decoder.parts(identity, x, y)
        return parts if parts[0] is not None else (entry, *parts[1:])


def _lost(place: RedisPlace, state: State | None) -> str | None:
    """Return why entries after `place` are gone unread, or None."""
    if state is None:
        return None if place.entry == (0, 0) else f"is gone; entries up to {place} were read"
    if state.last < place.entry:
        return f"ends before {place}, the last entry that was read: it was written anew"
    if place.number is None or state.added is None or (state.first is not None and state.first <= place.entry):
        return None
    gone = state.added - place.number - state.length
    return f"has lost {gone} entries after {place}, the last one that was read: it was trimmed" if gone > 0 else None


def _first_number(place: RedisPlace | None, state: State | None, n: int) -> int | None:
    """Return the number, among all entries ever added, of the first of the n after `place`, ignoring deletions.

    The last entry there is counts as the last one added, so deletions by XDEL are forgotten whenever a reader has
    come to the end.
    """
    if state is None or state.added is None:
        return None
    if n < BATCH:
        return state.added - n + 1
    if place is None or (state.first is not None and state.first > place.entry):
        return state.added - state.length + 1
    return None if place.number is None else place.number + 1


# ---------------------------------------------------------------------------------------------------------- kafka topic
# Kafka topics as a live source. The consumer keeps the position, never the broker.

#: Seconds between two checks for new partitions.
NEW_PARTITIONS = 60.0


class KafkaTopic(Reader):
    """The messages of a Kafka topic, of all partitions or some, from the oldest that the broker holds.

    The position holds the next offset of each partition; the offsets that the broker may keep for a group are
    never read. A message is JSON as in `JSONLines`. Kafka keeps the order within a partition only: an answer
    must go to its question's partition, as it does if both have the id as key (see `send`). Partitions added
    later are found within a minute. If the broker is away, the reader waits and logs this once (logger "streams").

    Parameters
    ----------
    servers : str
        Where the brokers are: host:port[,host:port...].
    topic : str
    group : str, optional
        `acknowledge` then tells the broker the offsets for this group, for tools that show a reader's progress.
    partitions : sequence of int >= 0, optional
        Read these only, such as those that a consumer group has assigned to this process. By default all.
    config : mapping, optional
        Further settings of librdkafka, such as "security.protocol". They cannot change where a reader begins and
        what it commits.
    form, bad, wait, name
        As for `JSONLines`.
    lost : callable, optional
        ErrorHandler called when the broker has removed messages before they were read (`MessagesLost`); reading then
        continues with the oldest that are left. By default the error is raised.

    Attributes
    ----------
    tombstones : int
        Number of messages without a value, as a topic has that is compacted: they are passed over.

    Raises
    ------
    ImportError
        Without the package confluent-kafka: pip install confluent-kafka.
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> source = KafkaTopic("localhost:9092", "fruit")    # doctest: +SKIP
    >>> source.send(7, [1, 2.5])                          # doctest: +SKIP
    >>> next(source.messages())                           # doctest: +SKIP
    Message(id=7, x=array([1. , 2.5]), y=None, position='{"0": 1}')
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        group: str | None = None,
        partitions: Sequence[int] | None = None,
        config: Mapping[str, Any] | None = None,
        form: Form | None = None,
        bad: ErrorHandler | None = None,
        lost: ErrorHandler | None = None,
        wait: float = 1.0,
        name: str | None = None,
    ) -> None:
        self._kafka = imported("confluent_kafka", "KafkaTopic needs the package confluent-kafka")
        self.servers, self.topic = filled_text("servers", servers), filled_text("topic", topic)
        self.group = None if group is None else filled_text("group", group)
        some: Any = partitions
        if some is not None and (isinstance(some, str) or not isinstance(some, Sequence)):
            raise TypeError(f"partitions must be a sequence of numbers, or None, got {partitions!r}")
        self.partitions = None if partitions is None else {whole_number("partitions", one, 0) for one in partitions}
        if config is not None and not isinstance(config, Mapping):
            raise TypeError(f"config must be a mapping of settings of librdkafka, got {config!r}")
        super().__init__(f"kafka {topic}" if name is None else name, form, bad, lost, wait)
        self._config = dict(config or {})
        self._consumer: Any = None
        self._producer: Any = None
        self._away = False
        self.tombstones = 0

    def __repr__(self) -> str:
        return f"KafkaTopic({self.servers!r}, {self.topic!r}, group={self.group!r})"

    def send(self, id: Identity | None = None, x: object = None, y: Label | None = None) -> None:
        """Produce a message, as `to_json` makes it, with its id as key, and wait until the broker has it.

        Raises TypeError or ValueError for a wrong message, OSError when the broker has not taken it.
        """
        data, key = to_json(id, x, y), None if id is None else str(id)
        if self._producer is None:
            self._producer = self._made(self._kafka.Producer, self._config)
        answers: list[Any] = []
        try:
            self._producer.produce(self.topic, data, key=key, on_delivery=lambda error, _: answers.append(error))
            self._producer.flush(30)
        except (self._kafka.KafkaException, BufferError) as error:
            answers = [error]
        # A KafkaError cannot be compared with ==.
        if not answers or answers[0] is not None:
            why = str(answers[0]) if answers else "no answer within 30 s"
            raise OSError(f"{self.servers} has not taken the message: {why}")

    def acknowledge(self, position: Position) -> None:
        """Tell the broker the offsets for the group, if there is one. Failures are only logged."""
        if self.group is not None and self._consumer is not None:
            offsets = [self._partition(number, offset) for number, offset in _offsets(position).items()]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            except self._kafka.KafkaException as error:
                logger.warning("%s has not taken the offsets of group %s: %s", self.servers, self.group, error)

    def close(self) -> None:
        """Close the connections; may be repeated. `messages` and `send` open them again."""
        super().close()
        self._producer = None

    def _check(self, position: Position | None) -> None:
        if position is not None:
            _offsets(position)

    def _messages(self, position: Position | None) -> Generator[Message | None, None, None]:
        settings = {
            # A broker answers one request of a connection at a time: others wait for a fetch that waits for messages.
            "fetch.wait.max.ms": max(1, min(500, int(250 * self._wait))),
            **self._config,
            "group.id": self.group or "vennstream",  # librdkafka wants one; nothing is committed without `group`
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
        }
        self._consumer = self._made(self._kafka.Consumer, settings)
        try:
            yield from self._consume(None if position is None else _offsets(position))
        finally:
            consumer, self._consumer = self._consumer, None
            consumer.close()

    def _made(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Return a consumer or producer."""
        # Without a level librdkafka logs every try to reach a broker that is away, twenty times a second.
        common = {"bootstrap.servers": self.servers, "error_cb": self._trouble, "log_level": 2}
        try:
            return kind({**common, **settings}, logger=logger)
        except self._kafka.KafkaException as error:
            raise ValueError(f"config must hold settings of librdkafka: {error}") from None

    def _consume(self, offsets: dict[int, int] | None) -> Generator[Message | None, None, None]:
        places: dict[int, int] | None = None
        looked = 0.0
        while True:
            if places is None or time.monotonic() - looked > NEW_PARTITIONS:
                found, looked = self._partitions(), time.monotonic()
                if found is not None and (places is None or found - set(places)):
                    offsets = offsets if places is None else places
                    places = self._assign(found, offsets)
                if places is None:
                    time.sleep(min(0.1, self._wait))
                    yield None
                    continue
            message = self._consumer.poll(self._wait)
            if message is None:
                yield None
                continue
            error = message.error()
            if error is not None:
                if error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                    # Removed while we were reading: asking for the watermarks again says which offsets are gone.
                    offsets, places = places, None
                elif error.fatal() or not self._passing(error):
                    self._raise(error)
                yield None
                continue
            if self._away:
                self._away = False
                logger.warning("%s: the broker is back", self.servers)
            partition, offset = message.partition(), message.offset()
            if offset < places[partition]:
                continue  # fetched before the last assignment
            places[partition] = offset + 1
            where = f"topic {self.topic!r}, partition {partition}, offset {offset}"
            if message.value() is None:
                self._pass_over(where)
                yield None
                continue
            yield self._read(partial(self._decoder.json, message.value()), where, _position(places))

    def _pass_over(self, where: str) -> None:
        self.tombstones += 1
        if self.tombstones == 1:
            logger.warning("%s has no value, a tombstone, and is passed over, as all others will be", where)

    def _partition(self, number: int, offset: int = -1) -> Any:
        return self._kafka.TopicPartition(self.topic, number, offset)

    def _partitions(self) -> set[int] | None:
        """Return the numbers of the topic's partitions, None while no broker answers."""
        try:
            topic = self._consumer.list_topics(self.topic, timeout=self._wait).topics[self.topic]
        except self._kafka.KafkaException as error:
            if not self._passing(error.args[0]):
                self._raise(error.args[0])
            self._missing(error.args[0])
            return None
        if topic.error is not None and topic.error.code() == self._kafka.KafkaError.LEADER_NOT_AVAILABLE:
            return None
        if topic.error is not None:
            self._raise(topic.error)
        found = set(topic.partitions)
        if self.partitions is None:
            return found
        if missing := self.partitions - found:
            raise ValueError(f"partitions must be of topic {self.topic!r}, which has no {min(missing)}")
        return self.partitions

    def _assign(self, found: set[int], offsets: dict[int, int] | None) -> dict[int, int] | None:
        """Read every partition from its offset, or from its oldest message; return the offsets."""
        places = {}
        for number in sorted(found):
            try:
                low, high = self._consumer.get_watermark_offsets(self._partition(number), timeout=self._wait)
            except self._kafka.KafkaException as error:
                if not self._passing(error.args[0]):
                    self._raise(error.args[0])
                self._missing(error.args[0])
                return None
            places[number] = low if offsets is None else offsets.get(number, low)
            if not low <= places[number] <= high:
                there = f"topic {self.topic!r}, partition {number} holds offsets {low} to {high}"
                lost = (
                    f"{there}, but {places[number]} is the next to read. Without a position it is read from the oldest"
                )
                self._refuse(MessagesLost(lost))
                places[number] = low
        for number in sorted(set(offsets or ()) - found):
            self._refuse(MessagesLost(f"topic {self.topic!r} has no partition {number}, from which messages were read"))
        self._consumer.assign([self._partition(number, offset) for number, offset in places.items()])
        return places

    def _passing(self, error: Any) -> bool:
        """Whether the error may pass by itself: a broker is away or changes its leader."""
        codes = self._kafka.KafkaError
        return bool(error.retriable()) or error.code() in {
            codes._TRANSPORT,
            codes._ALL_BROKERS_DOWN,
            codes._RESOLVE,
            codes._TIMED_OUT,
            codes._WAIT_COORD,
            codes.REQUEST_TIMED_OUT,
            codes.LEADER_NOT_AVAILABLE,
            codes.NOT_LEADER_FOR_PARTITION,
            codes.BROKER_NOT_AVAILABLE,
        }

    def _trouble(self, error: Any) -> None:
        """Handle what librdkafka reports between messages; one broker of several may be away."""
        if error.code() in (self._kafka.KafkaError._ALL_BROKERS_DOWN, self._kafka.KafkaError._RESOLVE):
            self._missing(error)

    def _missing(self, error: Any) -> None:
        """Say once that no broker answers; librdkafka connects again by itself."""
        if not self._away:
            self._away = True
            logger.warning("%s is away: %s. Trying again until it is back", self.servers, error.str())

    def _raise(self, error: Any) -> NoReturn:
        raise OSError(f"topic {self.topic!r} of {self.servers} cannot be read: {error.str()}")


def _position(places: dict[int, int]) -> str:
    return json.dumps({str(number): offset for number, offset in sorted(places.items())})


def _offsets(position: Position) -> dict[int, int]:
    """Return the next offset of each partition."""
    wrong = f"position must be JSON from partition to offset, such as '{{\"0\": 12}}', got {position!r}"
    if not isinstance(position, str):
        raise TypeError(wrong)
    try:
        value = json.loads(position)
    except (ValueError, RecursionError):
        raise ValueError(wrong) from None
    if not isinstance(value, dict):
        raise ValueError(wrong)
    for number, offset in value.items():
        if not re.fullmatch("[0-9]{1,9}", number, re.ASCII) or type(offset) is not int or not 0 <= offset < 2**63:
            raise ValueError(wrong)
    return {int(number): offset for number, offset in value.items()}
