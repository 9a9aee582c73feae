"""What a container may do: only what Spark in local mode needs."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.core.errors import WrongUsage

WORK = "/conformance"
"""The path of the run's volume in every container: checkpoints hold absolute paths and may be resumed in another container."""

_SIZE = re.compile(r"\d+[kmg]?", re.IGNORECASE)

_ENVIRONMENT: Mapping[str, str] = {
    # The JVM looks up its own address by host name, and there is no network.
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_LOCAL_HOSTNAME": "localhost",
    # The home of the user in official images is not writable.
    "HOME": "/tmp",
    "JAVA_TOOL_OPTIONS": "-Duser.home=/tmp",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
}


@dataclass(frozen=True)
class Confinement:
    """The limits of one container."""

    memory: str = "3g"
    """For the driver, its JVM (1 GiB of heap), its Python workers, and their files in ``/tmp``."""
    cpus: float = 2.0
    processes: int = 2048
    scratch: str = "512m"
    """Size of ``/tmp``, in memory: native libraries are unpacked there."""
    volume: Mapping[str, str] = field(default_factory=dict)
    """Options of the ``local`` volume driver, for working files on another disk."""

    def __post_init__(self) -> None:
        for option, size in (("--memory", self.memory), ("scratch", self.scratch)):
            if not _SIZE.fullmatch(size):
                raise WrongUsage(f"{option} {size}: not a size; use bytes or a number with k, m or g, such as 3g")
        if self.cpus <= 0:
            raise WrongUsage(f"--cpus {self.cpus}: not a positive number of processors, such as 2 or 0.5")

    def arguments(self, missing: Container[str] = ()) -> dict[str, Any]:
        """Arguments for the creation of a container.

        Args:
            missing: the limits that the daemon cannot enforce: `daemon.missing_limits`.
        """
        limits: dict[str, Any] = {}
        if "memory" not in missing:
            limits["mem_limit"] = self.memory
            if "swap" not in missing:
                limits["memswap_limit"] = self.memory
        if "CPU" not in missing:
            limits["nano_cpus"] = int(self.cpus * 1e9)
        if "processes" not in missing:
            limits["pids_limit"] = self.processes
        return {
            "network": "none",
            "hostname": "localhost",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            # Native libraries are loaded from there.
            "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={self.scratch}"},
            "environment": dict(_ENVIRONMENT),
            **limits,
        }
