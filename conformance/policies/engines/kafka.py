"""Kafka Streams: stream time, the maximum event time of a task, and the grace period of windows.

All times are in milliseconds. There is no watermark; stream time minus the grace takes its place, because a window is closed once
its end is at or below that. Source: ``KStreamWindowAggregate`` of Apache Kafka, and KIP-633 for the grace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.policy import MIN, Policy, at_least


@dataclass(frozen=True)
class StreamTime(Policy):
    """Moves with every record, before that record is checked for lateness; ignores the clock."""

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
