"""Topics of Kafka that rows arrive in, and the broker that has them, through the clients that Spark's own connector brings into the JVM.

An arrival without rows is a record without a value, which no row comes of: its offset moves, as that of an empty file does.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .arrivals import JSON_OPTIONS, RecordArrivals, read_offset
from .errors import DriverFailure, FailureReason, root_cause
from .request import ArrivingBatch, Partitions, StreamRequest, TopicRequest, milliseconds

_STRINGS = "org.apache.kafka.common.serialization.StringSerializer"
_TIMEOUT_MS = 60000


class TopicRecord(NamedTuple):
    topic: str
    partition: int
    timestamp: Optional[int]
    """Milliseconds since the epoch; None for the time when the record is sent."""
    value: Optional[str]


class Broker:
    """``address``: ``host:port``, or several with commas, and before them the secret of the broker of a run, with ``@``.

    Threads share it. Raises ``DriverFailure`` without a connector or an address.
    """

    def __init__(self, spark: Any, address: str) -> None:
        self.address = address
        secret, _, servers = address.rpartition("@")
        self.access = {"bootstrap.servers": servers, **(_login(secret) if secret else {})}
        """The settings with which a client reaches it."""
        self._jvm = spark.sparkContext._jvm
        self._clients = self._jvm.org.apache.kafka.clients
        with _reported("connect to {}".format(servers)):
            self._admin = self._clients.admin.AdminClient.create(self._settings())
            self._producer = self._clients.producer.KafkaProducer(
                self._settings(**{"acks": "all", "key.serializer": _STRINGS, "value.serializer": _STRINGS})
            )

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic that forgets nothing, unless it exists."""
        with _reported("create the topic {}".format(topic)):
            if self._exists(topic):
                return
            new = self._clients.admin.NewTopic(topic, partitions, 1)
            new.configs({"retention.ms": "-1", "retention.bytes": "-1"})
            self._admin.createTopics([new]).all().get()
        self._wait_for(topic, partitions)

    def replace(self, topic: str, partitions: int) -> None:
        """Make a topic anew, whose offsets begin at 0 again."""
        self.delete([topic])
        self.create(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        more = self._clients.admin.NewPartitions.increaseTo(partitions)
        with _reported("give the topic {} {} partitions".format(topic, partitions)):
            self._admin.createPartitions({topic: more}).all().get()
        self._wait_for(topic, partitions)

    def age_out(self, topic: str) -> None:
        from py4j.java_gateway import JavaMember

        common = self._jvm.org.apache.kafka.common
        # py4j finds no static method that has the name of another method.
        static = "z:org.apache.kafka.clients.admin.RecordsToDelete"
        all_of_them = JavaMember("beforeOffset", None, static, self._jvm._gateway_client)(-1)
        with _reported("remove the records of {}".format(topic)):
            partitions = self._jvm.java.util.HashMap()
            for partition in range(self._partitions(topic)):
                partitions.put(common.TopicPartition(topic, partition), all_of_them)
            self._admin.deleteRecords(partitions).all().get()

    def send(self, records: List[TopicRecord]) -> None:
        """Send records; when this returns, every reader sees them."""
        if not records:
            return
        with _reported("send to the topic {}".format(records[0].topic)):
            sent = [
                self._producer.send(
                    self._clients.producer.ProducerRecord(
                        record.topic, record.partition, record.timestamp, None, record.value
                    )
                )
                for record in records
            ]
            self._producer.flush()
            for future in sent:
                future.get()

    def delete(self, topics: List[str]) -> None:
        """Remove topics, of which some may not exist. When this returns, the broker no longer tells of them.

        A request that nobody waits for is lost with the JVM if that ends now, and records sent before the broker has removed a topic
        would be lost with it.
        """
        names = ", ".join(topics)
        with _reported("remove the topics {}".format(names)):
            present = [topic for topic in topics if self._exists(topic)]
            if present:
                self._admin.deleteTopics(present).all().get()
        self._wait_until(lambda: not any(map(self._exists, present)), "did not remove the topics {}".format(names))

    def _wait_for(self, topic: str, partitions: int) -> None:
        """Return once the broker tells clients of the partitions: it knows them a moment after they are made."""

        def shown() -> bool:
            try:
                return self._partitions(topic) == partitions
            except Exception as error:
                if not hasattr(error, "java_exception"):
                    raise
                return False  # it does not know the topic yet

        self._wait_until(shown, "did not show the {} partitions of {}".format(partitions, topic))

    def _wait_until(self, done: Callable[[], bool], failure: str) -> None:
        limit = time.monotonic() + _TIMEOUT_MS / 1000
        while not done():
            if time.monotonic() > limit:
                raise DriverFailure("Kafka " + failure, FailureReason.KAFKA_FAILED)
            time.sleep(0.02)

    def _exists(self, topic: str) -> bool:
        return topic in self._admin.listTopics().names().get()

    def _partitions(self, topic: str) -> int:
        described = self._admin.describeTopics([topic])
        # The clients of Spark before 3.3 do not have the one, newer ones lose the other.
        topics = described.allTopicNames() if "allTopicNames" in dir(described) else described.all()
        return int(topics.get().get(topic).partitions().size())

    def _settings(self, **more: str) -> Any:
        settings = self._jvm.java.util.Properties()
        for key, value in {**self.access, "default.api.timeout.ms": str(_TIMEOUT_MS), **more}.items():
            settings.setProperty(key, value)
        return settings


def _login(secret: str) -> Dict[str, str]:
    account = 'required username="conformance" password="{}";'.format(secret)
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule " + account,
    }


@contextmanager
def _reported(doing: str) -> Iterator[None]:
    """Raise what fails in the block as a line that says what and why: py4j's own message is a stack trace."""
    try:
        yield
    except Exception as error:
        cause = root_cause(error)
        why = cause.toString() if cause is not None else "{}: {}".format(type(error).__name__, error)
        raise DriverFailure("Kafka did not {}: {}".format(doing, why), FailureReason.KAFKA_FAILED) from error


_TIMESTAMP = "__timestamp"
_SUBSCRIBED = re.compile(r"Subscribe\[(.+?)\]")
_CONNECTOR = {
    # Otherwise the broker answers a fetch that finds nothing only after half a second.
    "kafka.fetch.max.wait.ms": "1",
}


class TopicArrivals(RecordArrivals):
    """``Arrivals`` through Kafka. ``folder``: names the topics, which exist already if another process ran earlier steps there."""

    def __init__(self, folder: str, streams: dict[str, StreamRequest], broker: Broker) -> None:
        self._streams = streams
        self._broker = broker
        place = hashlib.sha256(folder.encode("utf-8")).hexdigest()[:16]
        self._topics = {name: "conformance-{}-{}".format(place, name) for name in streams}
        self._declared = {name: stream.topic or TopicRequest(1) for name, stream in streams.items()}
        for name, topic in self._declared.items():
            broker.create(self._topics[name], topic.partitions)

    def stream_of(self, source: dict[str, Any]) -> str | None:
        subscribed = _SUBSCRIBED.search(source["description"])
        return next((name for name, topic in self._topics.items() if subscribed and topic == subscribed[1]), None)

    def read(self, reader: Any, stream: str) -> Any:
        from pyspark.sql import functions as F

        declared, start = self._declared[stream], self._start(stream)
        records = (
            reader.format("kafka")
            .options(**{"kafka." + key: value for key, value in self._broker.access.items()})
            .option("subscribe", self._topics[stream])
            .options(**{**_CONNECTOR, **(declared.options or {}), "startingOffsets": start})
            .load()
            .where("value IS NOT NULL")
        )
        value = F.from_json(F.col("value").cast("string"), self._streams[stream].ddl, JSON_OPTIONS)
        if declared.timestamp is None:
            return records.select(value.alias("row")).select("row.*")
        rows = records.select(value.alias("row"), F.col("timestamp").alias(_TIMESTAMP)).select("row.*", _TIMESTAMP)
        return rows.withColumn(declared.timestamp, F.col(_TIMESTAMP)).drop(_TIMESTAMP)

    def _start(self, stream: str) -> str:
        """Where a query without checkpoint begins, as Spark writes it."""
        start = (self._declared[stream].options or {}).get("startingOffsets", "earliest")
        if not start.startswith("["):
            return start
        return json.dumps({self._topics[stream]: dict(enumerate(json.loads(start)))})

    def place(self, staged: list[TopicRecord]) -> None:
        self._broker.send(staged)

    def renew(self, arrived: list[ArrivingBatch]) -> None:
        for name, topic in self._declared.items():
            self._broker.replace(self._topics[name], topic.partitions)
        self.place(self.stage(arrived))

    def recreate(self, batch: ArrivingBatch) -> None:
        for name in batch:
            self._broker.replace(self._topics[name], self._declared[name].partitions)
        self.place(self.stage([batch]))

    def grow(self, stream: str, partitions: int) -> None:
        self._broker.grow(self._topics[stream], partitions)

    def age_out(self) -> None:
        for topic in self._topics.values():
            self._broker.age_out(topic)

    def records(self, source: dict[str, Any]) -> list[int] | None:
        stream = self.stream_of(source)
        if stream is None:
            return None
        topic = self._topics[stream]
        before, after = (_offsets(source.get(key), topic) for key in ("startOffset", "endOffset"))
        start = self._start(stream)
        if (
            not before and start != "earliest"
        ):  # of a query without checkpoint, for which no record is sent while it starts
            begins = {} if start == "latest" else _offsets(start, topic)
            before = {at: {-2: 0, -1: end}.get(begins.get(at, -1), begins.get(at, -1)) for at, end in after.items()}
        return [after.get(at, 0) - before.get(at, 0) for at in range(max(after, default=-1) + 1)]

    def close(self) -> None:
        self._broker.delete(sorted(self._topics.values()))

    def _records(self, name: str, partitions: Partitions) -> list[TopicRecord]:
        topic, column = self._topics[name], self._declared[name].timestamp
        records = []
        for partition, rows in enumerate(partitions):
            for row in rows:
                timestamp = milliseconds(row[column]) if column else None
                values = {key: value for key, value in row.items() if key != column}
                records.append(TopicRecord(topic, partition, timestamp, json.dumps(values)))
        return records or [TopicRecord(topic, 0, None, None)]


def _offsets(offset: Any, topic: str) -> dict[int, int]:
    """The offset of each partition; empty before the first micro-batch."""
    return {int(partition): int(at) for partition, at in (read_offset(offset).get(topic) or {}).items()}
