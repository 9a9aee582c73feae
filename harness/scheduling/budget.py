"""How many engines share the machine, and how many cases share an engine."""

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

ENGINE_MEMORY = 1_500 << 20
"""Bytes per engine: a heap of 1 GiB, the JVM itself, and its Python. Measured: 0.7 to 1.3 GB in a run of the whole suite."""

ENGINE_MEMORY_LIMIT = 2 << 30
"""Bytes above which an engine is replaced. In a container it has 3 GB by default."""

MAX_SIDE_BY_SIDE = 8
"""Cases in one engine at once: with more, they wait for each other, and a step takes so long that it seems to hang."""

MAX_IN_A_CLUSTER = 64
"""Cases in one engine at once if a cluster has slots for them: the number of threads of a driver."""

_CASES_A_CORE = 2
"""A query spends about half of its time waiting for its files and its one task."""

_LIMITS = (
    # cgroup v2, then v1: the memory limit of a container and its usage, in bytes.
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


@dataclass(frozen=True)
class Machine:
    """The room for engines: free cores, and free bytes of memory."""

    cores: int
    memory: int

    @classmethod
    def here(cls) -> Self:
        free = [psutil.virtual_memory().available]
        for limit, usage in _LIMITS:
            with suppress(OSError, ValueError):  # no such file, or `max`: no limit
                free.append(int(limit.read_text()) - int(usage.read_text()))
        return cls(_cores(), max(0, min(free)))


@dataclass(frozen=True)
class Budget:
    """How many engines run at once, how many cases in each, and how many at most in an engine that others leave room."""

    jobs: int
    side_by_side: int
    most: int


def budget(machine: Machine, engines: int, *, jobs: int | None = None, side_by_side: int | None = None) -> Budget:
    """Divide the machine among the engines that have work, as many and with as many cases each as requested, if so.

    Two engines on two cores: while one starts, or runs a case that must be alone, the other works. Never more engines than fit into
    memory, even on request: an engine killed for lack of memory takes its cases with it.
    """
    fitting = max(1, machine.memory // ENGINE_MEMORY)
    at_once = max(1, min(jobs or machine.cores // 2 + 1, fitting, engines))

    def cases(engines: int) -> int:
        return side_by_side or min(MAX_SIDE_BY_SIDE, max(1, math.ceil(_CASES_A_CORE * machine.cores / engines)))

    return Budget(at_once, cases(at_once), cases(1))


def is_busy() -> bool:
    """Whether more processes want to run on this machine than it has cores: as a mean of the last minute."""
    return os.getloadavg()[0] > _cores()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
