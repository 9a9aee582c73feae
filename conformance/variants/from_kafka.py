"""The rows of a case as records of topics: the source that brings rows must not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.case import Add, Arrival, Backlog, Case, KafkaSource, Restart
from conformance.variants.variant import VariantOutput


@dataclass(frozen=True)
class FromKafka:
    """Every stream is read from a topic, with as many partitions as its most partitioned arrival.

    Does not apply to a case

    - that reads topics or memory already;
    - with a backlog and ``availableNow``, which reads all records of a topic in one micro-batch;
    - whose sources have names: one that gets a name reads all records from the beginning in one micro-batch.
    """

    name: str = "kafka"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        backlog = any(isinstance(step.action, Backlog) for step in case.steps)
        at_once = backlog and "availableNow" in case.triggers
        named = any(one.name == "from" and "name" in one.arguments for one in case.operations())
        if case.topics or case.in_memory or at_once or named:
            return
        topics = {name: KafkaSource(partitions=_partitions(name, case)) for name in case.streams}
        yield VariantOutput(self.name, case.model_copy(update={"topics": topics}))


def _partitions(stream: str, case: Case) -> int:
    return max((len(one[stream].partitions) for one in _arrivals(case) if stream in one), default=1) or 1


def _arrivals(case: Case) -> Iterator[Arrival]:
    for step in case.steps:
        match step.action:
            case Add(streams=arrival) | Restart(add=arrival):
                yield arrival
            case Backlog(entries=entries):
                yield from entries
