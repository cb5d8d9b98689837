"""Kafka topics as a live source. The consumer keeps the position, never the broker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, NoReturn

from streams.checks import Label, filled_text, imported
from streams.form import Form, Identity, Parts, to_json
from streams.messages import ErrorHandler, Message, MessagesLost, Position, Reader, logger

#: Seconds between two checks for new partitions.
NEW_PARTITIONS = 60.0


class KafkaTopic(Reader):
    """The messages of a Kafka topic, of all partitions, from the oldest that the broker holds.

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
    config : mapping, optional
        Further settings of librdkafka, such as "security.protocol". They cannot change where a reader begins and
        what it commits.
    form, bad, wait, name
        As for `JSONLines`.
    lost : callable, optional
        ErrorHandler called when the broker has removed messages before they were read (`MessagesLost`); reading then
        continues with the oldest that are left. By default the error is raised.

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
        if config is not None and not isinstance(config, Mapping):
            raise TypeError(f"config must be a mapping of settings of librdkafka, got {config!r}")
        super().__init__(f"kafka {topic}" if name is None else name, form, bad, lost, wait)
        self._config = dict(config or {})
        self._consumer: Any = None
        self._producer: Any = None
        self._away = False

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
            yield self._read(partial(self._value, message.value()), where, _position(places))

    def _value(self, value: bytes | None) -> Parts:
        if value is None:
            raise ValueError("must be JSON, got no value")
        return self._decoder.json(value)

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
        return set(topic.partitions)

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
