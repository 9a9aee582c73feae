"""What the harness uses of the packages that speak to a container engine's daemon; they are the extra ``containers``."""

from __future__ import annotations

from harness.errors import HarnessError

__all__ = [
    "STDOUT",
    "APIError",
    "DockerClient",
    "DockerException",
    "ImageNotFound",
    "LogConfig",
    "NotFound",
    "SocketError",
    "frames_iter",
    "requests",
]


class NoContainerPackages(HarnessError):
    """They are not installed."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"Containers need the package {missing}, which is not installed: pip install 'watermark-conformance[containers]'"
        )
        self.missing = missing


try:
    import requests
    from docker.errors import APIError, DockerException, ImageNotFound, NotFound
    from docker.types import LogConfig
    from docker.utils.socket import STDOUT, SocketError, frames_iter
    from testcontainers.core.docker_client import DockerClient
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("docker", "requests", "testcontainers"):
        raise
    raise NoContainerPackages(str(error.name)) from None
