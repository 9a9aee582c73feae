"""Every rule once: what it says, where that is written, and the versions it holds for (``rules.yaml``).

``rules_of`` makes of it the set of rules of one version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from conformance.core.versions import SparkVersion, VersionRange
from conformance.model.features import features
from conformance.model.refusals import Refusal, Wording, refusals
from conformance.model.rule_functions import READINGS
from conformance.model.rules import Rules
from conformance.model.versioned_data import holds, read, spark_of


@dataclass(frozen=True)
class Held:
    """A value of a rule, and where it holds."""

    value: Any
    says: str
    """The rule in one sentence."""
    spark: VersionRange | None
    """None where it is all versions."""


@dataclass(frozen=True)
class Rule:
    """A rule of the specification; ``name`` is its field in ``Rules``."""

    name: str
    source: str
    """The ticket that brought or changed it, or the section of the guide."""
    held: tuple[Held, ...]
    """Its values; exactly one holds for any version."""

    def at(self, version: SparkVersion) -> Held:
        """What holds for a version."""
        return next(held for held in self.held if holds(held.spark, version))


@cache
def catalogue() -> Mapping[str, Rule]:
    """The specification: name → rule."""
    return {
        name: Rule(name, entry["source"], tuple(_held(name, one) for one in entry["held"]))
        for name, entry in read("rules.yaml").items()
    }


def _held(rule: str, entry: dict[str, Any]) -> Held:
    value = entry["value"]
    named = READINGS.get(rule)
    return Held(named[value] if named is not None else value, entry["says"], spark_of(entry))


@cache
def rules_of(version: SparkVersion) -> Rules:
    """The rules of a version of Spark."""
    values = {rule.name: rule.at(version).value for rule in catalogue().values()}
    worded = {refusal.name: wording for refusal in refusals() if (wording := _wording(refusal, version))}
    there = frozenset(name for name, feature in features().items() if version in feature.spark)
    return Rules(**values, refusals=worded, features=there)


def other_readings(version: SparkVersion) -> Iterator[tuple[Rule, Rules]]:
    """The rules of a version with one of them read as another version has it: each rule, and each other reading."""
    rules = rules_of(version)
    for rule in catalogue().values():
        for held in rule.held:
            if getattr(rules, rule.name) != held.value:
                yield rule, replace(rules, **{rule.name: held.value})


def catalogued() -> frozenset[str]:
    """The fields of ``Rules`` that the catalogue fills by a rule of their own."""
    return frozenset(field.name for field in fields(Rules)) - {"refusals", "features"}


def _wording(refusal: Refusal, version: SparkVersion) -> Wording | None:
    return next((wording for wording in refusal.wordings if holds(wording.spark, version)), None)
