"""Finds and removes containers and volumes that the suite has made, by their labels."""

from __future__ import annotations

import contextlib
import os
import platform
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from harness.runtimes.containers.client import APIError, DockerClient, NotFound

RUN = "watermark-conformance.run"
HOST = "watermark-conformance.host"
PROCESS = "watermark-conformance.process"


@dataclass(frozen=True)
class Owner:
    """The process that made a container or a volume."""

    run: str
    """Different for every run."""
    host: str
    process: int

    @classmethod
    def new(cls) -> Owner:
        """This process, in a new run."""
        return cls(uuid.uuid4().hex[:12], platform.node(), os.getpid())

    @classmethod
    def read(cls, labels: dict[str, Any]) -> Owner:
        """From the labels of a container or volume."""
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
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


@dataclass(frozen=True)
class Leftover:
    """A container or a volume that the suite has made."""

    kind: Literal["container", "volume"]
    name: str
    owner: Owner


def find(client: DockerClient, owner: Owner | None = None) -> Iterator[Leftover]:
    """Containers, then volumes; of one run if an owner is given."""
    filters = owner.filter if owner else {"label": RUN}
    for container in client.client.api.containers(all=True, filters=filters):
        yield Leftover("container", container["Id"][:12], Owner.read(container["Labels"]))
    for volume in (client.client.api.volumes(filters=filters) or {}).get("Volumes") or ():
        yield Leftover("volume", volume["Name"], Owner.read(volume["Labels"]))


def remove(client: DockerClient, leftover: Leftover) -> None:
    """Remove it, running or not, unless it is already gone."""
    api: Any = client.client.api
    with contextlib.suppress(NotFound):
        if leftover.kind == "container":
            remove_container(api, leftover.name)
        else:
            api.remove_volume(leftover.name, force=True)


def remove_container(api: Any, container: str) -> None:
    """Kill and remove a container and its anonymous volumes.

    Raises:
        docker.errors.APIError: the daemon refuses, unless because it is already being removed.
    """
    try:
        api.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        # The daemon answers 409 for this and other conflicts; only its text tells them apart.
        if "already in progress" not in str(error):
            raise
