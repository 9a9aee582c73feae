"""The rows of a micro-batch in another arrangement: neither their order nor which task reads a row may matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from conformance.core.case import Add, Arrival, Backlog, Case, Partitioned, Restart, Step
from conformance.variants.variant import VariantOutput

PARTITIONS = 3

Arrangement: TypeAlias = Callable[[str, Partitioned], Partitioned]
"""From a stream name and its rows in one micro-batch to the rows that arrive instead."""


@dataclass(frozen=True)
class Rearranged:
    """The same case with its rows arranged like this."""

    name: str
    how: Arrangement

    def of(self, case: Case) -> Iterator[VariantOutput]:
        other = rearranged(case, self.how)
        if other != case and not (case.in_memory and self.how is spread_rows):  # it has one partition
            yield VariantOutput(self.name, other)


def reversed_rows(_: str, rows: Partitioned) -> Partitioned:
    """The rows of each partition in the opposite order."""
    return Partitioned(partitions=tuple(partition[::-1] for partition in rows.partitions))


def spread_rows(_: str, rows: Partitioned) -> Partitioned:
    """The rows over partitions, if they are in a single one: a case that places rows in partitions does so on purpose."""
    if len(rows.partitions) != 1 or len(rows.partitions[0]) < 2:
        return rows
    return Partitioned(partitions=tuple(rows.partitions[0][at::PARTITIONS] for at in range(PARTITIONS)))


def rearranged(case: Case, how: Arrangement) -> Case:
    """The case with all arriving rows rearranged."""
    return case.model_copy(update={"steps": tuple(_step(step, how) for step in case.steps)})


def _step(step: Step, how: Arrangement) -> Step:
    match step.action:
        case Add(streams=arrival):
            return step.model_copy(update={"action": Add(streams=_arrival(arrival, how))})
        case Backlog(entries=entries):
            return step.model_copy(update={"action": Backlog(entries=tuple(_arrival(one, how) for one in entries))})
        case Restart(add=arrival) as restart if arrival:
            return step.model_copy(update={"action": restart.model_copy(update={"add": _arrival(arrival, how)})})
        case _:
            return step


def _arrival(arrival: Arrival, how: Arrangement) -> Arrival:
    return {stream: how(stream, rows) for stream, rows in arrival.items()}
