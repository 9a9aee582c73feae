"""The container engine's daemon: Docker's, or Podman's that speaks the same API."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import requests
from docker.errors import DockerException
from testcontainers.core.docker_client import DockerClient

from harness.errors import HarnessError

_PATIENCE = 120
"""Seconds a request may take; removing what Spark left behind takes longest."""


class NoDaemon(HarnessError):
    """No container engine answers."""

    def __init__(self, why: str) -> None:
        asked = os.environ.get("DOCKER_HOST", "the default socket; DOCKER_HOST is not set")
        super().__init__(
            f"No container engine answers at {asked}: {why}\n"
            "Start one (`systemctl start docker`, or `systemctl --user start podman.socket` with "
            "DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock), or run without: --runtime local."
        )
        self.why = why


class DaemonRefused(HarnessError):
    """The daemon answered, and would not."""

    def __init__(self, doing: str, error: Exception) -> None:
        super().__init__(f"The container engine refused {doing}: {explained(error)}")
        self.error = error


@dataclass(frozen=True)
class Abilities:
    """Which limits the daemon can keep; a rootless one on cgroup v1 keeps none."""

    memory: bool
    swap: bool
    cpu: bool
    pids: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """The limits a container would run without."""
        known = {"memory": self.memory, "CPU": self.cpu, "processes": self.pids}
        return tuple(name for name, there in known.items() if not there)


def reach() -> DockerClient:
    """The daemon that ``DOCKER_HOST``, the docker context or the default socket names.

    Raises:
        NoDaemon: none answers.
    """
    try:
        client = DockerClient(timeout=_PATIENCE)
        client.client.ping()
    except (DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise NoDaemon(explained(error)) from None
    return client


def abilities(client: DockerClient) -> Abilities:
    """What the daemon says it can limit."""
    said: dict[str, Any] = client.client.info()
    return Abilities(
        memory=bool(said.get("MemoryLimit", True)),
        swap=bool(said.get("SwapLimit", True)),
        cpu=bool(said.get("CpuCfsQuota", True)),
        pids=bool(said.get("PidsLimit", True)),
    )


def explained(error: Exception) -> str:
    """What an error of the client says, without the addresses and status codes around it."""
    explanation = getattr(error, "explanation", None)
    if explanation:
        return str(explanation).strip()
    # requests wraps what really happened in two more errors, each quoting the one inside it.
    innermost: BaseException = error
    while innermost.__context__ is not None:
        innermost = innermost.__context__
    return str(getattr(innermost, "strerror", None) or innermost).strip()
