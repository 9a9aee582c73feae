"""Divides work over the processors of this machine, among processes that begin with what this one knows."""

import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import zip_longest
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 200
"""The number of items that one process does before several have begun."""
MOST_PROCESSES = 4
MOST_PARTS = 1000

_shared: list[Callable[[int], Any]] = []
"""What the processes started last do with the number of a part: they know it because they are forks, so that it need not be picklable."""


def divide(items: Sequence[Item], work: Callable[[Sequence[Item]], Result], *, few: int = FEW) -> tuple[Result, ...]:
    """Do the work on all items, and return the result of each part, in the order of the items.

    Whichever process is free takes the next part. A part of a process that fails or dies is done again in this one, which raises
    what went wrong. Where processes cannot be forked, this one does everything.

    Args:
        work: may be done twice on an item. Its result must be picklable.
        few: up to how many items this process does alone.
    """
    processes = min(_processors(), MOST_PROCESSES)
    if len(items) <= few or processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return (work(items),)
    length = -(-len(items) // MOST_PARTS)
    parts = [items[at : at + length] for at in range(0, len(items), length)]
    _shared.append(lambda number: work(parts[number]))
    # What there is by now is shared as long as no process looks through it for garbage.
    gc.freeze()
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _end_with_parent)
    try:
        futures: list[Future[Result]] = []
        with suppress(BrokenProcessPool):  # after one of its processes has died, the pool takes no more
            for number in range(len(parts)):
                futures.append(pool.submit(_do, number))
        return tuple(_result(future, work, part) for future, part in zip_longest(futures, parts))
    finally:
        pool.shutdown(cancel_futures=True)
        _shared.pop()
        gc.unfreeze()


def _do(number: int) -> Any:
    return _shared[-1](number)


def _result(future: Future[Result] | None, work: Callable[[Sequence[Item]], Result], part: Sequence[Item]) -> Result:
    if future is not None and future.exception() is None:
        return future.result()
    return work(part)


def _end_with_parent() -> None:
    """End a process of a pool with its parent; it would wait forever for a parent that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
