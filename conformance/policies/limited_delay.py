"""Beam's KafkaIO with limited delay: the highest event time, but never more than the clock shows, minus the delay.

Milliseconds; the clock is the wall clock. A partition with nothing left to read, whose highest event time is further back than
the delay, follows the clock. Asked for at a boundary (more is waiting) and at an idle poll (nothing is, checked just now). What
it gives may be less than before; the runner then keeps the watermark it has. Source:
``CustomTimestampPolicyWithLimitedDelay`` of Apache Beam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class LimitedDelay(Policy):
    max_delay: int
    """Milliseconds."""
    watermark: int = MIN
    """Beam's own lowest instant is a little above ``MIN``; it means the same."""
    highest: int | None = None

    def __post_init__(self) -> None:
        at_least("limited-delay", "maxDelay", self.max_delay, 0)

    def event(self, timestamp: int, now: int) -> LimitedDelay:  # noqa: ARG002
        # Before the first record the highest is MIN plus the delay, and a record below that counts for nothing.
        return replace(self, highest=max(self._highest, timestamp))

    def poll(self, now: int) -> LimitedDelay:
        return self._kept(self.at(now, backlog=0, checked=now))

    def boundary(self, now: int) -> LimitedDelay:
        return self._kept(self.at(now, backlog=1, checked=now))

    def at(self, now: int, backlog: int, checked: int) -> int:
        """What the policy says.

        Args:
            now: milliseconds.
            backlog: how many records the partition still has.
            checked: when that was looked at, in milliseconds.
        """
        if self._highest > now:
            return now - self.max_delay
        # "Above 0" stands for having read any record: KafkaIO knows no other sign of it.
        if backlog == 0 and checked - self.max_delay > self._highest > 0:
            return checked - self.max_delay
        return self._highest - self.max_delay

    @property
    def _highest(self) -> int:
        return MIN + self.max_delay if self.highest is None else self.highest

    def _kept(self, said: int) -> LimitedDelay:
        return replace(self, watermark=max(self.watermark, said))
