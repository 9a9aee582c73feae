"""Hazelcast Jet ``withFixedLag``: the highest event time minus a lag, moved by every event.

No unit is assumed and no clock is read. Source: ``WatermarkPolicies.withFixedLag`` of Hazelcast Jet 0.5. In 0.6 it is called
``limitingLag`` and ignores an event so early that subtracting the lag would leave the range of 64 bits; 0.5 lets the
subtraction run over, and such an event gives a watermark in the far future.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN, wrapped
from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class FixedLag(Policy):
    lag: int
    guarded: bool = False
    """Whether events below ``MIN`` plus the lag are ignored: from 0.6 on."""
    watermark: int = MIN

    def __post_init__(self) -> None:
        at_least("with-fixed-lag", "lag", self.lag, 0)

    def event(self, timestamp: int, now: int) -> FixedLag:  # noqa: ARG002
        if self.guarded and timestamp < MIN + self.lag:
            return self
        return replace(self, watermark=max(self.watermark, wrapped(timestamp - self.lag)))
