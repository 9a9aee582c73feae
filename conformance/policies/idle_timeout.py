"""Hazelcast Jet 0.6's idle timeout: a partition without an event for so long is left out until it has one again.

Milliseconds. The countdown starts when the partition is there and anew with each event, and is over the moment the timeout has
passed. Source: ``WatermarkSourceUtil`` of Hazelcast Jet 0.6 (``EventTimeMapper`` since 3.0); the default is 60 000.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least

DEFAULT = 60_000


@dataclass(frozen=True)
class IdleTimeout(Policy):
    """Another policy, with a timeout. While it is idle its watermark is not asked for."""

    policy: Policy
    timeout: int
    """Milliseconds; 0: never idle."""
    idle_from: int = MIN

    def __post_init__(self) -> None:
        at_least("idle timeout", "idleTimeout", self.timeout, 0)

    @property
    def watermark(self) -> int:
        return self.policy.watermark

    def idle(self, now: int) -> bool:
        return self.timeout > 0 and self.idle_from <= now

    def started(self, now: int) -> IdleTimeout:
        return replace(self, policy=self.policy.started(now), idle_from=now + self.timeout)

    def event(self, timestamp: int, now: int) -> IdleTimeout:
        return replace(self, policy=self.policy.event(timestamp, now), idle_from=now + self.timeout)

    def poll(self, now: int) -> IdleTimeout:
        return self if self.idle(now) else replace(self, policy=self.policy.poll(now))
