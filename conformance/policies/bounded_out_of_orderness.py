"""Flink ``forBoundedOutOfOrderness``: the highest event time minus the bound minus one millisecond, emitted periodically.

Milliseconds. An event moves nothing by itself: the watermark is emitted at intervals (every 200 ms by default), here at a
boundary and at an idle poll. Source: ``BoundedOutOfOrdernessWatermarks`` of Apache Flink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class BoundedOutOfOrderness(Policy):
    bound: int
    """Milliseconds."""
    watermark: int = MIN
    """The one emitted last."""
    highest: int | None = None
    """None before the first event: then the watermark that is emitted is ``MIN``."""

    def __post_init__(self) -> None:
        at_least("bounded-out-of-orderness", "bound", self.bound, 0)

    def event(self, timestamp: int, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        return replace(self, highest=timestamp if self.highest is None else max(self.highest, timestamp))

    def poll(self, now: int) -> BoundedOutOfOrderness:
        return self.boundary(now)

    def boundary(self, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        return self if self.highest is None else replace(self, watermark=self.highest - self.bound - 1)
