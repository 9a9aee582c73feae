"""Streams that a case gives rows to and its query should read, but that no micro-batch had as a source.

What such a query emits says nothing about the case: user code may read a source of its own instead of the DataFrame it is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.case import Action, Add, Arrival, Backlog, Case, Restart
from conformance.core.observation import Observation


def why_unread(case: Case, observation: Observation) -> str | None:
    """The first stream whose rows the query cannot have read, and what it read instead; None if there is none.

    A step that ends with an error proves nothing: Spark may refuse the query before it reads. Neither do rows on a stream that the
    query of their step, after a restart with another query, does not name. That a micro-batch runs at all is checked where the case
    runs (``harness/engine/alignment.py``).
    """
    sources = {read.stream for step in observation.steps for batch in step.batches for read in batch.sources}
    if not sources:
        return None
    query = case.query
    for step, seen in zip(case.steps, observation.steps, strict=False):
        if isinstance(step.action, Restart):
            query = step.action.change.query or query
        if seen.error is not None:
            return None
        for arrival in _arrivals(step.action):
            for name, placed in arrival.items():
                if any(placed.partitions) and name in query.streams() and name not in sources:
                    return _reason(case, step.number, name, sorted(sources - case.streams.keys()))
    return None


def _arrivals(action: Action) -> Iterator[Arrival]:
    match action:
        case Add(streams=arrival) | Restart(add=arrival):
            yield arrival
        case Backlog(entries=entries):
            yield from entries


def _reason(case: Case, step: int, stream: str, others: list[str]) -> str:
    instead = f"; it reads {', '.join(others)} instead" if others else ""
    advice = ""
    if any(operation.name == "call" for operation in case.operations()):
        advice = ". The function that `call` names must build on the DataFrame that it is given"
    return f"step {step} places rows on the stream {stream!r}, but no micro-batch of the query has it as a source{instead}{advice}"
