"""Divides work over the processors of this machine, among processes that begin with what this one knows."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 200
"""Items that one process does in less time than several need to begin."""
MOST_PROCESSES = 4
MOST_PARTS = 1000
"""The numbers of so many fit into the smallest pipe."""
_NUMBER = 4
"""Bytes of one number."""


def divide(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Result],
    *,
    few: int = FEW,
    first: Callable[[], object] | None = None,
) -> tuple[Result, ...]:
    """Do the work on all items, in any order.

    Whichever process is free takes the next part. What a process that fails has taken is done again in this one, which raises
    what went wrong.

    Args:
        items: each at least once, in this process or another.
        work: may be done twice on an item. Its result must be picklable.
        few: up to how many items this process does alone.
        first: what this process does before it takes a part, while others work; nobody does it if there are no others.

    Returns:
        the result of each part, in the order of the items.
    """
    processes = min(_processors(), MOST_PROCESSES)
    if len(items) <= few or processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return (work(items),)
    length = -(-len(items) // MOST_PARTS)
    parts = [items[at : at + length] for at in range(0, len(items), length)]
    context = multiprocessing.get_context("fork")
    numbers = _numbers(len(parts))
    # What there is by now is shared as long as no process looks through it for garbage.
    gc.freeze()
    try:
        others = []
        for _ in range(processes - 1):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_attempt, args=(work, parts, numbers, sender), daemon=True)
            process.start()
            # Only the other process may hold it open: then a process that dies ends the wait for its results.
            sender.close()
            others.append((process, receiver))
        if first is not None:
            first()
        results = dict(_taken(work, parts, numbers))
    finally:
        os.close(numbers)
        gc.unfreeze()
    for process, receiver in others:
        with suppress(EOFError):
            results |= receiver.recv()
        process.join()
    return tuple(results[number] if number in results else work(part) for number, part in enumerate(parts))


def _numbers(count: int) -> int:
    """A descriptor from which each process takes the number of the next part, until there is none."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(b"".join(number.to_bytes(_NUMBER, "big") for number in range(count)))
    return reading


def _taken(
    work: Callable[[Sequence[Item]], Result], parts: Sequence[Sequence[Item]], numbers: int
) -> Iterator[tuple[int, Result]]:
    while taken := os.read(numbers, _NUMBER):
        number = int.from_bytes(taken, "big")
        yield number, work(parts[number])


def _attempt(
    work: Callable[[Sequence[Item]], object], parts: Sequence[Sequence[Item]], numbers: int, sender: Connection
) -> None:
    """Do the work and send its results; without them, the process that is waiting finds what went wrong."""
    try:
        sender.send(dict(_taken(work, parts, numbers)))
    except Exception:
        sys.exit(1)


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
