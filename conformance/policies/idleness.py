"""Flink ``withIdleness``: an input without events is marked idle, and left out of the minimum until it has one again.

Milliseconds. Looked at only when a watermark is to be emitted: the countdown starts at the first emission that saw no event since
the one before, and the input is idle at the first emission after strictly more than the timeout. While it is idle nothing is
emitted for it; any event makes it active at once. Source: ``WatermarksWithIdleness`` of Apache Flink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.policy import Policy, at_least


@dataclass(frozen=True)
class IdlenessTimer:
    timeout: int
    """Milliseconds."""
    active: bool = False
    """Whether there was an event since the last check."""
    since: int | None = None
    """When the countdown started; None while it does not run."""

    def activity(self) -> IdlenessTimer:
        return replace(self, active=True)

    def check(self, now: int) -> tuple[IdlenessTimer, bool]:
        """
        Returns:
            The timer after the check, and whether the input is idle.
        """
        if self.active:
            return replace(self, active=False, since=None), False
        if self.since is None:
            return replace(self, since=now), False
        return self, now - self.since > self.timeout


@dataclass(frozen=True)
class WithIdleness(Policy):
    """Another policy, with a timeout."""

    policy: Policy
    timer: IdlenessTimer
    is_idle: bool = False

    @classmethod
    def of(cls, policy: Policy, timeout: int) -> WithIdleness:
        """
        Args:
            policy: computes the watermark.
            timeout: milliseconds, above 0.
        """
        at_least("withIdleness", "idleTimeout", timeout, 1)
        return cls(policy, IdlenessTimer(timeout))

    @property
    def watermark(self) -> int:
        return self.policy.watermark

    def idle(self, now: int) -> bool:  # noqa: ARG002
        return self.is_idle

    def event(self, timestamp: int, now: int) -> WithIdleness:
        return WithIdleness(self.policy.event(timestamp, now), self.timer.activity())

    def poll(self, now: int) -> WithIdleness:
        timer, idle = self.timer.check(now)
        return WithIdleness(self.policy if idle else self.policy.poll(now), timer, idle)

    def boundary(self, now: int) -> WithIdleness:
        return self.poll(now)
