"""The policies of ``policies.yaml`` by name, with the rules of their engine.

``rules_for(name, given)`` builds rules from the parameters of a case; ``comparable(name, delay)`` builds them from a single delay, so
that one trace can be replayed under every policy for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, TypeAlias

from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.policies.engine_rules import EngineRules, LateByWindow, Lowest, LowestOfActive
from conformance.policies.engines.beam import BeamLateness, LimitedDelay
from conformance.policies.engines.flink import BoundedOutOfOrderness, FlinkLateness, WithIdleness
from conformance.policies.engines.jet import (
    DEFAULT_IDLE_TIMEOUT,
    BelowOwnWatermark,
    FixedLag,
    IdleTimeout,
    LimitingLagAndDelay,
    LimitingLagAndLull,
    LimitingTimestampAndWallClockLag,
)
from conformance.policies.engines.kafka import StreamTime
from conformance.policies.engines.spark import MaxMinusDelay, Quantile, SparkCoalescing, SparkLateness
from conformance.policies.policy import THROTTLES, Policy, PolicyParameter, SuppressDuplicates, Throttle
from conformance.policies.trace import NANOS_PER_MILLI, ClockUnit, in_unit

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


def _jet(policy: Policy, given: Parameters, throttle: Throttle, clock_unit: ClockUnit = "ms") -> EngineRules:
    if given["release"] == "jet-0.5":
        return EngineRules("", "Hazelcast Jet 0.5", policy, BelowOwnWatermark(), Lowest(), throttle, clock_unit)
    return EngineRules(
        "",
        "Hazelcast Jet 0.6",
        IdleTimeout(policy, in_unit(given.get("idleTimeout", DEFAULT_IDLE_TIMEOUT), "ms", clock_unit)),
        LateByWindow(),
        LowestOfActive("highest"),
        throttle,
        clock_unit,
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
    return _jet(policy, given, throttle, "ns")


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


_RULES: Mapping[str, tuple[Callable[[Parameters, Throttle], EngineRules], Callable[[int], Parameters]]] = {
    "spark": (_spark, lambda delay: {"delay": delay}),
    "quantile": (_quantile, lambda delay: {"quantile": Decimal("0.9"), "delay": delay}),
    "with-fixed-lag": (_fixed_lag, lambda delay: {"lag": delay}),
    "limiting-lag-and-delay": (
        _lag_and_delay,
        lambda delay: {"lag": delay, "maxDelay": max(delay, 1) * NANOS_PER_MILLI},
    ),
    "limiting-lag-and-lull": (_lag_and_lull, lambda delay: {"lag": delay, "maxLull": delay}),
    "limiting-timestamp-and-wall-clock-lag": (
        _wall_clock,
        lambda delay: {"timestampLag": delay, "wallClockLag": delay},
    ),
    "bounded-out-of-orderness": (_flink, lambda delay: {"bound": delay, "idleTimeout": max(delay, 1)}),
    "limited-delay": (_beam, lambda delay: {"maxDelay": delay}),
    "stream-time": (_kafka, lambda delay: {"grace": delay}),
}


def _definition(name: str, parameters: Mapping[str, Any], **about: Any) -> PolicyDefinition:
    made = {
        one: PolicyParameter(**{**given, "words": tuple(given.get("words", ()))}) for one, given in parameters.items()
    }
    make, comparable = _RULES[name]
    return PolicyDefinition(parameters=made, make=make, comparable=comparable, **about)


POLICIES: Mapping[str, PolicyDefinition] = {
    name: _definition(name, **entry) for name, entry in read_data("conformance.policies", "policies.yaml").items()
}
"""Name → policy, in display order."""
