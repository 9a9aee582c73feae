"""Kafka for the engines of a run: Spark's connector, and the user's broker or one that is started when the first engine needs it."""

import base64
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.core.child_process import OUTSIDE
from conformance.core.child_process import start as start_process
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage, ended_by_stop
from conformance.core.versions import SparkVersion
from harness.driver.outage import refusal
from harness.driver.peer import this_user_listens
from harness.engine.transport import how_it_ended
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, JarsNotFetched, fetch_with_dependencies, known_jars, not_shipped
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.own_code import LOCAL_JARS, with_jars

_MODULE = Coordinate(**read_data("harness.runtimes", "kafka_broker.yaml"))
VERSION = _MODULE.version

_HOST = "127.0.0.1"
_SECONDS_TO_START = 180.0
_SECONDS_TO_END = 60.0
_TAIL_LINES = 8
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = """\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %m%n
"""


class OwnBroker:
    """A broker that runs until it is closed, or until this process ends in whatever way, on the Java of an environment.

    Whoever talks to it needs the secret in ``servers``, because every user of the machine can connect to its ports, and waits first.

    Raises:
        JarsNotFetched: see `harness.environments.jars`.
    """

    def __init__(self, environment: Environment, on_progress: ProgressCallback) -> None:
        name = f"{_MODULE.artifact}-{VERSION}"
        jars = fetch_with_dependencies(_MODULE, name, environment, known=_known(), on_progress=on_progress)
        on_progress(f"starting a Kafka broker {VERSION}")
        java = environment.java_home / "bin" / "java"
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-kafka-"))
        self._log = self._folder / "broker.log"
        # A guard whose broker has ended by itself leaves the log, which is read first.
        self._remove = partial(shutil.rmtree, self._folder, ignore_errors=True)
        with ExitStack() as stack:
            stack.callback(self._remove)
            with ExitStack() as free:
                sockets = [free.enter_context(socket.create_server((_HOST, 0))) for _ in range(2)]
                ports = [free_socket.getsockname()[1] for free_socket in sockets]
            self._port, secret = ports[0], secrets.token_hex(32)
            self.servers = f"{secret}@{_HOST}:{self._port}"
            commands = json.dumps(_start([str(java), *_OPTIONS], jars, self._folder, secret, ports))
            guard = Path(__file__).with_name("kafka_guard.py")
            # In a session of its own, so that a Ctrl-C in a terminal does not end it before the engines.
            self.guard = start_process(
                [sys.executable, "-I", str(guard), str(self._folder), str(self._log), commands],
                cwd=OUTSIDE,
                environ=os.environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                new_session=True,
            )
            stack.pop_all()

    def close(self) -> None:
        """End the broker and remove its data; may be called twice."""
        if self.guard.stdin and not self.guard.stdin.closed:
            self.guard.stdin.close()
            self.guard.wait(_SECONDS_TO_END)
        self._remove()

    def wait(self) -> None:
        """Wait until it listens; raises HarnessError, and leaves nothing, if it ended or did not listen in time."""
        stopped = threading.Event()
        with ExitStack() as stack:
            stack.callback(self.close)
            with ended_by_stop(stopped.set):
                self._wait(stopped)
            stack.pop_all()

    def _wait(self, stopped: threading.Event) -> None:
        limit = time.monotonic() + _SECONDS_TO_START
        while True:
            if (code := self.guard.poll()) is not None:
                raise self._not_started(f"it ended with {how_it_ended(code, as_shell=True)}")
            # Another user's program may be faster than the broker.
            if refusal(_HOST, self._port) is None and this_user_listens(self._port):
                return
            if time.monotonic() > limit:
                raise self._not_started(f"it did not listen within {_SECONDS_TO_START:.0f} s")
            if stopped.wait(0.1):
                raise self._not_started("the run was stopped")

    def _not_started(self, why: str) -> HarnessError:
        log = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        tail = "\n".join(log.splitlines()[-_TAIL_LINES:])
        return HarnessError(
            f"the Kafka broker did not start: {why}" + (f"\nThe last lines of its log:\n{tail}" if tail else "")
        )


def _known() -> Mapping[str, str]:
    """The SHA-256 of the jars that Maven Central has of the broker and the connectors, with what they need, by name."""
    return known_jars("harness.runtimes", "kafka_jars.sha256")


def _start(
    java: Sequence[str], jars: Sequence[Path], folder: Path, secret: str, ports: Sequence[int]
) -> list[list[str]]:
    """The commands that format the storage and start the broker, with their files."""
    properties, logging = folder / "server.properties", folder / "log4j.properties"
    properties.write_text(
        "".join(f"{key}={value}\n" for key, value in _settings(folder, secret, *ports).items()), encoding="utf-8"
    )
    logging.write_text(_LOGGING, encoding="utf-8")
    command = [
        *java,
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j.configuration={logging.as_uri()}",
        "-cp",
        ":".join(map(str, jars)),
    ]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return [
        # With "=": an id may begin with "-", and would be taken for an option.
        [*command, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", str(properties)],
        [*command, "kafka.Kafka", str(properties)],
    ]


def _settings(folder: Path, secret: str, port: int, controller: int) -> Mapping[str, object]:
    """The settings of the broker; its file is in a folder of this user, while the arguments of a program can be read by all."""
    name, login = "conformance", "org.apache.kafka.common.security.plain.PlainLoginModule"
    accounts = f'{login} required username="{name}" password="{secret}" user_{name}="{secret}";'
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{_HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CASES://{_HOST}:{port},CONTROLLER://{_HOST}:{controller}",
        "advertised.listeners": f"CASES://{_HOST}:{port}",
        "inter.broker.listener.name": "CASES",
        "listener.security.protocol.map": "CASES:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        **{f"listener.name.{listener}.plain.sasl.jaas.config": accounts for listener in ("cases", "controller")},
        "log.dirs": folder / "data",
        "auto.create.topics.enable": "false",
        # Topics are many and small.
        "log.index.size.max.bytes": 4096,
        "log.cleaner.enable": "false",
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 1,
        "num.io.threads": 2,
    }


_ARTIFACT = "spark-sql-kafka-0-10"
_LAST_PATCH = 9
"""No line of Spark has had a later patch."""


def connector(
    version: SparkVersion, environment: Environment, on_progress: ProgressCallback
) -> tuple[str, tuple[Path, ...]]:
    """The connector for a Spark, that of its release or the nearest: its version, and those of its jars that Spark does not ship.

    Nearest are earlier patches of its line, then later ones, then earlier lines of the same major version.

    Raises:
        HarnessError: the repository has none, or the Spark does not say its version of Scala.
        JarsNotFetched: the repository cannot be reached.
    """
    artifact = f"{_ARTIFACT}_{environment.scala()}"
    for wanted in _nearest(version):
        module, folder = Coordinate("org.apache.spark", artifact, wanted), f"{artifact}-for-{version}"
        try:
            jars = fetch_with_dependencies(
                module, folder, environment, known=_known(), shipped=True, on_progress=on_progress
            )
        except JarsNotFetched as error:
            if error.unreachable:
                raise
            continue
        own = next(jar.stem for jar in jars if jar.name.startswith(f"{artifact}-"))
        if f"{own}.jar" not in _known():
            on_progress(f"no sha256 of {own}.jar is known to this suite: it is used as Maven sends it")
        return own.removeprefix(f"{artifact}-"), not_shipped(jars, environment)
    raise HarnessError(
        f"Spark {version} has no connector for Kafka: Maven has no {artifact} of its line or an earlier one"
    )


def _nearest(version: SparkVersion) -> Iterator[str]:
    # One by one, because a release may be there while one that it needs is not.
    yield from (f"{version.line}.{patch}" for patch in range(version.patch, -1, -1))
    yield from (f"{version.line}.{patch}" for patch in range(version.patch + 1, _LAST_PATCH + 1))
    yield f"[{version.major}.0.0,{version}]"


_SERVER = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):(?P<port>\d{1,5})")


@dataclass(frozen=True)
class KafkaAccess:
    """What an engine needs to read topics."""

    servers: str
    """``host:port``; several are separated by commas; ``SECRET@host:port`` of the broker of a run."""
    settings: Mapping[str, str]
    description: str


class Kafka:
    """Gives engines access to the user's broker or, without ``servers``, to one that it starts; threads may share it.

    Raises:
        WrongUsage: ``servers`` is not an address.
        HarnessError: nothing listens there.
    """

    def __init__(self, servers: str | None = None) -> None:
        self._servers = servers
        self.is_the_users = servers is not None
        self._lock = threading.Lock()
        self._own: OwnBroker | None = None
        self._failed: HarnessError | None = None
        if servers is not None and all(refusal(host, port) for host, port in parse_servers(servers)):
            raise HarnessError(
                f"--kafka: no broker listens at {servers}. Start it, or omit --kafka to have one started."
            )

    def access(
        self, version: SparkVersion, environment: Environment, given: str, on_progress: ProgressCallback
    ) -> KafkaAccess:
        """Give an engine the connector and the broker, which runs on the Java of its environment; it starts beside the engine: see `wait`.

        ``given``: the user's own ``spark.jars``, which stay.

        Raises:
            HarnessError: this Spark has no connector, a jar cannot be fetched, or the broker failed to start for an earlier engine.
        """
        Kafka(self._servers)  # raises if the user's is gone
        released, jars = connector(version, environment, on_progress)
        settings = {LOCAL_JARS: with_jars(given, jars)}
        broker = f"broker {self._servers}" if self._servers else f"own broker {VERSION}"
        servers = self._servers or self._own_broker(environment, on_progress).servers
        return KafkaAccess(servers, settings, f"{_ARTIFACT} {released}, {broker}")

    def _own_broker(self, environment: Environment, on_progress: ProgressCallback) -> OwnBroker:
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._own is not None and self._own.guard.poll() is not None:
                self._own.close()
                self._own = None
            with self._remembered():
                self._own = self._own or OwnBroker(environment, on_progress)
                return self._own

    def wait(self) -> None:
        """Wait for the broker, if it is one of ours; raises HarnessError if it does not start."""
        with self._lock, self._remembered():
            if self._failed is not None:
                raise self._failed
            if self._own is not None:
                self._own.wait()

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        """A broker that did not start is not tried again."""
        try:
            yield
        except HarnessError as error:
            self._own, self._failed = None, error
            raise

    def close(self) -> None:
        """End the broker if it is one of ours; may be called twice."""
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None


def parse_servers(servers: str) -> tuple[tuple[str, int], ...]:
    """Return the hosts and ports of ``host:port,host:port``; raises ``WrongUsage`` for another text."""
    addresses = [_SERVER.fullmatch(server.strip()) for server in servers.split(",")]
    if not all(address and 0 < int(address["port"]) < 65536 for address in addresses):
        raise WrongUsage(f"--kafka {servers!r} is not HOST:PORT of a Kafka broker, such as localhost:9092")
    return tuple((address["host"].strip("[]"), int(address["port"])) for address in addresses if address)
