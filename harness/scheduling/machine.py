"""The cores and the memory that this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_LIMITS = (
    # cgroup v2, then v1: the memory limit of a container and its usage, in bytes.
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


@dataclass(frozen=True)
class Machine:
    """The room for engines."""

    cores: int
    memory: int
    """Free bytes."""

    @classmethod
    def here(cls) -> Machine:
        """This machine, now."""
        free = [psutil.virtual_memory().available, *(room for limit in _LIMITS if (room := _room(*limit)) is not None)]
        return cls(_cores(), max(0, min(free)))


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def _room(limit: Path, usage: Path) -> int | None:
    try:
        return int(limit.read_text()) - int(usage.read_text())
    except (OSError, ValueError):  # no such file, or `max`: no limit
        return None
