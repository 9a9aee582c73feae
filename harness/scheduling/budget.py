"""How many engines share the machine, and how many cases share an engine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.scheduling.machine import Machine

ENGINE_MEMORY = 1_500 << 20
"""Bytes an engine takes: a heap of 1 GiB, the JVM's own, and its Python. Measured: 0.7 to 1.3 GB in a run of the whole suite."""

MOST_ENGINE_MEMORY = 2 << 30
"""Bytes above which an engine is replaced. In a container it has 3 GB by default."""

MOST_SIDE_BY_SIDE = 8
"""Cases in one engine at once: more wait for each other inside it, and a step takes long enough to look like one that hangs."""

MOST_IN_A_CLUSTER = 64
"""Cases in one engine at once where a cluster has slots for them: as many threads as a driver has."""

_CASES_A_CORE = 2
"""A query waits for its files and its one task about half of its time."""


@dataclass(frozen=True)
class Budget:
    """What runs at once."""

    jobs: int
    """Engines."""
    side_by_side: int
    """Cases in each."""


def budget(machine: Machine, engines: int, *, jobs: int | None = None, side_by_side: int | None = None) -> Budget:
    """Divide the machine.

    Two engines on two cores: while one starts, or runs a case that must be alone, the other works. Never more engines than the memory
    holds, not even where more were asked for: one that is killed for lack of it takes its cases along.

    Args:
        machine: what there is.
        engines: how many there is work for.
        jobs: engines that were asked for; None leaves it to us.
        side_by_side: cases an engine that were asked for, likewise.
    """
    fitting = max(1, machine.memory // ENGINE_MEMORY)
    at_once = max(1, min(jobs or machine.cores // 2 + 1, fitting, engines))
    cases = side_by_side or min(MOST_SIDE_BY_SIDE, max(1, math.ceil(_CASES_A_CORE * machine.cores / at_once)))
    return Budget(at_once, cases)
