"""A cluster in place of one JVM: whom the driver asks for executors, and what they have to be told."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.errors import HarnessError
from harness.runtimes.loopback import is_loopback

_MASTERS = re.compile(r"spark://\S+|k8s://\S+|yarn|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_PORT = 7077


class NotAMaster(ValueError):
    """A text that names no cluster.

    Attributes:
        text: what was given.
    """

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is no master of a cluster: write spark://host:7077, yarn, k8s://https://host:6443 or local-cluster[2,1,1024] "
            "(workers, cores of each, MiB of each). Without --master everything runs on this machine."
        )
        self.text = text


class NotASetting(ValueError):
    """A text that is no Spark setting.

    Attributes:
        text: what was given.
    """

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no setting: write --conf spark.executor.memory=2g")
        self.text = text


class NobodyAtMaster(HarnessError):
    """No master answers where one was said to be.

    Attributes:
        master: as it was given.
    """

    def __init__(self, master: str, why: str) -> None:
        super().__init__(f"no master answers at {master}: {why}. Is it running, and can this machine reach it?")
        self.master = master


@dataclass(frozen=True)
class Cluster:
    """Where executors come from. The driver always runs on this machine."""

    master: str
    """As Spark takes it: https://spark.apache.org/docs/latest/submitting-applications.html#master-urls"""

    @classmethod
    def parse(cls, master: str) -> Cluster:
        """
        Raises:
            NotAMaster: the text names no cluster.
        """
        if not _MASTERS.fullmatch(master.strip()):
            raise NotAMaster(master)
        return cls(master.strip())

    @property
    def on_this_machine(self) -> bool:
        """Whether executors surely run here, and see this machine's files and its address of its own."""
        return self.master.startswith("local-cluster") or is_loopback(self.master)

    def __str__(self) -> str:
        """The master."""
        return self.master

    def settings(self, work: str) -> dict[str, str]:
        """What Spark has to know beyond the suite's own settings.

        Args:
            work: the engine's directory; executors see it at the same path.
        """
        # Python workers import the driver's state functions from where the driver has them.
        ours = {
            "spark.master": self.master,
            "spark.executorEnv.PYTHONPATH": f"{work}/engine",
            # A store of state stays with its executor also while that one is busy. Another checks its schema anew, and 3.2.2 to 3.5
            # may refuse their own then (SPARK-57003): a defect that has cases of its own.
            "spark.locality.wait": "60s",
            # Where a cluster's storage is, its Hadoop settings say.
            "spark.conformance.hadoopDefaults": "true",
        }
        if not self.on_this_machine:
            ours |= {"spark.driver.bindAddress": "0.0.0.0", "spark.driver.host": self._address()}
        return ours

    def check(self) -> None:
        """Whether somebody listens there; Spark itself would ask for a minute before it says so.

        Raises:
            NobodyAtMaster: nobody does.
        """
        if not self.master.startswith("spark://"):
            return
        errors = []
        for one in self.master.removeprefix("spark://").split(","):  # several, where masters stand by
            try:
                host, port = _host_and_port(one)
                socket.create_connection((host, port), timeout=5).close()
                return
            except (OSError, ValueError) as error:
                errors.append(f"{one}: {error}")
        raise NobodyAtMaster(self.master, "; ".join(errors))

    def _address(self) -> str:
        """Of this machine, as the cluster sees it."""
        first = self.master.removeprefix("k8s://").removeprefix("spark://").split(",")[0]
        try:
            host, port = _host_and_port(first)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
                route.connect((host, port))  # asks for the route only: nothing is sent
                return str(route.getsockname()[0])
        except (OSError, ValueError):
            return socket.gethostname()


def settings_of(texts: Iterable[str]) -> dict[str, str]:
    """``spark.executor.memory=2g`` → the setting and its value.

    Raises:
        NotASetting: one is of another form.
    """
    settings = {}
    for text in texts:
        found = re.fullmatch(r"(spark\.[^=\s]+)=(.*)", text)
        if not found:
            raise NotASetting(text)
        settings[found[1]] = found[2]
    return settings


def _host_and_port(text: str) -> tuple[str, int]:
    parts = urlsplit(text if "//" in text else f"//{text}")
    if not parts.hostname:
        raise ValueError("there is no host in it")
    return parts.hostname, parts.port or _PORT
