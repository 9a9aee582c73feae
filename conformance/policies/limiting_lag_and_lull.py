"""Hazelcast Jet ``limitingLagAndLull``: a fixed lag; and where no event comes for longer than a lull, the watermark advances in
step with local time.

Milliseconds, of event times too, since they are advanced by the clock's. The clock is monotonic (``System.nanoTime``, cut to
milliseconds); it sets the pace and never the value. An input that never saw an event has no watermark, whatever time passes.
Source: ``WatermarkPolicies.limitingLagAndLull`` of Hazelcast Jet 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least

_NAME = "limiting-lag-and-lull"


@dataclass(frozen=True)
class LimitingLagAndLull(Policy):
    lag: int
    """Milliseconds."""
    max_lull: int
    """Milliseconds."""
    watermark: int = MIN
    over_at: int | None = None
    """When the lull is over or, in one that is, up to when the watermark has been advanced; None before the first look."""

    def __post_init__(self) -> None:
        at_least(_NAME, "lag", self.lag, 0)
        at_least(_NAME, "maxLull", self.max_lull, 0)

    def event(self, timestamp: int, now: int) -> LimitingLagAndLull:
        """What has passed of a lull since the last poll is not made up for."""
        watermark = max(self.watermark, timestamp - self.lag)
        return replace(self, watermark=watermark, over_at=now + self.max_lull)

    def poll(self, now: int) -> LimitingLagAndLull:
        over_at = now + self.max_lull if self.over_at is None else self.over_at
        past = max(0, now - over_at)
        watermark = self.watermark + past if self.watermark > MIN else MIN
        return replace(self, watermark=watermark, over_at=over_at + past)
