"""What a prediction has read of the rules: whatever else changes, it stays as it is."""

from dataclasses import replace

import pytest

from conformance.account.explanation import explanation_lines
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import other_readings, rules_of
from conformance.model.errors import Unpredictable
from conformance.model.rules import RulesRead, WatchedRules
from conformance.oracle import prediction
from conformance.oracle.prediction import CasePredictions, predict
from tests.support.whole_suite import whole_suite

V334, V430 = map(SparkVersion.parse, ("3.3.4", "4.3.0"))


def watched() -> tuple[WatchedRules, RulesRead]:
    read = RulesRead()
    return WatchedRules(rules_of(V430), read), read


def read_here(*rules: str) -> dict[str, tuple[str, str]]:
    return dict.fromkeys(rules, (__name__, "read_here"))


def test_what_is_read_is_as_it_was() -> None:
    rules, read = watched()
    assert rules.is_late(1, 1) == rules_of(V430).is_late(1, 1)
    assert rules.late_watermark == rules.late_watermark == "batch before"
    assert (read.rules.keys(), read.refusals, read.features) == ({"is_late", "late_watermark"}, set(), set())
    assert read.rules["is_late"] == (__name__, "test_what_is_read_is_as_it_was")


def test_a_refusal_that_is_missing_was_read_too() -> None:
    rules, read = watched()
    assert "never heard of" not in rules.refusals
    assert rules.refusals.get("two event times") == rules_of(V430).refusals.get("two event times")
    with pytest.raises(Unpredictable):
        rules.refusal("not refused")
    assert read.refusals == {"never heard of", "two event times", "not refused"}


def test_a_feature_that_is_missing_was_read_too() -> None:
    rules, read = watched()
    rules.require("allowMultiple")
    assert "never heard of" not in rules.features
    assert read.features == {"allowMultiple", "never heard of"}


def test_whoever_reads_all_has_read_every_one() -> None:
    rules, read = watched()
    assert dict(rules.refusals) == rules_of(V430).refusals
    assert {*rules.features} == rules_of(V430).features
    assert len(rules.features) == len(rules_of(V430).features)
    assert read.refusals >= rules_of(V334).refusals.keys()
    assert read.features >= rules_of(V430).features


def test_an_altered_view_records_in_the_same_place() -> None:
    rules, read = watched()
    assert rules.altered(late_watermark="own batch").late_watermark == "own batch"
    assert read.rules.keys() == {"late_watermark"}


def test_rules_are_told_apart_by_what_was_read() -> None:
    these = rules_of(V430)
    other = replace(these, late_watermark="own batch", refusals={}, features=frozenset())
    refusal, feature = next(iter(these.refusals)), next(iter(these.features))
    assert not RulesRead(read_here("is_late"), {"never heard of"}, {"never heard of"}).tell_apart(these, other)
    assert RulesRead(read_here("is_late", "late_watermark")).tell_apart(these, other)
    assert RulesRead(refusals={refusal}).tell_apart(these, other)
    assert RulesRead(features={feature}).tell_apart(these, other)


@pytest.mark.parametrize("version", [V334, V430], ids=str)
def test_a_rule_that_was_not_read_changes_no_prediction(version: SparkVersion) -> None:
    unread = 0
    for case in whole_suite().cases[::80]:
        try:
            found = predict(case, version)
        except Unpredictable:
            continue
        for _, altered in other_readings(version):
            if not found.read.tell_apart(rules_of(version), altered):
                unread += 1
                other = predict(case, version, altered).observation
                assert other.behaviour_digest == found.observation.behaviour_digest
    assert unread > 100


def test_a_version_takes_the_prediction_of_another_that_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[SparkVersion] = []
    monkeypatch.setattr(
        prediction, "predict", lambda case, version, read: runs.append(version) or predict(case, version, read=read)
    )
    asked = 0
    for case in whole_suite().cases[::80]:
        predictions = CasePredictions(case)
        for version in map(SparkVersion.parse, ("3.0.3", "3.3.4", "3.5.9", "4.1.4", "4.2.1", "4.3.0")):
            try:
                own = predict(case, version)
            except Unpredictable:
                continue
            found = predictions.on(version)
            asked += 1
            assert (found.version, found.columns, found.observation) == (version, own.columns, own.observation)
            assert [*map(str, explanation_lines(case, found))] == [*map(str, explanation_lines(case, own))]
    assert 10 < len(runs) < asked
