"""A broker of Kafka for one run: one node without ZooKeeper, on free ports of the loopback interface."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from conformance.core.child_process import OUTSIDE
from conformance.core.child_process import start as start_process
from conformance.core.data import read_data
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, fetch_with_dependencies
from harness.errors import HarnessError
from harness.progress import ProgressCallback

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


class BrokerNotStarted(HarnessError):
    """The broker ended, or did not listen in time."""

    def __init__(self, why: str, log: str) -> None:
        super().__init__(
            f"the Kafka broker did not start: {why}" + (f"\nThe last lines of its log:\n{log}" if log else "")
        )


class OwnBroker:
    """A broker that runs until it is closed, or until this process ends in whatever way.

    Args:
        environment: whose Java runs it.
        on_progress: is told what takes long.

    Raises:
        JarsNotFetched: see `harness.environments.jars`.
        BrokerNotStarted: it does not run.
    """

    def __init__(self, environment: Environment, on_progress: ProgressCallback) -> None:
        jars = fetch_with_dependencies(_MODULE, f"{_MODULE.artifact}-{VERSION}", environment, on_progress=on_progress)
        on_progress(f"starting a Kafka broker {VERSION}")
        java = environment.java_home / "bin" / "java"
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-kafka-"))
        self._log = self._folder / "broker.log"
        with ExitStack() as stack:
            stack.callback(self._remove)
            ports = _free_ports(2)
            self.servers = f"{_HOST}:{ports[0]}"
            start = _start([str(java), *_OPTIONS], jars, self._folder, ports)
            # In a session of its own, so that a Ctrl-C in a terminal does not end it before the engines.
            self._guard = start_process(
                [
                    sys.executable,
                    "-I",
                    str(Path(__file__).with_name("kafka_guard.py")),
                    str(self._folder),
                    str(self._log),
                    json.dumps(start),
                ],
                cwd=OUTSIDE,
                environ=os.environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                new_session=True,
            )
            stack.callback(self.close)
            self._wait(ports[0])
            stack.pop_all()

    def close(self) -> None:
        """End the broker and remove its data; may be called twice."""
        if self._guard.stdin and not self._guard.stdin.closed:
            self._guard.stdin.close()
            self._guard.wait(_SECONDS_TO_END)
        self._remove()

    def _remove(self) -> None:
        """Remove its data: a guard whose broker has ended by itself leaves the log, which is read first."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self, port: int) -> None:
        limit = time.monotonic() + _SECONDS_TO_START
        while True:
            if (code := self._guard.poll()) is not None:
                raise BrokerNotStarted(f"it ended with exit code {code}", self._tail())
            if listens(_HOST, port):
                return
            if time.monotonic() > limit:
                raise BrokerNotStarted(f"it did not listen within {_SECONDS_TO_START:.0f} s", self._tail())
            time.sleep(0.1)

    def _tail(self) -> str:
        if not self._log.exists():
            return ""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def listens(host: str, port: int, seconds: float = 5.0) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), seconds):
            return True
    except OSError:
        return False


def _start(java: Sequence[str], jars: Sequence[Path], folder: Path, ports: Sequence[int]) -> list[list[str]]:
    """The commands that format the storage and start the broker, with their files."""
    properties, logging = folder / "server.properties", folder / "log4j.properties"
    properties.write_text(
        "".join(f"{key}={value}\n" for key, value in _settings(folder, *ports).items()), encoding="utf-8"
    )
    logging.write_text(_LOGGING, encoding="utf-8")
    command = [*java, f"-Dlog4j.configuration={logging.as_uri()}", "-cp", ":".join(map(str, jars))]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return [
        # With "=": an id may begin with "-", and would be taken for an option.
        [*command, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", str(properties)],
        [*command, "kafka.Kafka", str(properties)],
    ]


def _settings(folder: Path, port: int, controller: int) -> Mapping[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{_HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{_HOST}:{port},CONTROLLER://{_HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{_HOST}:{port}",
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


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((_HOST, 0))
        return [one.getsockname()[1] for one in sockets]
