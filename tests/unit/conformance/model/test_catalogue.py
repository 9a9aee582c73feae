"""The rules as data: each has a source, and exactly one value for every release."""

import re
from dataclasses import fields

from conformance.core.versions import SparkVersion, releases
from conformance.model.catalogue import catalogue, rules_of
from conformance.model.rules import Rules, applies, differing, features, refusals

SOURCE = re.compile(r"SPARK-\d{5}|https://spark\.apache\.org/docs/\S+#\S+")


def test_every_field_of_the_rules_is_in_the_catalogue() -> None:
    assert set(catalogue()) == {field.name for field in fields(Rules)} - {"refusals", "features"}


def test_a_rule_has_a_source_and_exactly_one_value_on_every_release() -> None:
    for rule in catalogue().values():
        assert SOURCE.fullmatch(rule.source), rule.name
        for version in releases():
            assert len([one for one in rule.values if applies(one.spark, version)]) == 1, (rule.name, version)
        assert all(one.says.endswith(".") for one in rule.values), rule.name


def test_a_refusal_has_at_most_one_wording_on_a_release() -> None:
    for version in releases():
        rules = rules_of(version)
        for refusal in refusals():
            wordings = [wording for wording in refusal.wordings if applies(wording.spark, version)]
            shown = [rules.refusals[refusal.name]] if refusal.name in rules.refusals else []
            assert wordings == shown, (refusal.name, version)


def test_a_feature_is_not_lost_in_a_later_release() -> None:
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
