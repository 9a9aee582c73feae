"""What a query consists of, from its pipeline and its SQL."""

from dataclasses import replace
from typing import Any

import pytest

from conformance.core.operations import read_pipeline
from conformance.core.spark_types import parse_schema
from conformance.query import read_query
from conformance.query.reading import (
    QueryAggregation,
    QueryDeduplication,
    QueryJoin,
    QueryLimit,
    QueryReading,
    QuerySource,
    QueryStateFunction,
    QueryUnion,
    QueryWatermark,
    QueryWindow,
    StreamColumn,
)

STREAMS = {
    "orders": parse_schema("event_time TIMESTAMP, id STRING, amount INT"),
    "clicks": parse_schema("event_time TIMESTAMP, id STRING, amount INT"),
}
MINUTE = 60_000_000
EVENT_TIME = (StreamColumn("orders", "event_time"),)
TEN_MINUTES = QueryWindow("tumbling", "event_time", 10 * MINUTE, 10 * MINUTE, 0, EVENT_TIME, filtered=False)


def read(*operations: dict[str, Any]) -> QueryReading:
    return read_query(read_pipeline([{"from": "orders"}, *operations]), STREAMS)


def sql(statement: str, **views: list[dict[str, Any]]) -> QueryReading:
    return read({"sql": statement, "as": "v", **({"views": views} if views else {})})


def grouped(*keys: str, agg: str = "count(*) AS n") -> dict[str, Any]:
    return {"groupBy": list(keys), "agg": [agg]}


def window(*operations: dict[str, Any]) -> QueryWindow:
    """The window of the last of the operations."""
    return read(*operations).windows[-1]


class TestWindows:
    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            ("window(event_time, '10 minutes')", TEN_MINUTES),
            ("WINDOW( `event_time`,'10 minutes' ) AS w", TEN_MINUTES),
            (
                "window(event_time, '10 minutes', '5 minutes')",
                QueryWindow("sliding", "event_time", 10 * MINUTE, 5 * MINUTE, 0, EVENT_TIME, filtered=False),
            ),
            (
                "window(event_time, '10 minutes', '10 minutes', '2 minutes')",
                QueryWindow("tumbling", "event_time", 10 * MINUTE, 10 * MINUTE, 2 * MINUTE, EVENT_TIME, filtered=False),
            ),
            (
                "session_window(event_time, '5 minutes')",
                QueryWindow("session", "event_time", 5 * MINUTE, None, 0, EVENT_TIME, filtered=False),
            ),
            (
                "session_window(event_time, CASE WHEN amount = 1 THEN '1 minute' END)",
                QueryWindow("session", "event_time", None, None, 0, EVENT_TIME, filtered=False),
            ),
        ],
    )
    def test_kind_and_lengths(self, call: str, expected: QueryWindow) -> None:
        found = window(grouped(call))
        assert replace(found, time=found.time.strip("`")) == expected

    def test_a_renamed_time_is_that_of_its_stream(self) -> None:
        chain = {"select": ["event_time AS at", "id"]}, {"withColumn": ["moment", "at"]}
        assert window(*chain, grouped("window(moment, '10 minutes')")).columns == EVENT_TIME

    @pytest.mark.parametrize(
        "before",
        [
            [{"withColumn": ["event_time", "event_time + INTERVAL 1 HOUR"]}],
            [{"select": ["timestamp_seconds(amount) AS event_time"]}],
            [{"dropDuplicates": ["id"]}],
            [
                {"select": ["event_time", "id"]},
                {"join": [{"from": "clicks"}, {"select": ["id AS other"]}], "on": "id = other"},
            ],
            [{"groupBy": ["event_time"], "agg": ["count(*) AS n"]}],
            [{"applyInPandasWithState": {"by": ["id"], "with": "count_rows"}}],
            [{"call": "jobs:build"}],
        ],
        ids=lambda before: next(iter(before[-1])),
    )
    def test_a_time_that_is_computed_or_comes_out_of_state_is_of_no_stream(self, before: list[dict[str, Any]]) -> None:
        assert window(*before, grouped("window(event_time, '10 minutes')")).streams is None

    def test_the_time_of_a_union_is_that_of_both_streams_by_position(self) -> None:
        renamed = [{"from": "clicks"}, {"select": ["event_time AS at", "id AS who"]}]
        both = window({"select": ["event_time", "id"]}, {"union": renamed}, grouped("window(event_time, '10 minutes')"))
        assert both.streams == ("orders", "clicks")
        turned = [{"from": "clicks"}, {"select": ["id", "event_time"]}]
        other = window({"select": ["event_time", "id"]}, {"union": turned}, grouped("window(event_time, '10 minutes')"))
        assert other.columns == (StreamColumn("orders", "event_time"), StreamColumn("clicks", "id"))

    @pytest.mark.parametrize("operation", [{"where": "amount > 1"}, {"limit": 3}])
    def test_rows_may_be_missing_behind_a_filter(self, operation: dict[str, Any]) -> None:
        assert window(operation, grouped("window(event_time, '10 minutes')")).filtered
        assert not window(grouped("window(event_time, '10 minutes')")).filtered

    def test_a_window_that_was_made_earlier_is_a_key(self) -> None:
        found = read({"select": ["window(event_time, '10 minutes') AS slot"]}, grouped("slot"))
        assert found.windows == (TEN_MINUTES,)
        assert found.aggregations == (QueryAggregation(("slot",), (TEN_MINUTES,)),)

    def test_a_window_of_windows_is_of_no_stream(self) -> None:
        found = read(grouped("window(event_time, '5 minutes')"), grouped("window(window, '10 minutes')"))
        assert [one.streams for one in found.windows] == [("orders",), None]
        assert [len(one.windows) for one in found.aggregations] == [1, 1]


class TestHolding:
    def test_tumbling(self) -> None:
        assert TEN_MINUTES.holding(10 * MINUTE) == ((10 * MINUTE, 20 * MINUTE),)
        assert TEN_MINUTES.holding(10 * MINUTE - 1) == ((0, 10 * MINUTE),)

    def test_sliding_earliest_first(self) -> None:
        sliding = QueryWindow("sliding", "t", 10 * MINUTE, 4 * MINUTE, 0, (), filtered=False)
        starts = [start // MINUTE for start, _ in sliding.holding(13 * MINUTE) or ()]
        assert starts == [4, 8, 12]
        assert [start // MINUTE for start, _ in sliding.holding(14 * MINUTE) or ()] == [8, 12]

    def test_a_slide_longer_than_the_window_leaves_gaps(self) -> None:
        gaps = QueryWindow("sliding", "t", 2 * MINUTE, 10 * MINUTE, 0, (), filtered=False)
        assert gaps.holding(11 * MINUTE) == ((10 * MINUTE, 12 * MINUTE),)
        assert gaps.holding(13 * MINUTE) == ()

    def test_a_start(self) -> None:
        shifted = QueryWindow("tumbling", "t", 10 * MINUTE, 10 * MINUTE, 2 * MINUTE, (), filtered=False)
        assert shifted.holding(5 * MINUTE) == ((2 * MINUTE, 12 * MINUTE),)

    def test_what_is_not_known(self) -> None:
        session = QueryWindow("session", "t", 10 * MINUTE, None, 0, (), filtered=False)
        many = QueryWindow("sliding", "t", 86_400_000_000, 1000, 0, (), filtered=False)
        assert session.holding(MINUTE) is None
        assert many.holding(MINUTE) is None
        assert TEN_MINUTES.holding(-1) is None


class TestOperators:
    def test_in_the_order_in_which_rows_pass_them(self) -> None:
        found = read(
            {"withWatermark": ["event_time", "10 minutes"]},
            {"join": [{"from": "clicks", "name": "web"}, {"withWatermark": ["event_time", "1 hour"]}], "on": "a = b"},
            {"dropDuplicatesWithinWatermark": ["id"]},
            {"transformWithState": {"by": ["id"], "with": "number_rows"}},
            {"union": [{"from": "orders"}]},
            {"limit": 1},
        )
        assert found.operators == (
            QuerySource("orders"),
            QueryWatermark("orders", "event_time", "10 minutes"),
            QuerySource("clicks", "web"),
            QueryWatermark("clicks", "event_time", "1 hour"),
            QueryJoin("inner", "a = b"),
            QueryDeduplication(("id",), within_watermark=True),
            QueryStateFunction("transformWithState", "number_rows"),
            QuerySource("orders"),
            QueryUnion(),
            QueryLimit(),
        )
        assert len(found.stateful) == 3
        assert found.unread == ()

    def test_a_watermark_above_an_operator_that_keeps_state_is_on_no_stream(self) -> None:
        found = read(grouped("event_time"), {"withWatermark": ["event_time", "1 minute"]})
        assert found.watermarks == (QueryWatermark(None, "event_time", "1 minute"),)

    def test_functions_whatever_their_case(self) -> None:
        found = read({"where": "Length(id) > 1"}, grouped("window(event_time, '1 hour')", agg="FIRST(id) AS first_id"))
        assert found.functions == {"length", "window", "first"}

    def test_own_code_and_an_expression_that_sqlglot_cannot_parse_are_not_read(self) -> None:
        assert read({"call": "jobs:build"}).unread == ("the function jobs:build",)
        assert read({"where": "id = = 1"}).unread == ("the expression id = = 1",)


class TestSql:
    def test_windows_and_watermark(self) -> None:
        found = sql(
            "SELECT window.start, sum(amount) AS total FROM v WATERMARK event_time DELAY OF INTERVAL 10 MINUTES "
            "GROUP BY window(event_time, '10 minutes')"
        )
        assert found.uses_sql
        assert found.watermarks == (QueryWatermark("orders", "event_time", "INTERVAL 10 MINUTES"),)
        assert found.windows == (TEN_MINUTES,)
        assert found.aggregations == (QueryAggregation(("window(event_time, '10 minutes')",), (TEN_MINUTES,)),)

    def test_the_column_that_a_watermark_clause_adds_is_computed(self) -> None:
        found = sql(
            "SELECT count(*) FROM v WATERMARK timestamp_seconds(amount) AS event_time DELAY OF INTERVAL 1 DAY "
            "GROUP BY window(event_time, '10 minutes')"
        )
        assert [one.streams for one in found.windows] == [None]

    def test_a_window_in_the_select_list_is_the_key(self) -> None:
        found = sql(
            "SELECT window(event_time, '10 minutes') AS w, count(*) FROM v GROUP BY window(event_time, '10 minutes')"
        )
        assert found.windows == (TEN_MINUTES,)

    @pytest.mark.parametrize("key", ["w", "1"])
    def test_a_key_may_name_an_item(self, key: str) -> None:
        found = sql(f"SELECT window(event_time, '10 minutes') AS w, count(*) FROM v GROUP BY {key}")
        assert [one.windows for one in found.aggregations] == [(TEN_MINUTES,)]

    @pytest.mark.parametrize(
        ("join", "kind"),
        [
            ("JOIN", "inner"),
            ("LEFT JOIN", "leftOuter"),
            ("RIGHT OUTER JOIN", "rightOuter"),
            ("FULL JOIN", "fullOuter"),
            ("LEFT SEMI JOIN", "leftSemi"),
            ("LEFT ANTI JOIN", "leftAnti"),
        ],
    )
    def test_joins(self, join: str, kind: str) -> None:
        found = sql(f"SELECT v.id FROM v {join} c ON v.id = c.id", c=[{"from": "clicks"}])
        assert found.joins == (QueryJoin(kind, "v.id = c.id"),)  # type: ignore[arg-type]

    def test_a_join_with_a_table_keeps_no_state(self) -> None:
        found = sql("SELECT event_time FROM v JOIN (VALUES ('a')) AS t(known) ON id = known")
        assert [one.stateful for one in found.joins] == [False]
        assert found.stateful == ()

    @pytest.mark.parametrize(
        ("statement", "kinds"),
        [
            ("SELECT DISTINCT id FROM v", [QuerySource, QueryAggregation]),
            ("SELECT max(amount) FROM v", [QuerySource, QueryAggregation]),
            ("SELECT max(amount) OVER (PARTITION BY id) FROM v", [QuerySource]),
            ("SELECT id FROM v UNION ALL SELECT id FROM v", [QuerySource, QueryUnion]),
            ("SELECT id FROM v UNION SELECT id FROM v", [QuerySource, QueryUnion, QueryAggregation]),
            ("SELECT id FROM v EXCEPT SELECT id FROM v", [QuerySource, QueryJoin, QueryAggregation]),
            ("SELECT id FROM v WHERE id IN (SELECT id FROM v)", [QuerySource, QueryJoin]),
            ("WITH c AS (SELECT id FROM v LIMIT 2) SELECT id FROM c", [QuerySource, QueryLimit]),
            ("SELECT id FROM VALUES (1) AS t(id)", [QuerySource]),
        ],
    )
    def test_operators(self, statement: str, kinds: list[type]) -> None:
        assert [type(one) for one in sql(statement).operators] == kinds

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT (SELECT max(amount) FROM v) AS most FROM v",
            "SELECT * FROM STREAM(v)",
            "SELECT * FROM v, LATERAL (SELECT 1)",
            "SELECT * FROM v LATERAL VIEW explode(array(1)) AS one",
            "INSERT INTO t SELECT * FROM v",
        ],
    )
    def test_what_is_not_followed_is_not_read(self, statement: str) -> None:
        assert len(sql(statement).unread) == 1

    def test_a_statement_that_sqlglot_cannot_parse_is_not_read(self) -> None:
        found = sql("SELECT id FROM v JOIN c APPROX NEAREST 1 BY DISTANCE amount", c=[{"from": "clicks"}])
        assert len(found.unread) == 1
        assert found.stateful == ()
