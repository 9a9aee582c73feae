"""The rules of each engine: how its policies compute the watermark of an input, and what is late; and its policies by name.

All times are in milliseconds, except those of Hazelcast Jet, where each policy says its unit. The clock of Beam is the wall clock.
Sources: ``EventTimeWatermarkExec`` and ``WatermarkTracker`` of Apache Spark (SPARK-18124); ``WatermarkPolicies``,
``TimestampHistory`` and ``InsertWatermarksP`` of Hazelcast Jet 0.5, ``WatermarkSourceUtil`` of 0.6 (``EventTimeMapper`` since 3.0);
``BoundedOutOfOrdernessWatermarks``, ``WatermarksWithIdleness`` and ``WindowOperator`` of Apache Flink;
``CustomTimestampPolicyWithLimitedDelay`` and ``LateDataDroppingDoFnRunner`` of Apache Beam; ``KStreamWindowAggregate`` of Apache
Kafka, and KIP-633 for the grace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from conformance.core.case import Frozen
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.policies import rules
from conformance.policies.rules import EngineRules, LateByWindow, Lateness, Lowest, WatermarkPolicy, wrapped
from conformance.policies.trace import MIN, NANOS_PER_MILLI, ClockUnit, in_unit

# Spark


@dataclass(frozen=True)
class Quantile(WatermarkPolicy):
    """A quantile of the event times of a micro-batch minus a delay, updated when the micro-batch ends.

    A share of 1 is the maximum: one ``withWatermark`` of Spark. Smaller shares were proposed along with it (SPARK-18124) and never
    implemented; with one a few rows from the far future do not move the watermark. The quantile is the nearest rank: the lowest event
    time such that at least the share ``quantile`` of the rows is at or below it. The watermark never decreases, and a micro-batch
    without rows does not move it.
    """

    quantile: Decimal
    """Greater than 0, at most 1."""
    delay: int = 0
    watermark: int = MIN
    """``MIN`` until a micro-batch with rows has ended; combined with other inputs it counts as the epoch."""
    seen: tuple[int, ...] = ()
    """Event times of the current micro-batch, in order of arrival."""

    def event(self, timestamp: int, now: int) -> Quantile:  # noqa: ARG002
        return replace(self, seen=(*self.seen, timestamp))

    def boundary(self, now: int) -> Quantile:  # noqa: ARG002
        if not self.seen:
            return self
        rank = int((self.quantile * len(self.seen)).to_integral_value(ROUND_CEILING))
        return replace(self, watermark=max(self.watermark, sorted(self.seen)[rank - 1] - self.delay), seen=())

    poll = boundary


@dataclass(frozen=True)
class SparkCoalescing(rules.Coalescing):
    """``WatermarkTracker``: the lowest or highest of a query's watermarks, by ``multipleWatermarkPolicy``.

    The watermark starts at the epoch and never decreases, so an input without a watermark counts as the epoch.
    """

    policy: Literal["min", "max"] = "min"

    @property
    def initial(self) -> int:
        return 0

    def combined(self, inputs: Sequence[rules.InputWatermark], before: int) -> int:
        choose = min if self.policy == "min" else max
        return max(before, choose(input.watermark for input in inputs))


@dataclass(frozen=True)
class SparkLateness(Lateness):
    """Drops an event if the end of its window, or its own time without windows, is at or below the watermark.

    The watermark only moves at the end of a micro-batch, so rows of one micro-batch never make each other late.
    Source: ``WatermarkSupport``.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window) <= downstream


# Hazelcast Jet


DEFAULT_IDLE_TIMEOUT = 60_000
"""Milliseconds."""
MAX_SAMPLES = 10_000
"""Far more than Jet's 16; all of them are kept in memory."""


@dataclass(frozen=True)
class FixedLag(WatermarkPolicy):
    """``withFixedLag`` (0.5), ``limitingLag`` (0.6): the maximum event time minus a lag.

    Assumes no unit and reads no clock. 0.6 ignores an event so early that subtracting the lag would overflow 64 bits; in 0.5 the
    subtraction overflows, and such an event yields a watermark in the far future.
    """

    lag: int
    guarded: bool = False
    """Whether events below ``MIN`` plus the lag are ignored, as since 0.6."""
    watermark: int = MIN

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
            raise rules.InvalidParameter("TimestampHistory", "samples", self.samples, f"from 1 to {MAX_SAMPLES}")
        if self.interval <= 0:
            allowed = f"at least its {self.samples} samples"
            raise rules.InvalidParameter("TimestampHistory", "maxDelay", self.max_delay, allowed)
        if not self.ring:
            object.__setattr__(self, "ring", (MIN,) * (self.samples + 1))

    @property
    def interval(self) -> int:
        """Nanoseconds between two samples."""
        return self.max_delay // self.samples

    def sample(self, now: int, value: int) -> tuple[TimestampHistory, int]:
        """The history with one more value, and the oldest value it holds."""
        ring, tail, advance_at, passed = list(self.ring), self.tail, self.advance_at, 0
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
class LimitingLagAndDelay(WatermarkPolicy):
    """``limitingLagAndDelay``: a fixed lag; in addition, the watermark reaches every event time within a maximum delay.

    Event times may have any unit: they are remembered, never advanced. Clock and delay are in nanoseconds
    (``System.nanoTime``; Jet takes the delay in milliseconds). The delay is kept in 16 samples, so it is exact to one
    sixteenth.
    """

    lag: int
    """The only lag that Jet allows to be negative."""
    history: TimestampHistory
    watermark: int = MIN
    highest: int = MIN

    def event(self, timestamp: int, now: int) -> LimitingLagAndDelay:
        after = replace(self, highest=max(self.highest, timestamp))
        return after._advanced(wrapped(timestamp - self.lag), now)

    def poll(self, now: int) -> LimitingLagAndDelay:
        return self._advanced(self.watermark, now)

    def _advanced(self, proposed: int, now: int) -> LimitingLagAndDelay:
        history, delayed = self.history.sample(now, self.highest)
        return replace(self, history=history, watermark=max(self.watermark, proposed, delayed))


@dataclass(frozen=True)
class LimitingLagAndLull(WatermarkPolicy):
    """``limitingLagAndLull``: a fixed lag; after a lull without events the watermark advances with the clock.

    Milliseconds, also for event times, because the clock advances them. The clock is monotonic (``System.nanoTime``, truncated
    to milliseconds): it sets the pace, never the value. An input without events has no watermark, however long it waits. In both
    releases, subtracting the lag and adding the lull may overflow 64 bits.
    """

    lag: int
    max_lull: int
    watermark: int = MIN
    over_at: int | None = None
    """When the lull ends or, once it has ended, the time up to which the watermark has advanced; None before the first call."""

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
class LimitingTimestampAndWallClockLag(WatermarkPolicy):
    """``limitingTimestampAndWallClockLag``: at most one lag behind the wall clock, and another behind the maximum event time.

    Milliseconds; the clock is the wall clock (``System.currentTimeMillis``), and event times must be of the same kind. Advances
    without any event. Since 0.6 an event so early that subtracting its lag would overflow 64 bits is ignored.
    """

    timestamp_lag: int
    """Behind the maximum event time."""
    wall_clock_lag: int
    guarded: bool = False
    """Whether events below ``MIN`` plus their lag are ignored, as since 0.6."""
    watermark: int = MIN

    def event(self, timestamp: int, now: int) -> LimitingTimestampAndWallClockLag:
        polled = self.poll(now)
        if self.guarded and timestamp < MIN + self.timestamp_lag:
            return polled
        return replace(polled, watermark=max(polled.watermark, wrapped(timestamp - self.timestamp_lag)))

    def poll(self, now: int) -> LimitingTimestampAndWallClockLag:
        return replace(self, watermark=max(self.watermark, now - self.wall_clock_lag))


@dataclass(frozen=True)
class IdleTimeout(WatermarkPolicy):
    """The idle timeout of 0.6: an input without events for ``timeout`` is excluded until it has one again.

    The countdown starts when the input is opened and restarts with each event; the input is idle as soon as the timeout has
    passed. An idle input's watermark is not read.
    """

    policy: WatermarkPolicy
    timeout: int
    """An input is never idle if this is 0. In the unit of the clock."""
    idle_from: int = MIN

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


# Flink


@dataclass(frozen=True)
class BoundedOutOfOrderness(WatermarkPolicy):
    """``forBoundedOutOfOrderness``.

    An event alone does not move the watermark: Flink emits it at intervals (200 ms by default), here at a boundary and at an
    idle poll.
    """

    bound: int
    watermark: int = MIN
    highest: int | None = None
    """Maximum event time; None before the first event, when ``MIN`` is emitted, to which all earlier events lead too."""

    def event(self, timestamp: int, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        lowest = MIN + self.bound + 1
        return replace(self, highest=max(lowest if self.highest is None else self.highest, timestamp))

    def boundary(self, now: int) -> BoundedOutOfOrderness:  # noqa: ARG002
        return self if self.highest is None else replace(self, watermark=self.highest - self.bound - 1)

    poll = boundary


@dataclass(frozen=True)
class IdlenessTimer:
    """Checked only when a watermark is to be emitted.

    The countdown starts at the first check without an event since the previous one. The input is idle at the first check after
    strictly more than the timeout.
    """

    timeout: int
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
class WithIdleness(WatermarkPolicy):
    """``withIdleness``: another policy with a timeout.

    An idle input emits nothing and is excluded from the minimum. An event alone does not make it active: the next emission does
    (``WatermarkOutput.markIdle``: "as soon as the next watermark is emitted"), because ``onEvent`` tells the output nothing.
    """

    policy: WatermarkPolicy
    timer: IdlenessTimer
    is_idle: bool = False
    """What the output says of the input."""
    is_marked: bool = False
    """Whether the output has been marked idle since the last event: it is marked once, even if its clock went back between."""

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
            return replace(self, timer=timer, is_idle=self.is_idle or not self.is_marked, is_marked=True)
        return WithIdleness(self.policy.poll(now), timer, is_idle=False, is_marked=self.is_marked)

    boundary = poll


@dataclass(frozen=True)
class FlinkLateness(Lateness):
    """Drops an event at or below the watermark or, with windows, one whose window's last millisecond is.

    A window fires once the watermark has reached its last millisecond. Allowed lateness is 0, Flink's default.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window - 1) <= downstream

    def complete(self, window: int, downstream: int) -> bool:
        return window - 1 <= downstream


# Beam's KafkaIO with limited delay


LEAST = -9_223_372_036_854_775
"""``BoundedWindow.TIMESTAMP_MIN_VALUE``, in milliseconds: the lowest instant, and the watermark before the first."""


@dataclass(frozen=True)
class LimitedDelay(WatermarkPolicy):
    """A partition that has been read completely, and whose maximum event time is older than the delay, follows the clock.

    Queried at a boundary (with a backlog) and at an idle poll (without one, checked just now). The policy may return less than
    before; the runner then keeps the watermark it has.
    """

    max_delay: int
    watermark: int = MIN
    """``MIN`` in place of ``LEAST``, which means the same."""
    highest: int | None = None

    def event(self, timestamp: int, now: int) -> LimitedDelay:  # noqa: ARG002
        # Before the first record the maximum is the least instant plus the delay; a record below that has no effect.
        return replace(self, highest=max(self._highest, timestamp))

    def poll(self, now: int) -> LimitedDelay:
        return self._never_decreasing(self.at(now, backlog=0, checked=now))

    def boundary(self, now: int) -> LimitedDelay:
        return self._never_decreasing(self.at(now, backlog=1, checked=now))

    def at(self, now: int, backlog: int, checked: int) -> int:
        """The watermark that the policy returns, with so many records in the backlog, checked at a time."""
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


# Kafka Streams


@dataclass(frozen=True)
class StreamTime(WatermarkPolicy):
    """Stream time, the maximum event time of a task: moves with every record, before that record is checked for lateness.

    There is no watermark and no clock; stream time minus the grace takes its place, because a window is closed once its end is at or
    below that.
    """

    grace: int
    stream_time: int = -1
    """``NO_TIMESTAMP`` before the first record."""

    @property
    def watermark(self) -> int:
        """Stream time minus the grace; ``MIN`` before the first record."""
        return MIN if self.stream_time < 0 else self.stream_time - self.grace

    def event(self, timestamp: int, now: int) -> StreamTime:  # noqa: ARG002
        return replace(self, stream_time=max(self.stream_time, timestamp))


# Every policy of ``policies.yaml``


Parameters: TypeAlias = Mapping[str, Any]


class PolicyDefinition(Frozen):
    """A policy that a case can name."""

    meaning: str
    engine: str
    source: str
    parameters: Mapping[str, rules.PolicyParameter]
    comparable: Callable[[int], Parameters]
    """The parameters with which the policy waits about as long as a delay in milliseconds."""
    delay: str
    """The name of the delay parameter, in milliseconds."""
    throttled: bool = False


def _definition(name: str) -> PolicyDefinition:
    if name in POLICIES:
        return POLICIES[name]
    near = get_close_matches(name, POLICIES, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(POLICIES)}"
    raise WrongUsage(f"unknown policy {name!r}: {hint}")


def rules_for(name: str, given: Parameters, throttle: tuple[str, Parameters] | None = None) -> EngineRules:
    """The rules of a named policy.

    Args:
        name: a key of ``POLICIES``.
        given: parameter → value; missing parameters get their defaults.
        throttle: the name and parameters of a throttle; without one, every new watermark is emitted.

    Raises:
        WrongUsage: no policy has that name.
        InvalidParameter: a parameter has a value that the policy does not accept.
    """
    parameters = _definition(name).parameters
    defaults = {key: parameter.default for key, parameter in parameters.items() if parameter.default is not None}
    complete = {**defaults, **given}
    for key, value in given.items():
        parameters[key].check(name, key, value)
    throttle_name, throttle_given = throttle or ("suppress-duplicates", {})
    definition = rules.THROTTLES[throttle_name]
    for key, value in throttle_given.items():
        definition.parameters[key].check(throttle_name, key, value)
    made = definition.make(throttle_given, complete.get("release", "jet-0.5"))
    shown = {key: complete[key] for key in parameters if key in complete}
    return replace(rules_of(name, complete, made), parameters=shown)


def delay_of(made: EngineRules) -> int:
    """The delay parameter of rules from ``rules_for`` or ``comparable``."""
    return int(made.parameters[POLICIES[made.name].delay])


def comparable(name: str, delay: int) -> EngineRules:
    """The rules of a policy with parameters that make it wait about as long as other policies with the same delay, in milliseconds.

    Raises WrongUsage: no policy has that name.
    """
    return rules_for(name, _definition(name).comparable(delay))


def rules_of(name: str, given: Parameters, throttle: rules.Throttle) -> EngineRules:
    def jet(policy: WatermarkPolicy, clock_unit: ClockUnit = "ms") -> EngineRules:
        if not since_0_6:
            engine = "Hazelcast Jet 0.5"
            return EngineRules(name, engine, policy, BelowOwnWatermark(), Lowest(), throttle, clock_unit)
        timeout = in_unit(given.get("idleTimeout", DEFAULT_IDLE_TIMEOUT), "ms", clock_unit)
        waiting, late, lowest = IdleTimeout(policy, timeout), LateByWindow(), rules.LowestOfActive("highest")
        return EngineRules(name, "Hazelcast Jet 0.6", waiting, late, lowest, throttle, clock_unit, one_source=True)

    since_0_6 = given.get("release") == "jet-0.6"
    policy: WatermarkPolicy
    match name:
        case "spark":
            policy, coalescing = Quantile(Decimal(1), given["delay"]), SparkCoalescing(given["multipleWatermarkPolicy"])
            return EngineRules(name, "Spark", policy, SparkLateness(), coalescing, throttle)
        case "quantile":
            policy = Quantile(Decimal(str(given["quantile"])), given["delay"])
            return EngineRules(name, "Spark (proposed)", policy, SparkLateness(), SparkCoalescing(), throttle)
        case "with-fixed-lag":
            return jet(FixedLag(given["lag"], guarded=since_0_6))
        case "limiting-lag-and-delay":
            return jet(LimitingLagAndDelay(given["lag"], TimestampHistory(given["maxDelay"], given["samples"])), "ns")
        case "limiting-lag-and-lull":
            return jet(LimitingLagAndLull(given["lag"], given["maxLull"]))
        case "limiting-timestamp-and-wall-clock-lag":
            lags = given["timestampLag"], given["wallClockLag"]
            return jet(LimitingTimestampAndWallClockLag(*lags, guarded=since_0_6))
        case "bounded-out-of-orderness":
            policy = BoundedOutOfOrderness(given["bound"])
            if "idleTimeout" in given:
                policy = WithIdleness(policy, IdlenessTimer(given["idleTimeout"]))
            return EngineRules(name, "Flink", policy, FlinkLateness(), rules.LowestOfActive("unchanged"), throttle)
        case "limited-delay":
            policy = LimitedDelay(given["maxDelay"])
            return EngineRules(name, "Beam KafkaIO", policy, BeamLateness(), Lowest(), throttle)
        case _:
            policy = StreamTime(given["grace"])
            return EngineRules(name, "Kafka Streams", policy, LateByWindow(), Lowest(), throttle, one_task=True)


_COMPARABLE: Mapping[str, Callable[[int], Parameters]] = {
    "spark": lambda delay: {"delay": delay},
    "quantile": lambda delay: {"quantile": Decimal("0.9"), "delay": delay},
    "with-fixed-lag": lambda delay: {"lag": delay},
    "limiting-lag-and-delay": lambda delay: {"lag": delay, "maxDelay": max(delay, 1) * NANOS_PER_MILLI},
    "limiting-lag-and-lull": lambda delay: {"lag": delay, "maxLull": delay},
    "limiting-timestamp-and-wall-clock-lag": lambda delay: {"timestampLag": delay, "wallClockLag": delay},
    "bounded-out-of-orderness": lambda delay: {"bound": delay, "idleTimeout": max(delay, 1)},
    "limited-delay": lambda delay: {"maxDelay": delay},
    "stream-time": lambda delay: {"grace": delay},
}


POLICIES: Mapping[str, PolicyDefinition] = {
    name: PolicyDefinition(**entry, comparable=_COMPARABLE[name])
    for name, entry in read_data("conformance.policies", "policies.yaml").items()
}
"""Name → policy, in display order."""
