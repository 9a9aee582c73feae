"""What the harness uses of the packages that speak to a container engine's daemon; they are the extra ``containers``."""

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


try:
    import requests
    from docker.errors import APIError, DockerException, ImageNotFound, NotFound
    from docker.types import LogConfig
    from docker.utils.socket import STDOUT, SocketError, frames_iter
    from testcontainers.core.docker_client import DockerClient
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("docker", "requests", "testcontainers"):
        raise
    raise HarnessError(
        f"Containers need the package {error.name}, which is not installed: pip install 'watermark-conformance[containers]'"
    ) from None
