"""The broker of Kafka that has the topics of cases, through the clients that Spark's own connector brings into the JVM."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, List, NamedTuple, Optional

from .failures import KafkaFailed

_STRINGS = "org.apache.kafka.common.serialization.StringSerializer"
_TIMEOUT_MS = 60000


class Record(NamedTuple):
    """A record to send."""

    topic: str
    partition: int
    timestamp: Optional[int]
    """In ms since the epoch; None for the time when it is sent."""
    value: Optional[str]


class Broker:
    """``servers``: ``host:port``, or several, separated by commas. Its methods may be called from several threads.

    Raises:
        KafkaFailed: the connector is missing, or the address is none.
    """

    def __init__(self, spark: Any, servers: str) -> None:
        self.servers = servers
        self._jvm = spark.sparkContext._jvm
        self._clients = self._jvm.org.apache.kafka.clients
        with _told("connect to {}".format(servers)):
            self._admin = self._clients.admin.AdminClient.create(self._settings())
            self._producer = self._clients.producer.KafkaProducer(
                self._settings(**{"acks": "all", "key.serializer": _STRINGS, "value.serializer": _STRINGS})
            )

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic that forgets nothing, unless it exists."""
        with _told("create the topic {}".format(topic)):
            if topic in self._admin.listTopics().names().get():
                return
            new = self._clients.admin.NewTopic(topic, partitions, 1)
            new.configs({"retention.ms": "-1", "retention.bytes": "-1"})
            self._admin.createTopics([new]).all().get()

    def send(self, records: List[Record]) -> None:
        """Send records; when this returns, every reader sees them."""
        if not records:
            return
        with _told("send to the topic {}".format(records[0].topic)):
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
        """Remove topics; the broker may still be at it when this returns."""
        with _told("remove the topics {}".format(", ".join(topics))):
            self._admin.deleteTopics(topics)

    def _settings(self, **more: str) -> Any:
        settings = self._jvm.java.util.Properties()
        common = {"bootstrap.servers": self.servers, "default.api.timeout.ms": str(_TIMEOUT_MS)}
        for key, value in {**common, **more}.items():
            settings.setProperty(key, value)
        return settings


@contextmanager
def _told(doing: str) -> Iterator[None]:
    """Says what failed, and why, in one line: py4j's own message is a stack trace."""
    try:
        yield
    except Exception as error:
        cause = getattr(error, "java_exception", None)
        while cause is not None and cause.getCause() is not None:
            cause = cause.getCause()
        why = cause.toString() if cause is not None else "{}: {}".format(type(error).__name__, error)
        raise KafkaFailed("Kafka did not {}: {}".format(doing, why)) from error
