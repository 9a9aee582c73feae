"""A case whose rows arrive in another arrangement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from conformance.core.case import Add, Arrival, Backlog, Case, Partitioned, Restart, Step

Rearranged: TypeAlias = Callable[[str, Partitioned], Partitioned]
"""From a stream name and its rows in one micro-batch to the rows that arrive instead."""


def rearranged(case: Case, how: Rearranged) -> Case:
    """The case with all arriving rows rearranged."""
    return case.model_copy(update={"steps": tuple(_step(step, how) for step in case.steps)})


def _step(step: Step, how: Rearranged) -> Step:
    match step.action:
        case Add(streams=arrival):
            return step.model_copy(update={"action": Add(streams=_arrival(arrival, how))})
        case Backlog(entries=entries):
            return step.model_copy(update={"action": Backlog(entries=tuple(_arrival(one, how) for one in entries))})
        case Restart(add=arrival) as restart if arrival:
            return step.model_copy(update={"action": restart.model_copy(update={"add": _arrival(arrival, how)})})
        case _:
            return step


def _arrival(arrival: Arrival, how: Rearranged) -> Arrival:
    return {stream: how(stream, rows) for stream, rows in arrival.items()}
