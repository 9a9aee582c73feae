"""Divides work over the processors of this machine: each part in a process of its own, which begins with what this one knows."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

FEW = 200
"""Items that one process does in less time than several need to begin."""
MOST_PROCESSES = 4


def divide(items: Sequence[Item], work: Callable[[Sequence[Item]], None], *, few: int = FEW) -> None:
    """Do the work on all items, in any order; what it leaves is in files.

    A part whose process fails is done again in this one, which raises what went wrong.

    Args:
        items: each at least once, in this process or another.
        work: may be done twice on an item.
        few: up to how many items this process does alone.
    """
    processes = min(_processors(), MOST_PROCESSES)
    if len(items) <= few or processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        work(items)
        return
    context = multiprocessing.get_context("fork")
    parts = [items[number::processes] for number in range(processes)]
    helpers = [context.Process(target=_attempt, args=(work, part), daemon=True) for part in parts[1:]]
    for helper in helpers:
        helper.start()
    work(parts[0])
    for helper, part in zip(helpers, parts[1:], strict=True):
        helper.join()
        if helper.exitcode != 0:
            work(part)


def _attempt(work: Callable[[Sequence[Item]], None], part: Sequence[Item]) -> None:
    """Do the work, and end with an exit code; the process that is waiting says what went wrong."""
    try:
        work(part)
    except Exception:
        sys.exit(1)


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
