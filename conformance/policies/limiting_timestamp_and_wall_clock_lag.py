"""Hazelcast Jet ``limitingTimestampAndWallClockLag``: not further behind the wall clock than one lag, nor behind the highest
event time than another.

Milliseconds; the clock is the wall clock (``System.currentTimeMillis``), and event times must be of the same kind. Needs no
event at all to advance. Source: ``WatermarkPolicies.limitingTimestampAndWallClockLag`` of Hazelcast Jet 0.5; from 0.6 on an
event so early that subtracting its lag would leave the range of 64 bits does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN, wrapped
from conformance.policies.policy import Policy, at_least

_NAME = "limiting-timestamp-and-wall-clock-lag"


@dataclass(frozen=True)
class LimitingTimestampAndWallClockLag(Policy):
    timestamp_lag: int
    """Milliseconds behind the highest event time."""
    wall_clock_lag: int
    """Milliseconds behind the wall clock."""
    guarded: bool = False
    """Whether events below ``MIN`` plus their lag are ignored: from 0.6 on."""
    watermark: int = MIN

    def __post_init__(self) -> None:
        at_least(_NAME, "timestampLag", self.timestamp_lag, 0)
        at_least(_NAME, "wallClockLag", self.wall_clock_lag, 0)

    def event(self, timestamp: int, now: int) -> LimitingTimestampAndWallClockLag:
        polled = self.poll(now)
        if self.guarded and timestamp < MIN + self.timestamp_lag:
            return polled
        return replace(polled, watermark=max(polled.watermark, wrapped(timestamp - self.timestamp_lag)))

    def poll(self, now: int) -> LimitingTimestampAndWallClockLag:
        return replace(self, watermark=max(self.watermark, now - self.wall_clock_lag))
