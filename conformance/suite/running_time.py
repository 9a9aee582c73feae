"""How long a case takes: an engine begins with the longest, so that none runs alone at the end, and shards take equally long."""

from __future__ import annotations

from conformance.core.case import Add, Backlog, Case, Restart, Step

_RESTART = 3
"""Stopping a query and starting it again takes about as long as this many micro-batches."""


def estimated_batches(case: Case) -> int:
    """The duration of a case, estimated as a number of micro-batches."""
    return _RESTART + sum(_batches(step) for step in case.steps)


def _batches(step: Step) -> int:
    match step.action:
        case Add():
            return 2  # one for the rows, and a no-data batch if the watermark has advanced
        case Backlog(entries=entries):
            return len(entries) + 1
        case Restart():
            return _RESTART
        case _:
            return 1
