"""The rules of every version (``rules.yaml``): what each rule says, its source, and the versions of each value.

``rules_of`` builds the rules of one version, ``other_readings`` and ``WrongModel`` change one of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange, releases
from conformance.model.rules import Rules, applies, differing, features, range_of, refusals


@dataclass(frozen=True)
class RuleValue:
    """A value of a rule, and the versions that have it."""

    name: Any
    """What ``rules.yaml`` writes: the name of a function, or the value itself."""
    value: Any
    says: str
    """The rule in one sentence."""
    spark: VersionRange | None
    """The versions that have it; None for all."""


@dataclass(frozen=True)
class Rule:
    """A rule of the specification; ``name`` is its field in ``Rules``."""

    name: str
    source: str
    """The ticket that introduced or changed it, or the section of the guide."""
    values: tuple[RuleValue, ...]
    """Exactly one applies to each version."""

    def at(self, version: SparkVersion) -> RuleValue:
        return next(value for value in self.values if applies(value.spark, version))


def _at_or_before(time_us: int, watermark_ms: int) -> bool:
    return time_us <= watermark_ms * 1000


def _end(window: tuple[int, int]) -> int:
    return window[1]


RULE_FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "event_time_ms": {"whole milliseconds, null as the epoch": lambda us: 0 if us is None else us // 1000},
    "highest_of_batch": {"highest": max},
    "node_watermark_ms": {"highest minus delay": lambda highest, delay: highest - delay},
    "policies": {"min and max": {"min": min, "max": max}},
    "is_late": {"at or before": _at_or_before},
    "late_time_of_window": {"end": _end},
    "is_over": {"at or before": _at_or_before},
    "over_time_of_window": {"end": _end},
    "evicts_in": {"append and update": frozenset({"append", "update"})},
    "session_end_us": {"time plus gap": lambda us, gap: us + gap},
    "window_time_us": {"end minus 1 µs": lambda end: end - 1},
    "within_expires_us": {"time plus delay": lambda us, delay_ms: us + delay_ms * 1000},
    "within_is_expired": {"at or before": _at_or_before},
    "bound_of_several": {"lowest": min},
    "join_state_goes": {"at or before": _at_or_before},
    "timeout_fires": {"before": lambda timeout, watermark: timeout < watermark},
    "timer_fires": {"at or before": lambda timer, watermark: timer <= watermark},
    "datetime_timeout_ms": {"the instant": lambda ms: ms, "days since the epoch": lambda ms: ms // 86_400_000},
}
"""Rule → name of a value in ``rules.yaml`` → the function."""


@cache
def catalogue() -> Mapping[str, Rule]:
    """The specification: name → rule."""
    rules = {}
    for name, entry in read_data("conformance.model", "rules.yaml").items():
        values = (
            RuleValue(value["value"], rule_value(name, value["value"]), value["says"], range_of(value))
            for value in entry["values"]
        )
        rules[name] = Rule(name, entry["source"], tuple(values))
    return rules


def rule_value(rule: str, written: Any, more: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> Any:
    """The value that a YAML file writes for a rule: a function of that name, or the value itself."""
    functions = {**RULE_FUNCTIONS.get(rule, {}), **more.get(rule, {})}
    return functions[written] if functions else written


@cache
def rules_of(version: SparkVersion) -> Rules:
    values = {rule.name: rule.at(version).value for rule in catalogue().values()}
    wordings = {refusal.name: wording for refusal in refusals() if (wording := refusal.wording(version))}
    available = frozenset(name for name, feature in features().items() if version in feature.spark)
    return Rules(**values, refusals=wordings, features=available)


def other_readings(version: SparkVersion) -> Iterator[tuple[Rule, Rules]]:
    """The rules of a version with one of them changed to another version's value: every rule and every other value."""
    rules = rules_of(version)
    for rule in catalogue().values():
        for other in rule.values:
            if getattr(rules, rule.name) != other.value:
                yield rule, rules.altered(**{rule.name: other.value})


@dataclass(frozen=True)
class WrongModel:
    """A model with a deliberate error: one misread rule, or a refusal that it does not know."""

    name: str
    """The error, in words."""
    rules: Mapping[str, Any] = field(hash=False)
    """Fields of ``Rules`` → the wrong value."""
    detected_by: str
    """Id of a case that detects it; the benchmark finds the others."""
    accepts: tuple[str, ...] = ()
    """Names of refusals that it does not know."""

    @property
    def version(self) -> SparkVersion:
        """The newest release of Spark that it misreads."""
        rules = ((version, rules_of(version)) for version in reversed(releases()))
        return next(version for version, right in rules if differing(right, self.of(right)))

    def of(self, rules: Rules) -> Rules:
        """The rules with the error."""
        return rules.accepting(*self.accepts).altered(**self.rules)
