"""How much memory the engine uses."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Optional


class RecentMemory:
    """Remembers a measurement for some seconds: it takes 15 ms of CPU time, a hundredth of a case, and memory grows slowly."""

    def __init__(self) -> None:
        self._measured: Optional[float] = None
        self._bytes: Optional[int] = None

    def __call__(self) -> Optional[int]:
        now = time.monotonic()
        if self._measured is None or now - self._measured > 5:
            self._measured = now
            self._bytes = memory()
        return self._bytes


def memory() -> int | None:
    """Resident bytes of this process and its descendants, forks with shared pages counted once; None without ``/proc``."""
    try:
        children = _children()
        family = [os.getpid()]
        for process in family:  # it grows on the way
            family += children.get(process, [])
        return sum(map(_pss, family))
    except (OSError, ValueError):
        return None


def _children() -> Dict[int, List[int]]:
    """The children of each process of the machine."""
    children: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/stat".format(name)) as file:
                    # The program's name is in parentheses, and may contain some itself.
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                continue
            children.setdefault(parent, []).append(int(name))
    return children


def _pss(pid: int) -> int:
    """The proportional set size (``Pss``) of a process, in bytes."""
    try:
        with open("/proc/{}/smaps_rollup".format(pid)) as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (FileNotFoundError, ProcessLookupError):
        if pid == os.getpid():
            raise
        return 0  # it has ended
