"""The container engine's daemon: Docker's, or Podman's with the same API."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from harness.errors import HarnessError
from harness.runtimes.containers.client import DockerClient, DockerException, requests

_TIMEOUT_S = 120
"""For requests; removing containers and volumes takes longest."""


class NoDaemon(HarnessError):
    """No container engine is reachable."""

    def __init__(self, why: str) -> None:
        address = os.environ.get("DOCKER_HOST", "the default socket; DOCKER_HOST is not set")
        super().__init__(
            f"No container engine answers at {address}: {why}\n"
            "Start one (`systemctl start docker`, or `systemctl --user start podman.socket` with "
            "DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock), or run without: --runtime local."
        )
        self.why = why


class DaemonRefused(HarnessError):
    """The daemon refused a request."""

    def __init__(self, doing: str, error: Exception) -> None:
        super().__init__(f"The container engine refused {doing}: {explained(error)}")
        self.error = error


@dataclass(frozen=True)
class Abilities:
    """The limits that the daemon can enforce; a rootless one on cgroup v1 enforces none."""

    memory: bool
    swap: bool
    cpu: bool
    pids: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """The limits that it cannot enforce."""
        known = {"memory": self.memory, "CPU": self.cpu, "processes": self.pids}
        return tuple(name for name, there in known.items() if not there)


def connect() -> DockerClient:
    """A client of the daemon that ``DOCKER_HOST``, the docker context or the default socket names.

    Raises:
        NoDaemon: it is not reachable.
    """
    try:
        client = DockerClient(timeout=_TIMEOUT_S)
        client.client.ping()
    except (DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise NoDaemon(explained(error)) from None
    return client


def abilities(client: DockerClient) -> Abilities:
    """The limits that the daemon reports."""
    info: dict[str, Any] = client.client.info()
    return Abilities(
        memory=bool(info.get("MemoryLimit", True)),
        swap=bool(info.get("SwapLimit", True)),
        cpu=bool(info.get("CpuCfsQuota", True)),
        pids=bool(info.get("PidsLimit", True)),
    )


def explained(error: Exception) -> str:
    """The message of a client's error, without addresses and status codes."""
    explanation = getattr(error, "explanation", None)
    if explanation:
        return str(explanation).strip()
    # requests wraps the actual error in two more, each quoting the inner one.
    innermost: BaseException = error
    while innermost.__context__ is not None:
        innermost = innermost.__context__
    return str(getattr(innermost, "strerror", None) or innermost).strip()
