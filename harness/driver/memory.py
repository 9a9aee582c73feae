"""How much memory the engine has taken."""

from __future__ import annotations

import os
from typing import Dict, List


def memory() -> int | None:
    """Bytes that this process and all it has started hold in memory; None where the operating system does not tell by ``/proc``."""
    try:
        pages = _resident_pages(os.getpid())
        children = _children()
        left = list(children.get(os.getpid(), []))
        while left:
            child = left.pop()
            left.extend(children.get(child, []))
            pages += _resident_pages(child)
        return pages * os.sysconf("SC_PAGE_SIZE")
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


def _resident_pages(pid: int) -> int:
    try:
        with open("/proc/{}/statm".format(pid)) as file:
            return int(file.read().split()[1])
    except FileNotFoundError:
        if pid == os.getpid():
            raise
        return 0
