"""The features of cases, and which cases concern a query."""

import pytest

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.query import read_query
from conformance.query.reading import QueryAggregation, QueryDeduplication, QueryJoin
from conformance.suite.features import (
    FEATURES,
    STATEFUL,
    features,
    features_of_job,
    named_features,
    needs,
    relevance,
)
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}


def test_features_are_those_people_name() -> None:
    expected = ("append mode", "window aggregation")
    assert features(CASES["late-drops/late-by-the-watermark-of-the-batch-before"]) == expected
    assert "restart" in features(CASES["recovery/replay-filters-late-rows-as-the-first-attempt-did"])
    assert "named sources" in features(CASES["recovery/named-sources-may-change-places"])
    assert {"update mode", "inner join", "chained operators"} <= set(
        features(CASES["chained-aggregations/update-mode-join-then-aggregation-emits-early"])
    )


def test_every_feature_of_the_suite_can_be_named() -> None:
    found = {feature for case in CASES.values() for feature in features(case)}
    assert all(features(case) for case in CASES.values())
    assert found == set(FEATURES)


IN_SQL = {case.id: case for case in CASES.values() if any(operation.name == "sql" for operation in case.query.walk())}


def test_what_sql_does_with_state_is_a_feature() -> None:
    """21 of these cases had none of these features, and passed as unrelated to ``--uses``."""
    kinds = QueryAggregation | QueryJoin | QueryDeduplication
    readings = {id: read_query(case.query, case.streams) for id, case in IN_SQL.items()}
    keeping = [id for id, of in readings.items() if any(isinstance(operator, kinds) for operator in of.operators)]
    assert len(keeping) > 25
    assert [id for id in keeping if not {*features(CASES[id])} & {*STATEFUL}] == []


@pytest.mark.parametrize(
    ("id", "found"),
    [
        ("join-delays/sql-join-of-two-streams", {"outer join", "several watermarks"}),
        (
            "several-watermarks/sql-union-follows-the-slower-stream",
            {"union", "window aggregation", "several watermarks"},
        ),
        ("output-modes/update-sql-distinct-repeats-rows", {"aggregation"}),
        ("unsupported/left-anti-join-of-two-streams", {"semi join"}),
        ("session-windows/filter-above-a-session-over-a-window", {"session windows", "chained operators"}),
    ],
)
def test_features_of_sql(id: str, found: set[str]) -> None:
    assert found | {"SQL"} <= set(features(CASES[id]))


def test_a_case_that_cannot_be_read_may_need_any_feature() -> None:
    unreadable = CASES["unsupported/nearest-by-join-of-a-stream"]
    assert needs([unreadable, CASES["join-delays/sql-join-of-two-streams"]]).keys() == {
        "join-delays/sql-join-of-two-streams"
    }


class TestJob:
    """The features of own code, of which the plan is known and how it ran."""

    CASE = CASES["late-drops/late-by-the-watermark-of-the-batch-before"]
    PLAN = "== Physical Plan ==\nStateStoreSave [window#1-T600000ms], state info, Append, 0, 1, 2\n"
    ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

    def job(self, conf: dict[str, str], case: Case = CASE, plan: str = PLAN) -> set[str]:
        return {*features_of_job(plan, case, conf)}

    def test_operators_are_those_of_the_plan(self) -> None:
        assert self.job({}) == {"append mode", "window aggregation"}
        sessions = self.PLAN.replace("StateStoreSave", "SessionWindowStateStoreSave")
        # As a case with sessions has: otherwise no such case could concern the job.
        assert self.job({}, plan=sessions) == {"append mode", "aggregation", "session windows"}

    def test_a_join_with_a_table_keeps_no_state_so_that_changes_of_joins_do_not_concern_it(self) -> None:
        plan = f"{self.PLAN}+- BroadcastHashJoin [a#1], [b#2], LeftOuter, BuildRight, false\n"
        assert self.job({}, plan=plan) == {"append mode", "window aggregation"}

    def test_the_state_store_is_that_of_the_settings(self) -> None:
        setting = "spark.sql.streaming.stateStore.providerClass"
        assert "RocksDB" in self.job({setting: self.ROCKSDB})
        assert "RocksDB" in self.job({}, self.CASE.model_copy(update={"conf": {setting: self.ROCKSDB}}))
        assert "RocksDB" in self.job({}, plan="== Physical Plan ==\nTransformWithStateInPandas f(t#1), [user#1]\n")

    def test_the_trigger_is_that_of_the_trial(self) -> None:
        assert "trigger once" in self.job({}, self.CASE.model_copy(update={"trigger": "once"}))


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
        with pytest.raises(WrongUsage, match="--uses: unknown feature") as wrong:
            named_features([text])
        assert wrong.value.exit_code == 2

    @pytest.mark.parametrize(
        ("text", "feature"), [("left-outer", "outer-join"), ("left anti", "semi-join"), ("full-join", "outer-join")]
    )
    def test_what_spark_calls_otherwise_is_suggested(self, text: str, feature: str) -> None:
        with pytest.raises(WrongUsage, match=f"did you mean '{feature}'"):
            named_features([text])


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
