"""Hazelcast Jet 0.5 and 0.6: four policies that update the watermark with every event, and the idle timeout of 0.6.

Sources: ``WatermarkPolicies``, ``TimestampHistory`` and ``InsertWatermarksP`` of Hazelcast Jet 0.5; ``WatermarkSourceUtil`` of 0.6
(``EventTimeMapper`` since 3.0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conformance.policies.engine_rules import Lateness
from conformance.policies.policy import MIN, InvalidParameter, Policy, at_least, wrapped

DEFAULT_IDLE_TIMEOUT = 60_000
"""Milliseconds."""
DEFAULT_SAMPLES = 16
MAX_SAMPLES = 10_000
"""Far more than Jet's 16; all of them are kept in memory."""


@dataclass(frozen=True)
class FixedLag(Policy):
    """``withFixedLag`` (0.5), ``limitingLag`` (0.6): the maximum event time minus a lag.

    Assumes no unit and reads no clock. 0.6 ignores an event so early that subtracting the lag would overflow 64 bits; in 0.5 the
    subtraction overflows, and such an event yields a watermark in the far future.
    """

    lag: int
    guarded: bool = False
    """Whether events below ``MIN`` plus the lag are ignored, as since 0.6."""
    watermark: int = MIN

    def __post_init__(self) -> None:
        at_least("with-fixed-lag", "lag", self.lag, 0)

    def event(self, timestamp: int, now: int) -> FixedLag:  # noqa: ARG002
        if self.guarded and timestamp < MIN + self.lag:
            return self
        return replace(self, watermark=max(self.watermark, wrapped(timestamp - self.lag)))


@dataclass(frozen=True)
class TimestampHistory:
    """``TimestampHistory``: what the maximum event time was ``max_delay`` ago, as a ring of samples.

    The ring has one sample more than there are intervals, so that the oldest one is at least ``max_delay`` old. The clock is in
    nanoseconds; samples are in the unit of the event times.
    """

    max_delay: int
    """Nanoseconds."""
    samples: int
    ring: tuple[int, ...] = ()
    tail: int = 0
    """Index of the newest sample."""
    advance_at: int = MIN
    """When the next sample starts, in nanoseconds."""

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise InvalidParameter("TimestampHistory", "samples", self.samples, f"from 1 to {MAX_SAMPLES}")
        if self.interval <= 0:
            raise InvalidParameter(
                "TimestampHistory", "maxDelay", self.max_delay, f"at least its {self.samples} samples"
            )
        if not self.ring:
            object.__setattr__(self, "ring", (MIN,) * (self.samples + 1))

    @property
    def interval(self) -> int:
        """Nanoseconds between two samples."""
        return self.max_delay // self.samples

    def sample(self, now: int, value: int) -> tuple[TimestampHistory, int]:
        """The history with one more value, and the oldest value it holds."""
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


@dataclass(frozen=True)
class LimitingLagAndDelay(Policy):
    """``limitingLagAndDelay``: a fixed lag; in addition, the watermark reaches every event time within a maximum delay.

    Event times may have any unit: they are remembered, never advanced. Clock and delay are in nanoseconds
    (``System.nanoTime``; Jet takes the delay in milliseconds). The delay is kept in 16 samples, so it is exact to one
    sixteenth.
    """

    lag: int
    """In the unit of event times; the only lag that Jet allows to be negative."""
    history: TimestampHistory
    watermark: int = MIN
    highest: int = MIN

    @classmethod
    def of(cls, lag: int, max_delay: int, samples: int = DEFAULT_SAMPLES) -> LimitingLagAndDelay:
        """
        Args:
            lag: in the unit of event times.
            max_delay: nanoseconds.
            samples: how many samples the delay is divided into.
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


@dataclass(frozen=True)
class LimitingLagAndLull(Policy):
    """``limitingLagAndLull``: a fixed lag; after a lull without events the watermark advances with the clock.

    Milliseconds, also for event times, because the clock advances them. The clock is monotonic (``System.nanoTime``, truncated
    to milliseconds): it sets the pace, never the value. An input without events has no watermark, however long it waits. In both
    releases, subtracting the lag and adding the lull may overflow 64 bits.
    """

    lag: int
    """Milliseconds."""
    max_lull: int
    """Milliseconds."""
    watermark: int = MIN
    over_at: int | None = None
    """When the lull ends or, once it has ended, the time up to which the watermark has advanced; None before the first call."""

    def __post_init__(self) -> None:
        at_least("limiting-lag-and-lull", "lag", self.lag, 0)
        at_least("limiting-lag-and-lull", "maxLull", self.max_lull, 0)

    def event(self, timestamp: int, now: int) -> LimitingLagAndLull:
        """The part of a lull that has passed since the last poll is not made up for."""
        watermark = max(self.watermark, wrapped(timestamp - self.lag))
        return replace(self, watermark=watermark, over_at=now + self.max_lull)

    def poll(self, now: int) -> LimitingLagAndLull:
        over_at = now + self.max_lull if self.over_at is None else self.over_at
        past = max(0, now - over_at)
        watermark = wrapped(self.watermark + past) if self.watermark > MIN else MIN
        return replace(self, watermark=watermark, over_at=over_at + past)


@dataclass(frozen=True)
class LimitingTimestampAndWallClockLag(Policy):
    """``limitingTimestampAndWallClockLag``: at most one lag behind the wall clock, and another behind the maximum event time.

    Milliseconds; the clock is the wall clock (``System.currentTimeMillis``), and event times must be of the same kind. Advances
    without any event. Since 0.6 an event so early that subtracting its lag would overflow 64 bits is ignored.
    """

    timestamp_lag: int
    """Milliseconds behind the maximum event time."""
    wall_clock_lag: int
    """Milliseconds behind the wall clock."""
    guarded: bool = False
    """Whether events below ``MIN`` plus their lag are ignored, as since 0.6."""
    watermark: int = MIN

    def __post_init__(self) -> None:
        at_least("limiting-timestamp-and-wall-clock-lag", "timestampLag", self.timestamp_lag, 0)
        at_least("limiting-timestamp-and-wall-clock-lag", "wallClockLag", self.wall_clock_lag, 0)

    def event(self, timestamp: int, now: int) -> LimitingTimestampAndWallClockLag:
        polled = self.poll(now)
        if self.guarded and timestamp < MIN + self.timestamp_lag:
            return polled
        return replace(polled, watermark=max(polled.watermark, wrapped(timestamp - self.timestamp_lag)))

    def poll(self, now: int) -> LimitingTimestampAndWallClockLag:
        return replace(self, watermark=max(self.watermark, now - self.wall_clock_lag))


@dataclass(frozen=True)
class IdleTimeout(Policy):
    """The idle timeout of 0.6: an input without events for ``timeout`` is excluded until it has one again.

    The countdown starts when the input is opened and restarts with each event; the input is idle as soon as the timeout has
    passed. An idle input's watermark is not read.
    """

    policy: Policy
    timeout: int
    """In the unit of the clock; 0: never idle."""
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


@dataclass(frozen=True)
class BelowOwnWatermark(Lateness):
    """Jet 0.5 (``InsertWatermarksP``): drops an event below its own input's watermark, with or without windows."""

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return at < own
