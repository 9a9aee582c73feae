"""The rule of the model that an unexpected answer goes by: found by reading each rule otherwise."""

from __future__ import annotations

from dataclasses import replace

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.fuzzing.cached_prediction import model_says
from conformance.judging.divergence import equivalent
from conformance.model.catalogue import other_readings, rules_of
from conformance.model.refusals import Refused, refusals
from conformance.model.rules import Rules
from conformance.model.unpredictable import Unpredictable
from conformance.oracle.prediction import Prediction
from conformance.oracle.version_divergence import version_divergence


def parting_rules(case: Case, here: Prediction, there: Prediction) -> tuple[tuple[str, str], ...]:
    """The rules by which the model says that two versions, or settings, part: name and ticket; none where several must change at once."""
    try:
        found = version_divergence(case, here, there)
    except Exception:  # a rule read otherwise may make no sense with the others
        return ()
    if found is None:
        return ()
    if here.version == there.version:  # with other settings
        failed = {one.name for one in (found.here, found.there) if isinstance(one, Refused)}
        return tuple((one.name, one.source) for one in refusals() if one.name in failed)
    return tuple((rule.name, rule.source) for rule in found.rules)


def settling_rules(case: Case, version: SparkVersion, seen: Observation) -> tuple[tuple[str, str], ...]:
    """The rules of which another reading, or a refusal that is not there, makes the model say what was seen: name and ticket.

    None where it says that anyway.
    """
    if _says(case, version, rules_of(version), seen):
        return ()
    found = [
        (rule.name, rule.source) for rule, altered in other_readings(version) if _says(case, version, altered, seen)
    ]
    try:
        story = model_says(case, version).story
    except Unpredictable:
        return tuple(found)
    refused = story[-1].error if story else None
    if refused is not None:
        rules = rules_of(version)
        without = {name: wording for name, wording in rules.refusals.items() if name != refused.name}
        if _says(case, version, replace(rules, refusals=without), seen):
            found += [(one.name, one.source) for one in refusals() if one.name == refused.name]
    return tuple(dict.fromkeys(found))


def _says(case: Case, version: SparkVersion, rules: Rules, seen: Observation) -> bool:
    try:
        return equivalent(model_says(case, version, rules).observation, seen)
    except Unpredictable:
        return False
