"""The rules as data: each once, with its source, and one value for every release."""

import re

import pytest

from conformance.core.versions import SparkVersion, releases
from conformance.model.catalogue import catalogue, catalogued, rules_of
from conformance.model.features import features
from conformance.model.refusals import refusals
from conformance.model.rules import Rules, differing
from conformance.model.versioned_data import holds

SOURCE = re.compile(r"SPARK-\d{5}|https://spark\.apache\.org/docs/\S+#\S+")


def test_every_field_of_a_set_of_rules_is_a_rule_of_the_catalogue() -> None:
    assert set(catalogue()) == catalogued()


@pytest.mark.parametrize("rule", catalogue().values(), ids=lambda rule: rule.name)
def test_a_rule_has_a_source_and_exactly_one_value_on_every_release(rule) -> None:
    assert SOURCE.fullmatch(rule.source)
    for version in releases():
        assert len([held for held in rule.held if holds(held.spark, version)]) == 1, version
    assert all(held.says.endswith(".") for held in rule.held)


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.name)
def test_a_refusal_is_worded_in_one_way_on_a_release(refusal) -> None:
    for version in releases():
        rules = rules_of(version)
        worded = [wording for wording in refusal.wordings if holds(wording.spark, version)]
        assert worded == [rules.refusals[refusal.name]] if refusal.name in rules.refusals else not worded


def test_features_come_and_stay() -> None:
    before: frozenset[str] = frozenset()
    for version in releases():
        assert before <= rules_of(version).features or version.patch == 0
        before = rules_of(version).features
    assert before == frozenset(features())


def test_the_late_filter_changed_with_3_4() -> None:
    old, new = (rules_of(SparkVersion.parse(text)) for text in ("3.3.4", "3.4.0"))
    assert isinstance(old, Rules)
    assert "late_watermark" in differing(old, new)
    assert differing(new, new) == ()
