"""Kafka for the engines of a run: the user's broker, or one that is started when the first engine needs it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from harness.environments.environment import Environment
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.kafka_broker import VERSION, OwnBroker, listens
from harness.runtimes.kafka_connector import connector

JARS = "spark.jars"
"""https://spark.apache.org/docs/latest/configuration.html#runtime-environment"""
_SERVER = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):(?P<port>\d{1,5})")


class NotABroker(WrongUsage):
    """A text is not the address of a broker."""

    def __init__(self, text: str) -> None:
        super().__init__(f"--kafka {text!r} is not HOST:PORT of a Kafka broker, such as localhost:9092")


class BrokerUnreachable(HarnessError):
    """Nothing listens at the address of the user's broker."""

    def __init__(self, servers: str) -> None:
        super().__init__(f"--kafka: no broker listens at {servers}. Start it, or omit --kafka to have one started.")


@dataclass(frozen=True)
class KafkaAccess:
    """What an engine needs to read topics."""

    servers: str
    """``host:port``; several are separated by commas."""
    settings: Mapping[str, str]
    """Of the engine."""
    description: str
    """Which connector and which broker."""


class Kafka:
    """Gives engines access to a broker; its methods may be called from several threads.

    Args:
        servers: the user's broker; None to start one.

    Raises:
        NotABroker: ``servers`` is not an address.
        BrokerUnreachable: nothing listens there.
    """

    def __init__(self, servers: str | None = None) -> None:
        self._servers = servers
        self._lock = threading.Lock()
        self._own: OwnBroker | None = None
        self._failed: HarnessError | None = None
        if servers is not None:
            addresses = parse_servers(servers)
            if not any(listens(host, port) for host, port in addresses):
                raise BrokerUnreachable(servers)

    @property
    def is_the_users(self) -> bool:
        """Whether the user named the broker."""
        return self._servers is not None

    def access(
        self, version: SparkVersion, environment: Environment, given: str, on_progress: ProgressCallback
    ) -> KafkaAccess:
        """The connector and the broker for an engine.

        Args:
            version: of its Spark.
            environment: of the engine; its Java runs the broker.
            given: the user's own ``spark.jars``, which stay.
            on_progress: is told what takes long.

        Raises:
            NoConnector, JarsNotFetched, BrokerNotStarted: see `kafka_connector`, `kafka_broker` and `harness.environments.jars`.
        """
        found = connector(version, environment, on_progress)
        jars = [*filter(None, given.split(",")), *map(str, found.jars)]
        broker = f"broker {self._servers}" if self._servers else f"own broker {VERSION}"
        servers = self._servers or self._own_broker(environment, on_progress).servers
        return KafkaAccess(servers, {JARS: ",".join(jars)}, f"{found}, {broker}")

    def _own_broker(self, environment: Environment, on_progress: ProgressCallback) -> OwnBroker:
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._own is None:
                try:
                    self._own = OwnBroker(environment, on_progress)
                except HarnessError as error:
                    self._failed = error
                    raise
            return self._own

    def close(self) -> None:
        """End the broker if it is one of ours; may be called twice."""
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None


def parse_servers(servers: str) -> tuple[tuple[str, int], ...]:
    """Hosts and ports of ``host:port,host:port``.

    Raises:
        NotABroker: it is none.
    """
    found = [_SERVER.fullmatch(one.strip()) for one in servers.split(",")]
    if not all(one and 0 < int(one["port"]) < 65536 for one in found):
        raise NotABroker(servers)
    return tuple((one["host"].strip("[]"), int(one["port"])) for one in found if one)
