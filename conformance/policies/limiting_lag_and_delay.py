"""Hazelcast Jet ``limitingLagAndDelay``: a fixed lag; and every event time is reached by the watermark after a delay at the latest.

Nothing is assumed of the unit of event times: they are only remembered (``timestamp_history``), never advanced. The clock
and the delay are in nanoseconds (``System.nanoTime``; Jet takes the delay in milliseconds and turns it into nanoseconds). The
delay is kept in 16 samples, and so exact to a sixteenth. Source: ``WatermarkPolicies.limitingLagAndDelay`` of Hazelcast Jet 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN, wrapped
from conformance.policies.policy import Policy
from conformance.policies.timestamp_history import TimestampHistory

SAMPLES = 16


@dataclass(frozen=True)
class LimitingLagAndDelay(Policy):
    lag: int
    """In the unit of event times; the only lag of the four that Jet lets be negative."""
    history: TimestampHistory
    watermark: int = MIN
    highest: int = MIN

    @classmethod
    def of(cls, lag: int, max_delay: int, samples: int = SAMPLES) -> LimitingLagAndDelay:
        """
        Args:
            lag: in the unit of event times.
            max_delay: nanoseconds.
            samples: into how many the delay is divided.
        """
        return cls(lag, TimestampHistory(max_delay, samples))

    def event(self, timestamp: int, now: int) -> LimitingLagAndDelay:
        seen = replace(self, highest=max(self.highest, timestamp))
        return seen._advanced(wrapped(timestamp - self.lag), now)

    def poll(self, now: int) -> LimitingLagAndDelay:
        return self._advanced(self.watermark, now)

    def _advanced(self, proposed: int, now: int) -> LimitingLagAndDelay:
        history, delayed = self.history.sample(now, self.highest)
        return replace(self, history=history, watermark=max(self.watermark, proposed, delayed))
