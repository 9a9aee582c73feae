"""What a container may do: nothing that Spark in local mode does not need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.runtimes.containers.daemon import Abilities

WORK = "/conformance"
"""Where the run's volume is, in every container: checkpoints hold absolute paths, and may be resumed in another one."""

_SIZE = re.compile(r"\d+[kmg]?", re.IGNORECASE)

_ENVIRONMENT: Mapping[str, str] = {
    # The JVM finds out its own address by its own name, and there is no network to ask.
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_LOCAL_HOSTNAME": "localhost",
    # Official images give their user no home it can write to.
    "HOME": "/tmp",
    "JAVA_TOOL_OPTIONS": "-Duser.home=/tmp",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
}


class NotALimit(ValueError):
    """What was given as a limit is none."""

    exit_code = 2

    def __init__(self, option: str, given: object, want: str) -> None:
        super().__init__(f"{option} {given}: {want}")


@dataclass(frozen=True)
class Confinement:
    """The limits of one container."""

    memory: str = "3g"
    """Of the driver, its JVM (1 GiB of heap) and its Python workers, and of what they keep in ``/tmp``."""
    cpus: float = 2.0
    processes: int = 2048
    scratch: str = "512m"
    """Of ``/tmp``, in memory: native libraries are unpacked there."""
    volume: Mapping[str, str] = field(default_factory=dict)
    """Options of the ``local`` volume driver, for working files on a disk of one's choice."""

    def __post_init__(self) -> None:
        for option, size in (("--memory", self.memory), ("scratch", self.scratch)):
            if not _SIZE.fullmatch(size):
                raise NotALimit(option, size, "give a size in bytes, or with k, m or g behind it, such as 3g")
        if self.cpus <= 0:
            raise NotALimit("--cpus", self.cpus, "give how many processors a container may use, such as 2 or 0.5")

    def arguments(self, abilities: Abilities) -> dict[str, Any]:
        """What docker is asked for, as far as the daemon can keep it."""
        limits: dict[str, Any] = {}
        if abilities.memory:
            limits["mem_limit"] = self.memory
            if abilities.swap:
                limits["memswap_limit"] = self.memory
        if abilities.cpu:
            limits["nano_cpus"] = int(self.cpus * 1e9)
        if abilities.pids:
            limits["pids_limit"] = self.processes
        return {
            "network": "none",
            "hostname": "localhost",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            # Libraries unpacked there are loaded from there.
            "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={self.scratch}"},
            "environment": dict(_ENVIRONMENT),
            **limits,
        }
