"""The container engine's daemon: Docker's, or Podman's with the same API; and what the suite has left there."""

import contextlib
import os
import platform
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import psutil

from harness.errors import HarnessError
from harness.runtimes.containers.client import APIError, DockerClient, DockerException, NotFound, requests

_TIMEOUT_S = 120
"""A request may take so long; removing containers and volumes takes longest."""


class NoDaemon(HarnessError):
    """No container engine is reachable."""

    def __init__(self, why: str) -> None:
        address = os.environ.get("DOCKER_HOST", "the default socket; DOCKER_HOST is not set")
        super().__init__(
            f"No container engine answers at {address}: {why}\n"
            "Start one (`systemctl start docker`, or `systemctl --user start podman.socket` with "
            "DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock), or run without: --runtime local."
        )


class DaemonRefused(HarnessError):
    def __init__(self, doing: str, error: Exception) -> None:
        super().__init__(f"The container engine refused {doing}: {explained(error)}")


LIMITS = {"memory": "MemoryLimit", "swap": "SwapLimit", "CPU": "CpuCfsQuota", "processes": "PidsLimit"}
"""Each limit on a container, with the name by which a daemon says whether it can enforce it."""


def connect() -> DockerClient:
    """A client of the daemon of ``DOCKER_HOST``, the docker context or the default socket. Raises ``NoDaemon`` if it is not reachable."""
    try:
        client = DockerClient(timeout=_TIMEOUT_S)
        client.client.ping()
    except (DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise NoDaemon(explained(error)) from None
    return client


def missing_limits(client: DockerClient) -> tuple[str, ...]:
    """The limits that the daemon cannot enforce; a rootless one on cgroup v1 enforces none."""
    info: dict[str, Any] = client.client.info()
    return tuple(limit for limit, name in LIMITS.items() if not info.get(name, True))


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


RUN = "watermark-conformance.run"
HOST = "watermark-conformance.host"
PROCESS = "watermark-conformance.process"


@dataclass(frozen=True)
class Owner:
    """The process that made a container or a volume."""

    run: str
    host: str
    process: int

    @classmethod
    def new(cls) -> Self:
        return cls(uuid.uuid4().hex[:12], platform.node(), os.getpid())

    @classmethod
    def read(cls, labels: dict[str, Any]) -> Self:
        process = str(labels.get(PROCESS, ""))
        return cls(str(labels[RUN]), str(labels.get(HOST, "")), int(process) if process.isdigit() else 0)

    @property
    def labels(self) -> dict[str, str]:
        return {RUN: self.run, HOST: self.host, PROCESS: str(self.process)}

    @property
    def filter(self) -> dict[str, str]:
        """Selects what belongs to this run."""
        return {"label": f"{RUN}={self.run}"}

    def is_alive(self) -> bool | None:
        """Whether its process still runs; None if it is on another machine."""
        if self.host != platform.node():
            return None
        return not self.process or psutil.pid_exists(self.process)


@dataclass(frozen=True)
class Leftover:
    """A container or a volume that the suite has made."""

    kind: Literal["container", "volume"]
    name: str
    owner: Owner


def find_leftovers(client: DockerClient, owner: Owner | None = None) -> Iterator[Leftover]:
    """Containers, then volumes; of one run if an owner is given."""
    filters = owner.filter if owner else {"label": RUN}
    for container in client.client.api.containers(all=True, filters=filters):
        yield Leftover("container", container["Id"][:12], Owner.read(container["Labels"]))
    for volume in (client.client.api.volumes(filters=filters) or {}).get("Volumes") or ():
        yield Leftover("volume", volume["Name"], Owner.read(volume["Labels"]))


def remove_leftover(client: DockerClient, leftover: Leftover) -> None:
    """Remove it, running or not, unless it is already gone."""
    api: Any = client.client.api
    with contextlib.suppress(NotFound):
        if leftover.kind == "container":
            remove_container(api, leftover.name)
        else:
            api.remove_volume(leftover.name, force=True)


def remove_container(api: Any, container: str) -> None:
    """Kill and remove a container and its anonymous volumes. Raises ``APIError`` if the daemon refuses, unless it is already at it."""
    try:
        api.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        # The daemon answers 409 for this and other conflicts; only its text tells them apart.
        if "already in progress" not in str(error):
            raise
