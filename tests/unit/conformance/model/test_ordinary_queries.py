"""Constructs of ordinary user code: what the model says of them was seen on Spark 3.0.3, 3.5.9 and 4.3.0."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model import sql
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import QuerySettings
from conformance.model.columns import Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.frame import Frame
from conformance.model.query import Query
from tests.support.model_frames import SECOND, VERSIONS, events, played, two_views, watermarked

IN_2052 = 30_000 * 86_400
"""In seconds."""


def counted_by_window(frame, time="t"):
    return frame.group_by([f"window({time}, '10 seconds')"], ["count(*) AS c"]).select("window.end", "c")


@pytest.mark.parametrize("key", ["payload.t", "window(payload.t, '10 seconds')"])
def test_a_field_that_is_grouped_by_is_not_an_event_time(key):
    """`TimeWindowing` and `UnsupportedOperationChecker` look at columns alone."""
    frame = watermarked().select("struct(t, n) AS payload").group_by([key], ["count(*) AS c"])
    with pytest.raises(Refused, match="without watermark"):
        played(frame)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_a_group_keep_the_order_of_their_arrival(version):
    outputs = ["first(n) AS a", "last(n) AS b", "collect_list(n) AS c", "first(s) AS d", "last(s) AS e"]
    frame = watermarked(version).group_by(["window(t, '100 seconds')"], outputs).select("a", "b", "c", "d", "e")
    batches = [(50, 5, "e"), (51, 2, "b")], [(49, 9, None), (48, None, None)]
    first, second = played(frame, *batches, mode="update")[0]
    assert first == [(5, 2, (5, 2), "e", "b")]
    assert second == [(5, None, (5, 2, 9), "e", None)]


def test_after_another_operator_the_order_of_rows_is_unknown():
    frame = watermarked().drop_duplicates("t", "n").group_by(["s"], ["first(n) AS a"])
    with pytest.raises(Unpredictable, match="the order of rows for first"):
        played(frame, mode="update")


def test_first_and_last_may_ignore_nulls():
    outputs = ["first(s, true) AS a", "last(s, true) AS b", "last(s) AS c", "first(s, false) AS d"]
    frame = watermarked().group_by(["window(t, '100 seconds')"], outputs).select("a", "b", "c", "d")
    batches = [(50, 5, None), (51, 2, "x")], [(49, 9, "y"), (48, 1, None)]
    assert played(frame, *batches, mode="update")[0] == [[("x", "x", "x", None)], [("x", "y", None, None)]]


@pytest.mark.parametrize(
    "having", ["count(*) > 1", "total > 3 AND s <> 'b'", "sum(n) > 3 AND max(n) < 4", "s = 'a'", "total > count(*) * 2"]
)
def test_having_keeps_some_groups(having):
    statement = f"SELECT s, sum(n) AS total FROM v GROUP BY s HAVING {having}"
    batch = [(5, 1, "a"), (6, 3, "a"), (7, 2, "b")] if "count(*) * 2" not in having else [(5, 5, "a"), (7, 2, "b")]
    (rows,), _ = played(sql.run(statement, {"v": watermarked()}), batch, mode="update")
    assert [row[0] for row in rows] == ["a"]
    assert len(rows[0]) == 2


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("t + INTERVAL '1:30' MINUTE TO SECOND", 95 * SECOND),
        ("t + make_dt_interval(0, 0, 1, 30)", 95 * SECOND),
        ("CAST(t AS LONG)", 5),
        ("CAST(t AS DOUBLE)", 5.0),
        ("unix_timestamp(t)", 5),
        ("to_timestamp(s)", 7 * SECOND),
        ("to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')", 7 * SECOND),
        ("date_format(t, 'HH:mm')", "00:00"),
    ],
)
def test_times_in_other_forms(time, found):
    assert played(events().select(f"{time} AS at"), [(5, 1, "1970-01-01 00:00:07")])[0] == [[(found,)]]


def test_a_time_made_of_text_may_be_the_event_time():
    frame = events().select("to_timestamp(s, 'yyyy/MM/dd HH:mm:ss') AS at").with_watermark("at", "10 seconds")
    batches = [(0, 1, "1970/01/01 00:00:05")], [(0, 1, "1970/01/01 00:01:00")]
    assert played(counted_by_window(frame, "at"), *batches) == ([[], [(10 * SECOND, 1)]], 50)


@pytest.mark.parametrize("text", ["5 past", "1970/01/01 0:0:5"])
def test_text_that_a_pattern_may_not_read_is_not_predicted(text):
    frame = events().select("to_timestamp(s, 'yyyy/MM/dd HH:mm:ss') AS at")
    with pytest.raises(Unpredictable, match="to_timestamp"):
        played(frame, [(0, 1, text)])


def test_a_sort_key_that_is_not_selected_is_not_known():
    with pytest.raises(Unpredictable, match="ORDER BY"):
        sql.run("SELECT s, count(*) AS c FROM v GROUP BY s ORDER BY max(n)", {"v": watermarked()})


TOTALS = "SELECT s, sum(n) AS total FROM v GROUP BY s"


@pytest.mark.parametrize("end", ["LIMIT 2", "ORDER BY total LIMIT 2", "ORDER BY s DESC LIMIT 2"])
def test_a_limit_of_a_complete_result_is_not_predicted(end):
    """Every micro-batch takes the first rows again: `StreamingGlobalLimitStrategy`."""
    with pytest.raises(Unpredictable, match="a limit of a complete result"):
        played(sql.run(f"{TOTALS} {end}", {"v": events()}), [(5, 1, "a")], mode="complete")


@pytest.mark.parametrize("end", ["", "LIMIT 2"])
def test_a_sort_below_other_operators_is_not_predicted(end):
    statement = f"SELECT s, count(*) AS c FROM (SELECT * FROM v ORDER BY n {end}) GROUP BY s"
    with pytest.raises(Unpredictable, match="a sort below other operators"):
        played(sql.run(statement, {"v": events()}), [(5, 1, "a")], mode="complete")


def test_a_limit_below_an_aggregation_counts_the_rows_of_the_stream_in_complete_mode_too():
    """SPARK-30658."""
    frame = sql.run("SELECT count(*) AS c FROM (SELECT * FROM v LIMIT 2) GROUP BY 1 + 1", {"v": events()})
    assert played(frame, [(5, 1, "a")], [(6, 1, "a"), (7, 1, "a")], mode="complete")[0] == [[(1,)], [(2,)]]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.n, b.n AS m FROM v AS a JOIN v AS b ON a.t = b.t AND a.s = b.s WHERE a.n < b.n",
        "SELECT a.n, b.m FROM v AS a JOIN (SELECT n + 1 AS m, t AS u FROM v) AS b ON a.t = b.u",
        "SELECT s, count(*) AS c FROM (SELECT s FROM v UNION ALL SELECT s FROM v) GROUP BY s",
        "WITH c AS (SELECT s, t FROM v WHERE n > 1) SELECT a.s FROM c AS a JOIN c AS b ON a.t = b.t",
        "SELECT s FROM v UNION SELECT s FROM w UNION SELECT s FROM v",
    ],
)
def test_a_view_that_is_named_twice_is_not_predicted(statement):
    """Spark makes it two relations, each with its own columns and operators: `DeduplicateRelations`."""
    with pytest.raises(Unpredictable, match="a view that is named twice"):
        sql.run(statement, two_views())


@pytest.mark.parametrize(
    ("join", "later"),
    [
        ("JOIN", []),
        ("INNER JOIN", []),
        ("LEFT JOIN", [(3, None)]),
        ("RIGHT OUTER JOIN", [(None, 1)]),
        ("FULL OUTER JOIN", [(3, None), (None, 1)]),
    ],
)
def test_a_join_of_two_views(join, later):
    frame = sql.run(f"SELECT v.n, w.n FROM v {join} w ON v.t = w.t AND v.n + 2 = w.n", two_views())
    found, _ = played(frame, [(5, 1, "a"), (5, 3, "a")], [(60, 9, "a")])
    assert [found[0], sorted(found[1], key=str, reverse=True)] == [[(1, 3)], sorted(later, key=str, reverse=True)]


def test_a_semi_join_of_two_views():
    frame = sql.run("SELECT n FROM v LEFT SEMI JOIN w ON v.t = w.t AND v.n + 2 = w.n", two_views())
    assert played(frame, [(5, 1, "a"), (5, 3, "a")])[0] == [[(1,)]]


@pytest.mark.parametrize(("columns", "width"), [("*", 6), ("b.*", 3), ("a.n, b.*", 4), ("*, a.n + 1 AS m", 7)])
def test_all_columns_of_a_view(columns, width):
    frame = sql.run(f"SELECT {columns} FROM v AS a JOIN w AS b ON a.t = b.t", two_views())
    assert len(frame.plan.columns) == width


def test_a_window_as_text():
    frame = watermarked().group_by(["window(t, '10 seconds')"], ["count(*) AS c"])
    shown = frame.select("date_format(window.start, 'yyyy-MM-dd HH:mm:ss') AS at", "CAST(window.end AS STRING) AS end")
    batch = [(75, 1, "a")]
    assert played(shown, batch, mode="update")[0] == [[("1970-01-01 00:01:10", "1970-01-01 00:01:20")]]
    with pytest.raises(Unpredictable, match="date_format"):
        frame.select("date_format(window.start, 'EEEE')")


def test_what_depends_on_the_day_of_the_run_is_not_predicted():
    frame = events().where("t <= current_timestamp()")
    assert played(frame, [(100, 1, "a")])[0] == [[(100 * SECOND, 1, "a")]]
    with pytest.raises(Unpredictable, match="the day of the run"):
        played(frame, [(IN_2052, 1, "a")])
    for clock in ("now", "current_timestamp"):
        with pytest.raises(Unpredictable, match=f"{clock}, whose value is another in each run"):
            played(events().select(f"{clock}() AS at"), [(100, 1, "a")])


def test_a_silent_side_of_a_join_without_watermark_tells_the_other_nothing():
    """`InferFiltersFromConstraints` comes after the batch "LocalRelation early", which replaces the side."""
    ids, rules = Ids(), rules_of(SparkVersion.parse("4.3.0"))
    left = Frame.read("events", parse_schema("n INT"), rules, ids).select("'x' AS a")
    right = Frame.read("others", parse_schema("m INT"), rules, ids).select("'y' AS b")
    frame = left.join(right, "a = b", "inner")

    def held(*arrivals):
        query = Query(frame.plan, QuerySettings("append", "default", {}), ModelCheckpoint(), rules)
        for arrival in arrivals:
            query.arrive([arrival])
            last = [*query.run()][-1]
        return last.operators[0].state_rows

    assert held({"events": [(1,)]}, {"others": [(1,)]}) == 2
    assert held({"events": [(1,)], "others": [(1,)]}) == 0


def statistics_of(version, function, *values):
    frame = events(version).group_by(["s"], [f"{function}(n) AS found"]).select("found")
    ((row,), *_), _ = played(frame, [(number, value, "a") for number, value in enumerate(values)], mode="complete")
    return row[0]


@pytest.mark.parametrize(
    ("function", "values", "found"),
    [
        ("variance", (10, 12, 17), 13),
        ("stddev", (10, 12, 17), 13**0.5),
        ("variance", (10, None, 10), 0),
        ("stddev", (10,), None),
        ("variance", (None, None), None),
        ("median", (10, 40, 12), 12),
        ("median", (10, 40), 25),
        ("median", (None,), None),
    ],
)
def test_statistics_are_those_of_a_sample(function, values, found):
    assert statistics_of("4.3.0", function, *values) == (None if found is None else pytest.approx(found))


@pytest.mark.parametrize("function", ["stddev", "variance"])
def test_the_variance_of_one_value_was_nan_before_3_1(function):
    with pytest.raises(Unpredictable, match="the variance of one value, which is NaN on this version"):
        statistics_of("3.0.3", function, 10, 12)
    assert statistics_of("3.1.3", function, 10, 10) == 0


def test_median_arrived_in_3_4():
    with pytest.raises(Refused, match="Undefined function: 'median'"):
        statistics_of("3.3.4", "median", 10)
    assert statistics_of("3.4.4", "median", 10) == 10


@pytest.mark.parametrize("version", VERSIONS)
def test_a_left_join_with_static_rows_keeps_rows_of_the_stream_without_a_match(version):
    statement = "SELECT n, k.b FROM v LEFT JOIN VALUES (1, 'x'), (1, 'y') AS k(a, b) ON v.n = k.a"
    (rows,), _ = played(sql.run(statement, {"v": events(version)}), [(5, 1, "a"), (6, 2, "b")])
    assert rows == [(1, "x"), (1, "y"), (2, None)]


def test_a_filter_on_the_stream_goes_below_a_static_join_and_the_watermark():
    kept = "SELECT t, n, k.b FROM v LEFT JOIN VALUES (1, 'x') AS k(a, b) ON v.n = k.a WHERE s <> 'z'"
    assert played(sql.run(kept, {"v": watermarked()}), [(50, 1, "a"), (900, 1, "z")])[1] == 40


def test_a_filter_on_the_static_side_leaves_the_watermark_to_see_every_row():
    kept = "SELECT t, n, k.b FROM v LEFT JOIN VALUES (1, 'x') AS k(a, b) ON v.n = k.a WHERE k.b = 'x'"
    expected = ([[(50 * SECOND, 1, "x")]], 890)
    assert played(sql.run(kept, {"v": watermarked()}), [(50, 1, "a"), (900, 2, "z")]) == expected


def test_the_size_of_a_list_is_the_number_of_its_values():
    frame = events().group_by(["s"], ["size(collect_list(n)) AS a", "size(collect_set(n)) AS b"])
    batch = [(5, 1, "a"), (6, 1, "a"), (7, None, "b")]
    assert played(frame, batch, mode="update")[0] == [[("a", 2, 1), ("b", 0, 0)]]


@pytest.mark.parametrize("keys", ["ALL", "date_trunc('HOUR', t), upper(s)"])
def test_the_select_list_repeats_the_keys(keys):
    statement = f"SELECT date_trunc('HOUR', t) AS h, upper(s) AS k, sum(n) AS c FROM v GROUP BY {keys}"
    batch = [(5, 1, "a"), (6, 1, "a"), (3605, 5, "b")]
    assert played(sql.run(statement, {"v": events()}), batch, mode="update")[0] == [
        [(0, "A", 2), (3600 * SECOND, "B", 5)]
    ]


def test_group_by_all_is_not_predicted_where_all_is_a_name():
    with pytest.raises(Unpredictable, match="GROUP BY ALL"):
        sql.run("SELECT s, sum(n) AS c FROM v GROUP BY ALL", {"v": events("3.3.4")})
