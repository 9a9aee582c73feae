"""The broker of Kafka that has the topics of cases, through the clients that Spark's own connector brings into the JVM."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .errors import DriverFailure, FailureReason, root_cause

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
