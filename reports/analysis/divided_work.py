"""Divides work over the processors of this machine: each part in a process of its own, which begins with what this one knows."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 200
"""Items that one process does in less time than several need to begin."""
MOST_PROCESSES = 4


def divide(items: Sequence[Item], work: Callable[[Sequence[Item]], Result], *, few: int = FEW) -> tuple[Result, ...]:
    """Do the work on all items, in any order.

    A part whose process fails is done again in this one, which raises what went wrong.

    Args:
        items: each at least once, in this process or another.
        work: may be done twice on an item. Its result must be picklable.
        few: up to how many items this process does alone.

    Returns:
        the result of each part; every item is in one part, and keeps its place among the others of that part.
    """
    processes = min(_processors(), MOST_PROCESSES)
    if len(items) <= few or processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return (work(items),)
    context = multiprocessing.get_context("fork")
    parts = [items[number::processes] for number in range(processes)]
    others = []
    for part in parts[1:]:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_attempt, args=(work, part, sender), daemon=True)
        process.start()
        # Only the other process may hold it open: then a process that dies ends the wait for its result.
        sender.close()
        others.append((process, receiver, part))
    results = [work(parts[0])]
    for process, receiver, part in others:
        try:
            results.append(receiver.recv())
        except EOFError:
            results.append(work(part))
        process.join()
    return tuple(results)


def _attempt(work: Callable[[Sequence[Item]], object], part: Sequence[Item], sender: Connection) -> None:
    """Do the work and send its result; without one, the process that is waiting finds what went wrong."""
    try:
        sender.send(work(part))
    except Exception:
        sys.exit(1)


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
