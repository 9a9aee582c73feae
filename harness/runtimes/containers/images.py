"""Which image a target runs in, and getting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from docker.errors import APIError, ImageNotFound
from testcontainers.core.docker_client import DockerClient

from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.containers.choice import EVERY
from harness.runtimes.containers.daemon import DaemonRefused, explained
from harness.targets.target import Target


class NoImage(HarnessError):
    """The daemon does not have the image and cannot get it."""

    def __init__(self, reference: str, target: Target, why: str) -> None:
        super().__init__(
            f"There is no image {reference} on this daemon, and it cannot be pulled: {why}\n"
            f"Build one from PyPI: conformance targets build {target.version}\n"
            f"or name another: --image {target.version}=registry/spark:tag, or `images:` in conformance.yaml"
        )
        self.reference = reference


class NoOfficialImage(HarnessError):
    """Apache publishes none for this version."""

    def __init__(self, target: Target) -> None:
        super().__init__(
            f"Apache publishes no image with Python of Spark {target.version}.\n"
            f"Build one from PyPI: conformance targets build {target.version}\n"
            f"or name another: --image {target.version}=registry/spark:tag, or `images:` in conformance.yaml"
        )


@dataclass(frozen=True)
class Image:
    """An image that is on the daemon."""

    reference: str
    """What it was asked for by."""
    id: str
    """``sha256:…``"""
    digest: str
    """``registry/name@sha256:…`` where it came from a registry, else its id."""
    user: str
    """As configured in it: empty, ``spark``, ``185`` or ``185:0``."""

    @classmethod
    def of(cls, reference: str, found: Any) -> Image:
        """From docker's own image object."""
        digests = found.attrs.get("RepoDigests") or ()
        return cls(
            reference=reference,
            id=found.id,
            digest=next(iter(digests), found.id),
            user=(found.attrs.get("Config") or {}).get("User") or "",
        )


@dataclass(frozen=True)
class Images:
    """The choice of images.

    In this order: what was said for the version, for its line, for all; the image that ``targets build`` made, where the
    daemon has it; the official one.
    """

    said: Mapping[str, str] = field(default_factory=dict)
    """Version (``3.5.9``), line (``3.5``) or ``all`` → reference; ``{spark}`` in it is the version."""

    def reference(self, target: Target, client: DockerClient) -> str:
        """The reference of the image for a target.

        Raises:
            NoOfficialImage: nothing was said, none is built, and Apache publishes none.
        """
        for name in (str(target.version), target.version.line, EVERY):
            if name in self.said:
                return self.said[name].replace("{spark}", str(target.version))
        if _has(client, built(target)):
            return built(target)
        if target.image is None:
            raise NoOfficialImage(target)
        return target.image

    def at_hand(self, target: Target, client: DockerClient) -> Image | None:
        """The image for a target where the daemon has it already; nothing is pulled.

        Raises:
            DaemonRefused: the daemon does not tell.
        """
        try:
            reference = self.reference(target, client)
        except NoOfficialImage:
            return None
        return Image.of(reference, client.client.images.get(reference)) if _has(client, reference) else None

    def get(self, target: Target, client: DockerClient, on_progress: ProgressCallback) -> Image:
        """The image for a target, pulled where the daemon lacks it.

        Raises:
            NoImage, NoOfficialImage: there is none.
            DaemonRefused: the daemon does not tell.
        """
        reference = self.reference(target, client)
        if not _has(client, reference):
            _pull(client, reference, target, on_progress)
        try:
            return Image.of(reference, client.client.images.get(reference))
        except ImageNotFound as error:
            raise NoImage(reference, target, explained(error)) from error
        except APIError as error:
            raise DaemonRefused(f"to look at the image {reference}", error) from error


def built(target: Target) -> str:
    """The name ``conformance targets build`` gives its images."""
    return f"watermark-conformance/spark:{target.version}"


def _has(client: DockerClient, reference: str) -> bool:
    try:
        client.client.images.get(reference)
    except ImageNotFound:
        return False
    except APIError as error:
        raise DaemonRefused(f"to look for the image {reference}", error) from error
    return True


def _pull(client: DockerClient, reference: str, target: Target, on_progress: ProgressCallback) -> None:
    on_progress(f"pulling {reference}")
    api: Any = client.client.api
    done: set[str] = set()
    try:
        name, pinned, _ = reference.partition("@")
        tag = None if pinned or ":" in name.rpartition("/")[2] else "latest"
        for event in api.pull(reference, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise NoImage(reference, target, event["error"])
            if event.get("status") == "Pull complete":
                done.add(event["id"])
                on_progress(f"pulling {reference}: {len(done)} layers are here")
    except (APIError, OSError) as error:
        raise NoImage(reference, target, explained(error)) from error
