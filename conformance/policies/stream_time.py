"""Kafka Streams: stream time, the highest event time that a task has seen, and the grace by which windows stay open behind it.

Milliseconds. There is no watermark; stream time minus the grace takes its place here, since a window is closed once its end is
not above that. It moves with every record, and before that record is judged. The clock counts for nothing. Source:
``KStreamWindowAggregate`` of Apache Kafka, and KIP-633 for the grace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class StreamTime(Policy):
    grace: int
    """Milliseconds."""
    stream_time: int = -1
    """``NO_TIMESTAMP`` before the first record."""

    def __post_init__(self) -> None:
        at_least("stream-time", "grace", self.grace, 0)

    @property
    def watermark(self) -> int:
        """Stream time minus the grace; ``MIN`` before the first record."""
        return MIN if self.stream_time < 0 else self.stream_time - self.grace

    def event(self, timestamp: int, now: int) -> StreamTime:  # noqa: ARG002
        return replace(self, stream_time=max(self.stream_time, timestamp))
