"""Hazelcast Jet ``TimestampHistory``: what the highest event time was a while ago, kept as a few samples.

The clock is in nanoseconds, the samples are in whatever unit event times have. Source: ``TimestampHistory`` of Hazelcast Jet 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.int64 import MIN
from conformance.policies.policy import NotAPolicy

MOST_SAMPLES = 10_000
"""Far more than Jet's 16; all of them are kept."""


@dataclass(frozen=True)
class TimestampHistory:
    """A ring of one sample more than there are intervals, so that the oldest is at least ``max_delay`` old."""

    max_delay: int
    """Nanoseconds."""
    samples: int
    ring: tuple[int, ...] = ()
    tail: int = 0
    """Where the newest sample is."""
    advance_at: int = MIN
    """When the newest sample gets a successor, in nanoseconds."""

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise NotAPolicy("TimestampHistory", "samples", self.samples, f"from 1 to {MOST_SAMPLES}")
        if self.interval <= 0:
            raise NotAPolicy("TimestampHistory", "maxDelay", self.max_delay, f"at least its {self.samples} samples")
        if not self.ring:
            object.__setattr__(self, "ring", (MIN,) * (self.samples + 1))

    @property
    def interval(self) -> int:
        """Nanoseconds between two samples."""
        return self.max_delay // self.samples

    def sample(self, now: int, value: int) -> tuple[TimestampHistory, int]:
        """Enter the value as of now.

        Returns:
            The history with it, and the oldest value it holds.
        """
        ring, tail, advance_at = list(self.ring), self.tail, self.advance_at
        passed = 0
        while advance_at <= now and passed < len(ring):
            following = (tail + 1) % len(ring)
            ring[following] = ring[tail]
            tail = following
            advance_at += self.interval
            passed += 1
        if passed == len(ring):
            # Every sample is out of date: intervals are counted from now on, not from the past.
            advance_at = now + self.interval
        ring[tail] = value
        history = replace(self, ring=tuple(ring), tail=tail, advance_at=advance_at)
        return history, ring[(tail + 1) % len(ring)]
