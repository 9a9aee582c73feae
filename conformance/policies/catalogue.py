"""The policies by name, with their parameters and the rules of their engine.

``rules_for(name, given)`` builds rules from the parameters of a case; ``comparable(name, delay)`` builds them from a single delay, so
that one trace can be replayed under every policy for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, TypeAlias

from conformance.core.errors import WrongUsage
from conformance.policies.engine_rules import EngineRules, LateByWindow, Lowest, LowestOfActive
from conformance.policies.engines.beam import BeamLateness, LimitedDelay
from conformance.policies.engines.flink import BoundedOutOfOrderness, FlinkLateness, WithIdleness
from conformance.policies.engines.jet import (
    DEFAULT_IDLE_TIMEOUT,
    DEFAULT_SAMPLES,
    BelowOwnWatermark,
    FixedLag,
    IdleTimeout,
    LimitingLagAndDelay,
    LimitingLagAndLull,
    LimitingTimestampAndWallClockLag,
)
from conformance.policies.engines.kafka import StreamTime
from conformance.policies.engines.spark import MaxMinusDelay, Quantile, SparkCoalescing, SparkLateness
from conformance.policies.policy import Policy, PolicyParameter
from conformance.policies.throttling import THROTTLES, SuppressDuplicates, Throttle
from conformance.policies.trace import NANOS_PER_MILLI

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class PolicyDefinition:
    """A policy that a case can name."""

    meaning: str
    """In one sentence."""
    engine: str
    source: str
    """Where the rule is implemented or documented."""
    parameters: Mapping[str, PolicyParameter]
    make: Callable[[Parameters, Throttle], EngineRules]
    """From complete parameters. ``rules_for`` sets the name."""
    comparable: Callable[[int], Parameters]
    """The parameters with which the policy waits about as long as a delay in milliseconds."""
    delay: str
    """The name of the delay parameter, in milliseconds."""
    throttled: bool = False
    """Whether it accepts a throttle."""


class UnknownPolicy(WrongUsage):
    """No policy has that name."""

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, POLICIES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(POLICIES)}"
        super().__init__(f"unknown policy {name!r}: {hint}")
        self.name = name


def rules_for(name: str, given: Parameters, throttle: tuple[str, Parameters] | None = None) -> EngineRules:
    """The rules of a named policy.

    Args:
        name: a key of ``POLICIES``.
        given: parameter → value; missing parameters get their defaults.
        throttle: the name and parameters of a throttle; without one, every new watermark is emitted.

    Raises:
        UnknownPolicy: no policy has that name.
        InvalidParameter: a parameter has a value that the policy does not accept.
    """
    if name not in POLICIES:
        raise UnknownPolicy(name)
    definition = POLICIES[name]
    defaults = {
        one: parameter.default for one, parameter in definition.parameters.items() if parameter.default is not None
    }
    complete = {**defaults, **given}
    made: Throttle = SuppressDuplicates()
    if throttle is not None:
        made = THROTTLES[throttle[0]].make(throttle[1], complete.get("release", "jet-0.5"))
    shown = {one: complete[one] for one in definition.parameters if one in complete}
    return replace(definition.make(complete, made), name=name, parameters=shown)


def delay_of(rules: EngineRules) -> int:
    """The delay parameter of rules from ``rules_for`` or ``comparable``."""
    return int(rules.parameters[POLICIES[rules.name].delay])


def comparable(name: str, delay: int) -> EngineRules:
    """The rules of a policy with parameters that make it wait about as long as other policies with the same delay.

    Args:
        name: a key of ``POLICIES``.
        delay: milliseconds; at least 1 if the policy does not accept 0.

    Raises:
        UnknownPolicy: no policy has that name.
    """
    if name not in POLICIES:
        raise UnknownPolicy(name)
    return rules_for(name, POLICIES[name].comparable(delay))


_RELEASE = PolicyParameter(
    "the release of Hazelcast Jet", words=("jet-0.5", "jet-0.6"), default="jet-0.5", required=False
)
_IDLE_TIMEOUT = PolicyParameter(
    f"0.6 only: milliseconds without an event after which an input is left out; 0 = never (default: {DEFAULT_IDLE_TIMEOUT})",
    required=False,
)
_JET_PACKAGE = "com.hazelcast.jet.core"


def _jet(policy: Policy, given: Parameters, throttle: Throttle) -> EngineRules:
    if given["release"] == "jet-0.5":
        return EngineRules("", "Hazelcast Jet 0.5", policy, BelowOwnWatermark(), Lowest(), throttle)
    return EngineRules(
        "",
        "Hazelcast Jet 0.6",
        IdleTimeout(policy, given.get("idleTimeout", DEFAULT_IDLE_TIMEOUT)),
        LateByWindow(),
        LowestOfActive("highest"),
        throttle,
        one_source=True,
    )


def _guarded(given: Parameters) -> bool:
    return bool(given["release"] != "jet-0.5")


def _spark(given: Parameters, throttle: Throttle) -> EngineRules:
    policy = MaxMinusDelay(given["delay"])
    return EngineRules(
        "", "Spark", policy, SparkLateness(), SparkCoalescing(given["multipleWatermarkPolicy"]), throttle
    )


def _quantile(given: Parameters, throttle: Throttle) -> EngineRules:
    policy = Quantile(Decimal(str(given["quantile"])), given["delay"])
    return EngineRules("", "Spark (proposed)", policy, SparkLateness(), SparkCoalescing(), throttle)


def _fixed_lag(given: Parameters, throttle: Throttle) -> EngineRules:
    return _jet(FixedLag(given["lag"], guarded=_guarded(given)), given, throttle)


def _lag_and_delay(given: Parameters, throttle: Throttle) -> EngineRules:
    policy = LimitingLagAndDelay.of(given["lag"], given["maxDelay"], given["samples"])
    return replace(_jet(policy, given, throttle), clock_unit="ns")


def _lag_and_lull(given: Parameters, throttle: Throttle) -> EngineRules:
    return _jet(LimitingLagAndLull(given["lag"], given["maxLull"]), given, throttle)


def _wall_clock(given: Parameters, throttle: Throttle) -> EngineRules:
    policy = LimitingTimestampAndWallClockLag(given["timestampLag"], given["wallClockLag"], guarded=_guarded(given))
    return _jet(policy, given, throttle)


def _flink(given: Parameters, throttle: Throttle) -> EngineRules:
    policy: Policy = BoundedOutOfOrderness(given["bound"])
    if given.get("idleTimeout"):
        policy = WithIdleness.of(policy, given["idleTimeout"])
    return EngineRules("", "Flink", policy, FlinkLateness(), LowestOfActive("unchanged"), throttle)


def _beam(given: Parameters, throttle: Throttle) -> EngineRules:
    return EngineRules("", "Beam KafkaIO", LimitedDelay(given["maxDelay"]), BeamLateness(), Lowest(), throttle)


def _kafka(given: Parameters, throttle: Throttle) -> EngineRules:
    policy = StreamTime(given["grace"])
    return EngineRules("", "Kafka Streams", policy, LateByWindow(), Lowest(), throttle, one_task=True)


POLICIES: Mapping[str, PolicyDefinition] = {
    "spark": PolicyDefinition(
        "The highest event time of each micro-batch minus the delay; the lowest or highest of several inputs.",
        "Spark",
        "EventTimeWatermarkExec and WatermarkTracker of Apache Spark (SPARK-18124)",
        {
            "delay": PolicyParameter("how far the watermark lags behind the highest event time, in milliseconds"),
            "multipleWatermarkPolicy": PolicyParameter(
                "which of several watermarks the query uses", words=("min", "max"), default="min", required=False
            ),
        },
        _spark,
        lambda delay: {"delay": delay},
        "delay",
    ),
    "quantile": PolicyDefinition(
        "A quantile of the event times of each micro-batch minus a delay; proposed for Spark, never implemented.",
        "Spark (proposed)",
        "SPARK-18124, proposed as an alternative to the maximum",
        {
            "quantile": PolicyParameter("the share of rows of a micro-batch at or below its watermark", "share"),
            "delay": PolicyParameter(
                "how far the watermark lags behind the quantile, in milliseconds", default=0, required=False
            ),
        },
        _quantile,
        lambda delay: {"quantile": Decimal("0.9"), "delay": delay},
        "delay",
    ),
    "with-fixed-lag": PolicyDefinition(
        "The highest event time minus the lag, updated with every event.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.withFixedLag (0.5), limitingLag (0.6)",
        {
            "lag": PolicyParameter(
                "how far the watermark lags behind the highest event time, in the unit of event times"
            ),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _fixed_lag,
        lambda delay: {"lag": delay},
        "lag",
        throttled=True,
    ),
    "limiting-lag-and-delay": PolicyDefinition(
        "As with a fixed lag; in addition, the watermark reaches every event time within the delay.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingLagAndDelay (0.5)",
        {
            "lag": PolicyParameter(
                "how far the watermark lags behind the highest event time, in the unit of event times", "whole"
            ),
            "maxDelay": PolicyParameter(
                "how long an event time may stay above the watermark, in nanoseconds", "positive"
            ),
            "samples": PolicyParameter(
                "the number of steps that the delay is divided into",
                "positive",
                default=DEFAULT_SAMPLES,
                required=False,
            ),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _lag_and_delay,
        lambda delay: {"lag": delay, "maxDelay": max(delay, 1) * NANOS_PER_MILLI},
        "lag",
        throttled=True,
    ),
    "limiting-lag-and-lull": PolicyDefinition(
        "As with a fixed lag; after a lull without events the watermark advances with the clock.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingLagAndLull (0.5)",
        {
            "lag": PolicyParameter("how far the watermark lags behind the highest event time, in milliseconds"),
            "maxLull": PolicyParameter("the maximum lull, in milliseconds"),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _lag_and_lull,
        lambda delay: {"lag": delay, "maxLull": delay},
        "lag",
        throttled=True,
    ),
    "limiting-timestamp-and-wall-clock-lag": PolicyDefinition(
        "At most one lag behind the highest event time, and at most another behind the wall clock.",
        "Hazelcast Jet",
        f"{_JET_PACKAGE}.WatermarkPolicies.limitingTimestampAndWallClockLag (0.5)",
        {
            "timestampLag": PolicyParameter(
                "how far the watermark lags behind the highest event time, in milliseconds"
            ),
            "wallClockLag": PolicyParameter("how far the watermark lags behind the wall clock, in milliseconds"),
            "release": _RELEASE,
            "idleTimeout": _IDLE_TIMEOUT,
        },
        _wall_clock,
        lambda delay: {"timestampLag": delay, "wallClockLag": delay},
        "timestampLag",
        throttled=True,
    ),
    "bounded-out-of-orderness": PolicyDefinition(
        "The highest event time minus the bound minus 1 ms, emitted periodically; idle inputs are left out.",
        "Flink",
        "BoundedOutOfOrdernessWatermarks and WatermarksWithIdleness of Apache Flink",
        {
            "bound": PolicyParameter("the maximum out-of-orderness of events, in milliseconds"),
            "idleTimeout": PolicyParameter(
                "milliseconds without an event after which an input is idle; never by default",
                "positive",
                required=False,
            ),
        },
        _flink,
        lambda delay: {"bound": delay, "idleTimeout": max(delay, 1)},
        "bound",
    ),
    "limited-delay": PolicyDefinition(
        "The highest event time, capped at the clock, minus the delay; follows the clock once everything is read.",
        "Beam KafkaIO",
        "CustomTimestampPolicyWithLimitedDelay of Apache Beam",
        {"maxDelay": PolicyParameter("how far the watermark lags behind, in milliseconds")},
        _beam,
        lambda delay: {"maxDelay": delay},
        "maxDelay",
    ),
    "stream-time": PolicyDefinition(
        "Stream time, the highest event time of a task, minus the grace; each record updates it before its own lateness check.",
        "Kafka Streams",
        "KStreamWindowAggregate of Apache Kafka, KIP-633",
        {"grace": PolicyParameter("how long a window stays open behind stream time, in milliseconds")},
        _kafka,
        lambda delay: {"grace": delay},
        "grace",
    ),
}
"""Name → policy, in display order."""
