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
from conformance.policies.engines import (
    DEFAULT_IDLE_TIMEOUT,
    BeamLateness,
    BelowOwnWatermark,
    BoundedOutOfOrderness,
    FixedLag,
    FlinkLateness,
    IdleTimeout,
    LimitedDelay,
    LimitingLagAndDelay,
    LimitingLagAndLull,
    LimitingTimestampAndWallClockLag,
    MaxMinusDelay,
    Quantile,
    SparkCoalescing,
    SparkLateness,
    StreamTime,
    WithIdleness,
)
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
    comparable: Callable[[int], Parameters]
    """The parameters with which the policy waits about as long as a delay in milliseconds."""
    delay: str
    """The name of the delay parameter, in milliseconds."""
    throttled: bool = False
    """Whether it accepts a throttle."""


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
    defaults = {one: parameter.default for one, parameter in parameters.items() if parameter.default is not None}
    complete = {**defaults, **given}
    made: Throttle = SuppressDuplicates()
    if throttle is not None:
        made = THROTTLES[throttle[0]].make(throttle[1], complete.get("release", "jet-0.5"))
    shown = {one: complete[one] for one in parameters if one in complete}
    return replace(rules_of(name, complete, made), parameters=shown)


def delay_of(rules: EngineRules) -> int:
    """The delay parameter of rules from ``rules_for`` or ``comparable``."""
    return int(rules.parameters[POLICIES[rules.name].delay])


def comparable(name: str, delay: int) -> EngineRules:
    """The rules of a policy with parameters that make it wait about as long as other policies with the same delay.

    Args:
        name: a key of ``POLICIES``.
        delay: milliseconds; at least 1 if the policy does not accept 0.

    Raises:
        WrongUsage: no policy has that name.
    """
    return rules_for(name, _definition(name).comparable(delay))


def rules_of(name: str, given: Parameters, throttle: Throttle) -> EngineRules:
    """The rules of a named policy from complete parameters."""

    def jet(policy: Policy, clock_unit: ClockUnit = "ms") -> EngineRules:
        if not since_0_6:
            engine = "Hazelcast Jet 0.5"
            return EngineRules(name, engine, policy, BelowOwnWatermark(), Lowest(), throttle, clock_unit)
        timeout = in_unit(given.get("idleTimeout", DEFAULT_IDLE_TIMEOUT), "ms", clock_unit)
        return EngineRules(
            name,
            "Hazelcast Jet 0.6",
            IdleTimeout(policy, timeout),
            LateByWindow(),
            LowestOfActive("highest"),
            throttle,
            clock_unit,
            one_source=True,
        )

    since_0_6 = given.get("release") == "jet-0.6"
    policy: Policy
    match name:
        case "spark":
            policy, coalescing = MaxMinusDelay(given["delay"]), SparkCoalescing(given["multipleWatermarkPolicy"])
            return EngineRules(name, "Spark", policy, SparkLateness(), coalescing, throttle)
        case "quantile":
            policy = Quantile(Decimal(str(given["quantile"])), given["delay"])
            return EngineRules(name, "Spark (proposed)", policy, SparkLateness(), SparkCoalescing(), throttle)
        case "with-fixed-lag":
            return jet(FixedLag(given["lag"], guarded=since_0_6))
        case "limiting-lag-and-delay":
            return jet(LimitingLagAndDelay.of(given["lag"], given["maxDelay"], given["samples"]), "ns")
        case "limiting-lag-and-lull":
            return jet(LimitingLagAndLull(given["lag"], given["maxLull"]))
        case "limiting-timestamp-and-wall-clock-lag":
            lags = given["timestampLag"], given["wallClockLag"]
            return jet(LimitingTimestampAndWallClockLag(*lags, guarded=since_0_6))
        case "bounded-out-of-orderness":
            policy = BoundedOutOfOrderness(given["bound"])
            if given.get("idleTimeout"):
                policy = WithIdleness.of(policy, given["idleTimeout"])
            return EngineRules(name, "Flink", policy, FlinkLateness(), LowestOfActive("unchanged"), throttle)
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


def _defined(name: str, parameters: Mapping[str, Any], **about: Any) -> PolicyDefinition:
    made = {
        one: PolicyParameter(**{**given, "words": tuple(given.get("words", ()))}) for one, given in parameters.items()
    }
    return PolicyDefinition(parameters=made, comparable=_COMPARABLE[name], **about)


POLICIES: Mapping[str, PolicyDefinition] = {
    name: _defined(name, **entry) for name, entry in read_data("conformance.policies", "policies.yaml").items()
}
"""Name → policy, in display order."""
