"""Flink: the maximum event time minus a bound minus 1 ms, emitted periodically, and idle inputs.

All times are in milliseconds. Source: ``BoundedOutOfOrdernessWatermarks``, ``WatermarksWithIdleness`` and ``WindowOperator`` of
Apache Flink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.engine_rules import Lateness
from conformance.policies.policy import MIN, Policy, at_least


@dataclass(frozen=True)
class BoundedOutOfOrderness(Policy):
    """``forBoundedOutOfOrderness``.

    An event alone does not move the watermark: Flink emits it at intervals (200 ms by default), here at a boundary and at an
    idle poll.
    """

    bound: int
    """Milliseconds."""
    watermark: int = MIN
    """The last emitted watermark."""
    highest: int | None = None
    """Maximum event time; None before the first event, when ``MIN`` is emitted, to which all earlier events lead too."""

    def __post_init__(self) -> None:
        at_least("bounded-out-of-orderness", "bound", self.bound, 0)

    def event(self, timestamp: int, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        lowest = MIN + self.bound + 1
        return replace(self, highest=max(lowest if self.highest is None else self.highest, timestamp))

    def poll(self, now: int) -> BoundedOutOfOrderness:
        return self.boundary(now)

    def boundary(self, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        return self if self.highest is None else replace(self, watermark=self.highest - self.bound - 1)


@dataclass(frozen=True)
class IdlenessTimer:
    """Checked only when a watermark is to be emitted.

    The countdown starts at the first check without an event since the previous one. The input is idle at the first check after
    strictly more than the timeout.
    """

    timeout: int
    """Milliseconds."""
    active: bool = False
    """Whether there was an event since the last check."""
    since: int | None = None
    """When the countdown started; None if it is not running."""

    def activity(self) -> IdlenessTimer:
        return replace(self, active=True)

    def check(self, now: int) -> tuple[IdlenessTimer, bool]:
        """The timer after the check, and whether the input is idle."""
        if self.active:
            return replace(self, active=False, since=None), False
        if self.since is None:
            return replace(self, since=now), False
        return self, now - self.since > self.timeout


@dataclass(frozen=True)
class WithIdleness(Policy):
    """``withIdleness``: another policy with a timeout.

    An idle input emits nothing and is excluded from the minimum. An event alone does not make it active: the next emission does
    (``WatermarkOutput.markIdle``: "as soon as the next watermark is emitted"), because ``onEvent`` tells the output nothing.
    """

    policy: Policy
    timer: IdlenessTimer
    is_idle: bool = False
    """As the output has it."""
    told: bool = False
    """Whether the output has been marked idle since the last event: it is marked once, even if its clock went back between."""

    @classmethod
    def of(cls, policy: Policy, timeout: int) -> WithIdleness:
        """``timeout``: milliseconds, at least 1."""
        at_least("withIdleness", "idleTimeout", timeout, 1)
        return cls(policy, IdlenessTimer(timeout))

    @property
    def watermark(self) -> int:
        return self.policy.watermark

    def idle(self, now: int) -> bool:  # noqa: ARG002
        return self.is_idle

    def event(self, timestamp: int, now: int) -> WithIdleness:
        return WithIdleness(self.policy.event(timestamp, now), self.timer.activity(), self.is_idle)

    def poll(self, now: int) -> WithIdleness:
        timer, idle = self.timer.check(now)
        if idle:
            return replace(self, timer=timer, is_idle=self.is_idle or not self.told, told=True)
        return WithIdleness(self.policy.poll(now), timer, is_idle=False, told=self.told)

    def boundary(self, now: int) -> WithIdleness:
        return self.poll(now)


@dataclass(frozen=True)
class FlinkLateness(Lateness):
    """Drops an event at or below the watermark or, with windows, one whose window's last millisecond is.

    A window fires once the watermark has reached its last millisecond. Allowed lateness is 0, Flink's default.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window - 1) <= downstream

    def complete(self, window: int, downstream: int) -> bool:
        return window - 1 <= downstream
