"""Spark: the highest event time of the micro-batch minus the delay, computed when the micro-batch has ended.

Milliseconds. Never goes back, and a micro-batch without rows moves nothing. Source: ``EventTimeWatermarkExec`` and
``WatermarkTracker`` of Apache Spark (SPARK-18124).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class MaxMinusDelay(Policy):
    """One ``withWatermark`` of a query."""

    delay: int
    """Milliseconds."""
    watermark: int = MIN
    """``MIN`` until a micro-batch with rows has ended; joined with others it then counts as the epoch."""
    highest: int | None = None
    """Highest event time of the micro-batch that is being read."""

    def __post_init__(self) -> None:
        at_least("spark", "delay", self.delay, 0)

    def event(self, timestamp: int, now: int) -> MaxMinusDelay:  # noqa: ARG002
        return replace(self, highest=timestamp if self.highest is None else max(self.highest, timestamp))

    def poll(self, now: int) -> MaxMinusDelay:
        return self.boundary(now)

    def boundary(self, now: int) -> MaxMinusDelay:  # noqa: ARG002
        if self.highest is None:
            return self
        return replace(self, watermark=max(self.watermark, self.highest - self.delay), highest=None)
