"""A cluster instead of one JVM: where the driver gets executors, the settings that takes, and a storage that all its machines reach."""

import re
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias
from urllib.parse import urlsplit

from conformance.core.errors import WrongUsage
from conformance.core.wording import redact
from harness.errors import HarnessError

_MASTERS = re.compile(r"spark://\S+|k8s://\S+|yarn|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_PORT = 7077
_LONGEST_FILE = 1 << 20
"""Bytes of a file of settings."""
_STORAGE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/\S*")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Cluster:
    """Provides executors. The driver always runs on this machine."""

    master: str
    """As Spark takes it: https://spark.apache.org/docs/latest/submitting-applications.html#master-urls"""

    @classmethod
    def parse(cls, master: str) -> Self:
        """Parse the master URL of a cluster; raises ``WrongUsage`` for another text."""
        if not _MASTERS.fullmatch(master.strip()):
            raise WrongUsage(
                f"{redact(master)!r} is not a master URL: use spark://host:7077, yarn, k8s://https://host:6443 or "
                "local-cluster[2,1,1024] (workers, cores per worker, MiB per worker). Without --master everything runs on "
                "this machine."
            )
        return cls(master.strip())

    @property
    def on_this_machine(self) -> bool:
        """Whether executors are known to run here, and see this machine's files and its loopback address."""
        return self.master.startswith("local-cluster") or is_loopback(self.master)

    def __str__(self) -> str:
        """The master URL, without credentials."""
        return redact(self.master)

    def settings(self, work: str) -> dict[str, str]:
        """Spark settings in addition to the suite's own; executors must see ``work``, the engine's directory, at the same path."""
        # Python workers import the state functions from the driver's directory.
        settings = {
            "spark.master": self.master,
            "spark.executorEnv.PYTHONPATH": f"{work}/engine",
            # A state store stays with its executor even while that one is busy. Another would check its schema again, and 3.2.2 to
            # 3.5 may then reject their own (SPARK-57003): a bug that has cases of its own.
            "spark.locality.wait": "60s",
            # The cluster's Hadoop settings locate its storage.
            "spark.conformance.hadoopDefaults": "true",
        }
        if not self.on_this_machine:
            settings |= {"spark.driver.bindAddress": "0.0.0.0", "spark.driver.host": self._address()}
        return settings

    def check(self) -> None:
        """Raise ``HarnessError`` if the master is not reachable; Spark itself would retry for a minute before it fails."""
        if self.master.startswith("spark://"):
            check_port(f"the master {self}", self.master.removeprefix("spark://").split(","), _PORT)

    def _address(self) -> str:
        """The address of this machine on the route to the cluster."""
        first = self.master.removeprefix("k8s://").removeprefix("spark://").split(",")[0]
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
                route.connect(_host_and_port(first))  # only looks up the route, sends nothing
                return str(route.getsockname()[0])
        except (OSError, ValueError):
            return socket.gethostname()


def settings_of(texts: Iterable[str]) -> dict[str, str]:
    """``spark.executor.memory=2g`` → name and value; raises ``WrongUsage`` for a text of another form."""
    settings = {}
    for text in texts:
        if not (setting := re.fullmatch(r"(spark\.[^=\s]+)=(.*)", text)):
            raise WrongUsage(f"{redact(text)!r} is not a Spark setting; write one like --conf spark.executor.memory=2g")
        settings[setting[1]] = setting[2]
    return settings


def settings_in(file: Path) -> dict[str, str]:
    """The settings in a file like ``spark-defaults.conf``. Raises ``WrongUsage`` if it cannot be read, or a line is not a setting."""
    try:
        with file.open("rb") as stream:
            read = stream.read(_LONGEST_FILE + 1)
        text = read.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    if len(read) > _LONGEST_FILE:
        raise WrongUsage(f"{file} has more than {_LONGEST_FILE:,} bytes: that is not a file of Spark settings")
    settings = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        if not (setting := re.fullmatch(r"(spark\.[^=:\s]+)\s*[=:\s]\s*(.*)", line.strip())):
            # The line itself may hold a secret.
            raise WrongUsage(f"{file}:{number}: not a Spark setting; write one like spark.executor.memory 2g")
        settings[setting[1]] = setting[2]
    return settings


def check_port(name: str, addresses: Sequence[str], port: int) -> None:
    """Raise ``HarnessError`` if no address takes a connection, each ``host`` or ``host:port``: several for high availability."""
    errors = []
    for address in addresses:
        try:
            socket.create_connection(_host_and_port(address, port), timeout=5).close()
            return
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            errors.append(f"{redact(f'spark://{address}').removeprefix('spark://')}: {why}")
    raise HarnessError(f"cannot connect to {name}: {'; '.join(errors)}. Is it running, and can this machine reach it?")


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, so that a server there sees its files: ``spark://localhost:7077``, ``sc://[::1]:15002``."""
    return urlsplit(url).hostname in _LOOPBACK


def _host_and_port(text: str, port: int = _PORT) -> tuple[str, int]:
    parts = urlsplit(text if "//" in text else f"//{text}")
    if not parts.hostname:
        raise ValueError("it has no host")
    return parts.hostname, parts.port or port


@dataclass(frozen=True)
class StorageUrl:
    """A directory of a file system that Spark can access: ``hdfs://host:8020/tests``, ``s3a://bucket/tests``, ``file:///mnt/shared``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def unique_directory(self) -> "StorageUrl":
        """A directory in it that no other run uses."""
        return StorageUrl(f"{self.url.rstrip('/')}/conformance-{secrets.token_hex(4)}")


Storage: TypeAlias = Path | StorageUrl
"""A folder that every machine sees at the same path, or a URL."""


def parse_storage(text: str) -> Storage:
    """A URL or a path."""
    return StorageUrl(text) if _STORAGE.fullmatch(text) else Path(text)
