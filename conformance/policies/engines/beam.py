"""Beam's KafkaIO with limited delay: the maximum event time, capped at the clock, minus the delay.

All times are in milliseconds; the clock is the wall clock. Source: ``CustomTimestampPolicyWithLimitedDelay`` and
``LateDataDroppingDoFnRunner`` of Apache Beam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.engine_rules import Lateness
from conformance.policies.policy import MIN, Policy, at_least

LEAST = -9_223_372_036_854_775
"""``BoundedWindow.TIMESTAMP_MIN_VALUE``, in milliseconds: the lowest instant, and the watermark before the first."""


@dataclass(frozen=True)
class LimitedDelay(Policy):
    """A partition that has been read completely, and whose maximum event time is older than the delay, follows the clock.

    Queried at a boundary (with a backlog) and at an idle poll (without one, checked just now). The policy may return less than
    before; the runner then keeps the watermark it has.
    """

    max_delay: int
    """Milliseconds."""
    watermark: int = MIN
    """``MIN`` in place of ``LEAST``, which means the same."""
    highest: int | None = None

    def __post_init__(self) -> None:
        at_least("limited-delay", "maxDelay", self.max_delay, 0)

    def event(self, timestamp: int, now: int) -> LimitedDelay:  # noqa: ARG002
        # Before the first record the maximum is the least instant plus the delay; a record below that has no effect.
        return replace(self, highest=max(self._highest, timestamp))

    def poll(self, now: int) -> LimitedDelay:
        return self._never_decreasing(self.at(now, backlog=0, checked=now))

    def boundary(self, now: int) -> LimitedDelay:
        return self._never_decreasing(self.at(now, backlog=1, checked=now))

    def at(self, now: int, backlog: int, checked: int) -> int:
        """The watermark that the policy returns.

        Args:
            now: milliseconds.
            backlog: the number of records left in the partition.
            checked: when the backlog was checked, in milliseconds.
        """
        if self._highest > now:
            return now - self.max_delay
        # "Above 0" means that some record has been read: KafkaIO has no other sign of it.
        if backlog == 0 and checked - self.max_delay > self._highest > 0:
            return checked - self.max_delay
        return self._highest - self.max_delay

    @property
    def _highest(self) -> int:
        return LEAST + self.max_delay if self.highest is None else self.highest

    def _never_decreasing(self, watermark: int) -> LimitedDelay:
        return replace(self, watermark=max(self.watermark, MIN if watermark <= LEAST else watermark))


@dataclass(frozen=True)
class BeamLateness(Lateness):
    """Drops an event below the watermark or, with windows, one whose window's last millisecond is below it.

    Allowed lateness is 0, Beam's default.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return at < downstream if window is None else window - 1 < downstream
