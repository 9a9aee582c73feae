"""The policies by name: what each takes, and the rules of the engine it is at home in.

``rules(name, given)`` makes rules with parameters as a case writes them; ``comparable(name, delay)`` makes them with one
delay for all that a policy takes, so that one trace can be read under every policy side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, ClassVar, TypeAlias

from conformance.policies.bounded_out_of_orderness import BoundedOutOfOrderness
from conformance.policies.coalescing import Lowest, LowestOfActive, SparkGlobal
from conformance.policies.fixed_lag import FixedLag
from conformance.policies.idle_timeout import DEFAULT, IdleTimeout
from conformance.policies.idleness import WithIdleness
from conformance.policies.lateness import BeamLateness, BelowOwnWatermark, FlinkLateness, OnlyByWindow, SparkLateness
from conformance.policies.limited_delay import LimitedDelay
from conformance.policies.limiting_lag_and_delay import SAMPLES, LimitingLagAndDelay
from conformance.policies.limiting_lag_and_lull import LimitingLagAndLull
from conformance.policies.limiting_timestamp_and_wall_clock_lag import LimitingTimestampAndWallClockLag
from conformance.policies.max_minus_delay import MaxMinusDelay
from conformance.policies.parameter import Parameter
from conformance.policies.policy import Policy
from conformance.policies.quantile import Quantile
from conformance.policies.rules import Rules
from conformance.policies.stream_time import StreamTime
from conformance.policies.throttles import THROTTLES
from conformance.policies.throttling import SuppressDuplicates, Throttle
from conformance.policies.trace import NANOS_PER_MILLI

Given: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """A policy that has a name."""

    meaning: str
    """In one sentence."""
    engine: str
    source: str
    """Where the rule stands."""
    parameters: Mapping[str, Parameter]
    make: Callable[[Given, Throttle], Rules]
    """From parameters that are complete. The name is set by ``rules``."""
    comparable: Callable[[int], Given]
    """From one delay in milliseconds: the parameters with which the policy waits about as long."""
    delay: str
    """The parameter that is its delay in milliseconds."""
    throttled: bool = False
    """Whether it takes a throttle."""


class UnknownPolicy(ValueError):
    """There is no policy of that name."""

    exit_code: ClassVar[int] = 2
    """Of a command that it ends."""

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, POLICIES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it must be one of {', '.join(POLICIES)}"
        super().__init__(f"unknown policy {name!r}: {hint}")
        self.name = name


def rules(name: str, given: Given, throttle: tuple[str, Given] | None = None) -> Rules:
    """The rules that a name and parameters mean.

    Args:
        name: ``limiting-lag-and-lull``: a key of ``POLICIES``.
        given: parameter → value; those left out have their defaults.
        throttle: the name of a throttle and its parameters; every new watermark is emitted where none is given.

    Raises:
        UnknownPolicy: there is none of that name.
        NotAPolicy: a parameter has a value with which there is no such policy.
    """
    if name not in POLICIES:
        raise UnknownPolicy(name)
    known = POLICIES[name]
    defaults = {one: parameter.default for one, parameter in known.parameters.items() if parameter.default is not None}
    complete = {**defaults, **given}
    made: Throttle = SuppressDuplicates()
    if throttle is not None:
        made = THROTTLES[throttle[0]].make(throttle[1], complete.get("release", "jet-0.5"))
    shown = {one: complete[one] for one in known.parameters if one in complete}
    return replace(known.make(complete, made), name=name, parameters=shown)


def delay_of(made: Rules) -> int:
    """The delay of rules that ``rules`` or ``comparable`` has made, in milliseconds."""
    return int(made.parameters[POLICIES[made.name].delay])


def comparable(name: str, delay: int) -> Rules:
    """The rules of a policy that waits for late events about as long as others with the same delay.

    Args:
        name: a key of ``POLICIES``.
        delay: milliseconds; counted as at least 1 where a policy cannot do with 0.

    Raises:
        UnknownPolicy: there is none of that name.
    """
    if name not in POLICIES:
        raise UnknownPolicy(name)
    return rules(name, POLICIES[name].comparable(delay))


_RELEASE = Parameter(
    "the release of Hazelcast Jet whose rules hold", words=("jet-0.5", "jet-0.6"), default="jet-0.5", required=False
)
_IDLE_TIMEOUT = Parameter(
    f"0.6 only: after so many milliseconds without an event an input is left out; 0 = never ({DEFAULT} by default)",
    required=False,
)
_JET_PACKAGE = "com.hazelcast.jet.core"


def _jet(policy: Policy, given: Given, throttle: Throttle) -> Rules:
    if given["release"] == "jet-0.5":
        return Rules("", "Hazelcast Jet 0.5", policy, BelowOwnWatermark(), Lowest(), throttle)
    return Rules(
        "",
        "Hazelcast Jet 0.6",
        IdleTimeout(policy, given.get("idleTimeout", DEFAULT)),
        OnlyByWindow(),
        LowestOfActive("top"),
        throttle,
        one_source=True,
    )


def _guarded(given: Given) -> bool:
    return bool(given["release"] != "jet-0.5")


def _spark(given: Given, throttle: Throttle) -> Rules:
    policy = MaxMinusDelay(given["delay"])
    return Rules("", "Spark", policy, SparkLateness(), SparkGlobal(given["multipleWatermarkPolicy"]), throttle)


def _quantile(given: Given, throttle: Throttle) -> Rules:
    policy = Quantile(Decimal(str(given["quantile"])), given["delay"])
    return Rules("", "Spark (proposed)", policy, SparkLateness(), SparkGlobal(), throttle)


def _fixed_lag(given: Given, throttle: Throttle) -> Rules:
    return _jet(FixedLag(given["lag"], guarded=_guarded(given)), given, throttle)


def _lag_and_delay(given: Given, throttle: Throttle) -> Rules:
    policy = LimitingLagAndDelay.of(given["lag"], given["maxDelay"], given["samples"])
    return replace(_jet(policy, given, throttle), clock_unit="ns")


def _lag_and_lull(given: Given, throttle: Throttle) -> Rules:
    return _jet(LimitingLagAndLull(given["lag"], given["maxLull"]), given, throttle)


def _wall_clock(given: Given, throttle: Throttle) -> Rules:
    policy = LimitingTimestampAndWallClockLag(given["timestampLag"], given["wallClockLag"], guarded=_guarded(given))
    return _jet(policy, given, throttle)


def _flink(given: Given, throttle: Throttle) -> Rules:
    policy: Policy = BoundedOutOfOrderness(given["bound"])
    if given.get("idleTimeout"):
        policy = WithIdleness.of(policy, given["idleTimeout"])
    return Rules("", "Flink", policy, FlinkLateness(), LowestOfActive("stays"), throttle)


def _beam(given: Given, throttle: Throttle) -> Rules:
    return Rules("", "Beam KafkaIO", LimitedDelay(given["maxDelay"]), BeamLateness(), Lowest(), throttle)


def _kafka(given: Given, throttle: Throttle) -> Rules:
    policy = StreamTime(given["grace"])
    return Rules("", "Kafka Streams", policy, OnlyByWindow(), Lowest(), throttle, one_task=True)


POLICIES: Mapping[str, Known] = {
    "spark": Known(
        "The highest event time of each micro-batch minus the delay, the lowest or highest of several.",
        "Spark",
        "EventTimeWatermarkExec and WatermarkTracker of Apache Spark (SPARK-18124)",
        {
            "delay": Parameter("how far the watermark stays behind the highest event time, in milliseconds"),
            "multipleWatermarkPolicy": Parameter(
                "which of several watermarks counts", words=("min", "max"), default="min", required=False
            ),
        },
        _spark,
        lambda delay: {"delay": delay},
        "delay",
    ),
    "quantile": Known(
        "A quantile of the event times of each micro-batch, minus a delay: proposed for Spark, never built.",
        "Spark (proposed)",
        "SPARK-18124, proposed beside the maximum",
        {
            "quantile": Parameter("the share of a micro-batch's rows that is at or below its watermark", "share"),
            "delay": Parameter("how far the watermark stays behind that, in milliseconds", default=0, required=False),
        },
        _quantile,
        lambda delay: {"quantile": Decimal("0.9"), "delay": delay},
        "delay",
    ),
    "with-fixed-lag": Known(
        "The highest event time minus the lag, moved by every event.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.withFixedLag (0.5), limitingLag (0.6)",
        {
            "lag": Parameter("how far behind the highest event time, in the unit of event times"),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _fixed_lag,
        lambda delay: {"lag": delay},
        "lag",
        throttled=True,
    ),
    "limiting-lag-and-delay": Known(
        "As with a fixed lag; and every event time is reached after the delay at the latest.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingLagAndDelay (0.5)",
        {
            "lag": Parameter("how far behind the highest event time, in the unit of event times", "whole"),
            "maxDelay": Parameter("how long an event time can stay above the watermark, in nanoseconds", "positive"),
            "samples": Parameter(
                "into how many steps the delay is divided", "positive", default=SAMPLES, required=False
            ),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _lag_and_delay,
        lambda delay: {"lag": delay, "maxDelay": max(delay, 1) * NANOS_PER_MILLI},
        "lag",
        throttled=True,
    ),
    "limiting-lag-and-lull": Known(
        "As with a fixed lag; and after a lull the watermark advances in step with local time.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingLagAndLull (0.5)",
        {
            "lag": Parameter("how far behind the highest event time, in milliseconds"),
            "maxLull": Parameter("how long a lull may be, in milliseconds"),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _lag_and_lull,
        lambda delay: {"lag": delay, "maxLull": delay},
        "lag",
        throttled=True,
    ),
    "limiting-timestamp-and-wall-clock-lag": Known(
        "Behind the highest event time by one lag at most, and behind the wall clock by another.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingTimestampAndWallClockLag (0.5)",
        {
            "timestampLag": Parameter("how far behind the highest event time, in milliseconds"),
            "wallClockLag": Parameter("how far behind the wall clock, in milliseconds"),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _wall_clock,
        lambda delay: {"timestampLag": delay, "wallClockLag": delay},
        "timestampLag",
        throttled=True,
    ),
    "bounded-out-of-orderness": Known(
        "The highest event time minus the bound minus 1 ms, emitted periodically; idle inputs are left out.",
        "Flink",
        "BoundedOutOfOrdernessWatermarks and WatermarksWithIdleness of Apache Flink",
        {
            "bound": Parameter("how far out of order events may be, in milliseconds"),
            "idleTimeout": Parameter(
                "after how many milliseconds without an event an input is idle; never where absent",
                "positive",
                required=False,
            ),
        },
        _flink,
        lambda delay: {"bound": delay, "idleTimeout": max(delay, 1)},
        "bound",
    ),
    "limited-delay": Known(
        "The highest event time, at most what the clock shows, minus the delay; follows the clock where all is read.",
        "Beam KafkaIO",
        "CustomTimestampPolicyWithLimitedDelay of Apache Beam",
        {"maxDelay": Parameter("how far behind, in milliseconds")},
        _beam,
        lambda delay: {"maxDelay": delay},
        "maxDelay",
    ),
    "stream-time": Known(
        "Stream time, the highest event time of a task, minus the grace; every record moves it before it is judged.",
        "Kafka Streams",
        "KStreamWindowAggregate of Apache Kafka, KIP-633",
        {"grace": Parameter("how long a window stays open behind stream time, in milliseconds")},
        _kafka,
        lambda delay: {"grace": delay},
        "grace",
    ),
}
"""Name → policy, in the order in which they are shown."""
