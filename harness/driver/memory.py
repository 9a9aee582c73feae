"""How much memory the engine has taken."""

from __future__ import annotations

import os
from typing import Dict, List


def memory() -> int | None:
    """Bytes that this process and all it has started hold in memory; None where the operating system does not tell by ``/proc``.

    What several of them share (Spark's Python workers are forks of one daemon) is counted once.
    """
    try:
        held = _held(os.getpid())
        children = _children()
        left = list(children.get(os.getpid(), []))
        while left:
            child = left.pop()
            left.extend(children.get(child, []))
            held += _held(child)
        return held
    except (OSError, ValueError):
        return None


def _children() -> Dict[int, List[int]]:
    """Every process of the machine by its parent."""
    found: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/stat".format(name)) as file:
                    # The name of the program stands in parentheses, and may hold some itself.
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
            found.setdefault(parent, []).append(int(name))
    return found


def _held(pid: int) -> int:
    """Bytes of a process: its own, and its part of what it shares (``Pss``)."""
    try:
        with open("/proc/{}/smaps_rollup".format(pid)) as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (FileNotFoundError, ProcessLookupError):
        if pid == os.getpid():
            raise
        return 0  # it has ended meanwhile
