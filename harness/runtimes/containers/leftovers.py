"""Finds and removes containers and volumes that the suite made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from docker.errors import APIError, NotFound
from testcontainers.core.docker_client import DockerClient

from harness.runtimes.containers.labels import RUN, Owner


@dataclass(frozen=True)
class Leftover:
    """A container or a volume of the suite's."""

    kind: Literal["container", "volume"]
    name: str
    owner: Owner


def find(client: DockerClient, owner: Owner | None = None) -> Iterator[Leftover]:
    """What there is, containers before the volumes they hold; of one run where an owner is given."""
    filters = owner.filter if owner else {"label": RUN}
    for container in client.client.api.containers(all=True, filters=filters):
        yield Leftover("container", container["Id"][:12], Owner.read(container["Labels"]))
    for volume in (client.client.api.volumes(filters=filters) or {}).get("Volumes") or ():
        yield Leftover("volume", volume["Name"], Owner.read(volume["Labels"]))


def remove(client: DockerClient, leftover: Leftover) -> None:
    """Remove it, running or not; whoever was faster does no harm."""
    api: Any = client.client.api
    with contextlib.suppress(NotFound):
        if leftover.kind == "container":
            remove_container(api, leftover.name)
        else:
            api.remove_volume(leftover.name, force=True)


def remove_container(api: Any, container: str) -> None:
    """Kill and remove a container and its anonymous volumes.

    Raises:
        docker.errors.APIError: the daemon refuses, for another reason than that it is being removed already.
    """
    try:
        api.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if "already in progress" not in str(error):
            raise
