"""The features of cases, and which cases concern a query."""

from __future__ import annotations

import pytest

from reports.analysis.features import FEATURES, UnknownFeature, features, named_features, relevance
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}


def test_features_are_those_people_name() -> None:
    assert features(CASES["late-drops/late-by-the-watermark-of-the-batch-before"]) == (
        "append mode",
        "window aggregation",
    )
    assert "restart" in features(CASES["recovery/replay-filters-late-rows-as-the-first-attempt-did"])
    assert "named sources" in features(CASES["recovery/named-sources-may-change-places"])
    assert {"update mode", "inner join", "chained operators"} <= set(
        features(CASES["chained-aggregations/update-mode-join-then-aggregation-emits-early"])
    )


def test_every_feature_of_the_suite_can_be_named() -> None:
    found = {feature for case in CASES.values() for feature in features(case)}
    assert all(features(case) for case in CASES.values())
    assert found == set(FEATURES)


class TestNames:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("outer-join", {"outer join"}),
            ("Outer Join", {"outer join"}),
            ("dedup, append", {"deduplication", "append mode"}),
            ("aggregation", {"aggregation"}),
            ("sql,rocksdb,trigger-once", {"SQL", "RocksDB", "trigger once"}),
        ],
    )
    def test_a_beginning_is_enough(self, text: str, found: set[str]) -> None:
        assert named_features([text]) == found

    def test_several_lists_are_one(self) -> None:
        assert named_features(["outer", "union,dedup"]) == {"outer join", "union", "deduplication"}

    @pytest.mark.parametrize("text", ["joins", "s", "trigger", "", "outer-join,,dedup"])
    def test_what_fits_none_or_several_is_wrong(self, text: str) -> None:
        with pytest.raises(UnknownFeature, match="--uses: unknown feature") as wrong:
            named_features([text])
        assert wrong.value.exit_code == 2


@pytest.mark.parametrize(
    ("needs", "uses", "expected"),
    [
        (["append mode", "outer join"], {"append mode", "outer join", "deduplication"}, "all"),
        (["append mode", "outer join"], {"outer join"}, "all"),
        (["append mode", "outer join", "RocksDB"], {"append mode", "outer join"}, "some"),
        (["update mode", "outer join"], {"append mode", "outer join"}, "some"),
        (["append mode", "window aggregation"], {"append mode", "outer join"}, "none"),
        (["append mode", "window aggregation"], {"append mode"}, "some"),
        (["complete mode"], {"append mode", "outer join"}, "none"),
        (["append mode", "outer join", "restart"], {"append mode", "outer join"}, "all"),
        (["append mode", "union", "several watermarks"], {"outer join"}, "some"),
        (["append mode", "deduplication", "chained operators"], {"deduplication", "outer join"}, "all"),
        (["append mode", "deduplication", "chained operators"], {"deduplication"}, "some"),
    ],
)
def test_relevance(needs: list[str], uses: set[str], expected: str) -> None:
    assert relevance(needs, frozenset(uses)) == expected
